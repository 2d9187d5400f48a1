use crate::document::{Outcome, Tried, Tuning};
use machine::units::{show_change, show_change_range};
use results::compare::Difference;

pub(crate) fn sentences(tuning: &Tuning) -> Vec<String> {
    let mut said = Vec::new();
    match &tuning.combination {
        Some(one) if one.outcome == Outcome::Helps => {
            said.push(format!("Worth keeping: {}", with_rates(one)));
            said.extend(better_alone(tuning, one));
        }
        Some(one) => said.push(format!(
            "The improvements did not hold when measured again together ({}, {}): change nothing.",
            one.to,
            one.outcome.word()
        )),
        None if tuning.tried.iter().any(|one| one.outcome == Outcome::Helps) => {
            said.push(
                "Some changes helped, but they were not tried together, so nothing is recommended."
                    .into(),
            );
        }
        None if tuning.tried.iter().any(|one| one.outcome == Outcome::Undecided) => {
            said.push(
                "No change is worth making so far; some trials are undecided (raise --budget)."
                    .into(),
            );
        }
        None if tuning.tried.iter().all(|one| one.outcome == Outcome::Failed) => {
            said.push("No trial could run.".into());
        }
        None => said.push("No tested change is worth making.".into()),
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

/// The two were measured at different times, so the sentence claims little.
fn better_alone(tuning: &Tuning, combination: &Tried) -> Option<String> {
    let helped = tuning.tried.iter().filter(|one| one.outcome == Outcome::Helps);
    let best = helped.max_by(|a, b| a.gain().total_cmp(&b.gain()))?;
    // With only one change the combination is the same change again.
    if combination.knob != "combination" || best.gain() <= combination.gain() {
        return None;
    }
    Some(format!(
        "{}={} gained more without the others ({}): try only it, with --knob, before you keep the others.",
        best.knob,
        best.to,
        best.rates().map(rate).collect::<Vec<_>>().join("; ")
    ))
}

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
        if low == high {
            " exactly".into()
        } else {
            format!(" (95 % interval {})", show_change_range([low, high]))
        }
    });
    format!("{}: {}{interval}", one.label, show_change(one.change_percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_change_that_beats_the_combination_is_named() {
        let tried = |knob: &str, percent: f64| {
            serde_json::json!({
                "knob": knob, "of": "", "from": "1", "to": "2", "outcome": "helps", "blocks": 5, "failed": null, "keep": [],
                "differences": [{
                    "question": "q", "label": "reads", "keys": [], "kind": "", "measure": "throughput", "a": 1.0, "b": 2.0,
                    "runs_a": [], "runs_b": [], "change_percent": percent, "interval_95_percent": null, "p": null,
                    "p_holm": null, "detectable_percent": null, "verdict": "better"
                }]
            })
        };
        let said = |together: f64| {
            let tuning: Tuning = serde_json::from_value(serde_json::json!({
                "schema": "", "program": {"name": "", "version": "", "arguments": []}, "target": "", "workloads": [],
                "plan": [], "left_out": [], "budget_ns": 1, "least_ns": null, "until_percent": 5.0, "worth_percent": 2.0,
                "took_ns": 1, "tried": [tried("request", 700.0), tried("depth", 50.0)],
                "combination": tried("combination", together), "keep": [], "prove": [], "sentences": [], "warnings": []
            }))
            .unwrap();
            sentences(&tuning).join(" ")
        };
        assert!(
            said(200.0).contains("request=2 gained more without the others (reads: 8.00 times)")
        );
        assert!(!said(800.0).contains("without the others"));
    }
}
