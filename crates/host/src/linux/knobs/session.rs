use super::entry::Entry;
use super::journal::{Journal, JournalError, put_back};
use super::knob::HostKnob;
use crate::linux::facts::Roots;
use machine::{Error, Result};
use std::path::Path;

#[derive(Debug)]
struct Numbered {
    entries: std::ops::Range<usize>,
    resets: Vec<String>,
}

/// Restored when dropped or, after a kill, by the journal.
#[derive(Debug)]
pub struct Session {
    roots: Roots,
    journal: Journal,
    entries: Vec<Entry>,
    knobs: Vec<Numbered>,
    /// The last value seen; `None` if another process changed it.
    now: Vec<Option<String>>,
    ended: bool,
}

impl Session {
    /// Writes the journal for knobs with values to try and those that they reset; sets nothing yet.
    /// Fails if a running program has the journal.
    pub fn begin(
        directory: &Path,
        roots: &Roots,
        knobs: &[(HostKnob, Vec<String>)],
        reported: &mut Vec<String>,
    ) -> std::result::Result<Session, JournalError> {
        let journal = Journal::begin(directory, roots, reported)?;
        let is_tried = |values: &Vec<String>| !values.is_empty();
        let reset: Vec<&String> = knobs
            .iter()
            .filter(|(_, values)| is_tried(values))
            .flat_map(|(knob, _)| &knob.knob.resets)
            .collect();
        let mut entries: Vec<Entry> = Vec::new();
        let mut numbered = Vec::new();
        for (knob, values) in knobs {
            let from = entries.len();
            let is_reset = reset.contains(&&knob.knob.name);
            if is_tried(values) || is_reset {
                // A knob that another one resets may then have any value.
                let of_knob = knob.entries(values).into_iter();
                entries.extend(of_knob.map(|entry| Entry { reset_by_another: is_reset, ..entry }));
            }
            numbered
                .push(Numbered { entries: from..entries.len(), resets: knob.knob.resets.clone() });
        }
        // Refuse an entry that could not be restored after a kill.
        if let Some(why) = entries.iter().find_map(|entry| super::known::check(entry).err()) {
            return Err(JournalError::Value(why));
        }
        if !entries.is_empty() {
            journal.write(roots, &entries)?;
        }
        let now = entries.iter().map(|entry| Some(entry.before.clone())).collect();
        Ok(Session { roots: roots.clone(), journal, entries, knobs: numbered, now, ended: false })
    }

    /// Restores all other knobs. Fails if the kernel refuses or alters a value (then undone), or
    /// another process changed it.
    pub fn set(&mut self, wanted: &[(usize, &str)]) -> Result<()> {
        let is_wanted = |knob: usize| wanted.iter().any(|(one, _)| *one == knob);
        let reset: Vec<String> =
            wanted.iter().flat_map(|(knob, _)| self.knobs[*knob].resets.clone()).collect();
        // Restore first: a scheduler before its parameters, which belong to the scheduler that
        // stays.
        for knob in (0..self.knobs.len()).filter(|&knob| !is_wanted(knob)) {
            for index in self.knobs[knob].entries.clone() {
                // A knob that a wanted knob resets keeps that value.
                if !reset.contains(&self.entries[index].knob) {
                    self.put(index, None)?;
                }
            }
        }
        for &(knob, value) in wanted {
            self.knobs[knob].entries.clone().try_for_each(|index| self.put(index, Some(value)))?;
        }
        Ok(())
    }

    fn put(&mut self, index: usize, value: Option<&str>) -> Result<()> {
        let entry = &self.entries[index];
        let wanted = value.unwrap_or(&entry.before).to_owned();
        let Some(known) = &self.now[index] else {
            // Leave another process's value: runs with it do not measure ours.
            return if value.is_some() {
                Err(self.foreign(index, "another process's value"))
            } else {
                Ok(())
            };
        };
        if *known == wanted && !entry.reset_by_another {
            return Ok(());
        }
        let failed = |error| Error::io("cannot set", entry.place.path())(error);
        let found = entry.place.read(&self.roots).map_err(failed)?;
        if found == wanted {
            self.now[index] = Some(wanted);
            return Ok(());
        }
        if found != *known && !entry.reset_by_another {
            let error = self.foreign(index, &found);
            self.now[index] = None;
            return Err(error);
        }
        let (place, text) = match (&entry.undo, value) {
            (Some((place, before)), None) => (place, before.as_str()),
            _ => (&entry.place, wanted.as_str()),
        };
        place.write(&self.roots, text).map_err(failed)?;
        let now = entry.place.read(&self.roots).map_err(failed)?;
        if now == wanted {
            self.now[index] = Some(wanted);
            return Ok(());
        }
        let what = format!("{} of {}", entry.knob, entry.of);
        // The kernel altered the value, so it is not the one requested, but ours to undo.
        let (place, before) = entry
            .undo
            .as_ref()
            .map_or((&entry.place, &entry.before), |(place, text)| (place, text));
        let undone = place.write(&self.roots, before).and_then(|()| entry.place.read(&self.roots));
        self.now[index] = Some(undone.unwrap_or_else(|_| now.clone()));
        Err(Error::Unsupported(format!("{what}: the kernel changed {wanted} to {now}")))
    }

    fn foreign(&self, index: usize, found: &str) -> Error {
        let entry = &self.entries[index];
        Error::Unsupported(format!(
            "{} of {}: another process set it to {found}; left unchanged",
            entry.knob, entry.of
        ))
    }

    /// Returns sentences about what stays changed.
    pub fn end(mut self) -> Vec<String> {
        self.put_all_back()
    }

    fn put_all_back(&mut self) -> Vec<String> {
        if self.ended {
            return Vec::new();
        }
        self.ended = true;
        let put_back = put_back(&self.roots, &self.entries);
        let mut reported = put_back.reported;
        // Settings that could not be restored stay in the journal for the next command.
        let kept = if put_back.failed.is_empty() {
            self.journal.remove()
        } else {
            self.journal.write(&self.roots, &put_back.failed)
        };
        reported.extend(kept.err().map(|error| error.to_string()));
        reported
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A panic or early return: no caller is left to report to.
        self.put_all_back();
    }
}
