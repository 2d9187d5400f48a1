use crate::fio::options::job_options::Options;
use crate::fio::run::result::{CloneStats, Entry, FioResult};
use crate::fio::run::stream_stats::BySide;
use measure::histogram::Histogram;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Keeps this order in JSON.
pub(crate) struct Ordered<T>(pub(crate) Vec<(String, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
pub(crate) struct Directions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read: Option<Direction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write: Option<Direction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trim: Option<Direction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mixed: Option<Direction>,
}

impl Directions {
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &Direction)> {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim), ("mixed", &self.mixed)]
            .into_iter()
            .filter_map(|(name, direction)| Some((name, direction.as_ref()?)))
    }
}

#[derive(Serialize)]
pub(crate) struct Direction {
    pub(crate) io_bytes: u64,
    pub(crate) io_kbytes: u64,
    pub(crate) bw_bytes: u64,
    pub(crate) bw: u64,
    pub(crate) iops: f64,
    pub(crate) runtime: u64,
    pub(crate) total_ios: u64,
    pub(crate) short_ios: u64,
    pub(crate) drop_ios: u64,
    pub(crate) slat_ns: Latency,
    pub(crate) clat_ns: Latency,
    pub(crate) lat_ns: Latency,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) prios: Vec<PriorityReport>,
    pub(crate) bw_min: u64,
    pub(crate) bw_max: u64,
    pub(crate) bw_agg: f64,
    pub(crate) bw_mean: f64,
    pub(crate) bw_dev: f64,
    pub(crate) bw_samples: u64,
    pub(crate) iops_min: u64,
    pub(crate) iops_max: u64,
    pub(crate) iops_mean: f64,
    pub(crate) iops_stddev: f64,
    pub(crate) iops_samples: u64,
}

#[derive(Serialize)]
pub(crate) struct PriorityReport {
    prioclass: u16,
    prio: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    clat_ns: Option<Latency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lat_ns: Option<Latency>,
}

impl PriorityReport {
    pub(crate) fn named(&self) -> Option<(String, &Latency)> {
        let (kind, latency) = self
            .clat_ns
            .as_ref()
            .map(|latency| ("clat", latency))
            .or(self.lat_ns.as_ref().map(|latency| ("lat", latency)))?;
        Some((format!("{kind} prio {}/{}", self.prioclass, self.prio), latency))
    }
}

/// The job's own priority comes first.
fn priorities(
    recorded: &CloneStats,
    side: usize,
    options: &Options,
    plus: bool,
) -> Vec<PriorityReport> {
    let own = options.io_priority().map_or(0, machine::IoPriority::bits);
    let mut all: Vec<_> =
        recorded.priorities.iter().filter(|(_, sides)| !sides[side].is_empty()).collect();
    all.sort_by_key(|(bits, _)| (*bits != own, *bits));
    let report = |(bits, sides): &(u16, BySide)| {
        let percentiles = options.lat_percentiles || options.clat_percentiles;
        let latency = Some(latency_of(&sides[side], percentiles.then_some(options), plus));
        let (clat_ns, lat_ns) =
            if options.lat_percentiles { (None, latency) } else { (latency, None) };
        PriorityReport { prioclass: bits >> 13, prio: bits & 0x1fff, clat_ns, lat_ns }
    };
    all.into_iter().map(report).collect()
}

#[derive(Serialize)]
pub(crate) struct Latency {
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) mean: f64,
    pub(crate) stddev: f64,
    #[serde(rename = "N")]
    pub(crate) count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) percentile: Option<Ordered<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bins: Option<Ordered<u64>>,
}

/// `None`: all sides combined.
pub(crate) fn direction(
    entry: &Entry<'_>,
    result: &FioResult,
    side: Option<usize>,
    plus: bool,
) -> Direction {
    let empty = CloneStats::default();
    let options = &entry.job.job.options;
    // As in fio, reads of the verification count as reads of the job.
    let with_back =
        entry.recorded.read_back.as_deref().filter(|_| side.is_none_or(|side| side == 0)).map(
            |back| {
                let mut sum = entry.recorded.clone();
                if sum.requests[0] == 0 && side.is_some() {
                    return back.clone();
                }
                sum.requests[0] += back.requests[0];
                sum.bytes[0] += back.bytes[0];
                sum.runtime_ns += back.runtime_ns;
                sum.latency[0].merge(&back.latency[0]);
                sum.completion[0].merge(&back.completion[0]);
                sum
            },
        );
    let whole = with_back.as_ref().unwrap_or(&entry.recorded);
    let unified = side.is_none().then(|| whole.unified());
    let whole = unified.as_ref().unwrap_or(whole);
    // As in fio, the writes that verify_only skipped are counted, but have no rate or time.
    let left_out = side == Some(1) && options.verify_only && options.verifies().is_some();
    let side = side.unwrap_or(0);
    let used = whole.requests[side] > 0;
    let recorded = if used { whole } else { &empty };
    let (total_ios, io_bytes) = if left_out {
        (whole.requests[0], whole.bytes[0])
    } else {
        (recorded.requests[side], recorded.bytes[side])
    };
    let rates = if used { recorded.window_iops(side, options.iops_windows) } else { Vec::new() };
    let spread = Spread::of(&rates);
    let bandwidth = Spread::of(&if used {
        recorded.window_bytes(side, options.bandwidth_windows)
    } else {
        Vec::new()
    });
    let together: f64 = result
        .entries()
        .iter()
        .filter(|other| other.job.job.group_id == entry.job.job.group_id)
        .map(|other| match &unified {
            Some(_) => other.recorded.unified().bytes_per_s(0),
            None => other.recorded.bytes_per_s(side),
        })
        .sum();
    let rate = recorded.bytes_per_s(side);
    let none = Histogram::new();
    let submission = &recorded.submission[side];
    let completion = if options.reports_completion { &recorded.completion[side] } else { &none };
    let latency = if options.reports_latency { &recorded.latency[side] } else { &none };
    Direction {
        io_bytes,
        io_kbytes: io_bytes / 1024,
        bw_bytes: rate as u64,
        bw: (rate / 1024.0) as u64,
        iops: recorded.iops(side),
        runtime: if used { (recorded.runtime_ns / 1_000_000).max(1) } else { 0 },
        total_ios,
        short_ios: 0,
        drop_ios: 0,
        slat_ns: latency_of(
            submission,
            (!submission.is_empty() && options.slat_percentiles).then_some(options),
            plus,
        ),
        clat_ns: latency_of(
            completion,
            (!completion.is_empty() && options.clat_percentiles).then_some(options),
            plus,
        ),
        lat_ns: latency_of(
            latency,
            (!latency.is_empty() && options.lat_percentiles).then_some(options),
            plus,
        ),
        prios: if options.reports_completion {
            priorities(recorded, side, options, plus)
        } else {
            Vec::new()
        },
        bw_min: (bandwidth.min / 1024.0) as u64,
        bw_max: (bandwidth.max / 1024.0) as u64,
        bw_agg: if used && together > 0.0 { (rate / together * 100.0).min(100.0) } else { 0.0 },
        bw_mean: bandwidth.mean / 1024.0,
        bw_dev: bandwidth.deviation / 1024.0,
        bw_samples: bandwidth.count,
        iops_min: spread.min as u64,
        iops_max: spread.max as u64,
        iops_mean: spread.mean,
        iops_stddev: spread.deviation,
        iops_samples: spread.count,
    }
}

struct Spread {
    min: f64,
    max: f64,
    mean: f64,
    deviation: f64,
    count: u64,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        if values.is_empty() {
            return Spread { min: 0.0, max: 0.0, mean: 0.0, deviation: 0.0, count: 0 };
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Spread {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(0.0, f64::max),
            mean,
            deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
            count: values.len() as u64,
        }
    }
}

/// Buckets are within 0.4 %.
fn deviation(histogram: &Histogram) -> f64 {
    let mean = histogram.mean();
    let squares: f64 = histogram
        .iter()
        .map(|bucket| (bucket.middle() as f64 - mean).powi(2) * bucket.count as f64)
        .sum();
    // The sum of no values is -0.
    (squares.abs() / histogram.count().saturating_sub(1).max(1) as f64).sqrt()
}

pub(crate) fn latency_of(histogram: &Histogram, options: Option<&Options>, plus: bool) -> Latency {
    Latency {
        min: histogram.min(),
        max: histogram.max(),
        mean: histogram.mean(),
        stddev: deviation(histogram),
        count: histogram.count(),
        percentile: options.map(|options| {
            Ordered(
                options
                    .percentiles
                    .iter()
                    .map(|&p| (format!("{p:.6}"), histogram.percentile(p)))
                    .collect(),
            )
        }),
        bins: options.filter(|_| plus).map(|_| {
            Ordered(
                histogram
                    .iter()
                    .map(|bucket| (bucket.middle().to_string(), bucket.count))
                    .collect(),
            )
        }),
    }
}
