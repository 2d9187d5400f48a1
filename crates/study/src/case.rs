//! Trials that distinguish between bottlenecks.

use crate::context::StudyContext;
use crate::other_target::OtherTargetTrial;
use crate::ratios::ratio;
use crate::sampler::Entry;
use machine::{Hint, MAX_DEPTH};
use measure::stats::Ratio;
pub(crate) use results::{GAIN, SAME};
use results::{LimitChange, LimitOf};
use workload::{OpKind, Workload};

/// Of requests per second: a loss below the first, a gain from the second on.
const VERDICT_RATIOS: [f64; 2] = [1.0 - SAME, GAIN];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Gains if request latency is the limit.
    Deeper,
    /// Gains if the thread is the limit.
    Wider,
    /// The request rate stays if that is the limit.
    Resized,
    /// Gains if read-ahead is the limit.
    Hinted,
}

impl Variant {
    pub(crate) fn of(self, base: &Workload, setting: &StudyContext) -> Option<Workload> {
        let changed = match self {
            Variant::Deeper if base.depth == 1 && !base.buffering.is_direct() => return None,
            Variant::Deeper if base.engine.max_depth() > 1 => {
                let depth = base.depth.checked_mul(2).filter(|&depth| depth <= MAX_DEPTH)?;
                Workload { depth, ..base.clone() }
            }
            Variant::Deeper => {
                Workload { depth: base.depth * 2, engine: setting.deep_engine(), ..base.clone() }
            }
            Variant::Wider => Workload { threads: base.threads + 1, ..base.clone() },
            Variant::Resized => Workload { request_bytes: resized(base, setting)?, ..base.clone() },
            Variant::Hinted if base.writes() || base.buffering.is_direct() => return None,
            Variant::Hinted => Workload { hint: Hint::Sequential, ..base.clone() },
        };
        Some(changed)
    }

    pub(crate) fn change(self, before: &Workload, after: &Workload) -> LimitChange {
        match self {
            Variant::Deeper => {
                LimitChange::Deeper { from: before.outstanding(), to: after.outstanding() }
            }
            Variant::Wider => LimitChange::Wider,
            Variant::Resized => LimitChange::Resized {
                from_bytes: before.request_bytes,
                to_bytes: after.request_bytes,
            },
            Variant::Hinted => LimitChange::Hinted,
        }
    }
}

fn resized(base: &Workload, setting: &StudyContext) -> Option<u32> {
    let half = base.request_bytes / 2;
    if half >= 4096 && u64::from(half).is_multiple_of(setting.align().max(1)) {
        return Some(half);
    }
    base.request_bytes.checked_mul(2)
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) of: LimitOf,
    pub(crate) op: OpKind,
    pub(crate) base: usize,
    pub(crate) trials: Vec<(Variant, usize)>,
    pub(crate) other_target: Option<OtherTargetTrial>,
}

impl Case {
    pub(crate) fn ratio(&self, variant: Variant, entries: &[Entry]) -> Option<Ratio> {
        let (_, after) = self.trials.iter().find(|(one, _)| *one == variant)?;
        ratio(&entries[self.base], &entries[*after])
    }

    pub(crate) fn undecided<'a>(
        &'a self,
        entries: &'a [Entry],
    ) -> impl Iterator<Item = usize> + 'a {
        let open = |variant: Variant| {
            let verdict_ratios = if variant == Variant::Resized {
                &VERDICT_RATIOS[..]
            } else {
                &VERDICT_RATIOS[1..]
            };
            let holds = |ratio: Ratio| {
                verdict_ratios.iter().any(|turn| (ratio.low..=ratio.high).contains(turn))
            };
            self.ratio(variant, entries).is_none_or(holds)
        };
        self.trials.iter().filter(move |(variant, _)| open(*variant)).map(|(_, index)| *index)
    }

    pub(crate) fn renumbered(self, indices: &[Option<usize>]) -> Option<Case> {
        let trials = self
            .trials
            .into_iter()
            .filter_map(|(variant, index)| Some((variant, indices[index]?)))
            .collect();
        Some(Case { base: indices[self.base]?, trials, ..self })
    }
}
