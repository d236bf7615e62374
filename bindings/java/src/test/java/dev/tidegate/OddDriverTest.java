package dev.tidegate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.sql.SQLTransientConnectionException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** Drivers and pools that do what no good one does, and those who use them. */
class OddDriverTest {
  private static final SQLException CANCELLED =
      new SQLException("canceling statement due to user request", "57014");

  /** What a method answers or throws, by its name. */
  private final Map<String, Object> says = new HashMap<>();

  private final Gate gate = Gate.of("db", 2);

  private <T> T fake(Class<T> type) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (self, method, args) -> {
              Object said = says.get(type.getSimpleName() + "." + method.getName());
              said = said == null ? says.get(method.getName()) : said;
              if (said instanceof Throwable thrown) {
                throw thrown;
              }
              if (said != null) {
                return said;
              }
              Class<?> result = method.getReturnType();
              if (Connection.class.isAssignableFrom(result)
                  || Statement.class.isAssignableFrom(result)
                  || result == ResultSet.class
                  || result == DatabaseMetaData.class) {
                return fake(result);
              }
              return result == boolean.class
                  ? (Object) false
                  : result == int.class ? (Object) 0 : null;
            }));
  }

  private DataSource source(Gate gate) {
    return new GatedDataSource(fake(DataSource.class), gate);
  }

  private Map<Outcome, Long> released(long success, long overload, long ignore) {
    return Map.of(Outcome.SUCCESS, success, Outcome.OVERLOAD, overload, Outcome.IGNORE, ignore);
  }

  @Test
  void aCloseThatThrowsGivesThePermitBack() throws Exception {
    Connection connection = source(gate).getConnection();
    says.put("Connection.close", new IllegalStateException("odd"));
    assertThrows(IllegalStateException.class, connection::close);
    says.put("Connection.close", new SQLTimeoutException("late"));
    Connection late = source(gate).getConnection();
    assertThrows(SQLTimeoutException.class, late::close);
    assertThrows(SQLTimeoutException.class, late::close);
    assertEquals(released(1, 1, 0), gate.stats().released());
    Connection aborted = source(gate).getConnection();
    says.put("abort", new SecurityException("no"));
    assertThrows(SecurityException.class, () -> aborted.abort(Runnable::run));
    assertEquals(released(1, 1, 1), gate.stats().released());
  }

  @Test
  void aSourceWithoutAConnectionKeepsNoPermit() {
    DataSource none =
        (DataSource)
            Proxy.newProxyInstance(
                DataSource.class.getClassLoader(),
                new Class<?>[] {DataSource.class},
                (self, method, args) -> null);
    assertThrows(NullPointerException.class, () -> new GatedDataSource(none, gate).getConnection());
    assertEquals(released(0, 0, 1), gate.stats().released());
  }

  @Test
  @SuppressWarnings("try") // closed twice, on purpose
  void nothingOfAConnectionLeadsPastTheGate() throws Exception {
    try (Connection connection = source(gate).getConnection();
        PreparedStatement statement = connection.prepareStatement("select 1");
        ResultSet rows = statement.executeQuery();
        ResultSet tables = connection.getMetaData().getTables(null, null, null, null)) {
      assertSame(connection, connection.getMetaData().getConnection());
      assertSame(statement, rows.getStatement());
      assertSame(connection, rows.getStatement().getConnection());
      assertSame(connection, tables.getStatement().getConnection());
      assertSame(connection, connection.unwrap(Connection.class));
      assertSame(statement, statement.unwrap(Statement.class));
      assertSame(rows, rows.unwrap(ResultSet.class));
      assertTrue(connection.isWrapperFor(Connection.class));
      assertFalse(connection.isWrapperFor(String.class));
      assertNotEquals(connection, source(gate).getConnection());
      assertEquals(rows, rows);
      assertEquals(rows.hashCode(), rows.hashCode());
      assertFalse(rows.equals(null));
      rows.close();
      statement.close();
      assertEquals(2, gate.inFlight(), "only the connection's own end is one");
      rows.getStatement().getConnection().close();
      assertEquals(1, gate.inFlight(), "the other's");
    }
    assertEquals(released(1, 0, 0), gate.stats().released());
  }

  @Test
  void whatRowsThrowSaysWhatBecameOfTheWork() throws Exception {
    says.put("next", new SQLTimeoutException("while fetching"));
    try (Connection connection = source(gate).getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("select 1")) {
      assertThrows(SQLTimeoutException.class, rows::next);
    }
    says.put("next", CANCELLED);
    says.put("getQueryTimeout", 30);
    try (Connection connection = source(gate).getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("select 1")) {
      assertThrows(SQLException.class, rows::next);
    }
    assertEquals(released(0, 2, 0), gate.stats().released());
  }

  /** Its rows are all that is left of it; they are in use, and so is the connection. */
  private ResultSet rowsAlone() throws SQLException {
    return source(gate).getConnection().createStatement().executeQuery("select 1");
  }

  @Test
  void rowsKeepThePermit() throws Exception {
    ResultSet rows = rowsAlone();
    for (int tries = 0; tries < 20; tries++) {
      System.gc();
      Thread.sleep(1);
    }
    assertEquals(1, gate.inFlight());
    rows.getStatement().getConnection().close();
    assertEquals(released(1, 0, 0), gate.stats().released());
  }

  @Test
  void whoCancelsAQueryThatHasATimeoutSaysNothing() throws Exception {
    says.put("execute", CANCELLED);
    says.put("getQueryTimeout", 30);
    try (Connection connection = source(gate).getConnection();
        Statement statement = connection.createStatement()) {
      says.put("cancel", "done");
      says.put(
          "execute",
          CANCELLED); // as if it had been cancelled from another thread while it was at work
      assertThrows(SQLException.class, () -> cancelledMidway(statement));
    }
    assertEquals(released(0, 0, 1), gate.stats().released());
    try (Connection connection = source(gate).getConnection();
        Statement statement = connection.createStatement()) {
      statement.cancel(); // which came before, and hit nothing
      assertThrows(SQLException.class, () -> statement.execute("select 1"));
    }
    assertEquals(released(0, 1, 1), gate.stats().released());
  }

  /** The cancellation comes while its rows are read. */
  private void cancelledMidway(Statement statement) throws SQLException {
    says.put("next", CANCELLED);
    ResultSet rows = statement.executeQuery("select 1");
    statement.cancel();
    rows.next();
  }

  @Test
  void aStatementThatCannotBeAskedHidesNothing() throws Exception {
    says.put("execute", CANCELLED);
    for (Throwable odd :
        new Throwable[] {new SQLException("closed"), new IllegalStateException("odd")}) {
      says.put("getQueryTimeout", odd);
      try (Connection connection = source(gate).getConnection();
          Statement statement = connection.createStatement()) {
        assertSame(
            CANCELLED, assertThrows(SQLException.class, () -> statement.execute("select 1")));
      }
    }
    assertEquals(released(0, 0, 2), gate.stats().released());
  }

  @Test
  void aGatesOwnOutcomesComeFirstHereToo() throws Exception {
    Gate own = Gate.builder("db", 2).outcomes(_ -> Outcome.SUCCESS).build();
    says.put("execute", CANCELLED);
    says.put("getQueryTimeout", 30);
    try (Connection connection = source(own).getConnection();
        Statement statement = connection.createStatement()) {
      assertThrows(SQLException.class, () -> statement.execute("select 1"));
    }
    assertEquals(released(1, 0, 0), own.stats().released());
    says.put("getConnection", new SQLTransientConnectionException("no connection in time"));
    DataSource source = source(own);
    assertThrows(SQLTransientConnectionException.class, source::getConnection);
    assertEquals(released(1, 0, 1), own.stats().released());
  }

  @Test
  void overloadStaysNotedAndOfTheRestTheLastCounts() throws Exception {
    try (Connection connection = source(gate).getConnection()) {
      says.put("commit", new SQLException("gone", "57014"));
      assertThrows(SQLException.class, connection::commit);
      says.put("commit", new SQLException("unique", "23505"));
      assertThrows(SQLException.class, connection::commit);
    }
    assertEquals(released(1, 0, 0), gate.stats().released());
    try (Connection connection = source(gate).getConnection()) {
      says.put("commit", new SQLTimeoutException());
      assertThrows(SQLException.class, connection::commit);
      says.put("commit", new SQLException("gone", "57014"));
      assertThrows(SQLException.class, connection::commit);
    }
    assertEquals(released(1, 1, 0), gate.stats().released());
  }

  @Test
  void whatAStatementOfAClosedConnectionThrowsChangesNothing() throws Exception {
    Connection connection = source(gate).getConnection();
    Statement statement = connection.createStatement();
    connection.close();
    says.put("execute", new SQLTimeoutException());
    says.put("getConnection", new SQLException("closed"));
    assertThrows(SQLException.class, () -> statement.execute("select 1"));
    assertThrows(SQLException.class, statement::getConnection);
    assertEquals(released(1, 0, 0), gate.stats().released());
  }
}
