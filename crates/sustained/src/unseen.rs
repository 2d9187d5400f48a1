//! Questions for which a run's time or bytes were not enough.

use crate::document::{Recovery, StopReason, Unseen};
use crate::falls::falls;
use crate::judge::LAST_SHARE;
use crate::level::Level;
use crate::plan::{FIRST_REST_S, FIRST_SHARE};
use crate::series::SeriesPoint;
use machine::{TargetFacts, TargetKind};

/// When a run sees the end of a reported burst credit, if later than this.
fn credit_needs_s(facts: &TargetFacts, passed_s: f64) -> Option<f64> {
    let bursts = facts.layers.iter().flat_map(|layer| &layer.facts.bursts);
    let credit_s = bursts.map(|burst| burst.lasts_s).fold(0.0, f64::max);
    (credit_s > passed_s).then_some(credit_s * (1.0 + LAST_SHARE) / FIRST_SHARE)
}

fn whole_needs_s(facts: &TargetFacts, last: &Level) -> f64 {
    facts.size_bytes as f64 / last.bytes_per_s / FIRST_SHARE
}

/// When a run sees past the level, if known. A test file says nothing about the drive's size.
pub(crate) fn needed_s(facts: &TargetFacts, last: &Level, written: u64) -> Option<f64> {
    let whole = facts.kind != TargetKind::TestFile && written < facts.size_bytes;
    credit_needs_s(facts, last.to_s).or_else(|| whole.then(|| whole_needs_s(facts, last)))
}

pub(crate) fn unseen(
    facts: &TargetFacts,
    levels: &[Level],
    points: &[SeriesPoint],
    recoveries: &[Recovery],
    stopped: StopReason,
) -> Vec<Unseen> {
    let mut all = Vec::new();
    let Some(last) = levels.last() else { return all };
    let written = points.last().map_or(0, |point| point.from_bytes + point.bytes) as f64;
    let Some(falls) = falls(levels) else {
        if let Some(needs_s) = credit_needs_s(facts, last.to_s) {
            all.push(Unseen {
                what: "the end of the burst credit that the volume reports".into(),
                needs_s: Some(needs_s),
                needs_bytes: Some(needs_s * FIRST_SHARE * last.bytes_per_s),
            });
        } else if stopped == StopReason::MaxWritten && written >= facts.size_bytes as f64 {
            all.push(Unseen {
                what: format!(
                    "a cache larger than {}: give a larger --max-written",
                    machine::units::show_capacity(written)
                ),
                needs_s: None,
                needs_bytes: None,
            });
        } else if written < facts.size_bytes as f64 {
            let whole = facts.size_bytes as f64;
            all.push(Unseen {
                what: "what happens when all of the target has been written".into(),
                needs_s: Some(whole_needs_s(facts, last)),
                needs_bytes: Some(whole),
            });
        }
        return all;
    };
    if stopped != StopReason::Settled {
        let needs_s = falls.fast.to_s * (1.0 + LAST_SHARE);
        all.push(Unseen {
            what: "whether the rate falls again".into(),
            needs_s: Some(needs_s.max(last.from_s * (1.0 + LAST_SHARE)) / FIRST_SHARE),
            needs_bytes: Some(last.from_bytes as f64 + last.from_s * LAST_SHARE * last.bytes_per_s),
        });
    }
    // A drive may have a third stage, and collects garbage once all of it was written.
    if stopped == StopReason::Settled
        && facts.kind != TargetKind::TestFile
        && written < facts.size_bytes as f64
    {
        let left = facts.size_bytes as f64 - written;
        all.push(Unseen {
            what: "whether the rate falls again before all of the target has been written".into(),
            needs_s: Some((last.to_s + left / last.bytes_per_s) / FIRST_SHARE),
            needs_bytes: Some(facts.size_bytes as f64),
        });
    }
    if recoveries.iter().all(|one| one.cut_short || one.bytes() < falls.bytes() * 0.01) {
        let needs_s = last.to_s / FIRST_SHARE + 10.0 * FIRST_REST_S;
        all.push(Unseen {
            what: "how fast it recovers at rest".into(),
            needs_s: Some(needs_s),
            needs_bytes: Some(written + falls.bytes()),
        });
    }
    all
}
