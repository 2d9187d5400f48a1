//! `ioscheduler`: jobs' schedulers, restored afterwards.

use crate::failure::Failure;
use dialect::fio::{Arrangement, Job, Plan};
use host::facts::Roots;
use host::knobs::journal::{JournalError, state_directory};
use host::knobs::{HostKnob, Session};
use machine::Machine;
use machine::text::printable;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A device's number in the session, and its scheduler.
type Wanted = (usize, String);

pub(super) struct Schedulers {
    /// `None` if each device has the right scheduler already.
    session: Option<Session>,
    wanted: Vec<Vec<Wanted>>,
    next: usize,
    warnings: Vec<String>,
}

impl Schedulers {
    pub(super) fn new<M: Machine>(
        machine: &M,
        plan: &Plan,
        arrangement: &Arrangement,
    ) -> Result<Schedulers, Failure> {
        let mut devices = Devices::default();
        let mut wanted: Vec<Vec<Wanted>> = vec![Vec::new(); plan.groups.len()];
        let mut warnings = Vec::new();
        for clone in &arrangement.clones {
            let (group, job) = clone.job;
            let job = &plan.groups[group][job];
            let Some(name) = &job.options.scheduler else { continue };
            if machine.facts().simulated {
                return Err(wrong(job, "a simulated machine has none; leave it out"));
            }
            for &file in &clone.files {
                let path = &arrangement.files[file].path;
                let Some(device) = devices.of(path)? else {
                    let why = format!(
                        "{}: ioscheduler={}: {} has no device with a scheduler, so nothing was set",
                        job.shown(),
                        printable(name),
                        path.display()
                    );
                    if !warnings.contains(&why) {
                        warnings.push(why);
                    }
                    continue;
                };
                let known = wanted[group].iter().find(|(one, _)| *one == device);
                match known {
                    Some((_, other)) if other != name => {
                        let why = format!(
                            "another job sets {} on the same device at the same time; write stonewall, or the same scheduler",
                            printable(other)
                        );
                        return Err(wrong(job, &why));
                    }
                    Some(_) => {}
                    None => {
                        devices.check(device, job, name)?;
                        wanted[group].push((device, name.clone()));
                    }
                }
            }
        }
        let session = devices.session(&wanted, &mut warnings)?;
        Ok(Schedulers { session, wanted, next: 0, warnings })
    }

    pub(super) fn set_next(&mut self) -> machine::Result<()> {
        let wanted = self.wanted.get(self.next).map_or(&[][..], Vec::as_slice);
        self.next += 1;
        let Some(session) = &mut self.session else { return Ok(()) };
        let wanted: Vec<(usize, &str)> =
            wanted.iter().map(|(device, name)| (*device, name.as_str())).collect();
        session.set(&wanted)
    }

    pub(super) fn end(self) -> Vec<String> {
        let mut warnings = self.warnings;
        warnings.extend(self.session.map(Session::end).unwrap_or_default());
        warnings
    }
}

fn wrong(job: &Job, why: &str) -> Failure {
    let name = job.options.scheduler.as_deref().unwrap_or_default();
    job.wrong(format!("ioscheduler={}: {why}", printable(name))).into()
}

#[derive(Default)]
struct Devices {
    knobs: Vec<HostKnob>,
    known: HashMap<PathBuf, Option<usize>>,
}

impl Devices {
    fn of(&mut self, path: &Path) -> Result<Option<usize>, Failure> {
        let here = Path::new(".");
        let there = path
            .ancestors()
            .map(|up| if up.as_os_str().is_empty() { here } else { up })
            .find(|up| up.exists())
            .unwrap_or(here);
        if let Some(device) = self.known.get(there) {
            return Ok(*device);
        }
        let found = host::knobs::find(&Roots::default(), &[there])?;
        let found = found.into_iter().find(|knob| knob.knob.name == "scheduler");
        let device = found.and_then(|mut knob| {
            // As in fio, only the device that holds the file, not those below it.
            knob.places.truncate(1);
            let (place, _) = knob.places.first()?;
            let same = |other: &HostKnob| other.places[0].0.path() == place.path();
            let known = self.knobs.iter().position(same);
            Some(known.unwrap_or_else(|| {
                self.knobs.push(knob);
                self.knobs.len() - 1
            }))
        });
        self.known.insert(there.to_path_buf(), device);
        Ok(device)
    }

    fn check(&self, device: usize, job: &Job, name: &str) -> Result<(), Failure> {
        let HostKnob { knob, places, .. } = &self.knobs[device];
        let (place, present) = &places[0];
        if present == name {
            return Ok(());
        }
        let others = knob.alternatives.iter().map(|other| other.value.as_str());
        let names: Vec<&str> = std::iter::once(present.as_str()).chain(others).collect();
        if !names.contains(&name) {
            let why = format!("{} offers {}", place.path().display(), names.join(", "));
            return Err(wrong(job, &why));
        }
        if !host::knobs::may_set() {
            let why = format!(
                "only root can set {}, which is {present} now; leave it out, or start halfpower as root",
                place.path().display()
            );
            return Err(wrong(job, &why));
        }
        Ok(())
    }

    fn session(
        self,
        wanted: &[Vec<Wanted>],
        warnings: &mut Vec<String>,
    ) -> Result<Option<Session>, Failure> {
        let with_values = |(device, knob): (usize, HostKnob)| {
            let wanted = wanted.iter().flatten().filter(|(one, _)| *one == device);
            let mut values: Vec<String> = wanted.map(|(_, name)| name.clone()).collect();
            values.sort();
            values.dedup();
            (knob, values)
        };
        let tried: Vec<(HostKnob, Vec<String>)> =
            self.knobs.into_iter().enumerate().map(with_values).collect();
        let changes = |(knob, values): &(HostKnob, Vec<String>)| {
            values.iter().any(|value| *value != knob.places[0].1)
        };
        if !tried.iter().any(changes) {
            return Ok(None);
        }
        let directory = state_directory().ok_or(JournalError::NoPlace)?;
        Ok(Some(Session::begin(&directory, &Roots::default(), &tried, warnings)?))
    }
}
