//! The documents' figures as questions with readings, for comparisons and the history.

use crate::document::SustainedResult;
use crate::level::Level;
use crate::pts::{Cell, Measured, PhaseKind, PhaseResult, PtsResult, PtsStep};
use crate::steady::WINDOW;
use machine::TargetKind;
use machine::units::show_size;
use results::compare::{Measure, Measurement, Reading, Side};

impl SustainedResult {
    /// Rate and 99th percentile at first and at the end, equal without a fall.
    pub fn side(&self, name: &str) -> Side {
        let exact = self.target.kind == TargetKind::Simulated;
        let of = |when: &str, level: &Level| {
            let settings = &self.settings;
            let order = if settings.pattern.is_sequential() { "sequential" } else { "random" };
            let request = show_size(u64::from(settings.request_bytes));
            let rate = Reading::value(Measure::Throughput, level.bytes_per_s);
            let p99 = Reading::value(Measure::LatencyP99, level.p99_ns as f64);
            Measurement {
                question: format!("sustained {order} writes {request} {} {when}", settings.depth),
                label: format!("{order} writes of {request}, {when}"),
                keys: vec![
                    ("pattern".into(), settings.pattern.to_string()),
                    ("request".into(), request),
                    ("depth".into(), settings.depth.to_string()),
                    ("when".into(), when.into()),
                ],
                kind: format!("sustained writes, {when}"),
                readings: [rate, p99].map(|reading| Reading { exact, ..reading }).to_vec(),
                ..Measurement::default()
            }
        };
        let first = self.levels.first().map(|level| of("at first", level));
        let last = self.levels.last().map(|level| of("at the end", level));
        Side {
            name: name.into(),
            asked: first.into_iter().chain(last).collect(),
            warnings: self.warnings.clone(),
        }
    }
}

impl PtsResult {
    /// Each reported cell's value, with one run per round of the steady-state window.
    pub fn side(&self, name: &str) -> Side {
        Side {
            name: name.into(),
            asked: self.phases.iter().flat_map(|phase| self.of_phase(phase)).collect(),
            warnings: self.warnings.clone(),
        }
    }

    fn of_phase(&self, phase: &PhaseResult) -> Vec<Measurement> {
        let Some(PhaseKind::Rounds { cells, measured, .. }) =
            self.plan.phases.get(phase.phase).map(|phase| &phase.kind)
        else {
            return Vec::new();
        };
        let first = phase.rounds.saturating_sub(WINDOW as u32);
        let cells = cells.iter().enumerate();
        cells
            .filter_map(|(number, cell)| {
                let rounds: Vec<&PtsStep> = self
                    .steps
                    .iter()
                    .filter(|step| step.phase == phase.phase && step.cell == number)
                    .filter(|step| (first..phase.rounds).contains(&step.round))
                    .collect();
                let readings = readings(&rounds, *measured, self.conditions.machine.simulated);
                (!rounds.is_empty()).then(|| self.of_cell(&phase.title, cell, readings))
            })
            .collect()
    }

    fn of_cell(&self, phase: &str, cell: &Cell, readings: Vec<Reading>) -> Measurement {
        let test = self.plan.test.name();
        let request = show_size(u64::from(cell.block_bytes));
        let order = if cell.random { "random" } else { "sequential" };
        let keys = [
            ("test", test.to_owned()),
            ("phase", phase.to_owned()),
            ("pattern", order.to_owned()),
            ("request", request.clone()),
            ("reads", format!("{} %", cell.read_percent)),
            ("threads", cell.threads.to_string()),
            ("depth", cell.depth.to_string()),
            // A wait before the next cell is part of the question.
            ("wait", format!("{} s", cell.wait_s)),
        ];
        let does = match cell.read_percent {
            100 => "reads".to_owned(),
            0 => "writes".to_owned(),
            percent => format!("requests, {percent} % reads"),
        };
        let values: Vec<&str> = keys.iter().map(|(_, value)| value.as_str()).collect();
        Measurement {
            question: format!("pts {}", values.join(" ")),
            label: format!("{order} {request} {does}, {} outstanding", cell.threads * cell.depth),
            kind: format!("{order} {does}"),
            keys: keys.map(|(name, value)| (name.to_string(), value)).to_vec(),
            readings,
            ..Measurement::default()
        }
    }
}

fn readings(rounds: &[&PtsStep], measured: Measured, exact: bool) -> Vec<Reading> {
    let of = |measure: Measure, value: fn(&PtsStep) -> f64| {
        let runs = rounds.iter().map(|step| value(step)).collect();
        Reading { exact, ..Reading::of_runs(measure, runs) }
    };
    let rate = match measured {
        Measured::Iops => vec![of(Measure::Iops, PtsStep::iops)],
        Measured::Throughput => vec![of(Measure::Throughput, PtsStep::bytes_per_s)],
        Measured::Latency => Vec::new(),
    };
    let latency = [
        of(Measure::LatencyMean, |step| step.mean_latency_ns),
        of(Measure::LatencyP99, |step| step.p99_ns as f64),
    ];
    rate.into_iter().chain(latency).collect()
}
