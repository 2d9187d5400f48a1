//! The same requests as a log for fio, or a similar job.

use super::script::{Act, Class, OpKind, Script, Step};
use crate::profile::Role;
use apptrace::foreign::fio_log::{Action, Entry, text};
use machine::{Op, Stability};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A log for `read_iolog` with the recorded times; one job keeps the order of all threads.
pub fn fio_log(script: &Script) -> String {
    let mut entries: Vec<Entry> = Vec::new();
    for step in script.threads.iter().flat_map(|thread| &thread.steps) {
        let action = match step.act {
            Act::Move(op) => Action::Request(op),
            Act::Sync(what) => Action::Sync(what),
            Act::Discard => Action::Trim,
        };
        let (offset, len) = (step.offset, step.bytes);
        entries.push(Entry { at_ns: step.at_ns, action, file: step.file, offset, len });
    }
    entries.sort_by_key(|entry| entry.at_ns);
    // fio ends a name at the first space.
    let names: Vec<String> = script
        .files
        .iter()
        .map(|file| file.name.replace(|c: char| c.is_whitespace() || c.is_control(), "_"))
        .collect();
    text(&names.iter().map(String::as_str).collect::<Vec<_>>(), &entries)
}

#[derive(Default)]
struct Shape {
    sizes: BTreeMap<u32, u64>,
    reads: u64,
    moves: u64,
    continued: u64,
    syncs: [u64; 2],
    direct: u64,
    dsync: u64,
}

const MAX_SIZES: usize = 8;
const SEQUENTIAL_SHARE: f64 = 0.5;

fn shapes(script: &Script) -> BTreeMap<Role, Shape> {
    let mut all: BTreeMap<Role, Shape> = BTreeMap::new();
    for thread in &script.threads {
        let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
        for step in &thread.steps {
            let shape = all.entry(script.files[step.file as usize].role).or_default();
            add(shape, step, &mut ends);
        }
    }
    all
}

fn add(shape: &mut Shape, step: &Step, ends: &mut BTreeMap<u32, u64>) {
    match step.act {
        Act::Move(op) => {
            *shape.sizes.entry(step.bytes).or_default() += 1;
            shape.moves += 1;
            shape.reads += u64::from(op == Op::Read);
            let end = step.offset + u64::from(step.bytes);
            shape.continued += u64::from(ends.insert(step.file, end) == Some(step.offset));
            shape.direct += u64::from(step.direct);
            shape.dsync += u64::from(step.dsync);
        }
        Act::Sync(Stability::Data) => shape.syncs[1] += 1,
        Act::Sync(_) => shape.syncs[0] += 1,
        Act::Discard => {}
    }
}

/// A similar job for the logs and one for the data: sizes, mix, order, syncs, rate and mean depth.
pub fn fio_job(script: &Script) -> String {
    let elapsed_s = (script.recorded_ns as f64 * 1e-9).max(1e-9);
    // Writing to a String cannot fail.
    let mut job = format!(
        "; resembles {} requests recorded in {elapsed_s:.3} s\n[global]\ntime_based=1\nruntime={:.0}\n",
        script.requests,
        elapsed_s.ceil()
    );
    for (role, shape) in shapes(script) {
        if shape.moves == 0 {
            continue;
        }
        let name = role.name();
        let bytes: u64 =
            script.files.iter().filter(|file| file.role == role).map(|file| file.bytes).sum();
        let sequential = shape.continued as f64 >= SEQUENTIAL_SHARE * shape.moves as f64;
        let kind = match (shape.reads, sequential) {
            (0, true) => "write",
            (0, false) => "randwrite",
            (reads, true) if reads == shape.moves => "read",
            (reads, false) if reads == shape.moves => "randread",
            (_, true) => "rw",
            (_, false) => "randrw",
        };
        let _ = write!(job, "\n[{name}]\nrw={kind}\nsize={bytes}\n");
        if kind.ends_with("rw") {
            let share = shape.reads as f64 / shape.moves as f64 * 100.0;
            let _ = writeln!(job, "rwmixread={share:.0}");
        }
        let _ = writeln!(job, "{}", sizes(&shape));
        let most = |count: u64| u8::from(2 * count > shape.moves);
        let _ = writeln!(job, "direct={}", most(shape.direct));
        if most(shape.dsync) == 1 {
            let _ = writeln!(job, "sync=dsync");
        }
        let writes = shape.moves - shape.reads;
        for (option, syncs) in ["fsync", "fdatasync"].iter().zip(shape.syncs) {
            if syncs > 0 && writes > 0 {
                let every = (writes as f64 / syncs as f64).round().max(1.0);
                let _ = writeln!(job, "{option}={every:.0}");
            }
        }
        let depth = outstanding(script, role, elapsed_s).round().max(1.0);
        let engine = if depth > 1.0 { "io_uring" } else { "psync" };
        let rate = shape.moves as f64 / elapsed_s;
        let _ = writeln!(job, "ioengine={engine}\niodepth={depth:.0}");
        // A rate limit counts reads and writes apart.
        let part = |count: u64| (count as f64 / elapsed_s).ceil().max(1.0);
        if kind.ends_with("rw") {
            let _ = writeln!(job, "rate_iops={:.0},{:.0}", part(shape.reads), part(writes));
        } else {
            let _ = writeln!(job, "rate_iops={:.0}", rate.ceil().max(1.0));
        }
    }
    job
}

fn sizes(shape: &Shape) -> String {
    let mut sizes: Vec<(u32, u64)> =
        shape.sizes.iter().map(|(&size, &count)| (size, count)).collect();
    sizes.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    sizes.truncate(MAX_SIZES);
    let kept: u64 = sizes.iter().map(|(_, count)| count).sum();
    let shares: Vec<(u32, u64)> = sizes
        .iter()
        .map(|&(size, count)| (size, (count * 100 + kept / 2) / kept))
        .filter(|&(_, share)| share > 0)
        .collect();
    match shares.as_slice() {
        [] => format!("bs={}", sizes[0].0),
        [(size, _)] => format!("bs={size}"),
        [(first, _), rest @ ..] => {
            // The shares of a split add up to 100.
            let others: u64 = rest.iter().map(|(_, share)| share).sum();
            let first = format!("{first}/{}", 100_u64.saturating_sub(others));
            let rest = rest.iter().map(|(size, share)| format!("{size}/{share}"));
            format!("bssplit={}", std::iter::once(first).chain(rest).collect::<Vec<_>>().join(":"))
        }
    }
}

/// By Little's law.
fn outstanding(script: &Script, role: Role, elapsed_s: f64) -> f64 {
    let moves =
        |class: &Class| class.role == role && matches!(class.op, OpKind::Read | OpKind::Write);
    let ns: u64 =
        script.classes.iter().filter(|(class, _)| moves(class)).map(|(_, times)| times.sum()).sum();
    ns as f64 * 1e-9 / elapsed_s
}
