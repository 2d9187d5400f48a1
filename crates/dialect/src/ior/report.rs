//! IOR's report: text, JSON and CSV.

use super::options::{Options, Tests};
use super::result::{Direction, IorResult, Phase, TestResult, mean_and_deviation};
use super::run::{Surroundings, directory_of};
use crate::calendar::ctime;
use crate::tasks::{SpaceWords, seconds};
use machine::units::{GIB, KIB, MIB};
use serde_json::{Value, json};
use std::fmt::Write;

/// Of the language and report.
const VERSION: &str = "4.0.0";

fn size(bytes: u64) -> String {
    let in_unit = |unit: u64, name: &str| {
        if bytes.is_multiple_of(unit) {
            format!("{} {name}", bytes / unit)
        } else {
            format!("{:.2} {name}", bytes as f64 / unit as f64)
        }
    };
    match bytes {
        0..MIB => format!("{bytes} bytes"),
        MIB..GIB => in_unit(MIB, "MiB"),
        GIB.. if bytes < GIB << 10 => in_unit(GIB, "GiB"),
        _ => in_unit(GIB << 10, "TiB"),
    }
}

pub(super) fn head(tests: &Tests, around: &Surroundings<'_>) -> String {
    format!(
        "IOR-{VERSION}: MPI Coordinated Test of Parallel I/O (halfpower {})\n\
         Began               : {}\nCommand line        : {}\nMachine             : {}\n",
        env!("CARGO_PKG_VERSION"),
        ctime((around.now)()),
        tests.command,
        around.machine,
    )
}

fn test_files(options: &Options) -> String {
    let names = options.test_files.iter().map(|file| file.display().to_string());
    names.collect::<Vec<_>>().join("@")
}

fn options(test: &TestResult, options: &Options) -> Vec<(&'static str, Value)> {
    let each = test.block_bytes.saturating_mul(test.segments);
    let inter = match (options.reorder_random, options.reorder) {
        (true, _) => "random task offsets",
        (false, true) => "constant task offset",
        (false, false) => "no tasks offsets",
    };
    let mut all = vec![
        ("api", json!("POSIX")),
        ("apiVersion", json!("")),
        ("test filename", json!(test_files(options))),
        ("access", json!(if options.per_task { "file-per-process" } else { "single-shared-file" })),
        ("type", json!("independent")),
        ("segments", json!(test.segments)),
        ("ordering in a file", json!(if options.random { "random" } else { "sequential" })),
        ("ordering inter file", json!(inter)),
    ];
    if options.reorder || options.reorder_random {
        all.push(("task offset", json!(options.task_offset)));
    }
    all.extend([
        ("nodes", json!(test.hosts)),
        ("tasks", json!(test.tasks)),
        ("clients per node", json!(test.tasks_per_host)),
        ("repetitions", json!(options.repetitions)),
        ("xfersize", json!(size(test.transfer_bytes))),
        ("blocksize", json!(size(test.block_bytes))),
        ("aggregate filesize", json!(size(each.saturating_mul(test.tasks.into())))),
    ]);
    if let Some(deadline) = options.deadline_s {
        all.push(("stonewallingTime", json!(deadline)));
        all.push(("stoneWallingWearOut", json!(u8::from(options.wear_out))));
    }
    all
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn test(
    number: usize,
    result: &TestResult,
    given: &Options,
    around: &Surroundings<'_>,
) -> String {
    let mut text = format!(
        "TestID              : {number}\nStartTime           : {}\nPath                : {}\n",
        ctime((around.now)()),
        given.file(0, 0).display(),
    );
    let space = (around.space)(directory_of(&given.test_files[0]));
    text.extend(space.map(|space| SpaceWords::of(space).line()));
    text += "\nOptions: \n";
    for (name, value) in options(result, given) {
        let _ = writeln!(text, "{name:<20}: {}", shown(&value));
    }
    text += "\nResults: \n\n";
    text += "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n";
    text += "------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----\n";
    text
}

fn number(value: f64) -> String {
    let text = match value {
        value if value >= 1e6 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.6}"),
    };
    format!("{text:<10}")
}

pub(super) fn row(phase: &Phase, options: &Options) -> String {
    let mean_s = phase.latency.mean_ns / 1e9;
    let columns = [
        phase.mib_per_s(),
        phase.iops(),
        mean_s,
        options.block_bytes as f64 / KIB as f64,
        options.transfer_bytes as f64 / KIB as f64,
        seconds(phase.open_ns),
        seconds(phase.transfer_ns),
        seconds(phase.close_ns),
        seconds(phase.total_ns),
    ];
    let mut text = format!("{:<9}", phase.direction.name());
    for (place, column) in columns.into_iter().enumerate() {
        let gap = if place == 2 { "  " } else { " " };
        let _ = write!(text, "{}{gap}", number(column));
    }
    let _ = writeln!(text, "{:<4}", phase.repetition);
    if let Some(wall) = &phase.stonewall {
        let _ = writeln!(
            text,
            "stonewalling pairs accessed min: {} max: {} -- min data: {:.1} GiB mean data: {:.1} GiB time: {:.1}s",
            wall.fewest,
            wall.most,
            (wall.fewest * options.transfer_bytes) as f64 / GIB as f64,
            wall.bytes as f64 / phase.by_task.len().max(1) as f64 / GIB as f64,
            seconds(wall.after_ns)
        );
    }
    if options.verbose > 1 {
        for task in &phase.by_task {
            let _ = writeln!(
                text,
                "task {:<6} {:<20} {:.2} MiB/s, began {:.6} s after the first",
                task.task,
                task.host,
                task.bytes as f64 / MIB as f64 / seconds(task.total_ns.max(1)),
                seconds(task.began_late_ns)
            );
        }
    }
    text
}

struct Summary<'r> {
    direction: Direction,
    test: &'r TestResult,
    number: usize,
    /// In MiB/s, by repetition.
    rates: Vec<f64>,
    operations: Vec<f64>,
    times: Vec<f64>,
    /// Means of repetitions that a deadline ended.
    stonewall: Option<(f64, f64)>,
}

fn summaries(result: &IorResult) -> Vec<Summary<'_>> {
    let of = |(number, test)| {
        let summary = move |direction: Direction| {
            let phases: Vec<&Phase> = TestResult::of(test, direction).collect();
            let walls: Vec<(f64, f64)> = (phases.iter())
                .filter_map(|phase| phase.stonewall)
                .map(|wall| (seconds(wall.after_ns), wall.bytes as f64 / MIB as f64))
                .collect();
            let mean =
                |of: fn(&(f64, f64)) -> f64| walls.iter().map(of).sum::<f64>() / walls.len() as f64;
            (!phases.is_empty()).then(|| Summary {
                direction,
                test,
                number,
                rates: phases.iter().map(|phase| phase.mib_per_s()).collect(),
                operations: phases
                    .iter()
                    .map(|phase| phase.transfers as f64 / seconds(phase.total_ns.max(1)))
                    .collect(),
                times: phases.iter().map(|phase| seconds(phase.total_ns)).collect(),
                stonewall: (!walls.is_empty()).then(|| (mean(|wall| wall.0), mean(|wall| wall.1))),
            })
        };
        [Direction::Write, Direction::Read].into_iter().filter_map(summary)
    };
    result.tests.iter().enumerate().flat_map(of).collect()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

impl Summary<'_> {
    fn columns(&self) -> Vec<(&'static str, String)> {
        let (test, options) = (self.test, &self.test.options);
        let two = |value: f64| format!("{value:.2}");
        let (mean, deviation) = mean_and_deviation(&self.rates);
        let (mean_ops, deviation_ops) = mean_and_deviation(&self.operations);
        let (mean_s, _) = mean_and_deviation(&self.times);
        let wall =
            |of: fn((f64, f64)) -> f64| self.stonewall.map_or("NA".into(), |one| two(of(one)));
        let flag = |on: bool| u8::from(on).to_string();
        let all = test.block_bytes.saturating_mul(test.segments).saturating_mul(test.tasks.into());
        vec![
            ("Operation", self.direction.name().into()),
            ("Max(MiB)", two(most(&self.rates))),
            ("Min(MiB)", two(least(&self.rates))),
            ("Mean(MiB)", two(mean)),
            ("StdDev", two(deviation)),
            ("Max(OPs)", two(most(&self.operations))),
            ("Min(OPs)", two(least(&self.operations))),
            ("Mean(OPs)", two(mean_ops)),
            ("StdDev", two(deviation_ops)),
            ("Mean(s)", format!("{mean_s:.5}")),
            ("Stonewall(s)", wall(|wall| wall.0)),
            ("Stonewall(MiB)", wall(|wall| wall.1)),
            ("Test#", self.number.to_string()),
            ("#Tasks", test.tasks.to_string()),
            ("tPN", test.tasks_per_host.to_string()),
            ("reps", options.repetitions.to_string()),
            ("fPP", flag(options.per_task)),
            ("reord", flag(options.reorder)),
            ("reordoff", options.task_offset.to_string()),
            ("reordrand", flag(options.reorder_random)),
            ("seed", options.reorder_seed.to_string()),
            ("segcnt", test.segments.to_string()),
            ("blksiz", test.block_bytes.to_string()),
            ("xsize", test.transfer_bytes.to_string()),
            ("aggs(MiB)", format!("{:.1}", all as f64 / MIB as f64)),
            ("API", "POSIX".into()),
            ("RefNum", options.reference.to_string()),
        ]
    }

    fn json(&self) -> Value {
        let (test, options) = (self.test, &self.test.options);
        let (mean, deviation) = mean_and_deviation(&self.rates);
        let (mean_ops, deviation_ops) = mean_and_deviation(&self.operations);
        let (mean_s, _) = mean_and_deviation(&self.times);
        let mut value = json!({
            "operation": self.direction.name(),
            "API": "POSIX",
            "TestID": self.number,
            "ReferenceNumber": options.reference,
            "segmentCount": test.segments,
            "blockSize": test.block_bytes,
            "transferSize": test.transfer_bytes,
            "numTasks": test.tasks,
            "tasksPerNode": test.tasks_per_host,
            "repetitions": options.repetitions,
            "filePerProc": u8::from(options.per_task),
            "reorderTasks": u8::from(options.reorder),
            "taskPerNodeOffset": options.task_offset,
            "reorderTasksRandom": u8::from(options.reorder_random),
            "reorderTasksRandomSeed": options.reorder_seed,
            "bwMaxMIB": most(&self.rates),
            "bwMinMIB": least(&self.rates),
            "bwMeanMIB": mean,
            "bwStdMIB": deviation,
            "OPsMax": most(&self.operations),
            "OPsMin": least(&self.operations),
            "OPsMean": mean_ops,
            "OPsSD": deviation_ops,
            "MeanTime": mean_s,
            "xsizeMiB": test.block_bytes.saturating_mul(test.segments) as f64 * f64::from(test.tasks) / MIB as f64,
        });
        if let (Some((after_s, mib)), Some(map)) = (self.stonewall, value.as_object_mut()) {
            map.insert("StoneWallTime".into(), json!(after_s));
            map.insert("StoneWallbwMeanMIB".into(), json!(mib / after_s.max(1e-9)));
        }
        value
    }
}

fn table(rows: &[Vec<(&'static str, String)>]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let widths: Vec<usize> = (0..first.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].1.len());
            cells.max().unwrap_or(0).max(first[column].0.len())
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(place, (cell, &width))| {
            if place == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        padded.collect::<Vec<_>>().join(" ") + "\n"
    };
    let mut text = line(first.iter().map(|(name, _)| *name).collect());
    text.extend(rows.iter().map(|row| line(row.iter().map(|(_, cell)| cell.as_str()).collect())));
    text
}

pub(super) fn end(result: &IorResult, now: u64) -> String {
    let mut text = String::new();
    let summaries = summaries(result);
    for (direction, name) in [(Direction::Write, "Max Write"), (Direction::Read, "Max Read")] {
        let of = summaries.iter().filter(|one| one.direction == direction);
        let best = of.map(|one| most(&one.rates)).fold(0.0, f64::max);
        if best > 0.0 {
            let decimal = best * MIB as f64 / 1e6;
            let _ = write!(text, "\n{name}: {best:.2} MiB/sec ({decimal:.2} MB/sec)");
        }
    }
    if !text.is_empty() {
        text += "\n";
    }
    let rows: Vec<_> = summaries.iter().map(Summary::columns).collect();
    text += "\nSummary of all tests:\n";
    text += &table(&rows);
    let checked = result.tests.iter().any(|test| test.wrong_transfers.is_some());
    if checked {
        let _ = writeln!(text, "\nTransfers with wrong data: {}", result.wrong_transfers());
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "WARNING: {warning}");
    }
    let _ = writeln!(text, "Finished            : {}", ctime(now));
    text
}

fn phase_json(phase: &Phase, options: &Options) -> Value {
    let mut value = json!({
        "access": phase.direction.name(),
        "bwMiB": phase.mib_per_s(),
        "blockKiB": options.block_bytes as f64 / KIB as f64,
        "xferKiB": options.transfer_bytes as f64 / KIB as f64,
        "iops": phase.iops(),
        "latency": phase.latency.mean_ns / 1e9,
        "openTime": seconds(phase.open_ns),
        "wrRdTime": seconds(phase.transfer_ns),
        "closeTime": seconds(phase.close_ns),
        "totalTime": seconds(phase.total_ns),
    });
    if let (Some(wall), Some(map)) = (&phase.stonewall, value.as_object_mut()) {
        map.insert("StoneWallTime".into(), json!(seconds(wall.after_ns)));
        map.insert("StoneWallMinPairs".into(), json!(wall.fewest));
        map.insert("StoneWallMaxPairs".into(), json!(wall.most));
    }
    value
}

/// Includes IOR's defaults for what halfpower refuses.
fn parameters(number: usize, test: &TestResult, around: &Surroundings<'_>) -> Value {
    let given = &test.options;
    let flag = |set: bool| json!(u8::from(set));
    let (system, name) = around.machine.split_once(' ').unwrap_or((&around.machine, ""));
    let all = [
        ("testID", json!(number)),
        ("refnum", json!(given.reference)),
        ("api", json!("POSIX")),
        ("platform", json!(format!("{name}({system})"))),
        ("testFileName", json!(test_files(given))),
        ("deadlineForStonewall", json!(given.deadline_s.unwrap_or(0))),
        ("stoneWallingWearOut", flag(given.wear_out)),
        ("maxTimeDuration", json!(given.max_minutes)),
        ("outlierThreshold", json!(given.outlier_s)),
        ("options", json!("(null)")),
        ("dryRun", flag(given.dry_run)),
        ("nodes", json!(test.hosts)),
        ("memoryPerTask", json!(0)),
        ("memoryPerNode", json!(0)),
        ("tasksPerNode", json!(test.tasks_per_host)),
        ("repetitions", json!(given.repetitions)),
        ("multiFile", flag(given.multi_file)),
        ("interTestDelay", json!(given.delay_s)),
        ("fsync", flag(given.fsync)),
        ("fsyncperwrite", flag(given.fsync_each)),
        ("useExistingTestFile", flag(given.existing)),
        ("uniqueDir", flag(given.unique_directory)),
        ("singleXferAttempt", json!(0)),
        ("readFile", flag(given.read)),
        ("writeFile", flag(given.write)),
        ("filePerProc", flag(given.per_task)),
        ("reorderTasks", flag(given.reorder)),
        ("reorderTasksRandom", flag(given.reorder_random)),
        ("reorderTasksRandomSeed", json!(given.reorder_seed)),
        ("randomOffset", flag(given.random)),
        ("checkWrite", flag(given.check_write)),
        ("checkRead", flag(given.check_read)),
        ("dataPacketType", json!(0)),
        ("keepFile", flag(given.keep)),
        ("keepFileWithError", flag(given.keep_with_error)),
        ("warningAsErrors", json!(0)),
        ("verbose", json!(given.verbose)),
        ("data packet type", json!("g")),
        ("setTimeStampSignature/incompressibleSeed", json!(given.signature.unwrap_or(0))),
        ("collective", json!(0)),
        ("segmentCount", json!(test.segments)),
        ("transferSize", json!(test.transfer_bytes)),
        ("blockSize", json!(test.block_bytes)),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(super) fn json(tests: &Tests, result: &IorResult, around: &Surroundings<'_>) -> String {
    let of = |(number, test): (usize, &TestResult)| {
        let given: serde_json::Map<String, Value> = options(test, &test.options)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let phases = test.phases.iter().map(|phase| phase_json(phase, &test.options));
        let mut value = json!({
            "TestID": number,
            "StartTime": ctime(test.began_unix_s),
            "Path": test.options.file(0, 0).display().to_string(),
            "Parameters": parameters(number, test, around),
            "Options": given,
            "Results": phases.collect::<Vec<_>>(),
        });
        let space = (around.space)(directory_of(&test.options.test_files[0])).map(SpaceWords::of);
        if let (Some(space), Some(map)) = (space, value.as_object_mut()) {
            map.insert("Capacity".into(), json!(space.capacity));
            map.insert("Used Capacity".into(), json!(space.used));
            map.insert("Inodes".into(), json!(space.inodes));
            map.insert("Used Inodes".into(), json!(space.used_inodes));
        }
        value
    };
    let value = json!({
        "Version": VERSION,
        "Began": ctime(result.tests.first().map_or_else(|| (around.now)(), |test| test.began_unix_s)),
        "Command line": tests.command,
        "Machine": around.machine,
        "tests": result.tests.iter().enumerate().map(of).collect::<Vec<_>>(),
        "summary": summaries(result).iter().map(Summary::json).collect::<Vec<_>>(),
        "Warnings": result.warnings,
        "Finished": ctime((around.now)()),
    });
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

pub(super) fn csv(result: &IorResult) -> String {
    let mut text = String::from(
        "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n",
    );
    for test in &result.tests {
        for phase in &test.phases {
            let _ = writeln!(
                text,
                "{},{:.4},{:.4},{:.9},{},{},{:.6},{:.6},{:.6},{:.6},{},{}",
                phase.direction.name(),
                phase.mib_per_s(),
                phase.iops(),
                phase.latency.mean_ns / 1e9,
                test.block_bytes as f64 / KIB as f64,
                test.transfer_bytes as f64 / KIB as f64,
                seconds(phase.open_ns),
                seconds(phase.transfer_ns),
                seconds(phase.close_ns),
                seconds(phase.total_ns),
                test.tasks,
                phase.repetition
            );
        }
    }
    text
}
