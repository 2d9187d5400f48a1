//! Invalid values and locations, and studies of unusual file systems. Faults are in `faults/`.

mod common;

use common::places::{Loop, Mount, Throttle, tool};
use common::{
    Ended, HALFPOWER, command, ended, halfpower, has_numbers, points, test_files, wait_until,
};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Child;

const MIB: u64 = 1 << 20;

#[test]
fn invalid_values_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    for (command, options, words) in [
        ("run", "--size 0", ["0 B", "4 KiB"].as_slice()),
        ("run", "--size nonsense", &["nonsense", "--size", "64KiB"]),
        ("run", "--size 4x", &["4x", "unit"]),
        ("run", "--request 0", &["request size 0 B", "from 1 B to 1 GiB"]),
        ("run", "--request 2g", &["request size 2 GiB", "1 GiB"]),
        ("run", "--request 9g", &["9g", "at most 1 GiB"]),
        ("run", "--depth 0", &["depth 0", "from 1 to 65536"]),
        ("run", "--depth -1", &["-1"]),
        ("run", "--depth 8 --engine sync", &["depth 8", "sync", "io_uring"]),
        ("run", "--threads 0", &["0 threads", "from 1 to 4096"]),
        ("run", "--threads 9999", &["9999 threads"]),
        ("run", "--engine warp", &["warp", "io_uring"]),
        ("run", "--pattern zigzag", &["zigzag", "random"]),
        ("run", "--pattern stride:1000", &["stride", "multiple"]),
        ("run", "--op erase", &["erase", "write"]),
        ("run", "--allocate lots", &["lots", "reserved"]),
        ("run", "--size 8m --offset 100", &["offset 100 B", "direct I/O", "multiple"]),
        ("run", "--size 8m --request 1000", &["request size 1000 B", "direct I/O", "buffered"]),
        ("run", "--size 64k --request 128k", &["64 KiB", "128 KiB", "smaller requests"]),
        ("run", "--runtime 0", &["0 s"]),
        ("run", "--bytes 0", &["0 B"]),
        ("run", "--bytes 1m --runtime 1", &["--bytes", "--runtime"]),
        ("run", "--rate 0", &["rate 0"]),
        ("run", "--op mix --read-percent 100", &["100", "--read-percent"]),
        ("run", "--op write --compressible 101", &["101 % compressible"]),
        ("run", "--chunk 1000", &["1000 B", "512"]),
        ("run", "--engine mmap", &["mmap", "buffered"]),
        ("run", "--op read --allocate extend", &["extend", "write only"]),
        ("study", "--budget 1s", &["--budget 1", "5s"]),
        ("study", "--budget soon", &["soon", "--budget"]),
        ("study", "--only everything", &["everything", "unbuffered"]),
        ("study", "--quick --full", &["--quick", "--full"]),
        ("study", "--output /dev/null/out", &["--output /dev/null/out"]),
    ] {
        halfpower(&format!("{command} {at} {options}")).refused(words);
    }
    assert!(test_files(directory.path()).is_empty());
}

#[test]
fn missing_or_unsuitable_targets_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let inside = |name: &str| directory.path().join(name).display().to_string();
    fs::write(inside("empty"), "").unwrap();
    fs::write(inside("notes.json"), "{\"a\": 1}").unwrap();
    fs::write(inside("later.json"), "{\"schema\": \"halfpower.results/99\"}").unwrap();
    fs::write(inside("data"), vec![1; 1 << 20]).unwrap();
    for (words, named) in [
        (format!("run {}", inside("absent")), ["absent", "no such file", "name one that exists"]),
        (
            format!("study {}/more", inside("data")),
            ["data/more", "no such file", "name one that exists"],
        ),
        (format!("run {}", inside("empty")), ["empty", "0 bytes", "at least one request"]),
        ("run /dev/null".into(), ["/dev/null", "neither a block device", "--size"]),
        (format!("run {} --size 2m", inside("data")), ["data", "--size 2 MiB", "smaller"]),
        (
            format!("run {} --size 0", inside("data")),
            ["data", "--size 0 B", "at least one request"],
        ),
        (format!("run {} --op write", inside("data")), ["data", "only read", "--destroy-data"]),
        (
            format!("run {} --destroy-data {}", inside("data"), inside("empty")),
            ["empty", "not the target", "--destroy-data"],
        ),
        ("run twin:nothing".into(), ["nothing", "gateway-1997", ".toml"]),
        (
            format!("report {}", inside("absent.json")),
            ["absent.json", "cannot read", "No such file"],
        ),
        (format!("report {}", inside("notes.json")), ["notes.json", "no schema", "results.json"]),
        (
            format!("report {}", inside("later.json")),
            ["later.json", "halfpower.results/99", "halfpower.results/1"],
        ),
    ] {
        halfpower(&words).refused(&named);
    }
    assert_eq!(fs::read(inside("data")).unwrap(), vec![1; 1 << 20], "it was only read");
}

#[test]
fn a_file_system_without_free_space_data_needs_size() {
    let _one = common::alone();
    let mount = or_skip!(Mount::with(&["-t", "ramfs", "halfpower-test"]));
    halfpower(&format!("run {}", mount.name())).refused(&[
        mount.name(),
        "how much space is free",
        "--size",
    ]);
    // The file system refuses direct I/O: that point fails with the reason, the others succeed.
    let words = format!(
        "sweep {} --size 8m --direct --buffered --bytes 1m --repeats 1 --json",
        mount.name()
    );
    let document = halfpower(&words).good_json();
    let [direct, buffered] = points(&document) else { panic!("two points: {document:#}") };
    assert!(has_numbers(buffered) && !has_numbers(direct), "{document:#}");
    assert!(direct["error"].as_str().unwrap().contains("no direct I/O"), "{direct:#}");
    study_skips_direct(&mount.at, "--size 64m", "in memory");
    let only = halfpower(&format!("run {} --size 8m --direct", mount.name()));
    assert_eq!(only.code, Some(1), "nothing could be measured: {only:?}");
}

#[test]
fn an_overlay_is_studied_with_the_io_it_supports() {
    let _one = common::alone();
    let layers = or_skip!(Mount::tmpfs("512m"));
    for name in ["lower", "upper", "work"] {
        fs::create_dir(layers.at.join(name)).unwrap();
    }
    let of = |name: &str| layers.at.join(name).display().to_string();
    let options =
        format!("lowerdir={},upperdir={},workdir={}", of("lower"), of("upper"), of("work"));
    let mount = or_skip!(Mount::with(&["-t", "overlay", "-o", &options, "halfpower-test"]));
    let probe = mount.at.join("probe");
    fs::write(&probe, vec![1; 4096]).unwrap();
    // Whether overlayfs supports direct I/O depends on the lower layer and on the kernel.
    let takes = tool(
        "dd",
        &[&format!("if={}", probe.display()), "of=/dev/null", "iflag=direct", "bs=4096"],
    )
    .is_ok();
    if takes {
        assert_eq!(study(&mount.at, "--size 64m")["target"]["direct"], true);
    } else {
        study_skips_direct(&mount.at, "--size 64m", "direct");
    }
    fs::remove_file(&probe).unwrap();
    assert_eq!(fs::read_dir(&mount.at).unwrap().count(), 0);
}

fn study(target: &Path, options: &str) -> serde_json::Value {
    let out = tempfile::tempdir().unwrap();
    let words = format!(
        "study {} --budget 8s --quick --json {options} --output {}",
        target.display(),
        out.path().display()
    );
    halfpower(&words).good_json()
}

fn study_skips_direct(target: &Path, options: &str, why: &str) {
    let document = study(target, options);
    let experiments = document["experiments"].as_array().unwrap();
    let named = |id: &str| {
        experiments
            .iter()
            .find(|one| one["id"] == id)
            .unwrap_or_else(|| panic!("no experiment {id}: {document:#}"))
    };
    let skipped = named("unbuffered");
    assert!(skipped["skipped"].as_str().unwrap().contains(why), "{skipped:#}");
    assert!(named("buffered").get("skipped").is_none());
    assert!(points(&document).iter().filter(|point| has_numbers(point)).count() > 10);
    assert!(
        points(&document)
            .iter()
            .all(|point| !point["workload"]["buffering"].as_str().unwrap().contains("direct"))
    );
    assert!(!document["answer"]["peaks"].as_array().unwrap().is_empty());
}

fn hash_of(device: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    fs::read(device).unwrap().hash(&mut hasher);
    hasher.finish()
}

#[test]
fn a_device_without_destroy_data_is_only_read() {
    let _one = common::alone();
    let device = or_skip!(Loop::make(16 * MIB));
    fs::OpenOptions::new()
        .write(true)
        .open(&device.device)
        .unwrap()
        .write_all_at(&vec![0x37; 1 << 20], MIB)
        .unwrap();
    let name = &device.device;
    let before = hash_of(name);
    halfpower(&format!("run {name} --op write")).refused(&[name, "only read", "--destroy-data"]);
    halfpower(&format!("sweep {name} --op read,mix")).refused(&[
        name,
        "only read",
        "--destroy-data",
    ]);
    assert!(has_numbers(
        &points(&halfpower(&format!("run {name} --bytes 1m --json")).good_json())[0]
    ));
    let out = tempfile::tempdir().unwrap();
    let document = halfpower(&format!(
        "study {name} --budget 6s --quick --json --output {}",
        out.path().display()
    ))
    .good_json();
    assert!(
        points(&document).iter().all(|point| point["workload"]["op"] == "read"),
        "{document:#}"
    );
    assert_eq!(hash_of(name), before, "not a byte of it has changed");
    let written =
        halfpower(&format!("run {name} --op write --bytes 1m --destroy-data {name} --json"))
            .good_json();
    assert!(has_numbers(&points(&written)[0]));
    assert_ne!(hash_of(name), before, "now it was named");
}

struct Running {
    child: Option<Child>,
}

impl Running {
    fn start(directory: &Path, words: &str) -> Running {
        let words = format!("run {} --runtime 60 --json {words}", directory.display());
        let child = command(HALFPOWER, words.split_whitespace()).spawn().unwrap();
        Running { child: Some(child) }
    }

    fn signal(&self, signal: i32) {
        let id = self.child.as_ref().unwrap().id() as i32;
        // SAFETY: a signal to a child that was not waited for.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    fn stop(mut self, signal: i32) -> Ended {
        self.signal(signal);
        wait_until("the end of an interrupted run", || {
            self.child.as_mut().unwrap().try_wait().unwrap().is_some()
        });
        let ended = ended(self.child.take().unwrap());
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert!(ended.stdout.is_empty() && ended.stderr.contains("interrupted"), "{ended:?}");
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn bytes_read(id: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok()).unwrap_or(0)
}

#[test]
fn slow_requests_do_not_delay_the_end() {
    let _one = common::alone();
    let slow = or_skip!(Loop::make(64 * MIB));
    let _throttle = or_skip!(Throttle::set(&slow, &[("read_bps", 4_000_000)]));
    let running = Running::start(Path::new(&slow.device), "--request 1m --depth 2");
    let id = running.child.as_ref().unwrap().id();
    wait_until("the first reads", || bytes_read(id) > MIB);
    let ended = running.stop(libc::SIGINT);
    assert_eq!(
        ended.stderr.lines().last(),
        Some("halfpower: interrupted"),
        "no test file was made: {ended:?}"
    );
}
