//! fio's `steadystate`.

use super::value::{Reason, number};
use machine::Nanos;

/// fio's interval between rates.
pub(crate) const STEP_NS: Nanos = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criterion {
    /// Bandwidth, not IOPS.
    pub bandwidth: bool,
    /// Watches the regression line's slope, not the maximum deviation.
    pub slope: bool,
    /// In percent of the mean, or in the rate's unit.
    pub limit: f64,
    pub percent: bool,
    /// Minimum steady time; 0: not watched.
    pub duration_ns: Nanos,
    pub ramp_ns: Nanos,
    /// `steadystate` itself was given.
    pub given: bool,
}

impl Default for Criterion {
    fn default() -> Self {
        Criterion {
            bandwidth: false,
            slope: true,
            limit: 0.01,
            percent: true,
            duration_ns: 0,
            ramp_ns: 0,
            given: false,
        }
    }
}

impl Criterion {
    pub(crate) fn set(&mut self, text: &str) -> Result<(), Reason> {
        let wrong = || "write iops:2%, iops_slope:0.1%, bw:5% or bw_slope:0.1%".to_string();
        let (what, limit) = text.split_once(':').ok_or_else(wrong)?;
        (self.bandwidth, self.slope) = match what {
            "iops" => (false, false),
            "iops_slope" => (false, true),
            "bw" => (true, false),
            "bw_slope" => (true, true),
            _ => return Err(wrong()),
        };
        let (digits, percent) =
            limit.strip_suffix('%').map_or((limit, false), |digits| (digits, true));
        self.limit = match digits.parse::<f64>() {
            Ok(limit) if limit.is_finite() && limit >= 0.0 => limit,
            _ => return Err(format!("its limit is not a number of 0 or more; {}", wrong())),
        };
        (self.percent, self.given) = (percent, true);
        Ok(())
    }

    pub fn watches(&self) -> bool {
        self.duration_ns > 0
    }

    pub(crate) fn window(&self) -> usize {
        self.duration_ns.div_ceil(STEP_NS) as usize
    }

    /// As fio does.
    pub fn shown(&self) -> String {
        let unit = if self.bandwidth { "bw" } else { "iops" };
        format!(
            "{unit}{}:{:.6}{}",
            if self.slope { "_slope" } else { "" },
            self.limit,
            if self.percent { "%" } else { "" }
        )
    }
}

pub(crate) fn whole_seconds(ns: Nanos) -> bool {
    number(&(ns / STEP_NS).to_string(), 2, u64::from(u32::MAX)).is_ok()
        && ns.is_multiple_of(STEP_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_criteria_are_refused() {
        for text in ["iops", "iops:", "iops:-1", "lat:1%", "bw:x%", "iops:nan"] {
            assert!(
                Criterion::default().set(text).unwrap_err().contains("write iops:2%"),
                "{text}"
            );
        }
        let mut criterion = Criterion::default();
        criterion.set("iops:5%").unwrap();
        assert_eq!(criterion.shown(), "iops:5.000000%");
    }
}
