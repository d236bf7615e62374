package dev.tidegate;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A connection that holds a permit, its statements and their rows: what they throw is noted, and
 * closing the connection gives the permit back with what was noted. Everything else passes through.
 */
final class GatedConnection {
  private final Permit permit;
  private final Gate gate;
  private final AtomicReference<Outcome> noted = new AtomicReference<>(Outcome.SUCCESS);
  private final Connection itself;

  /** The statement whose query its user cancelled last, which a driver may tell like a timeout. */
  private volatile Statement cancelled;

  private GatedConnection(Connection connection, Permit permit, Gate gate) {
    this.permit = permit;
    this.gate = gate;
    this.itself = proxy(Connection.class, connection, null, null);
  }

  static Connection of(Connection connection, Permit permit, Gate gate) {
    return new GatedConnection(connection, permit, gate).itself;
  }

  /**
   * Something of this connection. It keeps the permit, since who has it works with the connection,
   * and leads back to nothing that is past the gate.
   *
   * @param statement the driver's statement whose exceptions these are
   * @param owner what {@code getStatement} answers, where it is known
   */
  private <T> T proxy(Class<T> type, T inner, Statement statement, Object owner) {
    InvocationHandler handler =
        (self, method, args) ->
            switch (method.getName()) {
              case "equals" -> args[0] == self;
              case "hashCode" -> System.identityHashCode(self);
              case "unwrap" -> leadsTo(self, args) ? self : invoke(inner, method, args, statement);
              case "isWrapperFor" ->
                  leadsTo(self, args) || (boolean) invoke(inner, method, args, statement);
              case "getConnection" -> {
                invoke(inner, method, args, statement); // which is an error once it is closed
                yield itself;
              }
              case "getStatement" -> {
                Object found = invoke(inner, method, args, statement);
                yield found != null && owner != null ? owner : wrapped(found, statement, null);
              }
              default ->
                  inner instanceof Connection && isEnd(method)
                      ? leave(inner, method, args)
                      : wrapped(invoke(inner, method, args, statement), statement, self);
            };
    return type.cast(
        Proxy.newProxyInstance(
            GatedConnection.class.getClassLoader(), new Class<?>[] {type}, handler));
  }

  private static boolean leadsTo(Object self, Object[] args) {
    return args[0] instanceof Class<?> type && type.isInstance(self);
  }

  private static boolean isEnd(Method method) {
    return method.getName().equals("close") || method.getName().equals("abort");
  }

  private Object leave(Object connection, Method method, Object[] args) throws Throwable {
    try {
      return invoke(connection, method, args, null);
    } finally {
      permit.release(method.getName().equals("close") ? noted.get() : Outcome.IGNORE);
    }
  }

  private Object wrapped(Object result, Statement statement, Object self) {
    return switch (result) {
      case CallableStatement made -> proxy(CallableStatement.class, made, made, null);
      case PreparedStatement made -> proxy(PreparedStatement.class, made, made, null);
      case Statement made -> proxy(Statement.class, made, made, null);
      case ResultSet rows ->
          proxy(ResultSet.class, rows, statement, self instanceof Statement ? self : null);
      case DatabaseMetaData data -> proxy(DatabaseMetaData.class, data, null, null);
      case null, default -> result;
    };
  }

  private Object invoke(Object on, Method method, Object[] args, Statement statement)
      throws Throwable {
    if (on instanceof Statement) {
      if (method.getName().equals("cancel")) {
        cancelled = statement;
      } else if (method.getName().startsWith("execute") && cancelled == statement) {
        cancelled = null;
      }
    }
    try {
      return method.invoke(on, args);
    } catch (InvocationTargetException thrown) {
      note(thrown.getCause(), statement);
      throw thrown.getCause();
    }
  }

  /** Overload stays noted; of the rest the last counts. */
  private void note(Throwable thrown, Statement statement) {
    Outcome outcome =
        gate.outcomeOf(
            thrown, it -> isOwnTimeout(it, statement) ? Outcome.OVERLOAD : Outcomes.of(it));
    noted.updateAndGet(before -> before == Outcome.OVERLOAD ? before : outcome);
  }

  /**
   * A driver ends a query that has taken too long by cancelling it, which looks as if its user had.
   */
  private boolean isOwnTimeout(Throwable thrown, Statement statement) {
    if (statement == null
        || statement == cancelled
        || !(thrown instanceof SQLException of && "57014".equals(of.getSQLState()))) {
      return false;
    }
    try {
      return statement.getQueryTimeout() > 0;
    } catch (SQLException | RuntimeException closed) {
      return false;
    }
  }
}
