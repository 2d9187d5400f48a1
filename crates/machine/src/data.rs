//! Incompressible data.

/// Fills `buffer` with bytes that no compressor makes smaller, the same for the same seed.
///
/// The generator is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): 8 bytes in some 7 instructions.
pub fn fill_random(seed: u64, buffer: &mut [u8]) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let mut words = buffer.chunks_exact_mut(8);
    for word in &mut words {
        word.copy_from_slice(&next().to_le_bytes());
    }
    let rest = words.into_remainder();
    let last = next().to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_for_the_same_seed_and_even() {
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
        // 255 degrees of freedom: beyond 350 once in 30,000.
        assert!(chi2 < 350.0, "{chi2}");
    }
}
