package dev.tidegate;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The admission controller of one protected resource. It never waits, and can be used from any
 * thread. There is nothing to free: the native part goes with the last reference to the gate or to
 * one of its permits.
 */
public final class Gate {
  private static final ThreadLocal<Priority> PRIORITY = new ThreadLocal<>();

  /** Whether anybody ever used a priority for a block: nobody else pays for looking. */
  private static volatile boolean priorityUsed;

  private final Handle handle;
  private final Function<? super Throwable, Outcome> outcomes;
  private final String name;

  Gate(Handle handle, Function<? super Throwable, Outcome> outcomes) {
    this.handle = handle;
    this.outcomes = outcomes;
    this.name = Abi.name(handle.pointer);
  }

  /**
   * A gate that admits at most {@code limit} weight at a time.
   *
   * @param name a label of 1 to 255 bytes without control characters
   * @param limit 0 to 2147483647
   * @throws IllegalArgumentException naming the value and the rule
   */
  public static Gate of(String name, long limit) {
    return builder(name, limit).build();
  }

  /** A gate with more to choose. */
  public static GateBuilder builder(String name, long limit) {
    return new GateBuilder(name).limit(limit);
  }

  /** A gate whose limit a controller finds: nothing is said of where it starts. */
  public static GateBuilder builder(String name) {
    return new GateBuilder(name);
  }

  /** The name. */
  public String name() {
    return name;
  }

  /** A permit, or nothing where the request is shed. */
  public Optional<Permit> tryAdmit() {
    return tryAdmit(Ask.DEFAULT);
  }

  /** A permit, or nothing where the request is shed. */
  public Optional<Permit> tryAdmit(Ask ask) {
    long[] token = new long[1];
    return take(ask, token) == 0 ? Optional.of(new Permit(handle, token[0])) : Optional.empty();
  }

  /**
   * A permit.
   *
   * @throws Shed where there is none
   */
  public Permit admit() {
    return admit(Ask.DEFAULT);
  }

  /**
   * A permit.
   *
   * @throws Shed where there is none
   */
  public Permit admit(Ask ask) {
    return new Permit(handle, enter(ask));
  }

  /**
   * Does the work with a permit, which is given back when it has ended, whatever it comes to.
   *
   * @throws Shed where there is no permit; then the work was not begun
   * @throws Exception what the work throws
   */
  public <T> T call(Callable<T> work) throws Exception {
    return call(Ask.DEFAULT, work);
  }

  /**
   * Does the work with a permit, which is given back when it has ended, whatever it comes to.
   *
   * @throws Shed where there is no permit; then the work was not begun
   * @throws Exception what the work throws
   */
  public <T> T call(Ask ask, Callable<T> work) throws Exception {
    Objects.requireNonNull(work, "work");
    long token = enter(ask);
    Outcome outcome = Outcome.IGNORE;
    try {
      T result = work.call();
      outcome = Outcome.SUCCESS;
      return result;
    } catch (Throwable thrown) {
      outcome = outcomeOf(thrown);
      throw thrown;
    } finally {
      leave(token, outcome);
    }
  }

  /**
   * Begins work that goes on by itself, with a permit that is given back when its stage completes.
   * The answer is the work's; where there is no permit it has failed with a {@link Shed}. To cancel
   * the answer does not end the work, which keeps its permit. A stage that nobody can complete any
   * more is a forgotten permit.
   */
  public <T> CompletableFuture<T> callAsync(Ask ask, Supplier<? extends CompletionStage<T>> work) {
    Objects.requireNonNull(work, "work");
    Permit permit;
    try {
      permit = admit(ask);
    } catch (Shed shed) {
      return CompletableFuture.failedFuture(shed);
    }
    CompletableFuture<T> answer = new CompletableFuture<>();
    try {
      // The stage alone holds the permit: nobody else will hear that it was dropped.
      Objects.requireNonNull(work.get(), "the work's stage")
          .whenComplete(
              (result, thrown) -> {
                permit.release(thrown == null ? Outcome.SUCCESS : outcomeOf(thrown));
                if (thrown == null) {
                  answer.complete(result);
                } else {
                  answer.completeExceptionally(thrown);
                }
              });
    } catch (Throwable thrown) {
      permit.release(outcomeOf(thrown));
      throw thrown;
    }
    return answer;
  }

  /**
   * Does work whose admissions on this thread have this priority, where they name none.
   *
   * @throws Exception what the work throws
   */
  public static <T> T withPriority(Priority priority, Callable<T> work) throws Exception {
    Objects.requireNonNull(priority, "priority");
    priorityUsed = true;
    Priority before = PRIORITY.get();
    PRIORITY.set(priority);
    try {
      return work.call();
    } finally {
      if (before == null) {
        PRIORITY.remove();
      } else {
        PRIORITY.set(before);
      }
    }
  }

  /** What an exception says of the resource. Never throws. */
  public Outcome outcomeOf(Throwable thrown) {
    return outcomeOf(thrown, Outcomes::of);
  }

  /** The same, where somebody else knows more of exceptions than {@link Outcomes#of}. */
  Outcome outcomeOf(Throwable thrown, Function<? super Throwable, Outcome> otherwise) {
    if (outcomes != null) {
      try {
        Outcome own = outcomes.apply(thrown);
        if (own != null) {
          return own;
        }
      } catch (Throwable fault) {
        // A fault of its own must not hide what the work threw.
      }
    }
    return otherwise.apply(thrown);
  }

  /** The most weight that may be in flight. */
  public long limit() {
    return read(Abi.limit(handle.pointer));
  }

  /** The weight in flight, without what dry run let in beyond the limit. */
  public long inFlight() {
    return read(Abi.inFlight(handle.pointer));
  }

  /**
   * Sets the limit, 0 to 2147483647; nothing is admitted above it once this has returned.
   *
   * @throws IllegalArgumentException outside the rule; then nothing was changed
   */
  public void setLimit(long limit) {
    setLimit(limit, null);
  }

  /**
   * Sets the limit.
   *
   * @param cause why, for the gate's history; null: nothing is said
   * @throws IllegalArgumentException outside the rule; then nothing was changed
   */
  public void setLimit(long limit, String cause) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text =
          cause == null ? MemorySegment.NULL : Text.withoutNul(arena, cause, "cause");
      check(
          Abi.SET_LIMIT.on(handle.pointer, limit, text),
          () -> "limit must be a whole number from 0 to 2147483647, got " + limit);
    }
  }

  /**
   * Sets the thresholds of all priorities; those that are not named get their defaults.
   *
   * @throws IllegalArgumentException or {@link ConfigException}; then nothing was changed
   */
  public void setThresholds(Map<Priority, Threshold> thresholds) {
    try (Arena arena = Arena.ofConfined()) {
      int status = Abi.SET_THRESHOLDS.on(handle.pointer, GateBuilder.thresholds(arena, thresholds));
      check(
          status,
          () ->
              status == Abi.ERR_CONFIG
                  ? "thresholds must not rise as importance falls, and the first must be the limit"
                  : "a reserve must be a whole number from 0 to 2147483647, got " + thresholds);
    }
  }

  /**
   * Sets the rate, or takes it away (null).
   *
   * @throws IllegalArgumentException outside the rule; then nothing was changed
   */
  public void setRate(Rate rate) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment struct = arena.allocate(Layouts.RATE);
      GateBuilder.write(struct, rate);
      check(Abi.SET_RATE.on(handle.pointer, struct), () -> GateBuilder.rateRule(rate));
    }
  }

  /** How much may be admitted a time, with its burst. */
  public Optional<Rate> rate() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment rate = arena.allocate(Layouts.RATE);
      check(Abi.GET_RATE.on(handle.pointer, rate), () -> "rate");
      int per = Layouts.number(rate, Layouts.RATE, "per");
      return per == 0
          ? Optional.empty()
          : Optional.of(
              new Rate(
                  Layouts.count(rate, Layouts.RATE, "count"),
                  per,
                  Layouts.count(rate, Layouts.RATE, "burst")));
    }
  }

  /** Switches dry run off (true) or on (false). */
  public void setEnforce(boolean enforce) {
    check(Abi.SET_ENFORCE.on(handle.pointer, enforce), () -> "enforce");
  }

  /**
   * Seconds to stay away, for a request like this: infinity where no retry can succeed, empty where
   * nothing is known yet.
   */
  public OptionalDouble retryAfter(Ask ask) {
    return retryAfter(numberOf(ask), ask.weight());
  }

  /**
   * For how many seconds a share {@code q} (0 to 1) of a priority's permits were held at most;
   * empty where it was not measured.
   */
  public OptionalDouble latency(double q, Priority priority) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment seconds = arena.allocate(JAVA_DOUBLE);
      check(
          Abi.LATENCY.on(handle.pointer, priority.ordinal(), q, seconds),
          () -> "q must be from 0 to 1, got " + q);
      return known(seconds.get(JAVA_DOUBLE, 0));
    }
  }

  /** A reading of all counters. */
  public Stats stats() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stats = Layouts.sized(arena, Layouts.STATS);
      check(Abi.GET_STATS.on(handle.pointer, stats), () -> "stats");
      return Readings.stats(stats);
    }
  }

  /** What the gate's controller is at, where it has one. */
  public Optional<Controller.Report> controller() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment report = Layouts.sized(arena, Layouts.CONTROLLER_REPORT);
      check(Abi.GET_CONTROLLER.on(handle.pointer, report), () -> "controller");
      return Readings.controller(report);
    }
  }

  /** The last limit changes, at most 64, the latest first. */
  public List<LimitChange> limitHistory() {
    List<LimitChange> history = new ArrayList<>();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment change = Layouts.sized(arena, Layouts.LIMIT_CHANGE);
      while (Abi.GET_LIMIT_CHANGE.on(handle.pointer, (long) history.size(), change) == 0) {
        history.add(Readings.limitChange(change));
      }
    }
    Reference.reachabilityFence(this);
    return history;
  }

  /**
   * Pushes a value into a signal of kind {@link Signal.Kind#PUSHED}.
   *
   * @param value a pressure, 0 to 1
   * @param goodFor for how long it holds; after that the signal is unknown, which is never overload
   * @throws IllegalArgumentException where the gate has no such signal, or for another value
   */
  public void signal(String name, double value, Duration goodFor) {
    long milliseconds = milliseconds(goodFor);
    try (Arena arena = Arena.ofConfined()) {
      Text text = Text.of(arena, name, "name");
      check(
          Abi.SIGNAL.on(handle.pointer, text.data(), text.length(), value, milliseconds),
          () ->
              "a value from 0 to 1 can be pushed into a signal of kind pushed, for 0 ms or more;"
                  + " got"
                  + " \"%s\", %s, %s".formatted(name, value, goodFor));
    }
  }

  /** Rounded away from zero: what is a time at all stays one, and what is negative stays that. */
  private static long milliseconds(Duration time) {
    if (time.isNegative()) {
      return -1;
    }
    return time.getSeconds() > Integer.MAX_VALUE
        ? Integer.MAX_VALUE * 1000L
        : time.plusNanos(999_999).toMillis();
  }

  /** What the gate's signals come to. */
  public Pressure pressure() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pressure = Layouts.sized(arena, Layouts.PRESSURE);
      check(Abi.GET_PRESSURE.on(handle.pointer, pressure), () -> "pressure");
      List<Pressure.Reading> signals = new ArrayList<>();
      MemorySegment signal = Layouts.sized(arena, Layouts.SIGNAL_REPORT);
      while (Abi.GET_SIGNAL.on(handle.pointer, (long) signals.size(), signal) == 0) {
        signals.add(Readings.signal(signal));
      }
      Reference.reachabilityFence(this);
      return Readings.pressure(pressure, signals);
    }
  }

  /** Admits nothing any more. What is inside may leave in its own time. */
  public void close() {
    check(Abi.CLOSE.on(handle.pointer), () -> "close");
  }

  /**
   * Closes the gate and waits until everything inside has left; false where something still was
   * after {@code timeout}.
   *
   * @throws InterruptedException where the thread is interrupted; the gate is closed nevertheless
   */
  public boolean drain(Duration timeout) throws InterruptedException {
    if (timeout.isNegative()) {
      throw new IllegalArgumentException("timeout must not be negative, got " + timeout);
    }
    long deadline = System.nanoTime() + Math.min(timeout.toSeconds(), DAYS) * 1_000_000_000L;
    deadline += timeout.toSeconds() < DAYS ? timeout.toNanosPart() : 0;
    // By turns, since nobody can interrupt a thread that is in native code, and a virtual one must
    // not stay there.
    while (true) {
      int status = Abi.DRAIN.on(handle.pointer, 0L);
      check(status, () -> "drain");
      if (status == 0) {
        return true;
      }
      long left = deadline - System.nanoTime();
      if (left <= 0) {
        return false;
      }
      Thread.sleep(Math.max(1, Math.min(LOOK_MS, left / 1_000_000)));
    }
  }

  private static final long LOOK_MS = 5;

  /** For ever, for a service. */
  private static final long DAYS = 100L * 365 * 86_400;

  @Override
  public String toString() {
    return "Gate(%s, %d of %d in flight)".formatted(name, inFlight(), limit());
  }

  /** Whether it is the same gate, in the library. */
  boolean is(MemorySegment pointer) {
    return handle.pointer.equals(pointer);
  }

  private int take(Ask ask, long[] token) {
    int status =
        Abi.tryAdmit(handle.pointer, numberOf(ask), ask.weight(), MemorySegment.ofArray(token));
    Reference.reachabilityFence(this);
    if (status < 0) {
      throw Abi.exception(
          status, status == Abi.ERR_ARGUMENT ? weightRule(ask.weight()) : "admission");
    }
    return status;
  }

  private long enter(Ask ask) {
    long[] token = new long[1];
    int status = take(ask, token);
    if (status != 0) {
      throw shed(status, ask);
    }
    return token[0];
  }

  private void leave(long token, Outcome outcome) {
    Abi.release(handle.pointer, token, outcome.ordinal());
    Reference.reachabilityFence(this);
  }

  private Shed shed(int status, Ask ask) {
    int number = numberOf(ask);
    return new Shed(
        name,
        Reason.of(status),
        number == Priority.DEFAULT_NUMBER ? stats().defaultPriority() : Priority.at(number),
        inFlight(),
        limit(),
        () -> retryAfter(number, ask.weight()),
        () -> rate().map(Rate::toString).orElse(null));
  }

  private OptionalDouble retryAfter(int priority, long weight) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment seconds = arena.allocate(JAVA_DOUBLE);
      check(
          Abi.RETRY_AFTER.on(handle.pointer, priority, weight, seconds), () -> weightRule(weight));
      return known(seconds.get(JAVA_DOUBLE, 0));
    }
  }

  private static String weightRule(long weight) {
    return "weight must be a whole number from 1 to 2147483647, got " + weight;
  }

  private static int numberOf(Ask ask) {
    Priority priority = ask.priority();
    return Priority.numberOf(priority == null && priorityUsed ? PRIORITY.get() : priority);
  }

  private static OptionalDouble known(double seconds) {
    return seconds < 0 ? OptionalDouble.empty() : OptionalDouble.of(seconds);
  }

  private long read(long value) {
    Reference.reachabilityFence(this);
    return value;
  }

  private void check(int status, Supplier<String> rule) {
    Reference.reachabilityFence(this);
    if (status < 0) {
      throw Abi.exception(status, rule.get());
    }
  }
}
