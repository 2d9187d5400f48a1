//! fio's `cmdprio_*`.

use super::value::{Reason, by_direction, number, size};
use machine::{IoClass, IoPriority};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandPriority {
    percent: [u8; 2],
    class: [Option<IoClass>; 2],
    level: [u8; 2],
    by_size: [Vec<OfSize>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OfSize {
    bytes: u64,
    percent: u8,
    priority: Option<IoPriority>,
}

fn class(text: &str) -> Result<IoClass, Reason> {
    match text {
        "1" => Ok(IoClass::RealTime),
        "2" => Ok(IoClass::BestEffort),
        "3" => Ok(IoClass::Idle),
        _ => {
            Err("a class is 1 (real time), 2 (best effort) or 3 (idle); write one of these".into())
        }
    }
}

fn level(text: &str) -> Result<u8, Reason> {
    number(text, 0, 7).map(|level| level as u8)
}

impl CommandPriority {
    pub(crate) fn set_percent(&mut self, text: &str) -> Result<(), Reason> {
        self.percent =
            by_direction(text, |text| number(text, 0, 100).map(|percent| percent as u8))?;
        Ok(())
    }

    pub(crate) fn set_class(&mut self, text: &str) -> Result<(), Reason> {
        self.class = by_direction(text, |text| class(text).map(Some))?;
        Ok(())
    }

    pub(crate) fn set_level(&mut self, text: &str) -> Result<(), Reason> {
        self.level = by_direction(text, level)?;
        Ok(())
    }

    pub(crate) fn set_by_size(&mut self, text: &str, kb_base: u64) -> Result<(), Reason> {
        let one = |entry: &str| {
            let words: Vec<&str> = entry.split('/').collect();
            let (bytes, percent, priority) =
                match words[..] {
                    [bytes, percent] => (bytes, percent, None),
                    // As in fio 3.33, a hint after the level has no effect.
                    [bytes, percent, of, at, ref hint @ ..] if hint.len() < 2 => {
                        hint.iter().try_for_each(|hint| number(hint, 0, 1023).map(drop))?;
                        (bytes, percent, Some(IoPriority { class: class(of)?, level: level(at)? }))
                    }
                    _ => return Err(
                        "an entry is SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL; write one of these"
                            .into(),
                    ),
                };
            Ok(OfSize {
                bytes: size(bytes, kb_base)?,
                percent: number(percent, 0, 100)? as u8,
                priority,
            })
        };
        self.by_size = by_direction(text, |text| {
            text.split(':').map(one).collect::<Result<Vec<_>, Reason>>()
        })?;
        let all = |side: &[OfSize], bytes: u64| {
            side.iter()
                .filter(|one| one.bytes == bytes)
                .map(|one| u32::from(one.percent))
                .sum::<u32>()
        };
        match self
            .by_size
            .iter()
            .find_map(|side| side.iter().find(|one| all(side, one.bytes) > 100))
        {
            Some(one) => Err(format!(
                "requests of {} B have more than 100 % in all; lower their shares",
                one.bytes
            )),
            None => Ok(()),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.percent != [0; 2] || self.by_size.iter().any(|side| !side.is_empty())
    }

    pub(crate) fn is_given_twice(&self) -> bool {
        self.percent != [0; 2] && self.by_size.iter().any(|side| !side.is_empty())
    }

    fn usual(&self, side: usize) -> IoPriority {
        IoPriority { class: self.class[side].unwrap_or(IoClass::RealTime), level: self.level[side] }
    }

    /// `draw` is from 0 to 99. `None`: the job's priority.
    pub(crate) fn of(&self, side: usize, bytes: u32, draw: u64) -> Option<IoPriority> {
        if draw < u64::from(self.percent[side]) {
            return Some(self.usual(side));
        }
        let mut below = 0;
        let own =
            self.by_size[side].iter().filter(|one| one.bytes == u64::from(bytes)).find(|one| {
                below += u64::from(one.percent);
                draw < below
            })?;
        Some(own.priority.unwrap_or_else(|| self.usual(side)))
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
        asked.set_by_size("4k/20/2/3/1:4k/40/1/0:8k/5,4k/10", 1024).unwrap();
        asked.set_class("2").unwrap();
        asked.set_level("5").unwrap();
        assert_eq!(shares(&asked, 0, 4096), [(None, 40), (Some(0x2000), 40), (Some(0x4003), 20)]);
        assert_eq!(shares(&asked, 0, 8192), [(None, 95), (Some(0x4005), 5)]);
        assert_eq!(shares(&asked, 1, 4096), [(None, 90), (Some(0x4005), 10)]);
    }

    #[test]
    fn invalid_priorities_are_refused() {
        let mut asked = CommandPriority::default();
        for (text, why) in [
            ("4k/60:4k/50", "more than 100 %"),
            ("4k", "SIZE/PERCENT"),
            ("4k/10/2/0/x", "number"),
            ("4k/10/2/0/1/1", "SIZE/PERCENT"),
            ("4k/10/4/0", "a class is 1"),
        ] {
            let said = asked.set_by_size(text, 1024).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        assert!(
            asked.set_class("0").is_err()
                && asked.set_level("8").is_err()
                && asked.set_percent("101").is_err()
        );
    }
}
