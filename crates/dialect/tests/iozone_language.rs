//! IOzone's command line: accepted, refused and arbitrary texts.

mod words;

use dialect::iozone::{Cell, Options, STDIO_BYTES, Test, parse};
use machine::{Allocation, Buffering, Engine};
use proptest::prelude::*;
use words::words;
use workload::{Pattern, Stop};

fn options(line: &str) -> Options {
    parse(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn options_glued_apart_and_together() {
    let expected =
        options("-R -a -c -i 0 -i 1 -s 4m -r 64k -t 2 -f x -+u".trim_end_matches("-t 2 -f x -+u"));
    assert_eq!(options("-Rac -i0 -i1 -s4096 -r64"), expected);
    let all = options(
        "-t 2 -l 1 -u 4 -F a b c d -I -o -e -H 8 -O -R -b x.xls -w -x -V 5 -p -S 32m -L 64 -j 3 -J 10 -P 1 -+u -+D -T",
    );
    assert_eq!(all.process_files.len(), 4);
    assert_eq!(
        (all.asynchronous, all.stride, all.cache_bytes),
        (Some((false, 8)), Some(3), Some(32 << 20))
    );
    assert!(options("-aM").machine && options("-aM").to_string().contains("-M"));
    let uncached = options("-U /mnt/x -i 0 -i 1 -s 64k");
    assert_eq!(
        options(&uncached.to_string()).uncached.as_deref(),
        Some(std::path::Path::new("/mnt/x"))
    );
    assert_eq!(options("-A"), options("-a -z"));
    assert_eq!(options("-s 4MB -r 4KB -g 2GB"), options("-s 4m -r 4 -g 2g"));
    assert_eq!(
        options("-+n -i 0 -i 1 -i 2").passes(),
        [Test::Write, Test::Read, Test::RandomRead, Test::RandomWrite]
    );
    let own =
        options("--json=a.json --repeats 5 --seed 7 --destroy-data /dev/x --destroy-signature");
    assert_eq!((own.repeats, own.seed, own.destroy_signed), (Some(5), Some(7), true));
}

#[test]
fn nonsense_is_refused_with_its_word_and_the_mend() {
    for (line, said) in [
        ("-i 13", "-i 13"),
        ("-i -1", "-i -1"),
        ("-s 0", "-s 0"),
        ("-s -5", "-s -5"),
        ("-s 99999999999999999999g", "-s 9999"),
        ("-s 4x", "-s 4x"),
        ("-r", "its value is missing"),
        ("-r 2g", "-r 2g"),
        ("-t 0", "-t 0"),
        ("-t 100000", "-t 100000"),
        ("-U", "-U: its value is missing"),
        ("-+m hosts", "-+m: clients are for the throughput mode"),
        ("-t 2 -+m", "-+m: its value is missing"),
        ("-+q x", "-+q x: it is not a number"),
        ("-+p 0", "-+p 0: it is not a number"),
        ("-+r -B", "-B: mapped memory"),
        ("-+9", "-+9: unknown option"),
        ("-Q1", "-1 (of -Q1): unknown option"),
        ("-5", "-5: unknown option"),
        ("-s4x", "-s4x: its unit is unknown"),
        ("-s", "-s: its value is missing"),
        ("-s x", "-s x: its unit is unknown"),
        ("-i13", "-i13: it is not a number from 0 to 12"),
        ("-r0", "-r0: it is not between"),
        ("-Rs0", "-s0: it is not between"),
        ("-H0", "-H0: it is not a number"),
        ("-V 256", "-V 256: it is not a number"),
        ("-j 0", "-j 0: it is not a number"),
        ("-J x", "-J x: it is not a number"),
        ("-P -1", "-P -1: it is not a number"),
        ("-L 0", "-L 0: it is not a number"),
        ("-S 100g", "-S 100g: it is not between"),
        ("-D", "-D: it flushes mapped memory; add -B"),
        ("-G", "-G: it flushes mapped memory; add -B"),
        ("-Z", "run once with -B and once without"),
        ("-v", "-v: it prints the version"),
        ("-l 0", "-l 0: it is not a number"),
        ("-f", "-f: its value is missing"),
        ("-aK", "-K (of -aK): reads at the start of the file"),
        ("file", "options begin with -"),
        ("-", "options begin with -"),
        ("--nope", "--nope"),
        ("--json=", "--json"),
        ("-i 8", "-i 8"),
        ("-O -N", "-O and -N"),
        ("-B -I", "-B"),
        ("-a -t 2", "-a"),
        ("-t 3 -F a b", "2 files for 3 processes"),
        ("-n 2m -g 1m", "-n and -g"),
        ("-s 64 -r 128", "larger than the file"),
        ("-Q -t 2", "-Q"),
    ] {
        let error = parse(&words(line)).expect_err(line);
        assert!(error.is_usage() && error.to_string().contains(said), "{line}: {error}");
    }
    let nul = parse(&["-f".into(), "a\0b".into()]).unwrap_err();
    assert!(nul.to_string().contains("NUL"), "{nul}");
    let long = parse(&["-s".into(), "9".repeat(1 << 20)]).unwrap_err().to_string();
    assert!(long.len() < 300, "{} characters", long.len());
}

#[test]
fn mapped_memory_can_be_flushed_and_locks_are_held_anyway() {
    let of = |line: &str| {
        let options = options(line);
        let cell = Cell { file_bytes: 64 << 10, record_bytes: 4 << 10 };
        let workload = options.workload(cell, Test::Rewrite, false);
        (workload.engine, workload.buffering)
    };
    assert_eq!(of("-B -G"), (Engine::Mmap, Buffering::BufferedDsync));
    // MS_ASYNC starts nothing on Linux.
    assert_eq!(of("-B -D"), (Engine::Mmap, Buffering::Buffered));
    assert_eq!(of("-W"), (Engine::Sync, Buffering::Buffered));
}

#[test]
fn the_automatic_mode_goes_through_the_published_sizes() {
    let cells = options("-a").cells();
    let sizes = |file: u64| {
        cells
            .iter()
            .filter(|cell| cell.file_bytes == file)
            .map(|cell| cell.record_bytes)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (cells[0], *cells.last().unwrap()),
        (
            Cell { file_bytes: 64 << 10, record_bytes: 4 << 10 },
            Cell { file_bytes: 512 << 20, record_bytes: 16 << 20 }
        )
    );
    assert_eq!(sizes(64 << 10), [4, 8, 16, 32, 64].map(|kb| kb << 10));
    // From 4 KB to 16 MB up to files of 16 MB, from 64 KB beyond them unless -z.
    assert_eq!((sizes(16 << 20).len(), sizes(32 << 20).len()), (13, 9));
    assert_eq!(
        options("-a -z").cells().iter().filter(|cell| cell.file_bytes == 32 << 20).count(),
        13
    );
    assert_eq!(options("-a -g 1m -q 8k").cells().len(), 10);
    assert_eq!(options("").cells(), [Cell { file_bytes: 512 << 10, record_bytes: 4 << 10 }]);
}

#[test]
fn each_pass_is_the_workload_that_its_name_says() {
    let cell = Cell { file_bytes: 1 << 20, record_bytes: 4096 };
    let plain = options("-s 1m -r 4k");
    let of = |test| plain.workload(cell, test, false);
    let write = of(Test::Write);
    assert_eq!(
        (write.read_percent, write.allocation, write.stop),
        (0, Allocation::Extend, Stop::AfterBytes(1 << 20))
    );
    assert_eq!(of(Test::Rewrite).allocation, Allocation::Written);
    assert_eq!(
        (of(Test::BackwardRead).pattern, of(Test::RandomRead).pattern),
        (Pattern::Backward, Pattern::Random)
    );
    assert_eq!(of(Test::StrideRead).pattern, Pattern::Stride(17 * 4096));
    assert_eq!(
        plain.workload(Cell { file_bytes: 64 << 10, ..cell }, Test::StrideRead, false).pattern,
        Pattern::Seq
    );
    assert_eq!(of(Test::RecordRewrite).region_bytes, Some(4096));
    // Standard I/O gathers records below its buffer and lets others pass.
    let small = Cell { record_bytes: 1024, ..cell };
    assert_eq!(u64::from(plain.workload(small, Test::Fwrite, false).request_bytes), STDIO_BYTES);
    assert_eq!(of(Test::Fread).request_bytes, 4096);
    let other = options("-I -o -k 4 -e -J 2");
    let write = other.workload(cell, Test::Rewrite, false);
    assert_eq!(
        (write.buffering, write.engine, write.depth, write.sync_at_end, write.think_ns),
        (Buffering::DirectDsync, Engine::IoUring, 4, true, 2_000_000)
    );
    assert!(!other.workload(cell, Test::Read, false).sync_at_end);
    assert_eq!(other.workload(cell, Test::Fread, false).buffering, Buffering::Buffered);
    for test in plain.passes() {
        of(test).check(1 << 20, 1).unwrap();
    }
    assert_eq!(options("-t 2 -i 8").workload(cell, Test::Mixed, true).read_percent, 100);
}

fn word() -> impl Strategy<Value = String> {
    let option = prop::sample::select(vec![
        "-a",
        "-A",
        "-z",
        "-s",
        "-n",
        "-g",
        "-r",
        "-y",
        "-q",
        "-i",
        "-f",
        "-F",
        "-I",
        "-o",
        "-e",
        "-c",
        "-t",
        "-l",
        "-u",
        "-T",
        "-H",
        "-k",
        "-B",
        "-BG",
        "-D",
        "-W",
        "-O",
        "-N",
        "-R",
        "-b",
        "-w",
        "-x",
        "-V",
        "-p",
        "-S",
        "-L",
        "-j",
        "-J",
        "-P",
        "-Q",
        "-+u",
        "-+D",
        "-Rac",
        "-s64m",
        "-i0",
        "--json",
        "--html",
        "--repeats",
        "--seed=3",
        "--destroy-data",
        "--destroy-signature",
    ]);
    prop_oneof![
        3 => option.prop_map(String::from),
        3 => (0u32..20).prop_map(|n| n.to_string()),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        1 => "[0-9]{1,3}[kmgx]",
        1 => "[ '/a-z.]{1,8}",
        1 => "\\PC{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_accepted_command_line_round_trips(words in prop::collection::vec(word(), 0..8)) {
        if let Ok(options) = parse(&words) {
            prop_assert_eq!(parse(&options.words()).ok(), Some(options.clone()), "{:?} came back as {}", words, options);
            // An accepted command can be planned.
            for cell in options.cells().into_iter().take(20) {
                prop_assert!(cell.record_bytes <= cell.file_bytes);
            }
        }
    }

    #[test]
    fn no_text_panics(words in prop::collection::vec(any::<String>(), 0..5)) {
        let _ = parse(&words);
    }
}
