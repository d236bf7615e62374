package dev.tidegate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.channels.ClosedByInterruptException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** What a shed says, and the words that go into it. */
class ShedTest {
  private static Shed shed(Reason reason, OptionalDouble wait, Supplier<String> rate) {
    return new Shed("db", reason, Priority.CRITICAL, 1, 1, () -> wait, rate);
  }

  @Test
  void theHeaderIsWholeSecondsRoundedAndJitteredUpwards() {
    Map<OptionalDouble, List<Integer>> bounds =
        Map.of(
            OptionalDouble.empty(), List.of(1, 2),
            OptionalDouble.of(0), List.of(1, 2),
            OptionalDouble.of(0.2), List.of(1, 2),
            OptionalDouble.of(1.1), List.of(2, 3),
            OptionalDouble.of(9.5), List.of(10, 15),
            OptionalDouble.of(Double.POSITIVE_INFINITY), List.of(60, 90),
            OptionalDouble.of(1e300), List.of(86_400, 129_600));
    bounds.forEach(
        (wait, both) -> {
          TreeSet<Integer> seen = new TreeSet<>();
          for (int count = 0; count < 500; count++) {
            seen.add(Integer.parseInt(shed(Reason.LIMIT, wait, null).retryAfterHeader()));
          }
          assertTrue(seen.first() >= both.get(0) && seen.last() <= both.get(1), wait + ": " + seen);
          assertTrue(seen.size() > 1, wait + " is jittered");
        });
  }

  @Test
  void theWaitIsWorkedOutOnce() {
    AtomicInteger asked = new AtomicInteger();
    Shed shed =
        new Shed(
            "db",
            Reason.LIMIT,
            Priority.CRITICAL,
            1,
            1,
            () -> OptionalDouble.of(asked.incrementAndGet()),
            null);
    assertEquals(0, asked.get(), "nobody asked");
    assertEquals(shed.retryAfter(), shed.retryAfter());
    assertEquals(1, asked.get());
    assertTrue(shed.getMessage().endsWith("; retry in about 1 s"), shed.getMessage());
  }

  @Test
  void theTextSaysWhy() {
    String end = ": 1 of 1 in flight (priority critical)";
    assertEquals(
        "gate 'db' over its rate" + end,
        shed(Reason.RATE, OptionalDouble.empty(), () -> null).getMessage(),
        "the rate was taken away since");
    assertEquals(
        "gate 'db' shed by pressure" + end + "; no retry can succeed",
        shed(Reason.PRESSURE, OptionalDouble.of(Double.POSITIVE_INFINITY), null).getMessage());
    assertEquals(
        "gate 'db' full" + end + "; retry in about 0.5 s",
        shed(Reason.LIMIT, OptionalDouble.of(0.5), null).getMessage());
  }

  @Test
  void itIsOfTheRequestThatWasShed() {
    TestClock.set(0);
    Gate gate =
        Gate.builder("db", 9)
            .defaultPriority(Priority.SHEDDABLE)
            .rate(Rate.of("60/min").withBurst(4))
            .build();
    gate.admit(Ask.DEFAULT.weighing(4)).close();
    Shed shed = assertThrows(Shed.class, () -> gate.admit(Ask.DEFAULT.weighing(3)));
    assertEquals(Priority.SHEDDABLE, shed.priority());
    assertEquals(3, shed.retryAfter().orElseThrow(), 1e-6);
    assertTrue(shed.getMessage().contains("over its rate of 60/min (burst 4)"), shed.getMessage());
  }

  @Test
  void ratesAndPrioritiesHaveTheirNames() {
    assertEquals(new Rate(150, 60, 0), Rate.of("150/min"));
    assertEquals("150/min", Rate.of("150/min").toString());
    assertEquals(new Rate(2, 3600, 7), Rate.of("2/h").withBurst(7));
    for (String wrong : List.of("", "5", "-5/s", "5/d", "5 /s", "1.5/s", "9999999999999999999/s")) {
      assertThrows(IllegalArgumentException.class, () -> Rate.of(wrong), wrong);
    }
    assertThrows(IllegalArgumentException.class, () -> Rate.of("5/s").withBurst(0));
    assertEquals(Priority.CRITICAL, Priority.of("essential"));
    assertEquals(Priority.SHEDDABLE, Priority.of("non-essential"));
    for (Priority priority : Priority.values()) {
      assertEquals(priority, Priority.of(priority.toString()));
    }
    assertThrows(IllegalArgumentException.class, () -> Priority.of("CRITICAL"));
  }

  @Test
  void databasesSayTheyAreOverloadedInTheirStates() {
    for (String state : List.of("53000", "53200", "57P03", "55P03")) {
      assertEquals(Outcome.OVERLOAD, Outcomes.of(new SQLException("odd", state)), state);
    }
    for (String state : List.of("5300", "530000", "57P02", "55P04", "08006")) {
      assertEquals(Outcome.SUCCESS, Outcomes.of(new SQLException("odd", state)), state);
    }
    assertEquals(Outcome.IGNORE, Outcomes.of(new SQLException(null, "57014")), "without a text");
    assertEquals(Outcome.IGNORE, Outcomes.of(new ClosedByInterruptException()));
  }

  @Test
  void aDrainWaitsAsLongAsItSays() {
    Gate gate = Gate.of("db", 1);
    try (Permit permit = gate.admit()) {
      for (Duration wait : List.of(Duration.ofSeconds(Long.MAX_VALUE), Duration.ofMillis(900))) {
        Thread.currentThread().interrupt(); // so that it is seen to wait
        assertThrows(InterruptedException.class, () -> gate.drain(wait), wait.toString());
      }
      assertFalse(permit.released());
    }
  }
}
