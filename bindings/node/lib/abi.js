// include/tidegate.h: its structs and functions. Nothing else in this package knows how they are called.

const koffi = require("koffi");
const { errorOf } = require("./errors.js");
const { load } = require("./library.js");
const { ERROR } = require("./words.js");

const { library, file } = load();

const Threshold = koffi.struct("tidegate_threshold", { kind: "int32_t", value: "int64_t" });
const Rate = koffi.struct("tidegate_rate", {
  count: "int64_t",
  burst: "int64_t",
  per: "int32_t",
  reserved: "int32_t",
});
const Controller = koffi.struct("tidegate_controller", {
  kind: "int32_t",
  reserved: "int32_t",
  min: "int64_t",
  max: "int64_t",
  ceiling: "int64_t",
  prior: "int64_t",
});
const SignalConfig = koffi.struct("tidegate_signal_config", {
  struct_size: "uint32_t",
  kind: "int32_t",
  name: "const char *",
  enter: "double",
  leave: "double",
  full: "double",
  enter_for: "double",
  leave_for: "double",
  dwell: "double",
  ramp: "double",
});
const Config = koffi.struct("tidegate_config", {
  struct_size: "uint32_t",
  default_priority: "int32_t",
  limit: "int64_t",
  thresholds: koffi.array(Threshold, 4),
  enforce: "bool",
  timing: "bool",
  bare_entries: "bool",
  reserved: koffi.array("uint8_t", 5),
  rate: Rate,
  controller: Controller,
  objective: "double",
  signals: koffi.pointer(SignalConfig),
  signal_count: "size_t",
});
const Permit = koffi.struct("tidegate_permit", {
  struct_size: "uint32_t",
  priority: "int32_t",
  weight: "int64_t",
  over: "bool",
  reserved: koffi.array("uint8_t", 7),
});
const Stats = koffi.struct("tidegate_stats", {
  struct_size: "uint32_t",
  generation: "uint32_t",
  limit: "uint32_t",
  in_flight: "uint32_t",
  high_water: "uint32_t",
  thresholds: koffi.array("uint32_t", 4, "Array"),
  default_priority: "int32_t",
  enforce: "bool",
  closed: "bool",
  timing: "bool",
  reserved: koffi.array("uint8_t", 5),
  admitted: koffi.array("uint64_t", 4, "Array"),
  shed: koffi.array(koffi.array("uint64_t", 7, "Array"), 4),
  would_shed: koffi.array("uint64_t", 4, "Array"),
  released: koffi.array("uint64_t", 3, "Array"),
  unmatched_exits: "uint64_t",
  collected: "uint64_t",
  fallback_priority: "uint64_t",
  over_in_flight: "uint64_t",
  occupancy_us: "uint64_t",
});
const ControllerReport = koffi.struct("tidegate_controller_report", {
  struct_size: "uint32_t",
  kind: "int32_t",
  min: "uint32_t",
  max: "uint32_t",
  prior: "uint32_t",
  cause: "int32_t",
  objective: "double",
  looks: "uint64_t",
  moves: "uint64_t",
  probes: "uint64_t",
  window: "double",
  completions: "uint64_t",
  good: "uint64_t",
  overload: "uint64_t",
  admissions: "uint64_t",
  refusals: "uint64_t",
});
const LimitChange = koffi.struct("tidegate_limit_change", {
  struct_size: "uint32_t",
  from: "uint32_t",
  to: "uint32_t",
  reserved: "uint32_t",
  age: "double",
  cause: koffi.array("char", 64),
});
const Pressure = koffi.struct("tidegate_pressure", {
  struct_size: "uint32_t",
  overloaded: "bool",
  reserved: koffi.array("uint8_t", 3),
  level: "double",
  shares: koffi.array("double", 4, "Array"),
  signals: "uint64_t",
  transitions: "uint64_t",
});
const SignalReport = koffi.struct("tidegate_signal_report", {
  struct_size: "uint32_t",
  overloaded: "bool",
  reserved: koffi.array("uint8_t", 3),
  value: "double",
  level: "double",
  enter: "double",
  leave: "double",
  full: "double",
  reads: "uint64_t",
  failures: "uint64_t",
  cost: "double",
  name: koffi.array("char", 256),
});
const Attribute = koffi.struct("tidegate_attribute", {
  name: "const char *",
  value: "const uint8_t *",
  value_len: "size_t",
});

const Gate = koffi.pointer(koffi.opaque("tidegate_gate"));
const Gates = koffi.pointer(koffi.opaque("tidegate_gates"));
const out = (type) => koffi.out(koffi.pointer(type));
const inout = (type) => koffi.inout(koffi.pointer(type));
const Bytes = "uint8_t *";

/** A function that answers a tidegate_status. */
const call = (name, ...parameters) => library.func(name, "int32_t", parameters);

const statusText = library.func("tidegate_status_str", "const char *", ["int32_t"]);

/** Throws what a negative status stands for; `rule` says what was broken. */
function check(status, rule) {
  if (status < 0) throw errorOf(status, rule(), statusText(status));
}

/** What a call reads at position 0, 1, ... of something, up to its end. */
function each(read, structSize, pointer) {
  const all = [];
  for (;;) {
    const next = { struct_size: structSize };
    const status = read(pointer, all.length, next);
    if (status === ERROR.ARGUMENT) return all;
    check(status, () => read.name);
    all.push(next);
  }
}

module.exports = {
  file,
  sizes: {
    config: koffi.sizeof(Config),
    permit: koffi.sizeof(Permit),
    stats: koffi.sizeof(Stats),
    signalConfig: koffi.sizeof(SignalConfig),
    controllerReport: koffi.sizeof(ControllerReport),
    limitChange: koffi.sizeof(LimitChange),
    pressure: koffi.sizeof(Pressure),
    signalReport: koffi.sizeof(SignalReport),
  },

  gateNew: call("tidegate_gate_new", koffi.pointer(Config), Bytes, "size_t", out(Gate), Bytes, "size_t"),
  gateFree: library.func("tidegate_gate_free", "void", [Gate]),
  gateName: library.func("tidegate_gate_name", "const char *", [Gate]),
  tryAdmit: call("tidegate_try_admit", Gate, "int32_t", "int64_t", koffi.pointer("uint64_t")),
  release: call("tidegate_release", Gate, "uint64_t", "int32_t"),
  releaseCollected: call("tidegate_release_collected", Gate, "uint64_t"),
  getPermit: call("tidegate_get_permit", Gate, "uint64_t", inout(Permit)),
  retryAfter: call("tidegate_retry_after", Gate, "int32_t", "int64_t", out("double")),
  getStats: call("tidegate_get_stats", Gate, inout(Stats)),
  inFlight: library.func("tidegate_in_flight", "int64_t", [Gate]),
  limit: library.func("tidegate_limit", "int64_t", [Gate]),
  latency: call("tidegate_latency", Gate, "int32_t", "double", out("double")),
  setLimitCause: call("tidegate_set_limit_cause", Gate, "int64_t", "const char *"),
  setThresholdKinds: call("tidegate_set_threshold_kinds", Gate, koffi.pointer(Threshold)),
  setRate: call("tidegate_set_rate", Gate, koffi.pointer(Rate)),
  getRate: call("tidegate_get_rate", Gate, out(Rate)),
  signal: call("tidegate_signal", Gate, Bytes, "size_t", "double", "int64_t"),
  setEnforce: call("tidegate_set_enforce", Gate, "bool"),
  close: call("tidegate_close", Gate),
  drain: call("tidegate_drain", Gate, "int64_t"),
  getController: call("tidegate_get_controller", Gate, inout(ControllerReport)),
  getLimitChange: call("tidegate_get_limit_change", Gate, "size_t", inout(LimitChange)),
  getPressure: call("tidegate_get_pressure", Gate, inout(Pressure)),
  getSignal: call("tidegate_get_signal", Gate, "size_t", inout(SignalReport)),

  open: call("tidegate_open", "const char *", out(Gates), Bytes, "size_t"),
  openText: call("tidegate_open_text", Bytes, "size_t", "const char *", out(Gates), Bytes, "size_t"),
  gatesFree: library.func("tidegate_gates_free", "void", [Gates]),
  find: call("tidegate_find", Gates, Bytes, "size_t", out(Gate)),
  gateAt: call("tidegate_gate_at", Gates, "size_t", out(Gate)),
  reload: call("tidegate_reload", Gates, Bytes, "size_t"),
  reloadText: call("tidegate_reload_text", Gates, Bytes, "size_t", Bytes, "size_t"),
  explain: call("tidegate_explain", Gates, Bytes, "size_t", out("size_t")),
  classify: call("tidegate_classify", Gates, koffi.pointer(Attribute), "size_t", out("int32_t"), Bytes, "size_t"),
  statusText,
  check,
  each,

  /** For tests, of a library with the test hooks. */
  hook: (declaration) => library.func(declaration),
};
