//! The prefetch is computed from its start time, without events; it stops when full of unread data,
//! and resumes with a free track.

use super::drive::DiskCache;
use super::geometry::{Geometry, SECTOR};
use machine::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    start: u64,
    /// While the segment is filled, the start of its current pass.
    end: u64,
    /// After the last block sent to the host.
    taken: u64,
    origin: u64,
    used: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Prefetch {
    segment: usize,
    from: u64,
    began: Nanos,
    limit: u64,
    /// Commands wait for the blocks before this one.
    wanted: u64,
    ending: bool,
    /// Hits go out as they come in. Otherwise the drive searches its cache for each.
    streams: bool,
}

impl Prefetch {
    /// When every block before `end` is cached.
    fn has(&self, geometry: &Geometry, end: u64) -> Nanos {
        if end <= self.from {
            0
        } else {
            self.began + geometry.end(end) - geometry.start(self.from)
        }
    }

    fn stopped(&self, geometry: &Geometry, now: Nanos) -> bool {
        self.has(geometry, self.limit) <= now
    }

    fn head(&self, geometry: &Geometry, now: Nanos) -> u64 {
        geometry.reached(self.from, self.began, self.limit, now.max(self.began)).max(self.from + 1)
            - 1
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    Hit {
        ready: Nanos,
        /// The blocks were sent before.
        again: bool,
        searched: bool,
    },
    Miss,
}

pub(super) struct ReadCache {
    segments: Vec<Segment>,
    limit: usize,
    segment_sectors: u64,
    /// Space is free again in pieces of this many blocks.
    freed_sectors: u64,
    keeps: bool,
    whole_tracks: bool,
    prefetch: Option<Prefetch>,
    clock: u64,
}

impl ReadCache {
    pub(super) fn new(cache: &DiskCache) -> Self {
        ReadCache {
            segments: Vec::with_capacity(cache.segments as usize),
            limit: cache.segments as usize,
            segment_sectors: cache.segment_bytes / SECTOR,
            freed_sectors: cache.freed_bytes.map_or(1, |bytes| bytes / SECTOR),
            keeps: cache.keeps_sent_data,
            whole_tracks: cache.prefetches_whole_tracks,
            prefetch: None,
            clock: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.segments.clear();
        self.prefetch = None;
    }

    pub(super) fn lookup(
        &mut self,
        geometry: &Geometry,
        lba: u64,
        end: u64,
        now: Nanos,
        sending: Nanos,
        restarts: bool,
    ) -> Lookup {
        self.clock += 1;
        if let Some(prefetch) = self.prefetch {
            let segment = self.segments[prefetch.segment];
            let again = lba < segment.taken;
            let near = lba <= self.will_have(geometry, &prefetch, now);
            let goes_on = !prefetch.ending && (restarts || !prefetch.stopped(geometry, now));
            let within = goes_on || end <= prefetch.limit;
            if lba >= segment.start && near && within && self.may_send(geometry, again, lba, end) {
                return self.hit_in_progress(geometry, lba, end, now, sending, again);
            }
        }
        let active = self.prefetch.map(|prefetch| prefetch.segment);
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            let again = lba < segment.taken;
            if Some(index) != active
                && lba >= segment.start
                && end <= segment.end
                && self.may_send(geometry, again, lba, end)
            {
                self.segments[index].used = self.clock;
                return Lookup::Hit { ready: now, again, searched: true };
            }
        }
        Lookup::Miss
    }

    fn will_have(&self, geometry: &Geometry, prefetch: &Prefetch, now: Nanos) -> u64 {
        if prefetch.has(geometry, prefetch.wanted) > now {
            return prefetch.wanted + self.segment_sectors;
        }
        let last = prefetch.head(geometry, now).max(prefetch.wanted - 1);
        if self.whole_tracks { geometry.track_end(last).min(prefetch.limit) } else { last + 1 }
    }

    fn may_send(&self, geometry: &Geometry, again: bool, lba: u64, end: u64) -> bool {
        !again || (self.keeps && end - lba <= geometry.track_sectors(lba))
    }

    fn hit_in_progress(
        &mut self,
        geometry: &Geometry,
        lba: u64,
        end: u64,
        now: Nanos,
        sending: Nanos,
        again: bool,
    ) -> Lookup {
        let clock = self.clock;
        let Some(prefetch) = self.prefetch.as_mut() else { return Lookup::Miss };
        if end > prefetch.limit {
            let stopped = prefetch.has(geometry, prefetch.limit);
            if stopped < now {
                resume(geometry, prefetch, now);
            }
            prefetch.limit = end.min(geometry.sectors());
        }
        let all = prefetch.has(geometry, end);
        let first = prefetch.has(geometry, lba + 1);
        let ready = now.max(first).max(all.saturating_sub(sending));
        prefetch.wanted = prefetch.wanted.max(end);
        self.segments[prefetch.segment].used = clock;
        Lookup::Hit { ready, again, searched: again || !prefetch.streams }
    }

    pub(super) fn end_stream(&mut self, geometry: &Geometry, now: Nanos) {
        if let Some(prefetch) = self.prefetch.as_mut().filter(|p| p.stopped(geometry, now)) {
            prefetch.streams = false;
        }
    }

    pub(super) fn resume_stream(&mut self) {
        if let Some(prefetch) = &mut self.prefetch {
            prefetch.streams = true;
        }
    }

    /// Frees the space before `end`.
    pub(super) fn taken(
        &mut self,
        geometry: &Geometry,
        lba: u64,
        end: u64,
        now: Nanos,
        restarts: bool,
    ) {
        let filling = self
            .prefetch
            .filter(|p| lba >= self.segments[p.segment].start && end <= p.limit)
            .map(|p| p.segment);
        let held = || self.segments.iter().position(|s| lba >= s.start && end <= s.end);
        let Some(index) = filling.or_else(held) else { return };
        let segment = &mut self.segments[index];
        segment.taken = segment.taken.max(end);
        // A drive that keeps sent data keeps about a track of it.
        let kept =
            if self.keeps { geometry.track_sectors(lba).min(self.segment_sectors / 2) } else { 0 };
        let freed = (segment.taken - segment.origin) / self.freed_sectors * self.freed_sectors;
        let limit = (segment.origin + freed + self.segment_sectors - kept).min(geometry.sectors());
        let Some(prefetch) = self.prefetch.as_mut().filter(|p| p.segment == index && !p.ending)
        else {
            return;
        };
        if limit > prefetch.limit {
            if !prefetch.stopped(geometry, now) {
                prefetch.limit = limit;
            } else if restarts
                && limit - prefetch.limit
                    >= geometry.track_sectors(prefetch.limit).min(self.segment_sectors / 2)
            {
                resume(geometry, prefetch, now);
                prefetch.limit = limit;
            }
        }
        let filled = prefetch.limit;
        segment.start = segment
            .start
            .max(filled.saturating_sub(self.segment_sectors.max(filled - segment.taken)));
    }

    /// The first block is under the head at `began`.
    pub(super) fn begin(&mut self, geometry: &Geometry, lba: u64, end: u64, began: Nanos) {
        self.clock += 1;
        let segment = Segment { start: lba, end: lba, taken: lba, origin: lba, used: self.clock };
        let index = if self.segments.len() < self.limit {
            self.segments.push(segment);
            self.segments.len() - 1
        } else {
            let oldest =
                (0..self.segments.len()).min_by_key(|&i| self.segments[i].used).unwrap_or(0);
            self.segments[oldest] = segment;
            oldest
        };
        let limit = (lba + self.segment_sectors).max(end).min(geometry.sectors());
        self.prefetch = Some(Prefetch {
            segment: index,
            from: lba,
            began,
            limit,
            wanted: end,
            ending: false,
            streams: true,
        });
    }

    pub(super) fn stop_prefetch(&mut self, geometry: &Geometry, now: Nanos) {
        if let Some(prefetch) = self.prefetch.take() {
            let reached = if now <= prefetch.began {
                prefetch.from
            } else {
                geometry.reached(prefetch.from, prefetch.began, prefetch.limit, now)
            };
            self.segments[prefetch.segment].end = reached;
        }
    }

    /// Until when the head stays: for awaited data, or for a whole track.
    pub(super) fn end_prefetch(&mut self, geometry: &Geometry, now: Nanos) -> Nanos {
        let whole_tracks = self.whole_tracks;
        let Some(prefetch) = self.prefetch.as_mut() else { return now };
        if !prefetch.ending {
            prefetch.ending = true;
            let reached = if now <= prefetch.began {
                prefetch.from
            } else {
                geometry.reached(prefetch.from, prefetch.began, prefetch.limit, now)
            };
            let mut last = prefetch.wanted.max(reached);
            if whole_tracks && last > prefetch.from {
                last = geometry.track_end(last - 1);
            }
            prefetch.limit = last.min(prefetch.limit);
        }
        prefetch.has(geometry, prefetch.limit).max(now)
    }

    pub(super) fn head(&self, geometry: &Geometry, now: Nanos) -> Option<u64> {
        self.prefetch.map(|prefetch| prefetch.head(geometry, now))
    }

    pub(super) fn forget(&mut self, lba: u64, end: u64) {
        for segment in &mut self.segments {
            if lba < segment.end && end > segment.start {
                segment.start = segment.end;
                segment.taken = segment.end;
            }
        }
    }
}

fn resume(geometry: &Geometry, prefetch: &mut Prefetch, now: Nanos) {
    let next = prefetch.limit;
    prefetch.began = now + geometry.rotation_to(next, now);
    prefetch.from = next;
}
