//! A journal entry may only have paths and values from the tables.

use super::entry::Entry;
use super::place::Place;
use super::values::Values;
use super::{mounted, queue, system};
use std::path::Component;

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
