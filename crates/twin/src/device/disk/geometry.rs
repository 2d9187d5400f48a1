//! A block's *media time* depends only on its address: tracks passed in the zone, a skew at every
//! head and cylinder switch, and sectors of the track. Differences give the time to read a run;
//! modulo one revolution it is the block's angle.

use machine::Nanos;

pub const SECTOR: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Zone {
    first_lba: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
    base: Nanos,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Geometry {
    revolution: Nanos,
    /// Since the index mark, at time zero.
    phase: Nanos,
    heads: u64,
    track_skew: Nanos,
    cylinder_skew: Nanos,
    zones: Vec<Zone>,
    sectors: u64,
    cylinders: u64,
}

impl Geometry {
    /// `zones` are (cylinders, sectors per track) from the outside in.
    pub(super) fn new(
        revolution: Nanos,
        heads: u64,
        track_skew: Nanos,
        cylinder_skew: Nanos,
        zones: &[(u64, u64)],
    ) -> Self {
        let (mut lba, mut cylinder, mut base) = (0, 0, 0);
        let mut built = Vec::with_capacity(zones.len());
        let per_cylinder = heads * revolution + (heads - 1) * track_skew + cylinder_skew;
        for &(cylinders, sectors_per_track) in zones {
            built.push(Zone { first_lba: lba, first_cylinder: cylinder, sectors_per_track, base });
            lba += cylinders * heads * sectors_per_track;
            cylinder += cylinders;
            base += cylinders * per_cylinder;
        }
        Geometry {
            revolution,
            phase: 0,
            heads,
            track_skew,
            cylinder_skew,
            zones: built,
            sectors: lba,
            cylinders: cylinder,
        }
    }

    /// Spindles are not synchronised.
    pub(super) fn turned(mut self, phase: Nanos) -> Self {
        self.phase = phase % self.revolution;
        self
    }

    pub(super) fn revolution(&self) -> Nanos {
        self.revolution
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    #[cfg(test)]
    fn cylinders(&self) -> u64 {
        self.cylinders
    }

    fn zone(&self, lba: u64) -> &Zone {
        // Most requests stay in the outer zones, and there are at most a dozen zones.
        let beyond =
            self.zones.iter().position(|zone| zone.first_lba > lba).unwrap_or(self.zones.len());
        &self.zones[beyond - 1]
    }

    pub(super) fn place(&self, lba: u64) -> (u64, u64) {
        let zone = self.zone(lba);
        let track = (lba - zone.first_lba) / zone.sectors_per_track;
        (zone.first_cylinder + track / self.heads, track % self.heads)
    }

    pub(super) fn track_sectors(&self, lba: u64) -> u64 {
        self.zone(lba).sectors_per_track
    }

    pub(super) fn track_end(&self, lba: u64) -> u64 {
        let zone = self.zone(lba);
        let track = (lba - zone.first_lba) / zone.sectors_per_track;
        (zone.first_lba + (track + 1) * zone.sectors_per_track).min(self.sectors)
    }

    fn media_time(&self, lba: u64, sectors_more: u64) -> Nanos {
        let zone = self.zone(lba);
        let inside = lba - zone.first_lba;
        let track = inside / zone.sectors_per_track;
        let sector = inside % zone.sectors_per_track + sectors_more;
        let cylinder = track / self.heads;
        let head = track % self.heads;
        zone.base
            + track * self.revolution
            + (cylinder * (self.heads - 1) + head) * self.track_skew
            + cylinder * self.cylinder_skew
            + sector * self.revolution / zone.sectors_per_track
    }

    pub(super) fn start(&self, lba: u64) -> Nanos {
        self.media_time(lba, 0)
    }

    /// Without the skew after the last block.
    pub(super) fn end(&self, end: u64) -> Nanos {
        self.media_time(end - 1, 1)
    }

    pub(super) fn rotation_to(&self, lba: u64, now: Nanos) -> Nanos {
        let angle = self.start(lba) % self.revolution;
        let here = (now + self.phase) % self.revolution;
        if angle >= here { angle - here } else { angle + self.revolution - here }
    }

    /// The last block read by `now`.
    pub(super) fn reached(&self, from: u64, began: Nanos, limit: u64, now: Nanos) -> u64 {
        let origin = self.start(from);
        let (mut low, mut high) = (from, limit);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if began + (self.end(middle) - origin) <= now {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn small() -> Geometry {
        Geometry::new(8_333_333, 5, 1_660_000, 2_330_000, &[(10, 186), (20, 150), (5, 119)])
    }

    #[test]
    fn capacity_is_the_sum_over_zones() {
        assert_eq!(small().sectors(), 5 * (10 * 186 + 20 * 150 + 5 * 119));
        assert_eq!(small().cylinders(), 35);
    }

    #[test]
    fn a_track_takes_one_revolution_and_a_change_its_skew() {
        let geometry = small();
        assert_eq!(geometry.end(186) - geometry.start(0), 8_333_333);
        assert_eq!(geometry.start(186) - geometry.end(186), 1_660_000);
        assert_eq!(geometry.start(186 * 5) - geometry.end(186 * 5), 2_330_000);
        assert_eq!(geometry.place(186 * 5), (1, 0));
        assert_eq!(geometry.track_end(185), 186);
    }

    proptest! {
        #[test]
        fn media_time_only_grows(lba in 0u64..27_000) {
            let geometry = small();
            prop_assert!(geometry.start(lba) < geometry.end(lba + 1));
            prop_assert!(geometry.end(lba + 1) <= geometry.start(lba + 1));
        }

        #[test]
        fn after_the_rotation_the_head_is_at_the_block(lba in 0u64..27_000, now in 0u64..1 << 40) {
            let geometry = small();
            let wait = geometry.rotation_to(lba, now);
            prop_assert!(wait < geometry.revolution);
            prop_assert_eq!((now + wait) % geometry.revolution, geometry.start(lba) % geometry.revolution);
        }

        #[test]
        fn reached_is_the_last_block_whose_end_has_passed(from in 0u64..13_000, more in 1u64..13_000, after in 0u64..1 << 33) {
            let geometry = small();
            let reached = geometry.reached(from, 77, from + more, 77 + after);
            if reached > from {
                prop_assert!(geometry.end(reached) - geometry.start(from) <= after);
            }
            if reached < from + more {
                prop_assert!(geometry.end(reached + 1) - geometry.start(from) > after);
            }
        }
    }
}
