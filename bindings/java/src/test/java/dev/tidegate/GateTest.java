package dev.tidegate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.SocketTimeoutException;
import java.net.http.HttpTimeoutException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

class GateTest {
  private static final Map<Outcome, Long> NOTHING =
      Map.of(Outcome.SUCCESS, 0L, Outcome.OVERLOAD, 0L, Outcome.IGNORE, 0L);

  private static Map<Outcome, Long> released(long success, long overload, long ignore) {
    return Map.of(Outcome.SUCCESS, success, Outcome.OVERLOAD, overload, Outcome.IGNORE, ignore);
  }

  @Test
  void aPermitIsGivenBackOnce() {
    Gate gate = Gate.of("db", 2);
    try (Permit permit = gate.admit(Ask.of(Priority.SHEDDABLE).weighing(1))) {
      assertEquals(1, gate.inFlight());
      assertEquals(Priority.SHEDDABLE, permit.priority());
      assertEquals(1, permit.weight());
      assertFalse(permit.over());
      assertTrue(permit.release(Outcome.OVERLOAD));
      assertFalse(permit.release(Outcome.SUCCESS));
      assertTrue(permit.released());
      assertThrows(IllegalStateException.class, permit::weight);
    }
    assertEquals(0, gate.inFlight());
    assertEquals(released(0, 1, 0), gate.stats().released());
  }

  @Test
  void aCallGivesItsPermitBackWhateverItComesTo() throws Exception {
    Gate gate = Gate.of("db", 2);
    assertEquals(1L, gate.call(gate::inFlight));
    RuntimeException failure = new RuntimeException("no such table");
    assertSame(
        failure,
        assertThrows(
            RuntimeException.class,
            () ->
                gate.call(
                    () -> {
                      throw failure;
                    })));
    assertThrows(
        TimeoutException.class,
        () ->
            gate.call(
                () -> {
                  throw new TimeoutException();
                }));
    assertThrows(
        InterruptedException.class,
        () ->
            gate.call(
                () -> {
                  throw new InterruptedException();
                }));
    assertThrows(
        StackOverflowError.class,
        () ->
            gate.call(
                () -> {
                  throw new StackOverflowError();
                }));
    assertEquals(released(3, 1, 1), gate.stats().released());
    assertEquals(0, gate.inFlight());
  }

  @Test
  void whoIsShedIsToldSoAndTheWorkIsNotBegun() {
    Gate gate = Gate.of("db", 1);
    try (Permit permit = gate.admit()) {
      assertFalse(permit.released());
      Shed shed =
          assertThrows(Shed.class, () -> gate.call(() -> assertThrows(Exception.class, null)));
      assertEquals("db", shed.gate());
      assertEquals(Reason.LIMIT, shed.reason());
      assertEquals(Priority.CRITICAL, shed.priority());
      assertEquals(1, shed.inFlight());
      assertEquals(1, shed.limit());
      assertEquals(0, shed.getStackTrace().length);
      assertTrue(
          shed.getMessage().startsWith("gate 'db' full: 1 of 1 in flight (priority critical)"),
          shed.getMessage());
      assertTrue(shed.retryAfterHeader().matches("[1-9]\\d*"));
      assertEquals(Optional.empty(), gate.tryAdmit());
      CompletableFuture<Object> answer = gate.callAsync(Ask.DEFAULT, CompletableFuture::new);
      assertInstanceOf(Shed.class, assertThrows(ExecutionException.class, answer::get).getCause());
    }
    assertEquals(3, gate.stats().shed().get(Priority.CRITICAL).get(Reason.LIMIT));
  }

  @Test
  void aShedSaysWhichRateAndThatAGateIsClosed() {
    TestClock.set(0);
    Gate gate = Gate.builder("db", 9).rate(Rate.of("1/h")).build();
    gate.admit().close();
    Shed rate = assertThrows(Shed.class, gate::admit);
    assertEquals(
        "gate 'db' over its rate of 1/h (burst 1): 0 of 9 in flight (priority critical); retry in"
            + " about 3600 s",
        rate.getMessage());
    assertEquals(OptionalDouble.of(3600), rate.retryAfter());
    gate.close();
    Shed closed = assertThrows(Shed.class, gate::admit);
    assertEquals("gate 'db' is closed", closed.getMessage());
    assertEquals(OptionalDouble.of(Double.POSITIVE_INFINITY), closed.retryAfter());
    assertTrue(Integer.parseInt(closed.retryAfterHeader()) <= 2);
  }

  @Test
  void workThatGoesOnHoldsItsPermitUntilItsStageCompletes() throws Exception {
    Gate gate = Gate.of("db", 3);
    CompletableFuture<Integer> work = new CompletableFuture<>();
    CompletableFuture<Integer> answer = gate.callAsync(Ask.DEFAULT, () -> work);
    assertEquals(1, gate.inFlight());
    work.complete(7);
    assertEquals(7, answer.get());
    assertEquals(0, gate.inFlight());
    CompletableFuture<Integer> late =
        gate.callAsync(Ask.DEFAULT, () -> CompletableFuture.failedFuture(new TimeoutException()));
    assertTrue(late.isCompletedExceptionally());
    assertThrows(
        IllegalStateException.class,
        () ->
            gate.callAsync(
                Ask.DEFAULT,
                () -> {
                  throw new IllegalStateException();
                }));
    assertThrows(NullPointerException.class, () -> gate.callAsync(Ask.DEFAULT, () -> null));
    assertEquals(released(3, 1, 0), gate.stats().released());
    assertEquals(0, gate.inFlight());
  }

  @Test
  void aPriorityHoldsForABlockAndItsThread() throws Exception {
    Gate gate = Gate.of("db", 4);
    Gate.withPriority(
        Priority.SHEDDABLE,
        () -> {
          gate.admit().close();
          Gate.withPriority(
              Priority.CRITICAL_PLUS,
              () -> {
                gate.admit().close();
                return null;
              });
          gate.admit(Ask.of(Priority.SHEDDABLE_PLUS)).close();
          gate.admit().close();
          Thread other = new Thread(() -> gate.admit().close());
          other.start();
          other.join();
          return null;
        });
    gate.admit().close();
    assertEquals(
        Map.of(
            Priority.CRITICAL_PLUS, 1L,
            Priority.CRITICAL, 2L,
            Priority.SHEDDABLE_PLUS, 1L,
            Priority.SHEDDABLE, 2L),
        gate.stats().admitted());
    assertEquals(2, gate.stats().fallbackPriority());
  }

  @Test
  void exceptionsAreToldApart() {
    Map<Throwable, Outcome> cases = new HashMap<>();
    cases.put(new TimeoutException(), Outcome.OVERLOAD);
    cases.put(new SocketTimeoutException(), Outcome.OVERLOAD);
    cases.put(new HttpTimeoutException("late"), Outcome.OVERLOAD);
    cases.put(new SQLTimeoutException(), Outcome.OVERLOAD);
    cases.put(new SQLException("no room", "53300"), Outcome.OVERLOAD);
    cases.put(
        new SQLException("canceling statement due to statement timeout", "57014"),
        Outcome.OVERLOAD);
    cases.put(new SQLException("canceling statement due to user request", "57014"), Outcome.IGNORE);
    cases.put(new SQLException("read", "08006", new SocketTimeoutException()), Outcome.OVERLOAD);
    cases.put(new SQLException("syntax", "42601"), Outcome.SUCCESS);
    cases.put(new SQLException("no state"), Outcome.SUCCESS);
    cases.put(new InterruptedException(), Outcome.IGNORE);
    cases.put(new CancellationException(), Outcome.IGNORE);
    cases.put(assertThrows(Shed.class, () -> Gate.of("other", 0).admit()), Outcome.IGNORE);
    cases.put(new ExecutionException(new TimeoutException()), Outcome.OVERLOAD);
    cases.put(new CompletionException(new CancellationException()), Outcome.IGNORE);
    cases.put(new CompletionException("alone", null), Outcome.SUCCESS);
    cases.put(new RuntimeException(), Outcome.SUCCESS);
    cases.forEach(
        (thrown, outcome) -> assertEquals(outcome, Outcomes.of(thrown), thrown.toString()));
    assertEquals(Outcome.SUCCESS, Outcomes.of(null));
  }

  @Test
  void aGatesOwnOutcomesComeFirstAndTheirFaultsChangeNothing() {
    Gate gate =
        Gate.builder("db", 1)
            .outcomes(
                thrown ->
                    switch (thrown.getMessage()) {
                      case "busy" -> Outcome.OVERLOAD;
                      case "worse" -> throw new IllegalStateException();
                      default -> null;
                    })
            .build();
    for (String message : List.of("busy", "worse", "else")) {
      RuntimeException thrown = new RuntimeException(message);
      assertSame(
          thrown,
          assertThrows(
              RuntimeException.class,
              () ->
                  gate.call(
                      () -> {
                        throw thrown;
                      })));
    }
    assertEquals(released(2, 1, 0), gate.stats().released());
  }

  @Test
  void d16NumbersAreNeverCutToSize() {
    Gate gate = Gate.of("db", 5);
    for (long wrong :
        new long[] {
          -1, 1L << 31, 1L << 32, (1L << 32) + 5, (1L << 53) + 1, Long.MIN_VALUE, Long.MAX_VALUE
        }) {
      assertRefused(wrong, () -> gate.setLimit(wrong));
      assertRefused(wrong, () -> Gate.of("db", wrong));
      assertRefused(wrong, () -> gate.tryAdmit(Ask.DEFAULT.weighing(wrong)));
      assertRefused(wrong, () -> gate.retryAfter(Ask.DEFAULT.weighing(wrong)));
      assertRefused(wrong, () -> gate.setRate(new Rate(1, 1, wrong)));
      assertRefused(
          wrong, () -> gate.setThresholds(Map.of(Priority.SHEDDABLE, Threshold.reserve(wrong))));
      assertRefused(
          wrong,
          () ->
              Gate.builder("db", 5)
                  .controller(Controller.between(Controller.Kind.AIMD, 1, wrong))
                  .build());
    }
    for (double wrong :
        new double[] {Double.NaN, -0.1, 1.1, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY}) {
      assertThrows(
          IllegalArgumentException.class,
          () -> gate.setThresholds(Map.of(Priority.SHEDDABLE, Threshold.share(wrong))));
      assertThrows(IllegalArgumentException.class, () -> gate.latency(wrong, Priority.CRITICAL));
    }
    assertThrows(IllegalArgumentException.class, () -> gate.tryAdmit(Ask.DEFAULT.weighing(0)));
    assertThrows(IllegalArgumentException.class, () -> gate.drain(Duration.ofNanos(-1)));
    assertFalse(gate.stats().closed(), "a wrong timeout closes nothing");
    assertEquals(5, gate.limit());
    assertEquals(0, gate.stats().generation(), "nothing was changed");
    for (long right : new long[] {0, Integer.MAX_VALUE}) {
      gate.setLimit(right, "a test");
      assertEquals(right, gate.limit());
    }
    try (Permit permit = gate.admit(Ask.DEFAULT.weighing(Integer.MAX_VALUE))) {
      assertEquals(Integer.MAX_VALUE, permit.weight());
      assertEquals(Integer.MAX_VALUE, gate.inFlight());
    }
    assertEquals("a test", gate.limitHistory().getFirst().cause());
  }

  private static void assertRefused(long value, org.junit.jupiter.api.function.Executable call) {
    RuntimeException refused = assertThrows(RuntimeException.class, call, Long.toString(value));
    assertTrue(
        refused instanceof IllegalArgumentException || refused instanceof ConfigException,
        refused.toString());
    assertTrue(refused.getMessage().contains(Long.toString(value)), refused.getMessage());
  }

  @Test
  void d35NamesAreWhatTheyAreOrRefused() {
    for (String name :
        List.of(
            "a\0b", "", "a\nb", "x".repeat(256), "\ud83d\udca5".repeat(64), "\ud800", "a\udc00b")) {
      assertThrows(IllegalArgumentException.class, () -> Gate.of(name, 1), name);
    }
    for (String name :
        List.of("\ud83d\udc0d \u00e9 /..", "x".repeat(255), "'\"\\", "x", "x_total", "x")) {
      assertEquals(name, Gate.of(name, 1).name());
    }
    assertThrows(NullPointerException.class, () -> Gate.of(null, 1));
    assertThrows(IllegalArgumentException.class, () -> Gate.of("db", 1).setLimit(2, "a\0b"));
  }

  @Test
  void aFaultInsideTheLibraryIsAnException() {
    Gate gate = Gate.of("db", 1);
    TestClock.panicNext();
    assertThrows(TidegateException.class, gate::admit);
    TestClock.fullNext();
    assertThrows(TidegateException.class, gate::admit);
    assertEquals(0, gate.inFlight());
    gate.admit().close();
  }

  @Test
  void drainWaitsForWhatIsInsideAndGivesUpAfterItsTime() throws Exception {
    Gate gate = Gate.of("db", 2);
    Permit permit = gate.admit();
    assertFalse(gate.drain(Duration.ZERO));
    assertTrue(gate.stats().closed());
    Thread waiting = Thread.ofVirtual().start(() -> assertDrained(gate));
    permit.close();
    waiting.join();
    assertTrue(gate.drain(Duration.ofSeconds(Long.MAX_VALUE)), "for ever");
  }

  private static void assertDrained(Gate gate) {
    try {
      assertTrue(gate.drain(Duration.ofDays(1)));
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void drainCanBeInterrupted() throws Exception {
    Gate gate = Gate.of("db", 2);
    try (Permit permit = gate.admit()) {
      CompletableFuture<Throwable> thrown = new CompletableFuture<>();
      Thread waiting =
          new Thread(
              () -> {
                try {
                  gate.drain(Duration.ofDays(1));
                  thrown.complete(null);
                } catch (InterruptedException e) {
                  thrown.complete(e);
                }
              });
      waiting.start();
      waiting.interrupt();
      assertInstanceOf(InterruptedException.class, thrown.get());
      assertFalse(permit.released());
    }
  }

  @Test
  void dryRunLetsInAndCounts() {
    Gate gate = Gate.builder("db", 1).enforce(false).build();
    try (Permit first = gate.admit();
        Permit second = gate.admit()) {
      assertFalse(first.over());
      assertTrue(second.over());
      assertEquals(1, gate.stats().overInFlight());
    }
    assertEquals(1, gate.stats().wouldShed().get(Priority.CRITICAL));
    gate.setEnforce(true);
    assertTrue(gate.stats().enforce());
  }

  @Test
  void whatIsMeasuredOfPermitsIsTold() {
    TestClock.set(0);
    Gate gate = Gate.builder("db", 2).timing(true).build();
    Permit permit = gate.admit();
    TestClock.set(1_000_000_000);
    permit.close();
    assertEquals(1, gate.latency(0.5, Priority.CRITICAL).getAsDouble(), 0.02);
    assertEquals(OptionalDouble.empty(), gate.latency(0.5, Priority.SHEDDABLE));
    assertEquals(1, gate.stats().occupancySeconds());
  }

  @Test
  void aControllerMovesTheLimit() {
    TestClock.set(0);
    Gate gate =
        Gate.builder("db")
            .controller(new Controller(Controller.Kind.AIMD, 4, 200, 0, 29))
            .objective(Duration.ofSeconds(2))
            .build();
    assertEquals(29, gate.limit());
    long now = 0;
    for (int round = 0; round < 50; round++) {
      Permit permit = gate.admit();
      now += 100_000_000;
      TestClock.set(now);
      permit.release(Outcome.OVERLOAD);
    }
    Controller.Report report = gate.controller().orElseThrow();
    assertEquals(Controller.Kind.AIMD, report.kind());
    assertEquals(List.of(4L, 200L, 29L), List.of(report.min(), report.max(), report.prior()));
    assertEquals(2, report.objective());
    assertTrue(report.looks() > 0 && gate.limit() < 29, report.toString());
    assertEquals(gate.limit(), gate.limitHistory().getFirst().to());
    assertEquals(Optional.empty(), Gate.of("db", 1).controller());
    assertThrows(
        IllegalArgumentException.class,
        () -> Gate.builder("db").build(),
        "without a controller there is no limit");
  }

  @Test
  void aSignalThatIsPushedSheds() {
    TestClock.set(0);
    Gate gate =
        Gate.builder("db", 100)
            .signals(
                List.of(Signal.of(Signal.Kind.PUSHED).named("db").between(0.5, 0.4).holding(0, 0)))
            .build();
    long now = 0;
    int shed = 0;
    for (int second = 0; second < 60; second++) {
      now += 1_000_000_000L;
      TestClock.set(now);
      gate.signal("db", 1, Duration.ofSeconds(5));
      Optional<Permit> permit = gate.tryAdmit(Ask.of(Priority.SHEDDABLE));
      shed += permit.isEmpty() ? 1 : 0;
      permit.ifPresent(Permit::close);
    }
    Pressure pressure = gate.pressure();
    assertTrue(pressure.overloaded() && pressure.level() == 1, pressure.toString());
    assertEquals(1.0, pressure.shares().get(Priority.SHEDDABLE));
    assertEquals("db", pressure.signals().getFirst().name());
    assertEquals(OptionalDouble.of(1), pressure.signals().getFirst().value());
    assertTrue(
        shed > 20 && gate.stats().shed().get(Priority.SHEDDABLE).get(Reason.PRESSURE) == shed);
    for (double wrong : new double[] {70, -0.1, Double.NaN}) {
      assertThrows(
          IllegalArgumentException.class, () -> gate.signal("db", wrong, Duration.ofSeconds(1)));
    }
    assertThrows(
        IllegalArgumentException.class, () -> gate.signal("other", 0.5, Duration.ofSeconds(1)));
    assertFalse(Gate.of("db", 1).pressure().overloaded());
  }

  @Test
  void gatesOfAFileAreTheirsByName() {
    Gates gates = Gates.parse("[gates.db]\nlimit = 3\n[gates.\"\u00e4 / b\"]\nlimit = 4\n", "test");
    assertEquals(List.of("db", "\u00e4 / b"), gates.names());
    assertSame(gates.get("db"), gates.get("db"));
    assertEquals(4, gates.get("\u00e4 / b").limit());
    assertThrows(IllegalArgumentException.class, () -> gates.get("other"));
    assertThrows(IllegalArgumentException.class, () -> gates.get(""));
    assertThrows(IllegalArgumentException.class, () -> gates.classify(Map.of("a\0", "x")));
    assertThrows(ConfigException.class, () -> Gates.open(Path.of("/no/such/file.toml")));
    Map<String, String> attributes = new HashMap<>();
    attributes.put("path", "\ud800");
    attributes.put("user", null);
    assertEquals(Optional.empty(), gates.classify(attributes));
    assertEquals(NOTHING, gates.get("db").stats().released());
  }
}
