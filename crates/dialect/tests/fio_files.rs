//! Files that fio jobs use, and what runs on this computer leave of them.

use dialect::fio::{
    Arrangement, Counts, DiskUse, FioError, FioResult, Found, GroupResult, JobFile, Plan,
    RunSettings, Status, SystemStats, Trace, World, aggregate_logs, json, load_states, logs, look,
    run, saved_states, text,
};
use host::Host;
use machine::NewFile;
use mounted::Mounted;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

mod mounted;

const CLEANUP: RunSettings<'static> =
    RunSettings { destroy_signed: false, cleanup: true, status: None };

static CALM: AtomicBool = AtomicBool::new(false);

struct Bare;

impl SystemStats for Bare {
    fn counts(&self) -> Counts {
        Counts::default()
    }
    fn disks(&self, _names: &[String]) -> Vec<DiskUse> {
        Vec::new()
    }
    fn unix_ms(&self) -> u64 {
        1_700_000_000_000
    }
}

fn plan(text: &str) -> Plan {
    let world = World { read: &|_| Err(io::ErrorKind::NotFound.into()), variable: &|_| None };
    Plan::new(
        &JobFile::parse(text.as_bytes(), Path::new("jobs.fio"), &world).unwrap().sections,
        &[],
    )
    .unwrap()
}

fn imagined(path: &Path) -> io::Result<Found> {
    Ok(match path.to_str() {
        Some("/old") => Found::File(1 << 20),
        Some("/dev/d") => Found::Device(1 << 30),
        Some("/dir") => Found::Other("a directory"),
        _ => Found::Nothing,
    })
}

fn arrange(text: &str, destroy: &[&str]) -> Result<Arrangement, FioError> {
    Arrangement::new(&plan(text), &imagined, &destroy.iter().map(PathBuf::from).collect::<Vec<_>>())
}

#[test]
fn locks_that_another_job_would_hold_are_refused() {
    let locks = |text: &str| arrange(&format!("[global]\nsize=1m\n{text}"), &[]);
    for alone in [
        "[j]\ndirectory=/dir\nrw=write\nnumjobs=2\nlockfile=exclusive\n",
        "[j]\nfilename=/new\nrw=write\nlockfile=exclusive\n[k]\nfilename=/new\nrw=write\n",
        "[j]\nfilename=/new\nrw=randread\nlockfile=readwrite\nnumjobs=3\n",
        "[j]\nfilename=/new\nrw=write\nlockfile=exclusive\n[k]\nfilename=/new\nrw=write\nlockfile=exclusive\nstonewall\n",
    ] {
        assert!(locks(alone).is_ok(), "{alone}");
    }
    for shared in [
        "[j]\nfilename=/new\nrw=randread\nlockfile=exclusive\nnumjobs=2\n",
        "[j]\nfilename=/new\nrw=randread\nlockfile=readwrite\n[k]\nfilename=/new\nrw=write\nlockfile=readwrite\n",
    ] {
        let error = locks(shared).unwrap_err().to_string();
        assert!(error.contains("lockfile: another job uses /new at the same time"), "{error}");
    }
}

#[test]
fn clones_have_separate_files_or_parts() {
    let arranged = arrange("[j]\ndirectory=/dir\nsize=4m\nnumjobs=3\nrw=write\n", &[]).unwrap();
    let paths: Vec<String> =
        arranged.files.iter().map(|file| file.path.display().to_string()).collect();
    assert_eq!(paths, ["/dir/j.0.0", "/dir/j.1.0", "/dir/j.2.0"]);
    assert!(
        arranged.files.iter().all(|file| file.bytes == 4 << 20
            && file.made == Some(NewFile::Reserved)
            && file.written)
    );
    assert_eq!(arranged.clones.iter().map(|clone| clone.number).collect::<Vec<_>>(), [1, 2, 3]);

    let shared = arrange(
        "[j]\nfilename=/new\nsize=4m\noffset=1m\noffset_increment=4m\nnumjobs=3\nrw=randrw\n",
        &[],
    )
    .unwrap();
    assert_eq!(
        (shared.files.len(), shared.files[0].bytes, shared.files[0].made),
        (1, 13 << 20, Some(NewFile::Filled))
    );
    assert_eq!(
        shared.clones.iter().map(|clone| clone.part).collect::<Vec<_>>(),
        [(1 << 20, 4 << 20), (5 << 20, 4 << 20), (9 << 20, 4 << 20)]
    );

    let device = arrange(
        "[j]\nfilename=/dev/d\nsize=25%\noffset=50%\nrw=randread\nloops=2\n[k]\nfilename=/dev/d\nrw=randread\nruntime=1\ntime_based\n",
        &[],
    )
    .unwrap();
    assert_eq!(
        (device.clones[0].part, device.clones[0].limit_bytes),
        ((512 << 20, 256 << 20), Some(512 << 20))
    );
    assert_eq!((device.clones[1].part, device.clones[1].limit_bytes), ((0, 1 << 30), None));
    assert_eq!(device.files[0].made, None);

    // Each of several files gets its part.
    let several = arrange(
        "[j]\nfilename=/new:/other\nsize=9m\noffset=1m\nbs=64k\nrw=randread\nioengine=io_uring\n",
        &[],
    )
    .unwrap();
    let bytes = (9 << 20) / 2;
    assert_eq!(
        several.files.iter().map(|file| file.bytes).collect::<Vec<_>>(),
        [(1 << 20) + bytes; 2]
    );
    assert_eq!((&several.clones[0].files, several.clones[0].part), (&vec![0, 1], (1 << 20, bytes)));
    assert_eq!(several.clones[0].limit_bytes, Some(9 << 20));
    let made =
        arrange("[j]\ndirectory=/dir\nnrfiles=3\nsize=3m\nrw=write\nioengine=io_uring\n", &[])
            .unwrap();
    assert_eq!(
        made.files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>(),
        ["/dir/j.0.0", "/dir/j.0.1", "/dir/j.0.2"]
    );
    let turns = arrange("[j]\ndirectory=/dir:/new\nnumjobs=3\nsize=1m\nrw=write\n", &[]).unwrap();
    assert_eq!(
        turns.files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>(),
        ["/dir/j.0.0", "/new/j.1.0", "/dir/j.2.0"]
    );
    let drawn = arrange("[j]\nfilesize=64k-1m\nbs=4k\nnumjobs=20\nrw=write\n", &[]).unwrap();
    let sizes: std::collections::BTreeSet<u64> =
        drawn.files.iter().map(|file| file.bytes).collect();
    assert!(
        sizes.len() > 10
            && sizes.iter().all(|bytes| (65_536..=1 << 20).contains(bytes) && bytes % 4096 == 0),
        "{sizes:?}"
    );

    let part = arrange("[j]\nfilename=/new\nsize=64k\nfilesize=128k\nrw=randread\n", &[]).unwrap();
    assert_eq!((part.clones[0].part, part.clones[0].limit_bytes), ((0, 128 << 10), Some(64 << 10)));
}

#[test]
fn user_files_are_not_overwritten() {
    let write = "[j]\nfilename=/old\nrw=randwrite\n";
    let error = arrange(write, &[]).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("--destroy-data=/old"), "{error}");
    assert!(arrange(write, &["/old"]).unwrap().files[0].written);
    assert!(!arrange("[j]\nfilename=/old\n", &[]).unwrap().files[0].written);
    for (text, destroy, why) in [
        ("[j]\nfilename=/new\nsize=1m\n", vec!["/old"], "no job writes"),
        ("[j]\nfilename=/new\n", vec![], "its size is needed"),
        ("[j]\nfilename=/dir\nsize=1m\n", vec![], "is a directory"),
        ("[j]\nfilename=/old\nsize=2m\n", vec![], "2 MiB of it are needed"),
        ("[j]\nfilename=/old\noffset=2m\n", vec![], "ends at 1 MiB"),
        ("[j]\nfilename=/old\nunlink=1\n", vec![], "removes only what it made"),
        ("[j]\nfilename=/new\nsize=1p\noffset_increment=9999p\nnumjobs=9\n", vec![], "lower them"),
    ] {
        let error = arrange(text, &destroy).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(why), "{text}: {error}");
    }
}

fn measured(text: &str, directory: &Path, destroy: &[PathBuf]) -> Result<FioResult, FioError> {
    let plan = plan(&format!("[global]\ndirectory={}\n{text}", directory.display()));
    let arrangement = Arrangement::new(&plan, &look, destroy)?;
    run(&Host::new(&CALM), &Bare, &plan, &arrangement, CLEANUP, &mut ())
}

#[test]
fn a_run_makes_all_requests_and_removes_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let result = measured(
        "[global]\nsize=1m\n[w]\nrw=write\nbs=64k\nnumjobs=2\nfdatasync=4\n[r]\nrw=randread\nbs=4k\n[m]\nstonewall\nrw=randrw\nbs=8k\nloops=2\ngroup_reporting\nnumjobs=2\n\
         [p]\nstonewall\nioengine=posixaio\niodepth=3\nbs=16k\nfilename=shared\nnumjobs=2\nstartdelay=20ms\n[mapped]\nstonewall\nioengine=mmap\nrw=randwrite\nnumjobs=2\n",
        directory.path(),
        &[],
    )
    .unwrap();
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        0,
        "the files that were laid out are gone"
    );
    let entries = result.entries();
    let reported: Vec<(&str, u32, [u64; 3], u64)> = entries
        .iter()
        .map(|entry| {
            (
                entry.job.job.name.as_str(),
                entry.clones,
                entry.recorded.requests,
                entry.recorded.syncs.count(),
            )
        })
        .collect();
    let (reads, writes) = (reported[3].2[0], reported[3].2[1]);
    assert_eq!(
        (reads + writes, reported[3].1),
        (512, 2),
        "both clones' passes over 128 blocks, twice"
    );
    assert!(reads > 150 && writes > 150);
    assert_eq!(
        reported[..3],
        [("w", 1, [0, 16, 0], 3), ("w", 1, [0, 16, 0], 3), ("r", 1, [256, 0, 0], 0)]
    );
    // Three threads share 64 requests.
    assert_eq!(
        reported[4..],
        [
            ("p", 1, [64, 0, 0], 0),
            ("p", 1, [64, 0, 0], 0),
            ("mapped", 1, [0, 256, 0], 0),
            ("mapped", 1, [0, 256, 0], 0)
        ]
    );
    assert!(entries.iter().all(|entry| {
        entry.recorded.latency.iter().map(measure::histogram::Histogram::count).sum::<u64>()
            == entry.recorded.requests.iter().sum::<u64>()
    }));
}

#[test]
fn mixed_sizes_add_up_to_the_requested_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let result = measured(
        "[split]\nsize=4m\nrw=write\nbssplit=4k/50:64k/30:16k/\n[range]\nstonewall\nsize=4m\nrw=randread\nbsrange=4k-32k\n\
         [mix]\nstonewall\nsize=4m\nrw=rw\nbs=4k,16k\n[places]\nstonewall\nsize=1m\nrw=randread\nbs=4k\nba=512\n\
         [skewed]\nstonewall\nsize=1m\nrw=randread\nrandom_distribution=pareto:0.1\n[bell]\nstonewall\nsize=1m\nrw=randwrite\nrandom_distribution=normal:10\n",
        directory.path(),
        &[],
    )
    .unwrap();
    let entries = result.entries();
    let moved: Vec<u64> = entries.iter().map(|entry| entry.recorded.bytes.iter().sum()).collect();
    assert_eq!(moved, [4 << 20, 4 << 20, 4 << 20, 1 << 20, 1 << 20, 1 << 20]);
    // The seeds are fixed, so the counts are too; by their mean the first is near 4 MiB / 25.6 KiB.
    // Random requests shrink where blocks are taken: fio 3.33 issues 292 to 304.
    let requests: Vec<u64> =
        entries.iter().map(|entry| entry.recorded.requests.iter().sum()).collect();
    assert!((130..200).contains(&requests[0]) && (280..320).contains(&requests[1]), "{requests:?}");
    let mix = &entries[2].recorded;
    assert!(
        mix.bytes[0] == mix.requests[0] * 4096 && mix.bytes[1].div_ceil(16_384) == mix.requests[1],
        "{mix:?}"
    );
    assert_eq!(requests[3..], [256, 256, 256]);
    let point = &result.groups[0].jobs[0].point;
    let numbers = point.numbers.as_ref().unwrap();
    assert_eq!(numbers.achieved.bytes, 4 << 20);
    let mean = numbers.throughput_bytes_per_s / numbers.iops;
    assert!((mean - (4 << 20) as f64 / requests[0] as f64).abs() < 1e-6, "{mean}");
}

#[test]
fn files_alternate_request_by_request() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    let before = vec![0u8; 1 << 20];
    paths.iter().for_each(|path| fs::write(path, &before).unwrap());
    // Half of what fits: the first half of each file, if the files alternate.
    let text = "[j]\nfilename=a:b\nrw=write\nbs=16k\nio_size=1m\nioengine=io_uring\niodepth=4\n";
    let result = measured(text, directory.path(), &paths).unwrap();
    assert_eq!(result.entries()[0].recorded.requests, [0, 64, 0]);
    for path in &paths {
        let written: Vec<bool> = fs::read(path)
            .unwrap()
            .chunks(16 << 10)
            .map(|block| block.iter().any(|&byte| byte != 0))
            .collect();
        assert!(
            written[..32].iter().all(|&block| block) && written[32..].iter().all(|&block| !block),
            "{written:?}"
        );
    }
}

/// Returns the requests by entry and direction, and the syncs.
fn counted(result: &FioResult) -> Vec<([u64; 3], u64)> {
    result
        .entries()
        .iter()
        .map(|entry| (entry.recorded.requests, entry.recorded.syncs.count()))
        .collect()
}

#[test]
fn jobs_of_different_engines_and_buffering_run_together() {
    let directory = tempfile::tempdir().unwrap();
    let result = measured(
        "[global]\nsize=1m\n[a]\nrw=randwrite\nbs=4k\nioengine=io_uring\niodepth=8\ninvalidate=0\n\
         [b]\nrw=read\nbs=64k\nioengine=psync\nend_fsync=1\n[c]\nrw=write\nbs=16k\nsync=dsync\nfadvise_hint=0\n\
         [d]\nrw=randread\nbs=4k\nioengine=mmap\n[e]\nrw=write\nbs=4k\nnrfiles=4\nfsync=8\nnumjobs=2\n",
        directory.path(),
        &[],
    )
    .unwrap();
    assert_eq!(result.groups.len(), 1);
    assert_eq!(
        counted(&result),
        [
            ([0, 256, 0], 0),
            ([16, 0, 0], 0),
            ([0, 64, 0], 0),
            ([256, 0, 0], 0),
            ([0, 256, 0], 31),
            ([0, 256, 0], 31)
        ]
    );
    let asked = |job: usize| &result.groups[0].jobs[job].point.workload.workload;
    assert_eq!(
        (asked(0).engine, asked(1).engine),
        (machine::Engine::IoUring, machine::Engine::Sync)
    );
    assert_eq!(asked(2).buffering, machine::Buffering::BufferedDsync);
}

#[test]
fn a_sync_follows_every_n_writes_at_any_depth() {
    let directory = tempfile::tempdir().unwrap();
    for (engine, every) in [("io_uring", 1), ("io_uring", 4), ("libaio", 4), ("psync", 16)] {
        let job = format!(
            "[w]\nsize=1m\nrw=write\nbs=4k\nioengine={engine}\niodepth=16\nfsync={every}\n"
        );
        let result = measured(&job, directory.path(), &[]).unwrap();
        // As in fio, no sync follows the last write.
        assert_eq!(counted(&result), [([0, 256, 0], 256 / every - 1)], "{engine}, every {every}");
    }
}

#[test]
fn a_size_that_is_not_a_multiple_ends_with_whole_requests() {
    let directory = tempfile::tempdir().unwrap();
    let result = measured(
        "[w]\nrw=write\nbs=4k\nsize=10000\n[r]\nrw=randread\nbs=4k\nsize=10000\nloops=3\n[io]\nrw=write\nbs=4k\nsize=10000\nio_size=30000\n",
        directory.path(),
        &[],
    )
    .unwrap();
    // The same requests as Debian's fio 3.33.
    assert_eq!(counted(&result), [([0, 2, 0], 0), ([6, 0, 0], 0), ([0, 8, 0], 0)]);
    assert_eq!(result.entries()[2].recorded.bytes, [0, 8 * 4096, 0]);
}

#[test]
fn a_section_names_its_job() {
    let plan = plan("[global]\nname=g\nsize=64k\n[a]\nname=foo\n[b]\n");
    assert_eq!(plan.jobs().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let files = Arrangement::new(&plan, &imagined, &[]).unwrap().files;
    assert_eq!(
        files.iter().map(|file| file.path.to_str().unwrap()).collect::<Vec<_>>(),
        ["a.0.0", "b.0.0"]
    );
}

#[test]
fn a_failed_job_leaves_the_results_of_others() {
    let Some(mounted) = Mounted::tmpfs("4m") else { return };
    let result = measured(
        "[good]\nrw=read\nsize=1m\nbs=64k\n[bad]\nrw=write\nsize=16m\nbs=64k\nfallocate=none\n[later]\nstonewall\nrw=read\nsize=64k\n",
        mounted.path(),
        &[],
    );
    // Files that do not fit and failures during the run are the job's errors.
    let reported: Vec<_> =
        result.unwrap().groups.iter().flat_map(|group| group.jobs.clone()).collect();
    let errnos: Vec<_> =
        reported.iter().map(|job| job.error.as_ref().map(|error| error.errno)).collect();
    assert_eq!(errnos, [None, Some(28), None]);
    assert!(
        reported[1].point.numbers.is_none()
            && reported[0].point.numbers.is_some()
            && reported[2].point.numbers.is_some()
    );
    let alone = measured("[bad]\nrw=write\nsize=16m\n", mounted.path(), &[]).unwrap();
    assert_eq!(alone.groups[0].jobs[0].error.as_ref().map(|error| error.errno), Some(28));
    let result = measured(
        "[good]\nrw=read\nsize=1m\nbs=64k\n[bad]\nrw=write\nsize=2500k\nbs=4k\nfallocate=none\n\
         [worse]\nrw=write\nsize=2500k\nbs=4k\nfallocate=none\n[later]\nstonewall\nrw=read\nsize=64k\n",
        mounted.path(),
        &[],
    )
    .unwrap();
    let document: serde_json::Value = serde_json::from_str(&json(&result, false)).unwrap();
    let jobs = document["jobs"].as_array().unwrap();
    let errors: Vec<i64> = jobs.iter().map(|job| job["error"].as_i64().unwrap()).collect();
    assert!(
        errors[0] == 0 && errors[3] == 0 && errors[1..3].contains(&28),
        "no space left: {errors:?}"
    );
    assert_eq!(
        (&jobs[0]["read"]["total_ios"], &jobs[3]["read"]["total_ios"]),
        (&16.into(), &16.into())
    );
    let failed = errors.iter().position(|&error| error == 28).unwrap();
    assert!(
        jobs[failed]["write"]["total_ios"].as_u64().unwrap() > 0,
        "what was done before is reported"
    );
    assert!(
        result.failures().join("").contains("No space left")
            && text(&result).contains("failed: a write of 4096 bytes")
    );
    assert_eq!(fs::read_dir(mounted.path()).unwrap().count(), 0);
}

#[test]
fn only_whole_windows_give_rates() {
    let directory = tempfile::tempdir().unwrap();
    let job = |rest: &str| {
        let prefix = directory.path().join("log").display().to_string();
        format!("[j]\nsize=1m\nrw=randread\nbs=4k\ninvalidate=0\nwrite_iops_log={prefix}\n{rest}")
    };
    // 1,000 requests a second for 250 ms: the last window is partial, so it has no line.
    let result =
        measured(&job("rate_iops=1000\nio_size=1000k\nlog_avg_msec=100\n"), directory.path(), &[])
            .unwrap();
    let text = &logs(&result)[0].1;
    assert_eq!(
        text.lines().map(|line| line.split(',').next().unwrap()).collect::<Vec<_>>(),
        ["100", "200"],
        "{text}"
    );
}

#[test]
fn directories_are_created_as_in_fio_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let result =
        measured("[a]\nsize=64k\nfilename=new/and/deep\nrw=write\n", directory.path(), &[])
            .unwrap();
    assert_eq!(counted(&result), [([0, 16, 0], 0)]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_backlog_is_read_back_during_writing() {
    let directory = tempfile::tempdir().unwrap();
    for engine in ["psync", "io_uring"] {
        let job = format!(
            "[w]\nsize=64k\nrw=randwrite\nbs=4k\nioengine={engine}\niodepth=4\nverify=crc32c\nverify_backlog=5\n"
        );
        let result = measured(&job, directory.path(), &[]).unwrap();
        let recorded = &result.entries()[0].recorded;
        let back = recorded.read_back.as_ref().unwrap();
        assert_eq!(
            (recorded.requests, back.requests),
            ([0, 16, 0], [16, 0, 0]),
            "{engine}: {:?}",
            result.failures()
        );
        assert_eq!(result.groups[0].jobs[0].verified_bytes, Some(64 << 10));
    }
}

/// Returns the offsets of a job's requests, in blocks of 4 KiB.
fn blocks(job: &str) -> Vec<u64> {
    let directory = tempfile::tempdir().unwrap();
    let job = format!("[j]\nsize=64k\nbs=4k\nwrite_lat_log=log\nlog_offset=1\n{job}");
    let result = measured(&job, directory.path(), &[]).unwrap();
    let text = &logs(&result)[0].1;
    text.lines()
        .map(|line| line.split(", ").nth(4).unwrap().parse::<u64>().unwrap() / 4096)
        .collect()
}

#[test]
fn files_have_fios_sizes_and_are_used_to_their_ends() {
    let directory = tempfile::tempdir().unwrap();
    for (job, requests) in [
        ("rw=write", [0, 162]),
        ("rw=read\nfile_service_type=sequential\nloops=2", [324, 0]),
        ("rw=randread\nfile_service_type=random", [162, 0]),
        ("rw=randwrite\nverify=crc32c\nioengine=io_uring\niodepth=4", [162, 162]),
        ("rw=write\nverify=crc32c", [162, 162]),
        ("rw=write\nsize=400k", [0, 100]),
    ] {
        let text = format!("[j]\nbs=4k\nnrfiles=10\nfilesize=16k-128k\n{job}\n");
        let result = measured(&text, directory.path(), &[]).unwrap();
        let document: serde_json::Value = serde_json::from_str(&json(&result, false)).unwrap();
        let job = &document["jobs"][0];
        let counted = ["read", "write"].map(|side| job[side]["total_ios"].as_u64().unwrap());
        assert_eq!((job["error"].as_i64(), counted), (Some(0), requests), "{text}");
    }
    let plan = plan("[global]\ndirectory=/dir\n[j]\nnrfiles=4\nfilesize=16k-128k\nrw=write\n");
    let arranged = Arrangement::new(&plan, &imagined, &[]).unwrap();
    let sizes: Vec<u64> = arranged.files.iter().map(|file| file.bytes / 4096).collect();
    assert_eq!(sizes, [8, 12, 12, 29], "as Debian's fio 3.33 draws them");
}

#[test]
fn directories_are_made_looked_at_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let job = |engine: &str| format!("[j]\nnrfiles=3\nfilesize=4k\nioengine={engine}\n");
    for engine in ["dircreate", "dirstat", "dirdelete"] {
        let result = measured(&job(engine), directory.path(), &[]).unwrap();
        assert_eq!(result.entries()[0].recorded.requests[0], 3, "{engine}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{engine}");
    }
    // Another's directory is neither made nor removed.
    fs::create_dir(directory.path().join("j.0.1")).unwrap();
    for engine in ["dircreate", "dirdelete", "filestat"] {
        let error = measured(&job(engine), directory.path(), &[]).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("j.0.1"), "{engine}: {error}");
    }
    assert!(directory.path().join("j.0.1").is_dir());
}

#[test]
fn the_value_after_rw_sets_gaps_or_runs() {
    // As Debian's fio 3.33 logs it.
    assert_eq!(blocks("rw=read:8k\n"), [0, 3, 6, 9, 12, 15]);
    assert_eq!(blocks("rw=write:8k\nnumber_ios=4\n"), [0, 3, 6, 9]);
    let runs = blocks("rw=randread:4\n");
    assert_eq!(runs.len(), 16);
    for run in runs.chunks(4) {
        let follow = run.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(
            follow == 3 || run.contains(&15),
            "four from each place, but for the end of the file: {runs:?}"
        );
    }
    assert_eq!(blocks("rw=randread\npercentage_random=0\n"), (0..16).collect::<Vec<u64>>());
    // About three of four requests are sequential.
    let some = blocks("rw=randread\npercentage_random=25\nloops=32\n");
    let follow = some.windows(2).filter(|pair| pair[1] == (pair[0] + 1) % 16).count();
    assert!(some.len() == 512 && (340..=440).contains(&follow), "{follow} of {}", some.len());
}

#[test]
fn pauses_follow_every_n_requests_at_any_depth() {
    let directory = tempfile::tempdir().unwrap();
    for engine in ["psync", "io_uring"] {
        let job = format!(
            "[j]\nsize=64k\nrw=read\nbs=4k\nioengine={engine}\niodepth=4\nthinktime=20000\nthinktime_blocks=4\nwrite_lat_log=log\n"
        );
        let result = measured(&job, directory.path(), &[]).unwrap();
        let begun = |line: &str| line.split(", ").next().unwrap().parse::<u64>().unwrap() / 20;
        let text = &logs(&result)[0].1;
        let mut pauses: Vec<u64> = text.lines().map(begun).collect();
        pauses.dedup();
        assert!(pauses.len() >= 4 && text.lines().count() == 16, "{engine}: {text}");
        assert!(result.elapsed_ns >= 60_000_000, "three pauses of 20 ms");
    }
}

#[test]
fn a_job_with_exitall_ends_the_others_of_its_group() {
    let directory = tempfile::tempdir().unwrap();
    let jobs = "[long]\nsize=1m\nrw=randread\nrate_iops=500\ntime_based\nruntime=60\n[short]\nsize=64k\nrw=read\nexitall\n\
         [other group]\nnew_group\nsize=64k\nrw=read\nrate_iops=200\n";
    let result = measured(jobs, directory.path(), &[]).unwrap();
    let requests: Vec<u64> = counted(&result).iter().map(|([reads, ..], _)| *reads).collect();
    assert_eq!(requests[1..], [16, 16]);
    assert!(result.elapsed_ns < 30_000_000_000);
}

#[test]
fn buffer_pattern_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept");
    fs::write(&path, vec![0u8; 64 << 10]).unwrap();
    let job = "[w]\nfilename=kept\nrw=randwrite\nbs=8k\nbuffer_pattern=0xdeadbeef\nioengine=io_uring\niodepth=4\n";
    measured(job, directory.path(), std::slice::from_ref(&path)).unwrap();
    assert!(fs::read(&path).unwrap().chunks(4).all(|word| word == [0xde, 0xad, 0xbe, 0xef]));
}

#[test]
fn written_data_is_read_back_and_changes_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept");
    for (method, more) in [
        ("crc32c", "ioengine=io_uring\niodepth=8\n"),
        ("xxhash", "rw=randrw\n"),
        ("pattern", "verify_pattern=0xdeadbeef\nioengine=posixaio\niodepth=3\n"),
    ] {
        fs::write(&path, vec![0u8; 1 << 20]).unwrap();
        let job = format!("[w]\nfilename=kept\nrw=randwrite\nbs=8k\nverify={method}\n{more}");
        let result = measured(&job, directory.path(), std::slice::from_ref(&path)).unwrap();
        let entry = &result.entries()[0].recorded;
        let verified = result.groups[0].jobs[0].verified_bytes;
        assert_eq!(
            verified,
            Some(entry.bytes[1]),
            "{method}: every write was read back, and nothing else"
        );
        assert!(entry.requests[1] > 0 && text(&result).contains("all of it as written"));
    }
    let written = "[w]\nfilename=kept\nrw=write\nbs=16k\nverify=xxhash\ndo_verify=0\n";
    let result = measured(written, directory.path(), std::slice::from_ref(&path)).unwrap();
    assert_eq!(
        result.groups[0].jobs[0].verified_bytes,
        Some(0),
        "do_verify=0 leaves the reading to another job"
    );
    let read = "[r]\nfilename=kept\nrw=randread\nbs=16k\nverify=xxhash\n";
    assert_eq!(
        measured(read, directory.path(), &[]).unwrap().groups[0].jobs[0].verified_bytes,
        Some(1 << 20)
    );
    let mut bytes = fs::read(&path).unwrap();
    bytes[300_000] ^= 4;
    fs::write(&path, &bytes).unwrap();
    let failed = |text: &str| {
        let result = measured(text, directory.path(), &[]).unwrap();
        let document: serde_json::Value = serde_json::from_str(&json(&result, false)).unwrap();
        assert_eq!(document["jobs"][0]["error"], 84, "as fio reports it");
        assert!(result.groups[0].jobs[0].point.numbers.is_none(), "a failed job has no numbers");
        result.failures().join("; ")
    };
    let error = failed(read);
    assert!(
        error.contains("verify: the block of 16 KiB at byte 294912 does not match its checksum"),
        "{error}"
    );
    fs::write(&path, vec![1u8; 1 << 20]).unwrap();
    let error = failed(read);
    assert!(error.contains("64 blocks are not what was written"), "{error}");
}

fn traced(result: &FioResult, path: &Path) -> Vec<(dialect::fio::Action, u64, u32)> {
    let (_, text) = logs(result).into_iter().find(|(written, _)| written == path).unwrap();
    let trace = Trace::read(text.as_bytes()).unwrap();
    trace.entries.iter().map(|entry| (entry.action, entry.offset, entry.len)).collect()
}

#[test]
fn a_recorded_trace_replays_the_same_requests() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let job = |more: &str| {
        let file = directory.path().join("data");
        format!("[j]\nfilename={}\nwrite_iolog={}\n{more}", file.display(), path.display())
    };
    // An absolute name, to which fio would prepend its directory.
    let run_it = |text: &str| {
        let plan = plan(text);
        let arrangement = Arrangement::new(&plan, &look, &[]).unwrap();
        run(&Host::new(&CALM), &Bare, &plan, &arrangement, CLEANUP, &mut ()).unwrap()
    };
    let first = run_it(&job("size=256k\nrw=randrw\nbssplit=4k/50:8k/50\nfsync=5\n"));
    let asked = traced(&first, &path);
    assert!(
        asked.len() > 30
            && asked.iter().any(|(action, ..)| matches!(action, dialect::fio::Action::Sync(_)))
    );
    let (_, text) = logs(&first).into_iter().find(|(written, _)| *written == path).unwrap();
    fs::write(&path, text).unwrap();
    for engine in ["psync", "io_uring\niodepth=4"] {
        let again = run_it(&job(&format!(
            "read_iolog={}\nreplay_no_stall=1\nioengine={engine}\n",
            path.display()
        )));
        assert!(again.failures().is_empty(), "{engine}: {:?}", again.failures());
        assert_eq!(traced(&again, &path), asked, "{engine}");
        let counts = |result: &FioResult| result.entries()[0].recorded.requests;
        assert_eq!(counts(&again), counts(&first), "{engine}");
    }
    // Twice, at the recorded times and without the writes.
    let reads = first.entries()[0].recorded.requests[0];
    let twice =
        run_it(&job(&format!("read_iolog={}\nreplay_skip=write,sync\nloops=2\n", path.display())));
    assert_eq!(twice.entries()[0].recorded.requests, [2 * reads, 0, 0]);
}

#[test]
fn only_written_data_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept");
    fs::write(&path, vec![0u8; 256 << 10]).unwrap();
    let write = "[w]\nfilename=kept\nsize=256k\nrw=randwrite\nbs=4k\nverify=md5\ndo_verify=0\nverify_state_save=1\nnumber_ios=10\nfsync=4\n";
    let read =
        "[w]\nfilename=kept\nsize=256k\nrw=randread\nbs=4k\nverify=md5\nverify_state_load=1\n";
    for (more, blocks) in [("", 10), ("verify_policy=fsynced\n", 8)] {
        let result =
            measured(&format!("{write}{more}"), directory.path(), std::slice::from_ref(&path))
                .unwrap();
        let states = saved_states(&result, directory.path());
        assert_eq!(states.len(), 1);
        fs::write(&states[0].0, &states[0].1).unwrap();
        let plan = plan(&format!("[global]\ndirectory={}\n{read}", directory.path().display()));
        let mut arrangement = Arrangement::new(&plan, &look, &[]).unwrap();
        load_states(&mut arrangement, &plan, directory.path(), &|path| fs::read(path)).unwrap();
        let result = run(&Host::new(&CALM), &Bare, &plan, &arrangement, CLEANUP, &mut ()).unwrap();
        assert!(result.failures().is_empty(), "{:?}", result.failures());
        assert_eq!(result.groups[0].jobs[0].verified_bytes, Some(blocks * 4096), "{more}");
    }
    let whole = read.replace("verify_state_load=1\n", "");
    let failed = measured(&whole, directory.path(), &[]).unwrap().failures().join("");
    assert!(failed.contains("has no header"), "without the state the rest is missed: {failed}");
}

#[test]
fn verify_only_checks_the_writes_of_a_mix_and_mixed_sizes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept");
    for sizes in ["rw=randrw\nbs=4k", "rw=write\nbssplit=4k/50:16k/50", "rw=rw\nbsrange=512-8k"] {
        fs::write(&path, vec![0u8; 512 << 10]).unwrap();
        let job =
            format!("[w]\nfilename=kept\nsize=512k\n{sizes}\nverify=crc32c\nverify_offset=100\n");
        let written = measured(&job, directory.path(), std::slice::from_ref(&path)).unwrap();
        let bytes = written.entries()[0].recorded.bytes[1];
        assert!(bytes > 0 && written.failures().is_empty(), "{sizes}: {:?}", written.failures());
        assert_eq!(
            written.groups[0].jobs[0].verified_bytes,
            Some(bytes),
            "{sizes}: every write was read back"
        );
        if sizes.contains("rw=randrw") {
            let only = measured(&format!("{job}verify_only\n"), directory.path(), &[]).unwrap();
            assert!(only.failures().is_empty(), "{:?}", only.failures());
            assert_eq!(only.entries()[0].recorded.bytes, [bytes, 0, 0], "nothing else is read");
        }
    }
}

#[test]
fn data_overwritten_by_a_later_pass_is_not_read_back() {
    let directory = tempfile::tempdir().unwrap();
    for passes in [
        "loops=3\nverify_backlog=1024",
        "loops=3",
        "loops=2\nverify_backlog=7\nioengine=libaio\niodepth=4",
    ] {
        for mode in ["randwrite", "randrw"] {
            let job = format!(
                "[w]\nsize=1m\nrw={mode}\nbsrange=4k-128k\nverify=md5\nunlink=1\n{passes}\n"
            );
            let written = measured(&job, directory.path(), &[]).unwrap();
            assert!(written.failures().is_empty(), "{mode}, {passes}: {:?}", written.failures());
            assert!(written.groups[0].jobs[0].verified_bytes > Some(0), "{mode}, {passes}");
        }
    }
}

#[test]
fn offload_uses_threads_for_blocking_engines() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[j]\nsize=1m\nrw=randread\nbs=4k\nioengine=psync\niodepth=4\nio_submit_mode=offload\ncpus_allowed=0\ncpus_allowed_policy=split\nnumjobs=2\n";
    let result = measured(text, directory.path(), &[]).unwrap();
    assert!(result.failures().is_empty(), "{:?}", result.failures());
    assert_eq!(counted(&result), [([256, 0, 0], 0), ([256, 0, 0], 0)]);
    assert_eq!(result.groups[0].jobs[0].job.effective_depth(), 4);
    let texts = aggregate_logs(&result, "all");
    assert_eq!(
        texts.iter().map(|(path, _)| path.display().to_string()).collect::<Vec<_>>(),
        ["all-read_bw.log", "all-write_bw.log"]
    );
    assert!(texts[1].1.is_empty());
}

#[test]
fn the_null_engine_counts_requests_without_io() {
    let directory = tempfile::tempdir().unwrap();
    // A size too large for any file system.
    let far =
        measured("[f]\nsize=1000t\nio_size=1m\nbs=4k\nioengine=null\n", directory.path(), &[])
            .unwrap();
    assert_eq!(counted(&far), [([256, 0, 0], 0)]);
    let result = measured(
        "[n]\nsize=64m\nrw=randrw\nbs=4k\nioengine=null\niodepth=16\n",
        directory.path(),
        &[],
    )
    .unwrap();
    assert_eq!(result.entries()[0].recorded.requests.iter().sum::<u64>(), 16_384);
    assert!(result.groups[0].jobs[0].point.numbers.as_ref().unwrap().achieved.requests == 16_384);
}

#[test]
fn batches_are_submitted_and_replaced_together() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[j]\nsize=2m\nrw=randread\nbs=4k\nioengine=io_uring\niodepth=16\niodepth_batch=8\niodepth_batch_complete_min=8\ninvalidate=0\n";
    let result = measured(text, directory.path(), &[]).unwrap();
    let recorded = &result.entries()[0].recorded;
    assert_eq!(recorded.requests, [512, 0, 0]);
    // 512 requests in batches of eight.
    assert_eq!(recorded.submitted, [0, 0, 64, 0, 0, 0, 0], "{recorded:?}");
}

#[test]
fn a_steady_job_ends_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let job = "[j]\nsize=1m\nrw=randread\nbs=4k\ninvalidate=0\nrate_iops=200\nruntime=30\ntime_based\nnumjobs=2\ngroup_reporting\nsteadystate=iops:20%\nss_dur=2\n";
    let result = measured(job, directory.path(), &[]).unwrap();
    let steady = result.groups[0].jobs[0].steady.as_ref().unwrap();
    assert!(
        steady.attained
            && steady.iops.len() == 2
            && steady.iops.iter().all(|&rate| (300..500).contains(&rate)),
        "{steady:?}"
    );
    assert!(result.elapsed_ns < 20_000_000_000);
    let document: serde_json::Value = serde_json::from_str(&json(&result, false)).unwrap();
    let reported = &document["jobs"][0]["steadystate"];
    assert_eq!(
        (&reported["ss"], &reported["attained"], &reported["duration"]),
        (&"iops:20.000000%".into(), &1.into(), &2.into())
    );
    assert_eq!(reported["data"]["bw"].as_array().unwrap().len(), 2);
    assert!(text(&result).contains("steady: yes"), "{}", text(&result));
}

#[test]
fn writes_go_to_the_jobs_offsets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old");
    let before: Vec<u8> = (0..1u32 << 20).map(|i| (i * 7) as u8).collect();
    fs::write(&path, &before).unwrap();
    let text = "[half]\nfilename=old\nrw=randwrite\nbs=4k\noffset=256k\nsize=256k\n[other]\nfilename=new\nsize=64k\nrw=write\n";
    let error = measured(text, directory.path(), &[]).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("--destroy-data"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    measured(text, directory.path(), std::slice::from_ref(&path)).unwrap();
    let after = fs::read(&path).unwrap();
    assert_eq!(after.len(), before.len());
    for (block, (now, was)) in after.chunks(4096).zip(before.chunks(4096)).enumerate() {
        assert_eq!(now != was, (64..128).contains(&block), "block {block}");
    }
    assert!(!directory.path().join("new").exists());
}

#[test]
fn a_failed_run_removes_its_files() {
    let directory = tempfile::tempdir().unwrap();
    // A direct request that every file system refuses ends the run before a job begins.
    let kept = directory.path().join("kept");
    fs::write(&kept, [7; 4096]).unwrap();
    for (other, destroyed) in [
        ("", None),
        ("[b]\nfilename=kept\nrw=write\nbs=4k\nsize=4k\noverwrite=1\n", Some(kept.clone())),
    ] {
        let jobs = format!("{other}[a]\nsize=1m\nrw=write\nbs=1000\ndirect=1\nunlink=1\n");
        let refused = measured(&jobs, directory.path(), destroyed.as_slice()).unwrap_err();
        assert!(
            refused.is_usage() && refused.to_string().contains("1000 B with direct I/O"),
            "{refused}"
        );
        assert_eq!(fs::read(&kept).unwrap(), [7; 4096], "the other job has not written");
    }
    fs::remove_file(&kept).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let failed = measured(
        "[a]\nsize=9000000g\noverwrite=1\nrw=write\nfallocate=none\n[b]\nsize=9000000g\nrw=write\n",
        directory.path(),
        &[],
    )
    .unwrap();
    let errors: Vec<&str> =
        failed.groups[0].jobs.iter().map(|job| job.error.as_ref().unwrap().text.as_str()).collect();
    assert!(
        errors.len() == 2 && errors.iter().all(|text| text.contains("free space")),
        "{errors:?}"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_report_has_the_fields_that_readers_use() {
    let directory = tempfile::tempdir().unwrap();
    let prefix = directory.path().join("log");
    let text_of_job = format!(
        "[j]\nsize=512k\nrw=randrw\nbs=4k\nlat_percentiles=1\nwrite_lat_log={0}\nwrite_bw_log={0}\niodepth=4\n",
        prefix.display()
    );
    let result = measured(&text_of_job, directory.path(), &[]).unwrap();
    let document: serde_json::Value = serde_json::from_str(&json(&result, true)).unwrap();
    let job = &document["jobs"][0];
    for side in ["read", "write"] {
        let count = job[side]["total_ios"].as_u64().unwrap();
        assert!(count > 0 && job[side]["io_bytes"].as_u64() == Some(count * 4096));
        assert_eq!(job[side]["clat_ns"]["percentile"].as_object().unwrap().len(), 17);
        assert!(job[side]["lat_ns"]["percentile"]["99.990000"].is_u64());
        let bins: u64 = job[side]["clat_ns"]["bins"]
            .as_object()
            .unwrap()
            .values()
            .filter_map(serde_json::Value::as_u64)
            .sum();
        assert_eq!(bins, count);
    }
    let percent = |name: &str| {
        job[name].as_object().unwrap().values().filter_map(serde_json::Value::as_f64).sum::<f64>()
    };
    let latencies = percent("latency_ns") + percent("latency_us") + percent("latency_ms");
    assert!(
        (latencies - 100.0).abs() < 1e-6 && (percent("iodepth_level") - 100.0).abs() < 1e-6,
        "{latencies}"
    );
    assert_eq!(
        job["iodepth_level"]["1"], 100.0,
        "the calls of psync block, whatever the depth that was asked for"
    );
    assert_eq!(
        (&job["job options"]["iodepth"], &job["job options"]["numjobs"]),
        (&"4".into(), &"1".into())
    );
    assert_eq!(document["global options"]["directory"], directory.path().display().to_string());
    let warnings = document["halfpower"]["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning.as_str().unwrap().contains("iodepth=4")));
    assert!(
        document["halfpower"]["jobs"][0]["point"]["achieved"]["mean_depth"].as_f64().unwrap()
            <= 1.0
    );
    assert!(
        text(&result).contains("warning: jobs.fio line")
            && text(&result).contains("randrw 4 KiB, psync x 1")
    );

    let logs = logs(&result);
    let names: Vec<String> = logs
        .iter()
        .map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, ["log_bw.1.log", "log_lat.1.log", "log_slat.1.log", "log_clat.1.log"]);
    let lines: Vec<Vec<u64>> = logs[1]
        .1
        .lines()
        .map(|line| line.split(", ").map(|part| part.parse().unwrap()).collect())
        .collect();
    assert_eq!(lines.len(), 128);
    assert!(
        lines.iter().all(|line| line.len() == 5 && line[2] <= 1 && line[3] == 4096)
            && lines.is_sorted_by_key(|line| line[0])
    );
}

#[test]
fn trimmed_blocks_are_zero_unless_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let trim = |job: &str| {
        fs::write(&path, vec![7u8; 256 << 10]).unwrap();
        let text = format!("[t]\nfilename=data\nsize=256k\nbs=16k\n{job}");
        let result = measured(&text, directory.path(), std::slice::from_ref(&path)).unwrap();
        let requests = result.entries()[0].recorded.requests;
        let zeros = fs::read(&path).unwrap().iter().filter(|&&byte| byte == 0).count();
        (requests, zeros >> 10, json(&result, false))
    };
    for engine in ["psync", "libaio\niodepth=4", "io_uring\niodepth=4"] {
        let (requests, zeros, report) =
            trim(&format!("rw=trim\nioengine={engine}\nnumber_ios=8\n"));
        assert_eq!((requests, zeros), ([0, 0, 8], 128), "{engine}");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["jobs"][0]["trim"]["io_bytes"], 128 << 10);
        assert_eq!(report["jobs"][0]["write"]["total_ios"], 0);
        let written = "rw=randtrimwrite\nbuffer_pattern=0x11\n";
        let (requests, zeros, _) = trim(&format!("{written}ioengine={engine}\n"));
        assert_eq!((requests, zeros), ([0, 16, 16], 0), "{engine}");
    }
    // A user's file is not trimmed unless it is named again.
    fs::write(&path, vec![7u8; 256 << 10]).unwrap();
    let text = "[t]\nfilename=data\nsize=256k\nrw=trim\n";
    assert!(measured(text, directory.path(), &[]).is_err());
    assert!(fs::read(&path).unwrap().iter().all(|&byte| byte == 7));
}

#[test]
fn submission_is_timed_for_asynchronous_engines() {
    let directory = tempfile::tempdir().unwrap();
    let result = measured(
        "[global]\nsize=1m\nrw=randrw\nwrite_lat_log=x\nslat_percentiles=1\n[a]\nioengine=libaio\niodepth=8\n\
         [u]\nstonewall\nioengine=io_uring\niodepth=8\n[p]\nstonewall\nioengine=psync\n[g]\nstonewall\nioengine=libaio\ngtod_reduce=1\n",
        directory.path(),
        &[],
    )
    .unwrap();
    for (entry, measured) in result.entries().iter().zip([true, true, false, false]) {
        let recorded = &entry.recorded;
        for side in 0..2 {
            let [slat, clat, lat] = [&recorded.submission, &recorded.completion, &recorded.latency]
                .map(|all| &all[side]);
            assert_eq!(slat.count(), if measured { lat.count() } else { 0 }, "{}", entry.name);
            assert_eq!(
                (clat.count(), lat.count()),
                (recorded.requests[side], recorded.requests[side])
            );
            assert_eq!(slat.sum() + clat.sum(), lat.sum(), "{}", entry.name);
        }
    }
    let logs = logs(&result);
    let lines = |name: &str| {
        logs.iter()
            .find(|(path, _)| path.ends_with(name))
            .map_or(0, |(_, text)| text.lines().count())
    };
    for (job, submitted) in [(1, 256), (2, 256), (3, 0), (4, 0)] {
        let counts = ["lat", "clat", "slat"].map(|kind| lines(&format!("x_{kind}.{job}.log")));
        assert_eq!(counts, [256, 256, submitted], "job {job}");
    }
    let text = text(&result);
    assert_eq!(text.matches("    slat (").count(), 4, "{text}");
    assert_eq!(text.matches("    slat percentiles (").count(), 4, "{text}");
}

#[test]
fn unified_rw_reporting_combines_directions() {
    let directory = tempfile::tempdir().unwrap();
    let job = "[j]\nsize=1m\nrw=randrw\nioengine=libaio\nfsync=8\n";
    for (unified, apart, mixed) in
        [("0", true, false), ("mixed", false, true), ("both", true, true)]
    {
        let text_of = format!("{job}unified_rw_reporting={unified}\n");
        let result = measured(&text_of, directory.path(), &[]).unwrap();
        let report: serde_json::Value = serde_json::from_str(&json(&result, false)).unwrap();
        let job = &report["jobs"][0];
        assert_eq!(
            (job["read"].is_object(), job["trim"].is_object(), job["sync"].is_object()),
            (apart, apart, apart)
        );
        assert_eq!(job["mixed"].is_object(), mixed, "{unified}");
        if mixed {
            assert_eq!(
                (&job["mixed"]["total_ios"], &job["mixed"]["lat_ns"]["N"]),
                (&256.into(), &256.into())
            );
        }
        let text = text(&result);
        assert_eq!(
            (text.contains("  read: IOPS="), text.contains("  WRITE: bw=")),
            (apart, apart),
            "{text}"
        );
        assert_eq!(
            (text.contains("  mixed: IOPS="), text.contains("  MIXED: bw=")),
            (mixed, mixed),
            "{text}"
        );
    }
}

#[test]
fn histogram_logs_hold_closed_intervals() {
    let directory = tempfile::tempdir().unwrap();
    let result = measured(
        "[j]\nsize=1m\nrw=randrw\nwrite_hist_log=h\nlog_hist_msec=1\nlog_hist_coarseness=4\nthinktime=100\n",
        directory.path(),
        &[],
    )
    .unwrap();
    let logs = logs(&result);
    let (path, text) = &logs[0];
    assert!(path.ends_with("h_clat_hist.1.log"));
    let mut counted = 0;
    for line in text.lines() {
        let fields: Vec<u64> = line.split(", ").map(|field| field.parse().unwrap()).collect();
        assert_eq!((fields.len(), fields[2]), (3 + 116, 4096), "{line}");
        assert!(fields[1] < 2 && fields[0] > 0);
        counted += fields[3..].iter().sum::<u64>();
    }
    // 256 requests, each followed by a pause of 0.1 ms, take longer than one interval.
    assert!((1..=256).contains(&counted), "{counted}");
}

#[test]
fn reports_while_jobs_run_have_what_they_did_so_far() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let text = format!(
        "[global]\nfilename={}\nsize=1m\nbs=4k\nrw=randread\ninvalidate=0\n[first]\nio_size=64k\n\
         [second]\nstonewall\nnumjobs=2\nrate_iops=100\ntime_based\nruntime=2\n",
        path.display()
    );
    let plan = plan(&text);
    let arrangement = Arrangement::new(&plan, &look, &[]).unwrap();
    let reports = Mutex::new(Vec::new());
    let requests = |group: &GroupResult| -> Vec<u64> {
        let clones = group.jobs.iter().flat_map(|job| &job.clones);
        clones.map(|clone| clone.recorded.requests[0]).collect()
    };
    let report = |result: &FioResult| {
        let mut points =
            result.groups.iter().flat_map(|group| &group.jobs).map(|job| job.point.clone());
        reports.lock().unwrap().push((
            result.groups.iter().map(requests).collect::<Vec<_>>(),
            points.next_back().unwrap(),
            dialect::fio::text(result),
        ));
    };
    let status = Status { interval_ns: 400_000_000, report: &report };
    let run = |status| {
        run(
            &Host::new(&CALM),
            &Bare,
            &plan,
            &arrangement,
            RunSettings { status, ..CLEANUP },
            &mut (),
        )
    };
    let result = run(Some(&status)).unwrap();
    assert_eq!(requests(&result.groups[0]), [16]);
    let whole = requests(&result.groups[1]);
    assert_eq!(whole, [200, 200]);
    let reports = reports.into_inner().unwrap();
    assert!(reports.len() >= 2, "{} reports", reports.len());
    let mut last = vec![0, 0];
    for (groups, point, text) in &reports {
        // The first set has ended; each clone of the second did more than at the report before.
        assert_eq!(groups[0], [16]);
        assert!(groups[1].iter().zip(&last).all(|(now, before)| now > before), "{reports:?}");
        assert!(groups[1].iter().zip(&whole).all(|(now, all)| now <= all), "{reports:?}");
        last.clone_from(&groups[1]);
        assert_eq!(point.error.as_deref(), Some("it has not ended"), "its figures are no result");
        assert!(text.contains("second: (groupid=1"), "{text}");
    }
}
