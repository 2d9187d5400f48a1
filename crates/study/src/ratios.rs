use crate::sampler::Entry;
use measure::Sample;
use measure::stats::{Ratio, ratio_interval, ratio_of_estimates};

/// With fewer pairs, the variance pooled over all points is used.
const FEW_PAIRS: usize = 5;

pub(crate) fn ratio(before: &Entry, after: &Entry) -> Option<Ratio> {
    let of_one_run =
        || exact(before, after, before.samples().first()?.iops(), after.samples().first()?.iops());
    of_one_run().or_else(|| iops_ratio(before, after))
}

pub(crate) fn exact(before: &Entry, after: &Entry, a: f64, b: f64) -> Option<Ratio> {
    let ratio = b / a;
    let exact = before.repeats_exactly() && after.repeats_exactly() && a > 0.0;
    exact.then_some(Ratio { median: ratio, mean: ratio, low: ratio, high: ratio, n_pairs: 1 })
}

pub(crate) fn iops_ratio(before: &Entry, after: &Entry) -> Option<Ratio> {
    let rates = |entry: &Entry| -> Vec<f64> { entry.samples().iter().map(Sample::iops).collect() };
    let (a, b) = (rates(before), rates(after));
    let shared = a.len().min(b.len());
    let few = shared < FEW_PAIRS && before.has_common_spread() && after.has_common_spread();
    if shared > 1 && !few {
        ratio_interval(&a[..shared], &b[..shared])
    } else {
        ratio_of_estimates(before.estimate()?, after.estimate()?)
    }
}
