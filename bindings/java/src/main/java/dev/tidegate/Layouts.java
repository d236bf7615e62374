package dev.tidegate;

import static java.lang.foreign.MemoryLayout.paddingLayout;
import static java.lang.foreign.MemoryLayout.sequenceLayout;
import static java.lang.foreign.MemoryLayout.structLayout;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.StructLayout;

/** The structs of include/tidegate.h. */
final class Layouts {
  private Layouts() {}

  static final StructLayout THRESHOLD =
      structLayout(JAVA_INT.withName("kind"), paddingLayout(4), JAVA_LONG.withName("value"));

  static final StructLayout RATE =
      structLayout(
          JAVA_LONG.withName("count"),
          JAVA_LONG.withName("burst"),
          JAVA_INT.withName("per"),
          JAVA_INT.withName("reserved"));

  static final StructLayout CONFIG =
      structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("default_priority"),
          JAVA_LONG.withName("limit"),
          sequenceLayout(4, THRESHOLD).withName("thresholds"),
          JAVA_BOOLEAN.withName("enforce"),
          JAVA_BOOLEAN.withName("timing"),
          JAVA_BOOLEAN.withName("bare_entries"),
          paddingLayout(5),
          RATE.withName("rate"),
          JAVA_INT.withName("controller_kind"),
          paddingLayout(4),
          JAVA_LONG.withName("controller_min"),
          JAVA_LONG.withName("controller_max"),
          JAVA_LONG.withName("controller_ceiling"),
          JAVA_LONG.withName("controller_prior"),
          JAVA_DOUBLE.withName("objective"),
          ADDRESS.withName("signals"),
          JAVA_LONG.withName("signal_count"));

  static final StructLayout SIGNAL =
      structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("kind"),
          ADDRESS.withName("name"),
          JAVA_DOUBLE.withName("enter"),
          JAVA_DOUBLE.withName("leave"),
          JAVA_DOUBLE.withName("full"),
          JAVA_DOUBLE.withName("enter_for"),
          JAVA_DOUBLE.withName("leave_for"),
          JAVA_DOUBLE.withName("dwell"),
          JAVA_DOUBLE.withName("ramp"));

  static final StructLayout PERMIT =
      structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("priority"),
          JAVA_LONG.withName("weight"),
          JAVA_BOOLEAN.withName("over"),
          paddingLayout(7));

  static final StructLayout STATS =
      structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("generation"),
          JAVA_INT.withName("limit"),
          JAVA_INT.withName("in_flight"),
          JAVA_INT.withName("high_water"),
          sequenceLayout(4, JAVA_INT).withName("thresholds"),
          JAVA_INT.withName("default_priority"),
          JAVA_BOOLEAN.withName("enforce"),
          JAVA_BOOLEAN.withName("closed"),
          JAVA_BOOLEAN.withName("timing"),
          paddingLayout(5),
          sequenceLayout(4, JAVA_LONG).withName("admitted"),
          sequenceLayout(28, JAVA_LONG).withName("shed"),
          sequenceLayout(4, JAVA_LONG).withName("would_shed"),
          sequenceLayout(3, JAVA_LONG).withName("released"),
          JAVA_LONG.withName("unmatched_exits"),
          JAVA_LONG.withName("collected"),
          JAVA_LONG.withName("fallback_priority"),
          JAVA_LONG.withName("over_in_flight"),
          JAVA_LONG.withName("occupancy_us"));

  static final StructLayout CONTROLLER_REPORT =
      structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("kind"),
          JAVA_INT.withName("min"),
          JAVA_INT.withName("max"),
          JAVA_INT.withName("prior"),
          JAVA_INT.withName("cause"),
          JAVA_DOUBLE.withName("objective"),
          JAVA_LONG.withName("looks"),
          JAVA_LONG.withName("moves"),
          JAVA_LONG.withName("probes"),
          JAVA_DOUBLE.withName("window"),
          JAVA_LONG.withName("completions"),
          JAVA_LONG.withName("good"),
          JAVA_LONG.withName("overload"),
          JAVA_LONG.withName("admissions"),
          JAVA_LONG.withName("refusals"));

  static final StructLayout LIMIT_CHANGE =
      structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("from"),
          JAVA_INT.withName("to"),
          JAVA_INT.withName("reserved"),
          JAVA_DOUBLE.withName("age"),
          sequenceLayout(64, JAVA_BYTE).withName("cause"));

  static final StructLayout PRESSURE =
      structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_BOOLEAN.withName("overloaded"),
          paddingLayout(3),
          JAVA_DOUBLE.withName("level"),
          sequenceLayout(4, JAVA_DOUBLE).withName("shares"),
          JAVA_LONG.withName("signals"),
          JAVA_LONG.withName("transitions"));

  static final StructLayout SIGNAL_REPORT =
      structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_BOOLEAN.withName("overloaded"),
          paddingLayout(3),
          JAVA_DOUBLE.withName("value"),
          JAVA_DOUBLE.withName("level"),
          JAVA_DOUBLE.withName("enter"),
          JAVA_DOUBLE.withName("leave"),
          JAVA_DOUBLE.withName("full"),
          JAVA_LONG.withName("reads"),
          JAVA_LONG.withName("failures"),
          JAVA_DOUBLE.withName("cost"),
          sequenceLayout(256, JAVA_BYTE).withName("name"));

  static final StructLayout ATTRIBUTE =
      structLayout(
          ADDRESS.withName("name"), ADDRESS.withName("value"), JAVA_LONG.withName("value_len"));

  /** A struct whose first member is its size, all else zero. */
  static MemorySegment sized(SegmentAllocator allocator, MemoryLayout layout) {
    MemorySegment struct = allocator.allocate(layout);
    struct.set(JAVA_INT, 0, (int) layout.byteSize());
    return struct;
  }

  private static long at(StructLayout layout, String member) {
    return layout.byteOffset(PathElement.groupElement(member));
  }

  static long unsigned(MemorySegment struct, StructLayout layout, String member) {
    return Integer.toUnsignedLong(struct.get(JAVA_INT, at(layout, member)));
  }

  static int number(MemorySegment struct, StructLayout layout, String member) {
    return struct.get(JAVA_INT, at(layout, member));
  }

  static long count(MemorySegment struct, StructLayout layout, String member) {
    return struct.get(JAVA_LONG, at(layout, member));
  }

  static long count(MemorySegment struct, StructLayout layout, String member, int index) {
    return struct.get(JAVA_LONG, at(layout, member) + 8L * index);
  }

  static boolean flag(MemorySegment struct, StructLayout layout, String member) {
    return struct.get(JAVA_BOOLEAN, at(layout, member));
  }

  static double real(MemorySegment struct, StructLayout layout, String member) {
    return struct.get(JAVA_DOUBLE, at(layout, member));
  }

  static String text(MemorySegment struct, StructLayout layout, String member) {
    return struct.getString(at(layout, member));
  }

  static void set(MemorySegment struct, StructLayout layout, String member, int value) {
    struct.set(JAVA_INT, at(layout, member), value);
  }

  static void set(MemorySegment struct, StructLayout layout, String member, long value) {
    struct.set(JAVA_LONG, at(layout, member), value);
  }

  static void set(MemorySegment struct, StructLayout layout, String member, double value) {
    struct.set(JAVA_DOUBLE, at(layout, member), value);
  }

  static void set(MemorySegment struct, StructLayout layout, String member, boolean value) {
    struct.set(JAVA_BOOLEAN, at(layout, member), value);
  }

  static void set(MemorySegment struct, StructLayout layout, String member, MemorySegment value) {
    struct.set(ADDRESS, at(layout, member), value);
  }

  /** A struct within a struct. */
  static MemorySegment part(MemorySegment struct, StructLayout layout, String member) {
    PathElement path = PathElement.groupElement(member);
    return struct.asSlice(layout.byteOffset(path), layout.select(path).byteSize());
  }
}
