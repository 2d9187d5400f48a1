//! fio's language: accepted text round-trips, other text gives one clear error, and none causes a
//! panic.

mod words;

use dialect::fio::{Amount, Command, Distribution, FioError, JobFile, Plan, SyncMode, World};
use machine::Engine;
use proptest::prelude::*;
use std::io;
use std::path::Path;
use words::words;
use workload::SizeMix;

fn nothing(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::NotFound.into())
}

fn variable(name: &str) -> Option<String> {
    match name {
        "SIZE" => Some("64m".into()),
        "LIST" => Some("a;b".into()),
        "NESTED" => Some("${SIZE}".into()),
        _ => None,
    }
}

const WORLD: World<'static> = World { read: &nothing, variable: &variable };

fn parse(text: &str) -> Result<JobFile, FioError> {
    JobFile::parse(text.as_bytes(), Path::new("jobs.fio"), &WORLD)
}

fn plan(text: &str) -> Result<Plan, FioError> {
    Plan::new(&parse(text)?.sections, &[])
}

fn refused(text: &str) -> String {
    match plan(text) {
        Ok(plan) => panic!("accepted: {text:?} as {plan:?}"),
        Err(error) => {
            assert!(error.is_usage());
            error.to_string()
        }
    }
}

#[test]
fn options_parse() {
    let plan = plan(
        "; a comment\n[global]\nsize=${SIZE} ; another\nbs=8k\ndirect=1\nioengine=libaio\n\n[first]\nrw=randrw\nrwmixread=70\niodepth=16\nnumjobs=4\n\
         runtime=1m30s\ntime_based\n[together]\nrw=write\nfilename=/data/x\\:y\noffset=25%\nfdatasync=8\n\
         [after]\nstonewall\nrw=randread\nrandom_distribution=zipf:1.2\nrate_iops=500\nblocksize=4k,16k\nsync=dsync\npercentile_list=99:50:99.9\n",
    )
    .unwrap();
    assert_eq!(plan.groups.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    let [first, together, after] = plan.jobs().collect::<Vec<_>>()[..] else {
        panic!("three jobs")
    };
    let options = &first.options;
    assert_eq!(
        (options.read_percent(), options.depth, options.clones, options.time_based),
        (70, 16, 4, true)
    );
    assert_eq!(
        (options.size, options.runtime_ns, options.engine),
        (Some(Amount::Bytes(64 << 20)), 90_000_000_000, Engine::Libaio)
    );
    assert_eq!(
        (first.request_bytes(), first.group_id, together.group_id, after.group_id),
        (8192, 0, 0, 1)
    );
    assert_eq!(
        (together.options.filenames.clone(), together.options.offset),
        (vec!["/data/x:y".to_string()], Amount::Percent(25))
    );
    assert_eq!((together.options.sync_every.data, together.options.read_percent()), (8, 0));
    assert_eq!(
        (after.options.distribution.clone(), after.options.sync, after.request_bytes()),
        (Distribution::Zipf(1.2), SyncMode::Data, 4096)
    );
    assert_eq!(
        (after.rate_iops(), &after.options.percentiles),
        (Some(500.0), &vec![50.0, 99.0, 99.9])
    );
    assert_eq!(plan.global[0], ("size".to_string(), "64m".to_string()));
    assert_eq!(first.given.last(), Some(&("time_based".to_string(), "1".to_string())));
    assert_eq!(plan.warnings, Vec::<String>::new());
}

#[test]
fn wait_for_orders_jobs_by_name() {
    let groups = |text: &str| -> Vec<Vec<String>> {
        let plan = plan(&format!("[global]\nsize=1m\nrw=read\n{text}")).unwrap();
        plan.groups.iter().map(|jobs| jobs.iter().map(|job| job.name.clone()).collect()).collect()
    };
    assert_eq!(groups("[a]\nnumjobs=2\n[b]\nwait_for=a\n[c]\nwait_for=b\n"), [["a"], ["b"], ["c"]]);
    // Both begin when the first has ended; a job waiting for one that ended earlier begins with the
    // others.
    assert_eq!(groups("[a]\n[b]\nwait_for=a\n[c]\nwait_for=a\n"), [vec!["a"], vec!["b", "c"]]);
    assert_eq!(
        groups("[a]\n[b]\nwait_for=a\n[c]\nstonewall\n[d]\n[e]\nwait_for=a\n"),
        [vec!["a"], vec!["b"], vec!["c", "d", "e"]]
    );
    for (text, named) in [
        ("[a]\n[b]\nwait_for=z\n", "wait_for=z: no job before it has this name"),
        ("[a]\n[b]\n[c]\nwait_for=a\n", "it would begin while job 'b' still runs"),
        (
            "[a]\n[b]\nwait_for=a\n[c]\n",
            "it would run at the same time as jobs that wait for others",
        ),
    ] {
        let why = refused(&format!("[global]\nsize=1m\nrw=read\n{text}"));
        assert!(why.contains(named), "{why}");
    }
}

#[test]
fn duplicates_may_repeat_a_working_set() {
    let plan = plan(
        "[global]\nsize=100m\nrw=write\ndedupe_percentage=50\n[few]\n[set]\ndedupe_mode=working_set\n\
         [larger]\ndedupe_mode=working_set\ndedupe_working_set_percentage=20\ndedupe_global=1\n",
    )
    .unwrap();
    let found: Vec<_> = plan
        .jobs()
        .map(|job| &job.options)
        .map(|job| (job.working_set, job.working_set_percent, job.global_set))
        .collect();
    assert_eq!(found, [(false, 5, false), (true, 5, false), (true, 20, true)]);
}

#[test]
fn sizes_distributions_and_rates_parse() {
    let plan = plan(
        "[split]\nsize=1m\nbssplit=4k/60:64k/40,8k/100\nrw=randrw\nrate_iops=300,100\nrwmixread=75\nrandom_distribution=normal:10:0.25\nstartdelay=1-3\n\
         [range]\nstonewall\nsize=1m\nbsrange=4k-16k,8k\nrw=write\nfilesize=1m-2m\n[one]\nstonewall\nbsrange=8k-8k\nrandom_distribution=pareto\nrw=randread\n\
         iodepth=16\nioengine=io_uring\niodepth_batch=8\niodepth_batch_complete=4\nsteadystate=bw_slope:0.5%\nss_dur=10\nss_ramp=2s\nsize=1m\n\
         [files]\nstonewall\nfilename=/a:/b\\:c:/d\nsize=3m\nioengine=libaio\ndirect=1\n[made]\nstonewall\nnrfiles=4\nsize=4m\nioengine=io_uring\n",
    )
    .unwrap();
    let [split, range, one, files, made] = plan.jobs().collect::<Vec<_>>()[..] else {
        panic!("five jobs")
    };
    let sizes = split.sizes().unwrap();
    assert_eq!(
        (split.request_bytes(), sizes.read.bounds(), sizes.read.mean()),
        (65_536, Some((4096, 65_536)), 0.6 * 4096.0 + 0.4 * 65_536.0)
    );
    // As in fio, rate_iops counts requests of the minimum size.
    let reads = 300.0 * 4096.0 / sizes.read.mean();
    assert_eq!(
        (sizes.write, split.rate_iops(), split.read_percent()),
        (SizeMix::one(8192), Some(reads + 100.0), 30)
    );
    assert_eq!(split.options.start_delay_ns, [1_000_000_000, 3_000_000_000]);
    let Distribution::Normal { deviation, center } = split.options.distribution else {
        panic!("{:?}", split.options.distribution)
    };
    // fio's draws are wider than their option says.
    assert!((8.8..8.9).contains(&deviation) && center == 25.0, "{deviation} {center}");
    // Jobs that only write have one size here.
    assert_eq!(
        (range.request_bytes(), range.sizes(), range.options.file_bytes),
        (8192, None, Some([1 << 20, 2 << 20]))
    );
    assert_eq!(
        (one.request_bytes(), one.sizes(), &one.options.distribution),
        (8192, None, &Distribution::Pareto(0.2))
    );
    assert_eq!((one.options.batch, one.options.batch_complete), (Some(8), 4));
    let steady = one.options.steady;
    assert_eq!(
        (steady.shown().as_str(), steady.duration_ns, steady.ramp_ns),
        ("bw_slope:0.500000%", 10_000_000_000, 2_000_000_000)
    );
    assert_eq!(
        (files.options.filenames.as_slice(), files.file_count()),
        (["/a", "/b:c", "/d"].map(String::from).as_slice(), 3)
    );
    assert_eq!(made.file_count(), 4);
    assert_eq!(plan.warnings, Vec::<String>::new());
}

#[test]
fn silent_fio_behaviour_gives_a_warning() {
    let plan =
        plan("[a]\nsize=1m\niodepth=32\n[b]\nstonewall\nsize=1m\nioengine=libaio\n[c]\nstonewall\nsize=1m\nrandom_distribution=zipf\n")
            .unwrap();
    let [blocking, buffered, sequential] = &plan.warnings[..] else {
        panic!("{:?}", plan.warnings)
    };
    assert!(
        blocking.contains("jobs.fio line 1")
            && blocking.contains("iodepth=32")
            && blocking.contains("psync"),
        "{blocking}"
    );
    assert!(buffered.contains("libaio without direct=1"), "{buffered}");
    assert!(sequential.contains("random_distribution"), "{sequential}");
    assert_eq!(plan.groups[0][0].effective_depth(), 1);
}

#[test]
fn concurrent_jobs_and_several_files_work_with_any_engine() {
    for text in [
        "[a]\nnrfiles=2\nnumjobs=2",
        "[a]\nfilename=/x:/y\nbs=1000",
        "[a]\nfilename=/x:/y\nioengine=mmap\nfsync=4",
        "[a]\nfilename=/x:/y\n[b]\nfilename=/x\nioengine=libaio\ndirect=1\nsync=1\nfadvise_hint=0",
        "[a]\nfilename=/x:/y\nfile_service_type=random",
        "[a]\nfilename=/x:/y\nfile_service_type=sequential\nbsrange=4k-64k",
    ] {
        let plan = plan(text).unwrap();
        assert_eq!((plan.groups.len(), plan.warnings), (1, Vec::new()), "{text}");
    }
}

#[test]
fn unsupported_options_give_one_error_with_location_and_hint() {
    let cases = [
        ("[a]\nsize=1m\nverify=nil", "line 3: option verify=nil", "crc32c"),
        ("[a]\nverify=crc32c\nverify_offset=20", "verify_offset=20", "give 44 to 4052"),
        ("[a]\nverify=crc32c\nverify_offset=4060", "verify_offset=4060", "give 44 to 4052"),
        ("[a]\nread_iolog=/", "read_iolog=/", "a directory; name a regular file"),
        ("[a]\nread_iolog=/x:/y", "2 traces", "job of its own"),
        ("[a]\nreplay_align=3000", "replay_align=3000", "4096"),
        ("[a]\nreplay_skip=trims", "'trims'", "read, write, trim, sync"),
        ("[a]\nbuffer_pattern=%o", "%o", "only verify_pattern"),
        (
            "[a]\nrw=write\nbsrange=4k-8k\nverify=crc32c\nloops=2\nverify_state_load=1",
            "several sizes",
            "verify_state_load",
        ),
        ("[a]\nnumber_ios=3\nbs=4k,8k\nrw=rw\nloops=2", "number_ios", "leave one out"),
        ("[a]\nrw=randread:2\npercentage_random=50", "percentage_random", "leave one of them out"),
        (
            "[a]\nrw=randread\npercentage_random=50\nrandom_distribution=zoned:90/10:10/90\nfilename=/x:/y",
            "percentage_random of several files",
            "job of its own",
        ),
        (
            "[a]\nrw=write\nbsrange=4k-8k\nzonesize=64k\nfilename=/x:/y",
            "zonemode of several files",
            "several sizes",
        ),
        (
            "[a]\nrw=read\nopenfiles=2\nfile_service_type=random\nfilename=/x:/y:/z",
            "openfiles=2",
            "openfiles=1",
        ),
        (
            "[a]\nrw=randread\nioengine=libaio\ndirect=1\niodepth=4\nnorandommap\nserialize_overlap=1",
            "serialize_overlap",
            "use iodepth=1",
        ),
        ("[a]\nallow_file_create=2", "allow_file_create=2", "0 nor 1"),
        ("[a]\nbwavgtime=1200", "bwavgtime=1200", "write 1000"),
        ("[a]\niopsavgtime=100", "iopsavgtime=100", "from 500"),
        ("[a]\nrate_process=even", "rate_process=even", "linear, poisson"),
        ("[a]\nverify=pattern", "verify=pattern", "verify_pattern=0x"),
        ("[a]\nverify=crc32c\nbs=32", "32 B", "52 B or more"),
        (
            "[a]\nrw=write\nverify=md5\nverify_state_save=1\nioengine=posixaio",
            "verify_state_save",
            "psync",
        ),
        ("[a]\nrw=trim\nverify=crc32c", "nothing can be read back", "trimwrite"),
        ("[a]\nioengine=rbd", "ioengine=rbd", "io_uring"),
        ("[a]\nrandom_distribution=zoned:50/5:30/15", "20 % of the requests", "90/10"),
        (
            "[a]\nrw=randread\nrandom_distribution=zoned:50/5:30/15:20/\nfilename=/x:/y",
            "several zones",
            "job of its own",
        ),
        (
            "[a]\nrw=randread\nzonemode=strided\nzonesize=64k\nrandom_distribution=zipf:1",
            "zonemode=strided",
            "alike",
        ),
        (
            "[a]\nrw=randread\nzonemode=strided\nzonesize=64k\nzonerange=6k",
            "zonerange=6144",
            "a multiple",
        ),
        ("[a]\nzonemode=strided\nzonesize=6k", "zonesize=6144", "a multiple"),
        ("[a]\nzonemode=zbd", "zonemode=zbd", "strided"),
        ("[a]\nrandom_distribution=zipf:1.2:0.3", "zipf", "second number"),
        ("[a]\nbssplit=4k/50:8k/60", "110 % in all", "100 %"),
        ("[a]\nbsrange=8k-4k", "bsrange", "smaller one first"),
        ("[a]\nsteadystate=iops:1%", "steadystate", "steadystate_duration=10"),
        ("[a]\nsteadystate_duration=1", "steadystate_duration", "2 or more"),
        ("[a]\nlatency_target=5ms", "latency_window", "latency_window=1s"),
        ("[a]\nlatency_percentile=101", "latency_percentile=101", "from 0 to 100"),
        (
            "[a]\nlatency_target=5ms\nlatency_window=1s\nioengine=posixaio\niodepth=4",
            "posixaio",
            "use libaio",
        ),
        ("[a]\nfilename=/x::/y", "filename", "leave out the colon"),
        ("[a]\nrw=read:-2k", "rw=read:-2 KiB", "at least one request"),
        ("[a]\nrw=read:-8k\noffset=4k", "negative value", "without offset"),
        (
            "[a]\nio_submit_mode=offload\nioengine=libaio",
            "io_submit_mode=offload",
            "leave the option out",
        ),
        (
            "[a]\nrw=write\nio_submit_mode=offload\niodepth=4\nfsync=1",
            "io_submit_mode=offload",
            "use psync",
        ),
        ("[a]\nflow=x", "flow=x", "digits first"),
        ("[a]\ncpus_allowed=x", "cpus_allowed", "digits first"),
        ("[a]\nrun_time=3", "run_time=3", "did you mean runtime?"),
        ("[a]\nqwertyuiop=3", "qwertyuiop", "leave it out"),
        ("[a]\nfilename_format=$jobname.$host", "$host", "$filenum"),
    ];
    for (text, value, hint) in cases {
        let error = refused(text);
        assert!(error.contains(value) && error.contains(hint), "{text:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn facts_about_the_computer_are_replaced() {
    let variable = |name: &str| match name {
        "$pagesize" => Some("4096".to_string()),
        "$ncpus" => Some("2".to_string()),
        _ => None,
    };
    let world = World { read: &nothing, variable: &variable };
    let parse = |text: &str| JobFile::parse(text.as_bytes(), Path::new("jobs.fio"), &world);
    let file = parse("[a]\nbs=$pagesize\nsize=2*$pagesize*$ncpus\nfilename=a*b\nnumjobs=$ncpus\n")
        .unwrap();
    let values: Vec<&str> =
        file.sections[0].settings.iter().filter_map(|one| one.value.as_deref()).collect();
    assert_eq!(values, ["4096", "16384", "a*b", "2"]);
    for (text, why) in
        [("[a]\nsize=$ncpus*4k", "not a product"), ("[a]\nsize=$mb_memory", "not known here")]
    {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains(why), "{error}");
    }
}

#[test]
fn hostile_values_are_refused_by_line_and_option() {
    let long = format!("[a]\nsize=1m\ndescription={}", "x".repeat(20_000));
    let huge = format!("[a]\nbs={}", "9".repeat(400));
    let cases = [
        ("[a]\nbs=-4k", "line 2: option bs=-4k", "negative"),
        ("[a]\nsize=99999999999999999999", "size=9999", "too large"),
        ("[a]\nsize=9999999999999g", "size=9999", "too large"),
        ("[a]\niodepth=0", "iodepth=0", "from 1 to 65536"),
        ("[a]\niodepth=1000000", "iodepth", "from 1 to 65536"),
        ("[a]\nnumjobs=99999", "numjobs", "from 1 to 4096"),
        ("[a]\nrwmixread=101", "rwmixread", "from 0 to 100"),
        ("[a]\nruntime=99999999999", "runtime", "century"),
        ("[a]\nbs=2g", "bs", "1 GiB"),
        ("[a]\nbs=0", "bs", "1 B"),
        ("[a]\nbs", "option bs", "no value"),
        ("[a]\nbs 8k", "line 2", "write bs=8k"),
        ("[a]\n=4k", "line 2", "no option before"),
        ("[a\nsize=1m", "line 1", "[name]"),
        ("size=1m", "line 1", "before any [section]"),
        ("[a]\nsize=1m\0", "line 2", "control character"),
        ("[a]\nsize=${NOT_SET}", "NOT_SET", "set it"),
        ("[a]\nsize=${NESTED}", "NESTED", "not fit"),
        ("[a]\nsize=${SIZE", "line 2", "no '}'"),
        ("[a]\ninclude other.fio", "line 2", "other.fio"),
        ("", "no job", "--name"),
        (long.as_str(), "line 3", "bytes long"),
        (huge.as_str(), "line 2", "too large"),
    ];
    for (text, place, why) in cases {
        let error = refused(text);
        assert!(
            error.contains(place) && error.contains(why),
            "{:?}: {error}",
            &text[..text.len().min(80)]
        );
        assert!(error.len() < 400, "{error}");
    }
    let not_text = JobFile::parse(b"[a]\nsize=\xff\xfe", Path::new("jobs.fio"), &WORLD)
        .unwrap_err()
        .to_string();
    assert!(not_text.contains("line 2") && not_text.contains("UTF-8"), "{not_text}");
}

#[test]
fn includes_are_found_next_to_their_file_without_loops() {
    let read = |path: &Path| match path.to_str() {
        Some("jobs/shared.inc") => Ok(b"[global]\nsize=4m\n".to_vec()),
        Some("round.fio") => Ok(b"include round.fio\n".to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let world = World { read: &read, variable: &variable };
    let file =
        JobFile::parse(b"include shared.inc\n[a]\nrw=read\n", Path::new("jobs/a.fio"), &world)
            .unwrap();
    assert_eq!(file.to_string(), "[global]\nsize=4m\n[a]\nrw=read\n");
    let error = JobFile::parse(b"include round.fio\n", Path::new("round.fio"), &world)
        .unwrap_err()
        .to_string();
    assert!(error.contains("does one include itself?"), "{error}");
}

#[test]
fn arguments_before_the_first_name_are_global() {
    let command = Command::parse(&words(
        "--rw=randread --bs 8k --name=a --size=1m --zonemode=strided --name b --size 2m --cleanup --destroy-data=/x --output-format=json+ jobs.fio",
    ));
    let command = command.unwrap();
    let names: Vec<&str> = command.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!((names, command.files.len(), command.cleanup), (vec!["global", "a", "b"], 1, true));
    let read = |_: &Path| Ok(b"[from a file]\nsize=3m\n".to_vec());
    let sections = command.all_sections(&World { read: &read, variable: &variable }).unwrap();
    let plan = Plan::new(&sections, &[]).unwrap_err().to_string();
    assert!(plan.contains("command line: job 'a': zonesize=0"), "{plan}");
    let only_b = Plan::new(&sections, &["b".into(), "from a file".into()]).unwrap();
    let jobs: Vec<(&str, u64, bool)> = only_b
        .jobs()
        .map(|job| (job.name.as_str(), job.request_bytes(), job.options.random))
        .collect();
    assert_eq!(jobs, [("from a file", 8192, true), ("b", 8192, true)]);
    for (text, why) in [
        ("--output-format=xml --name=a", "normal, terse, json or json+"),
        ("--terse-version=9 --name=a", "2, 3, 4 and 5"),
        ("--client=x", "each machine"),
        ("--server", "each machine"),
        ("--iode=4", "iodepth, iodepth_batch"),
        ("--name=a --size", "--size=VALUE"),
        ("--name", "--name=VALUE"),
        ("--cleanup=3", "takes no value"),
    ] {
        let error = Command::parse(&words(text)).unwrap_err().to_string();
        assert!(error.contains("command line") && error.contains(why), "{text}: {error}");
    }
}

fn job_file() -> impl Strategy<Value = String> {
    let size = prop_oneof![
        (1u64..1000).prop_map(|n| format!("{n}m")),
        (4096u64..1 << 40).prop_map(|n| n.to_string()),
        Just("50%".to_string())
    ];
    let setting = prop_oneof![
        size.prop_map(|size| format!("size={size}")),
        prop::sample::select(vec!["read", "write", "randread", "randwrite", "rw", "randrw"])
            .prop_map(|rw| format!("rw = {rw}")),
        prop::sample::select(vec!["sync", "psync", "libaio", "io_uring", "posixaio", "mmap"])
            .prop_map(|engine| format!("ioengine={engine}")),
        (1u32..300).prop_map(|depth| format!("iodepth={depth}  ; outstanding")),
        (1u32..64).prop_map(|jobs| format!("numjobs={jobs}")),
        (1u64..100).prop_map(|k| format!("bs={k}k")),
        (1u64..50, 1u64..9).prop_map(|(k, times)| format!("bsrange={k}k-{}k", k * times)),
        (1u64..99).prop_map(|percent| format!("bssplit=4k/{percent}:64k/,8k")),
        (1u64..99).prop_map(|n| format!("random_distribution=pareto:0.{n:02}")),
        (2u64..99).prop_map(|n| format!("steadystate=iops:{n}%\nsteadystate_duration={n}")),
        (0u64..101).prop_map(|percent| format!("rwmixread={percent}")),
        (1u64..100_000).prop_map(|ms| format!("runtime={ms}ms")),
        prop::sample::select(vec![
            "group_reporting",
            "stonewall",
            "norandommap",
            "direct=0",
            "offset=4k",
            "fsync=3",
            "# nothing",
            "",
            "thinktime=5us"
        ])
        .prop_map(String::from),
        "[a-zA-Z0-9 ._-]{0,20}".prop_map(|text| format!("description={text}")),
    ];
    let section = ("[a-z][a-z0-9 _-]{0,8}", prop::collection::vec(setting, 0..8))
        .prop_map(|(name, settings)| format!("[{name}]\n{}\n", settings.join("\n")));
    prop::collection::vec(section, 1..5).prop_map(|sections| sections.concat())
}

fn argument() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "--name=a",
            "--name",
            "--name=global",
            "--rw=randrw",
            "--bs=4k",
            "--bs",
            "8k",
            "--time_based",
            "-rw=read",
            "--cleanup",
            "--json=x.json",
            "--output=o",
            "--output-format=json+",
            "--output-format=normal",
            "--destroy-data=/x",
            "--section=a",
            "--section",
            "jobs.fio",
            "-",
            "--minimal",
            "--terse-version=5",
            "--output-format=normal,json",
            "--refill_buffers",
            "--debug=io",
            "--readonly",
            "--parse-only",
            "--warnings-fatal",
            "--eta=never",
            "--description=a=b c",
            "--verify_pattern=\"=\"",
            "--stonewall=0",
            "--size=",
        ])
        .prop_map(String::from),
        "--[a-z_]{1,8}=[ -~]{0,12}",
        "[ -~]{0,8}",
        "\\PC{0,6}",
    ]
}

proptest! {
    #[test]
    fn accepted_job_files_round_trip(text in job_file()) {
        let file = parse(&text).unwrap();
        let again = parse(&file.to_string()).unwrap();
        prop_assert_eq!(&again, &file);
        prop_assert_eq!(again.to_string(), file.to_string());
        match (Plan::new(&file.sections, &[]), Plan::new(&again.sections, &[])) {
            (Ok(one), Ok(other)) => {
                let jobs = |plan: &Plan| plan.jobs().map(|job| (job.name.clone(), job.options.clone(), job.given.clone(), job.group_id)).collect::<Vec<_>>();
                prop_assert_eq!(jobs(&one), jobs(&other));
            }
            (Err(one), Err(other)) => prop_assert_eq!(one.is_usage(), other.is_usage()),
            (one, other) => prop_assert!(false, "{one:?} and {other:?}"),
        }
    }

    #[test]
    fn every_accepted_command_line_round_trips(words in prop::collection::vec(argument(), 0..10)) {
        if let Ok(command) = Command::parse(&words) {
            let again = Command::parse(&command.words());
            prop_assert_eq!(again.as_ref().ok(), Some(&command), "{:?} came back as {:?}: {:?}", words, command.words(), again);
        }
    }

    #[test]
    fn no_text_makes_a_job_file_panic(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = plan(&text);
        let _ = plan(&format!("[a]\n{text}"));
        if let Ok(file) = JobFile::parse(&bytes, Path::new("x"), &WORLD) {
            let _ = Plan::new(&file.sections, &[]);
        }
    }

    #[test]
    fn no_value_makes_an_option_panic(
        name in prop::sample::select(vec![
            "rw", "bs", "bsrange", "bssplit", "ba", "size", "filesize", "io_size", "loops", "offset", "offset_increment", "numjobs", "iodepth", "ioengine",
            "runtime", "ramp_time", "startdelay", "rate", "rate_iops", "thinktime", "random_distribution", "randseed", "percentile_list", "kb_base", "filename",
            "steadystate", "ss_dur", "verify", "verify_pattern", "nrfiles", "iodepth_batch", "directory", "fallocate", "sync", "fsync", "buffer_compress_percentage", "log_avg_msec", "write_bw_log", "filename_format",
        ]),
        value in prop_oneof!["\\PC{0,30}", "[-0-9.:,/%kmgxKMGib]{0,24}"],
    ) {
        let _ = plan(&format!("[a]\nsize=1m\n{name}={value}\n"));
        let _ = Command::parse(&[format!("--{name}={value}"), value.clone()]);
    }
}
