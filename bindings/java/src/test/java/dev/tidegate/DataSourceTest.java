package dev.tidegate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariDataSource;
import java.net.URI;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.SQLTransientConnectionException;
import java.sql.Statement;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.postgresql.PGConnection;
import org.postgresql.ds.PGSimpleDataSource;

/** A real PostgreSQL behind HikariCP: scripts/with_postgres.sh names it in TIDEGATE_TEST_DSN. */
@EnabledIfEnvironmentVariable(
    named = "TIDEGATE_TEST_DSN",
    matches = ".+",
    disabledReason = "no PostgreSQL: TIDEGATE_TEST_DSN is not set")
class DataSourceTest {
  private HikariDataSource pool;
  private Gate gate;
  private DataSource source;

  private static PGSimpleDataSource postgres() {
    URI dsn = URI.create(System.getenv("TIDEGATE_TEST_DSN"));
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setServerNames(new String[] {dsn.getHost()});
    source.setPortNumbers(new int[] {dsn.getPort()});
    source.setUser(dsn.getUserInfo());
    source.setDatabaseName(dsn.getPath().substring(1));
    return source;
  }

  @BeforeEach
  void open() {
    pool = new HikariDataSource();
    pool.setDataSource(postgres());
    pool.setMaximumPoolSize(3);
    pool.setConnectionTimeout(250);
    pool.setInitializationFailTimeout(10_000);
    gate = Gate.of("db", 2);
    source = new GatedDataSource(pool, gate);
  }

  @AfterEach
  void close() {
    pool.close();
    assertEquals(0, gate.inFlight());
  }

  private void assertReleased(long success, long overload, long ignore) {
    assertEquals(
        Map.of(Outcome.SUCCESS, success, Outcome.OVERLOAD, overload, Outcome.IGNORE, ignore),
        gate.stats().released());
  }

  @Test
  @SuppressWarnings("try") // closed twice, on purpose
  void aConnectionHoldsAPermitUntilItIsClosed() throws Exception {
    try (Connection connection = source.getConnection();
        PreparedStatement query = connection.prepareStatement("select ?::int")) {
      assertEquals(1, gate.inFlight());
      query.setInt(1, 7);
      try (ResultSet rows = query.executeQuery()) {
        assertTrue(rows.next());
        assertEquals(7, rows.getInt(1));
      }
      assertSame(connection, query.getConnection(), "no way past the gate");
      assertTrue(connection.unwrap(PGConnection.class).getBackendPID() > 0);
      assertEquals(connection, connection);
      connection.close();
      connection.close();
    }
    assertReleased(1, 0, 0);
  }

  @Test
  void whoIsShedGetsNoConnectionAndWaitsForNone() throws Exception {
    try (Connection one = source.getConnection();
        Connection two = source.getConnection()) {
      assertTrue(one.isValid(1) && two.isValid(1));
      Shed shed = assertThrows(Shed.class, source::getConnection);
      assertEquals(Reason.LIMIT, shed.reason());
      assertEquals(0, pool.getHikariPoolMXBean().getThreadsAwaitingConnection());
      assertEquals(2, pool.getHikariPoolMXBean().getActiveConnections());
    }
    assertReleased(2, 0, 0);
  }

  @Test
  void whatStatementsThrowSaysWhatBecameOfTheWork() throws Exception {
    try (Connection connection = source.getConnection();
        Statement statement = connection.createStatement()) {
      assertThrows(SQLException.class, () -> statement.execute("select nonsense"));
    }
    assertReleased(1, 0, 0);
    try (Connection connection = source.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("set statement_timeout = '20ms'");
      assertThrows(SQLException.class, () -> statement.execute("select pg_sleep(10)"));
      statement.execute("set statement_timeout = 0");
      assertThrows(SQLException.class, () -> statement.execute("select nonsense"));
    }
    assertReleased(1, 1, 0);
    try (Connection connection = source.getConnection();
        Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(1);
      assertThrows(SQLException.class, () -> statement.execute("select pg_sleep(10)"));
    }
    assertReleased(1, 2, 0);
  }

  @Test
  void whatWasCalledOffSaysNothing() throws Exception {
    try (Connection connection = source.getConnection();
        Statement sleeping = connection.createStatement();
        Connection other = source.getConnection();
        Statement looking = other.createStatement()) {
      int pid = connection.unwrap(PGConnection.class).getBackendPID();
      CompletableFuture<Boolean> slept =
          CompletableFuture.supplyAsync(
              () -> {
                try {
                  return sleeping.execute("select pg_sleep(100)");
                } catch (SQLException e) {
                  assertEquals("57014", e.getSQLState());
                  return false;
                }
              });
      String asleep =
          "select 1 from pg_stat_activity where pid = %d and wait_event = 'PgSleep'".formatted(pid);
      boolean found = false;
      while (!found) {
        try (ResultSet rows = looking.executeQuery(asleep)) {
          found = rows.next();
        }
      }
      sleeping.cancel();
      assertFalse(slept.get());
    }
    assertReleased(1, 0, 1);
  }

  @Test
  void aPoolThatHasNoConnectionInTimeIsOverload() throws Exception {
    try (Connection one = pool.getConnection();
        Connection two = pool.getConnection();
        Connection three = pool.getConnection()) {
      assertTrue(one.isValid(1) && two.isValid(1) && three.isValid(1));
      assertThrows(SQLTransientConnectionException.class, source::getConnection);
    }
    assertReleased(0, 1, 0);
  }

  @Test
  void aDatabaseThatIsNotThereSaysNothingOfItsLoad() {
    PGSimpleDataSource nowhere = new PGSimpleDataSource();
    nowhere.setServerNames(new String[] {"127.0.0.1"});
    nowhere.setPortNumbers(new int[] {1});
    DataSource gated = new GatedDataSource(nowhere, gate);
    assertThrows(SQLException.class, gated::getConnection);
    assertThrows(SQLException.class, () -> gated.getConnection("nobody", "secret"));
    assertReleased(0, 0, 2);
    assertThrows(SQLFeatureNotSupportedException.class, gated::createConnectionBuilder);
  }

  @Test
  void aStormLeavesNothingAndTheLimitHolds() throws Exception {
    AtomicLong shed = new AtomicLong();
    AtomicLong answered = new AtomicLong();
    try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int task = 0; task < 400; task++) {
        boolean fails = task % 7 == 0;
        executor.submit(
            () -> {
              try (Connection connection = source.getConnection();
                  Statement statement = connection.createStatement()) {
                statement.execute(fails ? "select 1/0" : "select 1");
                answered.incrementAndGet();
              } catch (Shed expected) {
                shed.incrementAndGet();
              } catch (SQLException failed) {
                assertEquals("22012", failed.getSQLState());
                answered.incrementAndGet();
              }
              return null;
            });
      }
    }
    Stats stats = gate.stats();
    assertEquals(400, answered.get() + shed.get());
    assertEquals(answered.get(), stats.admitted().get(Priority.CRITICAL));
    assertEquals(shed.get(), stats.shed().get(Priority.CRITICAL).get(Reason.LIMIT));
    assertTrue(stats.highWater() <= 2);
  }
}
