//! Scenarios from files: what is read, and each fault at its line with its rule.

use tidegate::sim::Scenario;

pub(crate) const GOOD: &str = r#"title = "all of it"
duration = "3min"
interval = "10s"
bare_entries = false
[gate]
limit = 42
thresholds = { sheddable = 0.75 }
[arrivals]
stages = [{ rate = "90/min", for = "1min" }, { rate = "0/min", for = "30s" }]
[[arrivals.mix]]
priority = "sheddable"
share = 0.4
size = 3.0
weight = 2
[[arrivals.mix]]
share = 0.6
[service]
kind = "shared"
lambda = "60/min"
sigma = 0.02
kappa = 0.000555
sizes = { kind = "lognormal", cv = 0.5 }
[[service.changes]]
at = "1min"
lambda = "0/s"
[dependency]
time = "10ms"
[[dependency.changes]]
at = "90s"
time = "2s"
[clients]
timeout = "5s"
on_timeout = "cancel"
retries = { most = 3, after = "1s", backoff = 2.0, jitter = 0.1, on = ["timeout", "shed"] }
"#;

pub(crate) const SERVERS: &str = r#"duration = "1min"
[arrivals]
rate = "5/s"
[service]
kind = "servers"
servers = 3
time = "200ms"
sizes = { kind = "bimodal", share = 0.1, factor = 5 }
[[service.changes]]
at = "30s"
servers = 2
time = "500ms"
"#;

fn faults(text: &str) -> Vec<String> {
    let load = |name: &str| match name {
        "good.csv" => Ok("seconds\n0\n0.5\n90\n".to_owned()),
        "one.csv" => Ok("7\n7\n".to_owned()),
        "bad.csv" => Ok("seconds\n0\nsoon\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    match Scenario::from_toml_with("f.toml", text, load) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn good_ones_are_read() {
    for text in [GOOD, SERVERS] {
        assert_eq!(faults(text), [""; 0]);
        let report = Scenario::from_toml("f.toml", text).unwrap().run(1).unwrap();
        assert!(report.totals.good > 20, "{:?}", report.totals);
    }
    let scenario = Scenario::from_toml("f.toml", GOOD).unwrap();
    let json = serde_json::to_value(&scenario).unwrap();
    for (pointer, expected) in [
        ("/duration_s", "180.0"),
        ("/gate/thresholds", "[42,42,38,32]"),
        ("/arrivals/schedule/stages/0/rate", "1.5"),
        ("/arrivals/mix/0/weight", "2"),
        ("/arrivals/mix/1/priority", "\"critical\""),
        ("/service/changes/0/lambda", "0.0"),
        ("/dependency/changes/0/time_s", "2.0"),
        ("/clients/on_timeout", "\"cancel\""),
        ("/clients/retries/backoff", "2.0"),
    ] {
        assert_eq!(json.pointer(pointer).map(ToString::to_string).as_deref(), Some(expected), "{pointer}");
    }
}

/// Without a mix, everybody has the gate's default priority.
#[test]
fn the_gate_says_who_they_are() {
    let text = SERVERS.replace("[arrivals]", "[gate]\nlimit = 9\ndefault_priority = 'sheddable'\n[arrivals]");
    let report = Scenario::from_toml("f.toml", &text).unwrap().run(1).unwrap();
    assert_eq!(report.by_priority.len(), 1);
    assert_eq!(report.by_priority[0].priority, tidegate::Priority::Sheddable);
    assert!(report.in_flight.peak <= 7, "{:?}", report.in_flight); // three quarters of 9
}

/// One line of a good scenario, made bad, and what is said about it.
const FAULTS: [(&str, &str, &str); 46] = [
    ("duration = \"3min\"", "duration = \"0s\"", "line 2: duration: must be a time above 0, got 0 s"),
    ("duration = \"3min\"", "duration = 3", "line 2: duration: must be a time such as"),
    (
        "interval = \"10s\"",
        "interval = \"1ms\"",
        "line 3: interval: a series has at most 100000 intervals, got 180000",
    ),
    (
        "bare_entries = false",
        "bare_entries = true",
        "line 4: bare_entries: a bare entry has weight 1, got a mix with 2",
    ),
    ("limit = 42", "limit = -1", "line 6: gate.limit: limit must be a whole number from 0"),
    ("limit = 42", "limits = 42", "line 6: unknown key \"limits\""),
    (
        "stages = [{ rate = \"90/min\"",
        "stages = [{ rate = \"90\"",
        "line 9: arrivals.stages[1].rate: must be a rate such as",
    ),
    ("rate = \"0/min\"", "rate = \"-1/min\"", "line 9: arrivals.stages[2].rate: must be a rate such as"),
    ("for = \"30s\"", "for = \"0s\"", "line 9: arrivals.stages[2].for: must be a time above 0"),
    ("stages =", "rate = \"1/s\"\nstages =", "line 10: arrivals.stages: contradicts rate"),
    ("stages =", "ramp = \"article\"\nstages =", "line 9: arrivals.ramp: contradicts stages"),
    ("stages =", "keep = 0.5\nstages =", "line 9: arrivals.keep: is for a trace, and there is none"),
    (
        "priority = \"sheddable\"",
        "priority = \"urgent\"",
        "line 11: arrivals.mix[1].priority: priority must be one of",
    ),
    ("share = 0.4", "share = 0", "line 12: arrivals.mix[1].share: must be a number above 0"),
    ("share = 0.4", "", "line 10: arrivals.mix[1]: share is missing"),
    ("size = 3.0", "size = nan", "line 13: arrivals.mix[1].size: must be a number, got nan"),
    ("weight = 2", "weight = 0", "line 14: arrivals.mix[1].weight: weight must be a whole number from 1"),
    (
        "kind = \"shared\"",
        "kind = \"magic\"",
        "line 18: service.kind: must be one of shared, servers, got \"magic\"",
    ),
    ("kind = \"shared\"", "kind = \"shared\"\ntime = \"1s\"", "line 19: unknown key \"time\"; service takes"),
    ("lambda = \"60/min\"", "lambda = \"0/min\"", "line 19: service.lambda: must be a number above 0"),
    ("lambda = \"60/min\"", "", "line 17: service: lambda is missing"),
    ("sigma = 0.02", "sigma = -0.02", "line 20: service.sigma: must be a number from 0 to 1e12, got -0.02"),
    ("kind = \"lognormal\", cv = 0.5", "kind = \"lognormal\"", "line 22: service.sizes: cv is missing"),
    (
        "kind = \"lognormal\", cv = 0.5",
        "kind = \"normal\"",
        "line 22: service.sizes.kind: must be one of exponential, deterministic",
    ),
    (
        "kind = \"lognormal\", cv = 0.5",
        "kind = \"pareto\", alpha = 1",
        "line 22: service.sizes.alpha: must be a number above 1",
    ),
    (
        "kind = \"lognormal\", cv = 0.5",
        "kind = \"hyperexponential\", cv = 0.5",
        "line 22: service.sizes.cv: must be a number from 1",
    ),
    (
        "kind = \"lognormal\", cv = 0.5",
        "kind = \"bimodal\", share = 1, factor = 2",
        "line 22: service.sizes.share: must be a number above 0 and below 1",
    ),
    (
        "at = \"1min\"",
        "at = \"3min\"",
        "line 24: service.changes[1].at: must come before the end of the run at 180 s, got \"3min\"",
    ),
    (
        "lambda = \"0/s\"",
        "",
        "line 23: service.changes[1]: changes nothing: say at least one of lambda, sigma, kappa",
    ),
    ("lambda = \"0/s\"", "time = \"1s\"\nlambda = \"0/s\"", "line 25: unknown key \"time\""),
    ("time = \"10ms\"", "", "line 26: dependency: time is missing"),
    ("timeout = \"5s\"", "timeout = \"0s\"", "line 32: clients.timeout: must be a time above 0"),
    (
        "on_timeout = \"cancel\"",
        "on_timeout = \"forget\"",
        "line 33: clients.on_timeout: must be one of abandon, cancel",
    ),
    ("timeout = \"5s\"", "", "line 33: clients.on_timeout: there is no timeout"),
    (
        "most = 3",
        "most = 5000",
        "line 34: clients.retries.most: must be a whole number from 0 to 1000, got 5000",
    ),
    (
        "most = 3",
        "most = -1",
        "line 34: clients.retries.most: must be a whole number from 0 to 4294967295, got -1",
    ),
    ("backoff = 2.0", "backoff = 0.5", "line 34: clients.retries.backoff: must be a number from 1"),
    ("jitter = 0.1", "until = 3", "line 34: clients.retries.until: must be"),
    ("kind = \"shared\"", "kind = \"shared\"\nprocessors = 0", "line 19: service.processors: must be"),
    (
        "kind = \"shared\"",
        "kind = \"shared\"\ncliff = { above = 9 }",
        "line 19: service.cliff: factor is missing",
    ),
    (
        "kind = \"shared\"",
        "kind = \"shared\"\ncliff = { above = 0, factor = 0.5 }",
        "line 19: service.cliff.above: must be",
    ),
    (
        "kind = \"shared\"",
        "kind = \"shared\"\ncliff = { above = 9, factor = 0.5 }",
        "line 19: service.cliff.factor: must be a number from 1",
    ),
    ("weight = 2", "elsewhere = 2", "line 14: arrivals.mix[1].elsewhere: must be"),
    ("jitter = 0.1", "jitter = 2", "line 34: clients.retries.jitter: must be a share from 0 to 1, got 2"),
    (
        "on = [\"timeout\", \"shed\"]",
        "on = []",
        "line 34: clients.retries.on: must have \"timeout\", \"shed\" or both, got neither",
    ),
    (
        "on = [\"timeout\", \"shed\"]",
        "on = [\"error\"]",
        "line 34: clients.retries.on: must have \"timeout\", \"shed\" or both, got \"error\"",
    ),
];

#[test]
fn each_fault_is_named_at_its_line() {
    for (line, bad, expected) in FAULTS {
        assert!(GOOD.contains(line), "{line}");
        let found = faults(&GOOD.replacen(line, bad, 1));
        assert!(found.iter().any(|fault| fault.starts_with(expected)), "{bad}: {found:#?} has no {expected}");
    }
}

#[test]
fn what_is_missing_or_contradicts_itself() {
    let service = "[service]\nkind = 'servers'\ntime = '1s'\n";
    for (text, expected) in [
        ("", "line 1: [arrivals] is missing: who comes, and when"),
        ("[arrivals]\nramp = 'article'\n", "line 1: [service] is missing: what serves them"),
        (&format!("[arrivals]\n{service}"), "line 1: arrivals: rate, stages, ramp or trace is missing"),
        (
            &format!("[arrivals]\nrate = '1/s'\n{service}"),
            "line 1: arrivals: rate has no end: say for how long",
        ),
        (
            &format!("[arrivals]\nstages = []\n{service}"),
            "line 2: arrivals.stages: must have 1 to 10000 entries, got 0",
        ),
        (
            &format!("[arrivals]\nramp = 'other'\n{service}"),
            "line 2: arrivals.ramp: must be one of article, got \"other\"",
        ),
        (
            &format!("[arrivals]\ntrace = 'none.csv'\n{service}"),
            "line 2: arrivals.trace: \"none.csv\" cannot be read: no such file",
        ),
        (
            &format!("[arrivals]\ntrace = 'bad.csv'\n{service}"),
            "line 2: arrivals.trace: \"bad.csv\": line 3: an arrival is a time in seconds, got \"soon\"",
        ),
        (
            &format!("[arrivals]\ntrace = 'good.csv'\nkeep = 0\n{service}"),
            "line 3: arrivals.keep: must be a share above 0, at most 1, got 0",
        ),
        (
            &format!("[arrivals]\ntrace = 'good.csv'\nmix = []\n{service}"),
            "line 3: arrivals.mix: must have 1 to 10000 entries, got 0",
        ),
        ("arrivals = 1\nservice = 2\n", "line 1: arrivals: must be a table, got 1"),
        ("= 1", "line 1: no TOML"),
    ] {
        let found = faults(text);
        assert!(
            found.iter().any(|fault| fault.starts_with(expected)),
            "{text}: {found:#?} has no {expected}"
        );
    }
    let trace = format!("[arrivals]\ntrace = 'good.csv'\nspeed = 2.0\n{service}");
    assert_eq!(faults(&trace), [""; 0]);
    let refused = Scenario::from_toml("f.toml", &trace).unwrap_err().to_string();
    assert!(refused.contains("no other file is read here"), "{refused}");
}

#[test]
fn a_run_that_nobody_would_wait_for_is_refused() {
    let text = |rate: &str, duration: &str, interval: &str| {
        format!(
            "duration = '{duration}'\ninterval = '{interval}'\n[arrivals]\nrate = '{rate}'\n\
             [service]\nkind = 'servers'\ntime = '1s'\n"
        )
    };
    let found = faults(&text("1000000/s", "24h", "1h"));
    assert_eq!(found.len(), 1, "{found:#?}");
    let expected = "line 1: duration: a run has at most 1e9 events, got about 1.7e11 to expect";
    assert!(found[0].starts_with(expected), "{found:#?}");
    let found = faults(&text("0/s", "9000000h", "9000000h"));
    assert!(found[0].starts_with("line 1: duration: must be a time of at most 100 years"), "{found:#?}");
    // In code as in a file.
    let mut scenario = Scenario::from_toml("f.toml", GOOD).unwrap();
    scenario.service.sigma = f64::NAN;
    let refused = scenario.run(1).unwrap_err().to_string();
    assert_eq!(refused, "service.sigma: must be a number from 0 to 1e12, got NaN");
}

/// What comes in does not get out: it ends with a sentence before the memory does.
#[test]
fn a_run_that_outgrows_the_memory_ends() {
    let text = "duration = '10min'\n[arrivals]\nrate = '100000/s'\n[service]\nkind = 'servers'\nservers = 1\ntime = '1h'\n";
    let refused = Scenario::from_toml("f.toml", text).unwrap().run(1).unwrap_err().to_string();
    assert!(refused.contains("a run has at most 4000000 requests inside, got more after"), "{refused}");
}

/// What is no table is missing in its list, which is no second fault.
#[test]
fn a_list_has_the_fault_that_is_in_it_and_no_other() {
    let service = "[service]\nkind = 'servers'\ntime = '1s'\n";
    for (arrivals, expected) in [
        ("stages = [1]", "line 2: arrivals.stages[1]: must be a table, got 1"),
        (
            "stages = {}",
            "line 2: arrivals.stages: must be an array of tables, each [[arrivals.stages]], got {}",
        ),
        (
            "trace = 'one.csv'",
            "line 1: arrivals: all come at once: say how long it runs at the top, as in duration = \"30min\"",
        ),
        ("ramp = 'article'\nmix = [2]", "line 3: arrivals.mix[1]: must be a table, got 2"),
        (
            "ramp = 'article'\n[arrivals.mix]\nshare = 1",
            "line 3: arrivals.mix: must be an array of tables, each [[arrivals.mix]], got [arrivals.mix]",
        ),
    ] {
        assert_eq!(faults(&format!("[arrivals]\n{arrivals}\n{service}")), [expected]);
    }
    let long = faults(&format!("[arrivals]\nstages = [{{ rate = '1/h', for = '9000h' }}]\n{service}"));
    assert_eq!(long.len(), 1);
    assert!(long[0].starts_with("line 1: arrivals: a series has at most 100000 intervals"), "{long:?}");
}
