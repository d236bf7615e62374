//! What must hold of the house's own controller.

use tidegate::controller::Kind;

use crate::play::Played;
use crate::score::{Contest, Score, Start};

/// Of the best fixed limit's goodput, from a fair start,
const FAIR: f64 = 0.97;
/// and from any.
const ANY: f64 = 0.95;
/// So far the best of the published may be ahead.
const BEHIND: f64 = 0.01;
/// Of the most important, where there is room for all of them.
const TOP: f64 = 0.999;
const PEERS: [Kind; 3] = [Kind::Aimd, Kind::Gradient2, Kind::Vegas];
/// Before an outage and after it, in seconds: in this time an experiment has come to both of its limits,
const EXPERIMENT: f64 = 60.0;
/// and the limit is back.
const BACK: f64 = 60.0;

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) scenario: &'static str,
    pub(crate) what: String,
    pub(crate) found: String,
    pub(crate) passed: bool,
}

impl Check {
    pub(crate) fn sentence(&self) -> String {
        format!("{}: {}: {}", self.scenario, self.what, self.found)
    }
}

/// The bars that hold in a scenario.
pub(crate) fn checks(contest: &Contest) -> Vec<Check> {
    if !contest.place.is_judged {
        return Vec::new();
    }
    match contest.place.name {
        "timeout-outage" => Start::ALL
            .iter()
            .flat_map(|&start| outage(contest, contest.score(Kind::Goodput, start)))
            .collect(),
        // With a few thousand requests in all, it is the prior that counts.
        "slow-rate-prior" => goodput(contest, &[Start::Best]),
        "two-priorities" => [goodput(contest, &Start::ALL), top(contest)].concat(),
        _ => goodput(contest, &Start::ALL),
    }
}

fn check(contest: &Contest, what: String, found: String, passed: bool) -> Check {
    Check { scenario: contest.place.name, what, found, passed }
}

fn goodput(contest: &Contest, starts: &[Start]) -> Vec<Check> {
    let mut checks = Vec::new();
    for &start in starts {
        let ours = contest.score(Kind::Goodput, start).mean();
        let bar = if start == Start::Best { FAIR } else { ANY };
        checks.push(check(
            contest,
            format!("good answers from {}, of the best fixed limit's, at least {bar}", start.name()),
            format!("{ours:.3}"),
            ours >= bar,
        ));
        let peers = PEERS.map(|kind| (contest.score(kind, start).mean(), kind.as_str()));
        let (best, name) = peers.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are some");
        checks.push(check(
            contest,
            format!("from {}, no more than {BEHIND} behind the best of the published", start.name()),
            format!("{ours:.3}, {name} {best:.3}"),
            ours >= best - BEHIND,
        ));
    }
    checks
}

fn top(contest: &Contest) -> Vec<Check> {
    let of = |start: Start| {
        let found = contest.score(Kind::Goodput, start).top_success;
        let what = format!("from {}, critical requests answered, at least {TOP}", start.name());
        check(contest, what, format!("{found:.4}"), found >= TOP)
    };
    Start::ALL.map(of).to_vec()
}

fn outage(contest: &Contest, score: &Score) -> Vec<Check> {
    let worst = |is_so: &dyn Fn(&Path) -> bool| {
        let wrong = score.played.iter().filter(|played| !is_so(&Path::new(contest, played))).count();
        (format!("so with {} of {} seeds", score.played.len() - wrong, score.played.len()), wrong == 0)
    };
    let from = score.start.name();
    [
        ("during the outage the limit never rises", worst(&|path| path.falls())),
        ("at its end the limit is at most half of what it was", worst(&|path| path.is_halved())),
        (
            "60 s after it the limit is back at two thirds of what it was or more",
            worst(&|path| path.is_back()),
        ),
    ]
    .map(|(what, (found, passed))| check(contest, format!("from {from}, {what}"), found, passed))
    .to_vec()
}

/// The limit around an outage.
struct Path<'a> {
    /// In the last experiment before it,
    before: &'a [u32],
    /// during it, from when the first experiment under way has noticed,
    during: &'a [u32],
    /// and for some time after it.
    after: &'a [u32],
}

impl<'a> Path<'a> {
    fn new(contest: &Contest, played: &'a Played) -> Self {
        let interval = contest.place.scenario.interval.as_secs_f64();
        let (from, to) = contest.place.outage.expect("the scenario has one");
        let span = |from: f64, to: f64| &played.limits[(from / interval) as usize..(to / interval) as usize];
        Self { before: span(from - EXPERIMENT, from), during: span(from, to), after: span(to, to + BACK) }
    }

    fn onset(&self) -> u32 {
        *self.before.iter().max().expect("some time")
    }

    /// The experiment that is under way may come to its raised limit before the first request has timed out.
    fn falls(&self) -> bool {
        let noticed = self.during.iter().position(|limit| *limit < self.before[self.before.len() - 1]);
        let falling = &self.during[noticed.unwrap_or(0)..];
        self.during.iter().all(|limit| *limit <= self.onset()) && falling.is_sorted_by(|a, b| a >= b)
    }

    fn is_halved(&self) -> bool {
        self.during.last().is_some_and(|limit| limit * 2 <= self.onset())
    }

    fn is_back(&self) -> bool {
        let onset = self.before[self.before.len() - 1];
        self.after.iter().any(|limit| limit * 3 >= onset * 2)
    }
}
