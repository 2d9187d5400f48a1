//! The paths and values that a journal entry may have: only those in the tables, nothing else below
//! `/sys` and `/proc`.

use super::journal::Entry;
use super::place::Place;
use super::{mounted, queue, system};
use std::path::Component;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// From 0, or -1, which the kernel shows for a throttle that is off.
    Number,
    Words(&'static [&'static str]),
    /// From a kernel list: a scheduler, a governor.
    Name,
    Processors,
}

impl Values {
    fn allow(self, value: &str) -> bool {
        let only = |more: &str| {
            !value.is_empty() && value.chars().all(|c| c.is_ascii_digit() || more.contains(c))
        };
        match self {
            Values::Number => value == "-1" || value.parse::<u64>().is_ok(),
            Values::Words(words) => words.contains(&value),
            Values::Name => {
                !value.is_empty()
                    && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            }
            Values::Processors => only(",-"),
        }
    }

    fn what(self) -> String {
        match self {
            Values::Number => "a whole number".into(),
            Values::Words(words) => format!("one of {}", words.join(", ")),
            Values::Name => "a name of letters and digits".into(),
            Values::Processors => "a list of processors".into(),
        }
    }
}

/// `None` if the tables lack the place.
fn known(place: &Place) -> Option<(String, Values)> {
    let is_plain = place
        .path()
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !is_plain || !place.path().is_absolute() {
        return None;
    }
    match place {
        Place::File(file) => queue::known(file)
            .map(|(name, values)| (name.to_owned(), values))
            .or_else(|| system::known(file)),
        mount => Some(mounted::known(mount)),
    }
}

/// Rejects an entry that tune cannot have written; the error is a sentence.
pub(super) fn check(entry: &Entry) -> Result<(), String> {
    let strange =
        |place: &Place| format!("{} is not a setting that tune changes", place.path().display());
    let Some((name, values)) = known(&entry.place).filter(|(name, _)| *name == entry.knob) else {
        return Err(strange(&entry.place));
    };
    if let Some(value) = entry.ours.iter().chain([&entry.before]).find(|value| !values.allow(value))
    {
        return Err(format!("{name} of {}: '{value}' is not {}", entry.of, values.what()));
    }
    if let Some((place, value)) = &entry.undo {
        let allowed = known(place).is_some_and(|(_, values)| values.allow(value));
        if !allowed || system::undo_of(&entry.place).as_ref() != Some(place) {
            return Err(strange(place));
        }
    }
    match &entry.identity {
        Some((file, _)) if !queue::is_identity(file) => {
            Err(format!("{} identifies no drive", file.display()))
        }
        _ => Ok(()),
    }
}
