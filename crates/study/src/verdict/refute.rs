//! Each verdict's prediction for each trial, and whether a trial refuted it.

use super::evidence::{Ask, Evidence, Named, gains, is_flat};
use crate::case::{GAIN, SAME, Variant};
use measure::stats::Ratio;
use results::{
    Bottleneck, Cause, CheckChange, ExcludedBy, Exclusion, Expected, Meaning, Refutation,
};
use workload::Pattern;

/// Up to this many, one more makes a visible difference.
const FEW_THREADS: u32 = 4;

pub(super) struct Found {
    pub(super) cause: Named,
    pub(super) refuted: Vec<Exclusion>,
}

pub(super) fn number_changes(ratio: &Ratio) -> Option<bool> {
    if ratio.high < 1.0 - SAME || ratio.low > 1.0 + SAME {
        return Some(true);
    }
    (ratio.low >= 1.0 - SAME && ratio.high <= 1.0 + SAME).then_some(false)
}

impl<'b> Evidence<'b> {
    pub(super) fn meaning(&self, what: Bottleneck, variant: Variant, ratio: &Ratio) -> Meaning {
        use Bottleneck as B;
        let gains = gains(ratio);
        let decided = match variant {
            Variant::Resized => number_changes(ratio).is_some(),
            _ => gains || is_flat(ratio),
        };
        if !decided {
            return Meaning::Undecided;
        }
        if variant == Variant::Wider && self.moves_heads() && ratio.high < 1.0 - SAME {
            return Meaning::HeadsMove;
        }
        match (variant, gains) {
            (Variant::Deeper, false) => Meaning::NotLatency,
            (Variant::Wider, false) => Meaning::NotThread,
            (Variant::Hinted, false) => Meaning::NotReadAhead,
            (Variant::Resized, _) if number_changes(ratio) == Some(true) => Meaning::NotNumber,
            (Variant::Resized, _) => match what {
                B::DeviceIops => Meaning::NumberIsLimit,
                B::Latency => Meaning::SizeIsFree,
                B::Thread | B::Processor | B::Generator => Meaning::SameProcessorTime,
                _ => Meaning::SizeMattersLittle,
            },
            (Variant::Deeper, true) if what == B::Latency => Meaning::Latency,
            (Variant::Deeper, true) => Meaning::DeeperIsCheaper,
            (Variant::Wider, true) => match what {
                B::Thread | B::Generator => Meaning::Thread,
                B::Latency => Meaning::LatencyOfOne,
                B::ReadAhead => Meaning::ReadAheadEach,
                B::Flush => Meaning::MoreBeforeFlush,
                _ => Meaning::WorkWhileWaiting,
            },
            (Variant::Hinted, true) if what == B::ReadAhead => Meaning::ReadAhead,
            (Variant::Hinted, true) => Meaning::PartlyReadAhead,
        }
    }

    fn moves_heads(&self) -> bool {
        self.workload.pattern == Pattern::Seq && self.facts.is_rotating()
    }

    /// The decisive trial first, each with the outcome if the verdict is true.
    fn tests(&self, what: Bottleneck) -> Vec<(Variant, Expected)> {
        use Bottleneck as B;
        use Expected::{Gain, NoGain, SameNumber};
        // For buffered requests at depth 1, another thread is the only way to a greater depth.
        let deeper = self.workload.depth > 1 || self.workload.buffering.is_direct();
        let more = |expected| {
            let both = [(Variant::Deeper, expected), (Variant::Wider, expected)];
            both.into_iter().filter(|(variant, _)| deeper || *variant == Variant::Wider).collect()
        };
        match what {
            // Seeks for another thread prove nothing about the first one's wait.
            B::Latency if !deeper && self.moves_heads() => Vec::new(),
            B::Latency => more(Gain),
            // One more of many threads is a small change, and a final flush belongs to one thread,
            // however many wrote.
            B::Thread | B::Generator
                if self.workload.threads > FEW_THREADS || self.share_until_return() < 0.5 =>
            {
                Vec::new()
            }
            B::Thread | B::Generator => vec![(Variant::Wider, Gain)],
            B::ReadAhead => vec![(Variant::Hinted, Gain)],
            B::DeviceIops => vec![(Variant::Resized, SameNumber)],
            B::Processor => vec![(Variant::Wider, NoGain)],
            // Writers share a flush, so it takes the same time with more of them, and one thread's
            // copy does not slow another's.
            B::Flush | B::Memory | B::Unknown => Vec::new(),
            // Tested without it, or on two files: see [`crate::other_target`].
            B::FileSystem => Vec::new(),
            _ => more(NoGain),
        }
    }

    /// The gain that utilisation allows. Disk heads gain more: with more requests they pick the
    /// nearest.
    fn room(&self, what: Bottleneck) -> f64 {
        match self.numbers.achieved.resources.first() {
            Some(_) if what == Bottleneck::Media && self.facts.is_rotating() => f64::INFINITY,
            Some(first) => 100.0 / first.busy_percent * (1.0 + SAME / 2.0),
            None => 1.0,
        }
    }

    pub(super) fn refuted(&self, what: Bottleneck) -> Option<ExcludedBy> {
        let against = |&(variant, expected): &(Variant, Expected)| {
            let ratio = self.ratio(variant)?;
            let refutes = match expected {
                Expected::Gain => is_flat(&ratio),
                Expected::NoGain => ratio.low >= GAIN.max(self.room(what)),
                Expected::SameNumber => number_changes(&ratio) == Some(true),
                // No trial tests that.
                Expected::Loss => false,
            };
            let (_, after) = self.case.trials.iter().find(|(one, _)| *one == variant)?;
            let change = variant.change(self.workload, &self.points[*after].workload);
            refutes.then_some(ExcludedBy::Trial { change, iops_ratio: ratio.mean })
        };
        // The first trial that ran decides.
        self.tests(what)
            .iter()
            .find(|(variant, _)| self.ratio(*variant).is_some())
            .and_then(against)
    }

    /// `reported` causes come first: they are more certain than a trial.
    pub(super) fn first(&self, reported: &[Ask<'b>], asks: &[Ask<'b>]) -> Found {
        let mut refuted: Vec<Exclusion> = Vec::new();
        let asked =
            reported.iter().map(|ask| (ask, true)).chain(asks.iter().map(|ask| (ask, false)));
        for (ask, is_reported) in asked {
            let Some(cause) = ask(self) else { continue };
            let what = cause.0;
            match self.refuted(what).filter(|_| !is_reported) {
                Some(by) if refuted.iter().all(|one| one.what != what) => {
                    refuted.push(Exclusion { what, by })
                }
                Some(_) => {}
                None => return Found { cause, refuted },
            }
        }
        let not = refuted.iter().map(|one| one.what).collect();
        Found { cause: (Bottleneck::Unknown, Cause::Unidentified { refuted: not }), refuted }
    }

    pub(super) fn tested(&self, what: Bottleneck) -> Option<Variant> {
        let made = |variant: &Variant| self.case.trials.iter().any(|(one, _)| one == variant);
        let tests = self.tests(what).into_iter().map(|(variant, _)| variant);
        tests.filter(made).find(|variant| self.ratio(*variant).is_some())
    }

    /// `None` if the experiment ran and was decisive.
    pub(super) fn would_refute(&self, what: Bottleneck) -> Option<Refutation> {
        let tests = self.tests(what);
        let decided = |&(variant, _): &(Variant, Expected)| {
            self.ratio(variant).is_some_and(|ratio| match variant {
                Variant::Resized => number_changes(&ratio).is_some(),
                _ => gains(&ratio) || is_flat(&ratio),
            })
        };
        if tests.iter().any(decided)
            || (what == Bottleneck::FileSystem && self.case.other_target.is_some())
        {
            return None;
        }
        let Some(&(variant, expected)) = tests.first() else {
            let (change, expected) = match what {
                Bottleneck::Flush => (CheckChange::LeaveOutFlush, Expected::Gain),
                Bottleneck::Memory if self.facts.in_memory => {
                    (CheckChange::OtherFileSystem, Expected::Loss)
                }
                Bottleneck::Memory => (CheckChange::DirectRequests, Expected::Gain),
                Bottleneck::FileSystem => (CheckChange::DeviceItself, Expected::Gain),
                Bottleneck::Thread if self.workload.threads > 1 => {
                    (CheckChange::DoubleThreads, Expected::Gain)
                }
                Bottleneck::Thread => (CheckChange::ThreadWithFile, Expected::Gain),
                Bottleneck::Latency => (CheckChange::SeveralOutstanding, Expected::Gain),
                _ => return None,
            };
            return Some(Refutation { change, expected, longer: false });
        };
        let change = match variant {
            Variant::Deeper => CheckChange::DoubleDepth,
            Variant::Wider => CheckChange::AddThread,
            Variant::Resized => CheckChange::ChangeSize,
            Variant::Hinted => CheckChange::ReadAhead,
        };
        Some(Refutation { change, expected, longer: self.ratio(variant).is_some() })
    }
}
