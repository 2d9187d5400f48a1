//! Writes past caches and burst credit, as far as time allows.

use super::prelude::*;
use crate::long_writes::applies;
use results::{Figure, Series, Value};

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "long_writes",
    "Long writes",
    "How long do writes keep their best rate? Caches and burst credit are used up by writing on.",
    &[],
    grid,
    conclude,
);

/// Runs last, because it changes the state of the target.
fn grid(setting: &StudyContext) -> Grid {
    applies(setting).map_or_else(Grid::skipped, |()| Grid::default())
}

fn conclude(found: &Found<'_>) -> Conclusion {
    match found.long_writes {
        Err(why) if why.is_empty() => Conclusion::default(),
        Err(why) => {
            Conclusion { sentences: vec![format!("Not measured: {why}.")], ..Conclusion::default() }
        }
        Ok(seen) => {
            let value = |one: &results::WriteRate| Value {
                x: one.at_s * 1e9,
                y: Some(one.bytes_per_s),
                interval_95: None,
                point: None,
            };
            let values = seen.course.iter().map(value).collect();
            let figure = Figure {
                id: "long-writes".into(),
                title: "Writes at full speed after everything else".into(),
                x: Axis::TimeNs,
                y: Axis::BytesPerS,
                series: vec![Series::new("writes", values)],
            };
            let mut text = seen.to_string();
            text[..1].make_ascii_uppercase();
            Conclusion {
                sentences: vec![text + "."],
                figures: vec![figure],
                ..Conclusion::default()
            }
        }
    }
}
