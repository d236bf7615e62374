//! What a file means, in words: for people who want to know before they rely on it.

mod adaptive;

use std::fmt::{self, Write};

use crate::classifier::Classifier;
use crate::controller::Kind;
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
    let most = thresholds.at(highest(&settings));
    let moves = if table.controller.is_some() { " for now" } else { "" };
    write!(to, "gate {}: at most {limit} at once{moves}", gate.name())?;
    let kept_out = Priority::ALL.into_iter().zip(at_limit).filter(|&(_, threshold)| threshold < limit);
    for (at, (priority, threshold)) in kept_out.enumerate() {
        let (comma, inside) = if at == 0 { (";", " are inside") } else { (",", "") };
        match threshold {
            0 if most[priority.level()] > 0 => write!(to, "{comma} {priority} not at all")?,
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

/// The highest limit that there may be without the program's doing.
fn highest(settings: &Settings) -> u32 {
    let moving = settings.controller.filter(|(kind, _)| *kind != Kind::Fixed);
    moving.map_or(settings.limit, |(_, bounds)| bounds.max().max(settings.limit))
}

/// What a limit makes of the thresholds that may not be meant.
fn warnings(settings: &Settings) -> Vec<String> {
    let limit = settings.limit;
    if limit == 0 {
        return vec!["a limit of 0 admits nothing".to_owned()];
    }
    let highest = highest(settings);
    let most = settings.thresholds.at(highest);
    let mut warnings = Vec::new();
    for (priority, threshold) in Priority::ALL.into_iter().zip(settings.thresholds.at(limit)) {
        if threshold == 0 && most[priority.level()] > 0 {
            warnings.push(format!("{priority} is not admitted for now: nothing of {limit} is left for it"));
        } else if threshold == 0 {
            warnings.push(format!("{priority} is never admitted: nothing of {highest} is left for it"));
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

#[cfg(test)]
mod tests {
    use crate::file::Gates;

    fn says(gate: &str) -> String {
        Gates::from_toml("f.toml", &format!("[gates.db]\n{gate}")).expect("valid").explain()
    }

    #[test]
    fn what_a_controller_may_let_in_later_is_not_said_to_be_never() {
        let reserve = |weight| {
            says(&format!(
                "thresholds = {{ sheddable = {{ reserve = {weight} }} }}\n\
                 controller = {{ kind = 'aimd', min = 4, max = 200 }}"
            ))
        };
        let text = reserve(50);
        assert!(text.contains("sheddable not at all") && !text.contains("never"), "{text}");
        assert!(text.contains("warning: sheddable is not admitted for now: nothing of 28 is left"), "{text}");
        let text = reserve(200);
        assert!(text.contains("sheddable never") && !text.contains("for now: nothing"), "{text}");
        assert!(text.contains("warning: sheddable is never admitted: nothing of 200 is left"), "{text}");
    }

    /// It has no least limit that it comes to.
    #[test]
    fn a_fixed_one_is_judged_at_the_limit_that_it_holds() {
        let fixed = |rest: &str| says(&format!("limit = 20\ncontroller = {{ kind = 'fixed' }}\n{rest}"));
        for priority in ["critical", "sheddable"] {
            let text = fixed(&format!("thresholds = {{ {priority} = {{ reserve = 5 }} }}"));
            assert!(!text.contains("not admitted"), "{text}");
        }
        let text = fixed("thresholds = { sheddable = { reserve = 20 } }");
        assert!(text.contains("sheddable is never admitted: nothing of 20 is left"), "{text}");
    }

    #[test]
    fn a_ceiling_that_lowers_a_fixed_limit_does_something() {
        let text = says("limit = 20\ncontroller = { kind = 'fixed', ceiling = 5 }");
        assert!(text.contains("it starts at the ceiling, 5, which is below 20"), "{text}");
        assert!(!text.contains("do nothing"), "{text}");
        let text = says("limit = 20\ncontroller = { kind = 'fixed', ceiling = 50 }");
        assert!(text.contains("min, max and ceiling do nothing"), "{text}");
    }
}
