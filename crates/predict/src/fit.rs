//! Fits a preset's free numbers to measurements, and validates on held-out points.

mod free;
mod start;

use crate::whatif::predict;
use crate::{Error, Result};
use free::free;
use machine::Op;
use measure::stats::median;
use serde::{Deserialize, Serialize};
use twin::Setup;
use workload::{Pattern, Stop, Workload, rng};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Sequential,
    /// Uniform over the region.
    Random,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitPoint {
    pub read_percent: u8,
    pub order: Order,
    pub request_bytes: u32,
    pub depth: u32,
    pub region_bytes: u64,
    /// Measured without a cache.
    pub throughput_bytes_per_s: f64,
    /// Half of the 95 % interval over the throughput; 0 if unknown.
    pub uncertainty: f64,
}

impl FitPoint {
    fn weight(&self) -> f64 {
        1.0 / (0.1 + self.uncertainty.clamp(0.0, 10.0))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fitted {
    /// In the machine file.
    pub path: String,
    /// `None` if the machine did not have this number.
    pub before: Option<f64>,
    pub after: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    pub point: FitPoint,
    pub predicted_bytes_per_s: f64,
    pub held_out: bool,
}

impl Judged {
    /// As |predicted - measured| / measured.
    pub fn error(&self) -> f64 {
        (self.predicted_bytes_per_s / self.point.throughput_bytes_per_s - 1.0).abs()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    #[serde(skip)]
    pub setup: Setup,
    pub fitted: Vec<Fitted>,
    pub points: Vec<Judged>,
    /// Weighted mean of |ln (predicted / measured)| over fitted points.
    pub loss: f64,
    pub fitted_median_error: f64,
    pub held_out_median_error: f64,
}

impl Fit {
    /// For [`Setup::parse`].
    pub fn machine_file(&self) -> Result<String> {
        Ok(toml::to_string(&self.setup.description)?)
    }
}

/// Beyond it only seeks grow, and slowly.
const LARGEST_REGION: u64 = 64 << 30;

fn workload(point: &FitPoint) -> Workload {
    Workload {
        read_percent: point.read_percent,
        pattern: if point.order == Order::Random { Pattern::Random } else { Pattern::Seq },
        region_bytes: Some(
            point.region_bytes.clamp(u64::from(point.request_bytes), LARGEST_REGION),
        ),
        stop: Stop::AfterBytes(u64::from(point.request_bytes) * (100 + 8 * u64::from(point.depth))),
        ..crate::workload(Op::Read, point.request_bytes, point.depth)
    }
}

fn predicted(setup: &Setup, point: &FitPoint) -> Result<f64> {
    Ok(predict(setup, &workload(point))?.throughput_bytes_per_s)
}

/// Takes log ratios: twice too fast is as wrong as twice too slow. Small residuals count squared,
/// large ones linearly, so every point matters and no outlier dominates (P. J. Huber, "Robust
/// estimation of a location parameter", 1964, in its smooth form).
fn loss(setup: &Setup, points: &[&FitPoint]) -> Result<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for point in points {
        let distance = (predicted(setup, point)? / point.throughput_bytes_per_s).ln() / LINEAR_FROM;
        sum += point.weight() * LINEAR_FROM * (distance.hypot(1.0) - 1.0);
        weights += point.weight();
    }
    Ok(sum / weights.max(f64::MIN_POSITIVE))
}

/// A usual measurement error.
const LINEAR_FROM: f64 = 0.15;

/// The drive first, then also the processor: a busy thread and a busy device look alike, and
/// processors are better known.
fn search(setup: Setup, points: &[&FitPoint]) -> Result<(Setup, f64)> {
    let drive = |path: &str| path.starts_with("drives.");
    let (setup, _) = descend(setup, points, 1.0, drive)?;
    descend(setup, points, SMALL_STEP, |_| true)
}

/// The first step, as a power of e, once the drive is fitted.
const SMALL_STEP: f64 = 0.25;

fn descend(
    mut setup: Setup,
    points: &[&FitPoint],
    first: f64,
    moves: impl Fn(&str) -> bool,
) -> Result<(Setup, f64)> {
    let mut best = loss(&setup, points)?;
    let mut step = first;
    while step > 0.02 {
        let mut better = false;
        let free_now: Vec<bool> =
            free(&mut setup).iter().map(|number| moves(&number.path)).collect();
        for index in
            free_now.iter().enumerate().filter(|(_, moves)| **moves).map(|(index, _)| index)
        {
            for factor in [step.exp(), (-step).exp()] {
                let mut tried = setup.clone();
                if let Some(number) = free(&mut tried).into_iter().nth(index) {
                    number.scale(factor);
                }
                if twin::preset::check(&tried.description).is_some() {
                    continue;
                }
                let value = loss(&tried, points)?;
                if value < best - 1e-6 {
                    (setup, best, better) = (tried, value, true);
                    break;
                }
            }
        }
        if !better {
            step /= 2.0;
        }
    }
    Ok((setup, best))
}

fn search_all(base: &Setup, points: &[&FitPoint]) -> Result<(Setup, f64)> {
    let mut starts = Vec::new();
    for setup in start::starts(base, points) {
        let value = loss(&setup, points)?;
        starts.push((setup, value));
    }
    starts.sort_by(|a, b| a.1.total_cmp(&b.1));
    starts.truncate(MAX_SEARCHES);
    let mut best: Option<(Setup, f64)> = None;
    for (start, _) in starts {
        let found = search(start, points)?;
        if best.as_ref().is_none_or(|(_, value)| found.1 < *value) {
            best = Some(found);
        }
    }
    best.ok_or_else(|| Error::Fit("no starting point".to_owned()))
}

const MAX_SEARCHES: usize = 2;

fn held_out(count: usize, seed: u64) -> Vec<bool> {
    let mut order: Vec<(u64, usize)> =
        (0..count).map(|index| (rng::hash(seed, index as u64), index)).collect();
    order.sort_unstable();
    let mut out = vec![false; count];
    order[..count / 3].iter().for_each(|&(_, index)| out[index] = true);
    out
}

/// Holds out a random third of the points (by `seed`) for validation.
pub fn fit(base: &Setup, points: &[FitPoint], seed: u64) -> Result<Fit> {
    check(points)?;
    let out = held_out(points.len(), seed);
    let training: Vec<&FitPoint> =
        points.iter().zip(&out).filter(|(_, out)| !**out).map(|(point, _)| point).collect();
    let (mut setup, loss) = search_all(base, &training)?;
    let mut judged = Vec::with_capacity(points.len());
    for (point, &held_out) in points.iter().zip(&out) {
        judged.push(Judged {
            point: point.clone(),
            predicted_bytes_per_s: predicted(&setup, point)?,
            held_out,
        });
    }
    let mut original = base.clone();
    let before: Vec<(String, f64)> =
        free(&mut original).into_iter().map(|number| (number.path, *number.value)).collect();
    let before_of =
        |path: &str| before.iter().find(|(other, _)| other == path).map(|(_, value)| *value);
    let mut fitted = Vec::new();
    for number in free(&mut setup) {
        fitted.push(Fitted {
            before: before_of(&number.path),
            after: *number.value,
            path: number.path,
        });
    }
    for number in fitted.iter().filter(|number| number.before != Some(number.after)) {
        setup.description.sources.insert(number.path.clone(), "fitted to measurements".to_owned());
    }
    let errors = |held: bool| {
        median(&judged.iter().filter(|j| j.held_out == held).map(Judged::error).collect::<Vec<_>>())
    };
    let (fitted_median_error, held_out_median_error) = (errors(false), errors(true));
    Ok(Fit { setup, fitted, points: judged, loss, fitted_median_error, held_out_median_error })
}

/// The smallest loss without the held-out points.
pub fn fit_best(bases: &[Setup], points: &[FitPoint], seed: u64) -> Result<Fit> {
    let fits = std::thread::scope(|scope| {
        let start = |base| {
            (base, std::thread::Builder::new().spawn_scoped(scope, move || fit(base, points, seed)))
        };
        let running: Vec<_> = bases.iter().map(start).collect();
        let ended = running.into_iter().map(|(base, started)| match started {
            Ok(search) => search.join().unwrap_or(Err(Error::Broken("a search"))),
            // Without a thread, fit here.
            Err(_) => fit(base, points, seed),
        });
        ended.collect::<Result<Vec<Fit>>>()
    })?;
    let best = fits.into_iter().min_by(|a, b| a.loss.total_cmp(&b.loss));
    best.ok_or_else(|| Error::Fit("no machine was named".to_owned()))
}

fn check(points: &[FitPoint]) -> Result<()> {
    if points.len() < MIN_POINTS {
        return Err(Error::Fit(format!(
            "{} points are too few to hold out a third; measure {MIN_POINTS} or more",
            points.len()
        )));
    }
    if let Some(point) = points.iter().find(|point| {
        !(point.throughput_bytes_per_s > 0.0 && point.throughput_bytes_per_s.is_finite())
    }) {
        return Err(Error::Fit(format!(
            "a throughput of {} bytes per second; leave out points that failed",
            point.throughput_bytes_per_s
        )));
    }
    Ok(())
}

/// The minimum for a fit.
pub const MIN_POINTS: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use twin::description::Drive;

    fn points(truth: &Setup) -> Vec<FitPoint> {
        let mut points = Vec::new();
        for (order, sizes) in
            [(Order::Sequential, [65536, 1 << 20]), (Order::Random, [4096, 16384])]
        {
            for request_bytes in sizes {
                for depth in [1, 4, 32] {
                    for read_percent in [100, 0] {
                        let (region_bytes, throughput_bytes_per_s, uncertainty) =
                            (1 << 30, 1.0, 0.0);
                        let mut point = FitPoint {
                            read_percent,
                            order,
                            request_bytes,
                            depth,
                            region_bytes,
                            throughput_bytes_per_s,
                            uncertainty,
                        };
                        point.throughput_bytes_per_s = predicted(truth, &point).unwrap();
                        points.push(point);
                    }
                }
            }
        }
        points
    }

    #[test]
    fn a_machine_unknown_to_the_fit_is_found() {
        let mut truth = Setup::parse("virtio").unwrap();
        for (number, factor) in
            free(&mut truth).into_iter().zip([1.7, 0.6, 1.4, 0.7, 1.3, 0.8, 1.1])
        {
            number.scale(factor);
        }
        if let Some(Drive::Virtio(disk)) = truth.description.drives.get_mut("vda") {
            (disk.workers, disk.batched) = (4, true);
        }
        let fit = fit(&Setup::parse("virtio").unwrap(), &points(&truth), 5).unwrap();
        assert_eq!(fit.points.iter().filter(|point| point.held_out).count(), 8);
        assert!(fit.held_out_median_error < 0.05, "{fit:?}");
        let again = twin::preset::parse("fitted.toml", &fit.machine_file().unwrap()).unwrap();
        assert_eq!(again, fit.setup.description);
    }

    #[test]
    fn quotas_are_distinguished_from_a_virtual_disk() {
        let mut truth = Setup::parse("cloud").unwrap();
        if let Some(Drive::Cloud(volume)) = truth.description.drives.get_mut("volume") {
            (volume.iops, volume.burst_iops, volume.bytes_per_s, volume.burst_bytes_per_s) =
                (4000.0, 4000.0, 200e6, 200e6);
            (volume.write_iops, volume.write_bytes_per_s) = (Some(2000.0), Some(100e6));
            (volume.read_us, volume.write_us) = (20.0, 30.0);
        }
        let bases = ["virtio", "cloud"].map(|name| Setup::parse(name).unwrap());
        let fit = fit_best(&bases, &points(&truth), 5).unwrap();
        assert_eq!(fit.setup.drive, "volume");
        assert!(fit.held_out_median_error < 0.05, "{fit:?}");
        let quota = fit
            .fitted
            .iter()
            .find(|number| number.path == "drives.volume.write_iops")
            .expect("a quota for writes");
        assert!(quota.before.is_none() && (1800.0..2200.0).contains(&quota.after), "{quota:?}");
    }

    #[test]
    fn too_little_or_nonsense_is_refused() {
        let setup = Setup::parse("nvme").unwrap();
        assert!(fit(&setup, &[], 1).unwrap_err().to_string().contains("9 or more"));
        let mut bad = points(&setup);
        bad[3].throughput_bytes_per_s = 0.0;
        assert!(fit(&setup, &bad, 1).unwrap_err().to_string().contains("throughput of 0"));
    }
}
