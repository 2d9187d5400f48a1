//! Requests with their own priority: `cmdprio_percentage`, `cmdprio_bssplit`, `cmdprio_class` and
//! `cmdprio`.

use super::error::FioError;
use super::options::Options;
use super::plan::Job;
use super::value::{Reason, by_direction, number, size};
use machine::{IoClass, IoPriority};
use workload::rng;

const PURPOSE: u64 = 0xc3d9;

/// Selects the reads and writes that get their own priority.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandPriority {
    percent: [u8; 2],
    /// `cmdprio_class`; `None`: the highest.
    class: [Option<IoClass>; 2],
    level: [u8; 2],
    /// `cmdprio_bssplit`; empty: not used.
    by_size: [Vec<OfSize>; 2],
}

/// Percentage of the requests of this size that get a priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OfSize {
    bytes: u64,
    percent: u8,
    /// `None`: that of `cmdprio_class` and `cmdprio`.
    priority: Option<IoPriority>,
}

fn class(text: &str) -> Result<IoClass, Reason> {
    match text {
        "1" => Ok(IoClass::RealTime),
        "2" => Ok(IoClass::BestEffort),
        "3" => Ok(IoClass::Idle),
        _ => Err("a class is 1 (real time), 2 (best effort) or 3 (idle); write one of these".into()),
    }
}

fn level(text: &str) -> Result<u8, Reason> {
    number(text, 0, 7).map(|level| level as u8)
}

impl CommandPriority {
    pub(super) fn set_percent(&mut self, text: &str) -> Result<(), Reason> {
        self.percent = by_direction(text, |text| number(text, 0, 100).map(|percent| percent as u8))?;
        Ok(())
    }

    pub(super) fn set_class(&mut self, text: &str) -> Result<(), Reason> {
        self.class = by_direction(text, |text| class(text).map(Some))?;
        Ok(())
    }

    pub(super) fn set_level(&mut self, text: &str) -> Result<(), Reason> {
        self.level = by_direction(text, level)?;
        Ok(())
    }

    /// Parses `cmdprio_bssplit`: `SIZE/PERCENT` or `SIZE/PERCENT/CLASS/LEVEL`, separated by colons.
    pub(super) fn set_by_size(&mut self, text: &str, kb_base: u64) -> Result<(), Reason> {
        let one = |entry: &str| {
            let words: Vec<&str> = entry.split('/').collect();
            let (bytes, percent, priority) = match words[..] {
                [bytes, percent] => (bytes, percent, None),
                [bytes, percent, of, at] => (bytes, percent, Some(IoPriority { class: class(of)?, level: level(at)? })),
                _ => return Err("an entry is SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL; write one of these".into()),
            };
            Ok(OfSize { bytes: size(bytes, kb_base)?, percent: number(percent, 0, 100)? as u8, priority })
        };
        self.by_size = by_direction(text, |text| text.split(':').map(one).collect::<Result<Vec<_>, Reason>>())?;
        let all = |side: &[OfSize], bytes: u64| {
            side.iter().filter(|one| one.bytes == bytes).map(|one| u32::from(one.percent)).sum::<u32>()
        };
        match self.by_size.iter().find_map(|side| side.iter().find(|one| all(side, one.bytes) > 100)) {
            Some(one) => Err(format!("requests of {} B have more than 100 % in all; lower their shares", one.bytes)),
            None => Ok(()),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.percent != [0; 2] || self.by_size.iter().any(|side| !side.is_empty())
    }

    /// The priority from `cmdprio_class` and `cmdprio`.
    fn usual(&self, side: usize) -> IoPriority {
        IoPriority { class: self.class[side].unwrap_or(IoClass::RealTime), level: self.level[side] }
    }

    /// The priority of a request for a draw from 0 to 99; `None`: its job's.
    fn of(&self, side: usize, bytes: u32, draw: u64) -> Option<IoPriority> {
        if draw < u64::from(self.percent[side]) {
            return Some(self.usual(side));
        }
        let mut below = 0;
        let own = self.by_size[side].iter().filter(|one| one.bytes == u64::from(bytes)).find(|one| {
            below += u64::from(one.percent);
            draw < below
        })?;
        Some(own.priority.unwrap_or_else(|| self.usual(side)))
    }

    pub(super) fn check(&self, job: &Job) -> Result<(), FioError> {
        if !self.is_on() {
            return Ok(());
        }
        if self.percent != [0; 2] && self.by_size.iter().any(|side| !side.is_empty()) {
            return Err(job.wrong("cmdprio_percentage and cmdprio_bssplit are both given; leave one out"));
        }
        if !job.options.engine.takes_priorities() {
            return Err(job.wrong(format!(
                "cmdprio_percentage or cmdprio_bssplit with ioengine={}: its requests have the priority of their thread; use libaio or io_uring",
                job.options.engine_name
            )));
        }
        Ok(())
    }
}

/// Priorities of a stream's requests, as kernel values.
#[derive(Debug)]
pub(crate) struct Priorities {
    asked: CommandPriority,
    seed: u64,
    drawn: u64,
    /// The job's priority.
    usual: u16,
    /// By slot; 0: the thread's.
    by_slot: Box<[u16]>,
}

impl Priorities {
    /// For a stream of this depth; `None`: no request has its own priority.
    pub(crate) fn of(options: &Options, depth: usize, seed: u64) -> Option<Priorities> {
        options.cmdprio.is_on().then(|| Priorities {
            asked: options.cmdprio.clone(),
            seed: rng::derive(seed, PURPOSE, 0),
            drawn: 0,
            usual: options.io_priority().map_or(0, IoPriority::bits),
            by_slot: vec![0; depth].into_boxed_slice(),
        })
    }

    pub(crate) fn draw(&mut self, slot: u32, side: usize, bytes: u32) {
        let draw = rng::below(rng::hash(self.seed, self.drawn), 100);
        self.drawn += 1;
        self.by_slot[slot as usize] = self.asked.of(side, bytes, draw).map_or(0, IoPriority::bits);
    }

    /// The value to pass to the kernel for the request in this slot.
    pub(crate) fn given(&self, slot: u32) -> u16 {
        self.by_slot[slot as usize]
    }

    /// The priority that takes effect.
    pub(crate) fn effective(&self, slot: u32) -> u16 {
        match self.given(slot) {
            0 => self.usual,
            own => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(asked: &CommandPriority, side: usize, bytes: u32) -> Vec<(Option<u16>, usize)> {
        let mut all: Vec<Option<u16>> =
            (0..100).map(|draw| asked.of(side, bytes, draw).map(IoPriority::bits)).collect();
        all.sort_unstable();
        all.chunk_by(|one, other| one == other).map(|same| (same[0], same.len())).collect()
    }

    #[test]
    fn priority_shares_match_the_options() {
        let mut asked = CommandPriority::default();
        asked.set_percent("30,0").unwrap();
        assert_eq!(shares(&asked, 0, 4096), [(None, 70), (Some(0x2000), 30)]);
        assert_eq!(shares(&asked, 1, 4096), [(None, 100)]);
        let mut asked = CommandPriority::default();
        asked.set_by_size("4k/20/2/3:4k/40/1/0:8k/5,4k/10", 1024).unwrap();
        asked.set_class("2").unwrap();
        asked.set_level("5").unwrap();
        assert_eq!(shares(&asked, 0, 4096), [(None, 40), (Some(0x2000), 40), (Some(0x4003), 20)]);
        assert_eq!(shares(&asked, 0, 8192), [(None, 95), (Some(0x4005), 5)]);
        assert_eq!(shares(&asked, 1, 4096), [(None, 90), (Some(0x4005), 10)]);
    }

    #[test]
    fn invalid_priorities_are_refused() {
        let mut asked = CommandPriority::default();
        for (text, why) in [("4k/60:4k/50", "more than 100 %"), ("4k", "SIZE/PERCENT"), ("4k/10/4/0", "a class is 1")] {
            let said = asked.set_by_size(text, 1024).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        assert!(asked.set_class("0").is_err() && asked.set_level("8").is_err() && asked.set_percent("101").is_err());
    }
}
