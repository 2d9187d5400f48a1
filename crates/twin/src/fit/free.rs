//! Which numbers of a machine a fit may move.

use crate::Setup;
use crate::description::Drive;

/// A number that may be moved.
pub(super) struct Free<'a> {
    /// Its path in the machine file.
    pub path: String,
    /// The number.
    pub value: &'a mut f64,
    /// Numbers that mean the same here and move with it.
    along: Vec<&'a mut f64>,
}

/// The least that a number starts from when it is moved: a time of zero could not grow by a factor.
const LEAST: f64 = 0.05;

impl Free<'_> {
    /// Multiplies the number, and those that go with it.
    pub fn scale(self, factor: f64) {
        *self.value = self.value.max(LEAST) * factor;
        for other in self.along {
            *other = *self.value;
        }
    }
}

type Numbers<'a> = Vec<(&'static str, &'a mut f64, Vec<&'a mut f64>)>;

/// The free numbers of a machine: its drive's, and what a request costs the processor.
pub(super) fn free(setup: &mut Setup) -> Vec<Free<'_>> {
    let drive = setup.drive.clone();
    let numbers = match setup.description.drives.get_mut(&setup.drive) {
        Some(drive) => of_drive(drive),
        None => Vec::new(),
    };
    let mut free: Vec<Free<'_>> =
        numbers.into_iter().map(|(name, value, along)| Free { path: format!("drives.{drive}.{name}"), value, along }).collect();
    let value = &mut setup.description.processor.request_us;
    free.push(Free { path: "processor.request_us".to_owned(), value, along: Vec::new() });
    free
}

fn of_drive(drive: &mut Drive) -> Numbers<'_> {
    match drive {
        Drive::Flash(d) => vec![
            ("link_bytes_per_s", &mut d.link_bytes_per_s, vec![]),
            ("controller_us", &mut d.controller_us, vec![]),
            ("read_us", &mut d.read_us, vec![]),
            ("cache_program_us", &mut d.cache_program_us, vec![]),
            ("command_us", &mut d.command_us, vec![]),
            ("channel_bytes_per_s", &mut d.channel_bytes_per_s, vec![]),
        ],
        Drive::Virtio(d) => {
            let mut numbers: Numbers<'_> = vec![
                ("total_bytes_per_s", &mut d.total_bytes_per_s, vec![]),
                ("read_us", &mut d.read_us, vec![]),
                ("write_us", &mut d.write_us, vec![]),
                ("notify_us", &mut d.notify_us, vec![]),
                ("read_bytes_per_s", &mut d.read_bytes_per_s, vec![]),
                ("write_bytes_per_s", &mut d.write_bytes_per_s, vec![]),
            ];
            if let Some(rate) = &mut d.total_read_bytes_per_s {
                numbers.push(("total_read_bytes_per_s", rate, vec![]));
            }
            numbers
        }
        Drive::Cloud(d) => {
            // Where there is no burst, the quota and its burst are one number.
            let (iops_burst, bytes_burst) = (d.burst_iops != d.iops, d.burst_bytes_per_s != d.bytes_per_s);
            let mut numbers: Numbers<'_> = vec![("read_us", &mut d.read_us, vec![]), ("write_us", &mut d.write_us, vec![])];
            numbers.push(("stream_bytes_per_s", &mut d.stream_bytes_per_s, vec![]));
            if iops_burst {
                numbers.push(("iops", &mut d.iops, vec![]));
                numbers.push(("burst_iops", &mut d.burst_iops, vec![]));
            } else {
                numbers.push(("iops", &mut d.iops, vec![&mut d.burst_iops]));
            }
            if bytes_burst {
                numbers.push(("bytes_per_s", &mut d.bytes_per_s, vec![]));
                numbers.push(("burst_bytes_per_s", &mut d.burst_bytes_per_s, vec![]));
            } else {
                numbers.push(("bytes_per_s", &mut d.bytes_per_s, vec![&mut d.burst_bytes_per_s]));
            }
            if let Some(iops) = &mut d.write_iops {
                numbers.push(("write_iops", iops, vec![]));
            }
            if let Some(rate) = &mut d.write_bytes_per_s {
                numbers.push(("write_bytes_per_s", rate, vec![]));
            }
            numbers
        }
        Drive::Disk(d) => {
            let mut numbers: Numbers<'_> = vec![
                ("rpm", &mut d.rpm, vec![]),
                ("track_skew_ms", &mut d.track_skew_ms, vec![]),
                ("firmware.read_us", &mut d.firmware.read_us, vec![]),
                ("firmware.write_us", &mut d.firmware.write_us, vec![]),
            ];
            if let Some(last) = d.seek.last_mut() {
                numbers.push(("seek", &mut last.1, vec![]));
            }
            numbers
        }
    }
}
