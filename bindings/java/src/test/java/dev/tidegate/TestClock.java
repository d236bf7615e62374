package dev.tidegate;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.invoke.MethodHandle;

/**
 * What only tests may do, with the library that has the test hooks: see tests/c/tidegate_test.h.
 */
final class TestClock {
  private TestClock() {}

  private static final MethodHandle SET_CLOCK =
      Abi.handle("tidegate_test_set_clock", FunctionDescriptor.ofVoid(JAVA_LONG));
  private static final MethodHandle PANIC_NEXT =
      Abi.handle("tidegate_test_panic_next", FunctionDescriptor.ofVoid());
  private static final MethodHandle FULL_NEXT =
      Abi.handle("tidegate_test_full_next", FunctionDescriptor.ofVoid());

  /** Sets the time, and has gates that are made from now on go by it. */
  static void set(long ns) {
    try {
      SET_CLOCK.invokeExact(ns);
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static void panicNext() {
    try {
      PANIC_NEXT.invokeExact();
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }

  static void fullNext() {
    try {
      FULL_NEXT.invokeExact();
    } catch (Throwable impossible) {
      throw new AssertionError(impossible);
    }
  }
}
