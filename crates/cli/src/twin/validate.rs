//! `halfpower twin validate`, against the 1997 study.

use super::document::{directory, json, percent, program, write};
use crate::context::Context;
use crate::failure::Failure;
use crate::terminal::table;
use clap::Args;
use machine::units::{MIB, show_size, significant};
use predict::validate::alignment::mean;
use predict::validate::predictions::{Predicted, Prediction};
use predict::validate::{Bar, BarUnit, Curve, Figure, Group, Point, Validation};
use report::validation::{Page, Section, Table};
use results::{Axis, CurveName, Series, Value};
use std::path::PathBuf;
use workload::OpKind;

/// Each label has a measured and a simulated curve.
const MAX_LABELS: usize = 4;

/// The mean error above which a curve that was not given is off.
const MAX_NOT_GIVEN: f64 = 0.12;
/// The error above which a phase of table 4 is off.
const OFF: f64 = 0.2;

/// Options of `twin validate`.
#[derive(Args, Clone)]
pub(super) struct Arguments {
    /// Also list the error of every point
    #[arg(long)]
    points: bool,
    /// Directory for report.html and results.json
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn validate(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let output = directory(context, arguments.output.as_ref())?;
    let validation = predict::validate::validate()?;
    let document = json("validate", &validation)?;
    if arguments.json {
        context.console.print(&format!("{document}\n"))?;
    } else {
        context.console.print(&text(&validation, arguments.points))?;
    }
    write(context, output.as_ref(), &page(&validation), &document, arguments.json)?;
    let missed: Vec<&str> =
        validation.bars.iter().filter(|bar| !bar.holds).map(|bar| bar.name.as_str()).collect();
    if missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Run(format!("the model misses what it is held to: {}", missed.join("; "))))
    }
}

fn text(validation: &Validation, every_point: bool) -> String {
    let mut text = String::new();
    for figure in validation.figures.iter().filter(|_| every_point) {
        let (head, rows) = points(figure);
        text += &format!("{} ({})\n{}\n", title(figure), figure.unit, table(&head, &rows, 1));
    }
    for prediction in validation.predictions.iter().filter(|_| every_point) {
        let (head, rows) = predicted(prediction);
        text += &format!(
            "{}: {}, not given\n{}\n",
            name_of(&prediction.name),
            prediction.about,
            table(&head, &rows, 1)
        );
    }
    for (head, rows) in [
        figures(validation),
        groups(validation),
        alignment(validation),
        off(validation),
        not_given(validation),
        bars(validation),
    ] {
        text += &format!("{}\n", table(&head, &rows, 1));
    }
    let more = if every_point { "" } else { "; --points lists every value" };
    text + &format!("{}: {}{more}\n", validation.machine, sentence(validation))
}

fn sentence(validation: &Validation) -> String {
    let points = |given: bool| -> usize {
        let figures = validation.figures.iter().filter(|figure| figure.given == given);
        figures.map(|figure| figure.points.len()).sum()
    };
    let (given, not_given) = (points(true), points(false));
    let held = validation.bars.iter().filter(|bar| bar.holds).count();
    let within: Vec<String> = validation
        .groups
        .iter()
        .map(|group| format!("{} within {}", group.name, percent(group.mean_error)))
        .collect();
    format!(
        "{} published values, of which {given} were given and {not_given} not, simulated with {} fitted numbers and {} solved from the figures; {} on average; {held} of {} bars held",
        given + not_given,
        validation.fitted.len(),
        validation.solved.len(),
        within.join(", "),
        validation.bars.len()
    )
}

fn predicted(prediction: &Prediction) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let disks = prediction.points.first().map_or(0, |point| point.disks);
    let varies = prediction.points.iter().any(|point| point.disks != disks);
    let row = |point: &Predicted| {
        let disks = if varies { format!(", disks={}", point.disks) } else { String::new() };
        vec![
            format!("{}{disks}", point.series),
            show_size(u64::from(point.request_bytes)),
            significant(point.mb_per_s, 3),
            significant(point.cpu_ms_per_mb, 3),
        ]
    };
    (
        vec!["curve", "request", "simulated MB/s", "simulated CPU ms/MB"],
        prediction.points.iter().map(row).collect(),
    )
}

fn not_given(validation: &Validation) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let row = |one: &Prediction| {
        vec![name_of(&one.name), one.about.clone(), one.points.len().to_string()]
    };
    let rows = validation.predictions.iter().map(row).collect();
    (vec!["not given", "experiment", "values predicted"], rows)
}

fn name_of(name: &str) -> String {
    match name.split_once("_fig") {
        Some((first, second)) => {
            format!("Figures {} and {second}", first.trim_start_matches("fig"))
        }
        None => titled(name),
    }
}

fn title(figure: &Figure) -> String {
    titled(&figure.name)
}

fn titled(name: &str) -> String {
    let (number, what) = name.split_once('_').unwrap_or((name, ""));
    let number = match (number.strip_prefix("fig"), number.strip_prefix("table")) {
        (Some(number), _) => format!("Figure {number}"),
        (_, Some(number)) => format!("Table {number}"),
        _ => number.replace("iozone", "IOzone").replace("postmark", "PostMark"),
    };
    if what.is_empty() {
        number
    } else {
        let what = what.replace('_', " ").replace("wce", "WCE").replace("cpu", "CPU");
        format!("{number}, {}", what.replace("raid5", "RAID 5"))
    }
}

fn label(figure: &Figure, point: &Point) -> String {
    let varies = |of: fn(&Point) -> u64| {
        figure.points.iter().any(|other| of(other) != of(&figure.points[0]))
    };
    let mut label = point.series.replace(", ", " ");
    if figure.points.iter().any(|other| other.drive != point.drive) {
        label = format!("{label} {}", point.drive);
    }
    if varies(|point| u64::from(point.disks)) && !label.contains("disk") {
        label = format!("{label} {} disk{}", point.disks, if point.disks == 1 { "" } else { "s" });
    }
    if varies(|point| u64::from(point.buses)) {
        label = format!("{label} {} bus{}", point.buses, if point.buses == 1 { "" } else { "es" });
    }
    if varies(|point| u64::from(point.depth)) && !label.contains("deep") {
        label = format!("{label} {} deep", point.depth);
    }
    label
}

fn alignment(validation: &Validation) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let row = |op: OpKind, random: bool| {
        let (measured, simulated) =
            mean(&validation.alignment, |gain| (gain.op, gain.random) == (op, random));
        let name = format!("{} {op}s", if random { "random" } else { "sequential" });
        vec![name, percent(measured / 100.0), percent(simulated / 100.0)]
    };
    let rows = [OpKind::Read, OpKind::Write]
        .into_iter()
        .flat_map(|op| [row(op, true), row(op, false)])
        .collect();
    (vec!["SQLIO, an aligned partition gains", "measured", "simulated"], rows)
}

fn points(figure: &Figure) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let place = |point: &Point| match point.radial {
        Some(radial) => format!("{:.0} % of the radius", radial * 100.0),
        None if point.request_bytes == 0 => String::new(),
        None => show_size(u64::from(point.request_bytes)),
    };
    let row = |point: &Point| {
        let error = format!("{:+.1} %", point.relative_error() * 100.0);
        vec![
            label(figure, point),
            place(point),
            significant(point.measured, 3),
            significant(point.simulated, 3),
            error,
        ]
    };
    let at =
        if figure.points.iter().any(|point| point.radial.is_some()) { "at" } else { "request" };
    (vec!["curve", at, "measured", "simulated", "error"], figure.points.iter().map(row).collect())
}

fn figures(validation: &Validation) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let row = |figure: &Figure| {
        let far = figure.points.iter().filter(|point| point.relative_error().abs() > 0.2).count();
        let (mean, worst) = (percent(figure.mean_error), percent(figure.worst_error));
        let given = if figure.given { "given" } else { "not given" };
        let points = figure.points.len().to_string();
        vec![title(figure), points, given.to_owned(), mean, worst, far.to_string()]
    };
    (
        vec!["figure", "points", "to the fit", "mean error", "worst error", "beyond 20 %"],
        validation.figures.iter().map(row).collect(),
    )
}

/// What has no bar and is off: curves not given, and phases of table 4 and PostMark's parts beyond
/// [`OFF`].
fn off(validation: &Validation) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let curves = validation.groups.iter().flat_map(|group| &group.curves);
    let given = |name: &str| validation.figure(name).is_none_or(|figure| figure.given);
    let curve = |curve: &Curve| {
        let Curve { figure, series, depth, mean_error, .. } = curve;
        vec![format!("{figure}, {series}, {depth} deep"), String::new(), percent(*mean_error)]
    };
    let mut rows: Vec<Vec<String>> = curves
        .filter(|curve| !given(&curve.figure) && curve.mean_error > MAX_NOT_GIVEN)
        .map(curve)
        .collect();
    let by_point = ["table4", "postmark_parts"];
    for figure in validation.figures.iter().filter(|figure| by_point.contains(&&*figure.name)) {
        for point in figure.points.iter().filter(|point| point.relative_error().abs() > OFF) {
            let name = format!("{}, {}", title(figure), label(figure, point));
            let size = match point.request_bytes {
                0 => String::new(),
                bytes => show_size(u64::from(bytes)),
            };
            rows.push(vec![name, size, percent(point.relative_error().abs())]);
        }
    }
    (vec!["misses", "request", "error"], rows)
}

fn groups(validation: &Validation) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let row = |group: &Group| {
        let worst = group.worst().map_or_else(String::new, |curve| {
            let disks = if curve.disks == 1 {
                "1 disk".to_owned()
            } else {
                format!("{} disks", curve.disks)
            };
            let Curve { figure, series, drive, depth, mean_error, .. } = curve;
            format!("{}: {figure}, {series}, {disks} {drive}, {depth} deep", percent(*mean_error))
        });
        vec![group.name.clone(), group.points.to_string(), percent(group.mean_error), worst]
    };
    (
        vec!["figures of", "points", "mean error", "worst curve"],
        validation.groups.iter().map(row).collect(),
    )
}

fn bars(validation: &Validation) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let row = |bar: &Bar| {
        let show = |value: f64| match bar.unit {
            BarUnit::Share => percent(value),
            BarUnit::Points => format!("{value:.1}"),
            BarUnit::Count => format!("{value:.0}"),
        };
        let held = if bar.holds { "held" } else { "missed" };
        vec![bar.name.clone(), show(bar.limit), show(bar.value), held.into()]
    };
    (vec!["held to", "at most", "is", ""], validation.bars.iter().map(row).collect())
}

fn as_table(title: &str, (head, rows): (Vec<&'static str>, Vec<Vec<String>>)) -> Table {
    Table {
        title: title.into(),
        head: head.into_iter().map(String::from).collect(),
        rows,
        folded: false,
    }
}

fn page(validation: &Validation) -> Page {
    let numbers = |numbers: &[(String, f64)]| {
        let row = |(path, value): &(String, f64)| vec![path.clone(), significant(*value, 4)];
        (vec!["number", "value"], numbers.iter().map(row).collect())
    };
    let mut sections = vec![Section {
        title: "How far off".into(),
        question: "How far is each figure of the study from the simulation?".into(),
        sentence: sentence(validation),
        figures: Vec::new(),
        tables: vec![
            as_table("Accuracy goals of the model", bars(validation)),
            as_table("Throughput and processor apart", groups(validation)),
            as_table("Figure by figure", figures(validation)),
            as_table("Misses", off(validation)),
            as_table("Figures whose values are not given", not_given(validation)),
            as_table("Numbers that were fitted", numbers(&validation.fitted)),
            as_table("Numbers solved from the figures", numbers(&validation.solved)),
        ],
    }];
    sections.extend(validation.figures.iter().map(|figure| Section {
        title: title(figure),
        question: String::new(),
        sentence: format!(
            "mean error {}, worst {}",
            percent(figure.mean_error),
            percent(figure.worst_error)
        ),
        figures: drawings(figure),
        tables: vec![Table {
            folded: true,
            ..as_table(&format!("Errors: {} values", figure.points.len()), points(figure))
        }],
    }));
    sections.extend(validation.predictions.iter().map(|one| Section {
        title: format!("{}, not given", name_of(&one.name)),
        question: String::new(),
        sentence: format!("{}; its values are not given, so these are predictions", one.about),
        figures: Vec::new(),
        tables: vec![Table { folded: true, ..as_table("Predicted", predicted(one)) }],
    }));
    Page {
        kind: "validate".into(),
        title: format!("twin:{}", validation.machine),
        about: "as measured in E. Riedel, C. van Ingen, J. Gray, A Performance Study of Sequential I/O on Windows NT 4, 1998, beside the \
                same experiments in simulation; MB are 2^20 bytes"
            .into(),
        program: program(),
        sections,
    }
}

/// Also returns the factor of the units; `None` if the paper prints a table.
fn axes(figure: &Figure) -> Option<(Axis, Axis, f64)> {
    if figure.points.iter().all(|point| point.request_bytes == 0) {
        return None;
    }
    let x = if figure.points.iter().any(|point| point.radial.is_some()) {
        Axis::Position
    } else {
        Axis::RequestBytes
    };
    match figure.unit.as_str() {
        "MB/s" => Some((x, Axis::BytesPerS, MIB as f64)),
        "CPU ms/MB" => Some((x, Axis::CpuNsPerMib, 1e6)),
        "ms" => Some((x, Axis::ServiceNs, 1e6)),
        _ => None,
    }
}

fn drawings(figure: &Figure) -> Vec<results::Figure> {
    let Some((x, y, factor)) = axes(figure) else { return Vec::new() };
    let mut labels: Vec<String> = Vec::new();
    for point in &figure.points {
        let label = label(figure, point);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let curve = |name: &str, whose: &str, of: fn(&Point) -> f64| {
        let on = figure.points.iter().filter(|point| label(figure, point) == name);
        let mut values: Vec<Value> = on
            .map(|point| {
                let x = point.radial.unwrap_or(f64::from(point.request_bytes));
                Value { x, y: Some(of(point) * factor), interval_95: None, point: None }
            })
            .collect();
        values.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series::new(CurveName::from(whose).in_group(name), values)
    };
    let chunks: Vec<&[String]> = labels.chunks(MAX_LABELS).collect();
    let parts = chunks.len();
    chunks
        .into_iter()
        .enumerate()
        .map(|(part, labels)| results::Figure {
            id: format!("{}-{}", figure.name, part + 1),
            title: if parts > 1 {
                format!("{}, part {}", title(figure), part + 1)
            } else {
                title(figure)
            },
            x,
            y,
            series: labels
                .iter()
                .flat_map(|label| {
                    [
                        curve(label, "measured", |point| point.measured),
                        curve(label, "simulated", |point| point.simulated),
                    ]
                })
                .collect(),
        })
        .collect()
}
