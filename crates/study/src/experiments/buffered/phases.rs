//! Buffered writing fills free memory, waits for write-back, and flushes at the end.

use crate::sampler::Entry;
use measure::Sample;
use results::{Axis, Figure, Series, Value};

const MAX_VALUES: usize = 60;

pub(super) fn figure(entry: &Entry) -> Option<Figure> {
    let sample = entry.samples().iter().max_by_key(|sample| sample.slice_rates.len())?;
    let sync_ns = sample.usage.sync_ns? as f64;
    let request = f64::from(entry.workload.request_bytes);
    let returned = returned(sample, request);
    let last = sample.measured_ns as f64;
    // The device's progress by then is unknown; at most all of it was left.
    let flushed = sample.requests as f64 * request * 1e9 / sync_ns.max(1.0);
    let value = |x: f64, y: f64| Value { x, y: Some(y), interval_95: None, point: None };
    let flush = vec![value(last, flushed), value(last + sync_ns, flushed)];
    Some(Figure {
        id: "phases".into(),
        title: "One buffered write over time: until the last return, then the flush".into(),
        x: Axis::TimeNs,
        y: Axis::BytesPerS,
        series: vec![Series::new("writes return", returned), Series::new("flush, at most", flush)],
    })
}

fn returned(sample: &Sample, request: f64) -> Vec<Value> {
    let group = sample.slice_rates.len().div_ceil(MAX_VALUES).max(1);
    let width = sample.slice_ns as f64 * group as f64;
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64 * request;
    let value = |x: f64, y: f64| Value { x, y: Some(y), interval_95: None, point: None };
    let groups = sample.slice_rates.chunks_exact(group).enumerate();
    let values: Vec<Value> =
        groups.map(|(index, rates)| value((index as f64 + 0.5) * width, mean(rates))).collect();
    if values.is_empty() {
        // Shorter than a slice: its mean.
        return vec![value(sample.measured_ns as f64 / 2.0, sample.returned_iops() * request)];
    }
    values
}
