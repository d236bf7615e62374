//! The limit's path as a picture: SVG that needs nothing from anywhere.

use std::fmt::Write;

use tidegate::controller::Kind;

use crate::play::Played;
use crate::scenario::{POINTS, SLICES};
use crate::score::{Contest, Start};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 30.0;
const GAP: f64 = 70.0;
/// Limits that the axis has.
const MOST: f64 = 1_000.0;
/// Points of a line in a slice.
const SHOWN: usize = 2;

/// Colours that those who see few can tell apart (Okabe and Ito, 2008).
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// Two panels: `goodput` from its three starts, and the published ones from the best limit. First seed.
pub(crate) fn chart(contest: &Contest) -> String {
    let starts = Start::ALL.map(|start| (start.name(), &contest.score(Kind::Goodput, start).played[0]));
    let kinds = [Kind::Goodput, Kind::Aimd, Kind::Gradient2, Kind::Vegas];
    let kinds = kinds.map(|kind| (kind.as_str(), &contest.score(kind, Start::Best).played[0]));
    let (width, height) = (LEFT + 2.0 * WIDTH + GAP + 20.0, TOP + HEIGHT + 44.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    panel(&mut svg, LEFT, "goodput, by start", contest, &starts);
    panel(&mut svg, LEFT + WIDTH + GAP, "from the best fixed limit", contest, &kinds);
    svg.push_str("</svg>\n");
    svg
}

fn y(limit: f64) -> f64 {
    TOP + HEIGHT * (1.0 - limit.max(1.0).ln() / MOST.ln())
}

fn panel(svg: &mut String, left: f64, title: &str, contest: &Contest, lines: &[(&str, &Played)]) {
    let mut add = |text: String| {
        svg.push_str(&text);
        svg.push('\n');
    };
    let end = contest.place.scenario.duration.as_secs_f64();
    add(format!("<text x=\"{left}\" y=\"16\" font-weight=\"bold\">{}: {title}</text>", contest.place.name));
    for limit in [1.0, 10.0, 100.0, 1_000.0] {
        let at = y(limit);
        add(format!(
            "<path d=\"M{left} {at:.0}h{WIDTH}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.0}\" \
             text-anchor=\"end\" fill=\"#666\">{limit}</text>",
            left - 5.0,
            at + 4.0
        ));
    }
    let best = y(f64::from(contest.reference.limit));
    add(format!("<path d=\"M{left} {best:.0}h{WIDTH}\" stroke=\"#000\" stroke-dasharray=\"5 4\"/>"));
    for (at, anchor, text) in [(0.0, "start", "0".to_owned()), (WIDTH, "end", format!("{end:.0} s"))] {
        add(format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\" fill=\"#666\">{text}</text>",
            left + at,
            TOP + HEIGHT + 16.0
        ));
    }
    for (at, (name, played)) in lines.iter().enumerate() {
        let colour = COLOURS[at];
        add(format!(
            "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            path(left, played)
        ));
        add(format!(
            "<text x=\"{}\" y=\"{}\" fill=\"{colour}\">{name}</text>",
            left + 90.0 * at as f64,
            TOP + HEIGHT + 34.0
        ));
    }
}

/// Short averages, so that experiments are seen as the line that they are about.
fn path(left: f64, played: &Played) -> String {
    let pieces = SLICES as usize * SHOWN;
    let mut path = String::new();
    for (at, piece) in played.limits.chunks(POINTS as usize / SHOWN).enumerate() {
        let mean = piece.iter().map(|limit| f64::from(*limit).ln()).sum::<f64>() / piece.len() as f64;
        let x = left + WIDTH * (at as f64 + 0.5) / pieces as f64;
        let command = if at == 0 { 'M' } else { 'L' };
        write!(path, "{command}{x:.0} {:.0}", y(mean.exp())).expect("a string takes all");
    }
    path
}
