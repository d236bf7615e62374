package dev.tidegate;

import java.util.OptionalDouble;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Supplier;

/**
 * The request was turned away: try again later. An outcome, not an error: it has no stack, and its
 * text is put together only when somebody reads it.
 */
public final class Shed extends TidegateException {
  private static final long serialVersionUID = 1;
  private static final int MINUTE = 60;
  private static final int DAY = 86_400;

  /** The gate's name. */
  private final String gate;

  private final Reason reason;
  private final Priority priority;
  private final long inFlight;
  private final long limit;
  private final transient Supplier<OptionalDouble> ask;
  private final transient Supplier<String> askRate;
  private transient OptionalDouble retryAfter;

  Shed(
      String gate,
      Reason reason,
      Priority priority,
      long inFlight,
      long limit,
      Supplier<OptionalDouble> ask,
      Supplier<String> askRate) {
    this.gate = gate;
    this.reason = reason;
    this.priority = priority;
    this.inFlight = inFlight;
    this.limit = limit;
    this.ask = ask;
    this.askRate = askRate;
  }

  /** The name of the gate. */
  public String gate() {
    return gate;
  }

  /** Why. */
  public Reason reason() {
    return reason;
  }

  /** The priority that was asked for, or the gate's default. */
  public Priority priority() {
    return priority;
  }

  /** The weight in flight right after the decision. */
  public long inFlight() {
    return inFlight;
  }

  /** The gate's limit right after the decision. */
  public long limit() {
    return limit;
  }

  /**
   * Seconds to stay away: infinity where no retry can succeed, empty where nothing is known yet.
   * Worked out when first asked for, and kept.
   */
  public OptionalDouble retryAfter() {
    if (retryAfter == null) {
      retryAfter = ask == null ? OptionalDouble.empty() : ask.get(); // null where it was serialized
    }
    return retryAfter;
  }

  /** The value of a Retry-After header: whole seconds, at least 1, jittered upwards. */
  public String retryAfterHeader() {
    // After closing this process admits nothing more, but its successor may at once.
    int seconds = reason == Reason.CLOSED ? 1 : wholeSeconds(retryAfter());
    int jitter = ThreadLocalRandom.current().nextInt(Math.max(1, seconds / 2) + 1);
    return Integer.toString(seconds + jitter);
  }

  /** Rounded up, so that nobody returns too early. */
  private static int wholeSeconds(OptionalDouble wait) {
    double seconds = wait.orElse(1);
    if (Double.isInfinite(seconds)) {
      return MINUTE;
    }
    return seconds > 0 ? (int) Math.ceil(Math.min(seconds, DAY)) : 1;
  }

  @Override
  public String getMessage() {
    if (reason == Reason.CLOSED) {
      return "gate '%s' is closed".formatted(gate);
    }
    String text =
        "gate '%s' %s: %d of %d in flight (priority %s)"
            .formatted(gate, why(), inFlight, limit, priority);
    if (retryAfter().isEmpty()) {
      return text;
    }
    double wait = retryAfter().getAsDouble();
    return Double.isInfinite(wait)
        ? text + "; no retry can succeed"
        : "%s; retry in about %s s".formatted(text, twoDigits(wait));
  }

  private static String twoDigits(double seconds) {
    return new java.math.BigDecimal(seconds)
        .round(new java.math.MathContext(2))
        .stripTrailingZeros()
        .toPlainString();
  }

  private String why() {
    if (reason == Reason.LIMIT) {
      return "full";
    }
    if (reason == Reason.RATE) {
      String rate = askRate == null ? null : askRate.get();
      return rate == null ? "over its rate" : "over its rate of " + rate;
    }
    return "shed by " + reason;
  }
}
