package dev.tidegate;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/** The functions of include/tidegate.h. Nothing else in this package knows how they are called. */
final class Abi {
  private Abi() {}

  static final int ERR_ARGUMENT = -2;
  static final int ERR_CONFIG = -6;

  static final SymbolLookup LIBRARY = Library.load();

  // The way in and out: short, and they never wait, so the virtual machine need not prepare for
  // more. The first may also
  // be given an array of Java's.
  private static final MethodHandle TRY_ADMIT =
      handle(
          "tidegate_try_admit",
          FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, JAVA_LONG, ADDRESS),
          Linker.Option.critical(true));
  private static final MethodHandle RELEASE =
      handle(
          "tidegate_release",
          FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT),
          Linker.Option.critical(false));

  private static final MethodHandle RELEASE_COLLECTED =
      status("tidegate_release_collected", ADDRESS, JAVA_LONG);
  private static final MethodHandle IN_FLIGHT = count("tidegate_in_flight");
  private static final MethodHandle LIMIT = count("tidegate_limit");
  private static final MethodHandle GATE_FREE =
      handle("tidegate_gate_free", FunctionDescriptor.ofVoid(ADDRESS));
  private static final MethodHandle GATES_FREE =
      handle("tidegate_gates_free", FunctionDescriptor.ofVoid(ADDRESS));
  private static final MethodHandle STATUS_STR =
      handle("tidegate_status_str", FunctionDescriptor.of(ADDRESS, JAVA_INT));
  private static final MethodHandle GATE_NAME =
      handle("tidegate_gate_name", FunctionDescriptor.of(ADDRESS, ADDRESS));

  static final Call GATE_NEW =
      call("tidegate_gate_new", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG);
  static final Call GET_PERMIT = call("tidegate_get_permit", ADDRESS, JAVA_LONG, ADDRESS);
  static final Call RETRY_AFTER =
      call("tidegate_retry_after", ADDRESS, JAVA_INT, JAVA_LONG, ADDRESS);
  static final Call GET_STATS = call("tidegate_get_stats", ADDRESS, ADDRESS);
  static final Call LATENCY = call("tidegate_latency", ADDRESS, JAVA_INT, JAVA_DOUBLE, ADDRESS);
  static final Call SET_LIMIT = call("tidegate_set_limit_cause", ADDRESS, JAVA_LONG, ADDRESS);
  static final Call SET_THRESHOLDS = call("tidegate_set_threshold_kinds", ADDRESS, ADDRESS);
  static final Call SET_RATE = call("tidegate_set_rate", ADDRESS, ADDRESS);
  static final Call GET_RATE = call("tidegate_get_rate", ADDRESS, ADDRESS);
  static final Call SET_ENFORCE = call("tidegate_set_enforce", ADDRESS, JAVA_BOOLEAN);
  static final Call CLOSE = call("tidegate_close", ADDRESS);
  static final Call DRAIN = call("tidegate_drain", ADDRESS, JAVA_LONG);
  static final Call GET_CONTROLLER = call("tidegate_get_controller", ADDRESS, ADDRESS);
  static final Call GET_LIMIT_CHANGE =
      call("tidegate_get_limit_change", ADDRESS, JAVA_LONG, ADDRESS);
  static final Call SIGNAL =
      call("tidegate_signal", ADDRESS, ADDRESS, JAVA_LONG, JAVA_DOUBLE, JAVA_LONG);
  static final Call GET_PRESSURE = call("tidegate_get_pressure", ADDRESS, ADDRESS);
  static final Call GET_SIGNAL = call("tidegate_get_signal", ADDRESS, JAVA_LONG, ADDRESS);

  static final Call OPEN = call("tidegate_open", ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);
  static final Call OPEN_TEXT =
      call("tidegate_open_text", ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);
  static final Call FIND = call("tidegate_find", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS);
  static final Call GATE_AT = call("tidegate_gate_at", ADDRESS, JAVA_LONG, ADDRESS);
  static final Call RELOAD = call("tidegate_reload", ADDRESS, ADDRESS, JAVA_LONG);
  static final Call RELOAD_TEXT =
      call("tidegate_reload_text", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG);
  static final Call EXPLAIN = call("tidegate_explain", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS);
  static final Call CLASSIFY =
      call("tidegate_classify", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG);

  /** Nothing more than what a first use brings with it. */
  static void initialize() {}

  /** A function that answers a status, and of which speed does not matter. */
  record Call(MethodHandle handle) {
    int on(Object... arguments) {
      try {
        return (int) handle.invokeWithArguments(arguments);
      } catch (Throwable impossible) {
        throw new AssertionError(impossible);
      }
    }
  }

  static int tryAdmit(MemorySegment gate, int priority, long weight, MemorySegment permit) {
    try {
      return (int) TRY_ADMIT.invokeExact(gate, priority, weight, permit);
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static int release(MemorySegment gate, long permit, int outcome) {
    try {
      return (int) RELEASE.invokeExact(gate, permit, outcome);
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static int releaseCollected(MemorySegment gate, long permit) {
    try {
      return (int) RELEASE_COLLECTED.invokeExact(gate, permit);
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static long inFlight(MemorySegment gate) {
    try {
      return (long) IN_FLIGHT.invokeExact(gate);
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static long limit(MemorySegment gate) {
    try {
      return (long) LIMIT.invokeExact(gate);
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static void freeGate(MemorySegment gate) {
    try {
      GATE_FREE.invokeExact(gate);
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static void freeGates(MemorySegment gates) {
    try {
      GATES_FREE.invokeExact(gates);
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static String text(int status) {
    try {
      return string((MemorySegment) STATUS_STR.invokeExact(status));
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static String name(MemorySegment gate) {
    try {
      return string((MemorySegment) GATE_NAME.invokeExact(gate));
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  private static String string(MemorySegment address) {
    return address.reinterpret(Long.MAX_VALUE).getString(0);
  }

  /** What a negative status stands for. */
  static RuntimeException exception(int status, String what) {
    return switch (status) {
      case ERR_ARGUMENT -> new IllegalArgumentException(what);
      case ERR_CONFIG -> new ConfigException(what);
      default -> new TidegateException("%s: %s (%d)".formatted(what, text(status), status));
    };
  }

  private static MethodHandle status(String name, MemoryLayout... parameters) {
    return handle(name, FunctionDescriptor.of(JAVA_INT, parameters));
  }

  private static MethodHandle count(String name) {
    return handle(name, FunctionDescriptor.of(JAVA_LONG, ADDRESS));
  }

  private static Call call(String name, MemoryLayout... parameters) {
    return new Call(status(name, parameters));
  }

  static MethodHandle handle(String name, FunctionDescriptor type, Linker.Option... options) {
    MemorySegment symbol =
        LIBRARY
            .find(name)
            .orElseThrow(
                () ->
                    new LibraryException(
                        "the library has no " + name + ": it is older than this package", null));
    return Linker.nativeLinker().downcallHandle(symbol, type, options);
  }
}
