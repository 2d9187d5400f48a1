//! `halfpower twin fit`.

use super::document::{json, percent, program};
use crate::context::Context;
use crate::failure::Failure;
use crate::terminal::table;
use clap::Args;
use machine::units::{MIB, show_size, significant};
use machine::{Allocation, Buffering};
use predict::fit::{Fit, FitPoint, Judged, MIN_POINTS, Order};
use results::Results;
use results::{Numbers, Point};
use serde::Serialize;
use std::path::PathBuf;
use twin::Setup;
use twin::description::Drive;
use workload::Pattern;

/// Larger requests only add the overall rate, and take long to simulate.
const LARGEST_REQUEST: u32 = 4 << 20;

const MODERN: [&str; 4] = ["virtio", "cloud", "nvme", "sata-ssd"];

/// A disk whose small random reads take longer rotates.
const ROTATING_US: f64 = 2500.0;

/// Options of `twin fit`.
#[derive(Args, Clone)]
pub(super) struct Arguments {
    /// A results.json of halfpower study, sweep or run --json; or sustained.json of study
    /// --sustained, for the size and the rates of a write cache or credit
    results: PathBuf,
    /// The machine to calibrate [default: the closest of virtio, cloud, nvme, sata-ssd and
    /// hdd-20tb; of a sustained run nvme-qlc, cloud-burst or cloud-hdd]
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Seed of the random third of the points that is held out
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the fitted machine to this file; use it as twin:FILE.toml
    #[arg(long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    /// Print as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn fit(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    if let Some(path) = arguments
        .output
        .as_ref()
        .filter(|path| path.extension().is_none_or(|extension| extension != "toml"))
    {
        return Err(Failure::Usage(format!(
            "--output {}: a machine file is known by its ending; name it FILE.toml",
            path.display()
        )));
    }
    let output = crate::output::optional(
        context,
        "--output",
        arguments.output.as_deref(),
        &[&arguments.results],
    )?;
    if let Some(result) = super::fit_sustained::read(&arguments.results)? {
        let preset = arguments.preset.as_deref();
        return super::fit_sustained::fit(
            context,
            &result,
            preset,
            output.as_ref(),
            arguments.json,
        );
    }
    let results =
        results::read(&arguments.results).map_err(|error| Failure::Usage(error.to_string()))?;
    let chosen = points(&results);
    if chosen.points.len() < MIN_POINTS {
        return Err(Failure::Usage(format!(
            "{}: {} of its {} points can calibrate a machine and {MIN_POINTS} are needed: direct reads and writes, in order or random, \
             of a written target; measure them with halfpower study, or with sweep --op read,write --pattern seq,random --request 4k,64k,1m \
             --depth 1,8",
            arguments.results.display(),
            chosen.points.len(),
            results.points.len()
        )));
    }
    let bases = bases(arguments, &chosen.points)?;
    let fit = predict::fit::fit_best(&bases, &chosen.points, arguments.seed)?;
    let file = fit.machine_file()?;
    if let Some(output) = &output {
        crate::output::save(output, &format!("# {} fitted this machine.\n{file}", program()))?;
    }
    let shown = Shown {
        results: arguments.results.display().to_string(),
        target: &results.target.name,
        seed: arguments.seed,
        merged: chosen.merged,
        fit: &fit,
    };
    if arguments.json {
        return context.console.print(&(json("fit", &shown)? + "\n"));
    }
    context.console.print(&text(&shown))?;
    match &arguments.output {
        Some(path) => context.console.print(&format!("\nMachine: twin:{}\n", path.display())),
        None => context.console.print("\n--output FILE.toml writes the fitted machine.\n"),
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    results: String,
    target: &'a str,
    seed: u64,
    /// Left out because the kernel merged their requests.
    merged: usize,
    #[serde(flatten)]
    fit: &'a Fit,
}

fn bases(arguments: &Arguments, points: &[FitPoint]) -> Result<Vec<Setup>, Failure> {
    if let Some(name) = &arguments.preset {
        return Ok(vec![Setup::parse(name)?]);
    }
    let small = points.iter().filter(|point| {
        point.order == Order::Random && point.depth == 1 && point.read_percent == 100
    });
    let min = small
        .map(|point| f64::from(point.request_bytes) / point.throughput_bytes_per_s * 1e6)
        .fold(f64::INFINITY, f64::min);
    let rotating = min.is_finite() && min > ROTATING_US;
    let names: &[&str] = if rotating { &["hdd-20tb", "cloud"] } else { &MODERN };
    Ok(names.iter().map(|name| Setup::parse(name)).collect::<Result<_, _>>()?)
}

struct Chosen {
    points: Vec<FitPoint>,
    merged: usize,
}

/// Points that a single volume without a cache can reproduce: direct, at full speed, over a whole
/// written target. Runs of one workload become their median.
fn points(results: &Results) -> Chosen {
    let mut groups: Vec<(FitPoint, Vec<f64>)> = Vec::new();
    let mut merged = 0;
    for point in &results.points {
        let (Some(one), Some(numbers)) =
            (fit_point(point, results.target.size_bytes), &point.numbers)
        else {
            continue;
        };
        if was_merged(&one, numbers) {
            merged += 1;
            continue;
        }
        let same = |other: &FitPoint| {
            (other.read_percent, other.order, other.request_bytes, other.depth)
                == (one.read_percent, one.order, one.request_bytes, one.depth)
        };
        let group = match groups.iter().position(|(other, _)| same(other)) {
            Some(place) => &mut groups[place],
            None => {
                groups.push((one, Vec::new()));
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        group.1.extend(&numbers.runs_bytes_per_s);
    }
    let points = groups.into_iter().map(|(point, runs)| of_runs(point, runs)).collect();
    Chosen { points, merged }
}

/// No twin of the device reproduces requests that the kernel merged.
fn was_merged(point: &FitPoint, numbers: &Numbers) -> bool {
    let reached = numbers.achieved.device_request_bytes;
    point.order == Order::Sequential
        && reached.is_some_and(|bytes| bytes > 1.25 * f64::from(point.request_bytes))
}

fn of_runs(mut point: FitPoint, mut runs: Vec<f64>) -> FitPoint {
    runs.retain(|rate| *rate > 0.0);
    runs.sort_by(f64::total_cmp);
    let at = |share: f64| runs[((runs.len() - 1) as f64 * share).round() as usize];
    if runs.len() >= 2 {
        point.throughput_bytes_per_s = measure::stats::median(&runs);
        point.uncertainty = (at(0.75) - at(0.25)) / 2.0 / point.throughput_bytes_per_s;
    }
    point
}

fn fit_point(point: &Point, size_bytes: u64) -> Option<FitPoint> {
    let w = &point.workload;
    let order = match w.pattern {
        Pattern::Seq if w.threads == 1 => Order::Sequential,
        Pattern::Random => Order::Random,
        _ => return None,
    };
    let plain = w.buffering == Buffering::Direct
        && w.allocation == Allocation::Written
        && !w.engine.is_mapped()
        && (w.region_start_bytes, w.region_bytes, w.limit_bytes, w.offset_bytes, w.think_ns)
            == (0, None, None, 0, 0)
        && w.rate_iops.is_none()
        && w.request_bytes <= LARGEST_REQUEST;
    let throughput_bytes_per_s = point.rate().filter(|rate| plain && *rate > 0.0)?;
    let depth = w.outstanding();
    Some(FitPoint {
        read_percent: w.read_percent,
        order,
        request_bytes: w.request_bytes,
        depth,
        region_bytes: size_bytes,
        throughput_bytes_per_s,
        uncertainty: point
            .numbers
            .as_ref()
            .and_then(|numbers| numbers.relative_half_width)
            .unwrap_or(0.0),
    })
}

fn text(shown: &Shown<'_>) -> String {
    let fit = shown.fit;
    let row = |judged: &Judged| {
        let point = &judged.point;
        let op = match point.read_percent {
            100 => "read".to_owned(),
            0 => "write".to_owned(),
            percent => format!("mix {percent}:{}", 100 - percent),
        };
        let order = if point.order == Order::Random { "random" } else { "seq" };
        let rates = [point.throughput_bytes_per_s, judged.predicted_bytes_per_s]
            .map(|rate| significant(rate / MIB as f64, 3));
        let [measured, predicted] = rates;
        let error = format!(
            "{:+.1} %",
            (judged.predicted_bytes_per_s / point.throughput_bytes_per_s - 1.0) * 100.0
        );
        let held = if judged.held_out { "held out" } else { "" };
        vec![
            op,
            order.into(),
            show_size(u64::from(point.request_bytes)),
            point.depth.to_string(),
            measured,
            predicted,
            error,
            held.into(),
        ]
    };
    let rows: Vec<_> = fit.points.iter().map(row).collect();
    let mut text = table(
        &["op", "pattern", "request", "depth", "measured MiB/s", "fitted", "error", ""],
        &rows,
        2,
    );
    let base = &fit.setup.name;
    let before =
        |value: Option<f64>| value.map_or_else(|| "none".into(), |value| significant(value, 4));
    let rows: Vec<_> = fit
        .fitted
        .iter()
        .map(|one| vec![one.path.clone(), before(one.before), significant(one.after, 4)])
        .collect();
    text += &format!("\n{}", table(&["number", &format!("of {base}"), "fitted"], &rows, 1));
    if let Drive::Virtio(disk) = fit.setup.drive() {
        let ring = if disk.batched {
            "requests come and go in batches"
        } else {
            "each request comes and goes by itself"
        };
        text += &format!("workers: {}; {ring}\n", disk.workers);
    }
    let held = fit.points.iter().filter(|point| point.held_out).count();
    text += &format!(
        "\n{base} fitted to {}: {} points took part, median error {}; the {held} held out: median error {}\n",
        shown.target,
        fit.points.len() - held,
        percent(fit.fitted_median_error),
        percent(fit.held_out_median_error)
    );
    if shown.merged > 0 {
        text += &format!(
            "{} points were left out: the kernel merged their requests into larger ones.\n",
            shown.merged
        );
    }
    text
}
