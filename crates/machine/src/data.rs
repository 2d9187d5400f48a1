use crate::rng::{GOLDEN, SplitMix64};

/// Writes incompressible bytes, reproducible from the seed (SplitMix64: about 7 instructions per 8
/// bytes).
///
/// ```
/// let (mut one, mut other) = ([0; 64], [0; 64]);
/// machine::fill_random(7, &mut one);
/// machine::fill_random(7, &mut other);
/// assert_eq!(one, other);
/// ```
pub fn fill_random(seed: u64, buffer: &mut [u8]) {
    let mut random = SplitMix64::new(seed);
    let mut words = buffer.chunks_exact_mut(8);
    for word in &mut words {
        word.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    let rest = words.into_remainder();
    let last = random.next_u64().to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Bytes of a test file that share one seed.
pub const FILL_STEP: u64 = 1 << 20;

/// Takes the piece's first byte.
pub fn fill_seed(seed: u64, piece: u64) -> u64 {
    seed ^ piece.wrapping_mul(GOLDEN)
}

/// Writes a test file's content at `offset`.
pub fn filled(seed: u64, offset: u64, buffer: &mut [u8]) {
    for (byte, at) in buffer.iter_mut().zip(offset..) {
        let within = at % FILL_STEP;
        let mut word = [0; 8];
        // Each word advances the generator by one step.
        let before = (within / 8).wrapping_mul(GOLDEN);
        fill_random(fill_seed(seed, at - within).wrapping_add(before), &mut word);
        *byte = word[(within % 8) as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_matches_the_whole_file_at_any_offset() {
        let mut file = vec![0; 2 * FILL_STEP as usize + 5003];
        for (piece, data) in
            (0..).step_by(FILL_STEP as usize).zip(file.chunks_mut(FILL_STEP as usize))
        {
            fill_random(fill_seed(7, piece), data);
        }
        for (offset, len) in [
            (0, 512),
            (513, 700),
            (FILL_STEP as usize - 9, 30),
            (2 * FILL_STEP as usize + 4500, 503),
        ] {
            let mut part = vec![0; len];
            filled(7, offset as u64, &mut part);
            assert_eq!(part, file[offset..offset + len], "{offset}");
        }
    }

    #[test]
    fn reproducible_and_uniform() {
        let (mut a, mut b, mut c) = (vec![0; 65_537], vec![0; 65_537], vec![0; 65_537]);
        fill_random(1, &mut a);
        fill_random(1, &mut b);
        fill_random(2, &mut c);
        assert_eq!(a, b);
        assert_ne!(a, c);
        let mut counts = [0u32; 256];
        a.iter().for_each(|&byte| counts[byte as usize] += 1);
        let expected = a.len() as f64 / 256.0;
        let chi2: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        // 255 degrees of freedom: more than 350 once in 30,000.
        assert!(chi2 < 350.0, "{chi2}");
    }
}
