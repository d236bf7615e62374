package dev.tidegate;

import static java.lang.foreign.ValueLayout.ADDRESS;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;

/** What can be said of a gate when it is made. See {@link Gate#builder(String, long)}. */
public final class GateBuilder {
  private static final int PPM = 1_000_000;
  private static final int WHY_BYTES = 1024;
  private static final int KIND_PPM = 1;
  private static final int KIND_RESERVE = 2;

  private final String name;
  private long limit = -1;
  private Map<Priority, Threshold> thresholds = Map.of();
  private Rate rate;
  private Priority defaultPriority = Priority.CRITICAL;
  private boolean enforce = true;
  private boolean timing;
  private Controller controller;
  private Duration objective = Duration.ZERO;
  private List<Signal> signals = List.of();
  private Function<? super Throwable, Outcome> outcomes;

  GateBuilder(String name) {
    this.name = Objects.requireNonNull(name, "name");
  }

  GateBuilder limit(long limit) {
    // To the library -1 says that there is none, which a controller allows.
    if (limit < 0) {
      throw new IllegalArgumentException(
          "limit must be a whole number from 0 to 2147483647, got " + limit);
    }
    this.limit = limit;
    return this;
  }

  /** How full the gate may be for each priority; those that are not named have their defaults. */
  public GateBuilder thresholds(Map<Priority, Threshold> thresholds) {
    this.thresholds = Map.copyOf(thresholds);
    return this;
  }

  /** How much may be admitted a time; null, the default: any. */
  public GateBuilder rate(Rate rate) {
    this.rate = rate;
    return this;
  }

  /** The priority of requests that name none. Critical unless set. */
  public GateBuilder defaultPriority(Priority priority) {
    this.defaultPriority = Objects.requireNonNull(priority, "priority");
    return this;
  }

  /** False: dry run. Everything is let in, and what would have been shed is counted. */
  public GateBuilder enforce(boolean enforce) {
    this.enforce = enforce;
    return this;
  }

  /** Whether to measure how long permits are held. */
  public GateBuilder timing(boolean timing) {
    this.timing = timing;
    return this;
  }

  /** What moves the limit; null, the default: nothing. */
  public GateBuilder controller(Controller controller) {
    this.controller = controller;
    return this;
  }

  /** The time within which an answer is good, for controllers and latency signals. */
  public GateBuilder objective(Duration objective) {
    this.objective = Objects.requireNonNull(objective, "objective");
    return this;
  }

  /** The signals to watch: while they say overloaded, the least important is shed. */
  public GateBuilder signals(List<Signal> signals) {
    this.signals = List.copyOf(signals);
    return this;
  }

  /**
   * What an exception of {@link Gate#call} says of the resource. Where it answers null, {@link
   * Outcomes#of} decides.
   */
  public GateBuilder outcomes(Function<? super Throwable, Outcome> outcomes) {
    this.outcomes = outcomes;
    return this;
  }

  /**
   * Makes the gate.
   *
   * @throws IllegalArgumentException or {@link ConfigException}, naming the value and the rule
   */
  public Gate build() {
    Library.require();
    try (Arena arena = Arena.ofConfined()) {
      Text text = Text.of(arena, name, "name");
      MemorySegment config = config(arena);
      MemorySegment made = arena.allocate(ADDRESS);
      MemorySegment why = arena.allocate(WHY_BYTES);
      int status = Abi.GATE_NEW.on(config, text.data(), text.length(), made, why, why.byteSize());
      if (status != 0) {
        throw Abi.exception(status, why.getString(0));
      }
      return new Gate(Handle.owning(made.get(ADDRESS, 0)), outcomes);
    }
  }

  private MemorySegment config(Arena arena) {
    MemorySegment config = Layouts.sized(arena, Layouts.CONFIG);
    Layouts.set(config, Layouts.CONFIG, "default_priority", defaultPriority.ordinal());
    Layouts.set(config, Layouts.CONFIG, "limit", limit);
    Layouts.part(config, Layouts.CONFIG, "thresholds").copyFrom(thresholds(arena, thresholds));
    Layouts.set(config, Layouts.CONFIG, "enforce", enforce);
    Layouts.set(config, Layouts.CONFIG, "timing", timing);
    write(Layouts.part(config, Layouts.CONFIG, "rate"), rate);
    if (controller != null) {
      Layouts.set(config, Layouts.CONFIG, "controller_kind", controller.kind().ordinal() + 1);
      Layouts.set(config, Layouts.CONFIG, "controller_min", controller.min());
      Layouts.set(config, Layouts.CONFIG, "controller_max", controller.max());
      Layouts.set(config, Layouts.CONFIG, "controller_ceiling", controller.ceiling());
      Layouts.set(config, Layouts.CONFIG, "controller_prior", controller.prior());
    }
    Layouts.set(
        config, Layouts.CONFIG, "objective", objective.getSeconds() + objective.getNano() / 1e9);
    if (!signals.isEmpty()) {
      Layouts.set(config, Layouts.CONFIG, "signals", signals(arena));
      Layouts.set(config, Layouts.CONFIG, "signal_count", (long) signals.size());
    }
    return config;
  }

  private MemorySegment signals(Arena arena) {
    MemorySegment all = arena.allocate(Layouts.SIGNAL, signals.size());
    for (int at = 0; at < signals.size(); at++) {
      Signal signal = signals.get(at);
      MemorySegment struct = all.asSlice(at * Layouts.SIGNAL.byteSize(), Layouts.SIGNAL);
      Layouts.set(struct, Layouts.SIGNAL, "struct_size", (int) Layouts.SIGNAL.byteSize());
      Layouts.set(struct, Layouts.SIGNAL, "kind", signal.kind().ordinal() + 1);
      if (signal.name() != null) {
        Layouts.set(
            struct,
            Layouts.SIGNAL,
            "name",
            Text.withoutNul(arena, signal.name(), "a signal's name"));
      }
      Layouts.set(struct, Layouts.SIGNAL, "enter", signal.enter());
      Layouts.set(struct, Layouts.SIGNAL, "leave", signal.leave());
      Layouts.set(struct, Layouts.SIGNAL, "full", signal.full());
      Layouts.set(struct, Layouts.SIGNAL, "enter_for", signal.enterFor());
      Layouts.set(struct, Layouts.SIGNAL, "leave_for", signal.leaveFor());
      Layouts.set(struct, Layouts.SIGNAL, "dwell", -1.0);
      Layouts.set(struct, Layouts.SIGNAL, "ramp", -1.0);
    }
    return all;
  }

  /** Four thresholds, most important first. */
  static MemorySegment thresholds(SegmentAllocator allocator, Map<Priority, Threshold> byPriority) {
    MemorySegment four = allocator.allocate(Layouts.THRESHOLD, Priority.values().length);
    byPriority.forEach(
        (priority, threshold) -> {
          long at = priority.ordinal() * Layouts.THRESHOLD.byteSize();
          MemorySegment struct = four.asSlice(at, Layouts.THRESHOLD);
          switch (threshold) {
            case Threshold.Share share -> write(struct, KIND_PPM, ppm(share.fraction()));
            case Threshold.Reserve reserve -> write(struct, KIND_RESERVE, reserve.weight());
          }
        });
    return four;
  }

  private static void write(MemorySegment struct, int kind, long value) {
    Layouts.set(struct, Layouts.THRESHOLD, "kind", kind);
    Layouts.set(struct, Layouts.THRESHOLD, "value", value);
  }

  private static long ppm(double fraction) {
    if (!(fraction >= 0 && fraction <= 1)) {
      throw new IllegalArgumentException(
          "a threshold must be a fraction of the limit from 0 to 1, got " + fraction);
    }
    return Math.round(fraction * PPM);
  }

  static void write(MemorySegment struct, Rate rate) {
    if (rate != null) {
      // To the library what is all zero says that there is none.
      if (rate.perSeconds() == 0) {
        throw new IllegalArgumentException(rateRule(rate));
      }
      Layouts.set(struct, Layouts.RATE, "count", rate.count());
      Layouts.set(struct, Layouts.RATE, "burst", rate.burst());
      Layouts.set(struct, Layouts.RATE, "per", rate.perSeconds());
    }
  }

  static String rateRule(Rate rate) {
    return "a rate has a count from 0 to 10000000000, a second, minute or hour, and a burst from 1"
        + " to 2147483647, got "
        + rate;
  }
}
