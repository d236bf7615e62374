package dev.tidegate;

import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.ConnectionBuilder;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.ShardingKeyBuilder;
import java.util.Objects;
import java.util.logging.Logger;
import javax.sql.DataSource;

/**
 * A data source behind a gate: a permit is taken before a connection, and given back when the
 * connection is closed. Nobody waits for a connection, and nobody opens one, without a permit.
 *
 * <p>A request that is shed gets a {@link Shed}, which is no {@link SQLException}: what retries
 * database errors at once must not retry it.
 *
 * <p>What the connection's statements throw says what became of its work: see {@link Outcomes#of}.
 */
public final class GatedDataSource implements DataSource {
  private final DataSource source;
  private final Gate gate;

  /** Puts a gate in front of a data source, which is most often a pool. */
  public GatedDataSource(DataSource source, Gate gate) {
    this.source = Objects.requireNonNull(source, "source");
    this.gate = Objects.requireNonNull(gate, "gate");
  }

  /** How a connection is made. */
  private interface Opening {
    Connection open() throws SQLException;
  }

  @Override
  public Connection getConnection() throws SQLException {
    return behindTheGate(source::getConnection);
  }

  @Override
  public Connection getConnection(String username, String password) throws SQLException {
    return behindTheGate(() -> source.getConnection(username, password));
  }

  private Connection behindTheGate(Opening opening) throws SQLException {
    Permit permit = gate.admit();
    try {
      return GatedConnection.of(
          Objects.requireNonNull(opening.open(), "the source's connection"), permit, gate);
    } catch (Throwable thrown) {
      // A checkout that failed did no work: unless it says that the database is overloaded, it says
      // nothing.
      Outcome outcome =
          gate.outcomeOf(thrown, it -> isPoolTimeout(it) ? Outcome.OVERLOAD : Outcomes.of(it));
      permit.release(outcome == Outcome.OVERLOAD ? outcome : Outcome.IGNORE);
      throw thrown;
    }
  }

  /** A pool that had no connection in time says so without a cause, and without a state of SQL. */
  private static boolean isPoolTimeout(Throwable thrown) {
    return thrown instanceof java.sql.SQLTransientConnectionException && thrown.getCause() == null;
  }

  @Override
  public PrintWriter getLogWriter() throws SQLException {
    return source.getLogWriter();
  }

  @Override
  public void setLogWriter(PrintWriter out) throws SQLException {
    source.setLogWriter(out);
  }

  @Override
  public void setLoginTimeout(int seconds) throws SQLException {
    source.setLoginTimeout(seconds);
  }

  @Override
  public int getLoginTimeout() throws SQLException {
    return source.getLoginTimeout();
  }

  @Override
  public Logger getParentLogger() throws SQLFeatureNotSupportedException {
    return source.getParentLogger();
  }

  /** Not supported: its connections would come past the gate. */
  @Override
  public ConnectionBuilder createConnectionBuilder() throws SQLException {
    throw new SQLFeatureNotSupportedException("connections of a builder would come past the gate");
  }

  @Override
  public ShardingKeyBuilder createShardingKeyBuilder() throws SQLException {
    return source.createShardingKeyBuilder();
  }

  @Override
  public <T> T unwrap(Class<T> type) throws SQLException {
    return type.isInstance(this) ? type.cast(this) : source.unwrap(type);
  }

  @Override
  public boolean isWrapperFor(Class<?> type) throws SQLException {
    return type.isInstance(this) || source.isWrapperFor(type);
  }
}
