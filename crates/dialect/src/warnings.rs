//! Warnings of many points, told once each.

use measure::Point;

/// The warnings of all points; those that differ only in their figures are told once, with the number of points that bear them.
pub(crate) fn gathered<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<String> {
    let mut kinds: Vec<(String, String, usize)> = Vec::new();
    for warning in points.filter_map(|point| point.numbers.as_ref()).flat_map(|numbers| &numbers.warnings) {
        let kind: String = warning.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
        match kinds.iter_mut().find(|(known, _, _)| *known == kind) {
            Some((_, _, count)) => *count += 1,
            None => kinds.push((kind, warning.clone(), 1)),
        }
    }
    let told =
        |(_, warning, count)| if count > 1 { format!("{warning} (the first of {count} points of which this is so)") } else { warning };
    kinds.into_iter().map(told).collect()
}
