package dev.tidegate;

/** How full a gate may be for one priority still to enter. */
public sealed interface Threshold {
  /** A share of the limit, from 0 to 1, rounded up to whole weight. */
  record Share(double fraction) implements Threshold {}

  /** A weight that is kept free. */
  record Reserve(long weight) implements Threshold {}

  /** A share of the limit, from 0 to 1. */
  static Threshold share(double fraction) {
    return new Share(fraction);
  }

  /** A weight that is kept free, 0 to 2147483647. */
  static Threshold reserve(long weight) {
    return new Reserve(weight);
  }
}
