//! A study's doubts.

use results::{Answer, PeakDoubt};

/// Merges doubts about several unsettled peaks.
pub(crate) fn merged(answer: &Answer) -> Vec<String> {
    let unsettled: Vec<&PeakDoubt> = answer
        .peak_doubts
        .iter()
        .filter(|doubt| matches!(doubt, PeakDoubt::NotSettled { .. }))
        .collect();
    let together = (unsettled.len() > 1).then(|| {
        let each = unsettled.iter().filter_map(|doubt| match doubt {
            PeakDoubt::NotSettled { op, percent } => Some(format!("{op} ± {percent:.0} %")),
            _ => None,
        });
        let each: Vec<String> = each.collect();
        format!("the peaks are not settled: {} (--budget gives more time)", each.join(", "))
    });
    let Some(together) = together else { return answer.doubts.clone() };
    let single: Vec<String> = unsettled.iter().map(ToString::to_string).collect();
    let mut together = Some(together);
    let mut merged = Vec::new();
    for doubt in &answer.doubts {
        if single.contains(doubt) {
            merged.extend(together.take());
        } else {
            merged.push(doubt.clone());
        }
    }
    merged
}
