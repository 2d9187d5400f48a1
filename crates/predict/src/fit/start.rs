//! Where a search begins: the machine as it is, and with numbers read off the measurements.

use super::FitPoint;
use twin::Setup;
use twin::description::{CloudVolume, Drive, FlashDrive, VirtioDisk};

/// What the points of one operation say at a glance.
#[derive(Debug, Clone, Copy, Default)]
struct Glance {
    /// The shortest time of a request with none beside it, in microseconds.
    alone_us: f64,
    /// Requests per second at best.
    iops: f64,
    /// Bytes per second at best.
    bytes_per_s: f64,
}

fn glance<'a>(points: impl Iterator<Item = &'a FitPoint>) -> Option<Glance> {
    let mut seen = Glance { alone_us: f64::INFINITY, ..Glance::default() };
    for point in points {
        let iops = point.throughput_bytes_per_s / f64::from(point.request_bytes);
        seen.alone_us = seen.alone_us.min(f64::from(point.depth) * 1e6 / iops);
        seen.iops = seen.iops.max(iops);
        seen.bytes_per_s = seen.bytes_per_s.max(point.throughput_bytes_per_s);
    }
    (seen.iops > 0.0).then_some(seen)
}

/// The machines from which searches may begin.
pub(super) fn starts(base: &Setup, points: &[&FitPoint]) -> Vec<Setup> {
    let of = |reads: bool| glance(points.iter().copied().filter(|point| (point.read_percent >= 50) == reads));
    let (read, write) = (of(true), of(false));
    // Where only one was measured, the other is taken to be like it.
    let (Some(read), Some(write)) = (read.or(write), write.or(read)) else { return vec![base.clone()] };
    let drives: Vec<Drive> = match base.drive() {
        Drive::Virtio(disk) => virtio(disk, read, write),
        Drive::Cloud(volume) => cloud(volume, read, write),
        Drive::Flash(drive) => vec![Drive::Flash(drive.clone()), flash(drive, read, write)],
        Drive::Disk(disk) => vec![Drive::Disk(disk.clone())],
        Drive::Network(volume) => vec![Drive::Network(volume.clone())],
    };
    let with = |drive: Drive| {
        let mut setup = base.clone();
        setup.description.drives.insert(base.drive.clone(), drive);
        setup
    };
    drives.into_iter().map(with).filter(|setup| twin::preset::check(&setup.description).is_none()).collect()
}

/// The workers are a whole number, so they are tried one by one.
fn virtio(disk: &VirtioDisk, read: Glance, write: Glance) -> Vec<Drive> {
    let mut drives = Vec::new();
    for (workers, batched) in [1, 2, 4, 8, 16, 32].into_iter().flat_map(|workers| [(workers, false), (workers, true)]) {
        drives.push(Drive::Virtio(Box::new(VirtioDisk { workers, batched, ..disk.clone() })));
        // A request of one worker alone is half its own time and half the way there and back.
        drives.push(Drive::Virtio(Box::new(VirtioDisk {
            workers,
            batched,
            notify_us: read.alone_us.min(write.alone_us) / 2.0,
            read_us: read.alone_us / 2.0,
            write_us: write.alone_us / 2.0,
            read_bytes_per_s: read.bytes_per_s,
            write_bytes_per_s: write.bytes_per_s,
            total_bytes_per_s: write.bytes_per_s,
            total_read_bytes_per_s: Some(read.bytes_per_s),
            ..disk.clone()
        })));
    }
    drives
}

/// One quota for all, and one for each.
fn cloud(volume: &CloudVolume, read: Glance, write: Glance) -> Vec<Drive> {
    let (iops, bytes_per_s) = (read.iops.max(write.iops), read.bytes_per_s.max(write.bytes_per_s));
    let shared = CloudVolume {
        iops,
        burst_iops: iops,
        bytes_per_s,
        burst_bytes_per_s: bytes_per_s,
        read_us: read.alone_us,
        write_us: write.alone_us,
        stream_bytes_per_s: 10.0 * bytes_per_s,
        ..volume.clone()
    };
    let divided = CloudVolume {
        iops: read.iops,
        burst_iops: read.iops,
        bytes_per_s: read.bytes_per_s,
        burst_bytes_per_s: read.bytes_per_s,
        write_iops: Some(write.iops),
        write_bytes_per_s: Some(write.bytes_per_s),
        ..shared.clone()
    };
    [volume.clone(), shared, divided].map(|volume| Drive::Cloud(Box::new(volume))).into()
}

fn flash(drive: &FlashDrive, read: Glance, write: Glance) -> Drive {
    let link_bytes_per_s = read.bytes_per_s.max(write.bytes_per_s);
    Drive::Flash(Box::new(FlashDrive {
        link_bytes_per_s,
        channel_bytes_per_s: link_bytes_per_s,
        controller_us: 1e6 / read.iops.max(write.iops),
        command_us: write.alone_us / 2.0,
        read_us: (read.alone_us - write.alone_us / 2.0).max(read.alone_us / 4.0),
        ..drive.clone()
    }))
}
