//! Garbage collection of flash.

/// In writes.
const REMEMBERED: f64 = 1024.0;
const ZONES: u64 = 4096;

/// The share of recent writes that did not continue the one before.
pub(super) struct Scatter {
    end: u64,
    pub(super) share: f64,
}

impl Scatter {
    pub(super) fn new() -> Self {
        Scatter { end: u64::MAX, share: 0.0 }
    }

    pub(super) fn write(&mut self, offset: u64, bytes: u64) {
        let scattered = if offset == self.end { 0.0 } else { 1.0 };
        self.end = offset + bytes;
        self.share += (scattered - self.share) / REMEMBERED;
    }

    /// Returns the bytes programmed per byte written. Uniform random writes with greedy cleaning
    /// cost about (1 + s) / (2 s) with spare share s (Hu et al., "Write amplification analysis in
    /// flash-based solid state drives", 2009); sequential ones leave whole blocks stale.
    pub(super) fn amplification(&self, spare: f64) -> f64 {
        let random = ((1.0 + spare) / (2.0 * spare)).max(1.0);
        1.0 + self.share * (random - 1.0)
    }
}

/// Within a zone, space written twice counts twice.
pub(super) struct Filled {
    zones: Vec<u64>,
    bytes: u64,
    zone_bytes: u64,
}

impl Filled {
    pub(super) fn new(capacity_bytes: u64) -> Self {
        let zone_bytes = capacity_bytes.div_ceil(ZONES).max(1);
        Filled { zones: vec![0; ZONES as usize], bytes: 0, zone_bytes }
    }

    pub(super) fn write(&mut self, mut offset: u64, bytes: u64) -> u64 {
        let end = offset.saturating_add(bytes);
        let before = self.bytes;
        while let Some(zone) = self.zones.get_mut((offset / self.zone_bytes) as usize)
            && offset < end
        {
            let next = (offset / self.zone_bytes + 1) * self.zone_bytes;
            let new = (next.min(end) - offset).min(self.zone_bytes - *zone);
            *zone += new;
            self.bytes += new;
            offset = next;
        }
        self.bytes - before
    }

    pub(super) fn clear(&mut self) {
        self.zones.fill(0);
        self.bytes = 0;
    }

    pub(super) fn share(&self) -> f64 {
        self.bytes as f64 / (ZONES * self.zone_bytes) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_writes_are_amplified_and_sequential_ones_are_not() {
        let mut scatter = Scatter::new();
        (0..20_000u64).for_each(|at| scatter.write(at * 4096, 4096));
        assert!(scatter.amplification(0.07) < 1.01);
        (0..20_000u64).for_each(|at| scatter.write(at * 7919 % 100_000 * 8192, 4096));
        assert!((scatter.amplification(0.07) / (1.07 / 0.14) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_drive_is_as_full_as_the_space_written() {
        let mut filled = Filled::new(1 << 30);
        // Half of it, twice, and a few small ones elsewhere.
        assert_eq!((0..512u64).map(|at| filled.write(at << 20, 1 << 20)).sum::<u64>(), 512 << 20);
        assert_eq!((0..512u64).map(|at| filled.write(at << 20, 1 << 20)).sum::<u64>(), 0);
        let small: u64 = (512..1024u64).map(|at| filled.write(at << 20, 4096)).sum();
        assert_eq!(small, 512 * 4096);
        assert!((filled.share() - 0.502).abs() < 0.01, "{}", filled.share());
        filled.clear();
        assert_eq!(filled.share(), 0.0);
    }
}
