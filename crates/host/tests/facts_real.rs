//! Facts and counters of this machine, on loop devices.

mod common;

use common::{Loop, run, skip};
use host::counters::{CpuMeter, DeviceMeter, IdleBaseline, ProcessIoMeter};
use host::facts::{Roots, cgroup_v1_root, device_in_use, signature, under};
use machine::{LayerKind, Share};
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const MIB: u64 = 1 << 20;

fn scratch(bytes: u64) -> Result<Loop, String> {
    Loop::new_in(env!("CARGO_TARGET_TMPDIR"), bytes)
}

fn direct(path: &Path, write: bool, bytes: u64) {
    #[repr(align(4096))]
    struct Buffer([u8; 65536]);
    let mut buffer = Box::new(Buffer([0x5a; 65536]));
    let file =
        OpenOptions::new().read(true).write(write).custom_flags(libc::O_DIRECT).open(path).unwrap();
    for offset in (0..bytes).step_by(65536) {
        if write {
            file.write_all_at(&buffer.0, offset).unwrap();
        } else {
            file.read_exact_at(&mut buffer.0, offset).unwrap();
        }
    }
}

#[test]
fn a_loop_device_its_counters_and_its_users() {
    let mut device = match scratch(32 * MIB) {
        Ok(device) => device,
        Err(why) => return skip(&why),
    };
    let roots = Roots::default();
    let reported = under(&roots, &device.device).unwrap();
    assert_eq!(reported.layers[0].kind, LayerKind::Loop);
    assert_eq!(
        Path::new(&reported.layers[0].settings["backing_file"]),
        device.file().canonicalize().unwrap()
    );
    assert_eq!(
        reported.layers[1].kind,
        LayerKind::FileSystem,
        "what the file is on: {:?}",
        reported.layers
    );
    assert_eq!(
        reported.devices.counted.iter().map(|device| device.name.clone()).collect::<Vec<_>>(),
        [device.name()]
    );
    assert_eq!(reported.devices.sits_on, reported.devices.counted);
    assert!(
        reported.warnings.iter().any(|warning| warning.contains("through the file-system cache")),
        "{:?}",
        reported.warnings
    );

    assert_eq!(signature(&device.device).unwrap(), None);
    assert_eq!(device_in_use(&roots, &device.device), None);
    let of_file = device_in_use(&roots, &device.file()).expect("a loop device is on the file");
    assert!(
        of_file.ends_with(&format!("it is what the loop device {} is on", device.name())),
        "{of_file}"
    );

    let meter = DeviceMeter::open(&roots, &[device.name()]).unwrap();
    let before = meter.read().unwrap();
    direct(&device.device, true, 2 * MIB);
    direct(&device.device, false, MIB);
    let used = meter.read().unwrap().since(&before);
    assert_eq!((used.writes, used.write_bytes), (32, 2 * MIB));
    assert!(used.read_bytes >= MIB && used.reads >= 16, "at least ours: {used:?}");

    if let Err(why) =
        run("mkfs.ext4", &["-q", &device.shown()]).and_then(|_| device.mount().map(drop))
    {
        return skip(&why);
    }
    assert_eq!(signature(&device.device).unwrap().as_deref(), Some("an ext4 file system"));
    let point = device.mounted.clone().unwrap();
    let reason = device_in_use(&roots, &device.device).expect("it is mounted");
    assert!(
        reason.ends_with(&format!("{} is mounted on {}", device.name(), point.display())),
        "{reason}"
    );
    let reported = under(&roots, &point).unwrap();
    assert_eq!(
        (reported.layers[0].kind, reported.layers[1].kind),
        (LayerKind::FileSystem, LayerKind::Loop)
    );
    assert!(reported.layers[0].name.starts_with("ext4 on "), "{}", reported.layers[0].name);
    assert_eq!(reported.layers[0].settings["journal"], "yes");
    assert!(reported.block_bytes >= 1024 && !reported.in_memory);
}

#[test]
fn a_device_that_another_opened_exclusively() {
    let device = match scratch(MIB) {
        Ok(device) => device,
        Err(why) => return skip(&why),
    };
    let _held =
        OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&device.device).unwrap();
    let reason = device_in_use(&Roots::default(), &device.device).expect("it is held");
    assert!(reason.contains("holds it exclusively"), "{reason}");
}

#[test]
fn btrfs_over_two_loop_devices() {
    let made = scratch(256 * MIB).and_then(|one| Ok((one, scratch(256 * MIB)?))).and_then(
        |(mut one, two)| {
            run("mkfs.btrfs", &["-q", "-d", "raid0", "-m", "raid1", &one.shown(), &two.shown()])?;
            one.mount()?;
            Ok((one, two))
        },
    );
    let (one, two) = match made {
        Ok(made) => made,
        Err(why) => return skip(&why),
    };
    let roots = Roots::default();
    let reported = under(&roots, one.mounted.as_deref().unwrap()).unwrap();
    assert!(reported.layers[0].name.starts_with("btrfs on "), "{}", reported.layers[0].name);
    assert_eq!(
        (reported.layers[1].kind, reported.layers[1].name.as_str()),
        (LayerKind::Volume, "btrfs raid0 of 2")
    );
    let half = Share { reads: 0.5, writes: 0.5 };
    let loops = reported.layers.iter().filter(|layer| layer.kind == LayerKind::Loop);
    assert_eq!(loops.map(|layer| layer.share).collect::<Vec<_>>(), [half; 2]);
    let mut names = [one.name(), two.name()];
    names.sort();
    assert_eq!(
        reported.devices.counted.iter().map(|device| device.name.clone()).collect::<Vec<_>>(),
        names
    );
    assert!(
        device_in_use(&roots, &two.device).is_some(),
        "the second device has no mount of its own, but is in use"
    );
    assert_eq!(signature(&two.device).unwrap().as_deref(), Some("a btrfs file system"));
}

#[test]
fn a_limit_of_this_process_group() {
    let roots = Roots::default();
    let Some(root) = cgroup_v1_root(&roots, "blkio") else {
        return skip("no version-1 blkio control groups");
    };
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    if !groups.lines().any(|line| line.ends_with(":blkio:/")) {
        return skip("this process is not in the root group, whose limits are ours to set");
    }
    let device = match scratch(MIB) {
        Ok(device) => device,
        Err(why) => return skip(&why),
    };
    let number =
        std::fs::read_to_string(format!("/sys/class/block/{}/dev", device.name())).unwrap();
    let limit = |file: &str, value: u64| {
        std::fs::write(root.join(file), format!("{} {value}", number.trim()))
    };
    if let Err(error) = limit("blkio.throttle.read_bps_device", 20_000_000) {
        return skip(&format!("cannot set a limit: {error}"));
    }
    limit("blkio.throttle.write_iops_device", 500).unwrap();
    let reported = under(&roots, &device.device).unwrap();
    limit("blkio.throttle.read_bps_device", 0).unwrap();
    limit("blkio.throttle.write_iops_device", 0).unwrap();
    assert_eq!(
        (reported.layers[0].kind, reported.layers[1].kind),
        (LayerKind::Throttle, LayerKind::Loop),
        "{:?}",
        reported.layers
    );
    assert_eq!(
        (
            reported.layers[0].advertised_bytes_per_s,
            reported.layers[0].settings["write_iops"].as_str()
        ),
        (Some(20e6), "500")
    );
    assert_eq!(
        under(&roots, &device.device).unwrap().layers[0].kind,
        LayerKind::Loop,
        "taken back"
    );
}

#[test]
fn processor_time_of_the_process_is_in_the_machines() {
    let meter = CpuMeter::open(&Roots::default()).unwrap();
    let own_ns = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid for writes.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let before = meter.read().unwrap();
    let until = own_ns() + 200_000_000;
    while own_ns() < until {
        std::hint::spin_loop();
    }
    let after = meter.read().unwrap();
    let used = meter.used(&before, &after, IdleBaseline::NONE);
    let own = used.user_ns + used.system_ns;
    assert!(own >= 199_000_000, "{used:?}");
    // SAFETY: sysconf has no preconditions.
    let capacity =
        (after.at_ns - before.at_ns) * unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } as u64;
    // Idle time plus our own time fits, within the ticks that idle time is counted in.
    assert!(
        after.idle_ns - before.idle_ns + own <= capacity + 40_000_000,
        "{before:?} {after:?} {used:?}"
    );
    assert!(
        used.machine_ns >= own && used.machine_ns <= capacity + 40_000_000,
        "{used:?} of {capacity}"
    );
}

#[test]
fn block_io_of_this_process() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, vec![1; MIB as usize]).unwrap();
    let reported = under(&Roots::default(), &path).unwrap();
    if reported.devices.counted.is_empty() {
        return skip("the build directory is on no block device");
    }
    let meter = match ProcessIoMeter::open(&Roots::default()) {
        Ok(meter) => meter,
        Err(why) => return skip(&why.to_string()),
    };
    let before = meter.read().unwrap();
    direct(&path, true, MIB);
    direct(&path, false, MIB);
    let (read, written) = meter.read().unwrap().since(&before);
    assert!(read >= MIB && written >= MIB, "{read} read, {written} written");
}
