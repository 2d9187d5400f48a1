//! SQLIO's command line and parameter file: accepted, refused and arbitrary texts.

mod words;

use dialect::sqlio::{
    Access, Caching, FileLine, Kind, Multi, Options, files, matrix, parse, parse_parameters,
};
use machine::{Buffering, Engine};
use proptest::prelude::*;
use words::words;
use workload::{Pattern, Stop};

const ENGINES: [Engine; 2] = [Engine::Sync, Engine::IoUring];

fn options(line: &str) -> Options {
    parse(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn every_option_is_taken() {
    let all = options(
        "-kW -t4 -s10 -frandom -o8 -b64 -i16 -mS4 -BH -S128 -a0x5 -LPi -Up -64 -d/mnt/a,/mnt/b x.dat --json r.json --size 1g",
    );
    assert_eq!(
        (all.kind, all.threads, all.run_ns, all.access),
        (Some(Kind::Write), Some(4), Some(10_000_000_000), Some(Access::Random))
    );
    assert_eq!(
        (all.outstanding, all.block_bytes, all.rows, all.multi),
        (Some(8), Some(65_536), Some(16), Some(Multi::Scatter(4)))
    );
    assert_eq!(
        (all.caching, all.start_block, all.mask, all.latency),
        (Some(Caching::Hardware), Some(128), Some(5), Some(('P', true)))
    );
    assert_eq!((all.cpu, all.wide, all.size), (Some(true), true, Some(1 << 30)));
    let files = files(&all, &[]).unwrap();
    assert_eq!(
        files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>(),
        ["/mnt/a/x.dat", "/mnt/b/x.dat"]
    );
    assert_eq!(files[0].processors(), [0, 2]);
    assert_eq!(options("-pI3").processor, Some((true, 3)));
    assert_eq!(options("-R/dev/sdb,/dev/sdc").raw.len(), 2);
    assert_eq!(options("-F").parameters, Some("param.txt".into()));
}

#[test]
fn nonsense_is_refused_with_its_word_and_the_mend() {
    for (line, said) in [
        ("-kX", "-kX: it is neither R nor W"),
        ("-kWR", "-kWR: SQLIO has no such kind: one run reads or writes"),
        ("-k", "-k: it is neither R nor W"),
        ("-m", "-m: it says neither C"),
        ("-o65537", "-o65537: it is not a number from 0"),
        ("-q", "-q: unknown option"),
        ("-Ux", "-Ux: it takes p or nothing"),
        ("-p-1", "-p-1: it is not a number"),
        ("-pI9999", "-pI9999: it is not a number"),
        ("-f0", "-f0: it is not a number"),
        ("-i0", "-i0: it is not a number"),
        ("-b0", "-b0: it is not a number"),
        ("-S-1", "-S-1: it is not a number"),
        ("-mC0", "-mC0: it is not a number"),
        ("-mSx", "-mSx: it is not a number"),
        ("-65", "-65: unknown option"),
        ("-t0", "-t0: it is not"),
        ("-t257", "-t257: it is not"),
        ("-t-1", "-t-1: it is not"),
        ("-t+1", "-t+1: it is not"),
        ("-s", "-s"),
        ("-s99999999999999999999", "-s9999"),
        ("-fx", "-fx: it is not"),
        ("-b9999999", "-b9999999: it is not"),
        ("-m4", "-m4: it says neither C"),
        ("-BX", "-BX: it names no cache"),
        ("-LX", "-LX"),
        ("-a0xg", "-a0xg: it is not"),
        ("-a0x+1", "-a0x+1: it is not"),
        ("-z", "-z: unknown option"),
        ("-", "-: an option is missing"),
        ("-d", "-d: a name is missing"),
        ("--nope", "--nope"),
        ("--align 64k", "they belong to the study"),
        ("--matrix -kR", "--matrix"),
        ("--matrix a b c", "or two of them"),
        ("--matrix -Fp.txt", "or on two that are compared"),
        ("--matrix --align 64k a b", "two are named"),
        ("--matrix --align 64k,65536", "a value is there twice"),
        ("--size 3x", "--size"),
        ("--runtime 0", "--runtime 0"),
        ("-F -d/a", "-F"),
        ("-b1048576 -mC1024", "1 GiB"),
    ] {
        let error = parse(&words(line)).expect_err(line);
        assert!(error.is_usage() && error.to_string().contains(said), "{line}: {error}");
    }
    assert!(parse(&["a\0b".into()]).unwrap_err().to_string().contains("NUL"));
    let error = files(&options("-t200 a b"), &[]).unwrap_err();
    assert!(error.to_string().contains("400 threads"), "{error}");
}

#[test]
fn parameter_files() {
    let lines =
        parse_parameters("# remark\n\nc:\\a.dat 2 0x0 100\nb.dat 4 3 \n/dev/sdb 1\n").unwrap();
    assert_eq!(
        lines[0],
        FileLine { path: "c:\\a.dat".into(), threads: 2, mask: 0, size_mb: Some(100) }
    );
    assert_eq!((lines[1].mask, lines[1].size_mb, lines[2].threads), (3, None, 1));
    for (text, said) in [
        ("", "names no file"),
        ("# only\n", "names no file"),
        ("a.dat\n", "line 1 of the parameter file: it has 1 words"),
        ("a 1\nb 2 3 4 5", "line 2"),
        ("a 0", "line 1 of the parameter file, threads 0"),
        ("a 1 zz", "mask zz"),
        ("a 1 0 -4", "size -4"),
        ("a\0b 1", "NUL"),
    ] {
        let error = parse_parameters(text).unwrap_err();
        assert!(error.to_string().contains(said), "{text:?}: {error}");
    }
    // The size counts only for random and sequential runs.
    let sized = |line: &str| files(&options(line), &lines).unwrap()[0].size_bytes;
    assert_eq!((sized("-frandom"), sized("-f64")), (Some(100 << 20), None));
}

#[test]
fn the_defaults_are_the_originals() {
    let plain = options("");
    let workload = plain.workload(Kind::Read, plain.access(), 1, &ENGINES);
    assert_eq!(
        (workload.pattern, workload.request_bytes, workload.depth, workload.engine),
        (Pattern::Columns(64), 2048, 1, Engine::Sync)
    );
    assert_eq!(
        (workload.region_bytes, workload.stop),
        (Some(64 * 64 * 2048), Stop::AfterNs(30_000_000_000))
    );
    assert_eq!(files(&plain, &[]).unwrap()[0].path.to_str(), Some("testfile.dat"));
    let buffering = |letter: &str, kind| options(&format!("-B{letter}")).buffering(kind);
    assert_eq!(
        (buffering("N", Kind::Read), buffering("N", Kind::Write)),
        (Buffering::Direct, Buffering::DirectDsync)
    );
    assert_eq!(
        (buffering("H", Kind::Write), buffering("S", Kind::Write), buffering("Y", Kind::Write)),
        (Buffering::Direct, Buffering::BufferedDsync, Buffering::Buffered)
    );
    assert_eq!(options("-o0").outstanding, None, "plain calls");
    let deep = options("-o8 -mC4 -b8 -S3 -fsequential");
    let workload = deep.workload(Kind::Write, deep.access(), 2, &ENGINES);
    assert_eq!(workload.pattern, Pattern::Together, "the threads share one position");
    assert_eq!(
        (workload.depth, workload.engine, workload.request_bytes, workload.region_start_bytes),
        (8, Engine::IoUring, 32 << 10, 24 << 10)
    );
}

#[test]
fn the_study_has_the_published_points() {
    let study = options("--matrix --align 31.5k,64k");
    let points = matrix::workloads(&study, &ENGINES);
    assert_eq!(points.len(), 2 * 36);
    let (entry, workload) = &points[1];
    assert_eq!(
        (entry.op, entry.pattern.as_str(), entry.threads, entry.align_bytes),
        ('R', "ran", 1, 64 << 10)
    );
    assert_eq!(
        (workload.request_bytes, workload.depth, workload.offset_bytes, workload.stop),
        (8192, 4, 65_536, Stop::AfterNs(300_000_000_000))
    );
    let last = points.last().unwrap();
    assert_eq!((last.0.op, last.0.pattern.as_str(), last.0.threads), ('W', "seq", 256));
    let short = options("--matrix --runtime 20ms --max-threads 8 -o1 -b4");
    let points = matrix::workloads(&short, &ENGINES);
    assert_eq!((points.len(), points[0].1.depth, points[0].1.request_bytes), (16, 1, 4096));
}

#[test]
fn two_targets_share_the_published_time() {
    let study = options("--matrix -d/mnt/a,/mnt/b");
    assert!(study.compares() && !options("--matrix a").compares() && !options("a b").compares());
    let [a, b] = matrix::two_targets(&options("--matrix --size 1g /tmp/a.dat /tmp/b.dat"))
        .unwrap()
        .map(|spec| spec.places);
    assert_eq!((a, b), (vec!["/tmp/a.dat".into()], vec!["/tmp/b.dat".into()]));
    let limits = matrix::in_turn(&study, true).unwrap();
    assert_eq!((limits.max_blocks, limits.min_ns), (16, 36 * 2 * 600_000_000_000));
    assert_eq!(matrix::in_turn(&study, false).unwrap().min_ns, 36 * 4 * 60_000_000_000);
    let error = matrix::in_turn(&options("--matrix --repeats 9 a b"), true).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("give 10 or more"), "{error}");
}

fn word() -> impl Strategy<Value = String> {
    let option = prop::sample::select(vec![
        "-kR",
        "-kW",
        "-t",
        "-s",
        "-f",
        "-frandom",
        "-fsequential",
        "-o",
        "-b",
        "-i",
        "-mC",
        "-mS",
        "-BN",
        "-BY",
        "-BH",
        "-BS",
        "-S",
        "-p",
        "-pI",
        "-a",
        "-a0x",
        "-LS",
        "-LPi",
        "-U",
        "-Up",
        "-F",
        "-R/dev/",
        "-d/mnt/",
        "-64",
        "--matrix",
        "--json=",
        "--size=",
        "--runtime=",
        "--align=",
        "--repeats=",
        "--max-threads=",
        "--seed=",
        "--destroy-data=",
        "--destroy-signature",
        "file",
    ]);
    let value = prop_oneof![
        4 => (0u32..300).prop_map(|n| n.to_string()),
        2 => Just(String::new()),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        1 => "[0-9]{1,2}(\\.5)?(k|m|ms|s|us)",
        1 => "[a-f,]{1,6}",
        1 => "\\PC{0,4}",
    ];
    (option, value).prop_map(|(option, value)| format!("{option}{value}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_accepted_command_line_round_trips(words in prop::collection::vec(word(), 0..7)) {
        if let Ok(options) = parse(&words) {
            prop_assert_eq!(parse(&options.words()).ok(), Some(options.clone()), "{:?} came back as {}", words, options);
        }
    }

    #[test]
    fn every_accepted_parameter_file_round_trips(text in "([a-z/.]{1,5} [0-9]{1,3}( (0x)?[0-9a-f]{1,4}( [0-9]{1,4})?)?\n|# [a-z ]*\n|\n){0,5}") {
        if let Ok(lines) = parse_parameters(&text) {
            let again: String = lines.iter().map(|line| format!("{line}\n")).collect();
            prop_assert_eq!(parse_parameters(&again).ok(), Some(lines));
        }
    }

    #[test]
    fn no_text_panics(words in prop::collection::vec(any::<String>(), 0..5), text in any::<String>()) {
        let _ = (parse(&words), parse_parameters(&text));
    }
}
