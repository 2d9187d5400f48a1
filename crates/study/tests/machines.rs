//! Studies of machines drawn at random: no document may break a rule.
//!
//! `SEEDS=17..18` studies only this machine, `KEEP=DIRECTORY` keeps the documents.

mod noisy;
mod seeds;

use machine::TargetSpec;
use machine::units::{KIB, MIB};
use noisy::Noisy;
use results::rules::{Rule, check};
use results::{Program, Results};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use study::{Effort, Plan};
use twin::Twin;
use twin::description::Drive;
use twin::settings::Setup;
use workload::rng;

const SEEDS: std::ops::Range<u64> = 0..208;

struct Chance {
    seed: u64,
    number: u64,
}

impl Chance {
    fn next(&mut self) -> u64 {
        self.number += 1;
        rng::hash(self.seed, self.number)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        let share = self.next() as f64 / u64::MAX as f64;
        low * (high / low).powf(share)
    }
}

struct Drawn {
    name: String,
    setup: Setup,
    budget_ns: u64,
    /// The spread between runs; `None` if they repeat exactly.
    noise: Option<f64>,
    throttled: bool,
    /// Another program's share of the machine, and the runs during which it takes it.
    load: Option<(f64, [u64; 2])>,
}

fn draw(seed: u64) -> Drawn {
    let mut chance = Chance { seed, number: 0 };
    let kind = chance
        .one(&["disks", "disk", "flash", "virtio", "virtio", "cloud", "cloud", "nas", "shared"]);
    let (name, budget_s) = match kind {
        "disks" => {
            let disks = chance.one(&[1, 1, 2, 3, 4]);
            let mut name = format!(
                "gateway-1997,drive={},disks={disks},buses={},wce={}",
                chance.one(&["st15150w", "st34371w"]),
                chance.one(&[1, 2]).min(disks),
                chance.one(&["on", "off"]),
            );
            if disks > 1 {
                name += &format!(",stripe={}", chance.one(&["16k", "64k", "128k"]));
            }
            if disks == 2 {
                name += chance.one(&["", ",raid=1"]);
            }
            if disks == 3 {
                name += chance.one(&["", ",raid=5,parity=host", ",raid=5,parity=array"]);
            }
            if chance.one(&[false, false, true]) {
                name += chance.one(&[",ramcache=4m", ",ramcache=16m,ramwrite=through"]);
            }
            (name, 30.0)
        }
        "disk" => {
            let (wce, disks) = (chance.one(&["on", "off"]), chance.one(&[1, 1, 2]));
            (format!("hdd-20tb,wce={wce},disks={disks}"), 12.0)
        }
        "flash" => {
            let name = chance.one(&["nvme", "sata-ssd", "sata-ssd"]);
            let latency = chance.one(&[50, 100, 400]);
            (format!("{name},latency={latency},processor={}", chance.one(&[20, 100])), 1.2)
        }
        "nas" => (format!("nas,latency={}", chance.one(&[50, 100, 300])), 3.0),
        other => (other.to_owned(), 4.0),
    };
    let mut setup = match kind {
        "shared" => noisy::disk(chance.between(40e6, 300e6)).setup().clone(),
        _ => Setup::parse(&name).unwrap_or_else(|error| panic!("{name}: {error}")),
    };
    let description = &mut setup.description;
    match description.drives.values_mut().next() {
        Some(Drive::Virtio(disk)) if kind == "virtio" => {
            disk.notify_us = chance.between(5.0, 200.0);
            disk.workers = chance.one(&[1, 2, 4, 8]);
            (disk.read_us, disk.write_us) =
                (chance.between(20.0, 3000.0), chance.between(20.0, 3000.0));
            disk.read_bytes_per_s = chance.between(20e6, 1e9);
            disk.write_bytes_per_s = disk.read_bytes_per_s * chance.between(0.5, 1.5);
            disk.total_bytes_per_s =
                disk.read_bytes_per_s * chance.between(0.7, f64::from(disk.workers) + 1.0);
            description.processor.cores = chance.one(&[1, 2, 8]);
            description.processor.request_us = chance.between(2.0, 60.0);
        }
        Some(Drive::Cloud(volume)) => {
            volume.bytes_per_s = chance.between(20e6, 500e6);
            volume.iops = chance.between(300.0, 20_000.0);
            let burst = chance.one(&[1.0, 1.0, 3.0, 10.0]);
            (volume.burst_bytes_per_s, volume.burst_iops) =
                (volume.bytes_per_s * burst, volume.iops * burst);
            let seconds = chance.between(0.1, 20.0) * (burst - 1.0);
            (volume.credit_bytes, volume.credit_requests) =
                (volume.bytes_per_s * seconds, volume.iops * seconds);
            volume.queue = chance.one(&[8, 32, 128]);
            volume.request_bytes = chance.one(&[16 * KIB, 256 * KIB, MIB]);
        }
        _ => {}
    }
    if chance.one(&[false, false, true]) {
        description.file_system.read_ahead_units = chance.one(&[0, 1, 8]);
    }
    let exact = matches!(kind, "virtio" | "cloud" | "nas") && chance.one(&[false, false, true]);
    let noise = (!exact).then(|| chance.one(&[0.005, 0.02, 0.08, 0.25]));
    let throttled = chance.one(&[false, false, false, true]);
    let load = chance.one(&[None, None, Some(0.3), Some(0.7)]).map(|share| {
        let first = chance.next() % 150;
        (share, [first, first + 20 + chance.next() % 150])
    });
    let budget_ns = (budget_s * 1e9) as u64;
    let name = format!(
        "{name} (drawn {:?}), noise {noise:?}, throttled {throttled}, load {load:?}",
        description.drives.values().next()
    );
    Drawn { name, setup, budget_ns, noise, throttled, load }
}

fn study(drawn: &Drawn, seed: u64) -> Results {
    let plan = Plan { budget_ns: drawn.budget_ns, effort: Effort::Quick, only: Vec::new(), seed };
    let program = Program { name: "test".into(), version: "0".into(), arguments: Vec::new() };
    let (twin, spec) = (Twin::new(drawn.setup.clone()), TargetSpec::default());
    match drawn.noise {
        None => study::study(&twin, &spec, &plan, program, &mut |_| {}),
        Some(noise) => {
            let mut machine = Noisy::new(twin, seed, noise, drawn.throttled);
            machine.load = drawn.load;
            study::study(&machine, &spec, &plan, program, &mut |_| {})
        }
    }
    .unwrap_or_else(|error| panic!("seed {seed}, {}: {error}", drawn.name))
}

#[test]
fn no_study_of_a_random_machine_breaks_a_rule() {
    let seeds = seeds::chosen(SEEDS);
    let keep = std::env::var("KEEP").ok();
    let (next, broken) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            let drawn = draw(seed);
            let results = study(&drawn, seed);
            if let Some(directory) = &keep {
                let text = results::to_json(&results).expect("a document");
                std::fs::write(format!("{directory}/{seed}.json"), text).expect("a file");
            }
            let found = check(&results);
            if !found.is_empty() {
                let said: Vec<String> = found.iter().map(|one| format!("    {one}")).collect();
                let mut broken = broken.lock().expect("no other test panics");
                broken.push(format!("seed {seed}: {}\n{}", drawn.name, said.join("\n")));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(8) {
            scope.spawn(work);
        }
    });
    let broken = broken.into_inner().expect("no thread panicked");
    assert!(
        broken.is_empty(),
        "{} of {} documents break one of {} rules:\n{}",
        broken.len(),
        seeds.count(),
        Rule::ALL.len(),
        broken.join("\n")
    );
}
