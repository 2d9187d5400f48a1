//! The recording in slots that double their width when it gets longer.

use super::flow::Times;
use crate::Latency;
use apptrace::{Access, Request};
use machine::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SLOTS: usize = 96;
const ROWS: usize = 32;
const FIRST_WIDTH_NS: Nanos = 1_000_000;
const FIRST_ROW_BYTES: u64 = 4096;

trait Sum: Default {
    fn add(&mut self, other: Self);
}

struct Timeline<T> {
    width_ns: Nanos,
    slots: Vec<T>,
}

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Timeline { width_ns: FIRST_WIDTH_NS, slots: Vec::new() }
    }
}

impl<T: Sum> Timeline<T> {
    fn at(&mut self, at_ns: Nanos) -> &mut T {
        while at_ns / self.width_ns >= SLOTS as u64 {
            self.halve();
        }
        let slot = (at_ns / self.width_ns) as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, T::default);
        }
        &mut self.slots[slot]
    }

    fn halve(&mut self) {
        // The width stays far below the largest time, which is below 2^64 ns.
        self.width_ns *= 2;
        let mut halved: Vec<T> = Vec::with_capacity(SLOTS / 2);
        for (index, slot) in self.slots.drain(..).enumerate() {
            match halved.get_mut(index / 2) {
                Some(first) => first.add(slot),
                None => halved.push(slot),
            }
        }
        self.slots = halved;
    }
}

/// Requests by time and offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeatMap {
    /// Width of a column, as a time in nanoseconds.
    pub slot_ns: Nanos,
    /// Height of a row, in bytes of the file.
    pub row_bytes: u64,
    /// Number of requests by time; in each column by offset, without the zeros at its end.
    pub columns: Vec<Vec<u64>>,
}

#[derive(Default, Clone, Copy)]
struct Rows([u64; ROWS]);

impl Sum for Rows {
    fn add(&mut self, other: Rows) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }
}

pub(super) struct Heat {
    row_bytes: u64,
    timeline: Timeline<Rows>,
}

impl Default for Heat {
    fn default() -> Self {
        Heat { row_bytes: FIRST_ROW_BYTES, timeline: Timeline::default() }
    }
}

impl Heat {
    pub(super) fn add(&mut self, request: &Request) {
        let Some(offset) = request.offset else { return };
        while offset / self.row_bytes >= ROWS as u64 {
            self.row_bytes *= 2;
            for Rows(rows) in &mut self.timeline.slots {
                let before = *rows;
                *rows = [0; ROWS];
                before.iter().enumerate().for_each(|(row, count)| rows[row / 2] += count);
            }
        }
        let row = (offset / self.row_bytes) as usize;
        self.timeline.at(request.at_ns).0[row] += 1;
    }

    pub(super) fn map(&self) -> Option<HeatMap> {
        let column = |Rows(rows): &Rows| {
            let used = rows.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
            rows[..used].to_vec()
        };
        (!self.timeline.slots.is_empty()).then(|| HeatMap {
            slot_ns: self.timeline.width_ns,
            row_bytes: self.row_bytes,
            columns: self.timeline.slots.iter().map(column).collect(),
        })
    }
}

/// The requests that started in a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    pub reads: u64,
    pub read: Option<Latency>,
    pub writes: u64,
    pub write: Option<Latency>,
    pub syncs: u64,
    pub sync: Option<Latency>,
}

/// Latencies over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// Length of a slot in nanoseconds.
    pub slot_ns: Nanos,
    pub slots: Vec<Moment>,
}

#[derive(Default)]
struct Requests {
    count: u64,
    times: Times,
}

#[derive(Default)]
struct Slot([Requests; 3]);

impl Sum for Slot {
    fn add(&mut self, other: Slot) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            own.count += other.count;
            own.times.merge(other.times);
        }
    }
}

#[derive(Default)]
pub(super) struct CourseRecorder(Timeline<Slot>);

impl CourseRecorder {
    pub(super) fn add(&mut self, request: &Request) {
        let kind = match request.access {
            Access::Read => 0,
            Access::Write => 1,
            Access::SyncFile | Access::SyncData | Access::SyncSystem => 2,
            _ => return,
        };
        let requests = &mut self.0.at(request.at_ns).0[kind];
        requests.count += 1;
        if let Some(duration) = request.duration_ns {
            requests.times.record(duration);
        }
    }

    pub(super) fn course(&self) -> Course {
        let moment = |Slot([read, write, sync]): &Slot| Moment {
            reads: read.count,
            read: read.times.latency(),
            writes: write.count,
            write: write.times.latency(),
            syncs: sync.count,
            sync: sync.times.latency(),
        };
        Course { slot_ns: self.0.width_ns, slots: self.0.slots.iter().map(moment).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apptrace::{Interface, OpenFile};

    fn read(at_ns: Nanos, offset: u64) -> Request {
        Request {
            at_ns,
            duration_ns: Some(1000),
            thread: None,
            file: 0,
            access: Access::Read,
            interface: Interface::SystemCall,
            offset: Some(offset),
            bytes: 4096,
            result: Some(4096),
            open: OpenFile::default(),
        }
    }

    #[test]
    fn a_day_and_a_large_file_fit_into_the_map() {
        let mut heat = Heat::default();
        let mut course = CourseRecorder::default();
        let day = 86_400_000_000_000;
        for index in 0..1000 {
            let request = read(day / 1000 * index, (1 << 40) / 1000 * index);
            heat.add(&request);
            course.add(&request);
        }
        let map = heat.map().unwrap();
        assert!(map.columns.len() <= SLOTS && map.columns.iter().all(|rows| rows.len() <= ROWS));
        assert_eq!(map.columns.iter().flatten().sum::<u64>(), 1000);
        // The requests go up with time.
        let last = map.columns.last().unwrap();
        assert_eq!(map.columns[0].len(), 1);
        assert!(last.len() * map.row_bytes as usize > (1 << 40) / 2, "{map:?}");
        let course = course.course();
        assert_eq!(course.slots.iter().map(|slot| slot.reads).sum::<u64>(), 1000);
        assert!(course.slot_ns * course.slots.len() as u64 >= day / 1000 * 999);
        // The largest times do no harm.
        heat.add(&read(u64::MAX, u64::MAX));
        assert_eq!(heat.map().unwrap().columns.iter().flatten().sum::<u64>(), 1001);
    }
}
