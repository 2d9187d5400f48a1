use machine::units::{show_capacity, show_rate, show_time};
use machine::{Figure, Warning};
use measure::Course;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the rate changed from the first run of a point to its last: its mean is the rate of no
/// phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateChange {
    /// The rates in the order of time: two or more.
    pub phases: Vec<RatePhase>,
    /// The rate slid from that of the first phase to that of the last; otherwise it stepped.
    pub gradual: bool,
    /// The change was seen within a run, not between runs.
    pub within_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatePhase {
    /// Start of the phase, in seconds since the command began.
    pub from_s: f64,
    /// Bytes that this point's runs had moved before the phase.
    pub after_bytes: u64,
    pub throughput_bytes_per_s: f64,
}

impl RateChange {
    /// `bytes` is the mean size of a request.
    pub fn of(course: &Course, bytes: f64) -> RateChange {
        let phase = |phase: &measure::RatePhase| RatePhase {
            from_s: phase.from_ns as f64 / 1e9,
            after_bytes: phase.after_bytes,
            throughput_bytes_per_s: phase.iops * bytes,
        };
        RateChange {
            phases: course.phases.iter().map(phase).collect(),
            gradual: course.gradual,
            within_run: course.within,
        }
    }

    /// Lowest and highest, in bytes per second.
    pub fn range(&self) -> [f64; 2] {
        let rates = self.phases.iter().map(|phase| phase.throughput_bytes_per_s);
        [rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max)]
    }

    /// `19.1 MiB/s, then 1.9 MiB/s from 4.2 s on (after 76 MiB)`.
    pub fn rates(&self) -> Warning {
        let mut said = Warning::from("");
        for (number, phase) in self.phases.iter().enumerate() {
            let [rate, at, bytes] =
                [phase.throughput_bytes_per_s, phase.from_s * 1e9, phase.after_bytes as f64];
            let rate = Figure::new(rate, show_rate(rate));
            let at = Figure::new(at, show_time(at));
            let after = Figure::new(bytes, show_capacity(bytes));
            said = said.then(match (number, self.gradual) {
                (0, true) => Warning::of("{} at {}", [rate, at]),
                (0, false) => Warning::of("{}", [rate]),
                (_, true) => Warning::of(", slid to {} by {} (after {})", [rate, at, after]),
                (_, false) => Warning::of(", then {} from {} on (after {})", [rate, at, after]),
            });
        }
        said
    }

    pub fn warning(&self) -> Warning {
        let within = if self.within_run { " within a run" } else { "" };
        let first_last = self.phases.first().zip(self.phases.last());
        let fell =
            first_last.is_some_and(|(a, b)| b.throughput_bytes_per_s < a.throughput_bytes_per_s);
        let cause = match (self.within_run, self.gradual, fell) {
            (true, false, true) => ": a burst credit or a cache ran out, or a limit changed",
            _ => "",
        };
        Warning::from(format!("the rate changed{within}: "))
            .then(self.rates())
            .then(format!("{cause}; no single mean describes it"))
    }
}
