//! A model of the rates with few clients, and its error on those left out.

use results::{ModelForm, ScalingModel, ScalingPrediction, ScalingStep};

/// With this many steps, a model can be tested on one of them.
const MIN_STEPS: usize = 4;

type Rates = [(f64, f64)];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fitted {
    /// Each client has its own rate until the shared part is full; `None` if it never was.
    Shared { each: f64, peak: Option<f64> },
    /// The rate approaches a peak, half of it with `half` clients: clients wait for one another
    /// before the shared part is full.
    Waiting { peak: f64, half: f64 },
}

impl Fitted {
    fn at(self, clients: f64) -> f64 {
        match self {
            Fitted::Shared { each, peak } => {
                let free = each * clients;
                peak.map_or(free, |peak| free.min(peak))
            }
            Fitted::Waiting { peak, half } => peak * clients / (clients + half),
        }
    }

    fn error(self, rates: &Rates) -> f64 {
        let square = |&(clients, rate): &(f64, f64)| (self.at(clients) / rate - 1.0).powi(2);
        rates.iter().map(square).sum::<f64>() / rates.len() as f64
    }
}

/// A shared part is full only below this share of the free clients' rates.
const FULL_SHARE: f64 = 0.9;

/// Fits the first rates to free clients and the others to a peak, in the best division.
fn shared(rates: &Rates) -> Option<Fitted> {
    let division = |free: usize| {
        let (free, full) = rates.split_at(free);
        let mean = |values: &mut dyn Iterator<Item = f64>, count: usize| {
            values.sum::<f64>() / count as f64
        };
        let each = mean(&mut free.iter().map(|(clients, rate)| rate / clients), free.len());
        let is_full = full.iter().all(|(clients, rate)| *rate < each * clients * FULL_SHARE);
        let peak =
            (!full.is_empty()).then(|| mean(&mut full.iter().map(|(_, rate)| *rate), full.len()));
        is_full.then_some(Fitted::Shared { each, peak })
    };
    let fits = (1..=rates.len()).filter_map(division);
    fits.min_by(|a, b| a.error(rates).total_cmp(&b.error(rates)))
}

/// Fits a line to clients / rate, with equal relative weights.
fn waiting(rates: &Rates) -> Option<Fitted> {
    let weight = |&(clients, rate): &(f64, f64)| (rate / clients).powi(2);
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        rates.iter().map(|one| weight(one) * of(one.0, one.0 / one.1)).sum::<f64>()
    };
    let (w, x, y) = (sum(&|_, _| 1.0), sum(&|x, _| x), sum(&|_, y| y));
    let (xx, xy) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
    let slope = (w * xy - x * y) / (w * xx - x * x);
    let start = (y - slope * x) / w;
    (slope > 0.0 && start >= 0.0)
        .then(|| Fitted::Waiting { peak: 1.0 / slope, half: start / slope })
}

fn left_out(rates: &Rates, fit: fn(&Rates) -> Option<Fitted>) -> Option<f64> {
    let errors = (0..rates.len()).map(|out| {
        let mut others = rates.to_vec();
        let (clients, rate) = others.remove(out);
        Some((fit(&others)?.at(clients) / rate - 1.0).abs())
    });
    errors.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

pub(crate) fn model(steps: &[ScalingStep]) -> Option<ScalingModel> {
    let rates: Vec<(f64, f64)> = (steps.iter())
        .map(|step| (f64::from(step.clients), step.throughput_bytes_per_s))
        .filter(|(_, rate)| *rate > 0.0)
        .collect();
    if rates.len() < MIN_STEPS {
        return None;
    }
    let candidates = [shared as fn(&Rates) -> Option<Fitted>, waiting];
    let (error, fit) = (candidates.into_iter())
        .filter_map(|fit| Some((left_out(&rates, fit)?, fit(&rates)?)))
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    let (form, peak) = match fit {
        Fitted::Shared { peak, .. } => (ModelForm::SharedLimit, peak),
        Fitted::Waiting { peak, .. } => (ModelForm::Waiting, Some(peak)),
    };
    let most = steps.iter().map(|step| step.clients).max()?;
    let predicted = [2u32, 4]
        .iter()
        .filter_map(|factor| most.checked_mul(*factor))
        .map(|clients| ScalingPrediction {
            clients,
            throughput_bytes_per_s: fit.at(clients.into()),
        })
        .collect();
    Some(ScalingModel { form, peak_bytes_per_s: peak, left_out_error: error, predicted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps(rates: &[(u32, f64)]) -> Vec<ScalingStep> {
        let step = |&(clients, rate): &(u32, f64)| ScalingStep {
            clients,
            point: 0,
            throughput_bytes_per_s: rate,
            interval_95: None,
            efficiency: None,
            fairness: None,
        };
        rates.iter().map(step).collect()
    }

    #[test]
    fn a_shared_limit_is_found() {
        let found = model(&steps(&[(1, 10e6), (2, 20e6), (3, 25e6), (4, 25e6)])).unwrap();
        assert_eq!((found.form, found.peak_bytes_per_s), (ModelForm::SharedLimit, Some(25e6)));
        assert!(found.left_out_error < 1e-9);
        assert_eq!(found.predicted[0].clients, 8);
        assert!((found.predicted[0].throughput_bytes_per_s / 25e6 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn clients_that_never_fill_the_server_have_no_peak() {
        let found = model(&steps(&[(1, 1e6), (2, 2e6), (4, 4e6), (8, 8e6)])).unwrap();
        assert_eq!((found.form, found.peak_bytes_per_s), (ModelForm::SharedLimit, None));
        assert!((found.predicted[1].throughput_bytes_per_s / 32e6 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn rates_of_no_model_have_a_large_error_and_few_have_none() {
        let wild = model(&steps(&[(1, 1e6), (2, 9e6), (4, 2e6), (8, 7e6)])).unwrap();
        assert!(wild.left_out_error > 0.5, "{wild:?}");
        assert!(model(&steps(&[(1, 1e6), (2, 2e6), (4, 3e6)])).is_none());
    }

    proptest! {
        #[test]
        fn waiting_clients_are_found(peak in 1e6f64..1e10, half in 0.5f64..20.0, noise in 0.0f64..0.01) {
            let rate = |n: u32| {
                let sign = if n.trailing_zeros().is_multiple_of(2) { 1.0 } else { -1.0 };
                peak * f64::from(n) / (f64::from(n) + half) * (1.0 + sign * noise)
            };
            let found = model(&steps(&[1, 2, 4, 8, 16].map(|n| (n, rate(n))))).unwrap();
            prop_assert!(found.left_out_error < 0.01 + 10.0 * noise, "{found:?}");
            let truth = peak * 64.0 / (64.0 + half);
            let said = found.predicted[1].throughput_bytes_per_s;
            prop_assert!(noise > 0.001 || (said / truth - 1.0).abs() < 0.05, "{said} {truth}");
        }
    }
}
