package dev.tidegate;

/** What a permit's work came to. */
public enum Outcome {
  /** The resource answered, even with an error of its own. */
  SUCCESS,
  /** The resource was too busy: timed out, pool exhausted. */
  OVERLOAD,
  /** The work says nothing about the resource: cancelled, interrupted, never begun. */
  IGNORE;

  /** The name in every language, in metrics and in files. */
  @Override
  public String toString() {
    return name().toLowerCase(java.util.Locale.ROOT);
  }
}
