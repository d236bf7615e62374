package dev.tidegate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.sql.BatchUpdateException;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.OptionalDouble;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

/** What others do wrong around a gate loses no permit and hides no exception. */
class FaultsTest {
  private static long released(Gate gate, Outcome outcome) {
    return gate.stats().released().get(outcome);
  }

  private static void forgetAStage(Gate gate) {
    gate.callAsync(Ask.DEFAULT, CompletableFuture::new);
  }

  @Test
  void aStageThatNobodyCanCompleteIsAForgottenPermit() {
    Gate gate = Gate.of("db", 2);
    forgetAStage(gate);
    for (int tries = 0; tries < 2_000 && gate.inFlight() > 0; tries++) {
      System.gc();
      Thread.yield();
    }
    assertEquals(0, gate.inFlight());
    assertEquals(1, gate.stats().collected());
  }

  @Test
  void aStageThatIsHeldKeepsItsPermit() {
    Gate gate = Gate.of("db", 2);
    CompletableFuture<Integer> work = new CompletableFuture<>();
    CompletableFuture<Integer> answer = gate.callAsync(Ask.DEFAULT, () -> work);
    for (int tries = 0; tries < 20; tries++) {
      System.gc();
    }
    assertTrue(answer.cancel(true));
    assertEquals(1, gate.inFlight(), "the work goes on");
    assertFalse(work.isDone());
    work.complete(1);
    assertEquals(0, gate.inFlight());
    assertEquals(1, released(gate, Outcome.SUCCESS));
  }

  @Test
  void aStageThatRefusesToBeWatchedLosesNothing() {
    Gate gate = Gate.of("db", 2);
    CompletableFuture<Integer> odd =
        new CompletableFuture<>() {
          @Override
          public CompletableFuture<Integer> whenComplete(
              java.util.function.BiConsumer<? super Integer, ? super Throwable> action) {
            throw new UnsupportedOperationException();
          }
        };
    assertThrows(UnsupportedOperationException.class, () -> gate.callAsync(Ask.DEFAULT, () -> odd));
    assertEquals(0, gate.inFlight());
  }

  @Test
  void workThatWasCancelledIsIgnored() {
    Gate gate = Gate.of("db", 2);
    CompletableFuture<Integer> work = new CompletableFuture<>();
    CompletableFuture<Integer> answer = gate.callAsync(Ask.DEFAULT, () -> work);
    work.cancel(true);
    assertThrows(CancellationException.class, answer::join);
    assertEquals(1, released(gate, Outcome.IGNORE));
  }

  @Test
  void anErrorOfAGatesOwnOutcomesHidesNothing() {
    Gate gate =
        Gate.builder("db", 2)
            .outcomes(
                thrown -> {
                  throw new AssertionError("worse");
                })
            .build();
    TimeoutException late = new TimeoutException();
    assertSame(
        late,
        assertThrows(
            TimeoutException.class,
            () ->
                gate.call(
                    () -> {
                      throw late;
                    })));
    CompletableFuture<Integer> answer =
        gate.callAsync(Ask.DEFAULT, () -> CompletableFuture.failedFuture(late));
    assertSame(late, assertThrows(ExecutionException.class, answer::get).getCause());
    assertEquals(0, gate.inFlight());
    assertEquals(2, released(gate, Outcome.OVERLOAD));
  }

  @Test
  void aCauseSaysWhatWhatWrapsItIs() {
    for (Exception overload :
        List.of(
            new RuntimeException(new SQLTimeoutException()),
            new UncheckedIOException(new SocketTimeoutException()),
            new SQLException("read", new RuntimeException(new SocketTimeoutException())),
            new BatchUpdateException("batch", new int[0], new SQLException("no room", "53300")),
            new IllegalStateException(new CompletionException(new TimeoutException())))) {
      assertEquals(Outcome.OVERLOAD, Outcomes.of(overload), overload.toString());
    }
    assertEquals(Outcome.IGNORE, Outcomes.of(new RuntimeException(new InterruptedException())));
    assertEquals(
        Outcome.IGNORE,
        Outcomes.of(new ExecutionException(new CancellationException())),
        "the outermost that says something decides");
    Exception[] chain = new Exception[2];
    for (int at = 0; at < 2; at++) {
      Exception[] next = chain;
      int other = 1 - at;
      chain[at] =
          new ExecutionException("odd", null) {
            private static final long serialVersionUID = 1;

            @Override
            public synchronized Throwable getCause() {
              return next[other];
            }
          };
    }
    assertEquals(Outcome.SUCCESS, Outcomes.of(chain[0]), "a chain that bites its tail");
  }

  @Test
  void d16TimesAreNeverCutToSize() {
    TestClock.set(0);
    Gate gate =
        Gate.builder("db", 2).signals(List.of(Signal.of(Signal.Kind.PUSHED).named("s"))).build();
    for (Duration right :
        List.of(Duration.ofNanos(1), Duration.ofSeconds(5), Duration.ofSeconds(Long.MAX_VALUE))) {
      gate.signal("s", 0.5, right);
      assertEquals(
          OptionalDouble.of(0.5), gate.pressure().signals().getFirst().value(), right.toString());
    }
    for (Duration wrong :
        List.of(Duration.ofNanos(-1), Duration.ofSeconds(-1), Duration.ofSeconds(Long.MIN_VALUE))) {
      assertThrows(
          IllegalArgumentException.class, () -> gate.signal("s", 0.9, wrong), wrong.toString());
      assertThrows(
          IllegalArgumentException.class,
          () -> Gate.builder("db", 2).objective(wrong).build(),
          wrong.toString());
    }
    assertEquals(
        2, Gate.builder("db", 2).objective(Duration.ofSeconds(Long.MAX_VALUE)).build().limit());
    assertEquals(OptionalDouble.of(0.5), gate.pressure().signals().getFirst().value());
  }

  @Test
  void d16EachNumberOfARateAControllerAndASignalIsLookedAt() {
    Gate gate = Gate.builder("db", 2).rate(Rate.of("5/s")).build();
    for (Rate wrong :
        List.of(
            new Rate(5, 0, 0),
            new Rate(5, 7, 0),
            new Rate(5, -1, 0),
            new Rate(-1, 1, 0),
            new Rate(10_000_000_001L, 1, 0),
            new Rate(5, 1, -1),
            new Rate(0, 0, 0),
            new Rate(0, 0, 5))) {
      assertThrows(IllegalArgumentException.class, () -> gate.setRate(wrong), () -> "set " + wrong);
      assertThrows(
          IllegalArgumentException.class,
          () -> Gate.builder("db", 2).rate(wrong).build(),
          () -> "build " + wrong);
    }
    assertEquals("5/s (burst 5)", gate.rate().orElseThrow().toString());
    for (long wrong : new long[] {-1, 1L << 31, 1L << 32, (1L << 32) + 5, Long.MIN_VALUE}) {
      for (Controller controller :
          List.of(
              new Controller(Controller.Kind.AIMD, wrong, 100, 0, 0),
              new Controller(Controller.Kind.AIMD, 1, wrong, 0, 0),
              new Controller(Controller.Kind.AIMD, 1, 100, wrong, 0),
              new Controller(Controller.Kind.AIMD, 1, 100, 0, wrong))) {
        assertThrows(
            RuntimeException.class,
            () -> Gate.builder("db").controller(controller).build(),
            controller::toString);
      }
    }
    for (double wrong : new double[] {Double.NaN, 1.5, Double.POSITIVE_INFINITY}) {
      Signal signal = Signal.of(Signal.Kind.PUSHED);
      for (Signal each : List.of(signal.between(wrong, 0.1), signal.between(0.9, wrong))) {
        assertThrows(
            RuntimeException.class,
            () -> Gate.builder("db", 2).signals(List.of(each)).build(),
            each::toString);
      }
    }
    for (double wrong : new double[] {Double.NaN, Double.POSITIVE_INFINITY}) {
      Signal signal = Signal.of(Signal.Kind.PUSHED);
      for (Signal each : List.of(signal.holding(wrong, 1), signal.holding(1, wrong))) {
        assertThrows(
            RuntimeException.class,
            () -> Gate.builder("db", 2).signals(List.of(each)).build(),
            each::toString);
      }
    }
  }

  @Test
  void aShedCanBeSentElsewhere() throws Exception {
    Shed shed = assertThrows(Shed.class, () -> Gate.of("db", 0).admit());
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    new ObjectOutputStream(bytes).writeObject(shed);
    Shed there =
        (Shed) new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
    assertEquals("gate 'db' full: 0 of 0 in flight (priority critical)", there.getMessage());
    assertEquals(Reason.LIMIT, there.reason());
    assertTrue(there.retryAfterHeader().matches("[1-9]\\d*"));
  }
}
