//! One direction of a job in fio's reports without histograms.

use super::case::case;
use results::compare::{Measure, Measurement, Reading};

pub(super) const PERCENTILES: [(&str, Measure); 3] = [
    ("50.00", Measure::LatencyP50),
    ("99.00", Measure::LatencyP99),
    ("99.90", Measure::LatencyP999),
];

#[derive(Debug, Clone, Default)]
pub(super) struct Direction {
    /// Identifies the job together with the settings.
    pub(super) group: u64,
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) does: &'static str,
    pub(super) iops: f64,
    pub(super) bytes_per_s: f64,
    pub(super) requests: f64,
    pub(super) mean_ns: Option<f64>,
    pub(super) percentiles_ns: [Option<f64>; 3],
}

impl Direction {
    pub(super) fn is_clone_of(&self, other: &Direction) -> bool {
        self.group == other.group && self.does == other.does && self.settings == other.settings
    }

    /// Percentiles cannot be added.
    fn add(&mut self, clone: &Direction) {
        let requests = self.requests + clone.requests;
        let sum = |one: &Direction| Some(one.mean_ns? * one.requests);
        self.mean_ns = sum(self).zip(sum(clone)).map(|(own, other)| (own + other) / requests);
        self.iops += clone.iops;
        self.bytes_per_s += clone.bytes_per_s;
        self.requests = requests;
        self.percentiles_ns = [None; 3];
    }

    fn measured(self) -> Measurement {
        let random =
            self.settings.iter().any(|(name, value)| *name == "rw" && value.contains("rand"));
        let known = self.settings.iter().any(|(name, _)| *name == "rw");
        let order = match (known, random) {
            (false, _) => "",
            (true, true) => "random ",
            (true, false) => "sequential ",
        };
        let mut readings = vec![
            Reading::value(Measure::Iops, self.iops),
            Reading::value(Measure::Throughput, self.bytes_per_s),
        ];
        readings.extend(self.mean_ns.map(|ns| Reading::value(Measure::LatencyMean, ns)));
        for ((_, measure), ns) in PERCENTILES.into_iter().zip(self.percentiles_ns) {
            readings.extend(ns.map(|ns| Reading::value(measure, ns)));
        }
        let mut settings = self.settings;
        settings.insert(1.min(settings.len()), ("does", self.does.to_string()));
        case(&format!("{order}{}s", self.does), &settings, readings)
    }
}

/// Clones ran at once, so they are one case.
pub(super) fn cases(run: Vec<Direction>) -> Vec<Measurement> {
    let mut joined: Vec<Direction> = Vec::new();
    for one in run {
        match joined.iter_mut().find(|known| one.is_clone_of(known)) {
            Some(known) => known.add(&one),
            None => joined.push(one),
        }
    }
    joined.into_iter().map(Direction::measured).collect()
}
