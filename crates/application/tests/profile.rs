//! Profiles of requests with known figures.

use application::profile::{Profile, Role, profile};
use apptrace::{
    Access, Event, Header, Interface, Kind, OpenFile, Request, Summary, Thread, TraceReader,
    TraceWriter, TracedFile,
};

const MS: u64 = 1_000_000;

fn request(at_ms: u64, file: u32, access: Access, offset: u64, bytes: u64) -> Event {
    Event::Request(Request {
        at_ns: at_ms * MS,
        duration_ns: Some(2 * MS),
        thread: Some(0),
        file,
        access,
        interface: Interface::SystemCall,
        offset: matches!(access, Access::Read | Access::Write).then_some(offset),
        bytes,
        result: Some(bytes as i64),
        open: OpenFile::default(),
    })
}

fn of(requests: impl IntoIterator<Item = Event>, elapsed_ms: u64) -> Profile {
    let mut writer = TraceWriter::new(Vec::new(), &Header::default()).unwrap();
    writer.event(&Event::Thread(Thread { process: 1, thread: 1, name: None })).unwrap();
    let files = [
        ("wal", Kind::Regular),
        ("table", Kind::Regular),
        ("pipe", Kind::Stream),
        ("/dev/disk", Kind::BlockDevice),
    ];
    for (name, kind) in files {
        let file = TracedFile { name: name.into(), kind, size_bytes: Some(1 << 20) };
        writer.event(&Event::File(file)).unwrap();
    }
    for event in requests {
        writer.event(&event).unwrap();
    }
    let summary = Summary { elapsed_ns: elapsed_ms * MS, ..Summary::default() };
    let bytes = writer.finish(summary).unwrap();
    profile(TraceReader::new(&bytes[..]).unwrap()).unwrap()
}

#[test]
fn a_log_with_its_syncs_is_described() {
    let requests = (0..100).flat_map(|index| {
        [
            request(index * 10, 0, Access::Write, index * 8192, 8192),
            request(index * 10 + 3, 0, Access::SyncData, 0, 0),
            request(index * 10 + 6, 2, Access::Write, 0, 100),
        ]
    });
    let profile = of(requests, 1000);
    // The pipe is left out.
    assert_eq!((profile.files.len(), profile.requests, profile.threads), (1, 200, 1));
    let wal = &profile.files[0];
    assert_eq!((wal.role, wal.waited_share), (Role::Log, 1.0));
    let syncs = wal.syncs.as_ref().unwrap();
    assert_eq!((syncs.calls, syncs.writes_per_call, syncs.data_only), (100, 1.0, 1.0));
    let interval = syncs.interval.as_ref().unwrap().p50_ns as f64;
    assert!((interval / 1e7 - 1.0).abs() < 0.05, "{interval}");
    let sentence = wal.sentence(profile.elapsed_ns);
    assert_eq!(
        sentence,
        "log: 100/s appends of 8 KiB (p50 2.00 ms, p99 2.00 ms), one at a time, each followed by fdatasync (100/s, p50 2.00 ms, p99 2.00 ms); 100 % of the time waited"
    );
    // 5 ms of each 10 ms pass between the end of one request and the start of the next.
    assert!((profile.think_ns.unwrap() as f64 / 3e6 - 1.0).abs() < 0.02, "{:?}", profile.think_ns);
}

#[test]
fn concurrency_locality_and_bursts_are_counted() {
    // Four blocks, 16 requests of 2 ms each that start 1 ms apart: two at a time.
    let reads = (0..16).map(|index| request(index, 1, Access::Read, index % 4 * 3 * 4096, 4096));
    let writes = [0, 10, 20].into_iter().flat_map(|second| {
        (0..20).map(move |index| {
            request(second * 1000 + 100 + index * 10, 0, Access::Write, index * 7 % 20 * 8192, 4096)
        })
    });
    let profile = of(reads.chain(writes), 30_000);
    let file = |name: &str| profile.files.iter().find(|file| file.name == name).unwrap();
    let table = file("table");
    let concurrency = table.concurrency.as_ref().unwrap();
    assert_eq!(concurrency.max, 2);
    assert!((concurrency.mean - 32.0 / 17.0).abs() < 1e-9, "{}", concurrency.mean);
    let locality = table.locality.as_ref().unwrap();
    assert_eq!((locality.working_set_bytes, locality.cache_bytes), (4 * 4096, 4 * 4096));
    assert!((locality.reused - 0.75).abs() < 1e-9);
    assert_eq!(table.role, Role::Data);
    let bursts = file("wal").bursts.as_ref().unwrap();
    assert_eq!((bursts.count, bursts.mean_s), (3, 1.0));
    assert!((bursts.peak_over_mean - 10.0).abs() < 1e-9);
}

#[test]
fn a_cut_trace_is_a_doubt() {
    let mut writer = TraceWriter::new(Vec::new(), &Header::default()).unwrap();
    writer.event(&Event::Lost(7)).unwrap();
    writer.flush().unwrap();
    let whole = writer.finish(Summary::default()).unwrap();
    let cut = &whole[..whole.len() - 5];
    let profile = profile(TraceReader::new(cut).unwrap()).unwrap();
    assert_eq!(profile.doubts.len(), 2);
    assert!(profile.text().contains("doubt: 7 events were lost"), "{}", profile.text());
}

#[test]
fn hits_are_reads_that_no_device_served() {
    let mut requests: Vec<Event> =
        (0..10).map(|index| request(index * 10, 1, Access::Read, index * 4096, 4096)).collect();
    for event in [0, 50].map(|at| request(at, 3, Access::Read, 0, 8192)) {
        let Event::Request(request) = event else { unreachable!() };
        requests.push(Event::Request(Request { interface: Interface::Block, ..request }));
    }
    let profile = of(requests, 100);
    // 16 of 40 KiB came from the device.
    assert!((profile.read_hits.unwrap() - 0.6).abs() < 1e-9);
    assert_eq!((profile.requests, profile.files.len(), profile.devices.len()), (10, 1, 1));
    assert_eq!(profile.devices[0].reads.as_ref().unwrap().bytes, 16384);
    assert!(profile.text().contains("60 % of the bytes that it read came from the page cache"));
}

#[test]
fn a_log_writes_its_last_block_again() {
    let requests = (0..90).flat_map(|index| {
        // Three commits fill a block.
        let write = request(index * 10, 0, Access::Write, index / 3 * 8192, 8192);
        [write, request(index * 10 + 3, 0, Access::SyncData, 0, 0)]
    });
    let profile = of(requests, 1000);
    let wal = &profile.files[0];
    assert_eq!(wal.role, Role::Log);
    assert!((wal.writes.as_ref().unwrap().rewrites.unwrap() - 60.0 / 90.0).abs() < 1e-9);
    let sentence = wal.sentence(profile.elapsed_ns);
    assert!(sentence.contains("appends (67 % write the last block again) of 8 KiB"), "{sentence}");
    // One block over and over is not a log.
    let requests = (0..90).flat_map(|index| {
        let write = request(index * 10, 0, Access::Write, 0, 8192);
        [write, request(index * 10 + 3, 0, Access::SyncData, 0, 0)]
    });
    assert_eq!(of(requests, 1000).files[0].role, Role::Data);
}

#[test]
fn without_offsets_nothing_is_said_about_order() {
    let requests = (0..10).map(|index| {
        let Event::Request(request) = request(index * 10, 1, Access::Read, 0, 4096) else {
            unreachable!()
        };
        Event::Request(Request { interface: Interface::IoUring, offset: None, ..request })
    });
    let profile = of(requests, 100);
    let reads = profile.files[0].reads.as_ref().unwrap();
    assert_eq!((reads.sequential, reads.aligned, reads.requests), (None, None, 10));
    assert!(profile.files[0].sentence(1).contains("their order was not recorded"));
}

/// A generator of numbers from 0 to 1 (Numerical Recipes' linear congruential one).
struct Random(u32);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1 << 24)
    }

    fn below(&mut self, most: u64) -> u64 {
        (self.next() * most as f64) as u64
    }
}

fn busy_log(random: &mut Random, is_read: bool) -> Vec<Event> {
    const BLOCK: u64 = 8192;
    let mut requests = Vec::new();
    let (mut at, mut end, mut read) = (0, 0, 0);
    let full = random.next() < 0.5;
    for _ in 0..120 {
        let writes = if random.next() < 0.1 { 1 + random.below(40) } else { 1 };
        for _ in 0..writes {
            let start = end / BLOCK * BLOCK;
            end = if full { start + BLOCK } else { end + 200 + random.below(20_000) };
            let bytes = end.next_multiple_of(BLOCK) - start;
            requests.push(request(at, 0, Access::Write, start, bytes));
            at += 1;
        }
        requests.push(request(at, 0, Access::SyncData, 0, 0));
        at += 1 + random.below(200);
        while is_read && read + BLOCK <= end {
            requests.push(request(at, 0, Access::Read, read, BLOCK));
            read += BLOCK;
        }
        // The data files, synced now and then.
        for _ in 0..random.below(6) {
            requests.push(request(at, 1, Access::Write, random.below(5000) * BLOCK, BLOCK));
            if random.next() < 0.2 {
                requests.push(request(at, 1, Access::SyncData, 0, 0));
            }
        }
    }
    requests.retain(|_| random.next() > 0.05);
    for place in 1..requests.len() {
        if random.next() < 0.05 {
            requests.swap(place - 1, place);
        }
    }
    requests
}

#[test]
fn a_busy_log_is_a_log() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let profile = of(busy_log(&mut random, seed % 2 == 0), 60_000);
        let role = |name: &str| profile.files.iter().find(|file| file.name == name).unwrap().role;
        assert_eq!(role("wal"), Role::Log, "seed {seed}");
        assert!(matches!(role("table"), Role::Data | Role::Checkpoint), "seed {seed}");
    }
}

#[test]
fn small_files_that_are_synced_are_not_logs() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let blocks = 2 + random.below(100);
        // Random places, and SQLite's way with its database: the first page and another one.
        let random_places = (0..200).flat_map(|index| {
            let write = request(index * 10, 0, Access::Write, random.below(blocks) * 4096, 4096);
            [write, request(index * 10 + 3, 0, Access::SyncData, 0, 0)]
        });
        let random_places: Vec<Event> = random_places.collect();
        let pages = (0..200).flat_map(|index| {
            let page = 1 + index / 20;
            [
                request(index * 10, 1, Access::Write, 0, 4096),
                request(index * 10 + 1, 1, Access::Write, page * 4096, 4096),
                request(index * 10 + 2, 1, Access::SyncData, 0, 0),
            ]
        });
        let profile = of(random_places.into_iter().chain(pages), 2000);
        let roles: Vec<Role> = profile.files.iter().map(|file| file.role).collect();
        assert!(!roles.contains(&Role::Log), "seed {seed}, {blocks} blocks: {roles:?}");
    }
}
