//! What a file means, in words: for people who want to know before they rely on it.

mod adaptive;

use std::fmt::{self, Write};

use crate::classifier::Classifier;
use crate::file::gates::Entry;
use crate::priority::{Priority, Threshold};
use crate::rate::Per;
use crate::reconfigure::Settings;

/// A paragraph for each gate, and one for the classifier. A line that is worth a second look begins with `warning`.
pub(super) fn explain<'g>(gates: impl Iterator<Item = &'g Entry>, classifier: Option<&Classifier>) -> String {
    let mut text = String::new();
    for entry in gates {
        explain_gate(&mut text, entry).expect("a String takes it");
    }
    if let Some(classifier) = classifier {
        explain_classifier(&mut text, classifier).expect("a String takes it");
    }
    text
}

fn explain_gate(to: &mut String, entry: &Entry) -> fmt::Result {
    let Entry { gate, table, .. } = entry;
    // Not where a controller started, but where it is.
    let settings = Settings { limit: gate.limit(), ..gate.settings() };
    let Settings { limit, thresholds, rate, default_priority, enforce, .. } = settings.clone();
    let at_limit = thresholds.at(limit);
    let moves = if table.controller.is_some() { " for now" } else { "" };
    write!(to, "gate {}: at most {limit} at once{moves}", gate.name())?;
    let kept_out = Priority::ALL.into_iter().zip(at_limit).filter(|&(_, threshold)| threshold < limit);
    for (at, (priority, threshold)) in kept_out.enumerate() {
        let (comma, inside) = if at == 0 { (";", " are inside") } else { (",", "") };
        match threshold {
            0 => write!(to, "{comma} {priority} never")?,
            _ => write!(to, "{comma} {priority} while fewer than {threshold}{inside}")?,
        }
    }
    writeln!(to)?;
    if let Some(rate) = rate {
        let unit = match rate.per() {
            Per::Second => "second",
            Per::Minute => "minute",
            Per::Hour => "hour",
        };
        writeln!(to, "  at most {} a {unit}, plus a burst of {}", rate.count(), rate.burst())?;
    }
    writeln!(to, "  requests that name no priority are {default_priority}")?;
    if gate.is_timed() {
        writeln!(to, "  how long permits are held is measured")?;
    }
    adaptive::explain(to, table)?;
    for warning in warnings(&settings).into_iter().chain(adaptive::warnings(table)) {
        writeln!(to, "  warning: {warning}")?;
    }
    if rate.is_some_and(|rate| rate.count() == 0) {
        writeln!(to, "  warning: a rate of 0 admits its burst once, and then nothing")?;
    }
    if !enforce {
        writeln!(to, "  warning: dry run: nobody is turned away, and who would have been is counted")?;
    }
    if gate.closed() {
        writeln!(to, "  warning: it was closed by the program, and stays closed")?;
    }
    Ok(())
}

/// What a limit makes of the thresholds that may not be meant.
fn warnings(settings: &Settings) -> Vec<String> {
    let limit = settings.limit;
    if limit == 0 {
        return vec!["a limit of 0 admits nothing".to_owned()];
    }
    let mut warnings = Vec::new();
    for (priority, threshold) in Priority::ALL.into_iter().zip(settings.thresholds.at(limit)) {
        if threshold == 0 {
            warnings.push(format!("{priority} is never admitted: nothing of {limit} is left for it"));
        }
        let share = settings.thresholds.get(priority).unwrap_or_else(|| Threshold::default_of(priority));
        if matches!(share, Threshold::Ppm(_)) && share != Threshold::ALL && share.at(limit) == limit {
            warnings.push(format!("{priority} may fill it: {share} of {limit}, rounded up, is {limit}"));
        }
    }
    warnings
}

fn explain_classifier(to: &mut String, classifier: &Classifier) -> fmt::Result {
    writeln!(to, "classifier: the first rule that matches a request decides")?;
    for (at, rule) in classifier.rules().iter().enumerate() {
        write!(to, "  rule {}", at + 1)?;
        if let Some(name) = rule.name() {
            write!(to, " {name:?}")?;
        }
        writeln!(to, ": {}, if {}", rule.priority(), rule.matching())?;
    }
    match classifier.default_priority() {
        Some(priority) => writeln!(to, "  all other requests are {priority}"),
        None => writeln!(
            to,
            "  all other requests have the priority that their gate gives to those that name none"
        ),
    }
}
