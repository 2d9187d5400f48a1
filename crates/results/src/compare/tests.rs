use super::*;
use std::fs;

fn program() -> Program {
    Program { name: "halfpower".into(), version: "0".into(), arguments: Vec::new() }
}

fn published(name: &str) -> Comparison {
    let path = format!("{}/../dialect/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let sides = read_table(name, &fs::read_to_string(path).unwrap(), None, &[]).unwrap();
    let [a, b] = &sides[..] else { panic!("two sides: {sides:?}") };
    compare(a, b, program(), WORTH_PERCENT)
}

#[test]
fn the_alignment_study_matches_its_publication() {
    let comparison = published("sqlio_partition_alignment.csv");
    assert_eq!((comparison.a.as_str(), comparison.b.as_str()), ("31.5KB offset", "64KB offset"));
    assert_eq!(comparison.of(Measure::Iops).count(), 36);
    let mean = |kind: Option<&str>| {
        let one = |one: &&Summary| one.measure == Measure::Iops && one.kind.as_deref() == kind;
        let summary = comparison.summaries.iter().find(one).unwrap();
        ((summary.mean_percent * 10.0).round() / 10.0, summary.verdict)
    };
    assert_eq!(mean(None), (13.2, Verdict::Better));
    for (kind, percent) in [
        ("random reads", 22.7),
        ("random writes", 16.5),
        ("sequential reads", 5.8),
        ("sequential writes", 8.0),
    ] {
        assert_eq!(mean(Some(kind)), (percent, Verdict::Better), "{kind}");
    }
    let first = comparison.of(Measure::Iops).next().unwrap();
    assert_eq!(
        (first.a, first.b, (first.change_percent * 100.0).round()),
        (400.45, 589.11, 4711.0)
    );
    assert_eq!(first.verdict, Verdict::Untold, "single values give no interval");
    let all = comparison.sentences.join(" ");
    assert!(
        all.contains(
            "64KB offset is 12.9 % faster than 31.5KB offset in the geometric mean over 36 points"
        ),
        "{all}"
    );
    assert!(
        all.contains("random reads +22.4 %") && all.contains("sequential writes +7.9 %"),
        "{all}"
    );
}

#[test]
fn the_allocation_unit_makes_no_difference() {
    let comparison = published("sqlio_allocation_unit.csv");
    let all = comparison.sentences.join(" ");
    assert!(
        all.starts_with(
            "No difference between 64KB unit and 4KB unit: -0.4 % in the geometric mean"
        ),
        "{all}"
    );
    assert!(all.contains("No kind's mean change reaches the 2 %"), "{all}");
}

fn side(name: &str, rates: &[(&str, &[f64])]) -> Side {
    let asked = rates.iter().map(|(question, runs)| Measurement {
        question: (*question).into(),
        label: (*question).into(),
        readings: vec![Reading::of_runs(Measure::Iops, runs.to_vec())],
        ..Measurement::default()
    });
    Side { name: name.into(), asked: asked.collect(), warnings: Vec::new() }
}

#[test]
fn questions_are_paired_and_the_rest_is_listed() {
    let a = side(
        "a",
        &[("one", &[100.0, 101.0, 99.0]), ("two", &[10.0, 10.1, 9.9]), ("gone", &[1.0, 1.1])],
    );
    let b = side(
        "b",
        &[("two", &[12.0, 12.1, 11.9]), ("one", &[100.5, 99.5, 100.0]), ("new", &[1.0, 1.1])],
    );
    let comparison = compare(&a, &b, program(), 2.0);
    let verdicts: Vec<_> =
        comparison.differences.iter().map(|one| (one.label.as_str(), one.verdict)).collect();
    assert_eq!(verdicts, [("one", Verdict::NoDifference), ("two", Verdict::Better)]);
    assert_eq!(
        (comparison.only_a, comparison.only_b),
        (vec!["gone".to_string()], vec!["new".to_string()])
    );
    let nothing =
        compare(&side("a", &[("x", &[1.0])]), &side("b", &[("y", &[1.0])]), program(), 2.0);
    assert!(nothing.sentences[0].contains("no question in common"), "{:?}", nothing.sentences);
}

#[test]
fn a_tiny_significant_change_is_no_difference() {
    let a = side("a", &[("one", &[1000.0, 1000.1, 999.9])]);
    let b = side("b", &[("one", &[1010.0, 1010.1, 1009.9])]);
    assert_eq!(compare(&a, &b, program(), 2.0).differences[0].verdict, Verdict::NoDifference);
    assert_eq!(compare(&a, &b, program(), 0.5).differences[0].verdict, Verdict::Better);
}

#[test]
fn many_questions_are_corrected_for() {
    // By itself each is significant (p about 0.03), but one in 20 is expected by chance.
    let names: Vec<String> = (0..20).map(|number| format!("question {number}")).collect();
    let runs: [&[f64]; 2] = [&[100.0, 103.0, 97.0], &[107.2, 110.2, 104.2]];
    let all = |runs: &'static [f64]| {
        names.iter().map(move |name| (name.as_str(), runs)).collect::<Vec<_>>()
    };
    let leaked: [&'static [f64]; 2] = runs.map(|runs| &*runs.to_vec().leak());
    let one =
        compare(&side("a", &all(leaked[0])[..1]), &side("b", &all(leaked[1])[..1]), program(), 2.0);
    let many = compare(&side("a", &all(leaked[0])), &side("b", &all(leaked[1])), program(), 2.0);
    assert_eq!(one.differences[0].verdict, Verdict::Better, "{one:?}");
    assert!(many.differences.iter().all(|one| one.verdict == Verdict::NoDifference));
    assert_eq!(many.summaries[0].verdict, Verdict::Better, "together they leave no doubt");
}

#[test]
fn only_significant_losses_fail_a_threshold() {
    let a = side(
        "a",
        &[("one", &[100.0, 101.0, 99.0]), ("two", &[10.0]), ("three", &[50.0, 50.1, 49.9])],
    );
    let b =
        side("b", &[("one", &[90.0, 91.0, 89.0]), ("two", &[5.0]), ("three", &[60.0, 60.1, 59.9])]);
    let comparison = compare(&a, &b, program(), 2.0);
    let fails = |text: &str| text.parse::<FailIf>().unwrap().failed(&comparison).len();
    assert_eq!((fails("slower:5%"), fails("slower:15"), fails("p99:1%")), (1, 0, 0));
    for wrong in ["slower", "quick:5%", "slower:x", "slower:-1%"] {
        assert!(wrong.parse::<FailIf>().unwrap_err().contains("slower:5%"));
    }
}

#[test]
fn a_longer_total_time_fails_a_threshold() {
    let timed = |name: &str, seconds: [f64; 3]| {
        let runs = seconds.map(|seconds| seconds * 1e9).to_vec();
        let time = Reading::of_runs(Measure::Duration, runs);
        let whole =
            Measurement { question: "run".into(), readings: vec![time], ..Measurement::default() };
        Side { name: name.into(), asked: vec![whole], ..Side::default() }
    };
    let comparison = compare(
        &timed("a", [159.0, 160.0, 158.0]),
        &timed("b", [181.0, 182.0, 180.0]),
        program(),
        2.0,
    );
    let fails = |text: &str| text.parse::<FailIf>().unwrap().failed(&comparison).len();
    assert_eq!((fails("slower:5%"), fails("slower:20%")), (1, 0));
    assert!(
        comparison.sentences[0].starts_with("b takes 181 s in total, a 159 s: +13.8 %"),
        "{:?}",
        comparison.sentences
    );
}

#[test]
fn tables_with_one_side_intervals_and_repeats() {
    let ours = "point,op,seed,throughput_bytes_per_s,throughput_bytes_per_s_low_95,throughput_bytes_per_s_high_95,error\r\n\
                0,read,1,1000,990,1010,\r\n1,write,1,,,,no space\r\n";
    let sides = read_table("x.csv", ours, None, &[]).unwrap();
    let [one] = &sides[..] else { panic!("one side: {sides:?}") };
    assert_eq!(one.asked[0].question, "op=read", "neither its row nor its seed");
    assert_eq!(one.asked[0].readings[0].interval_95, Some([990.0, 1010.0]));
    assert_eq!(one.asked[1].error.as_deref(), Some("no space"));
    let repeats = read_table("x.csv", "op,IOPS\nread,10\nread,12\n", None, &[]).unwrap();
    assert_eq!(repeats[0].asked[0].readings[0].runs, [10.0, 12.0]);
    let columns = Columns { a: "old".into(), b: "new".into() };
    let text = "case,old,new\nx,10,12\n";
    let error = read_table("x.csv", text, Some(&columns), &[]).unwrap_err().to_string();
    assert!(error.contains("'old'") && error.contains("--measure"), "{error}");
    let meanings = ["old=iops", "new=iops"].map(|text| text.parse().unwrap());
    let named = read_table("x.csv", text, Some(&columns), &meanings).unwrap();
    assert_eq!((named[0].name.as_str(), named[1].asked[0].readings[0].value), ("old", 12.0));
    for (text, words) in [
        ("a,b\n1,2\n", "no column holds"),
        ("op,iops\nread,fast\n", "'fast'"),
        ("a,iops\n1\n", "CSV"),
    ] {
        let error = read_table("x.csv", text, None, &[]).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let missing = Columns { a: "old".into(), b: "gone".into() };
    assert!(
        read_table("x.csv", "case,old\nx,1\n", Some(&missing), &meanings[..1])
            .unwrap_err()
            .to_string()
            .contains("'gone'")
    );
}

#[test]
fn a_column_that_may_hold_a_measure_is_asked_about() {
    let read = |text: &str, meanings: &[&str]| {
        let meanings: Vec<Meaning> = meanings.iter().map(|text| text.parse().unwrap()).collect();
        read_table("x.csv", text, None, &meanings)
    };
    // The name or the values suggest a measure.
    for text in
        ["case,bandwidth,iops\nx,20,5\n", "case,y,iops\nx,20.5,5\n", "Total MB/sec,iops\n7,5\n"]
    {
        let error = read(text, &[]).unwrap_err().to_string();
        assert!(error.contains("--measure"), "{error}");
    }
    let whole = "case,depth,iops\nx,8,5\n";
    assert_eq!(read(whole, &[]).unwrap()[0].asked[0].keys.len(), 2);
    let text = "case,y,iops\nx,20.5,5\n";
    let as_measure = &read(text, &["y=MiB/s"]).unwrap()[0];
    assert_eq!(as_measure.asked[0].question, "case=x");
    let readings: Vec<(Measure, f64)> =
        as_measure.asked[0].readings.iter().map(|one| (one.measure, one.value)).collect();
    assert_eq!(readings, [(Measure::Throughput, 20.5 * 1_048_576.0), (Measure::Iops, 5.0)]);
    let as_setting = &read(text, &["y=setting"]).unwrap()[0];
    assert_eq!(as_setting.asked[0].question, "case=x y=20.5");
    assert!(read(text, &["z=iops"]).unwrap_err().to_string().contains("'z'"));
    assert!("y=fast".parse::<Meaning>().unwrap_err().contains("p99_us"));
}
