package dev.tidegate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** tests/vectors: the calls and outcomes that every language has in common. */
class VectorsTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Path FOLDER = Path.of("../../tests/vectors");
  private static final String FILE = "vector.toml";

  /** A value that Java's types do not hold, or a call that this package does not have. */
  private static final class Inexpressible extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  @TestFactory
  Stream<DynamicTest> vectors() throws IOException {
    List<DynamicTest> tests = new ArrayList<>();
    try (Stream<Path> files = Files.list(FOLDER)) {
      for (Path file : files.filter(each -> each.toString().endsWith(".json")).sorted().toList()) {
        for (JsonNode each : JSON.readTree(file.toFile())) {
          String name = file.getFileName() + ": " + each.get("name").asText();
          tests.add(DynamicTest.dynamicTest(name, () -> new Case(each).run()));
        }
      }
    }
    return tests.stream();
  }

  @Test
  void fewStepsAreInexpressible() throws IOException {
    int skipped = 0;
    int steps = 0;
    try (Stream<Path> files = Files.list(FOLDER)) {
      for (Path file : files.filter(each -> each.toString().endsWith(".json")).toList()) {
        for (JsonNode each : JSON.readTree(file.toFile())) {
          Case one = new Case(each);
          one.run();
          skipped += one.skipped;
          steps += one.steps;
        }
      }
    }
    System.out.printf("vectors: %d of %d steps cannot be expressed in Java%n", skipped, steps);
    assertTrue(steps > 400 && skipped < steps / 5, skipped + " of " + steps);
  }

  private static final class Case {
    private final JsonNode each;
    private final Map<String, Permit> permits = new HashMap<>();
    private final Map<String, Gate> found = new HashMap<>();
    private Gates gates;
    private int steps;
    private int skipped;

    Case(JsonNode each) {
      this.each = each;
    }

    void run() {
      TestClock.set(0);
      if (each.has("toml")) {
        file();
      } else if (each.has("classifier")) {
        classifier();
      } else {
        gate();
      }
      permits.values().forEach(Permit::close);
    }

    private void gate() {
      if (each.get("steps").valueStream().anyMatch(step -> isBare(step.get("op").asText()))) {
        skipped += each.get("steps").size();
        steps += each.get("steps").size();
        return;
      }
      JsonNode config = each.get("gate");
      Supplier<Gate> make = () -> gateOf(config);
      try {
        if (config.has("expect")) {
          steps++;
          holds(config.get("expect"), answer(() -> make.get() == null ? null : ok()), "the gate");
          return;
        }
        found.put("", make.get());
      } catch (Inexpressible e) {
        skipped++;
        return;
      }
      each.get("steps").forEach(step -> step(step, ""));
    }

    private void step(JsonNode step, String gate) {
      steps++;
      if (step.has("at_ns")) {
        TestClock.set(step.get("at_ns").asLong());
      }
      String where = each.get("name").asText() + ", " + step;
      try {
        ObjectNode got = answer(() -> act(found.get(gate), step));
        JsonNode expect = step.get("expect");
        if (expect.has("seconds") && expect.get("seconds").isNumber()) {
          assertEquals(
              expect.get("seconds").asDouble(), got.get("seconds").asDouble(), 1e-9, where);
          return;
        }
        if (expect.has("admitted") && expect.get("admitted").isBoolean() && !expect.has("over")) {
          assertEquals(false, got.path("over").asBoolean(), where);
        }
        holds(expect, got, where);
      } catch (Inexpressible e) {
        skipped++;
      }
    }

    private ObjectNode act(Gate gate, JsonNode step) {
      switch (step.get("op").asText()) {
        case "try_admit" -> {
          Permit permit = gate.admit(ask(step));
          permits.put(step.get("as").asText(), permit);
          return JSON.createObjectNode().put("admitted", true).put("over", permit.over());
        }
        case "release" -> {
          boolean released =
              permits.get(step.get("permit").asText()).release(outcome(step.path("outcome")));
          return released ? ok() : JSON.createObjectNode().put("error", "stale");
        }
        case "set_limit" -> gate.setLimit(whole(step.get("limit")));
        case "set_thresholds" -> gate.setThresholds(thresholds(step.get("thresholds")));
        case "set_rate" -> gate.setRate(rate(step));
        case "set_enforce" -> gate.setEnforce(step.get("enforce").asBoolean());
        case "close" -> gate.close();
        case "signal" ->
            gate.signal(
                step.get("name").asText(),
                step.get("value").asDouble(),
                Duration.ofMillis(whole(step.get("good_for_ms"))));
        case "retry_after" -> {
          ObjectNode answer = JSON.createObjectNode();
          gate.retryAfter(ask(step))
              .ifPresentOrElse(
                  seconds -> {
                    if (Double.isInfinite(seconds)) {
                      answer.put("seconds", "never");
                    } else {
                      answer.put("seconds", seconds);
                    }
                  },
                  () -> answer.put("seconds", "unknown"));
          return answer;
        }
        case "stats" -> {
          return stats(gate.stats());
        }
        default -> fail("no such op: " + step);
      }
      return ok();
    }

    private void classifier() {
      List<String> lines = new ArrayList<>(List.of("[classifier]"));
      each.get("classifier")
          .properties()
          .forEach(entry -> lines.add(entry.getKey() + " = " + toml(entry.getValue())));
      steps++;
      if (each.has("expect")) {
        holds(
            each.get("expect"),
            answer(() -> Gates.parse(String.join("\n", lines), FILE) == null ? null : ok()),
            "the classifier");
        return;
      }
      gates = Gates.parse(String.join("\n", lines), FILE);
      for (JsonNode one : each.get("cases")) {
        steps++;
        Gates.Classified got = gates.classifyWithReason(attributes(one.get("attributes")));
        JsonNode expect = one.get("expect");
        assertEquals(
            expect.get("priority").isNull() ? null : expect.get("priority").asText(),
            got.priority().map(Priority::toString).orElse(null),
            one.toString());
        if (expect.get("rule").isNull()) {
          assertTrue(!got.why().contains("by rule"), got.why());
        } else {
          assertTrue(
              got.why().matches("(?s).*\\brule " + expect.get("rule").asInt() + "\\b.*"),
              got.why());
        }
      }
    }

    private void file() {
      String text = lines(each);
      steps++;
      if (each.has("problems")) {
        problems(each.get("problems"), () -> Gates.parse(text, FILE));
        return;
      }
      gates = Gates.parse(text, FILE);
      look();
      for (JsonNode step : each.get("steps")) {
        JsonNode expect = step.get("expect");
        String where = each.get("name").asText() + ", " + step;
        switch (step.get("op").asText()) {
          case "reload" -> {
            at(step);
            if (expect.has("problems")) {
              problems(expect.get("problems"), () -> gates.reload(lines(step)));
            } else {
              assertEquals(texts(expect.get("changes")), gates.reload(lines(step)), where);
            }
            look();
          }
          case "names" -> assertEquals(texts(expect.get("names")), gates.names(), where);
          case "gate" -> {
            at(step);
            holds(expect, state(found.get(step.get("gate").asText())), where);
          }
          case "classify" -> {
            Gates.Classified got = gates.classifyWithReason(attributes(step.get("attributes")));
            assertEquals(
                expect.get("priority").isNull() ? null : expect.get("priority").asText(),
                got.priority().map(Priority::toString).orElse(null),
                where);
            if (expect.has("why")) {
              assertEquals(expect.get("why").asText(), got.why(), where);
            }
          }
          case "explain" ->
              assertEquals(texts(expect.get("text")), gates.explain().lines().toList(), where);
          default -> step(step, step.get("gate").asText());
        }
        steps++;
      }
    }

    private static void at(JsonNode step) {
      if (step.has("at_ns")) {
        TestClock.set(step.get("at_ns").asLong());
      }
    }

    private void look() {
      gates.names().forEach(name -> found.put(name, gates.get(name)));
    }
  }

  /** Java has blocks that give their permit back: no entries without one. */
  private static boolean isBare(String op) {
    return op.equals("enter") || op.equals("exit");
  }

  private static void problems(JsonNode problems, Supplier<?> call) {
    try {
      call.get();
    } catch (ConfigException e) {
      List<String> lines = e.getMessage().lines().toList();
      assertEquals(problems.size(), lines.size(), e.getMessage());
      for (int at = 0; at < lines.size(); at++) {
        JsonNode problem = problems.get(at);
        String key = problem.get("key").asText();
        String start =
            "%s, line %d: %s%s"
                .formatted(
                    FILE,
                    problem.get("line").asInt(),
                    key.isEmpty() ? "" : key + ": ",
                    problem.get("message").asText());
        assertTrue(lines.get(at).startsWith(start), lines.get(at) + "\nshould begin\n" + start);
      }
      return;
    }
    fail("nothing was refused");
  }

  /** What a call answered, in the vectors' words. */
  private static ObjectNode answer(Supplier<ObjectNode> call) {
    try {
      return call.get();
    } catch (Shed shed) {
      return JSON.createObjectNode().put("shed", shed.reason().toString());
    } catch (ConfigException e) {
      return JSON.createObjectNode().put("error", "config");
    } catch (IllegalArgumentException e) {
      return JSON.createObjectNode().put("error", "argument");
    }
  }

  private static ObjectNode ok() {
    return JSON.createObjectNode().put("ok", true);
  }

  /** All that is expected has that value, at every depth. */
  private static void holds(JsonNode expected, JsonNode got, String where) {
    if (expected.isObject()) {
      assertTrue(got != null && got.isObject(), where + ": " + got);
      expected
          .properties()
          .forEach(
              entry ->
                  holds(entry.getValue(), got.get(entry.getKey()), where + "." + entry.getKey()));
    } else {
      assertEquals(
          String.valueOf(expected), String.valueOf(got), where); // 1 is 1, whatever holds it
    }
  }

  private static Gate gateOf(JsonNode config) {
    GateBuilder builder =
        Gate.builder(config.path("name").asText("vector"), whole(config.get("limit")));
    if (config.has("thresholds")) {
      builder.thresholds(thresholds(config.get("thresholds")));
    }
    if (config.has("rate") || config.has("burst")) {
      builder.rate(rate(config));
    }
    if (config.has("default_priority")) {
      builder.defaultPriority(Priority.of(text(config.get("default_priority"))));
    }
    return builder.enforce(config.path("enforce").asBoolean(true)).build();
  }

  private static Ask ask(JsonNode step) {
    Priority priority = step.has("priority") ? Priority.of(text(step.get("priority"))) : null;
    return new Ask(priority, step.has("weight") ? whole(step.get("weight")) : 1);
  }

  private static Outcome outcome(JsonNode name) {
    if (name.isMissingNode()) {
      return Outcome.SUCCESS;
    }
    for (Outcome outcome : Outcome.values()) {
      if (outcome.toString().equals(name.asText())) {
        return outcome;
      }
    }
    throw new Inexpressible(); // there is only a constant for each
  }

  private static long whole(JsonNode number) {
    if (!number.isIntegralNumber() || !number.canConvertToLong()) {
      throw new Inexpressible();
    }
    return number.asLong();
  }

  private static String text(JsonNode text) {
    if (!text.isTextual()) {
      throw new Inexpressible();
    }
    return text.asText();
  }

  private static Rate rate(JsonNode of) {
    JsonNode rate = of.path("rate");
    if (rate.isNull() || rate.isMissingNode()) {
      if (of.has("burst")) {
        throw new Inexpressible(); // a burst is part of a rate
      }
      return null;
    }
    Rate made = Rate.of(text(rate));
    return of.has("burst") ? made.withBurst(whole(of.get("burst"))) : made;
  }

  private static Map<Priority, Threshold> thresholds(JsonNode byName) {
    Map<Priority, Threshold> thresholds = new LinkedHashMap<>();
    byName
        .properties()
        .forEach(
            entry -> {
              JsonNode value = entry.getValue();
              if (!value.isObject() && !value.isNumber()) {
                throw new Inexpressible();
              }
              thresholds.put(
                  Priority.of(entry.getKey()),
                  value.isObject()
                      ? Threshold.reserve(whole(value.get("reserve")))
                      : Threshold.share(value.asDouble()));
            });
    return thresholds;
  }

  private static ObjectNode stats(Stats stats) {
    ObjectNode node = JSON.createObjectNode();
    node.put("limit", stats.limit())
        .put("in_flight", stats.inFlight())
        .put("high_water", stats.highWater())
        .put("generation", stats.generation())
        .put("unmatched_exits", stats.unmatchedExits())
        .put("collected", stats.collected())
        .put("fallback_priority", stats.fallbackPriority());
    node.set("admitted", counts(stats.admitted()));
    node.set("would_shed", counts(stats.wouldShed()));
    node.set("released", counts(stats.released()));
    ObjectNode shed = node.putObject("shed");
    stats.shed().forEach((priority, reasons) -> shed.set(priority.toString(), counts(reasons)));
    return node;
  }

  private static ObjectNode counts(Map<?, Long> counts) {
    ObjectNode node = JSON.createObjectNode();
    counts.forEach((key, count) -> node.put(key.toString(), count));
    return node;
  }

  private static ObjectNode state(Gate gate) {
    Stats stats = gate.stats();
    ObjectNode node = JSON.createObjectNode();
    node.put("limit", stats.limit())
        .put("default_priority", stats.defaultPriority().toString())
        .put("enforce", stats.enforce())
        .put("timing", stats.timing())
        .put("closed", stats.closed());
    stats.thresholds().values().forEach(node.withArray("thresholds")::add);
    gate.rate()
        .ifPresentOrElse(
            rate ->
                node.putObject("rate")
                    .put("count", rate.count())
                    .put("seconds", rate.perSeconds())
                    .put("burst", rate.burst()),
            () -> node.putNull("rate"));
    // Compared as the vectors' numbers are.
    return node;
  }

  private static Map<String, String> attributes(JsonNode attributes) {
    Map<String, String> map = new LinkedHashMap<>();
    attributes.properties().forEach(entry -> map.put(entry.getKey(), entry.getValue().asText()));
    return map;
  }

  private static String lines(JsonNode of) {
    return String.join("\n", texts(of.get("toml")));
  }

  private static List<String> texts(JsonNode array) {
    List<String> texts = new ArrayList<>();
    array.forEach(text -> texts.add(text.asText()));
    return texts;
  }

  /** A value as TOML has it, in one line. */
  private static String toml(JsonNode value) {
    if (value.isObject()) {
      return value.properties().stream()
          .map(
              entry ->
                  toml(JSON.getNodeFactory().textNode(entry.getKey()))
                      + " = "
                      + toml(entry.getValue()))
          .collect(java.util.stream.Collectors.joining(", ", "{ ", " }"));
    }
    if (value.isArray()) {
      List<String> parts = new ArrayList<>();
      value.forEach(part -> parts.add(toml(part)));
      return "[" + String.join(", ", parts) + "]";
    }
    return value.toString();
  }
}
