package dev.tidegate.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/**
 * The figures of target/bench.json, into a file. Some rounds, each of all benchmarks one after the
 * other, so that whatever else the machine does meets all of them; the median of each.
 */
public final class Ratios {
  private static final int ROUNDS = 3;

  private record Figure(String name, String ours, String peer) {}

  private static final List<Figure> FIGURES =
      List.of(
          new Figure("java.pair_vs_semaphore", "tidegatePair", "semaphorePair"),
          new Figure("java.call_vs_semaphore", "tidegateCall", "semaphorePair"),
          new Figure("java.call_vs_resilience4j_bulkhead", "tidegateCall", "bulkheadCall"),
          new Figure("java.call_vs_sentinel_entry", "tidegateCall", "sentinelCall"),
          new Figure("java.reject_vs_call", "tidegateReject", "tidegateCall"));

  private Ratios() {}

  /** Measures and writes. */
  public static void main(String[] args) throws RunnerException, IOException {
    Map<String, List<Double>> rounds = new HashMap<>();
    for (int round = 0; round < ROUNDS; round++) {
      Options options =
          new OptionsBuilder()
              .include(Pairs.class.getName())
              .forks(1)
              .jvmArgsAppend("--enable-native-access=ALL-UNNAMED")
              .warmupIterations(2)
              .warmupTime(TimeValue.milliseconds(300))
              .measurementIterations(3)
              .measurementTime(TimeValue.milliseconds(300))
              .build();
      for (RunResult result : new Runner(options).run()) {
        rounds
            .computeIfAbsent(result.getPrimaryResult().getLabel(), _ -> new ArrayList<>())
            .add(result.getPrimaryResult().getScore());
      }
    }
    List<String> lines = new ArrayList<>();
    for (Figure figure : FIGURES) {
      double ours = median(rounds.get(figure.ours));
      double peer = median(rounds.get(figure.peer));
      lines.add(
          String.format(
              Locale.ROOT,
              "{\"name\": \"%s\", \"ours_ns\": %.2f, \"peer_ns\": %.2f, \"ratio\": %.4f, \"bar\":"
                  + " null, \"ok\": true}",
              figure.name,
              ours,
              peer,
              ours / peer));
      System.out.println(lines.getLast());
    }
    Files.writeString(Path.of(args[0]), "{\"figures\": [" + String.join(",\n", lines) + "]}\n");
  }

  private static double median(List<Double> numbers) {
    return numbers.stream().sorted().skip(numbers.size() / 2).findFirst().orElseThrow();
  }
}
