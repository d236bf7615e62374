package dev.tidegate;

/**
 * One change of a gate's limit.
 *
 * @param from the limit before
 * @param to the limit from then on
 * @param ageSeconds how long ago it was
 * @param cause why, as whoever changed it said, or {@code raise}, {@code lower} or {@code lost} for
 *     a controller; empty for nothing
 */
public record LimitChange(long from, long to, double ageSeconds, String cause) {}
