use crate::course::Table;
use machine::units::{grouped, rate_number, show_rate, show_size, show_time, shown_in};
use results::Axis;
use sustained::pts::{
    Cell, MatrixCell, Measured, PhaseKind, PhaseResult, PtsResult, PtsStep, PtsTest,
};
pub(super) fn measured(result: &PtsResult, phase: usize) -> Measured {
    match &result.plan.phases[phase].kind {
        PhaseKind::Rounds { measured, .. } => *measured,
        _ => Measured::Iops,
    }
}

pub(super) fn number(measured: Measured, one: &MatrixCell) -> f64 {
    match measured {
        Measured::Iops => one.iops,
        Measured::Throughput => one.bytes_per_s,
        Measured::Latency => one.mean_latency_ns,
    }
}

pub(super) fn show(measured: Measured, value: f64) -> String {
    match measured {
        Measured::Iops => grouped(value.round()),
        Measured::Throughput => rate_number(value),
        Measured::Latency => show_time(value),
    }
}

pub(super) fn unit(measured: Measured) -> String {
    match measured {
        Measured::Iops => "IOPS".into(),
        Measured::Throughput => shown_in().rate_unit().into(),
        Measured::Latency => "mean latency".into(),
    }
}

pub(super) fn axis(measured: Measured) -> Axis {
    match measured {
        Measured::Iops => Axis::Iops,
        Measured::Throughput => Axis::BytesPerS,
        Measured::Latency => Axis::TimeNs,
    }
}

/// Row and column in the specification's measurement matrix.
pub(super) fn place(test: PtsTest, cell: &Cell) -> (String, String) {
    if test == PtsTest::Dirth {
        return (format!("{} threads", cell.threads), format!("{} each", cell.depth));
    }
    let mix = format!("{}/{}", cell.read_percent, 100 - cell.read_percent);
    (show_size(u64::from(cell.block_bytes)), mix)
}

pub(super) struct Matrix {
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    pub(super) values: Vec<Vec<Option<f64>>>,
}

pub(super) fn matrix(
    test: PtsTest,
    phase: &PhaseResult,
    of: impl Fn(&MatrixCell) -> f64,
) -> Matrix {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    let index = |all: &mut Vec<String>, name: String| {
        all.iter().position(|known| *known == name).unwrap_or_else(|| {
            all.push(name);
            all.len() - 1
        })
    };
    let mut placed = Vec::new();
    // Writes before a round of demand intensity do not belong to it.
    let shown = |one: &&MatrixCell| test != PtsTest::Dirth || one.cell.read_percent > 0;
    for one in phase.matrix.iter().filter(shown) {
        let (row, column) = place(test, &one.cell);
        placed.push((index(&mut rows, row), index(&mut columns, column), of(one)));
    }
    let mut values = vec![vec![None; columns.len()]; rows.len()];
    for (row, column, value) in placed {
        values[row][column] = Some(value);
    }
    Matrix { rows, columns, values }
}

fn corner(test: PtsTest) -> &'static str {
    if test == PtsTest::Dirth { "threads, depth" } else { "block, read/write %" }
}

fn matrix_table(
    test: PtsTest,
    phase: &PhaseResult,
    caption: String,
    of: impl Fn(&MatrixCell) -> f64,
    show: impl Fn(f64) -> String,
) -> Table {
    let matrix = matrix(test, phase, of);
    let mut head = vec![corner(test).to_owned()];
    head.extend(matrix.columns);
    let rows = matrix.rows.into_iter().zip(matrix.values).map(|(name, values)| {
        let mut row = vec![name];
        row.extend(values.into_iter().map(|value| value.map_or(String::new(), &show)));
        row
    });
    Table { caption, head, rows: rows.collect() }
}

pub(super) fn with_matrix(result: &PtsResult) -> impl Iterator<Item = &PhaseResult> {
    result.phases.iter().filter(|phase| phase.matrix.len() > 1)
}

pub(super) fn single_cells(result: &PtsResult) -> Option<Table> {
    let rows: Vec<Vec<String>> = result
        .phases
        .iter()
        .filter(|phase| phase.matrix.len() == 1)
        .map(|phase| {
            let one = &phase.matrix[0];
            vec![
                phase.title.clone(),
                phase.rounds.to_string(),
                grouped(one.iops.round()),
                show_rate(one.bytes_per_s),
                show_time(one.mean_latency_ns),
                show_time(one.p99999_ns as f64),
                show_time(one.max_latency_ns as f64),
            ]
        })
        .collect();
    let head = ["phase", "rounds", "IOPS", "rate", "mean latency", "p99.999", "max"];
    (!rows.is_empty()).then(|| Table {
        caption: "Last five rounds of each phase".into(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    })
}

pub(super) fn tables(result: &PtsResult, phase: &PhaseResult) -> Vec<Table> {
    let test = result.plan.test;
    let own = measured(result, phase.phase);
    let caption = format!("{}: {}, mean of the steady-state window", phase.title, unit(own));
    let mut all =
        vec![matrix_table(test, phase, caption, |one| number(own, one), |value| show(own, value))];
    if test == PtsTest::Latency {
        let caption = "Maximum latency in the window".to_owned();
        all.push(matrix_table(test, phase, caption, |one| one.max_latency_ns as f64, show_time));
    }
    if test == PtsTest::Dirth {
        let caption = "Mean latency in the window".to_owned();
        all.push(matrix_table(test, phase, caption, |one| one.mean_latency_ns, show_time));
    }
    all
}

pub(super) fn histograms(result: &PtsResult) -> Option<Table> {
    let steps: Vec<&PtsStep> =
        result.steps.iter().filter(|step| !step.percentiles.is_empty()).collect();
    let first = steps.first()?;
    let mut head = vec!["point".to_owned(), "IOPS".into()];
    head.extend(first.percentiles.iter().map(|(percent, _)| format!("p{percent}")));
    head.push("max".into());
    let names: &[&str] = if result.plan.test == PtsTest::Dirth {
        &["highest rate", "middle", "one outstanding"]
    } else {
        &["writes of 4 KiB"]
    };
    let row = |(step, name): (&&PtsStep, &&str)| {
        let mut row = vec![(*name).to_owned(), grouped(step.iops().round())];
        row.extend(step.percentiles.iter().map(|(_, ns)| show_time(*ns as f64)));
        row.push(show_time(step.max_latency_ns as f64));
        row
    };
    Some(Table {
        caption: "Response time histograms".into(),
        head,
        rows: steps.iter().zip(names).map(row).collect(),
    })
}
