use super::notice;
use super::tables::{
    axis, histograms, matrix, measured, number, place, show, single_cells, tables, unit,
    with_matrix,
};
use crate::Error;
use crate::course::{Page, PagePart, Table};
use crate::plot::course::{Chart, Line, svg};
use crate::plot::heat::heat_map;
use machine::units::{show_size_rounded, significant};
use results::Axis;
use sustained::pts::{Measured, PhaseKind, PhaseResult, PtsResult, PtsStep, PtsTest, Purge, Until};
use sustained::span;
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
