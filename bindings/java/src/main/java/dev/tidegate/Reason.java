package dev.tidegate;

/** Why a request was turned away. */
public enum Reason {
  /** The weight does not fit under the limit: the gate is full. */
  LIMIT,
  /** It would fit under the limit, but the rest is kept for more important priorities. */
  PRIORITY,
  /** The rate limit is used up. */
  RATE,
  /** A signal says that the resource is overloaded. */
  PRESSURE,
  /** The gate is closed. */
  CLOSED,
  /** The wait was longer than allowed. */
  TIMEOUT,
  /** This host's share of the fleet's limit is used up. */
  SHARE;

  private static final Reason[] ALL = values();

  /** The name in every language, in metrics and in files. */
  @Override
  public String toString() {
    return name().toLowerCase(java.util.Locale.ROOT);
  }

  static Reason of(int status) {
    return ALL[status - 1];
  }
}
