//! Predicts a recorded application on other volumes: its trace on simulated machines.

mod catalogue;
mod prices;
mod sentences;

pub use catalogue::{Catalogue, CatalogueVolume, ChosenVolume};
pub use prices::{Price, Prices};

use crate::{Error, Result};
use application::replay::{
    Class, ClassResult, Layout, Pace, ReplayDocument, ReplayError, Script, Settings, replay,
};
use machine::{CacheState, Nanos};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use twin::{Setup, Twin};

pub const SCHEMA: &str = "halfpower.plan/1";

/// More IOPS must save this share of the time.
const ENOUGH: f64 = 0.02;
/// A warm cache served this share of the bytes read.
const WARM: f64 = 0.5;
/// A quota that limits is busy for this share.
const LIMITED: f64 = 0.9;

/// A goal: the 99th percentile of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Goal {
    #[serde(flatten)]
    pub class: Class,
    pub p99_ns: Nanos,
}

pub struct Plan<'a> {
    pub script: &'a Script,
    /// Catalogue volumes and simulated machines.
    pub on: &'a [String],
    pub catalogue: &'a Catalogue,
    pub prices: Option<&'a Prices>,
    pub goals: &'a [Goal],
    /// Models the recorded machine.
    pub recorded_on: Option<&'a str>,
}

/// The limit of the application on a volume.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Limit {
    /// A part of the machine is busy.
    Part { name: String, busy_percent: f64 },
    /// The requests wait for the volume's latency, one after another.
    Latency,
    /// The recorded pauses take most of the time.
    OwnPauses,
}

/// The prediction for one volume.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Prediction {
    pub name: String,
    /// The page that documents the volume's limits.
    pub source: Option<String>,
    pub size_gib: Option<u64>,
    pub iops: Option<f64>,
    pub throughput_bytes_per_s: Option<f64>,
    pub elapsed_s: f64,
    pub classes: Vec<ClassResult>,
    pub limit: Limit,
    pub price_per_month: Option<f64>,
    /// Whether all goals are met; `None` without goals.
    pub meets_goals: Option<bool>,
}

/// How far the model's 99th percentile of a kind of request is off, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ClassError {
    #[serde(flatten)]
    pub class: Class,
    pub percent: f64,
}

/// A plan: predictions of a recorded program's times on volumes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlanDocument {
    pub schema: &'static str,
    pub trace: String,
    pub requests: u64,
    pub recorded_s: f64,
    /// The page cache before each prediction, like that of the recording.
    pub cache: CacheState,
    /// Share of the bytes read that came from the page cache in the recording; `None` if it shows no
    /// devices.
    pub read_hits: Option<f64>,
    /// Error of the model on the machine of the recording: its time over the recorded one, minus 1,
    /// in percent. `None` if that machine is not known.
    pub model_error_percent: Option<f64>,
    /// Error of the model's 99th percentile on that machine, for each kind of request.
    pub model_p99_errors: Vec<ClassError>,
    pub goals: Vec<Goal>,
    /// Predictions in the order of the volumes' names; a volume whose IOPS can be chosen follows
    /// with enough of them.
    pub predictions: Vec<Prediction>,
    pub sentences: Vec<String>,
}

pub fn schema() -> String {
    serde_json::to_string_pretty(&schemars::schema_for!(PlanDocument)).unwrap_or_default() + "\n"
}

impl From<ReplayError> for Error {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Machine(error) => Error::Run(error),
            ReplayError::Trace(error) => Error::Trace(error),
            ReplayError::Unsuitable(why) => {
                Error::Trace(apptrace::foreign::ForeignError::Whole(why))
            }
        }
    }
}

fn cache(script: &Script) -> CacheState {
    if script.read_hits.is_some_and(|hits| hits >= WARM) {
        CacheState::Warm
    } else {
        CacheState::Cold
    }
}

fn run(script: &Script, setup: Setup, pace: Pace) -> Result<ReplayDocument> {
    let settings = Settings { pace, depth: None, runs: 1, cache: cache(script) };
    let layout = Layout::Files(PathBuf::from("twin:"));
    Ok(replay(&Twin::new(setup), script, ("", ""), &layout, &settings, &mut |_| {})?)
}

impl Plan<'_> {
    fn predict(&self, setup: Setup, volume: Option<&ChosenVolume>) -> Result<Prediction> {
        let name = volume.map_or_else(|| setup.name.clone(), |volume| volume.name.clone());
        let result = run(self.script, setup, Pace::Recorded(1.0))?;
        let elapsed_s = result.elapsed_s.mean;
        let meets = |goal: &Goal| {
            let of = result.classes.iter().find(|one| one.class == goal.class);
            of.and_then(|one| one.latency).is_some_and(|latency| latency.p99_ns <= goal.p99_ns)
        };
        let meets_goals = (!self.goals.is_empty()).then(|| self.goals.iter().all(meets));
        Ok(Prediction {
            name,
            source: volume.map(|volume| volume.source.clone()),
            size_gib: volume.map(|volume| volume.gib),
            iops: volume.map(|volume| volume.iops),
            throughput_bytes_per_s: volume.map(|volume| volume.bytes_per_s),
            elapsed_s,
            limit: limit(&result),
            classes: result.classes,
            price_per_month: volume
                .and_then(|volume| self.prices.and_then(|prices| prices.month(volume))),
            meets_goals,
        })
    }

    fn bytes(&self) -> u64 {
        // Files begin at blocks of their own, and a file system needs some room.
        self.script.files.iter().map(|file| file.bytes + (1 << 20)).sum::<u64>()
    }

    /// As named, and with enough IOPS if they can be chosen and help.
    fn on_volume(&self, text: &str) -> Result<Vec<Prediction>> {
        let chosen = self.catalogue.choose(text, self.bytes())?;
        let first = self.predict(chosen.setup()?, Some(&chosen))?;
        let mut predictions = vec![first];
        let Some(most) = chosen.most_iops.filter(|_| !text.contains("iops=")) else {
            return Ok(predictions);
        };
        let at = |iops: f64| -> Result<Prediction> {
            let chosen = self.catalogue.choose(&format!("{text},iops={iops:.0}"), self.bytes())?;
            self.predict(chosen.setup()?, Some(&chosen))
        };
        let best = at(most)?.elapsed_s;
        let enough = |one: &Prediction| one.elapsed_s <= best * (1.0 + ENOUGH);
        let mut iops = chosen.iops;
        while !enough(&predictions[predictions.len() - 1]) && iops < most {
            iops = (iops * 2.0).min(most);
            let next = at(iops)?;
            if enough(&next) {
                predictions.push(next);
                break;
            }
        }
        Ok(predictions)
    }

    pub fn make(&self, trace: &str) -> Result<PlanDocument> {
        let mut predictions = Vec::new();
        for name in self.on {
            if self.catalogue.has(name) {
                predictions.extend(self.on_volume(name)?);
            } else {
                predictions.push(self.predict(Setup::parse(name)?, None)?);
            }
        }
        let recorded_s = self.script.recorded_ns as f64 * 1e-9;
        let percent = |model: f64, recorded: f64| (model / recorded - 1.0) * 100.0;
        let (mut model_error_percent, mut model_p99_errors) = (None, Vec::new());
        if let Some(name) = self.recorded_on.filter(|_| recorded_s > 0.0) {
            let same = run(self.script, Setup::parse(name)?, Pace::Recorded(1.0))?;
            model_error_percent = Some(percent(same.elapsed_s.mean, recorded_s));
            model_p99_errors.extend(same.classes.iter().filter_map(|one| {
                let (here, then) = (one.latency?.p99_ns, one.recorded_latency?.p99_ns);
                let percent = percent(here as f64, then.max(1) as f64);
                Some(ClassError { class: one.class, percent })
            }));
        }
        let mut document = PlanDocument {
            schema: SCHEMA,
            trace: trace.to_owned(),
            requests: self.script.requests,
            recorded_s,
            cache: cache(self.script),
            read_hits: self.script.read_hits,
            model_error_percent,
            model_p99_errors,
            goals: self.goals.to_vec(),
            predictions,
            sentences: Vec::new(),
        };
        document.sentences = sentences::sentences(&document);
        Ok(document)
    }
}

fn limit(result: &ReplayDocument) -> Limit {
    if let Some(part) = result.resources.iter().find(|part| part.busy_percent >= 100.0 * LIMITED) {
        return Limit::Part { name: part.name.clone(), busy_percent: part.busy_percent };
    }
    let waited: f64 = result
        .classes
        .iter()
        .filter_map(|one| Some(one.latency?.p50_ns as f64 * one.requests as f64))
        .sum();
    let share = waited * 1e-9 / (result.elapsed_s.mean * result.threads.max(1) as f64);
    if share >= 0.5 { Limit::Latency } else { Limit::OwnPauses }
}
