package dev.tidegate;

/**
 * A signal that a gate watches, and what its readings mean: docs/signals.md. Of the numbers
 * negative is the kind's default.
 *
 * @param kind what is measured
 * @param name a label; each signal of a gate has one of its own; null is the kind's name
 * @param enter overloaded at this pressure or above, 0 to 1
 * @param leave not overloaded any more at this pressure or below
 * @param full the pressure at which all is shed that can be
 * @param enterFor for how many seconds it must stay at {@code enter} or above
 * @param leaveFor for how many seconds it must stay at {@code leave} or below
 */
public record Signal(
    Kind kind,
    String name,
    double enter,
    double leave,
    double full,
    double enterFor,
    double leaveFor) {
  /** What is measured. */
  public enum Kind {
    /** CPU time used of what the process may use. */
    CPU,
    /** Memory in use of what the process may use. */
    MEMORY,
    /** The share of time in which something waited for a CPU. */
    PSI_CPU,
    /** The share of time in which something waited for memory. */
    PSI_MEMORY,
    /** The share of time in which something waited for a disk. */
    PSI_IO,
    /** How long the gate's own permits are held, as a share of its objective. */
    LATENCY,
    /** The share of the gate's own answers that were overload. */
    ERRORS,
    /** What {@link Gate#signal} pushes. */
    PUSHED
  }

  /** A signal with its kind's defaults. */
  public static Signal of(Kind kind) {
    return new Signal(kind, null, -1, -1, -1, -1, -1);
  }

  /** The same under another name. */
  public Signal named(String name) {
    return new Signal(kind, name, enter, leave, full, enterFor, leaveFor);
  }

  /** The same with other thresholds. */
  public Signal between(double enter, double leave) {
    return new Signal(kind, name, enter, leave, full, enterFor, leaveFor);
  }

  /** The same with other holds, in seconds. */
  public Signal holding(double enterFor, double leaveFor) {
    return new Signal(kind, name, enter, leave, full, enterFor, leaveFor);
  }
}
