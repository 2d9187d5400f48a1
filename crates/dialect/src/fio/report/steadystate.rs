use crate::fio::run::steady::Steady;
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct SteadyReport {
    ss: String,
    duration: u64,
    attained: u32,
    criterion: String,
    max_deviation: f64,
    slope: f64,
    data: SteadyData,
}

#[derive(Serialize)]
struct SteadyData {
    bw_mean: u64,
    iops_mean: u64,
    iops: Vec<u64>,
    bw: Vec<u64>,
}

impl Steady {
    pub(crate) fn report(&self) -> SteadyReport {
        let mean = |values: &[u64]| values.iter().sum::<u64>() / (values.len() as u64).max(1);
        SteadyReport {
            ss: self.criterion.shown(),
            duration: self.criterion.window() as u64,
            attained: u32::from(self.attained),
            criterion: format!(
                "{:.6}{}",
                self.found,
                if self.criterion.percent { "%" } else { "" }
            ),
            max_deviation: self.max_deviation,
            slope: self.slope,
            data: SteadyData {
                bw_mean: mean(&self.bytes),
                iops_mean: mean(&self.iops),
                iops: self.iops.clone(),
                bw: self.bytes.clone(),
            },
        }
    }
}
