//! A knob: its places, values to try, and how to keep one.

use super::entry::Entry;
use super::place::Place;
use crate::linux::facts::Roots;
use machine::{Alternative, Keep, Knob};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Keeper {
    Udev {
        devices: Vec<String>,
        attribute: String,
    },
    Sysctl(String),
    /// The option is the value, or this prefix and the value.
    Fstab {
        at: PathBuf,
        prefix: &'static str,
    },
    Tmpfiles,
}

#[derive(Debug, Clone)]
pub struct HostKnob {
    pub knob: Knob,
    /// All get the same value; each has its current one.
    pub places: Vec<(Place, String)>,
    pub(super) keeper: Keeper,
    pub(super) risk: fn(present: &str, value: &str) -> Option<String>,
    /// Written if the original value cannot be.
    pub(super) undo: Option<(Place, String)>,
    pub(super) persistent: bool,
    /// A file that distinguishes the device from another of the same name.
    pub(super) identity: Option<(PathBuf, String)>,
}

pub(super) fn safe(_present: &str, _value: &str) -> Option<String> {
    None
}

impl HostKnob {
    /// `None` if no place can be read.
    pub(super) fn at(
        roots: &Roots,
        name: &str,
        of: String,
        about: &str,
        places: Vec<Place>,
        keeper: Keeper,
    ) -> Option<HostKnob> {
        let places: Vec<(Place, String)> = places
            .into_iter()
            .filter_map(|place| place.read(roots).ok().map(|value| (place, value)))
            .collect();
        let mut values: Vec<&str> = places.iter().map(|(_, value)| value.as_str()).collect();
        values.dedup();
        let knob = Knob {
            name: name.into(),
            of,
            about: about.into(),
            present: values.join(", "),
            alternatives: Vec::new(),
            matters: machine::Matters::Always,
            resets: Vec::new(),
        };
        let found = !places.is_empty();
        found.then_some(HostKnob {
            knob,
            places,
            keeper,
            risk: safe,
            undo: None,
            persistent: false,
            identity: None,
        })
    }

    pub(super) fn with_values(mut self, values: impl IntoIterator<Item = String>) -> HostKnob {
        for value in values {
            let known = self.knob.alternatives.iter().any(|one| one.value == value);
            if value != self.knob.present && !known {
                self.knob.alternatives.push(self.alternative(&value));
            }
        }
        self
    }

    pub fn alternative(&self, value: &str) -> Alternative {
        let put_back: Vec<String> = match &self.undo {
            Some((place, before)) => vec![command(place, before)],
            None => self.places.iter().map(|(place, before)| command(place, before)).collect(),
        };
        Alternative {
            value: value.into(),
            risk: (self.risk)(&self.knob.present, value),
            keep: self.keep(value),
            command: Some(
                self.places
                    .iter()
                    .map(|(place, _)| command(place, value))
                    .collect::<Vec<_>>()
                    .join(" && "),
            ),
            put_back: Some(put_back.join(" && ")),
            option: None,
        }
    }

    fn keep(&self, value: &str) -> Vec<Keep> {
        let keep = |place: &str, line: String| Keep { place: place.into(), line };
        match &self.keeper {
            Keeper::Udev { devices, attribute } => {
                let rule = |device: &String| {
                    let line = format!(
                        "ACTION==\"add|change\", KERNEL==\"{device}\", ATTR{{{attribute}}}=\"{value}\""
                    );
                    keep("/etc/udev/rules.d/60-halfpower.rules", line)
                };
                devices.iter().map(rule).collect()
            }
            Keeper::Sysctl(name) => {
                vec![keep("/etc/sysctl.d/60-halfpower.conf", format!("{name} = {value}"))]
            }
            Keeper::Fstab { at, prefix } => {
                let place = format!("/etc/fstab, options of {}", at.display());
                vec![keep(&place, format!("{prefix}{value}"))]
            }
            Keeper::Tmpfiles => {
                let line = |(place, _): &(Place, String)| {
                    let line = format!("w {} - - - - {value}", place.path().display());
                    keep("/etc/tmpfiles.d/halfpower.conf", line)
                };
                self.places.iter().map(line).collect()
            }
        }
    }

    pub(super) fn entries(&self, values: &[String]) -> Vec<Entry> {
        let entry = |(place, before): &(Place, String)| Entry {
            knob: self.knob.name.clone(),
            of: self.knob.of.clone(),
            place: place.clone(),
            before: before.clone(),
            ours: values.to_vec(),
            reset_by_another: false,
            undo: self.undo.clone(),
            persistent: self.persistent,
            identity: self.identity.clone(),
        };
        self.places.iter().map(entry).collect()
    }
}

fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:,+=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn command(place: &Place, value: &str) -> String {
    let path = word(&place.path().display().to_string());
    match place {
        Place::File(_) => format!("echo {} > {path}", word(value)),
        Place::Commit(_) => format!("mount -o remount,commit={value} {path}"),
        Place::Atime(_) | Place::Discard(_) => format!("mount -o remount,{value} {path}"),
    }
}
