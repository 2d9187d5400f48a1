//! Calibration: a preset's free numbers moved until the machine does what was measured, and judged by points left out.

use crate::description::Drive;
use crate::program::{Order, Program};
use crate::whatif::predict;
use crate::{Error, Result, Setup};
use machine::Op;
use serde::{Deserialize, Serialize};

/// A measured point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitPoint {
    /// Percent of reads.
    pub read_percent: u8,
    /// The order of the requests.
    pub order: Order,
    /// Request size.
    pub request_bytes: u32,
    /// Requests outstanding.
    pub depth: u32,
    /// What was measured, past the file-system cache.
    pub throughput_bytes_per_s: f64,
}

/// A number that was moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fitted {
    /// Its path in the machine file.
    pub path: String,
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
}

/// A point and what the fitted machine says of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// As measured.
    pub point: FitPoint,
    /// As predicted.
    pub predicted_bytes_per_s: f64,
    /// It took no part in the fit.
    pub held_out: bool,
}

impl Judged {
    /// |predicted - measured| / measured.
    pub fn error(&self) -> f64 {
        (self.predicted_bytes_per_s / self.point.throughput_bytes_per_s - 1.0).abs()
    }
}

/// A calibrated machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// The machine.
    #[serde(skip)]
    pub setup: Setup,
    /// Numbers that were moved.
    pub fitted: Vec<Fitted>,
    /// Every point.
    pub points: Vec<Judged>,
    /// Median error of the points that took part.
    pub fitted_median_error: f64,
    /// Median error of the points held out.
    pub held_out_median_error: f64,
}

impl Fit {
    /// The machine as a file that [`Setup::parse`] reads.
    ///
    /// # Errors
    /// None is expected.
    pub fn machine_file(&self) -> Result<String> {
        toml::to_string(&self.setup.description).map_err(|e| Error::Fit(e.to_string()))
    }
}

/// The free numbers of a machine by path: its drive's, and what a request costs the processor.
fn free<'a>(setup: &'a mut Setup) -> Vec<(String, &'a mut f64)> {
    let drive = setup.drive.clone();
    let mut numbers: Vec<(&str, &'a mut f64)> = match setup.description.drives.get_mut(&setup.drive) {
        Some(Drive::Flash(d)) => vec![
            ("link_bytes_per_s", &mut d.link_bytes_per_s),
            ("controller_us", &mut d.controller_us),
            ("read_us", &mut d.read_us),
            ("cache_program_us", &mut d.cache_program_us),
            ("command_us", &mut d.command_us),
            ("channel_bytes_per_s", &mut d.channel_bytes_per_s),
        ],
        Some(Drive::Virtio(d)) => vec![
            ("total_bytes_per_s", &mut d.total_bytes_per_s),
            ("read_us", &mut d.read_us),
            ("write_us", &mut d.write_us),
            ("notify_us", &mut d.notify_us),
            ("read_bytes_per_s", &mut d.read_bytes_per_s),
            ("write_bytes_per_s", &mut d.write_bytes_per_s),
        ],
        Some(Drive::Cloud(d)) => vec![
            ("burst_iops", &mut d.burst_iops),
            ("burst_bytes_per_s", &mut d.burst_bytes_per_s),
            ("read_us", &mut d.read_us),
            ("write_us", &mut d.write_us),
            ("stream_bytes_per_s", &mut d.stream_bytes_per_s),
            ("iops", &mut d.iops),
            ("bytes_per_s", &mut d.bytes_per_s),
        ],
        Some(Drive::Disk(d)) => {
            let mut numbers: Vec<(&str, &mut f64)> = vec![
                ("rpm", &mut d.rpm),
                ("track_skew_ms", &mut d.track_skew_ms),
                ("firmware.read_us", &mut d.firmware.read_us),
                ("firmware.write_us", &mut d.firmware.write_us),
            ];
            if let Some(last) = d.seek.last_mut() {
                numbers.push(("seek", &mut last.1));
            }
            numbers
        }
        None => Vec::new(),
    };
    numbers.push(("", &mut setup.description.processor.request_us));
    let path = |name: &str| if name.is_empty() { "processor.request_us".to_owned() } else { format!("drives.{drive}.{name}") };
    numbers.into_iter().map(|(name, number)| (path(name), number)).collect()
}

/// The workers of a virtio disk are a whole number, so they are tried one by one.
fn with_workers(setup: &Setup, workers: u32) -> Option<Setup> {
    let mut setup = setup.clone();
    match setup.description.drives.get_mut(&setup.drive) {
        Some(Drive::Virtio(disk)) => disk.workers = workers,
        _ => return None,
    }
    Some(setup)
}

fn program(point: &FitPoint, size: u64) -> Program {
    let mut program = Program::study(Op::Read, point.request_bytes, point.depth);
    program.read_percent = point.read_percent;
    program.order = point.order;
    program.region = size.min(4 << 30);
    program.bytes = u64::from(point.request_bytes) * (200 + 12 * u64::from(point.depth));
    program
}

fn predicted(setup: &Setup, point: &FitPoint) -> Result<f64> {
    Ok(predict(setup, &program(point, 1 << 30))?.throughput_bytes_per_s)
}

/// Mean |log ratio|: twice too fast is as wrong as twice too slow, and a wild point does not rule.
fn loss(setup: &Setup, points: &[&FitPoint]) -> Result<f64> {
    let mut sum = 0.0;
    for point in points {
        sum += (predicted(setup, point)? / point.throughput_bytes_per_s).ln().abs();
    }
    Ok(sum / points.len().max(1) as f64)
}

/// Moves each free number up and down by a factor that shrinks, keeping what helps.
fn search(mut setup: Setup, points: &[&FitPoint]) -> Result<(Setup, f64)> {
    let mut best = loss(&setup, points)?;
    let mut step = 1.0f64;
    while step > 0.02 {
        let mut better = false;
        let paths = free(&mut setup).len();
        for index in 0..paths {
            for factor in [step.exp(), (-step).exp()] {
                let mut tried = setup.clone();
                if let Some((_, number)) = free(&mut tried).into_iter().nth(index) {
                    *number = (*number).max(0.05) * factor;
                }
                if crate::preset::check(&tried.description).is_some() {
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// Which points are held out: a third, drawn by `seed`.
fn held_out(count: usize, seed: u64) -> Vec<bool> {
    let mut order: Vec<(u64, usize)> = (0..count)
        .map(|index| {
            let mut z = seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31), index)
        })
        .collect();
    order.sort_unstable();
    let mut out = vec![false; count];
    order[..count / 3].iter().for_each(|&(_, index)| out[index] = true);
    out
}

/// Calibrates a machine to measured points, a random third of which (by `seed`) is held out and only judged.
///
/// # Errors
/// Fewer than 9 points, a throughput that is not positive, or a point that the machine cannot run.
pub fn fit(base: &Setup, points: &[FitPoint], seed: u64) -> Result<Fit> {
    if points.len() < 9 {
        return Err(Error::Fit(format!("{} points are too few to hold out a third; measure 9 or more", points.len())));
    }
    if let Some(point) = points.iter().find(|point| !(point.throughput_bytes_per_s > 0.0 && point.throughput_bytes_per_s.is_finite())) {
        return Err(Error::Fit(format!("a throughput of {} bytes per second; leave out points that failed", point.throughput_bytes_per_s)));
    }
    let out = held_out(points.len(), seed);
    let training: Vec<&FitPoint> = points.iter().zip(&out).filter(|(_, out)| !**out).map(|(point, _)| point).collect();
    let starts: Vec<Setup> = [1, 2, 4, 8, 16, 32].iter().filter_map(|&workers| with_workers(base, workers)).collect();
    let starts = if starts.is_empty() { vec![base.clone()] } else { starts };
    let mut best: Option<(Setup, f64)> = None;
    for start in starts {
        let found = search(start, &training)?;
        if best.as_ref().is_none_or(|(_, value)| found.1 < *value) {
            best = Some(found);
        }
    }
    let Some((mut setup, _)) = best else { return Err(Error::Fit("nothing to begin with".to_owned())) };
    let mut judged = Vec::with_capacity(points.len());
    for (point, &held_out) in points.iter().zip(&out) {
        judged.push(Judged { point: point.clone(), predicted_bytes_per_s: predicted(&setup, point)?, held_out });
    }
    let before: Vec<f64> = free(&mut base.clone()).into_iter().map(|(_, number)| *number).collect();
    let after: Vec<(String, f64)> = free(&mut setup).into_iter().map(|(path, number)| (path, *number)).collect();
    let fitted: Vec<Fitted> = after.into_iter().zip(before).map(|((path, after), before)| Fitted { path, before, after }).collect();
    for number in fitted.iter().filter(|number| number.after != number.before) {
        setup.description.sources.insert(number.path.clone(), "fitted to measurements".to_owned());
    }
    let errors = |held: bool| median(judged.iter().filter(|j| j.held_out == held).map(Judged::error).collect());
    let (fitted_median_error, held_out_median_error) = (errors(false), errors(true));
    Ok(Fit { setup, fitted, points: judged, fitted_median_error, held_out_median_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(truth: &Setup) -> Vec<FitPoint> {
        let mut points = Vec::new();
        for (order, sizes) in [(Order::Sequential, [65536, 1 << 20]), (Order::Random, [4096, 16384])] {
            for request_bytes in sizes {
                for depth in [1, 4, 32] {
                    for read_percent in [100, 0] {
                        let mut point = FitPoint { read_percent, order, request_bytes, depth, throughput_bytes_per_s: 1.0 };
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
        for (index, (_, number)) in free(&mut truth).into_iter().enumerate() {
            *number *= [1.7, 0.6, 1.4, 0.7, 1.3, 0.8, 1.1][index];
        }
        let truth = with_workers(&truth, 4).unwrap();
        let fit = fit(&Setup::parse("virtio").unwrap(), &points(&truth), 5).unwrap();
        assert_eq!(fit.points.iter().filter(|point| point.held_out).count(), 8);
        assert!(fit.held_out_median_error < 0.15, "{fit:?}");
        let again = crate::preset::parse("fitted.toml", &fit.machine_file().unwrap()).unwrap();
        assert_eq!(again, fit.setup.description);
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
