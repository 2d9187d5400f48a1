//! Writes at full speed at the end of a study.

use machine::units::{show_capacity, show_rate, show_span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The share of another rate below which a rate is a lower level, not spread.
pub const FELL: f64 = 0.85;

/// Writes in sequence at full speed, after everything else of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LongWrites {
    pub request_bytes: u32,
    /// Requests outstanding.
    pub depth: u32,
    /// One or more stretches with a rate of their own, in order.
    pub levels: Vec<WriteLevel>,
    /// The study's best rate of writes, if it was measured in this state of the target or in one
    /// with more of its cache or credit left.
    pub peak_bytes_per_s: Option<f64>,
    /// All bytes written in this run.
    pub written_bytes: u64,
    /// Time spent in writing.
    pub took_s: f64,
    /// The limit on written bytes ended the run, not the time.
    pub out_of_bytes: bool,
    /// Length of a sustained run that shows what comes after, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_s: Option<f64>,
    /// The rate over time.
    pub course: Vec<WriteRate>,
}

/// A stretch with a rate of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteLevel {
    pub bytes_per_s: f64,
    pub bytes: f64,
    pub seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteRate {
    /// Time spent in writing before this, in seconds.
    pub at_s: f64,
    pub bytes_per_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lasting {
    AsFarAsSeen,
    Fell {
        fast: WriteLevel,
        slow_bytes_per_s: f64,
    },
    /// The study itself had used up what serves the peak.
    FellBefore {
        peak_bytes_per_s: f64,
        slow_bytes_per_s: f64,
    },
}

impl LongWrites {
    pub fn lasting(&self) -> Lasting {
        let Some(last) = self.levels.last() else { return Lasting::AsFarAsSeen };
        let slow_bytes_per_s = last.bytes_per_s;
        let first = self.levels.windows(2).find(|pair| {
            let [before, after] = [pair[0], pair[1]].map(|level| level.bytes_per_s);
            after < before * FELL && slow_bytes_per_s < before * FELL
        });
        match (first, self.peak_bytes_per_s) {
            (Some(pair), _) => Lasting::Fell { fast: pair[0], slow_bytes_per_s },
            (None, Some(peak_bytes_per_s)) if slow_bytes_per_s < peak_bytes_per_s * FELL => {
                Lasting::FellBefore { peak_bytes_per_s, slow_bytes_per_s }
            }
            _ => Lasting::AsFarAsSeen,
        }
    }

    pub fn command(&self) -> String {
        const HOUR_S: f64 = 3600.0;
        match self.needs_s {
            Some(seconds) if seconds >= 2.0 * HOUR_S => {
                format!("study --sustained --for {:.0}h", (seconds / HOUR_S).ceil())
            }
            Some(seconds) => format!("study --sustained --for {:.0}m", (seconds / 60.0).ceil()),
            None => "study --sustained".into(),
        }
    }
}

impl fmt::Display for LongWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.command();
        match self.lasting() {
            Lasting::AsFarAsSeen => {
                let rate = self.written_bytes as f64 / self.took_s.max(f64::MIN_POSITIVE);
                write!(
                    f,
                    "writes keep {} for at least {} ({}); ",
                    show_rate(rate),
                    show_capacity(self.written_bytes as f64),
                    show_span(self.took_s)
                )?;
                match self.needs_s {
                    Some(seconds) => {
                        write!(f, "what comes after needs about {}: {command}", show_span(seconds))
                    }
                    None => write!(f, "{command} looks further"),
                }
            }
            Lasting::Fell { fast, slow_bytes_per_s } => write!(
                f,
                "writes run at {} for {} ({}) after the study's own, then at {}: {command} shows how much is fast and how it comes back",
                show_rate(fast.bytes_per_s),
                show_capacity(fast.bytes),
                show_span(fast.seconds),
                show_rate(slow_bytes_per_s)
            ),
            Lasting::FellBefore { peak_bytes_per_s, slow_bytes_per_s } => write!(
                f,
                "writes reached {} early in the study, and {} at its end: {command} on a rested target shows how much is fast",
                show_rate(peak_bytes_per_s),
                show_rate(slow_bytes_per_s)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rates: &[f64], peak: f64) -> LongWrites {
        let level =
            |rate: &f64| WriteLevel { bytes_per_s: *rate, bytes: rate * 10.0, seconds: 10.0 };
        LongWrites {
            request_bytes: 1 << 20,
            depth: 16,
            levels: rates.iter().map(level).collect(),
            peak_bytes_per_s: Some(peak),
            written_bytes: rates.iter().sum::<f64>() as u64 * 10,
            took_s: rates.len() as f64 * 10.0,
            out_of_bytes: false,
            needs_s: Some(780.0),
            course: Vec::new(),
        }
    }

    #[test]
    fn a_fall_is_told_from_a_flat_rate_and_from_one_before_the_run() {
        assert_eq!(of(&[1e9], 1.05e9).lasting(), Lasting::AsFarAsSeen);
        assert!(of(&[1e9], 1e9).to_string().contains("at least"));
        assert!(of(&[1e9], 1e9).to_string().ends_with("study --sustained --for 13m"));
        let fell = of(&[1.7e9, 1.5e8], 1.7e9);
        assert!(
            matches!(fell.lasting(), Lasting::Fell { slow_bytes_per_s, .. } if slow_bytes_per_s == 1.5e8)
        );
        // A dip that recovers is not a fall.
        assert_eq!(of(&[1e9, 5e8, 1e9], 1e9).lasting(), Lasting::AsFarAsSeen);
        assert!(matches!(of(&[1.5e8], 1.7e9).lasting(), Lasting::FellBefore { .. }));
    }

    #[test]
    fn bytes_have_the_units_of_rates() {
        let _si = machine::units::show_in(machine::units::Units::Si);
        let said = of(&[1e9], 1e9).to_string();
        assert!(said.starts_with("writes keep 1000 MB/s for at least 10.0 GB"), "{said}");
    }
}
