//! The stages from a program to its device.

use crate::format::rate_number;
use results::{Overview, Results, Stage, StageKind, StageRate};
use workload::OpKind;

/// In multiples of the peak; wider stages reach the picture's edge.
const WIDEST: f64 = 2.0;

pub(crate) struct Pipeline {
    /// Reads, then writes.
    pub(crate) columns: Vec<Column>,
    /// The plain program first, then the stages from the program down.
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Column {
    pub(crate) op: OpKind,
    /// At the right edge, in bytes per second.
    pub(crate) edge: f64,
    pub(crate) plain: Option<f64>,
}

pub(crate) struct Row {
    pub(crate) kind: &'static str,
    /// Empty for a plain program.
    pub(crate) name: String,
    pub(crate) cells: Vec<Cell>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Cell {
    pub(crate) advertised: Option<f64>,
    pub(crate) achieved: Option<f64>,
    pub(crate) at_least: bool,
    pub(crate) narrowest: bool,
}

impl Pipeline {
    /// The narrowest stages, at most `most`, without the load generator: no other program passes
    /// it.
    pub(crate) fn of(results: &Results, overview: &Overview, most: usize) -> Option<Pipeline> {
        let ladder = results.ladder.as_ref()?;
        let columns: Vec<Column> = [OpKind::Read, OpKind::Write]
            .into_iter()
            .filter_map(|op| column(&ladder.stages, overview, op))
            .collect();
        let mut stages: Vec<(usize, &Stage)> = ladder.stages.iter().enumerate().collect();
        stages.retain(|(_, stage)| {
            stage.kind != StageKind::Generator
                && columns.iter().any(|column| rate(stage, column.op).is_some())
        });
        stages.sort_by(|(_, one), (_, other)| {
            width(one, &columns).total_cmp(&width(other, &columns))
        });
        stages.truncate(most);
        stages.sort_by_key(|(place, _)| *place);
        if stages.is_empty() {
            return None;
        }
        let plain = Row {
            kind: "plain program",
            name: String::new(),
            cells: columns
                .iter()
                .map(|column| Cell { achieved: column.plain, ..Cell::default() })
                .collect(),
        };
        let row = |stage: &Stage| {
            let (kind, name) = stage.words();
            Row {
                kind,
                name: name.to_owned(),
                cells: columns.iter().map(|column| cell(rate(stage, column.op))).collect(),
            }
        };
        let plain = Some(plain).filter(|_| columns.iter().any(|column| column.plain.is_some()));
        let rows = plain.into_iter().chain(stages.into_iter().map(|(_, stage)| row(stage)));
        let rows = rows.collect();
        Some(Pipeline { columns, rows })
    }
}

impl Column {
    /// 0 at the left edge, 1 at the right.
    pub(crate) fn place(&self, rate: f64) -> f64 {
        let share = rate / self.edge;
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    pub(crate) fn is_beyond(&self, rate: f64) -> bool {
        rate > self.edge * 1.001
    }
}

impl Cell {
    pub(crate) fn words(&self, of: &str) -> String {
        let least = if self.at_least { "≥" } else { "" };
        match (self.achieved, self.advertised) {
            (Some(achieved), Some(advertised)) => {
                format!("{least}{}{of}{}", rate_number(achieved), rate_number(advertised))
            }
            (Some(achieved), None) => format!("{least}{}", rate_number(achieved)),
            (None, Some(advertised)) => format!("?{of}{}", rate_number(advertised)),
            (None, None) => String::new(),
        }
    }
}

fn rate(stage: &Stage, op: OpKind) -> Option<&StageRate> {
    let known = |one: &&StageRate| one.achieved.is_some() || one.advertised.is_some();
    stage.rates.iter().filter(known).find(|one| one.op == op)
}

fn cell(rate: Option<&StageRate>) -> Cell {
    let Some(rate) = rate else { return Cell::default() };
    Cell {
        advertised: rate.advertised_bytes_per_s(),
        achieved: rate.achieved_bytes_per_s(),
        at_least: rate.achieved.as_ref().is_some_and(|one| one.at_least),
        narrowest: rate.narrowest,
    }
}

fn column(stages: &[Stage], overview: &Overview, op: OpKind) -> Option<Column> {
    let cells = stages.iter().map(|stage| cell(rate(stage, op)));
    let rates = cells.flat_map(|cell| [cell.achieved, cell.advertised]).flatten();
    let speed = overview.speeds.iter().find(|speed| speed.op == op);
    let peak = speed.and_then(|speed| speed.peak.as_ref()).map(|peak| peak.throughput_bytes_per_s);
    let plain = speed.and_then(|speed| speed.plain.as_ref());
    let plain = plain.map(|plain| plain.throughput_bytes_per_s);
    let widest = rates.chain(plain).reduce(f64::max).filter(|rate| *rate > 0.0)?;
    let edge = peak.map_or(widest, |peak| widest.min(peak.max(plain.unwrap_or(0.0)) * WIDEST));
    Some(Column { op, edge, plain })
}

/// Relative to the right edge, for the slower operation; 0 for the limit.
fn width(stage: &Stage, columns: &[Column]) -> f64 {
    let widths = columns.iter().filter_map(|column| {
        let cell = cell(rate(stage, column.op));
        let rate = cell.achieved.into_iter().chain(cell.advertised).reduce(f64::max)?;
        Some(if cell.narrowest { 0.0 } else { rate / column.edge })
    });
    widths.reduce(f64::min).unwrap_or(f64::INFINITY)
}
