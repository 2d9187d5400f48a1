//! A solid-state drive. Each resource is the time at which it is free, so a request needs one
//! event.

use super::collection::Scatter;
use crate::device::{Command, Device, Drives, Model, Slot, Tunable};
use crate::units::{ms, us};
use machine::{Layer, Nanos, Op};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashDrive {
    pub about: String,
    pub capacity_bytes: u64,
    pub advertised_bytes_per_s: f64,
    /// Each way.
    pub link_bytes_per_s: f64,
    /// Both directions share the link, as with SATA.
    pub half_duplex: bool,
    /// Link, controller pipeline and interrupt, apart from the times below.
    pub command_us: f64,
    /// The inverse of the maximum rate.
    pub controller_us: f64,
    pub queue: u32,
    pub channels: u32,
    pub dies_per_channel: u32,
    pub channel_bytes_per_s: f64,
    /// A page on each of its planes.
    pub die_page_bytes: u64,
    pub read_us: f64,
    pub program_us: f64,
    /// In the write cache (one bit per cell).
    pub cache_program_us: f64,
    pub erase_ms: f64,
    pub block_pages: u64,
    /// Memory in which a write is safe before it is programmed.
    pub buffer_bytes: u64,
    /// Flash used as a write cache.
    pub cache_bytes: u64,
    /// When idle.
    pub cache_drain_bytes_per_s: f64,
    /// Of the advertised size.
    pub spare_percent: f64,
}

impl Model for FlashDrive {
    fn build(&self, _slot: Slot) -> Box<dyn Device> {
        Box::new(Flash::new(self.clone()))
    }

    fn layers(&self, drives: &Drives<'_>) -> Vec<Layer> {
        let mut layer = drives.disks(Some(self.advertised_bytes_per_s));
        layer.settings.insert("rotational".into(), "0".into());
        layer.facts.rotational = Some(false);
        vec![layer]
    }

    fn scale_latency(&mut self, by: f64) {
        let own = [&mut self.command_us, &mut self.controller_us];
        let dies = [&mut self.read_us, &mut self.program_us, &mut self.cache_program_us];
        own.into_iter().chain(dies).for_each(|time| *time *= by);
    }

    fn tunable(&mut self) -> Vec<Tunable<'_>> {
        vec![
            Tunable::new("link_bytes_per_s", &mut self.link_bytes_per_s),
            Tunable::new("controller_us", &mut self.controller_us),
            Tunable::new("read_us", &mut self.read_us),
            Tunable::new("cache_program_us", &mut self.cache_program_us),
            Tunable::new("command_us", &mut self.command_us),
            Tunable::new("channel_bytes_per_s", &mut self.channel_bytes_per_s),
        ]
    }
}

struct Flash {
    drive: FlashDrive,
    controller: Nanos,
    link: [Nanos; 2],
    dies: Vec<Nanos>,
    channels: Vec<Nanos>,
    /// Completion time and bytes.
    buffer: VecDeque<(Nanos, u64)>,
    buffered: u64,
    next_die: usize,
    cached: f64,
    cached_at: Nanos,
    filling_page: u64,
    scatter: Scatter,
    collect: f64,
    erase: f64,
    die_busy: Nanos,
    controller_busy: Nanos,
    link_busy: Nanos,
}

impl Flash {
    fn new(drive: FlashDrive) -> Self {
        let (channels, dies) =
            (drive.channels as usize, (drive.channels * drive.dies_per_channel) as usize);
        Flash {
            drive,
            controller: 0,
            link: [0; 2],
            dies: vec![0; dies],
            channels: vec![0; channels],
            buffer: VecDeque::new(),
            buffered: 0,
            next_die: 0,
            cached: 0.0,
            cached_at: 0,
            filling_page: 0,
            scatter: Scatter::new(),
            collect: 0.0,
            erase: 0.0,
            die_busy: 0,
            controller_busy: 0,
            link_busy: 0,
        }
    }

    fn drain(&mut self, now: Nanos) {
        let idle_since = self.dies.iter().copied().max().unwrap_or(0).max(self.cached_at);
        if now > idle_since {
            let drained = (now - idle_since) as f64 * 1e-9 * self.drive.cache_drain_bytes_per_s;
            self.cached = (self.cached - drained).max(0.0);
        }
        self.cached_at = now;
    }

    fn transfer(&mut self, bytes: u64, at: Nanos, write: bool) -> Nanos {
        let time = (bytes as f64 / self.drive.link_bytes_per_s * 1e9) as Nanos;
        let way = usize::from(write && !self.drive.half_duplex);
        self.link_busy += time;
        self.link[way] = self.link[way].max(at) + time;
        self.link[way]
    }

    fn channel(&mut self, die: usize, bytes: u64, at: Nanos) -> Nanos {
        let channel = die % self.channels.len();
        let time = (bytes as f64 / self.drive.channel_bytes_per_s * 1e9) as Nanos;
        self.channels[channel] = self.channels[channel].max(at) + time;
        self.channels[channel]
    }

    fn die_work(&mut self, die: usize, at: Nanos, time: Nanos) -> Nanos {
        self.dies[die] = self.dies[die].max(at) + time;
        self.die_busy += time / self.dies.len() as u64;
        self.dies[die]
    }

    fn read(&mut self, begun: Nanos, offset: u64, len: u64) -> Nanos {
        let page = self.drive.die_page_bytes;
        let (mut at, end) = (offset, offset + len);
        let mut done = begun;
        while at < end {
            let number = at / page;
            let bytes = ((number + 1) * page).min(end) - at;
            let die = (number % self.dies.len() as u64) as usize;
            let sensed = self.die_work(die, begun, us(self.drive.read_us));
            let moved = self.channel(die, bytes, sensed);
            done = done.max(self.transfer(bytes, moved, false));
            at += bytes;
        }
        done
    }

    fn write(&mut self, begun: Nanos, offset: u64, len: u64, durable: bool) -> Nanos {
        self.scatter.write(offset, len);
        self.drain(begun);
        let mut arrived = self.transfer(len, begun, true);
        while self.buffer.front().is_some_and(|&(programmed, _)| programmed <= arrived) {
            let (_, bytes) = self.buffer.pop_front().unwrap_or_default();
            self.buffered -= bytes;
        }
        while self.buffered + len > self.drive.buffer_bytes {
            let Some((programmed, bytes)) = self.buffer.pop_front() else { break };
            self.buffered -= bytes;
            arrived = arrived.max(programmed);
        }
        let programmed = self.program(arrived, len);
        if durable && self.drive.buffer_bytes == 0 { programmed } else { arrived }
    }

    fn program(&mut self, at: Nanos, len: u64) -> Nanos {
        let page = self.drive.die_page_bytes;
        self.buffered += len;
        self.filling_page += len;
        let mut last = at;
        while self.filling_page >= page {
            self.filling_page -= page;
            let in_cache = self.cached + page as f64 <= self.drive.cache_bytes as f64;
            let time =
                if in_cache { us(self.drive.cache_program_us) } else { us(self.drive.program_us) };
            self.cached += if in_cache { page as f64 } else { 0.0 };
            let die = self.next_die;
            self.next_die = (self.next_die + 1) % self.dies.len();
            let moved = self.channel(die, page, at);
            let collection = if in_cache { 0 } else { self.collection() };
            last = self.die_work(die, moved, time + collection);
            self.buffer.push_back((last, page));
        }
        last
    }

    /// Per programmed page.
    fn collection(&mut self) -> Nanos {
        let moves = self.scatter.amplification(self.drive.spare_percent / 100.0) - 1.0;
        self.collect += moves;
        self.erase += (1.0 + moves) / self.drive.block_pages as f64;
        let (pages, blocks) = (self.collect.floor(), self.erase.floor());
        self.collect -= pages;
        self.erase -= blocks;
        pages as Nanos * us(self.drive.read_us + self.drive.program_us)
            + blocks as Nanos * ms(self.drive.erase_ms)
    }
}

impl Device for Flash {
    fn capacity_bytes(&self) -> u64 {
        self.drive.capacity_bytes
    }

    fn queue(&self) -> u32 {
        self.drive.queue
    }

    fn rest(&mut self, now: Nanos) {
        self.drain(now);
        self.controller = 0;
        self.link = [0; 2];
        self.dies.fill(0);
        self.channels.fill(0);
        self.buffer.clear();
        // A partial page waits for the writes that fill it.
        self.buffered = self.filling_page;
        self.cached_at = 0;
        (self.die_busy, self.controller_busy, self.link_busy) = (0, 0, 0);
    }

    fn serve(&mut self, now: Nanos, command: &Command) -> Nanos {
        let own = us(self.drive.controller_us);
        self.controller_busy += own;
        self.controller = self.controller.max(now) + own;
        let begun = self.controller;
        let done = match command.op {
            Op::Read => self.read(begun, command.offset, command.bytes),
            Op::Write => self.write(begun, command.offset, command.bytes, command.durable),
        };
        done + us(self.drive.command_us)
    }

    /// With power-loss protection there is nothing to write.
    fn flush(&mut self, now: Nanos) -> Nanos {
        now + us(self.drive.command_us)
    }

    fn discard(&mut self) {
        (self.cached, self.scatter) = (0.0, Scatter::new());
    }

    fn busy(&self, _ran: Nanos) -> Vec<(&'static str, Nanos)> {
        let (dies, controller) =
            (("flash dies", self.die_busy), ("drive controller", self.controller_busy));
        vec![dies, controller, ("drive link", self.link_busy)]
    }
}
