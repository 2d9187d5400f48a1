use super::*;
use crate::profile::Role;
use apptrace::{Access, Event, Interface, Kind, OpenFile, Request, Thread, TracedFile};
use machine::CacheState;
use std::path::PathBuf;
use twin::Twin;

struct Recording(Vec<Event>);

impl Recording {
    fn new(files: &[&str], threads: u32) -> Recording {
        let file = |name: &&str| {
            Event::File(TracedFile { name: (*name).into(), kind: Kind::Regular, size_bytes: None })
        };
        let thread = |number| Event::Thread(Thread { process: 1, thread: number, name: None });
        Recording(files.iter().map(file).chain((0..threads).map(thread)).collect())
    }

    fn add(
        &mut self,
        thread: u32,
        at_us: u64,
        us: u64,
        file: u32,
        access: Access,
        place: (u64, u64),
    ) {
        self.0.push(Event::Request(Request {
            at_ns: at_us * 1000,
            duration_ns: Some(us * 1000),
            thread: Some(thread),
            file,
            access,
            interface: Interface::SystemCall,
            offset: (place.1 > 0).then_some(place.0),
            bytes: place.1,
            result: Some(place.1 as i64),
            open: OpenFile { direct: file == 0, ..OpenFile::default() },
        }));
    }

    fn script(self) -> Script {
        Script::new(self.0.into_iter().map(Ok)).unwrap()
    }
}

fn on_cloud(script: &Script, pace: Pace) -> ReplayDocument {
    let name = "twin:cloud";
    let settings = Settings { pace, depth: None, runs: 1, cache: CacheState::Cold };
    let layout = Layout::Files(PathBuf::from(name));
    let machine = Twin::from_name(name).unwrap();
    replay(&machine, script, ("test", "test"), &layout, &settings, &mut |_| {}).unwrap()
}

/// `cloud` reads 4 KiB in some 610 us.
#[test]
fn pauses_and_order_of_a_thread_are_kept() {
    let mut recording = Recording::new(&["/data"], 1);
    for number in 0..100 {
        recording.add(0, number * 3000, 1000, 0, Access::Read, (number * 8192, 4096));
    }
    let script = recording.script();
    let document = on_cloud(&script, Pace::Recorded(1.0));
    assert_eq!((document.requests, document.bytes), (100, 409_600));
    let read_s = document.classes[0].latency.unwrap().p50_ns as f64 * 1e-9;
    assert!((0.0005..0.0008).contains(&read_s), "{read_s}");
    let expected = 99.0 * 0.002 + 100.0 * read_s;
    let near = |value: f64, expected: f64| {
        assert!((value / expected - 1.0).abs() < 0.02, "{value} is not near {expected}");
    };
    near(document.elapsed_s.mean, expected);
    near(on_cloud(&script, Pace::Recorded(2.0)).elapsed_s.mean, 99.0 * 0.001 + 100.0 * read_s);
    near(on_cloud(&script, Pace::AsFastAsPossible).elapsed_s.mean, 100.0 * read_s);
}

#[test]
fn requests_that_were_outstanding_together_are_again() {
    let mut recording = Recording::new(&["/data"], 1);
    for batch in 0..25 {
        for one in 0..4 {
            let at = batch * 1000 + one;
            recording.add(0, at, 900, 0, Access::Read, ((batch * 4 + one) * 8192, 4096));
        }
    }
    let script = recording.script();
    assert_eq!((script.threads[0].depth, script.threads[0].engine.is_async()), (4, true));
    let document = on_cloud(&script, Pace::AsFastAsPossible);
    let one = document.classes[0].latency.unwrap().p50_ns as f64 * 1e-9;
    let batches = document.elapsed_s.mean / one;
    // 3000 IOPS pace four requests 333 us apart.
    assert!((25.0..60.0).contains(&batches), "{batches}");
}

#[test]
fn a_log_is_recognised_and_its_syncs_are_replayed() {
    let mut recording = Recording::new(&["/data", "/log"], 2);
    for number in 0..50 {
        recording.add(0, number * 2000, 100, 1, Access::Write, (number * 8192, 8192));
        recording.add(0, number * 2000 + 200, 900, 1, Access::SyncData, (0, 0));
        recording.add(1, number * 2000, 700, 0, Access::Read, (number % 7 * 4096, 4096));
    }
    let script = recording.script();
    assert_eq!(
        script.files.iter().map(|file| file.role).collect::<Vec<_>>(),
        [Role::Log, Role::Data]
    );
    let document = on_cloud(&script, Pace::Recorded(1.0));
    let shown: Vec<(String, u64)> =
        document.classes.iter().map(|one| (one.class.to_string(), one.requests)).collect();
    assert_eq!(
        shown,
        [("log-write".into(), 50), ("log-sync".into(), 50), ("data-read".into(), 50)]
    );
    let sync = document.classes[1].latency.unwrap().p50_ns;
    assert!(sync > 500_000, "a sync reaches the volume: {sync}");
    let recorded = document.classes[1].recorded_latency.unwrap().p50_ns as f64;
    assert!((recorded / 900_000.0 - 1.0).abs() < 0.02, "{recorded}");
}

fn throttled() -> Twin {
    let mut setup = twin::Setup::parse("cloud").unwrap();
    let Some(twin::description::Drive::Cloud(volume)) = setup.description.drives.get_mut("volume")
    else {
        panic!("the preset has a cloud volume")
    };
    (volume.iops, volume.burst_iops, volume.throttle) = (100.0, 100.0, true);
    (volume.read_us, volume.write_us) = (100.0, 100.0);
    Twin::new(setup)
}

fn log_with_journal(blocks: u64, at_device: bool) -> Script {
    let mut recording = Recording::new(&["/device", "/log"], 1);
    for number in 0..50 {
        let at = number * 20_000;
        recording.add(0, at, 10, 1, Access::Write, (number * 8192, 8192));
        recording.add(0, at + 20, 9000, 1, Access::SyncData, (0, 0));
        let requests = if at_device { 1 + blocks } else { 0 };
        for request in 0..requests {
            let metadata = request > 0;
            recording.add(0, at + 30 + request, 10, 0, Access::Write, (request * 4096, 4096));
            let Some(Event::Request(last)) = recording.0.last_mut() else { unreachable!() };
            (last.interface, last.open) =
                (Interface::Block, OpenFile { metadata, ..OpenFile::default() });
        }
    }
    recording.script()
}

/// A control group counts data, and the flush or each journal block.
#[test]
fn syncs_take_the_journal_that_the_recording_shows() {
    let seconds = |script: &Script| {
        let settings = Settings {
            pace: Pace::AsFastAsPossible,
            depth: None,
            runs: 1,
            cache: CacheState::Cold,
        };
        let layout = Layout::Files(PathBuf::from("twin:cloud"));
        let done = replay(&throttled(), script, ("", ""), &layout, &settings, &mut |_| {});
        done.unwrap().elapsed_s.mean
    };
    for (blocks, at_device, requests) in [(0, false, 2), (0, true, 2), (1, true, 2), (3, true, 4)] {
        let took = seconds(&log_with_journal(blocks, at_device));
        let expected = f64::from(50 * requests) / 100.0;
        assert!(
            (took / expected - 1.0).abs() < 0.05,
            "{blocks} {at_device}: {took} s, not {expected}"
        );
    }
}

#[test]
fn files_that_grow_are_told_from_those_with_holes() {
    let of = |places: &[(u32, Access, u64)], size: Option<u64>| {
        let mut recording = Recording::new(&["/unused", "/file"], 2);
        let Event::File(file) = &mut recording.0[1] else { panic!("the second file") };
        file.size_bytes = size;
        for (at, (thread, access, offset)) in (0..).zip(places) {
            recording.add(*thread, at * 1000, 10, 1, *access, (*offset, 4096));
        }
        recording.script().files[0].grows_from
    };
    use Access::{Read, Write};
    assert_eq!(of(&[(0, Write, 0), (0, Write, 4096)], Some(0)), Some(0));
    assert_eq!(of(&[(0, Write, 4096), (0, Write, 8192)], Some(5000)), Some(5000));
    // Its own append is read again.
    assert_eq!(of(&[(0, Write, 0), (0, Read, 0)], Some(0)), Some(0));
    assert_eq!(of(&[(0, Write, 0), (1, Read, 0)], Some(0)), None, "another thread may be earlier");
    assert_eq!(of(&[(0, Write, 0), (1, Write, 4096)], Some(0)), None, "two threads append");
    assert_eq!(of(&[(0, Write, 8192), (0, Write, 0)], Some(0)), None, "a hole");
    assert_eq!(of(&[(0, Write, 0)], Some(8192)), None, "long enough");
    assert_eq!(of(&[(0, Write, 0)], None), None, "its size is not known");
}

#[test]
fn a_trace_without_requests_or_with_lost_ones_says_so() {
    let empty = Script::new(Recording::new(&["/a"], 1).0.into_iter().map(Ok)).unwrap_err();
    assert!(empty.to_string().contains("no request"), "{empty}");
    let mut recording = Recording::new(&["/a"], 1);
    recording.add(0, 0, 1, 0, Access::Read, (0, 512));
    recording.add(0, 5, 1, 0, Access::Truncate, (0, 512));
    recording.0.push(Event::Lost(3));
    let skipped = recording.script().skipped.sentence().unwrap();
    assert!(skipped.contains("system (1)") && skipped.contains("lost (3)"), "{skipped}");
}
