//! The rows of IOR's options.

use super::options::{Format, MAX_TRANSFER, Options};
use crate::rows::OptionKind::{Flag, Ignored, OnlyValues, OnlyZero, Refused, Value};
use crate::rows::{Form, Row, put};
use machine::units::{parse_size, show_size};
use std::path::PathBuf;

type Line = Row<Options, String>;

fn number<T: TryFrom<u64>>(text: &str, min: u64, max: u64) -> Result<T, String> {
    let wrong = || format!("it is not a number from {min} to {max}");
    let value: u64 = text.trim().parse().map_err(|_| wrong())?;
    if !(min..=max).contains(&value) {
        return Err(wrong());
    }
    T::try_from(value).map_err(|_| wrong())
}

fn signed(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| "it is not a whole number".into())
}

/// The units are binary.
fn size(text: &str, max: u64) -> Result<u64, String> {
    let text = text.trim();
    let plain = text.trim_end_matches(|c: char| "kKmMgGtT".contains(c));
    if plain.len() + 1 < text.len() || plain.contains('.') {
        return Err("it is not a size: write 4096, 4k, 1m or 1g".into());
    }
    let bytes = parse_size(text)?;
    if bytes == 0 || bytes > max {
        return Err(format!("it is not from 1 byte to {}", show_size(max)));
    }
    Ok(bytes)
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("the name is empty".into()) } else { Ok(text.into()) }
}

const POSIX_ONLY: &str = "halfpower uses files through POSIX calls: give -a POSIX";
const NOT_COLLECTIVE: &str =
    "it belongs to MPI-IO; leave it out, because every task makes its own transfers";
const ONLY_MPI_IO: &str = "it belongs to MPI-IO or HDF5; leave it out";

pub(super) static ROWS: &[Line] = &[
    Row::new("a api", (), OnlyValues(&["POSIX"], POSIX_ONLY)),
    Row::new("A refNum", (), Value(|o, v| put(&mut o.reference, signed(v)))),
    Row::new("b blockSize", (), Value(|o, v| put(&mut o.block_bytes, size(v, 1 << 60)))),
    Row::new("c collective", (), OnlyZero(NOT_COLLECTIVE)),
    Row::new("C reorderTasks reorderTasksConstant", (), Flag(|o, on| o.reorder = on)),
    Row::new("d interTestDelay", (), Value(|o, v| put(&mut o.delay_s, number(v, 0, 86_400)))),
    Row::new(
        "D deadlineForStonewalling",
        (),
        Value(|o, v| {
            let seconds: u64 = number(v, 0, 604_800)?;
            o.deadline_s = (seconds > 0).then_some(seconds);
            Ok(())
        }),
    ),
    Row::new("stoneWallingWearOut", (), Flag(|o, on| o.wear_out = on)),
    Row::new(
        "stoneWallingWearOutIterations",
        (),
        Value(|o, v| {
            let count: u64 = number(v, 0, u64::MAX)?;
            o.wear_out_iterations = (count > 0).then_some(count);
            Ok(())
        }),
    ),
    Row::new(
        "stoneWallingStatusFile",
        (),
        Value(|o, v| put(&mut o.status_file, path(v).map(Some))),
    ),
    Row::new(
        "minTimeDuration",
        (),
        Refused("give -D SECONDS with a block so large that no task ends earlier"),
    ),
    Row::new("e fsync", (), Flag(|o, on| o.fsync = on)),
    Row::new("E useExistingTestFile", (), Flag(|o, on| o.existing = on)),
    Row::new("F filePerProc", (), Flag(|o, on| o.per_task = on)),
    Row::new("g intraTestBarriers", (), Flag(|o, on| o.barriers = on)),
    Row::new(
        "G setTimeStampSignature",
        (),
        Value(|o, v| put(&mut o.signature, signed(v).map(|value| Some(value as u64)))),
    ),
    Row::new("H showHints", (), Ignored(Form::Flag)),
    Row::new("i repetitions", (), Value(|o, v| put(&mut o.repetitions, number(v, 1, 1_000_000)))),
    Row::new("I individualDataSets", (), OnlyZero(ONLY_MPI_IO)),
    Row::new("j outlierThreshold", (), Value(|o, v| put(&mut o.outlier_s, number(v, 0, 86_400)))),
    Row::new("J setAlignment", (), Ignored(Form::Text)),
    Row::new("k keepFile", (), Flag(|o, on| o.keep = on)),
    Row::new("K keepFileWithError", (), Flag(|o, on| o.keep_with_error = on)),
    // Every block has its offset, is incompressible and depends on the signature.
    Row::new("l dataPacketType", (), Ignored(Form::Text)),
    Row::new("m multiFile", (), Flag(|o, on| o.multi_file = on)),
    Row::new(
        "M memoryPerNode",
        (),
        Refused("use a larger file, -C so that another host reads, or --posix.odirect"),
    ),
    Row::new("n noFill", (), Ignored(Form::Flag)),
    Row::new(
        "N numTasks",
        (),
        Value(|o, v| {
            // 0 and -1: all.
            let count = signed(v)?;
            o.tasks = u32::try_from(count).ok().filter(|&count| count > 0);
            Ok(())
        }),
    ),
    Row::new(
        "o testFile",
        (),
        Value(|o, v| {
            put(&mut o.test_files, v.trim().split('@').map(path).collect::<Result<Vec<_>, _>>())
        }),
    ),
    Row::new("p preallocate", (), OnlyZero("leave it out: the file grows as it is written")),
    Row::new("P useSharedFilePointer", (), OnlyZero(ONLY_MPI_IO)),
    Row::new("q quitOnError", (), Flag(|o, on| o.quit_on_error = on)),
    Row::new(
        "Q taskPerNodeOffset",
        (),
        Value(|o, v| put(&mut o.task_offset, number(v, 0, 1 << 20))),
    ),
    Row::new("r readFile", (), Flag(|o, on| o.read = on)),
    Row::new("R checkRead", (), Flag(|o, on| o.check_read = on)),
    Row::new("s segmentCount", (), Value(|o, v| put(&mut o.segments, number(v, 1, 1 << 50)))),
    Row::new("S useStridedDatatype", (), OnlyZero(ONLY_MPI_IO)),
    Row::new("t transferSize", (), Value(|o, v| put(&mut o.transfer_bytes, size(v, MAX_TRANSFER)))),
    Row::new("T maxTimeDuration", (), Value(|o, v| put(&mut o.max_minutes, number(v, 0, 525_600)))),
    Row::new("u uniqueDir", (), Flag(|o, on| o.unique_directory = on)),
    Row::new("U hintsFileName", (), Ignored(Form::Text)),
    Row::new("v", (), Flag(|o, _| o.verbose += 1)),
    Row::new("verbose", (), Value(|o, v| put(&mut o.verbose, number(v, 0, 5)))),
    Row::new("V useFileView", (), OnlyZero(ONLY_MPI_IO)),
    Row::new("w writeFile", (), Flag(|o, on| o.write = on)),
    Row::new("W checkWrite", (), Flag(|o, on| o.check_write = on)),
    Row::new("x singleXferAttempt", (), Ignored(Form::Flag)),
    Row::new("X reorderTasksRandomSeed", (), Value(|o, v| put(&mut o.reorder_seed, signed(v)))),
    Row::new("Y fsyncPerWrite", (), Flag(|o, on| o.fsync_each = on)),
    Row::new("z randomOffset", (), Flag(|o, on| o.random = on)),
    Row::new("Z reorderTasksRandom", (), Flag(|o, on| o.reorder_random = on)),
    Row::new("posix.odirect useO_DIRECT B", (), Flag(|o, on| o.direct = on)),
    Row::new(
        "summaryFormat",
        (),
        Value(|o, v| {
            o.format = match v.to_ascii_lowercase().as_str() {
                "default" => Format::Text,
                "json" => Format::Json,
                "csv" => Format::Csv,
                _ => return Err("it is not default, JSON or CSV".into()),
            };
            Ok(())
        }),
    ),
    Row::new("summaryFile", (), Value(|o, v| put(&mut o.summary_file, path(v).map(Some)))),
    Row::new("dryRun", (), Flag(|o, on| o.dry_run = on)),
    Row::new("storeFileOffset", (), Ignored(Form::Flag)),
    Row::new("showHelp", (), OnlyZero("see halfpower ior --help")),
    Row::new("nodes numNodes", (), Ignored(Form::Number)),
    Row::new(
        "lustreStripeCount lustreStripeSize lustreStartOST lustreIgnoreLocks",
        (),
        Refused("set stripes with lfs setstripe on the directory before"),
    ),
    Row::new(
        "hdf5.collectiveMetadata mmap.madv_dont_need mmap.madv_pattern",
        (),
        Refused("it belongs to another API; leave it out"),
    ),
    Row::new("memoryPerTask", (), Refused("use a larger file, or --posix.odirect")),
];
