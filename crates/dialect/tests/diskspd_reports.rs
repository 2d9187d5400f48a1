//! diskspd's two forms of results from fixed figures.

use dialect::diskspd::{
    DiskspdResult, Half, Interval, Profile, SpanResult, System, ThreadResult, Topology, parse,
    text, xml,
};
use measure::histogram::Histogram;

fn half(requests: u64, us: u64, intervals: &[u64]) -> Half {
    let mut latency = Histogram::new();
    latency.record_n(us * 1000, requests / 2);
    latency.record_n(us * 3000, requests - requests / 2);
    let interval_latencies = intervals.iter().map(|count| {
        let mut interval = Interval::default();
        (0..*count)
            .for_each(|index| interval.add(if index % 2 == 0 { us * 1000 } else { us * 3000 }));
        interval
    });
    Half {
        requests,
        bytes: requests * 4096,
        latency,
        intervals: intervals.to_vec(),
        interval_latencies: interval_latencies.collect(),
    }
}

fn result(line: &str, writes: bool) -> (Profile, DiskspdResult) {
    let options = parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>()).unwrap();
    let thread = |id: u32| ThreadResult {
        id,
        path: "testfile.dat".into(),
        file_bytes: 10 << 20,
        reads: half(1000 + u64::from(id) * 200, 100, &[600, 400]),
        writes: if writes { half(500, 200, &[250, 250]) } else { Half::default() },
    };
    let span = SpanResult {
        elapsed_ns: 2_000_000_000,
        threads: vec![thread(0), thread(1)],
        processors_percent: vec![[10.0, 30.0, 60.0], [0.5, 1.25, 98.25]],
        points: Vec::new(),
    };
    let result = DiskspdResult {
        interrupted: false,
        command: options.to_string(),
        system: System {
            computer: "north".into(),
            processors: 2,
            topology: Some(Topology { cores: 2, nodes: 1, sockets: 1 }),
            began_unix_s: 1_725_847_362,
        },
        spans: vec![span],
        warnings: vec!["so it is".into()],
        target: None,
    };
    (options.profile, result)
}

#[test]
fn text_with_latencies_and_spread() {
    let (profile, result) =
        result("-b4K -d2 -W1 -r -w30 -t2 -o8 -Sh -L -D1000 -c10M testfile.dat", true);
    insta::assert_snapshot!(text(&profile, &result));
}

#[test]
fn text_of_reads_alone_without_latencies() {
    let (profile, result) = result("-b4K -d2 -t2 -T1M -B1M -f8M -Z -g100 testfile.dat", false);
    insta::assert_snapshot!(text(&profile, &result));
}

#[test]
fn latencies_of_what_was_not_done_are_not_available() {
    let (profile, result) = result("-b4K -d2 -L -t2 testfile.dat", false);
    let text = text(&profile, &result);
    assert!(text.contains("    min |      0.100 |        N/A |      0.100\n"), "{text}");
}

#[test]
fn xml_with_latencies_and_spread() {
    let (profile, result) =
        result("-b4K -d2 -W1 -r -w30 -t2 -o8 -Sh -L -D1000 -Rxml testfile.dat", true);
    let text = xml(&profile, &result);
    // 101 buckets of whole percentiles are as dull as the others.
    let (mut shown, mut dull) = (String::new(), 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let percentile = lines.peek().and_then(|next| {
            next.trim()
                .strip_prefix("<Percentile>")?
                .strip_suffix("</Percentile>")?
                .parse::<f64>()
                .ok()
        });
        if line.trim() == "<Bucket>"
            && percentile.is_some_and(|percent| {
                percent.fract() == 0.0 && ![0.0, 50.0, 100.0].contains(&percent)
            })
        {
            dull += 1;
            while lines.next().is_some_and(|line| line.trim() != "</Bucket>") {}
        } else {
            shown += &format!("{line}\n");
        }
    }
    assert_eq!(dull, 98);
    insta::assert_snapshot!(shown);
}
