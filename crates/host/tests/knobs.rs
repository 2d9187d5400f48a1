//! Knobs of other machines, and setting them on their recorded trees.

mod sysfs;

use host::facts::Roots;
use host::knobs::journal::{STATE_VARIABLE, recover_in};
use host::knobs::{HostKnob, Session, find};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use sysfs::Tree;

fn knobs(tree: &Tree, path: &str) -> Vec<HostKnob> {
    find(&tree.roots(), &[Path::new(path)]).unwrap()
}

fn named<'a>(knobs: &'a [HostKnob], name: &str) -> &'a HostKnob {
    let names: Vec<&str> = knobs.iter().map(|one| one.knob.name.as_str()).collect();
    knobs
        .iter()
        .find(|one| one.knob.name == name)
        .unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

/// Owner, current value, values to try.
fn reported(knob: &HostKnob) -> (&str, &str, Vec<&str>) {
    let values = knob.knob.alternatives.iter().map(|one| one.value.as_str()).collect();
    (&knob.knob.of, &knob.knob.present, values)
}

fn with_memory(tree: &Tree) {
    for (name, value) in [
        ("dirty_ratio", "20"),
        ("dirty_background_ratio", "10"),
        ("dirty_bytes", "0"),
        ("dirty_background_bytes", "0"),
        ("dirty_expire_centisecs", "3000"),
        ("vfs_cache_pressure", "100"),
    ] {
        tree.write(&format!("proc/sys/vm/{name}"), &format!("{value}\n"));
    }
    tree.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
}

#[test]
fn the_knobs_of_an_nvme_ssd() {
    let tree = Tree::new("nvme");
    with_memory(&tree);
    let knobs = knobs(&tree, "/var/lib/file");
    for (name, expected) in [
        ("read_ahead_kb", ("nvme0n1", "128", vec!["1024", "4096"])),
        ("scheduler", ("nvme0n1", "none", vec!["mq-deadline"])),
        ("nr_requests", ("nvme0n1", "1023", vec!["511", "2046"])),
        ("wbt_lat_usec", ("nvme0n1", "2000", vec!["0"])),
        ("nomerges", ("nvme0n1", "0", vec!["1", "2"])),
        ("write_cache", ("nvme0n1", "write back", vec!["write through"])),
        ("atime", ("/", "noatime", vec!["relatime"])),
        ("vm.dirty_ratio", ("this computer", "20", vec!["5", "40"])),
        ("vm.dirty_bytes", ("this computer", "0", vec!["67108864", "1073741824"])),
        ("transparent_hugepage", ("this computer", "madvise", vec!["always", "never"])),
        // One CPU has a different setting from the others.
        ("governor", ("this computer", "powersave, performance", vec!["performance", "powersave"])),
    ] {
        assert_eq!(reported(named(&knobs, name)), expected, "{name}");
    }
    let has = |name: &str| knobs.iter().any(|one| one.knob.name == name);
    // Its requests are 128 KiB at most; xfs has no commit interval; the scheduler has no
    // parameters; polling is off.
    assert!(named(&knobs, "max_sectors_kb").knob.alternatives.is_empty());
    assert!(!has("commit") && !has("fifo_batch") && !has("io_poll") && !has("cache_type"));
}

#[test]
fn the_knobs_of_a_sata_disk_with_its_scheduler() {
    let tree = Tree::new("sata_hdd");
    let disk = "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda";
    tree.write(&format!("{disk}/queue/iosched/fifo_batch"), "16\n");
    let knobs = knobs(&tree, "/home");
    for (name, expected) in [
        ("read_ahead_kb", ("sda", "128", vec!["1024", "4096"])),
        ("scheduler", ("sda", "mq-deadline", vec!["none", "kyber", "bfq"])),
        ("fifo_batch", ("sda", "16", vec!["1", "64"])),
        ("max_sectors_kb", ("sda", "1280", vec!["128", "512", "4096"])),
        ("cache_type", ("sda", "write back", vec!["write through"])),
        ("atime", ("/", "relatime", vec!["noatime"])),
        ("commit", ("/", "5", vec!["30", "60"])),
        ("discard", ("/", "nodiscard", vec!["discard"])),
    ] {
        assert_eq!(reported(named(&knobs, name)), expected, "{name}");
    }
    assert_eq!(
        named(&knobs, "scheduler").knob.resets,
        ["nr_requests", "wbt_lat_usec", "fifo_batch"]
    );
}

#[test]
fn risky_values_warn_and_every_value_has_a_permanent_form() {
    let tree = Tree::new("sata_hdd");
    with_memory(&tree);
    let knobs = knobs(&tree, "/home");
    let risk = |name: &str, value: &str| named(&knobs, name).alternative(value).risk;
    for (name, value, lost) in [
        ("write_cache", "write through", true),
        ("write_cache", "write back", false),
        ("cache_type", "write back", true),
        ("cache_type", "write through", false),
        ("commit", "30", true),
        ("commit", "1", false),
        ("vm.dirty_expire_centisecs", "6000", true),
        ("vm.dirty_expire_centisecs", "500", false),
        ("read_ahead_kb", "4096", false),
        ("scheduler", "bfq", false),
    ] {
        assert_eq!(risk(name, value).is_some(), lost, "{name} {value}");
    }
    for knob in &knobs {
        for to in &knob.knob.alternatives {
            let (name, value) = (&knob.knob.name, &to.value);
            assert!(
                !to.keep.is_empty() && to.keep.iter().all(|keep| keep.line.contains(value)),
                "{name}: {to:?}"
            );
            assert!(
                to.command.as_ref().is_some_and(|command| command.contains(value)),
                "{name}: {to:?}"
            );
            assert!(to.put_back.is_some(), "{name}: {to:?}");
        }
    }
    let line =
        |name: &str, value: &str| named(&knobs, name).alternative(value).keep[0].line.clone();
    assert_eq!(
        line("read_ahead_kb", "1024"),
        "ACTION==\"add|change\", KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"1024\""
    );
    assert_eq!(line("vm.dirty_ratio", "5"), "vm.dirty_ratio = 5");
    assert_eq!(
        (line("commit", "30"), line("atime", "noatime")),
        ("commit=30".into(), "noatime".into())
    );
    let bytes = named(&knobs, "vm.dirty_bytes").alternative("67108864");
    assert_eq!(
        bytes.put_back.as_deref(),
        Some("echo 20 > /proc/sys/vm/dirty_ratio"),
        "0 cannot be written there"
    );
}

struct Place {
    tree: Tree,
    state: tempfile::TempDir,
    knobs: Vec<HostKnob>,
}

const READ_AHEAD: &str = "queue/read_ahead_kb";

impl Place {
    fn new() -> Place {
        let tree = Tree::new("sata_hdd");
        let knobs = knobs(&tree, "/home");
        Place { tree, state: tempfile::tempdir().unwrap(), knobs }
    }

    fn roots(&self) -> Roots {
        self.tree.roots()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.roots().sys.join("class/block/sda").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap().trim().into()
    }

    fn write(&self, name: &str, value: &str) {
        fs::write(self.file(name), value).unwrap();
    }

    fn number(&self, name: &str) -> usize {
        self.knobs.iter().position(|one| one.knob.name == name).unwrap()
    }

    fn journal(&self) -> std::path::PathBuf {
        self.state.path().join("tune.journal")
    }

    fn session(&self, tried: &[(&str, &str)]) -> Session {
        let values = |knob: &HostKnob| {
            let of_knob = tried.iter().filter(|(name, _)| *name == knob.knob.name);
            of_knob.map(|(_, value)| (*value).to_owned()).collect()
        };
        let knobs: Vec<(HostKnob, Vec<String>)> =
            self.knobs.iter().map(|one| (one.clone(), values(one))).collect();
        let mut reported = Vec::new();
        let session =
            Session::begin(self.state.path(), &self.roots(), &knobs, &mut reported).unwrap();
        assert!(reported.is_empty(), "{reported:?}");
        session
    }

    fn after_a_kill(&self) -> tempfile::TempDir {
        let left = tempfile::tempdir().unwrap();
        fs::copy(self.journal(), left.path().join("tune.journal")).unwrap();
        left
    }
}

#[test]
fn settings_are_journaled_and_restored() {
    let place = Place::new();
    let mut session = place.session(&[("read_ahead_kb", "4"), ("nomerges", "2")]);
    assert!(
        place.journal().exists() && place.read(READ_AHEAD) == "128",
        "journaled and not touched yet"
    );
    let (read_ahead, nomerges) = (place.number("read_ahead_kb"), place.number("nomerges"));
    session.set(&[(read_ahead, "4")]).unwrap();
    assert_eq!((place.read(READ_AHEAD), place.read("queue/nomerges")), ("4".into(), "0".into()));
    session.set(&[(nomerges, "2")]).unwrap();
    assert_eq!((place.read(READ_AHEAD), place.read("queue/nomerges")), ("128".into(), "2".into()));
    session.set(&[(read_ahead, "4"), (nomerges, "2")]).unwrap();
    assert!(session.end().is_empty());
    assert_eq!((place.read(READ_AHEAD), place.read("queue/nomerges")), ("128".into(), "0".into()));
    assert!(!place.journal().exists());
}

#[test]
fn a_panic_restores_settings() {
    let place = Place::new();
    let died = catch_unwind(AssertUnwindSafe(|| {
        let mut session = place.session(&[("read_ahead_kb", "4")]);
        session.set(&[(place.number("read_ahead_kb"), "4")]).unwrap();
        assert_eq!(place.read(READ_AHEAD), "never", "a panic of the test's own");
    }));
    assert!(died.is_err());
    assert!(place.read(READ_AHEAD) == "128" && !place.journal().exists());
}

#[test]
fn settings_are_restored_after_a_kill() {
    let place = Place::new();
    let mut session = place.session(&[("read_ahead_kb", "4")]);
    session.set(&[(place.number("read_ahead_kb"), "4")]).unwrap();
    // While the program runs, no other process touches its settings.
    assert!(
        recover_in(place.state.path(), &place.roots()).is_empty() && place.read(READ_AHEAD) == "4"
    );
    let left = place.after_a_kill();
    let reported = recover_in(left.path(), &place.roots());
    assert!(reported.len() == 1 && reported[0].contains("put back 1 setting"), "{reported:?}");
    assert!(place.read(READ_AHEAD) == "128" && !left.path().join("tune.journal").exists());
    assert!(recover_in(left.path(), &place.roots()).is_empty());
}

#[test]
fn a_foreign_value_stays_and_is_reported() {
    let place = Place::new();
    let mut session = place.session(&[("read_ahead_kb", "4"), ("nomerges", "2")]);
    let read_ahead = place.number("read_ahead_kb");
    session.set(&[(read_ahead, "4")]).unwrap();
    let left = place.after_a_kill();
    place.write(READ_AHEAD, "777");
    let reported = recover_in(left.path(), &place.roots());
    assert!(
        reported.iter().any(|sentence| sentence.contains("777") && sentence.contains("128")),
        "{reported:?}"
    );
    assert!(place.read(READ_AHEAD) == "777" && !left.path().join("tune.journal").exists());
    // A running session notices it too, leaves it unchanged, and continues with the others.
    let error = session.set(&[]).unwrap_err().to_string();
    assert!(error.contains("777"), "{error}");
    session.set(&[(place.number("nomerges"), "2")]).unwrap();
    assert!(session.set(&[(read_ahead, "4")]).is_err());
    let reported = session.end();
    assert!(reported.len() == 1 && reported[0].contains("777"), "{reported:?}");
    assert_eq!((place.read(READ_AHEAD), place.read("queue/nomerges")), ("777".into(), "0".into()));
}

#[test]
fn only_persistent_settings_outlive_a_boot() {
    let place = Place::new();
    place.tree.write("proc/sys/kernel/random/boot_id", "first\n");
    let mut session = place.session(&[("read_ahead_kb", "4"), ("cache_type", "write through")]);
    let cache = "device/scsi_disk/2:0:0:0/cache_type";
    session
        .set(&[(place.number("read_ahead_kb"), "4"), (place.number("cache_type"), "write through")])
        .unwrap();
    assert_eq!((place.read(READ_AHEAD), place.read(cache)), ("4".into(), "write through".into()));
    let left = place.after_a_kill();
    place.tree.write("proc/sys/kernel/random/boot_id", "second\n");
    recover_in(left.path(), &place.roots());
    // Only the drive stores its setting; 4 is the value of this boot.
    assert_eq!((place.read(READ_AHEAD), place.read(cache)), ("4".into(), "write back".into()));
}

#[test]
fn attributes_reset_by_a_scheduler_are_restored() {
    let place = Place::new();
    let mut session = place.session(&[("scheduler", "bfq")]);
    let scheduler = place.number("scheduler");
    session.set(&[(scheduler, "bfq")]).unwrap();
    // Simulates the kernel.
    place.write("queue/nr_requests", "256");
    session.set(&[(scheduler, "bfq")]).unwrap();
    assert_eq!(place.read("queue/nr_requests"), "256", "as the scheduler that is tried has it");
    let left = place.after_a_kill();
    session.set(&[]).unwrap();
    assert_eq!(
        (place.read("queue/scheduler"), place.read("queue/nr_requests")),
        ("mq-deadline".into(), "64".into())
    );
    // Killed in between.
    place.write("queue/nr_requests", "256");
    recover_in(left.path(), &place.roots());
    assert_eq!(place.read("queue/nr_requests"), "64");
}

#[test]
fn an_untrusted_journal_is_not_applied() {
    let place = Place::new();
    let mut session = place.session(&[("read_ahead_kb", "4")]);
    session.set(&[(place.number("read_ahead_kb"), "4")]).unwrap();
    let text = fs::read_to_string(place.journal()).unwrap();
    let cases: [(&str, String, u32); 4] = [
        ("another user", text.clone(), 0o666),
        (
            "not a setting",
            text.replace("/sys/class/block/sda/queue/read_ahead_kb", "/etc/passwd"),
            0o600,
        ),
        ("not a setting", text.replace("/sys/class", "/sys/../etc"), 0o600),
        ("not a journal", text[..text.len() / 2].to_owned(), 0o600),
    ];
    for (why, text, mode) in cases {
        let left = tempfile::tempdir().unwrap();
        let journal = left.path().join("tune.journal");
        fs::write(&journal, text).unwrap();
        fs::set_permissions(&journal, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let reported = recover_in(left.path(), &place.roots());
        assert!(reported.len() == 1 && reported[0].contains(why), "{why}: {reported:?}");
        assert!(place.read(READ_AHEAD) == "4" && journal.exists(), "{why}: nothing was done");
    }
    assert_eq!(STATE_VARIABLE, "HALFPOWER_STATE");
}

#[test]
fn a_second_session_waits_for_the_first() {
    let place = Place::new();
    let first = place.session(&[("read_ahead_kb", "4")]);
    let error = Session::begin(place.state.path(), &place.roots(), &[], &mut Vec::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("another halfpower tune is running"), "{error}");
    drop(first);
    Session::begin(place.state.path(), &place.roots(), &[], &mut Vec::new()).unwrap();
}

#[test]
fn every_value_of_every_knob_may_be_journaled_and_no_other() {
    for (name, path) in [("sata_hdd", "/home"), ("nvme", "/var/lib/file")] {
        let tree = Tree::new(name);
        with_memory(&tree);
        let all = knobs(&tree, path).into_iter().map(|knob| {
            let values = knob.knob.alternatives.iter().map(|one| one.value.clone()).collect();
            (knob, values)
        });
        let all: Vec<(HostKnob, Vec<String>)> = all.collect();
        let state = tempfile::tempdir().unwrap();
        let session = Session::begin(state.path(), &tree.roots(), &all, &mut Vec::new()).unwrap();
        assert!(state.path().join("tune.journal").exists());
        drop(session);
    }
    let place = Place::new();
    let knob = place.knobs[place.number("read_ahead_kb")].clone();
    let wrong = [(knob, vec!["much".to_owned()])];
    let error = Session::begin(place.state.path(), &place.roots(), &wrong, &mut Vec::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("'much' is not a whole number") && !place.journal().exists(), "{error}");
}

#[test]
fn only_its_owner_can_open_the_lock() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let state = place.state.path().join("state");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let begin = || Session::begin(&state, &place.roots(), &[], &mut Vec::new()).unwrap();
    drop(begin());
    let lock = state.join("tune.lock");
    assert_eq!((mode(&state), mode(&lock)), (0o700, 0o600));
    // As created by an earlier version.
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).unwrap();
    drop(begin());
    assert_eq!(mode(&lock), 0o600);
}
