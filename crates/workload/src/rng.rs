//! As [`machine::rng`].

pub use machine::rng::*;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chi_square_is_plausible;

    #[test]
    fn published_values_of_splitmix64() {
        // The first numbers of the reference generator for the seed 1234567.
        let mut generator = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| generator.next_u64()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first, published);
        let by_index: Vec<u64> = (0..5).map(|i| hash(1_234_567, i)).collect();
        assert_eq!(by_index, published, "the hash is the generator by index");
    }

    #[test]
    fn below_is_uniform_and_below() {
        let mut generator = SplitMix64::new(7);
        for n in [1u64, 2, 3, 10, 97, 1000] {
            let mut counts = vec![0u64; n as usize];
            for _ in 0..n * 200 {
                counts[generator.below(n) as usize] += 1;
            }
            chi_square_is_plausible(&counts, &vec![200.0; n as usize]);
        }
        assert_eq!(below(u64::MAX, 10), 9);
        assert_eq!(below(0, 10), 0);
    }

    #[test]
    fn unit_stays_inside_the_open_interval() {
        assert!(unit(0) > 0.0);
        assert!(unit(u64::MAX) < 1.0);
        assert!((unit(1 << 63) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn purposes_and_streams_are_independent() {
        let mut seeds: Vec<u64> =
            (0..10).flat_map(|p| (0..100).map(move |s| derive(1, p, s))).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 1000);
    }
}
