package dev.tidegate;

import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/**
 * What a gate's signals come to.
 *
 * @param overloaded whether any signal is overloaded
 * @param level the pressure level, 0 to 1: that of the worst signal
 * @param shares which share of each priority it sheds, 0 to 1
 * @param transitions how often a signal became overloaded, or no longer was
 * @param signals what each signal says
 */
public record Pressure(
    boolean overloaded,
    double level,
    Map<Priority, Double> shares,
    long transitions,
    List<Reading> signals) {
  /**
   * What one signal says.
   *
   * @param name its name
   * @param overloaded whether it is overloaded
   * @param value what it said when it was last looked at, 0 to 1; empty is unknown
   * @param level its own pressure level
   * @param reads how often it was measured, or a value pushed
   * @param failures how often it did not know
   */
  public record Reading(
      String name,
      boolean overloaded,
      OptionalDouble value,
      double level,
      long reads,
      long failures) {}
}
