//! A solid-state drive over hours. Rates come from the description, so that the truth of a
//! sustained run is known; [`super::flash`] derives short-term rates from dies and channels.

use super::collection::{Filled, Scatter};
use crate::device::{Command, Device, Drives, Model, Slot, Tunable};
use crate::units::us;
use machine::{Layer, Nanos, Op};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Of the capacity, until write amplification is final: blocks of the previous pattern are
/// collected first.
const SETTLING_SHARE: f64 = 0.25;
/// The hot state ends this far below the limit.
const HYSTERESIS_C: f64 = 5.0;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachedFlashDrive {
    pub about: String,
    pub capacity_bytes: u64,
    pub advertised_bytes_per_s: f64,
    pub link_bytes_per_s: f64,
    /// The inverse of the maximum rate.
    pub controller_us: f64,
    pub command_us: f64,
    pub read_us: f64,
    pub queue: u32,
    /// Memory of the drive or an adapter, filled at the link's rate and emptied at the flash's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub buffer_bytes: u64,
    /// Flash used as a write cache while the drive holds no data.
    pub cache_bytes: u64,
    /// The size if all space holds data; it shrinks with the space written. Absent: constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_cache_bytes: Option<u64>,
    pub cache_bytes_per_s: f64,
    /// Once the cache is full: straight to the main flash, or at the pace of folding.
    pub full_bytes_per_s: f64,
    pub cache_drain_bytes_per_s: f64,
    #[serde(default)]
    pub cache_drain_after_ms: f64,
    /// Of the advertised size.
    pub spare_percent: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat: Option<Heat>,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// At a constant write rate, the temperature approaches ambient + rise exponentially.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heat {
    pub ambient_c: f64,
    /// Final rise at the rate of the write cache; proportional to the rate.
    pub rise_c: f64,
    pub time_constant_s: f64,
    /// The drive slows down above it.
    pub limit_c: f64,
    pub throttled_bytes_per_s: f64,
}

impl Model for CachedFlashDrive {
    fn build(&self, _slot: Slot) -> Box<dyn Device> {
        Box::new(CachedFlash::new(self.clone()))
    }

    fn layers(&self, drives: &Drives<'_>) -> Vec<Layer> {
        let mut layer = drives.disks(Some(self.advertised_bytes_per_s));
        layer.settings.insert("rotational".into(), "0".into());
        layer.facts.rotational = Some(false);
        vec![layer]
    }

    fn scale_latency(&mut self, by: f64) {
        [&mut self.controller_us, &mut self.command_us, &mut self.read_us]
            .into_iter()
            .for_each(|time| *time *= by);
    }

    fn tunable(&mut self) -> Vec<Tunable<'_>> {
        vec![
            Tunable::new("link_bytes_per_s", &mut self.link_bytes_per_s),
            Tunable::new("controller_us", &mut self.controller_us),
            Tunable::new("command_us", &mut self.command_us),
            Tunable::new("read_us", &mut self.read_us),
            Tunable::new("cache_bytes_per_s", &mut self.cache_bytes_per_s),
            Tunable::new("full_bytes_per_s", &mut self.full_bytes_per_s),
        ]
    }

    fn contradiction(
        &self,
        _buses: &std::collections::BTreeMap<String, crate::bus::BusKind>,
    ) -> Option<(&'static str, String)> {
        let heat = self.heat.filter(|heat| heat.limit_c <= heat.ambient_c + HYSTERESIS_C);
        heat.map(|heat| {
            let ambient = heat.ambient_c;
            let why = format!("must be more than {HYSTERESIS_C} above ambient_c = {ambient}");
            ("heat.limit_c", why)
        })
    }
}

#[derive(Default)]
struct Buffer {
    /// End of programming, and bytes.
    waiting: VecDeque<(Nanos, u64)>,
    bytes: u64,
}

impl Buffer {
    fn take_out(&mut self, now: Nanos) {
        while let Some(&(end, bytes)) = self.waiting.front()
            && end <= now
        {
            self.waiting.pop_front();
            self.bytes -= bytes;
        }
    }

    fn room(&mut self, size: u64, arrived: Nanos, bytes: u64, programmed: Nanos) -> Nanos {
        self.take_out(arrived);
        let mut at = arrived;
        while self.bytes + bytes > size
            && let Some((end, out)) = self.waiting.pop_front()
        {
            (at, self.bytes) = (end, self.bytes - out);
        }
        if bytes > size {
            return programmed;
        }
        self.waiting.push_back((programmed, bytes));
        self.bytes += bytes;
        at
    }

    fn rest(&mut self, now: Nanos) {
        self.take_out(now);
        self.waiting.iter_mut().for_each(|(end, _)| *end -= now);
    }
}

struct CachedFlash {
    drive: CachedFlashDrive,
    controller: Nanos,
    link: Nanos,
    /// When the flash has programmed what it took.
    flash: Nanos,
    buffer: Buffer,
    cached: f64,
    /// Cached bytes that are not rewrites: until they leave, the rest of the drive is that much
    /// emptier. A rewrite's old copy is stale, but not erased.
    fresh: f64,
    /// Bytes since the drive was new or discarded.
    written: f64,
    scatter: Scatter,
    filled: Filled,
    amplification: f64,
    celsius: f64,
    hot: bool,
    heat_at: Nanos,
    busy: [Nanos; 2],
}

impl CachedFlash {
    fn new(drive: CachedFlashDrive) -> Self {
        CachedFlash {
            filled: Filled::new(drive.capacity_bytes),
            celsius: drive.heat.map_or(0.0, |heat| heat.ambient_c),
            drive,
            controller: 0,
            link: 0,
            flash: 0,
            buffer: Buffer::default(),
            cached: 0.0,
            fresh: 0.0,
            written: 0.0,
            scatter: Scatter::new(),
            amplification: 1.0,
            hot: false,
            heat_at: 0,
            busy: [0; 2],
        }
    }

    fn drain(&mut self, idle_ns: Nanos) {
        let waits_ns = self.drive.cache_drain_after_ms * 1e6;
        let drains_s = (idle_ns as f64 - waits_ns).max(0.0) * 1e-9;
        let before = self.cached;
        self.cached = (before - drains_s * self.drive.cache_drain_bytes_per_s).max(0.0);
        self.fresh *= if before > 0.0 { self.cached / before } else { 0.0 };
    }

    fn warm(&mut self, seconds: f64, bytes_per_s: f64) {
        let Some(heat) = self.drive.heat else { return };
        let target = heat.ambient_c + heat.rise_c * bytes_per_s / self.drive.cache_bytes_per_s;
        let approach = (-seconds / heat.time_constant_s).exp();
        self.celsius = target + (self.celsius - target) * approach;
        self.hot = self.celsius > if self.hot { heat.limit_c - HYSTERESIS_C } else { heat.limit_c };
    }

    fn cache_bytes(&self) -> f64 {
        let empty = self.drive.cache_bytes as f64;
        let full = self.drive.full_cache_bytes.map_or(empty, |bytes| bytes as f64);
        let fresh = self.fresh / self.drive.capacity_bytes as f64;
        empty + (full - empty) * (self.filled.share() - fresh).clamp(0.0, 1.0)
    }

    /// Nothing is collected before every block was written once. Space without data is spare.
    fn collect(&mut self, bytes: f64) -> f64 {
        let capacity = self.drive.capacity_bytes as f64;
        self.written += bytes;
        let flash = 1.0 + self.drive.spare_percent / 100.0;
        if self.written > capacity * flash {
            let held = self.filled.share().max(f64::MIN_POSITIVE);
            let target = self.scatter.amplification((flash - held) / held);
            let share = (bytes / (capacity * SETTLING_SHARE)).min(1.0);
            self.amplification += (target - self.amplification) * share;
        }
        self.amplification
    }

    fn write(&mut self, begun: Nanos, command: &Command) -> Nanos {
        let Command { offset, bytes, durable, .. } = *command;
        self.scatter.write(offset, bytes);
        let new = self.filled.write(offset, bytes) as f64;
        let arrived = self.transfer(begun, bytes);
        let idle = arrived.saturating_sub(self.flash);
        self.drain(idle);
        self.warm(arrived.saturating_sub(self.heat_at) as f64 * 1e-9, 0.0);
        let start = self.flash.max(arrived);
        let amplification = self.collect(bytes as f64);
        self.fresh += new;
        let in_cache = self.cached + bytes as f64 <= self.cache_bytes();
        let mut rate = if in_cache {
            self.cached += bytes as f64;
            self.drive.cache_bytes_per_s
        } else {
            self.fresh -= new;
            self.drive.full_bytes_per_s / amplification
        };
        if let Some(heat) = self.drive.heat.filter(|_| self.hot) {
            rate = rate.min(heat.throttled_bytes_per_s);
        }
        let seconds = bytes as f64 / rate;
        self.flash = start + (seconds * 1e9) as Nanos;
        self.busy[0] += self.flash - start;
        self.warm(seconds, rate);
        self.heat_at = self.flash;
        if durable {
            return self.flash;
        }
        self.buffer.room(self.drive.buffer_bytes, arrived, bytes, self.flash)
    }

    fn transfer(&mut self, at: Nanos, bytes: u64) -> Nanos {
        let time = (bytes as f64 / self.drive.link_bytes_per_s * 1e9) as Nanos;
        self.link = self.link.max(at) + time;
        self.busy[1] += time;
        self.link
    }
}

impl Device for CachedFlash {
    fn capacity_bytes(&self) -> u64 {
        self.drive.capacity_bytes
    }

    fn queue(&self) -> u32 {
        self.drive.queue
    }

    fn rest(&mut self, now: Nanos) {
        self.drain(now.saturating_sub(self.flash));
        self.warm(now.saturating_sub(self.heat_at) as f64 * 1e-9, 0.0);
        self.buffer.rest(now);
        self.flash = self.flash.saturating_sub(now);
        (self.controller, self.link, self.heat_at) = (0, 0, self.flash);
        self.busy = [0; 2];
    }

    fn serve(&mut self, now: Nanos, command: &Command) -> Nanos {
        self.controller = self.controller.max(now) + us(self.drive.controller_us);
        let begun = self.controller;
        let done = match command.op {
            // A program operation under way is suspended for a read, so it does not wait for all.
            Op::Read => self.transfer(begun + us(self.drive.read_us), command.bytes),
            Op::Write => self.write(begun, command),
        };
        done + us(self.drive.command_us)
    }

    fn flush(&mut self, now: Nanos) -> Nanos {
        let programmed = if self.drive.buffer_bytes > 0 { self.flash } else { 0 };
        now.max(programmed) + us(self.drive.command_us)
    }

    fn discard(&mut self) {
        self.filled.clear();
        (self.cached, self.fresh, self.written, self.amplification) = (0.0, 0.0, 0.0, 1.0);
        self.scatter = Scatter::new();
    }

    fn celsius(&self) -> Option<f64> {
        self.drive.heat.map(|_| self.celsius)
    }

    fn busy(&self, ran: Nanos) -> Vec<(&'static str, Nanos)> {
        vec![("flash writes", self.busy[0].min(ran)), ("drive link", self.busy[1])]
    }
}
