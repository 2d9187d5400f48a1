use super::cause::subject;
use super::{
    Bottleneck, Cause, CheckChange, ExcludedBy, Exclusion, Expected, Limit, LimitChange,
    LimitTrial, Meaning,
};
use super::{PlainWrite, Refutation};
use machine::units::{show_change, show_change_range, show_rate, show_size};
use std::fmt;

const MAX_SHOWN_RATIO: f64 = 100.0;

impl Limit {
    pub fn with_sentences(mut self) -> Limit {
        for trial in &mut self.trials {
            trial.change = trial.changed.as_ref().map(LimitChange::to_string).unwrap_or_default();
            trial.outcome = trial.words();
        }
        self.excluded = self.exclusions.iter().map(Exclusion::to_string).collect();
        self.would_refute = self.refutation.map(|one| one.to_string());
        self.sentence = self.clauses().join("; ");
        self
    }

    /// The cause, its trial, and its effect on a plain write.
    pub fn clauses(&self) -> Vec<String> {
        let Some(mut clauses) = self.short().map(|said| vec![said]) else {
            return vec![self.sentence.clone()];
        };
        if let Some(aside) = self.cause.as_ref().and_then(|cause| cause.aside(self)) {
            clauses[0] += &format!(" ({aside})");
        }
        clauses
            .extend(self.trials.iter().filter(|trial| trial.tests_verdict).map(LimitTrial::words));
        clauses.extend(self.plain_write.map(|held| self.held(held)));
        clauses
    }

    /// The cause without more figures; `None` for an earlier version's document.
    pub fn short(&self) -> Option<String> {
        let subject = subject(self);
        Some(match self.cause.as_ref()? {
            Cause::NotMeasured => format!("{subject} were not measured"),
            cause => format!("{subject} are limited by {}", cause.words(self)),
        })
    }

    fn held(&self, held: PlainWrite) -> String {
        match held {
            PlainWrite::Held { wait } => wait.words(),
            PlainWrite::Absorbed { returned_bytes_per_s, dirty_percent } => format!(
                "the page cache takes {} until the last write returns, as at most {dirty_percent:.0} % of the dirty pages at which \
                 the kernel holds a writer back are there: longer writes slow down to {}",
                show_rate(returned_bytes_per_s),
                self.throughput_bytes_per_s.map_or("the rate of the storage".into(), show_rate),
            ),
        }
    }
}

fn effect(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 0.05 { "no change".into() } else { show_change(percent) }
}

impl LimitTrial {
    /// An earlier version's document has only the text.
    fn words(&self) -> String {
        let (Some(changed), Some(meaning), Some(ratio)) =
            (&self.changed, self.meaning, self.iops_ratio)
        else {
            return self.outcome.clone();
        };
        let (effect, so) = (effect(ratio), meaning.words());
        match meaning {
            Meaning::Undecided => {
                let percent = |ratio: f64| (ratio.min(MAX_SHOWN_RATIO) - 1.0) * 100.0;
                let interval = self.iops_ratio_interval_95.unwrap_or([ratio; 2]).map(percent);
                format!("{changed}: {effect} ({}), {so}", show_change_range(interval))
            }
            Meaning::NotNumber => format!("{changed}: {effect} requests/s, {so}"),
            Meaning::NumberIsLimit
            | Meaning::SizeIsFree
            | Meaning::SameProcessorTime
            | Meaning::SizeMattersLittle => {
                format!("{changed}: as many requests/s, {so}")
            }
            _ => format!("{changed}: {effect}, {so}"),
        }
    }
}

impl Meaning {
    fn words(self) -> &'static str {
        match self {
            Meaning::Undecided => "too uncertain to decide",
            Meaning::HeadsMove => "because the heads move between the threads",
            Meaning::NotLatency => "so not latency",
            Meaning::NotThread => "so not the thread",
            Meaning::NotReadAhead => "so not read-ahead",
            Meaning::NotNumber => "so not their number",
            Meaning::NumberIsLimit => "so their number is the limit",
            Meaning::SizeIsFree => "so their size takes next to no time",
            Meaning::SameProcessorTime => "because each costs the processor about the same",
            Meaning::SizeMattersLittle => "so their size matters little",
            Meaning::Latency => "so latency was a limit",
            Meaning::DeeperIsCheaper => "because a deeper queue makes each request cheaper",
            Meaning::Thread => "so the thread was a limit",
            Meaning::LatencyOfOne => "so latency was a limit: one thread works while another waits",
            Meaning::ReadAheadEach => "because each thread has read-ahead of its own",
            Meaning::MoreBeforeFlush => "because more is written before the flush",
            Meaning::WorkWhileWaiting => "because one thread works while another waits",
            Meaning::ReadAhead => "so read-ahead was a limit",
            Meaning::PartlyReadAhead => "so read-ahead has a part in it",
            Meaning::FileSystem => "so the file system was a limit",
            Meaning::NotFileSystem => "so not the file system",
            Meaning::OneFile => "so what one file's writers share was a limit",
            Meaning::NotOneFile => "so not what one file's writers share",
        }
    }
}

impl fmt::Display for LimitChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: &u32| show_size(u64::from(*bytes));
        match self {
            LimitChange::Deeper { from, to } => write!(f, "{to} outstanding instead of {from}"),
            LimitChange::Wider => f.write_str("one more thread"),
            LimitChange::Resized { from_bytes, to_bytes } => {
                write!(f, "requests of {} instead of {}", size(to_bytes), size(from_bytes))
            }
            LimitChange::Hinted => f.write_str("the sequential hint"),
            LimitChange::Below { op, device } => write!(f, "the same {op}s of {device} itself"),
            LimitChange::TwoFiles => f.write_str("two files instead of one"),
        }
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.by, self.what) {
            (ExcludedBy::Advertised { layer, percent, admits_bytes_per_s }, _) => {
                write!(f, "{layer}: {percent:.0} % of its {}", show_rate(*admits_bytes_per_s))
            }
            (ExcludedBy::Use { percent, .. }, Bottleneck::Processor) => {
                write!(f, "processors: {percent:.0} % busy")
            }
            (ExcludedBy::Use { percent, .. }, Bottleneck::Generator) => {
                write!(f, "the generator: {percent:.0} % of its ceiling")
            }
            (ExcludedBy::Use { percent, mean_depth: Some(depth) }, what) => {
                write!(
                    f,
                    "the {}: busy {percent:.0} % with {depth:.1} requests in it",
                    what.words()
                )
            }
            (ExcludedBy::Use { percent, mean_depth: None }, what) => {
                write!(f, "the {}: {percent:.0} % busy", what.words())
            }
            (ExcludedBy::Trial { change, iops_ratio }, what) => {
                write!(f, "the {}: {change}: {}", what.words(), effect(*iops_ratio))
            }
        }
    }
}

impl fmt::Display for Refutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = match self.change {
            CheckChange::DoubleDepth => "double the queue depth",
            CheckChange::AddThread => "add a thread",
            CheckChange::ChangeSize => "change the request size",
            CheckChange::ReadAhead => "give the sequential hint, or double the read-ahead",
            CheckChange::LeaveOutFlush => "leave out the flush",
            CheckChange::OtherFileSystem => "use the same files on another file system",
            CheckChange::DirectRequests => "use direct requests, which copy nothing",
            CheckChange::DeviceItself => "send the same requests to the device itself",
            CheckChange::DoubleThreads => "double the threads",
            CheckChange::ThreadWithFile => "add a thread that writes and flushes a file of its own",
            CheckChange::SeveralOutstanding => "keep several direct requests outstanding",
        };
        let longer = if self.longer { " and measure longer (--budget)" } else { "" };
        let expected = match self.expected {
            Expected::Gain => "the rate should rise",
            Expected::NoGain => "the rate should stay the same",
            Expected::Loss => "the rate should fall",
            Expected::SameNumber => "requests per second should stay the same",
        };
        write!(f, "to check, {change}{longer}: {expected}")
    }
}
