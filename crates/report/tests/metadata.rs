//! Metadata runs on an in-memory file system whose operations advance the clock, and on this
//! computer.

#[path = "../../workload/tests/memory/mod.rs"]
mod memory;

use host::files::HostFiles;
use machine::files::{FileEngine, FileSync};
use memory::MemoryFiles;
use report::terminal::metadata as table;
use results::{MetadataResult, measure_metadata as run};
use std::sync::atomic::{AtomicBool, Ordering};
use workload::metadata::{MetadataError, MetadataPlan, Operation};

static NEVER: AtomicBool = AtomicBool::new(false);

#[test]
fn rates_and_latencies_are_those_of_the_clock() {
    let files = MemoryFiles::new(1_000_000);
    let plan = MetadataPlan {
        files: 100,
        directories: 7,
        rounds: 2,
        file_bytes: 10,
        ..MetadataPlan::default()
    };
    let mut phases = Vec::new();
    let result =
        run(&files, &plan, &NEVER, &mut |round, operation| phases.push((round, operation)))
            .unwrap();
    assert_eq!(files.left(), 0);
    assert_eq!(phases.len(), 14, "files with data are read, too");
    for operation in &result.operations {
        let count = if operation.operation == Operation::List { 7 } else { 100 };
        assert_eq!(
            (operation.count, operation.latency.count),
            (count, 2 * count),
            "{:?}",
            operation.operation
        );
        assert_eq!(operation.elapsed_ns, [count * 1_000_000; 2]);
        assert_eq!((operation.rate_per_s, operation.latency.max_ns), (1000.0, 1_000_000));
        assert_eq!(operation.rate_interval_per_s.unwrap().relative_half_width, 0.0);
    }
    let list = result.operations.iter().find(|o| o.operation == Operation::List).unwrap();
    assert!((list.files_per_s - 100.0 / 0.007).abs() < 1e-6);
    insta::assert_snapshot!(table(&result));
    let json = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<MetadataResult>(&json).unwrap(), result);
}

#[test]
fn threads_share_all_files_and_directories() {
    for (threads, directories) in [(2, 1), (3, 7), (16, 100)] {
        let files = MemoryFiles::new(1000);
        let plan =
            MetadataPlan { files: 101, directories, threads, rounds: 1, ..MetadataPlan::default() };
        let result = run(&files, &plan, &NEVER, &mut |_, _| {}).unwrap();
        for operation in &result.operations {
            assert_eq!(operation.latency.count, operation.count);
            assert!(operation.rate_interval_per_s.is_none(), "one round has no interval");
        }
        assert_eq!(files.left(), 0);
    }
}

#[test]
fn an_error_or_an_interrupt_leaves_nothing() {
    for (fail_at, threads) in [(1, 1), (150, 4), (320, 2), (505, 3)] {
        let files = MemoryFiles::new(1000).failing_at(fail_at);
        let plan = MetadataPlan { files: 100, threads, rounds: 2, ..MetadataPlan::default() };
        let error = run(&files, &plan, &NEVER, &mut |_, _| {}).unwrap_err();
        assert!(matches!(error, MetadataError::File(_)), "{error}");
        assert_eq!(files.left(), 0);
    }
    let stop = AtomicBool::new(false);
    let files = MemoryFiles::new(1000);
    let stopping = &mut |_, operation| stop.store(operation == Operation::Open, Ordering::Relaxed);
    let result = run(&files, &MetadataPlan::default(), &stop, stopping).unwrap();
    let done: Vec<Operation> = result.operations.iter().map(|one| one.operation).collect();
    assert!(result.interrupted);
    assert_eq!(done, [Operation::Create, Operation::Stat], "what was done until then");
    assert_eq!(files.left(), 0);
    let stop = AtomicBool::new(true);
    let error = run(&files, &MetadataPlan::default(), &stop, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, MetadataError::Interrupted));
    assert_eq!(files.left(), 0);
}

#[test]
fn a_value_out_of_range_is_named() {
    let plan = MetadataPlan { files: 5, directories: 6, ..MetadataPlan::default() };
    let error = run(&MemoryFiles::new(1), &plan, &NEVER, &mut |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), "the number of directories is 6: it must be from 1 to 5");
}

#[test]
fn on_this_computer() {
    let here = tempfile::tempdir().unwrap();
    for (engine, sync) in
        [(FileEngine::Syscalls, FileSync::None), (FileEngine::Stdio, FileSync::All)]
    {
        let plan = MetadataPlan {
            location: here.path().into(),
            files: 200,
            directories: 3,
            threads: 2,
            file_bytes: 100,
            rounds: 2,
            engine,
            sync,
            seed: 3,
            ..MetadataPlan::default()
        };
        let result = run(&HostFiles::new(), &plan, &NEVER, &mut |_, _| {}).unwrap();
        assert!(result.operations.iter().all(|operation| operation.rate_per_s > 0.0));
        assert!(table(&result).contains("\nHere 2 threads make "));
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
    }
    let plan = MetadataPlan { location: here.path().join("nowhere"), ..MetadataPlan::default() };
    let error = run(&HostFiles::new(), &plan, &NEVER, &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
}

#[test]
fn a_run_in_which_the_program_was_stopped_is_left_out_and_repeated() {
    let plan = MetadataPlan { files: 100, rounds: 2, ..MetadataPlan::default() };
    let files = MemoryFiles::new(1_000_000).pausing(2);
    let result = run(&files, &plan, &NEVER, &mut |_, _| {}).unwrap();
    assert_eq!((files.watched_runs(), files.left()), (3, 0));
    let left_out = "a run was left out and repeated: the program was stopped for 1.0 s";
    assert_eq!(result.warnings[..2], [left_out, left_out]);
    for operation in result.operations.iter().filter(|one| one.operation != Operation::List) {
        assert_eq!(
            (operation.latency.count, operation.elapsed_ns.len()),
            (200, 2),
            "of the last run only"
        );
    }
}
