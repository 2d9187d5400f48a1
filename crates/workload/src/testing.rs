/// Within 5 standard deviations, which a correct generator fails for one seed in ten thousand.
/// Pools cells with an expectation below 5.
pub fn chi_square_is_plausible(counts: &[u64], expected: &[f64]) {
    let (mut chi, mut cells, mut pooled) = (0.0, 0u64, (0.0, 0.0));
    for (&count, &expect) in counts.iter().zip(expected) {
        if expect < 5.0 {
            pooled = (pooled.0 + count as f64, pooled.1 + expect);
        } else {
            chi += (count as f64 - expect).powi(2) / expect;
            cells += 1;
        }
    }
    if pooled.1 >= 5.0 {
        chi += (pooled.0 - pooled.1).powi(2) / pooled.1;
        cells += 1;
    } else {
        assert!(pooled.0 < 25.0, "cells of next to no probability were hit {} times", pooled.0);
    }
    let freedom = cells.saturating_sub(1) as f64;
    let bound = freedom + 5.0 * (2.0 * freedom).sqrt() + 5.0;
    assert!(
        chi <= bound,
        "chi-square {chi:.1} with {freedom} degrees of freedom, at most {bound:.1} is plausible"
    );
}
