//! Predictions of each verdict for each trial: the experiment that would refute it, and whether it
//! did.

use super::advertised::words;
use super::causes::turns;
use super::{Ask, Cause, Evidence, GAIN, SAME};
use crate::trial::Variant;
use measure::stats::Ratio;
use results::Bottleneck;
use workload::Pattern;

/// Ratios that may exceed this are capped in the text.
const MAX_SHOWN_RATIO: f64 = 100.0;

/// Up to this many threads, one more still makes a visible difference.
const FEW_THREADS: u32 = 4;

const FASTER: &str = "the rate should rise";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Gain,
    NoGain,
    SameNumber,
}

/// The verdict, and the causes that held until a trial refuted them.
pub(super) struct Found {
    pub(super) cause: Cause,
    pub(super) refuted: Vec<String>,
}

fn gains(ratio: &Ratio) -> bool {
    ratio.mean >= GAIN && ratio.low > 1.0
}

/// `+4.5 %`, or that nothing changed.
pub(super) fn show_change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 0.05 { "no change".into() } else { format!("{percent:+.1} %") }
}

/// Whether a change certainly gains almost nothing.
pub(super) fn is_flat(ratio: &Ratio) -> bool {
    !gains(ratio) && ratio.high <= GAIN
}

impl<'b> Evidence<'b> {
    /// `+0.4 %, so not latency`: the result of a trial, and its consequence for the verdict `what`.
    pub(super) fn outcome(&self, what: Bottleneck, variant: Variant, ratio: &Ratio) -> String {
        let gains = gains(ratio);
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let change = show_change(ratio.mean);
        if variant != Variant::Resized && !gains && !is_flat(ratio) {
            let range = format!("{:+.0} to {:+.0} %", percent(ratio.low), percent(ratio.high.min(MAX_SHOWN_RATIO)));
            return format!("{change} ({range}), too uncertain to decide");
        }
        if variant == Variant::Wider && self.moves_heads() && ratio.high < 1.0 - SAME {
            return format!("{change}, because the heads move between the threads");
        }
        let so = match (variant, gains) {
            (Variant::Deeper, false) => "so not latency",
            (Variant::Wider, false) => "so not the thread",
            (Variant::Hinted, false) => "so not read-ahead",
            (Variant::Resized, _) if (ratio.mean - 1.0).abs() <= SAME => {
                return match what {
                    Bottleneck::DeviceIops => "as many requests/s, so their number is the limit",
                    Bottleneck::Latency => "as many requests/s, so their size takes next to no time",
                    Bottleneck::Thread | Bottleneck::Processor | Bottleneck::Generator => {
                        "as many requests/s, because each costs the processor about the same"
                    }
                    _ => "as many requests/s, so their size matters little",
                }
                .into();
            }
            (Variant::Resized, _) => return format!("{change} requests/s, so not their number"),
            (Variant::Deeper, true) if what == Bottleneck::Latency => "so latency was a limit",
            (Variant::Deeper, true) => "because a deeper queue makes each request cheaper",
            (Variant::Wider, true) => match what {
                Bottleneck::Thread | Bottleneck::Generator => "so the thread was a limit",
                Bottleneck::Latency => "so latency was a limit: one thread works while another waits",
                Bottleneck::ReadAhead => "because each thread has read-ahead of its own",
                Bottleneck::Flush => "because more is written before the flush",
                _ => "because one thread works while another waits",
            },
            (Variant::Hinted, true) if what == Bottleneck::ReadAhead => "so read-ahead was a limit",
            (Variant::Hinted, true) => "so read-ahead has a part in it",
        };
        format!("{change}, {so}")
    }

    /// Another thread accesses another area, so the disk's heads seek between the two.
    fn moves_heads(&self) -> bool {
        self.workload.pattern == Pattern::Seq && turns(self.facts)
    }

    /// The trials that test a verdict, decisive one first, with their outcome if the verdict is
    /// true.
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
            B::Thread | B::Generator if self.workload.threads > FEW_THREADS || self.share_until_return() < 0.5 => {
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

    /// Maximum further gain of a component at its utilisation. Disk heads gain more: with more
    /// requests they pick the nearest.
    fn room(&self, what: Bottleneck) -> f64 {
        match self.numbers.achieved.resources.first() {
            Some(_) if what == Bottleneck::Media && turns(self.facts) => f64::INFINITY,
            Some(first) => 100.0 / first.busy_percent * (1.0 + SAME / 2.0),
            None => 1.0,
        }
    }

    pub(super) fn refuted(&self, what: Bottleneck) -> Option<String> {
        let against = |&(variant, expected): &(Variant, Expected)| {
            let ratio = self.ratio(variant)?;
            let refutes = match expected {
                Expected::Gain => is_flat(&ratio),
                Expected::NoGain => ratio.low >= GAIN.max(self.room(what)),
                Expected::SameNumber => (ratio.mean - 1.0).abs() > SAME,
            };
            let (_, after) = self.case.trials.iter().find(|(one, _)| *one == variant)?;
            let change = variant.words(self.workload, &self.points[*after].workload);
            refutes.then(|| format!("{change}: {}", show_change(ratio.mean)))
        };
        // The first trial that ran decides.
        self.tests(what).iter().find(|(variant, _)| self.ratio(*variant).is_some()).and_then(against)
    }

    /// The first cause that holds and that no trial refutes. The `reported` causes are reported or
    /// counted by the system, which is more certain than a trial through a throttle's bursts or
    /// with few runs.
    pub(super) fn first(&self, reported: &[Ask<'b>], asks: &[Ask<'b>]) -> Found {
        let told_of = |what: &(Bottleneck, String)| format!("the {}: {}", words(what.0), what.1);
        let mut refuted: Vec<(Bottleneck, String)> = Vec::new();
        let asked = reported.iter().map(|ask| (ask, true)).chain(asks.iter().map(|ask| (ask, false)));
        for (ask, is_reported) in asked {
            let Some(cause) = ask(self) else { continue };
            match self.refuted(cause.0).filter(|_| !is_reported) {
                Some(trial) if refuted.iter().all(|(what, _)| *what != cause.0) => refuted.push((cause.0, trial)),
                Some(_) => {}
                None => return Found { cause, refuted: refuted.iter().map(told_of).collect() },
            }
        }
        let shown = self.shown();
        let not: Vec<String> = refuted.iter().map(|(what, _)| format!("not the {}", words(*what))).collect();
        let not = if not.is_empty() { String::new() } else { format!(" ({})", not.join(", ")) };
        let cause = (Bottleneck::Unknown, format!("an unidentified cause at {shown}{not}"));
        Found { cause, refuted: refuted.iter().map(told_of).collect() }
    }

    pub(super) fn tested(&self, what: Bottleneck) -> Option<String> {
        if what == Bottleneck::FileSystem
            && let Some(trial) = self.other_target()
        {
            return Some(trial.outcome);
        }
        let tests = self.tests(what);
        let mut made = tests.iter().filter_map(|(variant, _)| {
            let one = self.case.trials.iter().find(|(one, _)| one == variant)?;
            Some(self.trial(what, *one).outcome).filter(|outcome| !outcome.is_empty())
        });
        made.next()
    }

    /// The experiment that would refute a verdict; `None` if it ran and was decisive, or without a
    /// verdict.
    pub(super) fn would_refute(&self, what: Bottleneck) -> Option<String> {
        let tests = self.tests(what);
        let decided = |&(variant, _): &(Variant, Expected)| {
            let open = |ratio: &Ratio| variant != Variant::Resized && !gains(ratio) && !is_flat(ratio);
            self.ratio(variant).is_some_and(|ratio| !open(&ratio))
        };
        if tests.iter().any(decided) || (what == Bottleneck::FileSystem && self.case.other_target.is_some()) {
            return None;
        }
        let Some(&(variant, expected)) = tests.first() else {
            let (change, expected) = match what {
                Bottleneck::Flush => ("leave out the flush", FASTER),
                Bottleneck::Memory if self.facts.in_memory => {
                    ("use the same files on another file system", "the rate should fall")
                }
                Bottleneck::Memory => ("use direct requests, which copy nothing", FASTER),
                Bottleneck::FileSystem => ("send the same requests to the device itself", FASTER),
                Bottleneck::Thread if self.workload.threads > 1 => ("double the threads", FASTER),
                Bottleneck::Thread => ("add a thread that writes and flushes a file of its own", FASTER),
                Bottleneck::Latency => ("keep several direct requests outstanding", FASTER),
                _ => return None,
            };
            return Some(format!("to check, {change}: {expected}"));
        };
        let change = match variant {
            Variant::Deeper => "double the queue depth",
            Variant::Wider => "add a thread",
            Variant::Resized => "change the request size",
            Variant::Hinted => "give the sequential hint, or double the read-ahead",
        };
        let expected = match expected {
            Expected::Gain => FASTER,
            Expected::NoGain => "the rate should stay the same",
            Expected::SameNumber => "requests per second should stay the same",
        };
        let longer = if self.ratio(variant).is_some() { " and measure longer (--budget)" } else { "" };
        Some(format!("to check, {change}{longer}: {expected}"))
    }
}
