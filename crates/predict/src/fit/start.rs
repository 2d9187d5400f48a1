//! The machine as given, and with measured numbers.

use super::FitPoint;
use twin::Setup;
use twin::description::{CloudVolume, Drive, FlashDrive, VirtioDisk};

#[derive(Debug, Clone, Copy, Default)]
struct Summary {
    /// Of a request at depth 1.
    min_latency_us: f64,
    iops: f64,
    bytes_per_s: f64,
}

fn summarise<'a>(points: impl Iterator<Item = &'a FitPoint>) -> Option<Summary> {
    let mut seen = Summary { min_latency_us: f64::INFINITY, ..Summary::default() };
    for point in points {
        let iops = point.throughput_bytes_per_s / f64::from(point.request_bytes);
        seen.min_latency_us = seen.min_latency_us.min(f64::from(point.depth) * 1e6 / iops);
        seen.iops = seen.iops.max(iops);
        seen.bytes_per_s = seen.bytes_per_s.max(point.throughput_bytes_per_s);
    }
    (seen.iops > 0.0).then_some(seen)
}

pub(super) fn starts(base: &Setup, points: &[&FitPoint]) -> Vec<Setup> {
    let of = |reads: bool| {
        summarise(points.iter().copied().filter(|point| (point.read_percent >= 50) == reads))
    };
    let (read, write) = (of(true), of(false));
    // If only one operation was measured, assume the other is the same.
    let (Some(read), Some(write)) = (read.or(write), write.or(read)) else {
        return vec![base.clone()];
    };
    let drives: Vec<Drive> = match base.drive() {
        Drive::Virtio(disk) => virtio(disk, read, write),
        Drive::Cloud(volume) => cloud(volume, read, write),
        Drive::Flash(drive) => vec![Drive::Flash(drive.clone()), flash(drive, read, write)],
        Drive::Disk(disk) => vec![Drive::Disk(disk.clone())],
        Drive::Network(volume) => vec![Drive::Network(volume.clone())],
        Drive::CachedFlash(drive) => vec![Drive::CachedFlash(drive.clone())],
    };
    let with = |drive: Drive| {
        let mut setup = base.clone();
        setup.description.drives.insert(base.drive.clone(), drive);
        setup
    };
    drives
        .into_iter()
        .map(with)
        .filter(|setup| twin::preset::check(&setup.description).is_none())
        .collect()
}

/// For each number of workers, which is an integer.
fn virtio(disk: &VirtioDisk, read: Summary, write: Summary) -> Vec<Drive> {
    let mut drives = Vec::new();
    for (workers, batched) in
        [1, 2, 4, 8, 16, 32].into_iter().flat_map(|workers| [(workers, false), (workers, true)])
    {
        drives.push(Drive::Virtio(Box::new(VirtioDisk { workers, batched, ..disk.clone() })));
        // Assume half of a depth-1 request is worker time and half notification.
        drives.push(Drive::Virtio(Box::new(VirtioDisk {
            workers,
            batched,
            notify_us: read.min_latency_us.min(write.min_latency_us) / 2.0,
            read_us: read.min_latency_us / 2.0,
            write_us: write.min_latency_us / 2.0,
            read_bytes_per_s: read.bytes_per_s,
            write_bytes_per_s: write.bytes_per_s,
            total_bytes_per_s: write.bytes_per_s,
            total_read_bytes_per_s: Some(read.bytes_per_s),
            ..disk.clone()
        })));
    }
    drives
}

fn cloud(volume: &CloudVolume, read: Summary, write: Summary) -> Vec<Drive> {
    let (iops, bytes_per_s) = (read.iops.max(write.iops), read.bytes_per_s.max(write.bytes_per_s));
    let shared = CloudVolume {
        iops,
        burst_iops: iops,
        bytes_per_s,
        burst_bytes_per_s: bytes_per_s,
        read_us: read.min_latency_us,
        write_us: write.min_latency_us,
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

fn flash(drive: &FlashDrive, read: Summary, write: Summary) -> Drive {
    let link_bytes_per_s = read.bytes_per_s.max(write.bytes_per_s);
    Drive::Flash(Box::new(FlashDrive {
        link_bytes_per_s,
        channel_bytes_per_s: link_bytes_per_s,
        controller_us: 1e6 / read.iops.max(write.iops),
        command_us: write.min_latency_us / 2.0,
        read_us: (read.min_latency_us - write.min_latency_us / 2.0).max(read.min_latency_us / 4.0),
        ..drive.clone()
    }))
}
