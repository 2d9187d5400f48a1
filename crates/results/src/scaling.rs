//! What more clients gain.

use crate::clients::ClientNumbers;
use machine::units::{grouped, plural, show_rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rates with different numbers of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    /// The workload in words.
    pub workload: String,
    /// Rate with each number of clients, by rising number.
    pub steps: Vec<ScalingStep>,
    /// The highest rate.
    pub peak_bytes_per_s: f64,
    #[serde(flatten)]
    pub growth: Growth,
    /// The expected gain of more clients; absent with fewer than four numbers of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ScalingModel>,
}

/// The gain of more clients, and their limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// The smallest measured number of clients that reaches half of the peak.
    pub half_power_clients: u32,
    /// The smallest measured number of clients from which more gain less than 5 %.
    pub knee_clients: u32,
    /// The bottleneck with the most clients.
    pub limit: ScalingLimit,
    /// No client had a free processor.
    pub processors_busy: bool,
    /// Clients far below the median rate.
    pub slow_clients: Vec<SlowClient>,
}

/// A client far below the median rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowClient {
    pub rank: u32,
    pub host: String,
    /// This client's rate over the median of all clients' rates.
    pub of_median: f64,
}

impl From<&ClientNumbers> for SlowClient {
    fn from(one: &ClientNumbers) -> SlowClient {
        SlowClient { rank: one.rank, host: one.host.clone(), of_median: one.of_median }
    }
}

/// The rate with a number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingStep {
    pub clients: u32,
    /// Index of the point.
    pub point: u32,
    pub throughput_bytes_per_s: f64,
    /// The 95 % interval of the rate.
    pub interval_95: Option<[f64; 2]>,
    /// The rate over the number of clients times the rate of one client.
    pub efficiency: Option<f64>,
    /// Jain's index of the clients' rates.
    pub fairness: Option<f64>,
}

/// A model of the rates by number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingModel {
    pub form: ModelForm,
    /// The highest rate that any number of clients can reach; absent if no limit is seen.
    pub peak_bytes_per_s: Option<f64>,
    /// Largest relative error on a step, if the model is fitted to the others only.
    pub left_out_error: f64,
    /// Rates with more clients than were measured.
    pub predicted: Vec<ScalingPrediction>,
}

/// The form of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelForm {
    /// Each client has its own rate until a limit that all share.
    SharedLimit,
    /// The rate n/(n + h) of a peak: clients wait for one another before the limit.
    Waiting,
}

/// The rate that a model gives for a number of clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingPrediction {
    pub clients: u32,
    pub throughput_bytes_per_s: f64,
}

/// The bottleneck of many clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScalingLimit {
    /// Each client: the rate grows with their number.
    Client,
    /// The part that all share: more clients gain nothing.
    Server,
    /// The network links of the clients.
    Network,
    /// One or some clients are slower than the others.
    Imbalance,
    /// Too few numbers of clients, or intervals too wide.
    Undecided,
}

/// A model with more error predicts no rates.
const MODEL_ERROR: f64 = 0.1;

/// The factor from which more clients gain something.
const GAIN: f64 = 1.05;

/// Of a rate that grows with the number of clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowthNumbers {
    pub peak: f64,
    /// The fewest clients that reach half of the peak.
    pub half: u32,
    /// The fewest clients from which more gain less than 5 %.
    pub knee: u32,
    /// The most clients measured.
    pub most: u32,
}

impl GrowthNumbers {
    /// Takes rising numbers of clients; `None` with fewer than two.
    pub fn of(rates: &[(u32, f64)]) -> Option<GrowthNumbers> {
        let &[_, .., (most, _)] = rates else { return None };
        let peak = rates.iter().map(|one| one.1).fold(0.0, f64::max);
        let fewest = |share: f64| rates.iter().find(|one| one.1 >= peak * share).map(|one| one.0);
        Some(GrowthNumbers { peak, half: fewest(0.5)?, knee: fewest(1.0 / GAIN)?, most })
    }
}

impl Growth {
    fn sentence(&self, peak: &str, (most, efficiency): (u32, Option<f64>)) -> String {
        let (half, knee) = (self.half_power_clients, self.knee_clients);
        let why = why(self.limit, self.processors_busy, &self.slow_clients);
        let reach = if half == 1 { "reaches" } else { "reach" };
        let begin =
            format!("{} {reach} half of the peak of {peak}", plural(half as usize, "client"));
        let more = if knee < most {
            format!("more than {knee} gain nothing")
        } else {
            format!("the rate still grows at {}", plural(most as usize, "client"))
        };
        let efficiency = efficiency.map_or(String::new(), |share| {
            let share = share * 100.0;
            format!(
                " ({} get {share:.0} % of {most} times the rate of one)",
                plural(most as usize, "client")
            )
        });
        format!("{begin}; {more}; {why}{efficiency}.")
    }
}

fn why(limit: ScalingLimit, processors_busy: bool, slow: &[SlowClient]) -> String {
    match limit {
        ScalingLimit::Client if processors_busy => {
            "the clients are the limit: their processors are busy".into()
        }
        ScalingLimit::Client => {
            "each client is its own limit, and more clients would gain more".into()
        }
        ScalingLimit::Server => "the server is the limit".into(),
        ScalingLimit::Network => {
            "the clients' network links are the limit: they carry what they can".into()
        }
        ScalingLimit::Imbalance => {
            let name = |one: &SlowClient| {
                format!("rank {} ({}) at {:.0} %", one.rank, one.host, one.of_median * 100.0)
            };
            let names: Vec<String> = slow.iter().map(name).collect();
            let is = if names.len() == 1 { "is" } else { "are" };
            format!("the clients are not equal: {} of the median rate {is} slow", names.join(", "))
        }
        ScalingLimit::Undecided => {
            "what limits them is not decided: measure with more clients, or longer".into()
        }
    }
}

impl Scaling {
    pub fn sentence(&self) -> String {
        let Some(last) = self.steps.last() else { return String::new() };
        self.growth.sentence(&show_rate(self.peak_bytes_per_s), (last.clients, last.efficiency))
    }
}

/// The rates of an operation on files with different numbers of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationScaling {
    /// Name of the operation.
    pub operation: String,
    /// The files in words; empty: empty files in directories of each client.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub files: String,
    /// The files were made by another client than the one that looked them up or read them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_another_client: bool,
    /// Rate with each number of clients, by rising number.
    pub steps: Vec<OperationStep>,
    /// The highest rate, in operations per second.
    pub peak_per_s: f64,
    #[serde(flatten)]
    pub growth: Growth,
}

/// The rate of an operation on files with a number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationStep {
    pub clients: u32,
    /// Operations per second of all clients together.
    pub per_s: f64,
    /// The 95 % interval of the rate.
    pub interval_95: Option<[f64; 2]>,
    /// The rate over the number of clients times the rate of one client.
    pub efficiency: Option<f64>,
    /// Jain's index of the clients' rates.
    pub fairness: Option<f64>,
}

impl OperationScaling {
    /// The operation with its files.
    pub fn title(&self) -> String {
        let files = (!self.files.is_empty()).then_some(self.files.as_str());
        let visited = self.by_another_client.then_some("by another client");
        let words: Vec<&str> = files.into_iter().chain(visited).collect();
        match words.is_empty() {
            true => self.operation.clone(),
            false => format!("{} ({})", self.operation, words.join(", ")),
        }
    }

    pub fn sentence(&self) -> String {
        let Some(last) = self.steps.last() else { return String::new() };
        let peak = format!("{}/s", grouped(self.peak_per_s));
        self.growth.sentence(&peak, (last.clients, last.efficiency))
    }
}

impl ScalingModel {
    pub fn outlook(&self) -> String {
        let error = self.left_out_error * 100.0;
        if self.left_out_error > MODEL_ERROR {
            return format!(
                "The rates follow no model: it is off by {error:.0} % at a number of clients that it was not fitted to, so it gives no rate for more clients."
            );
        }
        let form = match self.form {
            ModelForm::SharedLimit => "each client has its own rate until a limit that all share",
            ModelForm::Waiting => "clients wait for one another",
        };
        let each = self.predicted.iter().map(|one| {
            format!("{} with {} clients", show_rate(one.throughput_bytes_per_s), one.clients)
        });
        let each: Vec<String> = each.collect();
        format!(
            "Expected: {}. The model ({form}) is off by at most {error:.0} % at a number of clients that it was not fitted to.",
            each.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling(limit: ScalingLimit, knee: u32, busy: bool) -> Scaling {
        let step = |clients: u32| ScalingStep {
            clients,
            point: 0,
            throughput_bytes_per_s: 1e6,
            interval_95: None,
            efficiency: Some(0.5),
            fairness: None,
        };
        Scaling {
            workload: "w".into(),
            steps: vec![step(1), step(8)],
            peak_bytes_per_s: 1e6,
            growth: Growth {
                half_power_clients: 4,
                knee_clients: knee,
                limit,
                processors_busy: busy,
                slow_clients: vec![SlowClient { rank: 2, host: "b".into(), of_median: 0.5 }],
            },
            model: None,
        }
    }

    #[test]
    fn an_outlook_gives_rates_and_its_error() {
        let model = ScalingModel {
            form: ModelForm::Waiting,
            peak_bytes_per_s: Some(1e9),
            left_out_error: 0.07,
            predicted: vec![ScalingPrediction { clients: 16, throughput_bytes_per_s: 8e8 }],
        };
        let said = model.outlook();
        assert!(said.contains("with 16 clients") && said.contains("at most 7 %"), "{said}");
        let bad = ScalingModel { left_out_error: 0.4, ..model }.outlook();
        assert!(bad.contains("off by 40 %") && !bad.contains("16"), "{bad}");
    }

    #[test]
    fn a_conclusion_names_the_number_of_clients_and_the_limit() {
        let said = |limit, knee, busy| scaling(limit, knee, busy).sentence();
        let server = said(ScalingLimit::Server, 4, false);
        assert!(server.starts_with("4 clients reach half of the peak of "), "{server}");
        assert!(server.contains("more than 4 gain nothing; the server is the limit"), "{server}");
        assert!(server.ends_with("(8 clients get 50 % of 8 times the rate of one)."), "{server}");
        let client = said(ScalingLimit::Client, 8, false);
        assert!(client.contains("the rate still grows at 8 clients"), "{client}");
        assert!(said(ScalingLimit::Client, 4, true).contains("their processors are busy"));
        assert!(said(ScalingLimit::Network, 4, false).contains("network links"));
        assert!(said(ScalingLimit::Undecided, 8, false).contains("measure with more clients"));
        let unequal = said(ScalingLimit::Imbalance, 8, false);
        assert!(unequal.contains("rank 2 (b) at 50 % of the median rate is slow"), "{unequal}");
    }
}
