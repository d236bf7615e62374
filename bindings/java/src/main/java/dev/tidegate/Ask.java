package dev.tidegate;

/**
 * What a request asks for.
 *
 * @param priority its priority; null is that of {@link Gate#withPriority}, and without one the
 *     gate's default
 * @param weight how much of the limit it takes, 1 to 2147483647
 */
public record Ask(Priority priority, long weight) {
  /** The default priority, and a weight of 1. */
  public static final Ask DEFAULT = new Ask(null, 1);

  /** A request of this priority, with a weight of 1. */
  public static Ask of(Priority priority) {
    return new Ask(priority, 1);
  }

  /** The same with another weight. */
  public Ask weighing(long weight) {
    return new Ask(priority, weight);
  }
}
