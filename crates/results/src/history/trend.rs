//! A measure of one question over time.

use measure::stats::{ChangePoint, change_points};

/// Smaller changes are ignored.
const MIN_SHARE: f64 = 0.02;

#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    pub entry: i64,
    pub began_unix_s: u64,
    pub fingerprint: String,
    pub version: String,
    pub question: String,
    pub label: String,
    pub value: f64,
    pub interval_95: Option<[f64; 2]>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    pub question: String,
    pub label: String,
    /// Oldest first.
    pub values: Vec<Occurrence>,
    pub changes: Vec<ChangePoint>,
    /// Readings whose fingerprint differs from the one before.
    pub machine_changes: Vec<usize>,
}

/// Those with most readings first.
pub fn trends(occurrences: Vec<Occurrence>) -> Vec<Trend> {
    let mut all: Vec<Trend> = Vec::new();
    for one in occurrences {
        match all.iter_mut().find(|trend| trend.question == one.question) {
            Some(trend) => trend.values.push(one),
            None => all.push(Trend {
                question: one.question.clone(),
                label: one.label.clone(),
                values: vec![one],
                changes: Vec::new(),
                machine_changes: Vec::new(),
            }),
        }
    }
    for trend in &mut all {
        let values: Vec<f64> = trend.values.iter().map(|one| one.value).collect();
        trend.changes = change_points(&values, MIN_SHARE);
        let changed =
            |place: &usize| trend.values[*place].fingerprint != trend.values[place - 1].fingerprint;
        trend.machine_changes = (1..values.len()).filter(changed).collect();
    }
    all.sort_by_key(|trend| std::cmp::Reverse(trend.values.len()));
    all
}
