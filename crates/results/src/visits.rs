//! A study measures important points again, some for longer.

use crate::point::{Point, StripeRecord};
use crate::question::Question;
use std::collections::BTreeMap;

pub(crate) fn visits(points: &[Point]) -> BTreeMap<(Question, Option<&StripeRecord>), Vec<usize>> {
    let mut visits = BTreeMap::<_, Vec<usize>>::new();
    let measured = points.iter().enumerate().filter(|(_, point)| point.numbers.is_some());
    for (index, point) in measured {
        let key = (Question::of(&point.workload), point.stripe.as_ref());
        visits.entry(key).or_default().push(index);
    }
    visits
}

/// Indices of the longest visit to each workload and stripe, such as a peak's confirmation, rising.
pub fn representatives(points: &[Point]) -> Vec<usize> {
    let measured_ns =
        |index: usize| points[index].numbers.as_ref().map(|one| one.achieved.measured_ns);
    let longest = |of_one: Vec<usize>| {
        // The first of equals.
        of_one.into_iter().rev().max_by_key(|&index| measured_ns(index))
    };
    let mut chosen: Vec<usize> = visits(points).into_values().filter_map(longest).collect();
    chosen.sort_unstable();
    chosen
}
