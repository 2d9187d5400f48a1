use super::{Cell, IozoneResult, Measured, Options, Test, Throughput};
use crate::calendar;
use machine::MachineFacts;
use std::fmt::Write;

const REVISION: &str = "3.487";

const HEADER_1: &str = "                                                              random    random     bkwd    record    stride";
const HEADER_2: &str = "              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite frewrite    fread  freread";

const POSITIONED: [&str; 8] =
    ["pwrite", "repwrite", "pread", "repread", "pwritev", "repwritev", "preadv", "repreadv"];

fn kib(bytes: u64) -> u64 {
    bytes / 1024
}

fn unit(options: &Options) -> &'static str {
    if options.operations {
        "ops/sec"
    } else if options.microseconds {
        "microsec/op"
    } else {
        "kB/sec"
    }
}

fn excel_unit(options: &Options) -> &'static str {
    match unit(options) {
        "kB/sec" => "kBytes/sec",
        other => other,
    }
}

/// The output of `-v`.
pub fn version() -> String {
    format!(
        "       'Iozone' Filesystem Benchmark Program\n\n\t\tVersion $Revision: {REVISION} $\n\t\tBuild: halfpower \n"
    )
}

/// The line of `-M`, `uname` in the original.
pub fn machine_line(options: &Options, machine: &MachineFacts) -> String {
    let MachineFacts { system, name, processor, .. } = machine;
    if options.machine {
        format!("\tMachine = {system} {name} {processor}\n")
    } else {
        String::new()
    }
}

/// Everything above the first figures.
pub fn banner(options: &Options, began_unix_s: u64) -> String {
    let mut lines = vec![
        "\tIozone: Performance Test of File I/O".to_string(),
        format!("\t        Version $Revision: {REVISION} $"),
        "\t\tCompiled for 64 bit mode.".into(),
        "\t\tBuild: halfpower ".into(),
        String::new(),
        format!("\tRun began: {}", calendar::ctime(began_unix_s)),
        String::new(),
    ];
    let mut say = |text: String| lines.push(format!("\t{text}"));
    let flags = [
        (options.auto, "Auto Mode"),
        (options.all_records, "Cross over of record size disabled."),
        (options.flush, "Include fsync in write timing"),
        (options.close, "Include close in write timing"),
        (options.direct, "O_DIRECT feature enabled"),
        (options.sync, "SYNC Mode. "),
        (options.read_sync, "Read & Write sync mode active."),
        (options.dsync, "O_DSYNC feature enabled"),
        (options.mmap, "Using mmap files"),
        (options.purge, "Purge Mode On"),
        (options.no_stonewall, "Stonewall disabled"),
        (options.keep, "Setting no_unlink"),
        (options.cpu, "CPU utilization Resolution =  0.000 seconds."),
        (options.excel, "Excel chart generation enabled"),
        (options.client_list.is_some(), "Network distribution mode enabled."),
    ];
    flags.iter().filter(|(on, _)| *on).for_each(|(_, text)| say((*text).into()));
    let sizes = [
        (options.file_range.0, "Using minimum file size of", "kilobytes."),
        (options.file_range.1, "Using maximum file size of", "kilobytes."),
        (options.record_range.0, "Using Minimum Record Size", "kB"),
        (options.record_range.1, "Using Maximum Record Size", "kB"),
    ];
    sizes
        .iter()
        .filter_map(|(bytes, text, unit)| {
            bytes.map(|bytes| format!("{text} {} {unit}", kib(bytes)))
        })
        .for_each(&mut say);
    options.records.iter().for_each(|bytes| say(format!("Record Size {} kB", kib(*bytes))));
    options.files.iter().for_each(|bytes| say(format!("File size set to {} kB", kib(*bytes))));
    options
        .asynchronous
        .iter()
        .for_each(|(_, depth)| say(format!("POSIX Async I/O (no bcopy). Depth {depth} ")));
    options
        .verify
        .iter()
        .for_each(|pattern| say(format!("Using pattern {pattern:#x} to verify data")));
    options
        .readers_percent
        .iter()
        .for_each(|percent| say(format!("Percent read in mix test is {percent}")));
    options
        .rest_s
        .iter()
        .for_each(|seconds| say(format!("Delay {seconds} seconds between tests enabled.")));
    options
        .think_ms
        .iter()
        .for_each(|ms| say(format!("Think time per request: {ms} milliseconds")));
    say(format!("Command line used: iozone {}", options.command()));
    say(match unit(options) {
        "ops/sec" => "OPS Mode. Output is in operations per second.".into(),
        "microsec/op" => "Microseconds/op Mode. Output is in microseconds per operation.".into(),
        _ => "Output is in kBytes/sec".into(),
    });
    say("Time Resolution = 0.000001 seconds.".into());
    say(format!(
        "Processor cache size set to {} kBytes.",
        kib(options.cache_bytes.unwrap_or(1 << 20))
    ));
    say(format!("Processor cache line size set to {} bytes.", options.line_bytes.unwrap_or(32)));
    say(format!(
        "File stride size set to {} * record size.",
        options.stride.unwrap_or(super::STRIDE)
    ));
    lines.join("\n") + "\n"
}

pub fn header(options: &Options) -> String {
    let mut second = HEADER_2.to_string();
    if options.passes().iter().any(|test| Test::POSITIONED.contains(test)) {
        // Writing to a string cannot fail.
        POSITIONED.iter().for_each(|name| write!(second, "{name:>10}").unwrap_or_default());
    }
    format!("{HEADER_1}\n{second}\n")
}

fn figure(options: &Options, measured: &Measured) -> f64 {
    let rate = measured.rate();
    let operations = measured.operations_per_s;
    if options.operations {
        operations
    } else if options.microseconds {
        1e6 / operations
    } else {
        rate / 1024.0
    }
}

pub fn row(options: &Options, cell: Cell, measured: &[Measured]) -> String {
    let mut text = format!("{:>16}{:>8}", kib(cell.file_bytes), kib(cell.record_bytes));
    let find =
        |test| measured.iter().find(|measured| measured.cell == cell && measured.test == test);
    let positioned = options.passes().iter().any(|test| Test::POSITIONED.contains(test));
    let columns = Test::CLASSIC.iter().chain(if positioned { &Test::POSITIONED[..] } else { &[] });
    for test in columns {
        let wide = matches!(test, Test::RecordRewrite | Test::StrideRead)
            || Test::POSITIONED.contains(test);
        let value = find(*test)
            .map_or(String::new(), |measured| format!("{}", figure(options, measured) as u64));
        // Writing to a string cannot fail. A figure wider than its column keeps a leading blank.
        let _ = if wide { write!(text, " {value:>9}") } else { write!(text, "{value:>9}") };
    }
    text + "\n"
}

/// Title, record sizes, and figures by file size.
pub(super) type Table = (String, Vec<u64>, Vec<(u64, Vec<Option<f64>>)>);

pub(super) fn tables(options: &Options, result: &IozoneResult) -> Vec<Table> {
    let of = |title: String, test: Test, value: &dyn Fn(&Measured) -> f64| {
        let mut records: Vec<u64> =
            result.cells.iter().map(|measured| measured.cell.record_bytes).collect();
        records.sort_unstable();
        records.dedup();
        let mut files: Vec<u64> =
            result.cells.iter().map(|measured| measured.cell.file_bytes).collect();
        files.sort_unstable();
        files.dedup();
        let find = |file_bytes, record_bytes| {
            let cell = Cell { file_bytes, record_bytes };
            result
                .cells
                .iter()
                .find(|measured| measured.test == test && measured.cell == cell)
                .map(value)
        };
        let rows = files
            .iter()
            .map(|file| (*file, records.iter().map(|record| find(*file, *record)).collect()))
            .collect();
        (title, records, rows)
    };
    let mut tables = Vec::new();
    for test in options.passes() {
        tables.push(of(test.report_title(), test, &|measured| figure(options, measured)));
    }
    if options.cpu {
        for test in options.passes() {
            let title = test.title();
            tables.push(of(
                format!("{title} CPU utilization report (Zero values should be ignored)"),
                test,
                &|measured| measured.cpu_percent,
            ));
        }
    }
    tables
}

pub fn excel(options: &Options, result: &IozoneResult) -> String {
    let mut text = String::from("Excel output is below:\n");
    if !result.throughput.is_empty() {
        return text + &excel_throughput(options, result);
    }
    for (title, records, rows) in tables(options, result) {
        let heads: Vec<String> =
            records.iter().map(|record| format!("\"{}\"", kib(*record))).collect();
        // Writing to a string cannot fail.
        let _ = write!(text, "\n\"{title}\"\n        {}\n", heads.join("  "));
        for (file, values) in rows {
            let shown = |value: &f64| {
                if title.contains("CPU") {
                    format!("{value:.2}")
                } else {
                    format!("{}", *value as u64)
                }
            };
            let values: Vec<String> =
                values.iter().map(|value| value.as_ref().map_or(String::new(), shown)).collect();
            let _ = writeln!(
                text,
                "{}",
                format!("\"{}\"   {}", kib(file), values.join(" ")).trim_end()
            );
        }
    }
    text + "\n"
}

fn excel_throughput(options: &Options, result: &IozoneResult) -> String {
    let doer = if options.threads { "threads" } else { "processes" };
    let record = options.cells().first().map_or(0, |cell| kib(cell.record_bytes));
    let mut text = format!(
        "\n\"Throughput report Y-axis is type of test X-axis is number of {doer}\"\n\"Record size = {record} kBytes \"\n\"Output is in {}\"\n\n",
        excel_unit(options)
    );
    for (label, values) in throughput_rows(options, result) {
        let values: Vec<String> = values.iter().map(|value| format!("{value:10.2} ")).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\"{label:>15} \" {}\n", values.concat());
    }
    text
}

pub(super) fn spreadsheet_head(options: &Options, result: &IozoneResult) -> Vec<String> {
    let mut head = vec![format!("Command line used: iozone {}", options.command())];
    if result.throughput.is_empty() {
        head.push("The top row is records sizes, the left column is file sizes".into());
    } else {
        let doer = if options.threads { "threads" } else { "processes" };
        let record = options.cells().first().map_or(0, |cell| kib(cell.record_bytes));
        head.push(format!("Throughput report Y-axis is type of test X-axis is number of {doer}"));
        head.push(format!("Record size = {record} kBytes "));
        head.push(format!("Output is in {}", excel_unit(options)));
    }
    head
}

/// Rates by number of children.
pub(super) fn throughput_rows(
    options: &Options,
    result: &IozoneResult,
) -> Vec<(&'static str, Vec<f64>)> {
    let row = |test: Test| {
        let label = match test {
            Test::Write => "Initial write",
            Test::Rewrite => "Rewrite",
            Test::Read => "Read",
            Test::Reread => "Re-read",
            Test::BackwardRead => "Reverse Read",
            Test::Mixed => "Mixed workload",
            _ => test.title(),
        };
        let same = result.throughput.iter().filter(|one| one.test == test);
        (label, same.map(|one| children_see(options, one)).collect())
    };
    options.passes().into_iter().map(row).collect()
}

fn rate(options: &Options, bytes: u64, operations: u64, ns: u64) -> f64 {
    let seconds = ns.max(1) as f64 / 1e9;
    if options.operations {
        operations as f64 / seconds
    } else if options.microseconds {
        seconds * 1e6 / operations.max(1) as f64
    } else {
        bytes as f64 / 1024.0 / seconds
    }
}

fn children_see(options: &Options, one: &Throughput) -> f64 {
    one.children
        .iter()
        .map(|child| rate(options, child.bytes, child.operations, child.elapsed_ns))
        .sum()
}

pub fn throughput_intro(options: &Options, cell: Cell, children: u32) -> String {
    let (one, many) =
        if options.threads { ("thread", "threads") } else { ("process", "processes") };
    let doers = if children == 1 { one } else { many };
    format!(
        "\tThroughput test with {children} {doers}\n\tEach {one} writes a {} kByte file in {} kByte records\n",
        kib(cell.file_bytes),
        kib(cell.record_bytes)
    )
}

pub fn throughput_block(options: &Options, one: &Throughput) -> String {
    let count = one.children.len();
    // The original pads the number only in its first three tests.
    let number = if matches!(one.test, Test::Write | Test::Rewrite | Test::Read) {
        format!("{count:>2}")
    } else {
        count.to_string()
    };
    let tabs = if one.test.doers().len() < 8 { "\t\t" } else { "\t" };
    let unit = unit(options);
    let doer = if options.threads { "thread" } else { "process" };
    let each: Vec<f64> = one
        .children
        .iter()
        .map(|child| rate(options, child.bytes, child.operations, child.elapsed_ns))
        .collect();
    let sum: f64 = each.iter().sum();
    let (bytes, operations) = one.children.iter().fold((0, 0), |(bytes, operations), child| {
        (bytes + child.bytes, operations + child.operations)
    });
    let parent = rate(options, bytes, operations, one.elapsed_ns);
    let min = each.iter().copied().fold(f64::INFINITY, f64::min);
    let max = each.iter().copied().fold(0.0, f64::max);
    let xfer = one
        .children
        .iter()
        .map(|child| {
            if options.operations || options.microseconds {
                child.operations
            } else {
                kib(child.bytes)
            }
        })
        .min()
        .unwrap_or(0);
    let xfer_unit = if options.operations || options.microseconds { "ops" } else { "kB" };
    let mut text = format!(
        "\n\tChildren see throughput for {number} {} {tabs}= {sum:10.2} {unit}\n",
        one.test.doers()
    );
    // Writing to a string cannot fail.
    if options.client_list.is_none() {
        let _ = writeln!(
            text,
            "\tParent sees throughput for {number} {} {tabs}= {parent:10.2} {unit}",
            one.test.doers()
        );
    }
    if options.each_child {
        for (index, (child, rate)) in one.children.iter().zip(&each).enumerate() {
            let kib = kib(child.bytes);
            let _ = writeln!(
                text,
                "\tChild[{index}] xfer count = {kib:10.2} kB, Throughput = {rate:10.2} {unit}",
                kib = kib as f64
            );
        }
    }
    let _ = writeln!(text, "\tMin throughput per {doer} \t\t\t= {min:10.2} {unit} ");
    let _ = writeln!(text, "\tMax throughput per {doer} \t\t\t= {max:10.2} {unit}");
    let _ = writeln!(
        text,
        "\tAvg throughput per {doer} \t\t\t= {:10.2} {unit}",
        sum / count.max(1) as f64
    );
    let _ = writeln!(text, "\tMin xfer \t\t\t\t\t= {:10.2} {xfer_unit}", xfer as f64);
    if options.cpu {
        let (wall, cpu) = (one.elapsed_ns as f64 / 1e9, one.cpu_ns as f64 / 1e9);
        let _ = writeln!(
            text,
            "\tCPU Utilization: Wall time {wall:8.3}    CPU time {cpu:8.3}    CPU utilization {:6.2} %\n",
            cpu / wall.max(1e-9) * 100.0
        );
    }
    text
}

/// The original's last line.
pub const COMPLETE: &str = "\niozone test complete.\n";

pub const INTERRUPTED: &str = "\niozone test interrupted.\n";

fn spread_table(result: &IozoneResult) -> String {
    let mut tests: Vec<Test> = result.cells.iter().map(|measured| measured.test).collect();
    tests.sort_unstable();
    tests.dedup();
    let mut text = String::from("\tMax less min of runs in % of the median (one run: -):\n\t");
    // Writing to a string cannot fail.
    let _ = write!(text, "{:>15}{:>13}", "file", "record");
    tests.iter().for_each(|test| write!(text, "{:>9}", short(*test)).unwrap_or_default());
    let mut last = None;
    for measured in &result.cells {
        let cell = measured.cell;
        if last.replace(cell) != Some(cell) {
            let _ = write!(
                text,
                "\n\t{:>12} kB{:>10} kB",
                kib(cell.file_bytes),
                kib(cell.record_bytes)
            );
        }
        let _ = write!(
            text,
            "{:>9}",
            measured.spread_percent().map_or("-".into(), |percent| format!("{percent:.1}"))
        );
    }
    text + "\n"
}

fn short(test: Test) -> &'static str {
    match test {
        Test::Write => "write",
        Test::Rewrite => "rewrite",
        Test::Read => "read",
        Test::Reread => "reread",
        Test::RandomRead => "ran read",
        Test::RandomWrite => "ran writ",
        Test::BackwardRead => "backward",
        Test::RecordRewrite => "record",
        Test::StrideRead => "stride",
        Test::Fwrite => "fwrite",
        Test::Refwrite => "frewrite",
        Test::Fread => "fread",
        Test::Refread => "freread",
        Test::Mixed => "mixed",
        Test::Pwrite => "pwrite",
        Test::Repwrite => "repwrite",
        Test::Pread => "pread",
        Test::Repread => "repread",
        Test::Pwritev => "pwritev",
        Test::Repwritev => "repwritv",
        Test::Preadv => "preadv",
        Test::Repreadv => "repreadv",
    }
}

/// Unlike the original's rows, no line starts with two numbers.
pub fn extra(result: &IozoneResult) -> String {
    let mut text = String::from("\nHalfpower:\n");
    let spread = |values: &[f64]| {
        let (min, max) = values
            .iter()
            .fold((f64::INFINITY, 0.0f64), |(min, max), value| (min.min(*value), max.max(*value)));
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        (max - min) / sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN) * 100.0
    };
    if !result.cells.is_empty() {
        text += &spread_table(result);
    }
    for one in result.throughput.iter().filter(|one| one.runs_bytes_per_s.len() > 1) {
        let runs = one.runs_bytes_per_s.len();
        let _ = writeln!(
            text,
            "\tSpread of {} {}: {:.1} % of the median of {runs} runs",
            one.children.len(),
            one.test.doers(),
            spread(&one.runs_bytes_per_s)
        );
    }
    for cliff in &result.cliffs {
        let _ = writeln!(text, "\tCliff: {}", cliff.sentence);
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "\tWarning: {warning}");
    }
    text
}
