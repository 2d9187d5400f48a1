//! diskspd's command line and profiles: accepted, refused and arbitrary texts.

mod words;

use dialect::diskspd::{
    Caching, Format, Options, Profile, RangeLength, Source, Target, ThreadPool, TimeSpan, parse,
    profile_xml, read_profile,
};
use machine::{Buffering, Engine, Hint};
use proptest::prelude::*;
use words::words;
use workload::{Pattern, Stop};

const ENGINES: [Engine; 2] = [Engine::Sync, Engine::IoUring];

fn options(line: &str) -> Options {
    parse(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn target(line: &str) -> Target {
    options(line).profile.spans[0].targets[0].clone()
}

#[test]
fn every_option_is_taken() {
    let all = options(
        "-b8K -c1G -d3 -W1 -C2 -t4 -o16 -r4K -B1M -f512M -fr -w30 -Sh -Z -g100 -L -D500 -a0,1 -z7 -Rxml a b --json=r.json",
    );
    let span = &all.profile.spans[0];
    assert_eq!((span.duration_s, span.warm_up_s, span.cool_down_s, span.seed), (3, 1, 2, 7));
    assert_eq!(
        (span.latency, span.interval_ms, span.processors.as_slice(), span.targets.len()),
        (true, Some(500), &[0, 1][..], 2)
    );
    assert_eq!(all.profile.format, Format::Xml);
    let one = &span.targets[1];
    assert_eq!(
        (one.block_bytes, one.create_bytes, one.random_bytes, one.base_bytes, one.max_bytes),
        (8192, Some(1 << 30), Some(4096), 1 << 20, Some(512 << 20))
    );
    assert_eq!(
        (one.threads, one.outstanding, one.write_percent, one.hint, one.source),
        (4, 16, 30, Hint::Random, Source::Zero)
    );
    assert_eq!(
        (one.caching, one.write_through, one.throughput_bytes_per_ms),
        (Caching::Uncached, true, Some(100))
    );
    let plain = options("x");
    assert_eq!(
        plain.profile.spans[0],
        TimeSpan { targets: vec![Target::new("x".into())], ..TimeSpan::default() }
    );
    // Blocks count in blocks, wherever -b is.
    assert_eq!(
        (target("-B2b -b4K x").base_bytes, target("-b4K -T3b -s x").thread_stride_bytes),
        (8192, 12_288)
    );
    assert_eq!(
        (target("-si128K x").interlocked, target("-s x").stride_bytes, target("-r x").random_bytes),
        (true, None, Some(65_536))
    );
    assert_eq!(
        (target("-g500i x").throughput_iops, target("-F2 -O8 x").outstanding),
        (Some(500), 8)
    );
    assert_eq!(
        (target("/w30 /b4K -ag -v -eDISK_IO x").write_percent, target("/dev/x").path),
        (30, "/dev/x".into())
    );
    for (letters, caching, through) in [
        ("-Sr", Caching::Uncached, false),
        ("-S", Caching::Uncached, false),
        ("-Su", Caching::Uncached, false),
        ("-Sb", Caching::Cached, false),
        ("-Sw", Caching::Cached, true),
        ("-Suw", Caching::Uncached, true),
        ("-Sm", Caching::Mapped, false),
        ("-h", Caching::Uncached, true),
    ] {
        let one = target(&format!("{letters} x"));
        assert_eq!((one.caching, one.write_through), (caching, through), "{letters}");
    }
}

#[test]
fn nonsense_and_what_is_not_supported_is_refused_by_name() {
    for (line, said) in [
        ("", "none is named"),
        ("-b0 x", "-b"),
        ("-b-1 x", "-b-1"),
        ("-b4X x", "-b4X"),
        ("-b2G x", "1 GiB"),
        ("-c99999999999999999999 x", "-c9999"),
        ("-c1048576T x", "-c1048576T"),
        ("-d0 x", "-d0: it is not a number from 1"),
        ("-w101 x", "-w101: it is not"),
        ("-t0 x", "-t0: it is not"),
        ("-o x", "-o: it is not a number"),
        ("-r -si x", "-r and -si"),
        ("-B1M:1M -f1M x", "-B and -f: both say"),
        ("-B1M: x", "-B1M:: it is not a size"),
        ("-ag1,0 x", "-ag1,0: processors are in one group here"),
        ("-r -T1M x", "-r and -T"),
        ("-r0 x", "-r and -s"),
        ("-Sbu x", "-Sbu"),
        ("-Nv x", "-Nv: it flushes mapped memory; add -Sm"),
        ("-Sm -Nn x", "-Nn: it flushes persistent memory"),
        ("-Sm -N x", "-N: it has the letter v, n or i; write -Nv"),
        ("-O4 x", "-O4"),
        ("-e x", "-e"),
        ("/nope x", "/nope: unknown option"),
        ("-g10x x", "-g10x: it is not a number"),
        ("-p x", "-p: requests of one thread to the same place"),
        (
            "-A1 x",
            "-A1: the original has no such option; name processors with a small letter: -a0,1",
        ),
        ("-a#0 x", "-a#0: the # only stands for a number"),
        ("-rs101 x", "-rs101: it is not a number from 0 to 100"),
        ("-rdabs10/1b x", "-rdabs10/1b: a range is in bytes"),
        ("-rdabs10/1K x", "-rdabs: 10 % of the requests"),
        ("-rdabs60/1M:50/1M x", "-rdabs: 110 % of the requests"),
        ("-rdx10/1G x", "-rdx10/1G: ranges are in percent or in bytes"),
        ("-rdpct90/10:10/91 x", "-rdpct"),
        ("-rdpct90/101 x", "-rdpct90/101: it is not a number from 1 to 100"),
        ("-rx x", "-rx: it is not a size"),
        ("-si4Q x", "-si4Q: it is not a size"),
        ("/w101 x", "/w101: it is not"),
        ("-a0,x x", "-a0,x: it is not a number"),
        ("-g0i x", "-g0i: it is not a number"),
        ("-z-1 x", "-z-1: it is not a number"),
        ("-j0 x", "-j0: it is not a number"),
        ("-D0 x", "-D0: it is not a number"),
        ("-F0 x", "-F0: it is not a number"),
        ("-q x", "-q: unknown option"),
        ("-k4 x", "-k4: unknown option"),
        ("-Lx x", "-Lx: unknown option"),
        ("-I1 x", "-I1: priorities of requests"),
        ("-P0 x", "-P0: it is not a number"),
        ("-ysGo x", "-ysGo: events of Windows"),
        ("-Rpx x", "-Rpx: unknown option"),
        ("-Sx x", "-Sx: unknown option"),
        ("-eNOPE x", "-eNOPE: these events"),
        ("-Xp.xml /t2", "/t2"),
        ("-rdpct50/100 x", "-rdpct"),
        ("-i10 x", "-i and -j"),
        ("-Zsome x", "-Z"),
        ("-Z4K, x", "file's name"),
        ("-F2 -t3 x y", "-F2 and -t3: threads are shared"),
        ("-F2 -O4 -g1000 x y", "-O and -g"),
        ("-F2 -O4 -i8 -j2 x y", "-O and -g, -i or -j"),
        ("-B1M -f1M x", "-B and -f"),
        ("-Xp.xml -t2", "-t2"),
        ("--nope x", "--nope"),
        ("-", "-: an option is missing"),
    ] {
        let error = parse(&words(line)).map_or_else(
            |error| error.to_string(),
            |options| panic!("{line} was taken as {options}"),
        );
        assert!(error.contains(said), "{line}: {error}");
    }
    assert!(parse(&["a\0b".into()]).unwrap_err().to_string().contains("NUL"));
}

#[test]
fn the_workload_is_what_the_target_says() {
    let span = TimeSpan { duration_s: 2, ..TimeSpan::default() };
    let of = |line: &str| target(line).workload(&span, 1, 1 << 20, &ENGINES).unwrap();
    let plain = of("x");
    assert_eq!(
        (plain.pattern, plain.request_bytes, plain.depth, plain.engine),
        (Pattern::Seq, 65_536, 2, Engine::IoUring)
    );
    assert_eq!(
        (plain.buffering, plain.stop, plain.region_bytes),
        (Buffering::Buffered, Stop::AfterNs(2_000_000_000), Some(1 << 20))
    );
    assert_eq!(of("-o1 -Sh x").engine, Engine::Sync);
    assert_eq!((of("-Sm x").engine, of("-Sm x").depth), (Engine::Mmap, 1));
    // 64 KiB at each multiple of 4 KiB of a MiB: 241 places.
    let random = of("-r4K x");
    assert_eq!((random.pattern, random.region_bytes), (Pattern::Random, Some(241 * 65_536)));
    assert_eq!(of("-s256K x").region_bytes, Some(4 * 65_536));
    assert_eq!((of("-Z -w100 x").data.compressible_percent, of("-w100 x").read_percent), (100, 0));
    assert_eq!(of("-g1024 -b8K x").rate_iops, Some(125.0));
    let error = target("-B2M x").workload(&span, 1, 1 << 20, &ENGINES).unwrap_err();
    assert!(error.to_string().contains("no block of 64 KiB fits"), "{error}");
}

#[test]
fn a_profile_of_the_original() {
    let text = r#"<?xml version="1.0" encoding="UTF-8"?>
      <!-- two spans -->
      <Profile xmlns="http://microsoft.com/diskspd/DiskSpdConfig.xsd">
        <Progress>0</Progress><ResultFormat>xml</ResultFormat><Verbose>false</Verbose>
        <TimeSpans>
          <TimeSpan>
            <CompletionRoutines>false</CompletionRoutines><MeasureLatency>true</MeasureLatency><CalculateIopsStdDev>true</CalculateIopsStdDev>
            <DisableAffinity>false</DisableAffinity><Duration>10</Duration><Warmup>5</Warmup><Cooldown>0</Cooldown><ThreadCount>0</ThreadCount>
            <IoBucketDuration>500</IoBucketDuration><RandSeed>3</RandSeed>
            <Targets><Target>
              <Path>/data/a &amp; b.dat</Path><BlockSize>8192</BlockSize><BaseFileOffset>0</BaseFileOffset><SequentialScan>false</SequentialScan>
              <RandomAccess>false</RandomAccess><TemporaryFile>false</TemporaryFile><UseLargePages>false</UseLargePages>
              <DisableOSCache>true</DisableOSCache><WriteThrough>true</WriteThrough>
              <WriteBufferContent><Pattern>sequential</Pattern></WriteBufferContent><ParallelAsyncIO>false</ParallelAsyncIO>
              <FileSize>1073741824</FileSize><Random>8192</Random><ThreadStride>0</ThreadStride><MaxFileSize>0</MaxFileSize>
              <RequestCount>8</RequestCount><WriteRatio>25</WriteRatio><Throughput>0</Throughput><ThreadsPerFile>4</ThreadsPerFile><IOPriority>3</IOPriority>
            </Target></Targets>
          </TimeSpan>
          <TimeSpan><Targets><Target><Path>b</Path></Target></Targets></TimeSpan>
        </TimeSpans>
      </Profile>"#;
    let profile = read_profile(text).unwrap();
    assert_eq!((profile.format, profile.spans.len()), (Format::Xml, 2));
    let span = &profile.spans[0];
    assert_eq!(
        (span.duration_s, span.interval_ms, span.latency, span.seed),
        (10, Some(500), true, 3)
    );
    let one = &span.targets[0];
    assert_eq!(one.path.to_str(), Some("/data/a & b.dat"));
    assert_eq!(
        (one.random_bytes, one.caching, one.write_through, one.threads, one.write_percent),
        (Some(8192), Caching::Uncached, true, 4, 25)
    );
    assert_eq!(
        profile.spans[1],
        TimeSpan { targets: vec![Target::new("b".into())], ..TimeSpan::default() }
    );
}

#[test]
fn beside_a_profile_some_settings_and_targets_are_taken() {
    let taken = options("-z -Xp.xml -d7 -W0 -C1 -v a b");
    assert!(taken.clock_seeds && taken.file.is_some() && taken.targets.len() == 2);
    let seeded = taken.seeded(1234);
    assert_eq!(seeded.to_string(), "-Xp.xml -d7 -W0 -C1 -z1234 a b", "it can be repeated");
    assert_eq!(options(&seeded.to_string()), seeded);
    assert_eq!(options("-z -d7 a").seeded(1234).profile.spans[0].seed, 1234);
    assert!(parse(&words("-Xp.xml -b4K a")).unwrap_err().to_string().contains("-b4K"));
}

#[test]
fn threads_begin_any_number_of_bytes_apart() {
    let one = target("-F8 -T1b -s8b -b4K x");
    assert_eq!((one.threads, one.thread_stride_bytes, one.stride_bytes), (8, 4096, Some(32_768)));
    let error = target("-t3 -T1b -s8b -b4K x")
        .workload(&TimeSpan::default(), 3, 2 * 4096, &ENGINES)
        .unwrap_err();
    assert!(error.to_string().contains("a thread begins at 8 KiB"), "{error}");
}

#[test]
fn lines_that_the_original_takes_mean_the_same() {
    for (line, same) in [
        ("-B1G:64K x", "-B1G -f1073807360 x"),
        ("-b4K -B1G:2b x", "-b4K -B1G -f1073750016 x"),
        ("-ag0,0,1 x", "-a0,1 x"),
        ("-a0 -a1 x", "-a0,1 x"),
        ("-P100 -vs -I3 -w x", "x"),
        ("-P x", "x"),
        ("-r4K -s64K x", "-r4K x"),
    ] {
        assert_eq!(options(line), options(same), "{line}");
    }
    let large = options("-l x").profile;
    let span = &large.spans[0];
    let memory = |line: &str| target(line).workload(span, 1, 1 << 20, &ENGINES).unwrap().memory;
    assert_eq!((memory("-l x"), memory("x")), (machine::Memory::Huge, machine::Memory::Pages));
    assert_eq!(read_profile(&profile_xml(&large, 0)).unwrap(), large);
    for (line, format) in [("-Rp x", Format::Text), ("-Rpxml x", Format::Xml)] {
        assert!(options(line).profile_only && options(line).profile.format == format, "{line}");
        assert_eq!(options(&options(line).to_string()), options(line));
    }
    let neutral = "<Profile><Progress>5</Progress><Verbose>true</Verbose><TimeSpans><TimeSpan><CompletionRoutines>true</CompletionRoutines>\
                   <Targets><Target><Path>x</Path></Target></Targets></TimeSpan></TimeSpans></Profile>";
    assert_eq!(read_profile(neutral).unwrap(), options("-x x").profile);
}

#[test]
fn a_pool_has_threads_in_total_and_targets_have_weights() {
    let span = options("-F3 -O8 x y").profile.spans.remove(0);
    assert_eq!(span.pool, Some(ThreadPool { threads: 3, outstanding: Some(8) }));
    assert_eq!(
        options("-F3 -o4 x y").profile.spans[0].pool,
        Some(ThreadPool { threads: 3, outstanding: None })
    );
    assert_eq!(
        options("-F3 -O8 x").profile,
        options("-t3 -o8 x").profile,
        "on one target it is all of -t's"
    );
    let profile = |settings: &str, first: &str, second: &str| {
        let target =
            |path: &str, inner: &str| format!("<Target><Path>{path}</Path>{inner}</Target>");
        let targets = target("x", first) + &target("y", second);
        let span = format!("<TimeSpan>{settings}<Targets>{targets}</Targets></TimeSpan>");
        read_profile(&format!("<Profile><TimeSpans>{span}</TimeSpans></Profile>"))
    };
    let pool = "<ThreadCount>2</ThreadCount><RequestCount>32</RequestCount>";
    let own = "<ThreadTargets><ThreadTarget><Thread>1</Thread><Weight>7</Weight></ThreadTarget></ThreadTargets>";
    let read = profile(pool, "<Weight>6000</Weight>", own).unwrap();
    let span = &read.spans[0];
    assert_eq!(span.pool, Some(ThreadPool { threads: 2, outstanding: Some(32) }));
    assert_eq!(
        (span.targets[0].weight, &span.targets[1].thread_weights),
        (6000, &vec![(1, Some(7))])
    );
    assert_eq!(read_profile(&profile_xml(&read, 0)).unwrap(), read);
    for (settings, first, second, said) in [
        (pool, "<Weight>0</Weight>", "", "<Weight>0"),
        (
            pool,
            "<DisableOSCache>true</DisableOSCache>",
            "",
            "y: the threads of a pool reach all targets in the same way",
        ),
        (pool, own, own, "thread 0: no target is for it"),
        (pool, "", &own.replace('1', "2"), "<Thread>2: the pool has 2"),
        (pool, "", "<ThreadsPerFile>4</ThreadsPerFile>", "<ThreadsPerFile>4"),
        (pool, "", "<ThreadTargets><ThreadTarget/></ThreadTargets>", "<Thread> is missing"),
        ("", "", own, "<ThreadTargets>: they are for the threads of a pool"),
        (
            pool,
            "<WriteRatio>1</WriteRatio>",
            "<WriteRatio>1</WriteRatio><WriteBufferContent><Pattern>zero</Pattern></WriteBufferContent>",
            "y: some writes of the pool carry zeros",
        ),
    ] {
        let error = profile(settings, first, second).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(said), "{first} {second}: {error}");
    }
}

#[test]
fn profiles_that_are_none() {
    let within = |inner: &str| {
        format!(
            "<Profile><TimeSpans><TimeSpan><Targets><Target><Path>a</Path>{inner}</Target></Targets></TimeSpan></TimeSpans></Profile>"
        )
    };
    assert!(read_profile(&within("")).is_ok());
    for (text, said) in [
        (String::new(), "not one element"),
        ("no xml".into(), "not one element"),
        ("<Profile>".into(), "ends in the middle"),
        ("<Profile></Other>".into(), "not XML"),
        ("<Other/>".into(), "<Other>"),
        ("<Profile/>".into(), "no time span"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><Profile/>".into(), "document type"),
        (within("<Path>&a;</Path>"), "&a;"),
        (within("<ThinkTime>5</ThinkTime>"), "-i and -j"),
        (within("<Unheard>5</Unheard>"), "<Unheard>"),
        (within("<BlockSize>-4</BlockSize>"), "<BlockSize>-4"),
        (within("<BlockSize>99999999999</BlockSize>"), "<BlockSize>9999"),
        (within("<WriteThrough>maybe</WriteThrough>"), "<WriteThrough>maybe"),
        (within("<Path></Path>\0"), "NUL"),
        ("<a>".repeat(100_000), "too deep"),
    ] {
        let error = read_profile(&text).map_or_else(
            |error| error.to_string(),
            |profile| panic!("{text} was taken as {profile:?}"),
        );
        assert!(error.contains(said) && error.len() < 400, "{text}: {error}");
    }
}

fn word() -> impl Strategy<Value = String> {
    let option = prop::sample::select(vec![
        "-b",
        "-c",
        "-d",
        "-W",
        "-C",
        "-t",
        "-o",
        "-r",
        "-rs",
        "-rdpct90/10:5/",
        "-i",
        "-j",
        "-s",
        "-si",
        "-T",
        "-B",
        "-f",
        "-fr",
        "-fs",
        "-w",
        "-S",
        "-Sb",
        "-Su",
        "-Sh",
        "-Sw",
        "-Sm",
        "-Z",
        "-Zr",
        "-Z64K",
        "-Z2b,data.bin",
        "-g",
        "-L",
        "-D",
        "-a",
        "-n",
        "-z",
        "-Rxml",
        "-Rtext",
        "-X",
        "-F",
        "-O",
        "-h",
        "-p",
        "-Smw",
        "-Sm",
        "-Nv",
        "-rdabs90/1M:5/",
        "-rdpct90/10:5/",
        "--json=",
        "--destroy-data=",
        "--destroy-signature",
        "t",
    ]);
    let value = prop_oneof![
        4 => (0u32..200).prop_map(|n| n.to_string()),
        2 => Just(String::new()),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        2 => "[0-9]{1,2}[KMGTb]",
        1 => "\\PC{0,4}",
    ];
    (option, value).prop_map(|(option, value)| format!("{option}{value}"))
}

fn some_target() -> impl Strategy<Value = Target> {
    let sizes = (
        1u32..1 << 30,
        0u64..1 << 40,
        prop::option::of(1u64..1 << 40),
        prop::option::of(1u64..1 << 40),
    );
    let counts = (1u32..300, 1u32..1024, 0u8..=100, prop::option::of(1u32..1000));
    ("[a-z&<>'\" ]{0,6}[a-z]", sizes, counts, 0u8..12).prop_map(
        |(path, (block, base, places, create), (outstanding, threads, write, rate), kind)| Target {
            block_bytes: block,
            base_bytes: base,
            random_bytes: places.filter(|_| kind % 2 == 0),
            random_percent: Some(30).filter(|_| kind == 2),
            ranges: match kind {
                4 => percent(&[(90, 10), (5, 20)]),
                6 => vec![(90, RangeLength::Bytes(1 << 30)), (5, RangeLength::Bytes(1 << 31))],
                _ => Vec::new(),
            },
            burst: Some(8).filter(|_| kind > 9),
            pause_ms: Some(20).filter(|_| kind > 9),
            stride_bytes: places.filter(|_| kind % 2 == 1),
            interlocked: kind == 5,
            create_bytes: create,
            outstanding,
            threads,
            write_percent: write,
            throughput_bytes_per_ms: rate.filter(|_| kind < 6),
            throughput_iops: rate.filter(|_| kind >= 6),
            caching: [Caching::Cached, Caching::Uncached, Caching::Mapped][usize::from(kind % 3)],
            write_through: kind > 6,
            hint: [Hint::None, Hint::Random, Hint::Sequential][usize::from(kind / 4)],
            source: if kind > 8 { Source::Zero } else { Source::Random },
            // Blanks around a name are not kept by XML's readers of text.
            ..Target::new(path.trim_start().into())
        },
    )
}

fn percent(ranges: &[(u8, u8)]) -> Vec<(u8, RangeLength)> {
    ranges.iter().map(|(requests, of)| (*requests, RangeLength::Percent(*of))).collect()
}

#[test]
fn ranges_may_be_in_bytes() {
    let one = target("-b4K -rdabs90/1M:5/2G x");
    let ranges = [(90, RangeLength::Bytes(1 << 20)), (5, RangeLength::Bytes(2 << 30))];
    assert_eq!((one.random_bytes, &one.ranges[..]), (Some(4096), &ranges[..]));
    let text = "<Profile><TimeSpans><TimeSpan><Targets><Target><Path>x</Path><BlockSize>4096</BlockSize>\
                <Random>4096</Random><Distribution><Absolute><Range IO=\"90\">1048576</Range>\
                <Range IO=\"5\">2147483648</Range></Absolute></Distribution>\
                </Target></Targets></TimeSpan></TimeSpans></Profile>";
    let read = read_profile(text).unwrap().spans.remove(0).targets.remove(0);
    assert_eq!(read.ranges, one.ranges);
}

#[test]
fn writes_to_mapped_memory_can_wait_for_stable_storage() {
    let of = |line: &str| {
        let one = target(line);
        (one.caching, one.write_through)
    };
    assert_eq!(of("-Smw x"), (Caching::Mapped, true));
    assert_eq!(of("-Sm -Nv x"), (Caching::Mapped, true));
    assert_eq!(of("-Sm x"), (Caching::Mapped, false));
}

#[test]
fn part_of_the_requests_is_random_and_ranges_have_shares() {
    let one = target("-b8K -rs70 -rdpct90/10:5/20 -i32 -j5 x");
    assert_eq!(
        (one.random_bytes, one.random_percent, one.ranges),
        (Some(8192), Some(70), percent(&[(90, 10), (5, 20)]))
    );
    assert_eq!((one.burst, one.pause_ms), (Some(32), Some(5)));
    assert_eq!((target("-rs100 -r4K x"), target("-rs0 x")), (target("-r4K x"), target("x")));
    // As VMFleet's profiles have them.
    let text = "<Profile><TimeSpans><TimeSpan><Targets><Target><Path>x</Path><BlockSize>8192</BlockSize>\
                <RandomRatio>80</RandomRatio><BurstSize>4</BurstSize><ThinkTime>2</ThinkTime>\
                <Distribution><Percent><Range IO=\"95\">5</Range><Range IO=\"4\">10</Range></Percent></Distribution>\
                </Target></Targets></TimeSpan></TimeSpans></Profile>";
    let read = read_profile(text).unwrap().spans.remove(0).targets.remove(0);
    assert_eq!(
        (read.random_bytes, read.random_percent, read.ranges),
        (Some(8192), Some(80), percent(&[(95, 5), (4, 10)]))
    );
    assert_eq!((read.burst, read.pause_ms), (Some(4), Some(2)));
}

#[test]
fn a_profile_keeps_a_source_of_any_size() {
    let options = parse(&["-Z2T".to_string(), "t0".to_string()]).unwrap();
    assert_eq!(read_profile(&profile_xml(&options.profile, 0)).ok(), Some(options.profile));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn every_accepted_command_line_round_trips(words in prop::collection::vec(word(), 0..8)) {
        if let Ok(options) = parse(&words) {
            prop_assert_eq!(parse(&options.words()).ok(), Some(options.clone()), "{:?} came back as {}", words, options);
            if options.file.is_none() {
                prop_assert_eq!(read_profile(&profile_xml(&options.profile, 0)).ok(), Some(options.profile));
            }
        }
    }

    #[test]
    fn every_profile_round_trips(targets in prop::collection::vec(some_target(), 1..3), latency: bool, interval in prop::option::of(1u32..5000), processors in prop::collection::vec(0u32..64, 0..3)) {
        let profile = Profile { spans: vec![TimeSpan { targets, latency, interval_ms: interval, processors, ..TimeSpan::default() }], format: Format::Text };
        if profile.check().is_ok() {
            prop_assert_eq!(read_profile(&profile_xml(&profile, 4)).ok(), Some(profile));
        }
    }

    #[test]
    fn no_text_panics(words in prop::collection::vec(any::<String>(), 0..5), text in any::<String>(), xml in "(<[a-zA-Z]{0,8}/?>|</[a-zA-Z]{0,8}>|&[a-z#0-9]{0,4};?|[a-z0-9 ]{0,4}|<!\\[CDATA\\[|\\]\\]>|<!--|-->){0,12}") {
        let _ = (parse(&words), read_profile(&text), read_profile(&xml));
    }
}
