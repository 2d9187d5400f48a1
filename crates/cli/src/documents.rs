//! Documents that are not a list of points.

use crate::failure::Failure;
use crate::output;
use application::replay::{ReplayDocument, SCHEMA as REPLAY_SCHEMA};
use results::compare::{COMPARE_SCHEMA, Comparison, Side};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sustained::pts::{PTS_SCHEMA, PtsResult};
use sustained::{SUSTAINED_SCHEMA, SustainedResult};
use tune::{TUNE_SCHEMA, Tuning};

pub(crate) enum Document {
    Sustained(Box<SustainedResult>),
    Pts(Box<PtsResult>),
    Comparison(Box<Comparison>),
    Tuning(Box<Tuning>),
    Replay(Box<ReplayDocument>),
}

#[derive(Deserialize)]
struct Head {
    schema: String,
}

pub(crate) fn schema(text: &str) -> Option<String> {
    serde_json::from_str::<Head>(text).ok().map(|head| head.schema)
}

fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<Box<T>, Failure> {
    serde_json::from_str(text).map(Box::new).map_err(|error| {
        Failure::Usage(format!("{name}: this document cannot be read: {error}; make it again"))
    })
}

impl Document {
    pub(crate) fn parse(name: &str, text: &str) -> Result<Option<Document>, Failure> {
        let Some(schema) = schema(text) else { return Ok(None) };
        Ok(Some(match schema.as_str() {
            SUSTAINED_SCHEMA => Document::Sustained(parse(name, text)?),
            PTS_SCHEMA => Document::Pts(parse(name, text)?),
            COMPARE_SCHEMA => Document::Comparison(parse(name, text)?),
            TUNE_SCHEMA => Document::Tuning(parse(name, text)?),
            REPLAY_SCHEMA => Document::Replay(parse(name, text)?),
            _ => return Ok(None),
        }))
    }

    pub(crate) fn terminal(&self) -> String {
        let (width, colour) = (output::width(), output::colour());
        match self {
            Document::Sustained(result) => report::sustained::terminal(result, width, colour),
            Document::Pts(result) => report::pts::terminal(result, width, colour),
            Document::Comparison(comparison) => {
                report::compare::terminal(comparison, width, colour)
            }
            Document::Tuning(tuning) => report::tune::terminal(tuning, width, colour),
            Document::Replay(replay) => crate::replay::shown::text(replay),
        }
    }

    pub(crate) fn html(&self) -> Result<Option<String>, Failure> {
        let drawn = match self {
            Document::Sustained(result) => report::sustained::html(result),
            Document::Pts(result) => report::pts::html(result),
            Document::Comparison(comparison) => report::compare::html(comparison),
            Document::Tuning(_) | Document::Replay(_) => return Ok(None),
        };
        drawn.map(Some).map_err(|error| Failure::Run(format!("cannot draw the report: {error}")))
    }

    pub(crate) fn side(&self, name: &str) -> Option<Side> {
        match self {
            Document::Sustained(result) => {
                Some(result.side(&format!("{name} ({})", result.target.name)))
            }
            Document::Pts(result) => {
                Some(result.side(&format!("{name} ({})", result.conditions.target.name)))
            }
            Document::Replay(replay) => Some(Side {
                name: format!("{name} ({})", replay.target),
                asked: crate::replay::shown::measurements(replay),
                warnings: replay.warnings.clone(),
            }),
            Document::Comparison(_) | Document::Tuning(_) => None,
        }
    }
}
