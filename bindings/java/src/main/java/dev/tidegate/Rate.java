package dev.tidegate;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How much may be admitted a time, by weight: in any stretch of time T no more than burst + T x
 * count / per.
 *
 * @param count 0 to 10000000000
 * @param perSeconds 1, 60 or 3600
 * @param burst the most weight that may enter at once; 0 is the default: what one second brings, at
 *     least 1
 */
public record Rate(long count, int perSeconds, long burst) {
  private static final Pattern TEXT = Pattern.compile("(\\d{1,18})/(s|min|h)");

  /**
   * A rate as {@code 150/min}, with the default burst.
   *
   * @throws IllegalArgumentException for any other text
   */
  public static Rate of(String text) {
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches()) {
      throw new IllegalArgumentException(
          "rate must be COUNT/UNIT with a whole COUNT and the UNIT s, min or h, got \""
              + text
              + "\"");
    }
    int seconds =
        switch (matcher.group(2)) {
          case "s" -> 1;
          case "min" -> 60;
          default -> 3600;
        };
    return new Rate(Long.parseLong(matcher.group(1)), seconds, 0);
  }

  /** The same with another burst, 1 to 2147483647. */
  public Rate withBurst(long burst) {
    if (burst < 1) {
      throw new IllegalArgumentException(
          "burst must be a whole number from 1 to 2147483647, got " + burst);
    }
    return new Rate(count, perSeconds, burst);
  }

  @Override
  public String toString() {
    String unit = perSeconds == 1 ? "s" : perSeconds == 60 ? "min" : "h";
    return burst == 0 ? count + "/" + unit : "%d/%s (burst %d)".formatted(count, unit, burst);
  }
}
