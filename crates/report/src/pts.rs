//! A test of SNIA's specification in a terminal and as a page: the tables and plots that it asks
//! for.

use crate::Error;
use crate::course::{Page, PagePart, Table};
use crate::plot::course::{Chart, Line, svg};
use crate::plot::heat::heat_map;
use crate::terminal::{table, wrap};
use machine::text::printable;
use machine::units::{
    grouped, rate_number, show_rate, show_size, show_size_rounded, show_time, shown_in, significant,
};
use results::Axis;
use std::fmt::Write;
use sustained::pts::{
    Cell, Estimate, MatrixCell, Measured, PhaseKind, PhaseResult, PtsPlan, PtsResult, PtsStep,
    PtsTest, Purge, Until,
};
use sustained::span;

fn measured(result: &PtsResult, phase: usize) -> Measured {
    match &result.plan.phases[phase].kind {
        PhaseKind::Rounds { measured, .. } => *measured,
        _ => Measured::Iops,
    }
}

fn number(measured: Measured, one: &MatrixCell) -> f64 {
    match measured {
        Measured::Iops => one.iops,
        Measured::Throughput => one.bytes_per_s,
        Measured::Latency => one.mean_latency_ns,
    }
}

fn show(measured: Measured, value: f64) -> String {
    match measured {
        Measured::Iops => grouped(value.round()),
        Measured::Throughput => rate_number(value),
        Measured::Latency => show_time(value),
    }
}

fn unit(measured: Measured) -> String {
    match measured {
        Measured::Iops => "IOPS".into(),
        Measured::Throughput => shown_in().rate_unit().into(),
        Measured::Latency => "mean latency".into(),
    }
}

fn axis(measured: Measured) -> Axis {
    match measured {
        Measured::Iops => Axis::Iops,
        Measured::Throughput => Axis::BytesPerS,
        Measured::Latency => Axis::TimeNs,
    }
}

/// Row and column of a cell in the measurement matrix, as the specification arranges them.
fn place(test: PtsTest, cell: &Cell) -> (String, String) {
    if test == PtsTest::Dirth {
        return (format!("{} threads", cell.threads), format!("{} each", cell.depth));
    }
    let mix = format!("{}/{}", cell.read_percent, 100 - cell.read_percent);
    (show_size(u64::from(cell.block_bytes)), mix)
}

/// Rows, columns and values of the measurement matrix.
struct Matrix {
    rows: Vec<String>,
    columns: Vec<String>,
    values: Vec<Vec<Option<f64>>>,
}

fn matrix(test: PtsTest, phase: &PhaseResult, of: impl Fn(&MatrixCell) -> f64) -> Matrix {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    let index = |all: &mut Vec<String>, name: String| {
        all.iter().position(|known| *known == name).unwrap_or_else(|| {
            all.push(name);
            all.len() - 1
        })
    };
    let mut placed = Vec::new();
    for one in &phase.matrix {
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

/// The phases whose matrix has more than one cell.
fn with_matrix(result: &PtsResult) -> impl Iterator<Item = &PhaseResult> {
    result.phases.iter().filter(|phase| phase.matrix.len() > 1)
}

/// The phases with one cell, a row for each; absent without such phases.
fn single_cells(result: &PtsResult) -> Option<Table> {
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

fn tables(result: &PtsResult, phase: &PhaseResult) -> Vec<Table> {
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

fn histograms(result: &PtsResult) -> Option<Table> {
    let steps: Vec<&PtsStep> =
        result.steps.iter().filter(|step| !step.percentiles.is_empty()).collect();
    let first = steps.first()?;
    let mut head = vec!["point".to_owned(), "IOPS".into()];
    head.extend(first.percentiles.iter().map(|(percent, _)| format!("p{percent}")));
    head.push("max".into());
    let names = ["highest rate", "middle", "lowest rate"];
    let row = |step: &&PtsStep| {
        let mut row = vec![
            names.get(step.cell).copied().unwrap_or_default().to_owned(),
            grouped(step.iops().round()),
        ];
        row.extend(step.percentiles.iter().map(|(_, ns)| show_time(*ns as f64)));
        row.push(show_time(step.max_latency_ns as f64));
        row
    };
    Some(Table {
        caption: "Response time histograms".into(),
        head,
        rows: steps.iter().map(row).collect(),
    })
}

/// A notice that heads a report that is not to the specification.
fn notice(result: &PtsResult) -> Option<String> {
    let why = if !result.plan.to_specification() {
        format!("--scale {}", result.plan.scale)
    } else if !result.complete {
        "the test is not complete".into()
    } else if result.interruptions > 0 {
        "the run was interrupted".into()
    } else {
        return None;
    };
    Some(format!("Not to the specification: {why}."))
}

/// The conclusions and the measurement matrix.
pub fn terminal(result: &PtsResult, width: usize, colour: bool) -> String {
    let width = width.max(40);
    let mut out = String::new();
    let mut say = |text: &str| {
        for line in wrap(&printable(text), width) {
            out += &line;
            out.push('\n');
        }
    };
    say(&format!("{}: {}", result.plan.test.title(), result.conditions.target.name));
    if let Some(notice) = notice(result) {
        say(&notice);
    }
    result.sentences.iter().for_each(|sentence| say(sentence));
    for phase in with_matrix(result) {
        for one in tables(result, phase) {
            let _ =
                write!(out, "\n{}\n{}", one.caption, table(&one.head, &one.rows, 1, width, colour));
        }
    }
    for one in single_cells(result).into_iter().chain(histograms(result)) {
        let _ = write!(out, "\n{}\n{}", one.caption, table(&one.head, &one.rows, 1, width, colour));
    }
    for warning in result.warnings.iter().chain(&result.plan.left_out) {
        for line in wrap(&format!("note: {}", printable(warning)), width) {
            out += &line;
            out.push('\n');
        }
    }
    out
}

/// Convergence: the tracked size's mixes, or all cells of a small phase, over the rounds.
fn convergence(result: &PtsResult, phase: &PhaseResult) -> String {
    let PhaseKind::Rounds { cells, tracking, measured, .. } = &result.plan.phases[phase.phase].kind
    else {
        return String::new();
    };
    let tracked = cells[*tracking];
    let chosen: Vec<usize> = (0..cells.len())
        .filter(|&cell| cells.len() <= 9 || cells[cell].read_percent == tracked.read_percent)
        .filter(|&cell| {
            result.plan.test != PtsTest::Dirth || cells[cell].threads == cells[cell].depth
        })
        .take(9)
        .collect();
    let line = |&number: &usize| {
        let cell = &cells[number];
        let (row, column) = place(result.plan.test, cell);
        let points = result
            .steps
            .iter()
            .filter(|step| step.phase == phase.phase && step.cell == number)
            .map(|step| {
                let value = match measured {
                    Measured::Iops => step.iops(),
                    Measured::Throughput => step.bytes_per_s(),
                    Measured::Latency => step.mean_latency_ns,
                };
                (f64::from(step.round + 1), value)
            })
            .collect();
        let name = if chosen.len() == 1 {
            String::new()
        } else if cells.len() <= 9 {
            format!("{row} {column}")
        } else {
            row
        };
        Line { dots: phase.rounds <= 30, ..Line::new(name, points) }
    };
    svg(&Chart {
        title: &format!("Convergence, {}", unit(*measured)),
        x: Axis::Depth,
        x_title: "round",
        y: axis(*measured),
        lines: chosen.iter().map(line).collect(),
        shaded: None,
    })
}

/// The steady-state window: the tracked value, its mean, 10 % around it, and the best line.
fn window(result: &PtsResult, phase: &PhaseResult) -> Option<String> {
    let check = phase.steady.as_ref()?;
    let own = measured(result, phase.phase);
    let last = phase.tracked.len();
    let ends = [(last - 4) as f64, last as f64];
    let tracked: Vec<(f64, f64)> =
        (1..=last).map(|round| (round as f64, phase.tracked[round - 1])).collect();
    let flat = |name: &str, share: f64| Line {
        dashed: true,
        ..Line::new(name, ends.map(|x| (x, check.mean * share)).to_vec())
    };
    let lines = vec![
        Line { dots: true, ..Line::new("tracked", tracked[last - 5..].to_vec()) },
        Line::new("best line", vec![(ends[0], check.line[0]), (ends[1], check.line[1])]),
        flat("mean", 1.0),
        flat("110 %", 1.1),
        flat("90 %", 0.9),
    ];
    Some(svg(&Chart {
        title: &format!("Steady-state window, {}", unit(own)),
        x: Axis::Depth,
        x_title: "round",
        y: axis(own),
        lines,
        shaded: Some((ends[0], ends[1])),
    }))
}

fn steady_table(result: &PtsResult) -> Option<Table> {
    let rows: Vec<Vec<String>> = result
        .phases
        .iter()
        .filter_map(|phase| {
            let check = phase.steady.as_ref()?;
            let own = measured(result, phase.phase);
            Some(vec![
                phase.title.clone(),
                phase.rounds.to_string(),
                format!("{} {}", show(own, check.mean), unit(own)),
                format!("{:.1} % (at most 20 %)", check.range_percent),
                format!("{:.1} % (at most 10 %)", check.slope_percent),
                if check.to_specification { "yes" } else { "no" }.into(),
                check.contradicted_by.map_or("none", |one| one.sentence()).into(),
            ])
        })
        .collect();
    let head = ["phase", "rounds", "mean", "range", "slope", "steady", "doubt"];
    (!rows.is_empty()).then(|| Table {
        caption: "Determination of steady state, last five rounds".into(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    })
}

/// The rate over time and over bytes written, of tests that are about it.
fn courses(result: &PtsResult) -> Vec<String> {
    let own = match result.plan.test {
        PtsTest::Wsat | PtsTest::Hir => Measured::Iops,
        PtsTest::Xsr => Measured::Throughput,
        _ => return Vec::new(),
    };
    let steps: Vec<&PtsStep> = result.steps.iter().filter(|step| step.requests > 0).collect();
    let rate = |step: &PtsStep| match own {
        Measured::Iops => step.iops(),
        _ => step.bytes_per_s(),
    };
    let mut written = 0.0;
    let mut over = [Vec::new(), Vec::new(), Vec::new()];
    for step in steps {
        written += step.written_bytes as f64;
        over[0].push((step.from_s * 1e9, rate(step)));
        over[1].push((written, rate(step)));
        over[2].push((step.from_s * 1e9, step.mean_latency_ns));
    }
    let [time, bytes, latency] = over;
    let chart = |title: &str, x, x_title, y, points| {
        svg(&Chart { title, x, x_title, y, lines: vec![Line::new("", points)], shaded: None })
    };
    let title = unit(own);
    vec![
        chart(&title, Axis::TimeNs, "time", axis(own), time),
        chart(&title, Axis::CacheBytes, "written", axis(own), bytes),
        chart("Mean latency", Axis::TimeNs, "time", Axis::TimeNs, latency),
    ]
}

fn conditions(result: &PtsResult) -> Table {
    let conditions = &result.conditions;
    let plan = &result.plan;
    let facts = &conditions.target;
    let mut rows = vec![
        ("target", facts.name.clone()),
        ("size", show_size_rounded(facts.size_bytes as f64)),
        (
            "active range",
            format!(
                "{} ({} %)",
                show_size_rounded(plan.active_bytes as f64),
                significant(100.0 * plan.active_bytes as f64 / facts.size_bytes.max(1) as f64, 2)
            ),
        ),
        (
            "layers",
            facts.layers.iter().map(|layer| layer.name.clone()).collect::<Vec<_>>().join(", "),
        ),
        (
            "purge",
            match plan.purge {
                Purge::Discard => "discard of the whole target".into(),
                Purge::ByUser => "by the user, with the drive's own command".into(),
            },
        ),
        ("data", conditions.data.clone()),
        ("engine", conditions.engine.to_string()),
        (
            "computer",
            format!(
                "{}, {} processors",
                conditions.machine.processor, conditions.machine.processors
            ),
        ),
        ("memory", show_size_rounded(conditions.machine.memory_bytes as f64)),
        ("system", conditions.machine.system.clone()),
        ("program", format!("{} {}", result.program.name, result.program.version)),
        ("specification", "SNIA Solid State Storage Performance Test Specification 2.0.2".into()),
    ];
    let outstanding = plan.phases.iter().find_map(|phase| match &phase.kind {
        PhaseKind::Rounds { cells, .. } => Some(cells[0]),
        _ => None,
    });
    if let Some(cell) = outstanding.filter(|_| plan.test != PtsTest::Dirth) {
        rows.push(("outstanding", format!("{} threads with {} each", cell.threads, cell.depth)));
    }
    let temperatures = || result.steps.iter().filter_map(|step| step.temperature_c);
    if let Some(highest) = temperatures().reduce(f64::max) {
        rows.push(("highest temperature", format!("{highest:.0} °C")));
    }
    Table {
        caption: String::new(),
        head: vec!["condition".into(), "value".into()],
        rows: rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect(),
    }
}

/// The page.
///
/// # Errors
/// A bug in this crate: a template that does not fit.
pub fn html(result: &PtsResult) -> Result<String, Error> {
    let mut parts = Vec::new();
    let test = result.plan.test;
    for phase in with_matrix(result) {
        let own = measured(result, phase.phase);
        let mut charts = Vec::new();
        if phase.matrix.len() > 4 {
            let matrix = matrix(test, phase, |one| number(own, one));
            let title = format!("{}, mean of the window", unit(own));
            charts.push(heat_map(&title, &matrix.rows, &matrix.columns, &matrix.values, |value| {
                show(own, value)
            }));
        }
        charts.push(convergence(result, phase));
        charts.extend(window(result, phase));
        parts.push(PagePart {
            title: phase.title.clone(),
            text: String::new(),
            charts,
            tables: tables(result, phase),
        });
    }
    let courses = courses(result);
    if !courses.is_empty() {
        let title = "Course".to_owned();
        parts.push(PagePart { title, text: String::new(), charts: courses, tables: Vec::new() });
    }
    for phase in result.phases.iter().filter(|phase| phase.matrix.len() == 1) {
        if let (
            PhaseKind::Rounds { until: Until::Steady { .. } | Until::Written { .. }, .. },
            Some(chart),
        ) = (&result.plan.phases[phase.phase].kind, window(result, phase))
        {
            let (title, text) = (phase.title.clone(), String::new());
            parts.push(PagePart { title, text, charts: vec![chart], tables: Vec::new() });
        }
    }
    let mut last: Vec<Table> = single_cells(result).into_iter().chain(histograms(result)).collect();
    last.extend(steady_table(result));
    parts.push(PagePart {
        title: "Steady state".into(),
        text: String::new(),
        charts: Vec::new(),
        tables: last,
    });
    parts.push(PagePart {
        title: "Test conditions".into(),
        text: String::new(),
        charts: Vec::new(),
        tables: vec![conditions(result)],
    });
    crate::course::html(&Page {
        kind: test.title(),
        target: &result.conditions.target.name,
        about: format!("{} · {}", test.title(), span(result.took_s)),
        program: &result.program,
        doubts: &result.warnings,
        notice: notice(result),
        sentences: &result.sentences,
        parts,
    })
}

/// The plan of a test, for `--dry-run`.
pub fn plan(plan: &PtsPlan, estimate: &Estimate, width: usize, colour: bool) -> String {
    let both = |[low, high]: [f64; 2], show: &dyn Fn(f64) -> String| {
        let (low, high) = (show(low), show(high));
        if low == high { low } else { format!("{low} to {high}") }
    };
    let time = |seconds: f64| if seconds == 0.0 { "-".into() } else { span(seconds) };
    let size = |bytes: f64| if bytes == 0.0 { "-".into() } else { show_size_rounded(bytes) };
    let rows: Vec<Vec<String>> = estimate
        .phases
        .iter()
        .map(|phase| {
            let [low, high] = phase.rounds;
            vec![
                phase.title.clone(),
                if low == high { low.to_string() } else { format!("{low} to {high}") },
                phase.cells.to_string(),
                both(phase.seconds, &time),
                both(phase.written_bytes, &size),
            ]
        })
        .collect();
    let head = ["phase", "rounds", "cells", "time", "written"].map(str::to_owned);
    let mut out = format!(
        "{} on {}{}\n\n",
        plan.test.title(),
        show_size_rounded(plan.active_bytes as f64),
        if plan.to_specification() {
            String::new()
        } else {
            format!("; not to the specification: --scale {}", plan.scale)
        }
    );
    out += &table(&head, &rows, 1, width.max(40), colour);
    let _ = writeln!(
        out,
        "\nIn all {}, {} written, at an assumed {} (--assume-rate).",
        both(estimate.seconds, &time),
        both(estimate.written_bytes, &size),
        show_rate(estimate.bytes_per_s)
    );
    for one in &plan.left_out {
        let _ = writeln!(out, "Left out: {one}.");
    }
    out
}
