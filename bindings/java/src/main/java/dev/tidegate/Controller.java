package dev.tidegate;

/**
 * What moves a gate's limit, and within which bounds; docs/choosing.md says which when. Of the
 * numbers 0 is the default.
 *
 * @param kind how it moves
 * @param min the smallest limit; default 1
 * @param max the largest; default 1000, or {@code min} if that is more
 * @param ceiling a limit that a capacity test has shown to hold: nothing goes above it; default
 *     none
 * @param prior the limit to start from; default the gate's own, and without one the geometric mean
 *     of {@code min} and {@code max}
 */
public record Controller(Kind kind, long min, long max, long ceiling, long prior) {
  /** How a controller moves the limit. */
  public enum Kind {
    /** Not at all. */
    FIXED,
    /** One more while nothing is overload, a tenth less when something is. */
    AIMD,
    /** By latency against its long average. */
    GRADIENT2,
    /** By latency against the shortest seen. */
    VEGAS,
    /** Climbs to where most good answers come out. */
    GOODPUT;

    /** The name in every language and in files. */
    @Override
    public String toString() {
      return name().toLowerCase(java.util.Locale.ROOT);
    }
  }

  /** Why a limit is what it is. */
  public enum Cause {
    /** Nothing spoke for a move. */
    HOLD,
    /** One arm of an experiment: a little above or below, and back soon. */
    PROBE,
    /** The evidence was for more. */
    RAISE,
    /** The evidence was for less. */
    LOWER,
    /** Most answers were late or failed: down at once. */
    LOST
  }

  /** Between these limits, with defaults for the rest. */
  public static Controller between(Kind kind, long min, long max) {
    return new Controller(kind, min, max, 0, 0);
  }

  /**
   * What a controller is at.
   *
   * @param kind how it moves
   * @param min the smallest limit
   * @param max the largest, the ceiling included
   * @param prior where it started
   * @param cause why the limit is what it is
   * @param objective the seconds within which an answer is good; 0: every success is
   * @param looks how often it looked
   * @param moves how often it moved the limit, but for experiments
   * @param probes how often it moved the limit for an experiment, there and back
   * @param window of the window that it looked at last: its seconds,
   * @param completions permits that came back with success or overload,
   * @param good those that were good,
   * @param overload those with overload,
   * @param admissions requests that were admitted,
   * @param refusals and those that met a full gate
   */
  public record Report(
      Kind kind,
      long min,
      long max,
      long prior,
      Cause cause,
      double objective,
      long looks,
      long moves,
      long probes,
      double window,
      long completions,
      long good,
      long overload,
      long admissions,
      long refusals) {}
}
