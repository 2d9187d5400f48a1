use rand_mt::Mt;

const WORDS: usize = 624;

/// MT19937 (Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998) with the seeding
/// used before 2002: the halves of each state word come from two steps of the generator `69069 x +
/// 1`.
#[derive(Debug, Clone)]
pub struct Mt19937(Mt);

impl Mt19937 {
    pub fn seeded_1999(seed: u32) -> Self {
        let mut x = seed;
        let mut step = || {
            let high = x & 0xffff_0000;
            x = x.wrapping_mul(69069).wrapping_add(1);
            high
        };
        // The library recovers the state from its output.
        let given: [u32; WORDS] = std::array::from_fn(|_| tempered(step() | (step() >> 16)));
        Mt19937(Mt::recover(given).unwrap_or_default())
    }

    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Modulo `limit`; 0 without a draw if `limit` is 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        if limit == 0 { 0 } else { self.next_u32() % limit }
    }
}

fn tempered(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a trace of PostMark 1.53's system calls.
    #[test]
    fn the_text_of_postmark_with_seed_42() {
        let mut rng = Mt19937::seeded_1999(42);
        let text: String = (0..32).map(|_| char::from(32 + rng.below(95) as u8)).collect();
        assert_eq!(text, "LeZebJ6S5~qPv$C$py}hmKd H58nM4~.");
    }

    #[test]
    fn nothing_is_drawn_for_an_empty_range() {
        let (mut a, mut b) = (Mt19937::seeded_1999(7), Mt19937::seeded_1999(7));
        assert_eq!(a.below(0), 0);
        assert_eq!(a.next_u32(), b.next_u32());
    }
}
