use super::sweep;
use crate::format::{
    axis_title, axis_value, half_power_interval, half_power_value, plural, rate, rate_unit,
};
use crate::plot::scene::Scene;
use crate::plot::{self, Room};
use crate::terminal::{at, xs};
use machine::MemoryUse;
use results::Point;
use results::{Experiment, Figure, PeakSource, Results};
use serde::Serialize;
use std::borrow::Cow;

pub(super) enum Drawn<'a> {
    Figure(usize, Cow<'a, Figure>),
    Memory(usize, &'a [MemoryUse]),
}

impl Drawn<'_> {
    pub(super) fn id(&self) -> &str {
        match self {
            Drawn::Figure(_, figure) => &figure.id,
            Drawn::Memory(..) => "memory-rates",
        }
    }

    fn figure(&self) -> Option<&Figure> {
        match self {
            Drawn::Figure(_, figure) => Some(figure),
            Drawn::Memory(..) => None,
        }
    }

    fn experiment(&self) -> usize {
        match self {
            Drawn::Figure(experiment, _) | Drawn::Memory(experiment, _) => *experiment,
        }
    }
}

/// The drawings' indices make the anchors; a sweep is one experiment.
pub(super) fn drawn(results: &Results) -> Vec<Drawn<'_>> {
    if results.experiments.is_empty() {
        return sweep::figures(&results.points)
            .into_iter()
            .chain(sweep::over_time(&results.seconds))
            .map(|figure| Drawn::Figure(0, Cow::Owned(figure)))
            .collect();
    }
    let mut all = Vec::new();
    for (place, experiment) in results.experiments.iter().enumerate() {
        if !experiment.memory.is_empty() {
            all.push(Drawn::Memory(place, &experiment.memory));
        }
        all.extend(
            experiment.figures.iter().map(|figure| Drawn::Figure(place, Cow::Borrowed(figure))),
        );
    }
    all
}

#[derive(Serialize)]
pub(crate) struct ExperimentView {
    anchor: String,
    title: String,
    question: String,
    sentence: String,
    skipped: Option<String>,
    left_out: Vec<String>,
    figures: Vec<FigureView>,
}

#[derive(Serialize)]
struct FigureView {
    anchor: String,
    title: String,
    description: String,
    scenes: [Scene; 2],
    half_power: Vec<HalfView>,
    /// `None` unless all curves share the peak.
    half: Option<String>,
    notes: Vec<String>,
    table: Table,
}

#[derive(Serialize)]
struct HalfView {
    name: String,
    light: String,
    dark: String,
    value: String,
    interval: Option<String>,
    of: String,
}

#[derive(Serialize)]
struct Table {
    size: String,
    head: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    x: String,
    cells: Vec<Cell>,
}

#[derive(Serialize, Default)]
struct Cell {
    value: String,
    interval: Option<String>,
    failed: bool,
}

pub(super) fn views(results: &Results) -> Vec<ExperimentView> {
    let drawn = drawn(results);
    let figures_of = |experiment: usize| -> Vec<FigureView> {
        let of_it = drawn.iter().enumerate().filter(|(_, drawn)| drawn.experiment() == experiment);
        of_it.map(|(place, drawn)| view(place, drawn, results)).collect()
    };
    if results.experiments.is_empty() {
        let figures = figures_of(0);
        let shown: Vec<&Figure> = drawn.iter().filter_map(Drawn::figure).collect();
        let left_out = sweep::left_out(&results.points, &shown);
        return if figures.is_empty() {
            Vec::new()
        } else {
            vec![sweep_view(figures, left_out, results.points.len())]
        };
    }
    let one = |(place, experiment): (usize, &Experiment)| ExperimentView {
        anchor: format!("e{}", anchor(place, &experiment.id)),
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        sentence: if experiment.skipped.is_some() {
            String::new()
        } else {
            experiment.sentence.clone()
        },
        skipped: experiment.skipped.clone(),
        left_out: experiment.left_out.clone(),
        figures: figures_of(place),
    };
    results.experiments.iter().enumerate().map(one).collect()
}

fn sweep_view(figures: Vec<FigureView>, left_out: Option<String>, points: usize) -> ExperimentView {
    let [title, question] = match points {
        1 => ["Over time", "How did the rate and the latency change during the run?"],
        _ => ["The grid", "How do the measured points compare?"],
    };
    ExperimentView {
        anchor: "sweep".into(),
        title: title.into(),
        question: question.into(),
        sentence: String::new(),
        skipped: None,
        left_out: left_out.into_iter().collect(),
        figures,
    }
}

/// Outside a study; anchors start at `first`.
pub(crate) fn section_view(
    number: usize,
    first: usize,
    [title, question, sentence]: [&str; 3],
    figures: &[Figure],
) -> ExperimentView {
    let view = |(index, figure): (usize, &Figure)| {
        figure_view(anchor(first + index, &figure.id), figure, &[])
    };
    ExperimentView {
        anchor: format!("e{}", anchor(number, title)),
        title: title.into(),
        question: question.into(),
        sentence: sentence.into(),
        skipped: None,
        left_out: Vec::new(),
        figures: figures.iter().enumerate().map(view).collect(),
    }
}

fn view(place: usize, drawn: &Drawn<'_>, results: &Results) -> FigureView {
    let anchor = anchor(place, drawn.id());
    match drawn {
        Drawn::Memory(_, memory) => memory_view(anchor, memory),
        Drawn::Figure(_, figure) => figure_view(anchor, figure, &results.points),
    }
}

/// The index makes an anchor unique.
pub(super) fn anchor(place: usize, id: &str) -> String {
    let plain: String = id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(40)
        .collect();
    format!("f{place}-{plain}")
}

fn figure_view(anchor: String, figure: &Figure, points: &[Point]) -> FigureView {
    let scenes = [Room::Wide, Room::Narrow].map(|room| plot::lay_out(figure, points, room));
    let half_power: Vec<HalfView> = figure
        .series
        .iter()
        .zip(&scenes[0].curves)
        .filter_map(|(series, curve)| {
            let half = series.half_power.as_ref()?;
            let peak = plot::peak_on_axis(figure.y, series, points)
                .map_or_else(|| rate(half.peak_bytes_per_s), |peak| axis_value(figure.y, peak));
            Some(HalfView {
                of: if half.peak_from == PeakSource::Measured {
                    peak
                } else {
                    format!("the {} {peak}", half.peak_from)
                },
                name: series.name.clone(),
                light: curve.light.clone(),
                dark: curve.dark.clone(),
                value: half_power_value(half),
                interval: half_power_interval(half),
            })
        })
        .collect();
    let same = half_power.windows(2).all(|pair| pair[0].of == pair[1].of);
    let half = half_power.first().filter(|_| same).map(|first| first.of.clone());
    FigureView {
        description: describe(figure),
        title: figure.title.clone(),
        half_power,
        half,
        notes: notes(&scenes[0]),
        table: table(figure),
        scenes,
        anchor,
    }
}

fn notes(scene: &Scene) -> Vec<String> {
    let count =
        |part: fn(&plot::scene::Curve) -> usize| scene.curves.iter().map(part).sum::<usize>();
    let mut notes = Vec::new();
    let doubtful = count(|curve| curve.marks.iter().filter(|mark| mark.doubtful).count());
    if doubtful > 0 {
        notes.push(format!("Hollow: {} with a warning.", plural(doubtful, "point")));
    }
    let failed = count(|curve| curve.failed.len());
    if failed > 0 {
        notes.push(format!("✕: {} failed.", plural(failed, "point")));
    }
    let below = count(|curve| curve.below.len());
    if below > 0 {
        notes.push(format!("▾: {} at or below zero, outside the axis.", plural(below, "value")));
    }
    notes
}

fn describe(figure: &Figure) -> String {
    let curves: Vec<String> = figure
        .series
        .iter()
        .map(|series| {
            let measured: Vec<(f64, f64)> =
                series.values.iter().filter_map(|value| Some((value.x, value.y?))).collect();
            let place = |(x, y): (f64, f64)| {
                format!("{} at {}", axis_value(figure.y, y), axis_value(figure.x, x))
            };
            match (measured.first(), measured.last()) {
                (Some(first), Some(last)) if measured.len() > 1 => {
                    format!("{}: from {} to {}", series.name, place(*first), place(*last))
                }
                (Some(first), _) => format!("{}: {}", series.name, place(*first)),
                _ => format!("{}: nothing was measured", series.name),
            }
        })
        .collect();
    format!(
        "{} by {}. {}. All values are in the table below the figure.",
        axis_title(figure.y),
        axis_title(figure.x),
        curves.join("; ")
    )
}

fn table(figure: &Figure) -> Table {
    let xs = xs(figure);
    let cell = |series: &results::Series, x: f64| match at(series, x) {
        None => Cell::default(),
        Some(value) => match value.y {
            None => Cell { value: "failed".into(), interval: None, failed: true },
            Some(y) => Cell {
                value: without_unit(figure.y, y),
                interval: crate::format::plus_minus(y, value.interval_95)
                    .map(|text| text.replace("± ", "±").replace(" %", "%")),
                failed: false,
            },
        },
    };
    let rows: Vec<Row> = xs
        .iter()
        .map(|x| Row {
            x: axis_value(figure.x, *x),
            cells: figure.series.iter().map(|series| cell(series, *x)).collect(),
        })
        .collect();
    let values = figure.series.iter().map(|series| series.values.len()).sum();
    let head = std::iter::once(axis_title(figure.x).to_string())
        .chain(figure.series.iter().map(|series| series.name.clone()))
        .collect();
    Table { size: format!("{}, {}", plural(values, "value"), axis_title(figure.y)), head, rows }
}

/// The table's name has the unit of rates, but the unit of times varies.
fn without_unit(axis: results::Axis, y: f64) -> String {
    match axis {
        results::Axis::BytesPerS => crate::format::rate_number(y),
        results::Axis::Iops => crate::format::grouped(y),
        axis => axis_value(axis, y),
    }
}

fn memory_view(anchor: String, memory: &[MemoryUse]) -> FigureView {
    let scenes = [Room::Wide, Room::Narrow].map(|room| plot::lay_out_memory(memory, room));
    let shown = |value: Option<f64>| value.map_or("failed".into(), crate::format::rate_number);
    let rows = memory
        .iter()
        .map(|usage| {
            let rates = &usage.rates_bytes_per_s;
            let all = [
                usage.mean_bytes_per_s(),
                rates.iter().copied().reduce(f64::min),
                rates.iter().copied().reduce(f64::max),
            ];
            let cells = all.map(|value| Cell {
                value: shown(value),
                interval: None,
                failed: value.is_none(),
            });
            Row { x: plot::memory_name(usage), cells: cells.into() }
        })
        .collect();
    let said: Vec<String> = memory
        .iter()
        .map(|usage| {
            format!(
                "{}: {} {}",
                plot::memory_name(usage),
                shown(usage.mean_bytes_per_s()),
                rate_unit()
            )
        })
        .collect();
    FigureView {
        anchor,
        title: "Memory bandwidth".into(),
        description: format!("Rates of memory. {}.", said.join("; ")),
        scenes,
        half_power: Vec::new(),
        half: None,
        notes: vec!["A dot for each repeat, a bar at the mean.".into()],
        table: Table {
            size: format!("{}, {}", plural(memory.len(), "way"), rate_unit()),
            head: ["memory", "mean", "min", "max"].map(String::from).to_vec(),
            rows,
        },
    }
}
