//! What a tuning says.

use crate::document::{Outcome, Tried, Tuning};
use results::compare::Difference;

/// The conclusions, the combination first.
pub(crate) fn sentences(tuning: &Tuning) -> Vec<String> {
    let mut said = Vec::new();
    match &tuning.combination {
        Some(one) if one.outcome == Outcome::Helps => said.push(format!("Worth keeping: {}", with_rates(one))),
        Some(one) => said.push(format!(
            "What helped alone did not hold when it was tried once more ({}, {}): nothing is worth changing.",
            one.to,
            one.outcome.word()
        )),
        None if tuning.tried.iter().any(|one| one.outcome == Outcome::Helps) => {
            said.push("Some changes helped; they were not tried together, so nothing is said of what to keep.".into());
        }
        None if tuning.tried.iter().any(|one| one.outcome == Outcome::Undecided) => {
            said.push(
                "Nothing was found that is worth changing; some questions were still open (--budget gives more)."
                    .into(),
            );
        }
        None if tuning.tried.iter().all(|one| one.outcome == Outcome::Failed) => {
            said.push("Nothing could be tried.".into());
        }
        None => said.push("Nothing that was tried is worth changing.".into()),
    }
    let count = |outcome: Outcome| tuning.tried.iter().filter(|one| one.outcome == outcome).count();
    let counts: Vec<String> = [
        (Outcome::Helps, "faster"),
        (Outcome::NoDifference, "without difference"),
        (Outcome::NoGain, "without gain"),
        (Outcome::Worse, "slower"),
        (Outcome::Mixed, "faster for one workload and slower for another"),
        (Outcome::Undecided, "undecided"),
        (Outcome::Failed, "not possible"),
    ]
    .into_iter()
    .filter(|(outcome, _)| count(*outcome) > 0)
    .map(|(outcome, words)| format!("{} {words}", count(outcome)))
    .collect();
    let all = tuning.tried.len();
    let values = if all == 1 { "value" } else { "values" };
    said.push(format!("Of {all} {values} tried: {}.", counts.join(", ")));
    said
}

/// A change with what it did to the rate of each workload.
fn with_rates(one: &Tried) -> String {
    let from = if one.knob == "combination" {
        format!("{} in place of {}", one.to, one.from)
    } else {
        format!("{} of {}: {} in place of {}", one.knob, one.of, one.to, one.from)
    };
    let rates: Vec<String> = one.rates().map(rate).collect();
    format!("{from}. {}.", rates.join("; "))
}

fn rate(one: &Difference) -> String {
    let interval = one.interval_95_percent.map_or(String::new(), |[low, high]| {
        if low == high { " exactly".into() } else { format!(" (95 % interval {low:+.1} to {high:+.1} %)") }
    });
    format!("{}: {:+.1} %{interval}", one.label, one.change_percent)
}
