package dev.tidegate;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Function;

/** The library's structs, with names for numbers. */
final class Readings {
  private Readings() {}

  private static final int REASONS = Reason.values().length;

  static Stats stats(MemorySegment read) {
    MemorySegment thresholds = Layouts.part(read, Layouts.STATS, "thresholds");
    return new Stats(
        Layouts.unsigned(read, Layouts.STATS, "limit"),
        Layouts.unsigned(read, Layouts.STATS, "in_flight"),
        Layouts.unsigned(read, Layouts.STATS, "high_water"),
        Layouts.unsigned(read, Layouts.STATS, "generation"),
        by(
            Priority.class,
            priority ->
                Integer.toUnsignedLong(thresholds.getAtIndex(JAVA_INT, priority.ordinal()))),
        Priority.at(Layouts.number(read, Layouts.STATS, "default_priority")),
        Layouts.flag(read, Layouts.STATS, "enforce"),
        Layouts.flag(read, Layouts.STATS, "closed"),
        Layouts.flag(read, Layouts.STATS, "timing"),
        by(Priority.class, priority -> count(read, "admitted", priority.ordinal())),
        by(
            Priority.class,
            priority ->
                by(
                    Reason.class,
                    reason ->
                        count(read, "shed", REASONS * priority.ordinal() + reason.ordinal()))),
        by(Priority.class, priority -> count(read, "would_shed", priority.ordinal())),
        by(Outcome.class, outcome -> count(read, "released", outcome.ordinal())),
        count(read, "unmatched_exits", 0),
        count(read, "collected", 0),
        count(read, "fallback_priority", 0),
        count(read, "over_in_flight", 0),
        count(read, "occupancy_us", 0) / 1e6);
  }

  static Optional<Controller.Report> controller(MemorySegment read) {
    int kind = Layouts.number(read, Layouts.CONTROLLER_REPORT, "kind");
    if (kind == 0) {
      return Optional.empty();
    }
    return Optional.of(
        new Controller.Report(
            Controller.Kind.values()[kind - 1],
            Layouts.unsigned(read, Layouts.CONTROLLER_REPORT, "min"),
            Layouts.unsigned(read, Layouts.CONTROLLER_REPORT, "max"),
            Layouts.unsigned(read, Layouts.CONTROLLER_REPORT, "prior"),
            Controller.Cause.values()[Layouts.number(read, Layouts.CONTROLLER_REPORT, "cause")],
            Layouts.real(read, Layouts.CONTROLLER_REPORT, "objective"),
            Layouts.count(read, Layouts.CONTROLLER_REPORT, "looks"),
            Layouts.count(read, Layouts.CONTROLLER_REPORT, "moves"),
            Layouts.count(read, Layouts.CONTROLLER_REPORT, "probes"),
            Layouts.real(read, Layouts.CONTROLLER_REPORT, "window"),
            Layouts.count(read, Layouts.CONTROLLER_REPORT, "completions"),
            Layouts.count(read, Layouts.CONTROLLER_REPORT, "good"),
            Layouts.count(read, Layouts.CONTROLLER_REPORT, "overload"),
            Layouts.count(read, Layouts.CONTROLLER_REPORT, "admissions"),
            Layouts.count(read, Layouts.CONTROLLER_REPORT, "refusals")));
  }

  static LimitChange limitChange(MemorySegment read) {
    return new LimitChange(
        Layouts.unsigned(read, Layouts.LIMIT_CHANGE, "from"),
        Layouts.unsigned(read, Layouts.LIMIT_CHANGE, "to"),
        Layouts.real(read, Layouts.LIMIT_CHANGE, "age"),
        Layouts.text(read, Layouts.LIMIT_CHANGE, "cause"));
  }

  static Pressure pressure(MemorySegment read, List<Pressure.Reading> signals) {
    MemorySegment shares = Layouts.part(read, Layouts.PRESSURE, "shares");
    return new Pressure(
        Layouts.flag(read, Layouts.PRESSURE, "overloaded"),
        Layouts.real(read, Layouts.PRESSURE, "level"),
        by(Priority.class, priority -> shares.getAtIndex(JAVA_DOUBLE, priority.ordinal())),
        Layouts.count(read, Layouts.PRESSURE, "transitions"),
        List.copyOf(signals));
  }

  static Pressure.Reading signal(MemorySegment read) {
    double value = Layouts.real(read, Layouts.SIGNAL_REPORT, "value");
    return new Pressure.Reading(
        Layouts.text(read, Layouts.SIGNAL_REPORT, "name"),
        Layouts.flag(read, Layouts.SIGNAL_REPORT, "overloaded"),
        value < 0 ? OptionalDouble.empty() : OptionalDouble.of(value),
        Layouts.real(read, Layouts.SIGNAL_REPORT, "level"),
        Layouts.count(read, Layouts.SIGNAL_REPORT, "reads"),
        Layouts.count(read, Layouts.SIGNAL_REPORT, "failures"));
  }

  private static long count(MemorySegment read, String member, int index) {
    return Layouts.count(read, Layouts.STATS, member, index);
  }

  private static <K extends Enum<K>, V> Map<K, V> by(Class<K> keys, Function<K, V> value) {
    Map<K, V> map = new EnumMap<>(keys);
    for (K key : keys.getEnumConstants()) {
      map.put(key, value.apply(key));
    }
    return Collections.unmodifiableMap(map);
  }
}
