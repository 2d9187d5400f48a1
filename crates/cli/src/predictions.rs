//! What a simulated machine would do with one part more: what-if runs of the parts that limit it.

use predict::whatif::what_if;
use results::{Bottleneck, Limit, LimitOf, Predicted, Results};
use twin::Setup;
use workload::OpKind;

/// A gain below this is not worth the part.
const LEAST_GAIN: f64 = 1.05;

/// Adds to the answer what would change if the part that limits a peak were there once more. A change that the machine refuses is no
/// advice, and is left out.
pub(crate) fn add(setup: &Setup, results: &mut Results) {
    let Some(answer) = &mut results.answer else { return };
    let limits = answer.limits.iter().filter(|limit| limit.of == LimitOf::Peak);
    answer.predictions = limits.filter_map(|limit| predicted(setup, limit, &results.points)).collect();
}

fn predicted(setup: &Setup, limit: &Limit, points: &[results::Point]) -> Option<Predicted> {
    let (words, change) = match limit.what {
        Bottleneck::Bus => ("one more bus", format!("buses={}", setup.buses + 1)),
        Bottleneck::Media | Bottleneck::Device | Bottleneck::Link | Bottleneck::Throttle => {
            ("one more drive", format!("disks={}", setup.disks + 1))
        }
        Bottleneck::Latency if limit.op == OpKind::Write && !setup.wce => ("the drives' write caches", "wce=on".into()),
        _ => return None,
    };
    let workload = points.get(limit.point?)?.workload.workload.clone();
    let found = what_if(setup, &change, &[(workload.short(), workload)]).ok()?;
    let one = found.comparisons.first().filter(|one| one.gain >= LEAST_GAIN)?;
    Some(Predicted {
        change: words.into(),
        settings: change.clone(),
        op: limit.op,
        throughput_bytes_per_s: one.after.throughput_bytes_per_s,
        gain: one.gain,
        then: one.after.bottleneck.clone(),
        check: format!("halfpower twin whatif {} --set {change}", setup.name),
    })
}
