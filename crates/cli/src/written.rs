//! How much a command writes: its first line says it, and `--max-written` limits it.

use crate::failure::Failure;
use crate::output;
use machine::units::{show_capacity, show_size, show_size_rounded, show_span, significant};
use machine::{Allowance, Error, Result, TargetFacts, TargetKind, text::printable};
use measure::{PlannedWrites, Repeats};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use sustained::WearChange;
use workload::Workload;

/// The amount that the runs of a command write, beyond making their targets.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Planned {
    /// As the options of another tool ask.
    #[default]
    AsAsked,
    /// Known before the start, as a range, apart from runs that only time ends.
    Runs(PlannedWrites),
    /// A range from an assumed rate, in a time between these.
    About { bytes: [f64; 2], seconds: [f64; 2], note: String },
    /// At most, in a time up to this.
    UpTo { bytes: u64, seconds: f64, note: &'static str },
}

struct State {
    planned: Planned,
    /// Existing data that the command destroys.
    destroys: bool,
    /// Bytes that may be written over the drive's life, given by the user.
    endurance: Option<u64>,
}

static STATE: Mutex<State> =
    Mutex::new(State { planned: Planned::AsAsked, destroys: false, endurance: None });
static TOLD: AtomicBool = AtomicBool::new(false);
static ALLOWANCE: OnceLock<Arc<Allowance>> = OnceLock::new();

const HINT: &str = "raise --max-written, or ask for less";

/// The allowance of this process, made at its first use.
pub(crate) fn allowance() -> Arc<Allowance> {
    let make = || Arc::new(Allowance::new(asked(), Box::new(before)));
    Arc::clone(ALLOWANCE.get_or_init(make))
}

static ASKED: Mutex<Option<u64>> = Mutex::new(None);

fn asked() -> Option<u64> {
    *ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of `--max-written`, before a machine is made.
pub(crate) fn allow(max: Option<u64>) {
    if max.is_some() {
        *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = max;
    }
}

/// Sets the amount that the runs will write, before the targets are opened.
pub(crate) fn plan(planned: Planned) {
    STATE.lock().unwrap_or_else(PoisonError::into_inner).planned = planned;
}

/// The same for workloads.
pub(crate) fn plan_runs<'a>(workloads: impl IntoIterator<Item = &'a Workload>, repeats: Repeats) {
    plan(Planned::Runs(PlannedWrites::of(workloads, repeats)));
}

/// The same for runs, if they write, that only a time ends.
pub(crate) fn plan_for(writes: bool, ns: u64) {
    let timed_ns = if writes { ns } else { 0 };
    plan(Planned::Runs(PlannedWrites { timed_ns, ..PlannedWrites::default() }));
}

/// The endurance that the user gave.
pub(crate) fn endurance(bytes: Option<u64>) {
    STATE.lock().unwrap_or_else(PoisonError::into_inner).endurance = bytes;
}

/// The existing files and devices that the command may overwrite.
pub(crate) fn destroys(destroy: &[PathBuf]) {
    if !destroy.is_empty() {
        STATE.lock().unwrap_or_else(PoisonError::into_inner).destroys = true;
    }
}

/// Whether `--max-written` has ended the runs.
pub(crate) fn is_reached() -> bool {
    ALLOWANCE.get().is_some_and(|allowance| allowance.is_reached())
}

/// A warning about results that the limit cut short.
pub(crate) fn note() -> Option<String> {
    let max = asked().filter(|_| is_reached())?;
    let shown = show_size(max);
    Some(format!(
        "--max-written {shown} was reached: some writes are shorter or were left out; a larger limit shows them"
    ))
}

/// The failure of a command that [`Error::Interrupted`] ended, if not the user but the limit did it.
pub(crate) fn limited() -> Option<Failure> {
    let max = asked().filter(|_| is_reached())?;
    Some(Failure::Run(format!(
        "--max-written {}: reached, so the rest was not measured; {HINT}",
        show_size(max)
    )))
}

/// Before the first byte of the targets.
fn before(targets: &[TargetFacts], fill_bytes: u64) -> Result<()> {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let (planned, destroys, endurance) = (state.planned.clone(), state.destroys, state.endurance);
    drop(state);
    let writes = targets.iter().any(|facts| facts.writable);
    let names: Vec<&str> = targets.iter().map(|facts| facts.name.as_str()).collect();
    if !writes {
        return Ok(());
    }
    refuse(&planned, fill_bytes)?;
    let simulated = targets.iter().all(|facts| facts.kind == TargetKind::Simulated);
    let is_announced = matches!(planned, Planned::About { .. } | Planned::UpTo { .. });
    if simulated && !is_announced {
        return Ok(());
    }
    if planned == Planned::AsAsked && is_silent(destroys) {
        return Ok(());
    }
    if let Some(amount) = amount(&planned, fill_bytes, asked()) {
        let share = share_of_life(&planned, targets, endurance).unwrap_or_default();
        tell(&amount, &names, &share, destroys);
    }
    Ok(())
}

/// Scripts that call another tool expect nothing on standard error.
fn is_silent(destroys: bool) -> bool {
    !destroys && !std::io::stderr().is_terminal()
}

/// The share of the drives' endurance that a long run takes.
fn share_of_life(
    planned: &Planned,
    targets: &[TargetFacts],
    endurance: Option<u64>,
) -> Option<String> {
    let most = match planned {
        Planned::About { bytes: [_, high], .. } => *high,
        Planned::UpTo { bytes, .. } => *bytes as f64,
        Planned::AsAsked | Planned::Runs(_) => return None,
    };
    let most = asked().map_or(most, |max| most.min(max as f64));
    let devices: Vec<String> = targets.iter().flat_map(|facts| facts.devices.clone()).collect();
    let simulated = targets.iter().any(|facts| facts.kind == TargetKind::Simulated);
    let wear = if simulated { Vec::new() } else { host::wear(&devices) };
    let all = WearChange::of(wear.clone(), wear, endurance, None)?;
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

/// Refuses more than `--max-written` allows, if it is known to be more.
fn refuse(planned: &Planned, fill_bytes: u64) -> Result<()> {
    let Some(max) = asked() else { return Ok(()) };
    let least = fill_bytes.saturating_add(match planned {
        Planned::Runs(runs) => runs.least_bytes,
        // Of a time-bound run, the limit takes a part; of these, the command does itself.
        Planned::AsAsked | Planned::About { .. } | Planned::UpTo { .. } => 0,
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

/// How much in words, before and after the place; `None` if nothing is written.
fn amount(planned: &Planned, fill_bytes: u64, max: Option<u64>) -> Option<[String; 2]> {
    let limit = max.map_or(String::new(), |max| format!(", at most {},", show_size(max)));
    let shown = |bytes: u64| show_size_rounded(bytes as f64);
    let mut after = String::new();
    let what = match planned {
        Planned::AsAsked if fill_bytes == 0 => "what the options ask".to_owned(),
        Planned::AsAsked => format!("{}, then what the options ask", shown(fill_bytes)),
        Planned::Runs(runs) => {
            let low = fill_bytes.saturating_add(runs.least_bytes);
            let high = fill_bytes.saturating_add(runs.most_bytes);
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
        Planned::About { bytes, seconds, note } => {
            let [low, high] = bytes.map(show_size_rounded);
            let [shortest, longest] = seconds.map(show_span);
            after = format!(", in {shortest} to {longest} ({note})");
            return Some(match max {
                Some(max) => [format!("up to {} will be written", show_size(max)), after],
                None if low == high => [format!("about {low} will be written"), after],
                None => [format!("{low} to {high} will be written"), after],
            });
        }
        Planned::UpTo { bytes, seconds, note } => {
            after = format!(", in up to {} ({note})", show_span(*seconds));
            return Some([format!("up to {} will be written", show_size(*bytes)), after]);
        }
    };
    Some([format!("{what}{limit} will be written"), after])
}

/// The first line of a command that writes.
fn tell([amount, after]: &[String; 2], names: &[&str], share: &str, destroys: bool) {
    if TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    let names: Vec<String> = names.iter().map(|name| printable(name).to_string()).collect();
    let whose = if destroys { ", whose data are destroyed" } else { "" };
    output::tell(&format!("{amount} to {}{whose}{after}{share}", names.join(", ")));
}

/// The first line and the limit of a command whose files are not opened by a machine.
pub(crate) fn of_files(
    [least_bytes, most_bytes]: [u64; 2],
    directory: &str,
) -> std::result::Result<(), Failure> {
    let known = PlannedWrites { least_bytes, most_bytes, timed_ns: 0 };
    let planned = Planned::Runs(known);
    refuse(&planned, 0)?;
    if let Some(amount) = amount(&planned, 0, asked()) {
        tell(&amount, &[directory], "", false);
    }
    Ok(())
}

/// The same for another tool's command.
pub(crate) fn of_tool(bytes: [u64; 2], directory: &str) -> std::result::Result<(), Failure> {
    let destroys = STATE.lock().unwrap_or_else(PoisonError::into_inner).destroys;
    if !is_silent(destroys) {
        return of_files(bytes, directory);
    }
    let [least_bytes, most_bytes] = bytes;
    Ok(refuse(&Planned::Runs(PlannedWrites { least_bytes, most_bytes, timed_ns: 0 }), 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(least_bytes: u64, most_bytes: u64, timed_ns: u64) -> Planned {
        Planned::Runs(PlannedWrites { least_bytes, most_bytes, timed_ns })
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
