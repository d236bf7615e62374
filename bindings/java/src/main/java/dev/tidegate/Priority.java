package dev.tidegate;

/** How important a request is: the least important is shed first. */
public enum Priority {
  /** Shed last: serious, user-visible harm when it fails. */
  CRITICAL_PLUS("critical_plus"),
  /** User-visible harm when it fails; also called essential. The default. */
  CRITICAL("critical"),
  /** Partial unavailability is expected: batch work, retries made later. */
  SHEDDABLE_PLUS("sheddable_plus"),
  /** Shed first: frequent unavailability is expected; also called non-essential. */
  SHEDDABLE("sheddable");

  /** In the C ABI, what asks for the gate's default. */
  static final int DEFAULT_NUMBER = 1000;

  private static final Priority[] ALL = values();

  private final String word;

  Priority(String word) {
    this.word = word;
  }

  /** The name in every language, in metrics and in files. */
  @Override
  public String toString() {
    return word;
  }

  /**
   * The priority of a name.
   *
   * @throws IllegalArgumentException for a name that is none
   */
  public static Priority of(String name) {
    return switch (name) {
      case "essential" -> CRITICAL;
      case "non-essential" -> SHEDDABLE;
      default -> {
        for (Priority priority : ALL) {
          if (priority.word.equals(name)) {
            yield priority;
          }
        }
        throw new IllegalArgumentException(
            "priority must be one of critical_plus, critical, sheddable_plus, sheddable, essential,"
                + " non-essential, got \""
                + name
                + "\"");
      }
    };
  }

  static Priority at(int number) {
    return ALL[number];
  }

  static int numberOf(Priority priority) {
    return priority == null ? DEFAULT_NUMBER : priority.ordinal();
  }
}
