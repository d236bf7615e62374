//! docs/arena.md: the figures, for people.

use std::fmt::Write;

use tidegate::controller::Kind;

use crate::score::{Contest, Score, Start};
use crate::{Check, SEEDS};

const PUBLISHED: [Kind; 3] = [Kind::Aimd, Kind::Gradient2, Kind::Vegas];

/// The page, without anything that another run would change.
pub(crate) fn page(contests: &[Contest], checks: &[Check]) -> String {
    let (judged, shown): (Vec<&Contest>, Vec<&Contest>) =
        contests.iter().partition(|contest| contest.place.is_judged);
    let mut text = format!(
        "# The arena

Written by `make arena`: every controller in every scenario, on the [simulator](simulator.md). The gate is the one that ships, its controller
works inside it as it does in your program, and only who comes and what serves them is simulated. Seeds {} to {}; the same again gives the same page.

For each scenario a sweep finds the best fixed limit (in steps of 4 % around it). Each controller starts at a third of it, at it, and at four times
it, and meets the very same requests. The database answers 3 a second alone and slows down in company by the universal scalability law (sigma 0.02,
kappa 0.000555): most, 45.4 a second, with 42 inside. An answer is good within 3 s, after which nobody waits for it; 35 minutes a run. What differs
stands with the scenario.

- **goodput**: good answers over those of the best fixed limit, mean (worst) over seeds. Above 1 where the best limit changes on the way.
- **at 0.95 after**: when a slice of a seventieth of the run first had 0.95 of what the best fixed limit had in it, with the slowest seed.
- **p99**: for how long permits were held, 99 % no longer, over the objective.
- **top**: of the most important priority that came, the share of attempts that were answered in time.

",
        SEEDS.start(),
        SEEDS.end()
    );
    verdict(&mut text, checks);
    text.push_str("## `goodput`\n\n");
    starts(&mut text, &judged, Kind::Goodput);
    text.push_str("## The published ones\n\nAs in Netflix's concurrency-limits ([choosing](choosing.md)), and what a limit gives that stays where it starts.\n\n");
    for kind in PUBLISHED {
        writeln!(text, "### `{}`\n", kind.as_str()).expect("a string takes all");
        starts(&mut text, &judged, kind);
    }
    text.push_str("### `fixed`\n\n");
    starts(&mut text, &judged, Kind::Fixed);
    text.push_str(
        "## Where premises do not hold\n\nNo bar: these are there to show what happens. Goodput from a third, from the best, from four times.\n\n",
    );
    compared(&mut text, &shown);
    text.push_str("## The limit's path\n\nFirst seed; the dashed line is the best fixed limit.\n\n");
    for contest in contests {
        let name = contest.place.name;
        writeln!(text, "**{name}**: {}.\n\n![{name}](arena/{name}.svg)\n", contest.place.about)
            .expect("a string takes all");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn verdict(text: &mut String, checks: &[Check]) {
    let failed: Vec<&Check> = checks.iter().filter(|check| !check.passed).collect();
    let passed = checks.len() - failed.len();
    writeln!(
        text,
        "## Bars\n\n`goodput` must give 0.97 of the best fixed limit's good answers from a fair start and 0.95 from any, and never be \
         more than 0.01\nbehind the best of the published ones from the same start. At tens of requests a minute that is asked from the prior alone. During an \
         outage\nits limit never rises; critical requests that have room are answered, 99.9 % of them.\n\n{passed} passed, {} failed.\n",
        failed.len()
    )
    .expect("a string takes all");
    for check in &failed {
        writeln!(text, "- **failed**: {}", check.sentence()).expect("a string takes all");
    }
    if !failed.is_empty() {
        text.push('\n');
    }
}

fn starts(text: &mut String, contests: &[&Contest], kind: Kind) {
    text.push_str(
        "| scenario | best limit | from a third | from the best | from four times | at 0.95 after | p99 | top |\n|---|---|---|---|---|---|---|---|\n",
    );
    for contest in contests {
        let scores = Start::ALL.map(|start| contest.score(kind, start));
        let [third, best, four] = scores.map(|score| format!("{:.3} ({:.3})", score.mean(), score.worst()));
        let objective = contest.place.objective.map_or(1.0, |objective| objective.as_secs_f64());
        let three = |cell: &dyn Fn(&Score) -> String| scores.map(cell).join(", ");
        writeln!(
            text,
            "| `{}` | {} | {third} | {best} | {four} | {} | {} | {} |",
            contest.place.name,
            contest.reference.limit,
            three(&|score| score.time_to_95.map_or("never".to_owned(), time)),
            three(&|score| format!("{:.2}", score.p99 / objective)),
            three(&|score| format!("{:.4}", score.top_success)),
        )
        .expect("a string takes all");
    }
    text.push('\n');
}

fn time(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

fn compared(text: &mut String, contests: &[&Contest]) {
    text.push_str("| scenario | | best limit | `goodput` | `aimd` | `gradient2` | `vegas` |\n|---|---|---|---|---|---|---|\n");
    for contest in contests {
        let cells = [Kind::Goodput, Kind::Aimd, Kind::Gradient2, Kind::Vegas].map(|kind| {
            Start::ALL.map(|start| format!("{:.3}", contest.score(kind, start).mean())).join(", ")
        });
        writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            contest.place.name,
            contest.place.about,
            contest.reference.limit,
            cells.join(" | ")
        )
        .expect("a string takes all");
    }
    text.push('\n');
}
