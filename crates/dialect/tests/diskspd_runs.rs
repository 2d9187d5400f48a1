//! Whole runs on this computer, short and in small files.

mod mounted;

use dialect::diskspd::{DiskspdResult, Profile, ThreadResult, parse, profile, run, text, xml};
use host::Host;
use machine::Error;
use mounted::Mounted;
use std::path::Path;
use std::sync::atomic::AtomicBool;

static NEVER: AtomicBool = AtomicBool::new(false);

fn ran(line: &str) -> Result<(Profile, DiskspdResult), Error> {
    let options = parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>()).unwrap();
    let profile = profile(&options)?;
    let result = run(&Host::new(&NEVER), &options, &profile, 0)?;
    Ok((profile, result))
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_mix_on_a_file_that_is_made_and_then_read() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("t.dat");
    let (_, result) =
        ran(&format!("-c2M -d1 -W0 -b8K -r4K -w40 -t2 -o4 -L -D200 {}", file.display())).unwrap();
    let span = &result.spans[0];
    assert_eq!(span.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [0, 1]);
    for thread in &span.threads {
        let (reads, writes) = (&thread.reads, &thread.writes);
        assert!(reads.requests > 0 && writes.requests > 0);
        assert_eq!((reads.bytes, reads.latency.count()), (reads.requests * 8192, reads.requests));
        assert!(
            reads.intervals.len() >= 4 && reads.intervals.iter().sum::<u64>() <= reads.requests
        );
        let known = reads.interval_latencies.iter().filter(|interval| interval.requests > 0);
        assert!(known.clone().count() > 0);
        for interval in known {
            assert!(interval.min_ns > 0 && interval.min_ns <= interval.mean_ns() as u64 + 1);
            assert!(
                interval.max_ns as f64 >= interval.mean_ns()
                    && interval.max_ns <= reads.latency.max()
            );
        }
    }
    let sum: u64 =
        span.threads.iter().map(|thread| thread.reads.requests + thread.writes.requests).sum();
    assert_eq!(span.points[0].numbers.as_ref().unwrap().achieved.requests, sum);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 2 << 20);
    ran(&format!("-d1 -w1 -W0 {}", file.display())).expect("what it made it may write");
    let before = std::fs::read(&file).unwrap();
    // From here on it is the user's.
    std::fs::write(&file, &before).unwrap();
    let error = ran(&format!("-d1 -w1 {}", file.display())).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("--destroy-data"), "{error}");
    let (_, read) = ran(&format!("-d1 -W0 -b16K -s32K -t2 -T64K -Sm {}", file.display())).unwrap();
    assert_eq!(read.spans[0].threads.len(), 2);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_profile_of_two_spans_over_two_files_in_the_spans_order() {
    let here = tempfile::tempdir().unwrap();
    let path = |name: &str| here.path().join(name).display().to_string();
    let target = |name: &str, threads: u32| {
        let path = path(name);
        format!(
            "<Target><Path>{path}</Path><FileSize>1048576</FileSize><BlockSize>4096</BlockSize><ThreadsPerFile>{threads}</ThreadsPerFile></Target>"
        )
    };
    let span = |targets: String| {
        format!(
            "<TimeSpan><Duration>1</Duration><Warmup>0</Warmup><Targets>{targets}</Targets></TimeSpan>"
        )
    };
    let spans = span(target("a", 1) + &target("b", 2)) + &span(target("b", 1) + &target("a", 1));
    let profile = here.path().join("p.xml");
    std::fs::write(&profile, format!("<Profile><TimeSpans>{spans}</TimeSpans></Profile>")).unwrap();
    let (read, result) = ran(&format!("-X{}", profile.display())).unwrap();
    assert_eq!((read.spans.len(), result.spans.len()), (2, 2));
    let paths = |index: usize| {
        result.spans[index].threads.iter().map(|thread| thread.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(paths(0), [path("a"), path("b"), path("b")]);
    assert_eq!(paths(1), [path("b"), path("a")]);
    assert_eq!(entries(here.path()), 3, "files made under a name stay");
}

/// VMFleet's way: `*1` twice in the profile, the target on the command line.
#[test]
fn a_template_of_two_targets_on_one_file() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("t.dat");
    ran(&format!("-c1M -d1 -W0 {}", file.display())).unwrap();
    let target = |block: u32, inner: &str| {
        format!(
            "<Target><Path>*1</Path><BlockSize>{block}</BlockSize><RequestCount>2</RequestCount>{inner}</Target>"
        )
    };
    let targets =
        target(32_768, "<WriteRatio>100</WriteRatio><Throughput unit=\"IOPS\">50</Throughput>")
            + &target(8192, "<Random>8192</Random><RandomRatio>80</RandomRatio>");
    let profile = here.path().join("p.xml");
    let text = format!(
        "<Profile><TimeSpans><TimeSpan><Duration>60</Duration><Warmup>300</Warmup><Targets>{targets}</Targets></TimeSpan></TimeSpans></Profile>"
    );
    std::fs::write(&profile, text).unwrap();
    let line = format!("-z -X{} -d1 -W0", profile.display());
    let (read, result) = ran(&format!("{line} {}", file.display())).unwrap();
    assert_eq!(read.spans[0].targets.iter().filter(|target| target.path == file).count(), 2);
    let (threads, points) = (&result.spans[0].threads, &result.spans[0].points);
    assert_eq!((threads.len(), points.len()), (2, 2));
    assert!(threads[0].writes.requests > 0 && threads[0].reads.requests == 0);
    assert!(threads[1].reads.requests > 0 && threads[1].writes.requests == 0);
    assert_eq!(threads[1].reads.bytes, threads[1].reads.requests * 8192);
    for (targets, said) in [
        (String::new(), "names 0"),
        (format!("{0} {0}", file.display()), "no target of the profile is *2"),
    ] {
        let error = ran(&format!("{line} {targets}")).map(|_| ()).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(said), "{error}");
    }
}

/// As Set-FleetProfile of VMFleet rewrites targets that had rates.
#[test]
fn a_pool_of_threads_asks_its_targets_by_their_weights() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("t.dat");
    let target = |weight: u32, inner: &str| {
        format!(
            "<Target><Path>*1</Path><FileSize>4194304</FileSize><DisableOSCache>true</DisableOSCache>\
             <WriteThrough>true</WriteThrough><Weight>{weight}</Weight>{inner}</Target>"
        )
    };
    let targets = target(
        6000,
        "<BlockSize>8192</BlockSize><Random>8192</Random><MaxFileSize>2097152</MaxFileSize>",
    ) + &target(
        300,
        "<BlockSize>32768</BlockSize><StrideSize>32768</StrideSize><InterlockedSequential>true</InterlockedSequential>\
             <BaseFileOffset>2097152</BaseFileOffset><WriteRatio>100</WriteRatio>",
    );
    let profile = here.path().join("p.xml");
    let text = format!(
        "<Profile><TimeSpans><TimeSpan><MeasureLatency>true</MeasureLatency><ThreadCount>2</ThreadCount><RequestCount>32</RequestCount>\
         <Duration>1</Duration><Warmup>0</Warmup><Targets>{targets}</Targets></TimeSpan></TimeSpans></Profile>"
    );
    std::fs::write(&profile, text).unwrap();
    let (read, result) = ran(&format!("-X{} {}", profile.display(), file.display())).unwrap();
    let span = &result.spans[0];
    assert_eq!(span.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [0, 0, 1, 1]);
    let all = |of: fn(&ThreadResult) -> u64| span.threads.iter().map(of).sum::<u64>() as f64;
    let (reads, writes) =
        (all(|thread| thread.reads.requests), all(|thread| thread.writes.requests));
    let (share, expected) = (writes / (reads + writes), 300.0 / 6300.0);
    let error = (expected * (1.0 - expected) / (reads + writes)).sqrt();
    assert!(
        (share - expected).abs() < 6.0 * error + 64.0 / (reads + writes),
        "{writes} of {}",
        reads + writes
    );
    for thread in &span.threads {
        let (reads, writes) = (&thread.reads, &thread.writes);
        assert_eq!((reads.bytes, writes.bytes), (reads.requests * 8192, writes.requests * 32_768));
        assert_eq!(
            (reads.latency.count(), writes.latency.count()),
            (reads.requests, writes.requests)
        );
        assert!((reads.requests > 0) != (writes.requests > 0), "each target does its own");
    }
    let shown = xml(&read, &result);
    assert_eq!((shown.matches("<Thread>").count(), shown.matches("<IOCount>").count()), (2, 4));
    assert!(
        shown.contains("<ThreadCount>2</ThreadCount>\n    <RequestCount>32</RequestCount>"),
        "{shown}"
    );
}

#[test]
fn each_thread_of_a_pool_keeps_its_requests_outstanding_over_all_targets() {
    let here = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| here.path().join(name).display().to_string());
    let depth = |result: &DiskspdResult| -> f64 {
        result.spans[0]
            .points
            .iter()
            .map(|point| point.numbers.as_ref().unwrap().achieved.mean_depth)
            .sum()
    };
    let (profile, result) = ran(&format!("-c4M -d1 -W0 -b4K -r -Sh -F2 -O4 {a} {b}")).unwrap();
    assert!(
        (depth(&result) - 8.0).abs() < 0.5,
        "2 threads with 4 requests each, not {}",
        depth(&result)
    );
    let by_target = |path: &str| {
        let of = result.spans[0].threads.iter().filter(|thread| thread.path == path);
        of.map(|thread| thread.reads.requests).sum::<u64>() as f64
    };
    let halves = by_target(&a) / (by_target(&a) + by_target(&b));
    assert!((halves - 0.5).abs() < 0.05, "{halves} of the requests went to the first");
    let said = text(&profile, &result);
    for line in [
        "thread pool with 2 threads",
        "relative IO weight in thread pool: 1",
        "request count:\t\t4",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // Without -O each target has -o of each thread, and -g is of each, too.
    let (_, result) = ran(&format!("-c4M -d1 -W0 -b4K -r -Sh -F2 -o3 {a} {b}")).unwrap();
    assert!((depth(&result) - 12.0).abs() < 0.7, "{}", depth(&result));
    let (_, result) = ran(&format!("-c4M -d1 -W0 -b4K -r -Sh -F2 -o3 -g100i {a} {b}")).unwrap();
    for thread in &result.spans[0].threads {
        assert!(thread.reads.requests.abs_diff(100) <= 3, "{} of 100", thread.reads.requests);
    }
    // One request at a time needs no other engine than a blocking call, and mapped files are copied
    // from in turn.
    for line in ["-Sh -F2 -O1", "-Sm -F2 -O4", "-Sm -F1 -o2"] {
        let (_, result) = ran(&format!("-c4M -d1 -W0 -b4K -r {line} {a} {b}")).unwrap();
        assert!(result.spans[0].threads.iter().all(|thread| thread.reads.requests > 0), "{line}");
    }
}

#[test]
fn threads_in_stripes_write_every_block() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("t.dat");
    ran(&format!("-c256K -d1 -W0 {}", file.display())).unwrap();
    ran(&format!("-d1 -W0 -b4K -w100 -Z -F8 -T1b -s8b -o1 {}", file.display())).unwrap();
    let written = std::fs::read(&file).unwrap();
    assert_eq!(
        written.chunks(4096).position(|block| block.iter().any(|byte| *byte != 0)),
        None,
        "left out"
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let here = tempfile::tempdir().unwrap();
    let there = here.path().display();
    for (line, said) in [
        (format!("-d1 {there}/none"), "make it with -c<size>"),
        (format!("-d1 -c1M {there}/no/where"), "make it first"),
        (format!("-d1 -c1M -b4M {there}/small"), "no block of 4 MiB fits"),
        (format!("-X{there}/none.xml"), "none.xml"),
        (format!("-d1 -c1M {there} --destroy-data /dev/null"), "/dev/null"),
        (format!("-d1 -W0 -c1M -a1000 {there}"), "processors 1000"),
    ] {
        let error = ran(&line).map(|_| ()).expect_err(&line);
        assert!(error.is_usage() && error.to_string().contains(said), "{line}: {error}");
        assert_eq!(entries(here.path()), 0, "{line}");
    }
}

#[test]
fn a_disk_that_is_full_leaves_no_file() {
    let Some(small) = Mounted::tmpfs("1536k") else { return };
    let there = small.path().display();
    assert!(ran(&format!("-d1 -c4M {there}/a")).is_err());
    assert_eq!(entries(small.path()), 0);
    // Each file by itself would fit.
    assert!(ran(&format!("-d1 -c1M {there}/a {there}/b")).is_err());
    assert_eq!(entries(small.path()), 0);
}

#[test]
fn writes_carry_the_data_of_a_file() {
    let here = tempfile::tempdir().unwrap();
    let (data, file) = (here.path().join("data"), here.path().join("t.dat"));
    std::fs::write(&data, b"abcde").unwrap();
    // Seven bytes of it, again and again.
    let (profile, _) = ran(&format!(
        "-c64K -d1 -W0 -b4K -w100 -o1 -t1 -Sb -Z7,{} {}",
        data.display(),
        file.display()
    ))
    .unwrap();
    assert_eq!(profile.spans[0].targets[0].source_bytes, Some(7));
    let written = std::fs::read(&file).unwrap();
    let wanted: Vec<u8> = b"abcdeab".iter().copied().cycle().take(2 * 7 + 4096).collect();
    for block in written.chunks(4096) {
        assert!(wanted.windows(4096).take(7).any(|part| part == block), "{:?}", &block[..20]);
    }
    let error = ran(&format!(
        "-c64K -d1 -W0 -w100 -Z1M,{}/none {}",
        here.path().display(),
        here.path().display()
    ))
    .unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("name a file with data"), "{error}");
    assert_eq!(entries(here.path()), 2);
}
