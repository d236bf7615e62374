package dev.tidegate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** Many threads, and the garbage collector. */
class StormTest {
  private static final int LIMIT = 7;

  private static void collectUntil(BooleanSupplier holds) {
    for (int tries = 0; tries < 2_000 && !holds.getAsBoolean(); tries++) {
      System.gc();
      Thread.yield();
    }
    assertTrue(holds.getAsBoolean());
  }

  @Test
  void threadsLeaveNothingAndTheLimitHolds() throws Exception {
    storm(Executors.newFixedThreadPool(8), 8, 20_000);
  }

  @Test
  void virtualThreadsLeaveNothingAndTheLimitHolds() throws Exception {
    storm(Executors.newVirtualThreadPerTaskExecutor(), 2_000, 50);
  }

  private static void storm(ExecutorService executor, int tasks, int rounds) throws Exception {
    Gate gate = Gate.of("db", LIMIT);
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    AtomicLong shed = new AtomicLong();
    try (executor) {
      for (int task = 0; task < tasks; task++) {
        SplittableRandom random = new SplittableRandom(task);
        executor.submit(
            () -> {
              for (int round = 0; round < rounds; round++) {
                Ask ask = new Ask(Priority.at(random.nextInt(4)), 1 + random.nextInt(2));
                try (Permit permit = gate.admit(ask)) {
                  int now = inside.addAndGet((int) ask.weight());
                  most.accumulateAndGet(now, Math::max);
                  if (random.nextInt(4) == 0) {
                    Thread.yield();
                  }
                  inside.addAndGet((int) -ask.weight());
                  if (random.nextInt(8) == 0) {
                    permit.release(Outcome.OVERLOAD);
                    permit.release(Outcome.IGNORE);
                  }
                } catch (Shed expected) {
                  shed.incrementAndGet();
                }
              }
              return null;
            });
      }
    }
    Stats stats = gate.stats();
    long admitted = stats.admitted().values().stream().mapToLong(Long::longValue).sum();
    long released = stats.released().values().stream().mapToLong(Long::longValue).sum();
    assertEquals((long) tasks * rounds, admitted + shed.get());
    assertEquals(admitted, released);
    assertEquals(0, stats.inFlight());
    assertEquals(0, stats.collected());
    assertTrue(most.get() <= LIMIT && stats.highWater() <= LIMIT, most + ", " + stats.highWater());
    assertTrue(shed.get() > 0, "the gate was never full");
  }

  @Test
  void d36AForgottenPermitIsGivenBackOnceAndCounted() {
    Gate gate = Gate.of("db", 1_000_000);
    for (int count = 0; count < 1_000; count++) {
      forget(gate, count % 10 == 0);
    }
    collectUntil(() -> gate.inFlight() == 0);
    Stats stats = gate.stats();
    assertEquals(900, stats.collected());
    assertEquals(100, stats.released().get(Outcome.SUCCESS));
    assertEquals(900, stats.released().get(Outcome.IGNORE));
  }

  private static void forget(Gate gate, boolean release) {
    Permit permit = gate.admit();
    if (release) {
      permit.close();
    }
  }

  @Test
  void d36ReleasesBesideTheCollectorAreOneReleaseEach() throws Exception {
    Gate gate = Gate.of("db", 1_000_000);
    int rounds = 25_000;
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < 4; number++) {
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (int round = 0; round < rounds; round++) {
                      gate.admit().close();
                      if (round % 5_000 == 0) {
                        System.gc();
                      }
                    }
                  }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertEquals(4L * rounds, gate.stats().released().get(Outcome.SUCCESS));
    assertEquals(0, gate.stats().collected());
    assertEquals(0, gate.inFlight());
  }

  @Test
  void oneOfManyReleasesCounts() throws Exception {
    Gate gate = Gate.of("db", 1);
    for (int round = 0; round < 2_000; round++) {
      Permit permit = gate.admit();
      AtomicInteger won = new AtomicInteger();
      Runnable release =
          () -> {
            if (permit.release(Outcome.SUCCESS)) {
              won.incrementAndGet();
            }
          };
      Thread one = Thread.ofVirtual().start(release);
      Thread two = Thread.ofVirtual().start(release);
      one.join();
      two.join();
      assertEquals(1, won.get());
    }
    assertEquals(2_000, gate.stats().released().get(Outcome.SUCCESS));
  }

  @Test
  void aPermitKeepsItsGateAndAGateItsFile() {
    Permit permit = Gate.of("db", 1).admit();
    Gate gate = Gates.parse("[gates.db]\nlimit = 1", "test").get("db");
    for (int tries = 0; tries < 20; tries++) {
      System.gc();
    }
    assertEquals(1, permit.weight());
    assertTrue(permit.release(Outcome.SUCCESS));
    assertEquals(1, gate.limit());
    gate.admit().close();
  }

  @Test
  void aDrainHearsOfWhatWasForgotten() throws Exception {
    Gate gate = Gate.of("db", 1);
    forget(gate, false);
    Thread collecting =
        Thread.ofPlatform()
            .daemon()
            .start(
                () -> {
                  while (gate.inFlight() > 0) {
                    System.gc();
                  }
                });
    assertTrue(gate.drain(Duration.ofDays(1)));
    collecting.join();
  }
}
