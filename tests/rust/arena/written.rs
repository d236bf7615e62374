//! What a full run leaves behind: `target/arena.json`, `docs/arena.md` and its charts.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::score::{Contest, Score};
use crate::{Check, chart, page};

pub(crate) fn all(root: &Path, contests: &[Contest], checks: &[Check]) -> Result<(), String> {
    let write = |path: &Path, text: &str| {
        let folder = path.parent().unwrap_or(root);
        let result = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
        result.map_err(|error| format!("{} cannot be written: {error}", path.display()))
    };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let results = serde_json::to_string_pretty(&results(contests)).map_err(|error| error.to_string())?;
    write(&target.join("arena.json"), &(results + "\n"))?;
    write(&root.join("docs/arena.md"), &page::page(contests, checks))?;
    for contest in contests {
        write(&root.join(format!("docs/arena/{}.svg", contest.place.name)), &chart::chart(contest))?;
    }
    Ok(())
}

/// The scenarios that are judged.
pub(crate) fn results(contests: &[Contest]) -> Value {
    let scenario = |contest: &Contest| {
        json!({
            "name": contest.place.name,
            "best_fixed": contest.reference.limit,
            "controllers": contest.scores.iter().map(controller).collect::<Vec<_>>(),
        })
    };
    let judged = contests.iter().filter(|contest| contest.place.is_judged);
    json!({ "scenarios": judged.map(scenario).collect::<Vec<_>>() })
}

fn controller(score: &Score) -> Value {
    json!({
        "name": score.kind.as_str(),
        "start": score.start.name(),
        "mean": score.mean(),
        "worst": score.worst(),
        "time_to_95": score.time_to_95,
        "top_success": score.top_success,
    })
}
