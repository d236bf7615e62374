package dev.tidegate;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A connection that holds a permit, and the statements made from it: what they throw is noted, and
 * closing the connection gives the permit back with what was noted. Everything else passes through.
 */
final class GatedConnection {
  private final Permit permit;
  private final Gate gate;
  private final AtomicReference<Outcome> noted = new AtomicReference<>(Outcome.SUCCESS);
  private final Connection itself;

  private GatedConnection(Connection connection, Permit permit, Gate gate) {
    this.permit = permit;
    this.gate = gate;
    this.itself =
        proxy(Connection.class, (_, method, args) -> onConnection(connection, method, args));
  }

  static Connection of(Connection connection, Permit permit, Gate gate) {
    return new GatedConnection(connection, permit, gate).itself;
  }

  private Object onConnection(Connection connection, Method method, Object[] args)
      throws Throwable {
    switch (method.getName()) {
      case "close" -> {
        try {
          return invoke(connection, method, args);
        } finally {
          permit.release(noted.get());
        }
      }
      case "abort" -> {
        try {
          return invoke(connection, method, args);
        } finally {
          permit.release(Outcome.IGNORE);
        }
      }
      case "equals" -> {
        return args[0] == itself;
      }
      case "hashCode" -> {
        return System.identityHashCode(itself);
      }
      default -> {
        return wrapped(invoke(connection, method, args));
      }
    }
  }

  private Object wrapped(Object result) {
    return switch (result) {
      case CallableStatement statement -> statement(CallableStatement.class, statement);
      case PreparedStatement statement -> statement(PreparedStatement.class, statement);
      case Statement statement -> statement(Statement.class, statement);
      case null, default -> result;
    };
  }

  private <T extends Statement> T statement(Class<T> type, T statement) {
    return proxy(
        type,
        (self, method, args) ->
            switch (method.getName()) {
              case "getConnection" -> itself;
              case "equals" -> args[0] == self;
              case "hashCode" -> System.identityHashCode(self);
              default -> invokeNoting(statement, method, args);
            });
  }

  private Object invokeNoting(Statement statement, Method method, Object[] args) throws Throwable {
    try {
      return invoke(statement, method, args);
    } catch (SQLException thrown) {
      if (isOwnTimeout(statement, thrown)) {
        noted.set(Outcome.OVERLOAD);
      }
      throw thrown;
    }
  }

  /**
   * A driver ends a query that has taken too long by cancelling it, which looks as if its user had.
   */
  private static boolean isOwnTimeout(Statement statement, SQLException thrown) {
    try {
      return "57014".equals(thrown.getSQLState()) && statement.getQueryTimeout() > 0;
    } catch (SQLException closed) {
      return false;
    }
  }

  private Object invoke(Object on, Method method, Object[] args) throws Throwable {
    try {
      return method.invoke(on, args);
    } catch (InvocationTargetException thrown) {
      note(thrown.getCause());
      throw thrown.getCause();
    }
  }

  /** Overload stays noted; of the rest the last counts. */
  private void note(Throwable thrown) {
    Outcome outcome = gate.outcomeOf(thrown);
    noted.updateAndGet(before -> before == Outcome.OVERLOAD ? before : outcome);
  }

  private static <T> T proxy(Class<T> type, InvocationHandler handler) {
    return type.cast(
        Proxy.newProxyInstance(
            GatedConnection.class.getClassLoader(), new Class<?>[] {type}, handler));
  }
}
