//! What a command writes: its first line says it, and `--max-written` limits it.

use crate::console::Console;
use crate::failure::Failure;
use machine::units::{show_capacity, show_size, show_size_rounded, show_span, significant};
use machine::{Allowance, Error, Result, TargetFacts, TargetKind, text::printable};
use measure::{PlannedWrites, Repeats};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use sustained::WearChange;
use workload::Workload;

/// Excludes the bytes that fill the targets.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Planned {
    /// As many bytes as another tool's options ask for.
    #[default]
    AsAsked,
    /// A range known in advance, apart from runs that only time ends.
    Runs(PlannedWrites),
    /// `bytes` may come from an assumed rate; `seconds` are the shortest and longest time.
    UpTo { bytes: u64, seconds: [f64; 2], note: String },
}

#[derive(Debug, Clone, Default)]
struct State {
    planned: Planned,
    destroys: bool,
    /// Bytes that the drive may take over its life, from the user.
    endurance: Option<u64>,
    max: Option<u64>,
    announced: bool,
}

const HINT: &str = "raise --max-written, or ask for less";

#[derive(Clone)]
pub(crate) struct Writes {
    announcement: Arc<Announcement>,
    /// Created at its first use, after the options were read.
    allowance: Arc<OnceLock<Arc<Allowance>>>,
}

struct Announcement {
    state: Mutex<State>,
    console: Console,
}

impl Writes {
    pub(crate) fn new(console: Console) -> Writes {
        let announcement = Arc::new(Announcement { state: Mutex::default(), console });
        Writes { announcement, allowance: Arc::default() }
    }

    pub(crate) fn allowance(&self) -> Arc<Allowance> {
        let make = || {
            let announcement = Arc::clone(&self.announcement);
            let before = move |targets: &[TargetFacts], fill| announcement.before(targets, fill);
            Arc::new(Allowance::new(self.max(), Box::new(before)))
        };
        Arc::clone(self.allowance.get_or_init(make))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.announcement.state()
    }

    fn max(&self) -> Option<u64> {
        self.state().max
    }

    /// Call before a machine is made.
    pub(crate) fn allow(&self, max: Option<u64>) {
        if max.is_some() {
            self.state().max = max;
        }
    }

    /// Call before the targets are opened.
    pub(crate) fn plan(&self, planned: Planned) {
        self.state().planned = planned;
    }

    pub(crate) fn plan_runs<'a>(
        &self,
        workloads: impl IntoIterator<Item = &'a Workload>,
        repeats: Repeats,
    ) {
        self.plan(Planned::Runs(PlannedWrites::of(workloads, repeats)));
    }

    pub(crate) fn plan_for(&self, writes: bool, ns: u64) {
        let timed_ns = if writes { ns } else { 0 };
        self.plan(Planned::Runs(PlannedWrites { timed_ns, ..PlannedWrites::default() }));
    }

    pub(crate) fn endurance(&self, bytes: Option<u64>) {
        self.state().endurance = bytes;
    }

    pub(crate) fn destroys(&self, destroy: &[PathBuf]) {
        self.state().destroys |= !destroy.is_empty();
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.allowance.get().is_some_and(|allowance| allowance.is_reached())
    }

    fn reached(&self) -> Option<String> {
        self.max().filter(|_| self.is_reached()).map(show_size)
    }

    pub(crate) fn note(&self) -> Option<String> {
        self.reached().map(|max| {
            format!("--max-written {max} was reached: some writes are shorter or were left out; a larger limit shows them")
        })
    }

    /// `None` if the user, not the limit, interrupted the command.
    pub(crate) fn limited(&self) -> Option<Failure> {
        self.reached().map(|max| {
            Failure::Run(format!(
                "--max-written {max}: reached, so the rest was not measured; {HINT}"
            ))
        })
    }

    pub(crate) fn of_files(
        &self,
        [min_bytes, max_bytes]: [u64; 2],
        directory: &str,
    ) -> std::result::Result<(), Failure> {
        let max = self.max();
        let planned = Planned::Runs(PlannedWrites { min_bytes, max_bytes, timed_ns: 0 });
        refuse(&planned, 0, max)?;
        if let Some(amount) = amount(&planned, 0, max) {
            self.announcement.announce(&amount, &[directory], "", false);
        }
        Ok(())
    }

    pub(crate) fn of_tool(
        &self,
        bytes: [u64; 2],
        directory: &str,
    ) -> std::result::Result<(), Failure> {
        let State { destroys, max, .. } = self.state().clone();
        if !is_silent(destroys) {
            return self.of_files(bytes, directory);
        }
        let [min_bytes, max_bytes] = bytes;
        let planned = Planned::Runs(PlannedWrites { min_bytes, max_bytes, timed_ns: 0 });
        Ok(refuse(&planned, 0, max)?)
    }
}

impl Announcement {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn before(&self, targets: &[TargetFacts], fill_bytes: u64) -> Result<()> {
        if !targets.iter().any(|facts| facts.writable) {
            return Ok(());
        }
        let state = self.state().clone();
        let planned = &state.planned;
        refuse(planned, fill_bytes, state.max)?;
        let simulated = targets.iter().all(|facts| facts.kind == TargetKind::Simulated);
        let is_announced = matches!(planned, Planned::UpTo { .. });
        if simulated && !is_announced {
            return Ok(());
        }
        if *planned == Planned::AsAsked && is_silent(state.destroys) {
            return Ok(());
        }
        if let Some(amount) = amount(planned, fill_bytes, state.max) {
            let names: Vec<&str> = targets.iter().map(|facts| facts.name.as_str()).collect();
            let share = share_of_life(&state, targets).unwrap_or_default();
            self.announce(&amount, &names, &share, state.destroys);
        }
        Ok(())
    }

    fn announce(&self, [amount, after]: &[String; 2], names: &[&str], share: &str, destroys: bool) {
        if std::mem::replace(&mut self.state().announced, true) {
            return;
        }
        let names: Vec<String> = names.iter().map(|name| printable(name).to_string()).collect();
        let whose = if destroys { ", whose data are destroyed" } else { "" };
        self.console.tell(&format!("{amount} to {}{whose}{after}{share}", names.join(", ")));
    }
}

/// Scripts that call another tool expect nothing on standard error.
fn is_silent(destroys: bool) -> bool {
    !destroys && !std::io::stderr().is_terminal()
}

fn share_of_life(state: &State, targets: &[TargetFacts]) -> Option<String> {
    let most = match &state.planned {
        Planned::UpTo { bytes, .. } => *bytes as f64,
        Planned::AsAsked | Planned::Runs(_) => return None,
    };
    let most = state.max.map_or(most, |max| most.min(max as f64));
    let devices: Vec<String> = targets.iter().flat_map(|facts| facts.devices.clone()).collect();
    let simulated = targets.iter().any(|facts| facts.kind == TargetKind::Simulated);
    let wear = if simulated { Vec::new() } else { host::wear(&devices) };
    let all = WearChange::of(wear.clone(), wear, state.endurance, None)?;
    let used: Vec<String> =
        all.before.iter().filter_map(|one| Some(format!("{:.0} %", one.used_percent?))).collect();
    let used = if used.is_empty() {
        String::new()
    } else {
        format!(", of which {} are used", used.join(" and "))
    };
    let whole = all.endurance_bytes.map(|bytes| {
        let percent = significant(100.0 * most / bytes, 2);
        format!(": up to {percent} % of the endurance of {}", show_capacity(bytes))
    });
    match whole {
        Some(whole) => Some(whole + &used),
        None if used.is_empty() => None,
        None => Some(format!("; the endurance is not known{used}")),
    }
}

fn refuse(planned: &Planned, fill_bytes: u64, max: Option<u64>) -> Result<()> {
    let Some(max) = max else { return Ok(()) };
    let least = fill_bytes.saturating_add(match planned {
        Planned::Runs(runs) => runs.min_bytes,
        // Of a time-bound run, the limit takes a part; of these, the command does itself.
        Planned::AsAsked | Planned::UpTo { .. } => 0,
    });
    if least <= max {
        return Ok(());
    }
    Err(Error::refused(
        format!("--max-written {}", show_size(max)),
        format!("the command writes {} or more", show_size_rounded(least as f64)),
        HINT,
    ))
}

/// The words before and after the place; `None` if nothing is written.
fn amount(planned: &Planned, fill_bytes: u64, max: Option<u64>) -> Option<[String; 2]> {
    let limit = max.map_or(String::new(), |max| format!(", at most {},", show_size(max)));
    let shown = |bytes: u64| show_size_rounded(bytes as f64);
    let mut after = String::new();
    let what = match planned {
        Planned::AsAsked if fill_bytes == 0 => "what the options ask for".to_owned(),
        Planned::AsAsked => format!("{}, then what the options ask for", shown(fill_bytes)),
        Planned::Runs(runs) => {
            let low = fill_bytes.saturating_add(runs.min_bytes);
            let high = fill_bytes.saturating_add(runs.max_bytes);
            let known =
                if low == high { shown(low) } else { format!("{} to {}", shown(low), shown(high)) };
            match runs.timed_ns {
                0 if high == 0 => return None,
                0 => known,
                ns => {
                    let time = show_span(ns as f64 * 1e-9);
                    let first = if high > 0 { format!("{known}, then ") } else { String::new() };
                    format!("{first}all that fits into {time} of runs")
                }
            }
        }
        Planned::UpTo { bytes, seconds: [shortest, longest], note } => {
            let shortest = if *shortest > 0.0 { show_span(*shortest) } else { "up".to_owned() };
            after = format!(", in {shortest} to {} ({note})", show_span(*longest));
            let most = max.filter(|max| max <= bytes).map_or_else(|| shown(*bytes), show_size);
            return Some([format!("up to {most} will be written"), after]);
        }
    };
    Some([format!("{what}{limit} will be written"), after])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(min_bytes: u64, max_bytes: u64, timed_ns: u64) -> Planned {
        Planned::Runs(PlannedWrites { min_bytes, max_bytes, timed_ns })
    }

    #[test]
    fn the_amount_is_in_bytes_or_by_time() {
        let gib = 1 << 30;
        let said = |planned: Planned, fill, max| {
            amount(&planned, fill, max).map_or(String::new(), |words| words.concat())
        };
        assert_eq!(said(runs(gib, gib, 0), 0, None), "1.00 GiB will be written");
        assert_eq!(said(runs(gib, gib, 0), gib, None), "2.00 GiB will be written");
        assert_eq!(said(runs(gib, 3 * gib, 0), 0, None), "1.00 GiB to 3.00 GiB will be written");
        assert_eq!(
            said(runs(0, 0, 15_000_000_000), gib, Some(2 * gib)),
            "1.00 GiB, then all that fits into 15 s of runs, at most 2 GiB, will be written"
        );
        assert_eq!(said(runs(0, 0, 0), 0, None), "", "a command that only reads says nothing");
    }
}
