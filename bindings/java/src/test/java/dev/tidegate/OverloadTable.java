package dev.tidegate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/** The overload table of this language: see tests/overload/README.md. */
public final class OverloadTable {
  private static final ObjectMapper JSON = new ObjectMapper();

  private OverloadTable() {}

  /** Prints the table of the workload in a file. */
  public static void main(String[] args) throws IOException {
    JsonNode workload = JSON.readTree(new File(args[0]));
    ObjectNode table = JSON.createObjectNode().put("language", "java");
    ArrayNode loads = table.putArray("loads");
    workload.get("loads").forEach(load -> loads.add(row(workload, load)));
    System.out.println(table);
  }

  private static ObjectNode row(JsonNode workload, JsonNode load) {
    TestClock.set(0);
    StringBuilder file = new StringBuilder();
    workload.get("file").forEach(line -> file.append(line.asText()).append('\n'));
    Gates gates = Gates.parse(file.toString(), "workload.toml");
    Gate gate = gates.get(workload.get("gate").asText());
    ObjectNode row = JSON.createObjectNode();
    row.set("load", load.get("load"));
    ObjectNode offered = row.putObject("offered");
    ObjectNode admitted = row.putObject("admitted");
    ObjectNode shed = row.putObject("shed");
    ObjectNode released = row.putObject("released");
    Map<Integer, Permit> permits = new HashMap<>();
    for (JsonNode event : load.get("events")) {
      TestClock.set(event.get("at_ms").asLong() * 1_000_000);
      if (event.has("close")) {
        gate.close();
      } else if (event.has("leave")) {
        Permit permit = permits.get(event.get("leave").asInt());
        String outcome = event.get("outcome").asText();
        if (permit != null && permit.release(Outcome.valueOf(outcome.toUpperCase()))) {
          count(released, outcome);
        }
      } else {
        Priority priority =
            gates.classify(Map.of("path", event.get("path").asText())).orElseThrow();
        count(offered, priority);
        try {
          Ask ask = new Ask(priority, event.get("weight").asLong());
          permits.put(event.get("arrive").asInt(), gate.admit(ask));
          count(admitted, priority);
        } catch (Shed e) {
          count(shed.withObject("/" + priority), e.reason());
        }
      }
    }
    Stats stats = gate.stats();
    row.put("high_water", stats.highWater()).put("in_flight", stats.inFlight());
    ObjectNode told = row.putObject("stats");
    told.put("high_water", stats.highWater()).put("in_flight", stats.inFlight());
    told.set("admitted", counts(stats.admitted()));
    told.set("released", counts(stats.released()));
    ObjectNode reasons = told.putObject("shed");
    stats.shed().forEach((priority, by) -> reasons.set(priority.toString(), counts(by)));
    return row;
  }

  private static void count(ObjectNode counts, Object key) {
    counts.put(key.toString(), counts.path(key.toString()).asLong() + 1);
  }

  private static ObjectNode counts(Map<?, Long> counts) {
    ObjectNode node = JSON.createObjectNode();
    counts.forEach((key, count) -> node.put(key.toString(), count));
    return node;
  }
}
