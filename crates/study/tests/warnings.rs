//! Warnings about unsteady rates: real causes are reported, periodic patterns and whole requests
//! are not.

use machine::{Buffering, CacheState, Engine, Machine, TargetSpec};
use measure::{Options, sample};
use results::Point;
use twin::description::{Description, Drive};
use twin::settings::Setup;
use twin::{Twin, preset};
use workload::{Pattern, Stop, Workload};

const SECOND: u64 = 1_000_000_000;

fn warnings(twin: &Twin, workload: &Workload) -> Vec<String> {
    let mut target = twin.open(&TargetSpec::default()).unwrap();
    let one = sample(twin, &mut target, workload, Options::default()).unwrap();
    let facts = twin.target_facts(&target);
    Point::from_samples(workload, &facts, &[one]).numbers.unwrap().warnings
}

fn changed(name: &str, change: impl FnOnce(&mut Drive)) -> Twin {
    let mut description: Description = preset::load(name).unwrap();
    let drive = description.volume.drive.clone();
    change(description.drives.get_mut(&drive).unwrap());
    Twin::new(Setup::of(description))
}

fn deep(request_bytes: u32, depth: u32, seconds: u64) -> Workload {
    Workload {
        request_bytes,
        depth,
        engine: Engine::IoUring,
        stop: Stop::AfterNs(seconds * SECOND),
        ..Workload::default()
    }
}

#[test]
fn rhythms_and_whole_requests_are_no_change() {
    let steady = [
        // Requests beat against the slices.
        Workload { request_bytes: 4096, read_percent: 0, ..deep(4096, 1, 10) },
        deep(8192, 3, 10),
        deep(262_144, 1, 10),
        // Tracks, and the head movements between them.
        Workload { buffering: Buffering::Buffered, cache: CacheState::Cold, ..deep(2048, 1, 10) },
        deep(131_072, 8, 10),
        // A deep queue drains at the end.
        Workload { pattern: Pattern::Random, ..deep(4096, 128, 10) },
        Workload { read_percent: 0, ..deep(8192, 32, 10) },
        Workload { read_percent: 0, ..deep(512, 128, 10) },
    ];
    for machine in [
        "gateway-1997",
        "gateway-1997,drive=st34371w,disks=2",
        "gateway-1997,drive=st34371w,wce=on",
    ] {
        let twin = Twin::from_name(machine).unwrap();
        for workload in &steady {
            let said = warnings(&twin, workload);
            assert!(said.is_empty(), "{machine}, {}: {said:?}", workload.short());
        }
    }
}

#[test]
fn an_exhausted_burst_credit_is_reported() {
    let twin = changed("cloud-burst", |drive| {
        let Drive::Cloud(volume) = drive else { panic!("a cloud volume") };
        volume.credit_requests = 15_000.0;
    });
    let said = warnings(&twin, &Workload { pattern: Pattern::Random, ..deep(4096, 32, 10) });
    assert!(said.iter().any(|said| said.contains("burst credit")), "{said:?}");
}

#[test]
fn a_full_write_cache_is_reported() {
    let twin = changed("nvme", |drive| {
        let Drive::Flash(flash) = drive else { panic!("a solid-state drive") };
        flash.cache_bytes = 8_000_000_000;
    });
    let said = warnings(&twin, &Workload { read_percent: 0, ..deep(1 << 20, 8, 4) });
    assert!(said.iter().any(|said| said.contains("a cache ran out")), "{said:?}");
    let twin = Twin::from_name("hdd-20tb").unwrap();
    let said = warnings(&twin, &Workload { read_percent: 0, ..deep(1 << 20, 4, 1) });
    assert!(said.iter().any(|said| said.contains("a cache ran out")), "{said:?}");
}

#[test]
fn zones_of_a_disk_are_called_so() {
    let twin = Twin::from_name("gateway-1997,drive=st34371w").unwrap();
    let said = warnings(&twin, &deep(1 << 20, 8, 500));
    assert!(said.iter().any(|said| said.contains("rotating disk")), "{said:?}");
    assert!(!said.iter().any(|said| said.contains("credit")), "{said:?}");
}
