//! `halfpower twin fit`: a simulated machine calibrated to the results of a real one.

use super::{json, percent, table};
use crate::Failure;
use clap::Args;
use machine::units::{MIB, show_size, significant};
use machine::{Allocation, Buffering, Engine};
use measure::Point;
use std::path::PathBuf;
use study::Results;
use twin::Setup;
use twin::fit::{Fit, FitPoint, Judged};
use twin::program::Order;
use workload::Pattern;

/// The largest request that is fitted: beyond it only the rate of the whole is told, at the price of long simulations.
const LARGEST_REQUEST: u32 = 4 << 20;

/// What the command line says.
#[derive(Args, Clone)]
pub(super) struct Arguments {
    /// A results.json of halfpower study, sweep or run
    results: PathBuf,
    /// The machine whose numbers are moved
    #[arg(long, value_name = "NAME", default_value = "virtio")]
    preset: String,
    /// Draws the third of the points that is held out
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the fitted machine into this file; it is then twin:FILE.toml
    #[arg(long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    /// Print as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Calibrates a machine.
pub(super) fn fit(arguments: &Arguments) -> Result<(), Failure> {
    let results = store::read(&arguments.results).map_err(|error| Failure::Usage(error.to_string()))?;
    let base = Setup::parse(&arguments.preset)?;
    if let Some(path) = arguments.output.as_ref().filter(|path| path.extension().is_none_or(|extension| extension != "toml")) {
        return Err(Failure::Usage(format!("--output {}: a machine file is named by its ending; write it as NAME.toml", path.display())));
    }
    let points = points(&results);
    let kind = super::show::kind(base.drive());
    if points.len() < 9 {
        return Err(Failure::Usage(format!(
            "{}: {} of its {} points can calibrate a {kind} and 9 are needed: direct reads and writes, in order or random, of a whole \
             written file; measure them with halfpower study, or sweep --pattern seq,random --request 4k,64k,1m --depth 1,8,32",
            arguments.results.display(),
            points.len(),
            results.points.len()
        )));
    }
    let fit = twin::fit::fit(&base, &points, arguments.seed)?;
    if let Some(path) = &arguments.output {
        super::write_file(path, &fit.machine_file()?)?;
    }
    if arguments.json {
        println!("{}", json("fit", &fit)?);
        return Ok(());
    }
    print(&fit, &results, &base.name);
    if let Some(path) = &arguments.output {
        println!("\nMachine: twin:{}", path.display());
    }
    Ok(())
}

/// What can be told by a machine of one volume without a cache: direct requests on all of a written target, as fast as they go.
fn points(results: &Results) -> Vec<FitPoint> {
    let mut points: Vec<FitPoint> = Vec::new();
    for one in results.points.iter().filter_map(fit_point) {
        // Of two runs of the same workload (a peak is confirmed in a longer one) the later counts.
        let same = |other: &FitPoint| FitPoint { throughput_bytes_per_s: one.throughput_bytes_per_s, ..other.clone() } == one;
        match points.iter().position(same) {
            Some(place) => points[place] = one,
            None => points.push(one),
        }
    }
    points
}

fn fit_point(point: &Point) -> Option<FitPoint> {
    let w = &point.workload;
    let order = match w.pattern {
        Pattern::Seq if w.threads == 1 => Order::Sequential,
        Pattern::Random => Order::Random,
        _ => return None,
    };
    let plain = w.buffering == Buffering::Direct
        && w.allocation == Allocation::Written
        && w.engine != Engine::Mmap
        && (w.region_start_bytes, w.region_bytes, w.limit_bytes, w.offset_bytes, w.think_ns) == (0, None, None, 0, 0)
        && w.rate_iops.is_none()
        && w.request_bytes <= LARGEST_REQUEST;
    let throughput_bytes_per_s = point.rate().filter(|rate| plain && *rate > 0.0)?;
    let depth = if w.engine == Engine::Sync { w.threads } else { w.outstanding() };
    Some(FitPoint { read_percent: w.read_percent, order, request_bytes: w.request_bytes, depth, throughput_bytes_per_s })
}

fn print(fit: &Fit, results: &Results, base: &str) {
    let row = |judged: &Judged| {
        let point = &judged.point;
        let op = match point.read_percent {
            100 => "read".to_owned(),
            0 => "write".to_owned(),
            percent => format!("mix {percent}:{}", 100 - percent),
        };
        let order = if point.order == Order::Random { "random" } else { "seq" };
        let rates = [point.throughput_bytes_per_s, judged.predicted_bytes_per_s].map(|rate| significant(rate / MIB as f64, 3));
        let [measured, predicted] = rates;
        let error = format!("{:+.1} %", (judged.predicted_bytes_per_s / point.throughput_bytes_per_s - 1.0) * 100.0);
        let held = if judged.held_out { "held out" } else { "" };
        vec![op, order.into(), show_size(u64::from(point.request_bytes)), point.depth.to_string(), measured, predicted, error, held.into()]
    };
    let rows: Vec<_> = fit.points.iter().map(row).collect();
    table(&["op", "pattern", "request", "depth", "measured MiB/s", "fitted", "error", ""], &rows, 2);
    println!();
    let rows: Vec<_> = fit.fitted.iter().map(|one| vec![one.path.clone(), significant(one.before, 4), significant(one.after, 4)]).collect();
    table(&["number", &format!("of {base}"), "fitted"], &rows, 1);
    let held = fit.points.iter().filter(|point| point.held_out).count();
    println!(
        "\n{base} fitted to {}: {} points took part, median error {}; the {held} held out: median error {}",
        results.target.name,
        fit.points.len() - held,
        percent(fit.fitted_median_error),
        percent(fit.held_out_median_error)
    );
}
