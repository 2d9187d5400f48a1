use super::{Comparison, Difference, Verdict};
use crate::csv::{Table, number};

/// RFC 4180: a line per question and measure, in the unit that ends the measure's name.
pub fn comparison_csv(comparison: &Comparison) -> String {
    let mut table = Table::new(&[
        "question",
        "kind",
        "measure",
        "a",
        "b",
        "change_percent",
        "change_percent_low_95",
        "change_percent_high_95",
        "p",
        "p_holm",
        "detectable_percent",
        "verdict",
        "runs_a",
        "runs_b",
    ]);
    for one in &comparison.differences {
        table.row(row(one));
    }
    table.0
}

fn row(one: &Difference) -> [String; 14] {
    let runs = |runs: &[f64]| runs.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
    let interval = one.interval_95_percent;
    let verdict = match one.verdict {
        Verdict::Better => one.measure.words()[0],
        Verdict::Worse => one.measure.words()[1],
        Verdict::NoDifference => "no difference",
        Verdict::Untold => "",
        Verdict::Changing => "rate changed",
    };
    [
        one.label.clone(),
        one.kind.clone(),
        one.measure.name().into(),
        number(Some(one.a)),
        number(Some(one.b)),
        number(Some(one.change_percent)),
        number(interval.map(|[low, _]| low)),
        number(interval.map(|[_, high]| high)),
        number(one.p),
        number(one.p_holm),
        number(one.detectable_percent),
        verdict.into(),
        runs(&one.runs_a),
        runs(&one.runs_b),
    ]
}
