//! A changed setting, as the journal keeps it.

use super::place::Place;
use crate::linux::facts::Roots;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub knob: String,
    /// Its device or system.
    pub of: String,
    pub place: Place,
    pub before: String,
    /// Values that halfpower may set.
    pub ours: Vec<String>,
    /// Changing another knob resets this one, so any value may be ours.
    #[serde(default)]
    pub reset_by_another: bool,
    /// Written if the original value cannot be.
    #[serde(default)]
    pub undo: Option<(Place, String)>,
    #[serde(default)]
    pub persistent: bool,
    /// A file and its content; if it differs, another device has the name now.
    #[serde(default)]
    pub identity: Option<(PathBuf, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    AsBefore,
    PutBack,
    /// Another process changed it.
    Foreign {
        found: String,
    },
    Gone,
    Failed {
        why: String,
    },
}

impl Entry {
    pub fn put_back(&self, roots: &Roots) -> Outcome {
        if let Some((file, before)) = &self.identity
            && fs::read_to_string(roots.resolve(file)).unwrap_or_default().trim() != before
        {
            return Outcome::Gone;
        }
        let found = match self.place.read(roots) {
            Ok(found) if found == self.before => return Outcome::AsBefore,
            Ok(found) => found,
            Err(error) if is_gone(&error) => return Outcome::Gone,
            Err(error) => return Outcome::Failed { why: error.to_string() },
        };
        if !self.reset_by_another && !self.ours.contains(&found) {
            return Outcome::Foreign { found };
        }
        let (place, value) = match &self.undo {
            Some((place, value)) => (place, value),
            None => (&self.place, &self.before),
        };
        if let Err(error) = place.write(roots, value) {
            return Outcome::Failed { why: error.to_string() };
        }
        match self.place.read(roots) {
            Ok(now) if now == self.before => Outcome::PutBack,
            Ok(now) => Outcome::Failed { why: format!("the kernel changed {value} to {now}") },
            Err(error) => Outcome::Failed { why: error.to_string() },
        }
    }

    pub fn message(&self, outcome: &Outcome) -> Option<String> {
        let Entry { knob, of, before, .. } = self;
        match outcome {
            Outcome::AsBefore | Outcome::PutBack | Outcome::Gone => None,
            Outcome::Foreign { found } => Some(format!(
                "{knob} of {of} is {found}, neither its value before tune ({before}) nor one that tune set: another process changed it, so it is left unchanged"
            )),
            Outcome::Failed { why } => Some(format!(
                "{knob} of {of} cannot be put back to {before}: {why}; set it by hand ({})",
                self.place.path().display()
            )),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO | libc::ENOTDIR))
}
