package dev.tidegate;

import java.util.Map;

/**
 * A reading of a gate's counters. Each only grows, and in every reading no more was released than
 * admitted; at rest all of it is exact.
 *
 * @param limit the most weight that may be in flight
 * @param inFlight the weight in flight
 * @param highWater the most weight that was ever in flight
 * @param generation how often the configuration changed, modulo 2^29
 * @param thresholds how full the gate may be for each priority still to enter, in weight
 * @param defaultPriority the priority of requests that name none
 * @param enforce whether the gate turns requests away; false in dry run
 * @param closed whether the gate was closed
 * @param timing whether it measures how long permits are held
 * @param admitted admissions by priority
 * @param shed requests turned away, by priority and reason
 * @param wouldShed what dry run let in although enforcement would have shed it
 * @param released admissions that were released, by outcome
 * @param unmatchedExits exits without an entry
 * @param collected permits that were forgotten, and given back by the garbage collector
 * @param fallbackPriority admissions that named no priority
 * @param overInFlight what dry run let in beyond the limit and is still inside
 * @param occupancySeconds with timing, the time integral of the weight in flight
 */
public record Stats(
    long limit,
    long inFlight,
    long highWater,
    long generation,
    Map<Priority, Long> thresholds,
    Priority defaultPriority,
    boolean enforce,
    boolean closed,
    boolean timing,
    Map<Priority, Long> admitted,
    Map<Priority, Map<Reason, Long>> shed,
    Map<Priority, Long> wouldShed,
    Map<Outcome, Long> released,
    long unmatchedExits,
    long collected,
    long fallbackPriority,
    long overInFlight,
    double occupancySeconds) {}
