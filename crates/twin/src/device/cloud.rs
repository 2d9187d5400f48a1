//! Cloud volumes: quotas with burst credit.

use crate::device::{Command, Device, Drives, Model, Slot, Tunable};
use crate::units::us;
use machine::{BurstFacts, Layer, Nanos, Op};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudVolume {
    pub about: String,
    pub capacity_bytes: u64,
    pub iops: f64,
    pub burst_iops: f64,
    pub credit_requests: f64,
    /// The largest request that counts as one.
    pub request_bytes: u64,
    pub bytes_per_s: f64,
    pub burst_bytes_per_s: f64,
    pub credit_bytes: f64,
    /// As in a Linux control group. Absent: writes share the quota of reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes_per_s: Option<f64>,
    /// Limits count each flush and each journal block before merging, as a Linux control group
    /// does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub throttle: bool,
    pub read_us: f64,
    pub write_us: f64,
    /// Of a single request.
    pub stream_bytes_per_s: f64,
    pub queue: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Model for CloudVolume {
    fn build(&self, _slot: Slot) -> Box<dyn Device> {
        Box::new(Cloud::new(self.clone()))
    }

    fn layers(&self, drives: &Drives<'_>) -> Vec<Layer> {
        let mut layer = drives.disks(Some(self.bytes_per_s));
        layer.advertised_iops = Some(self.iops * f64::from(drives.count));
        let count = f64::from(drives.count);
        let burst = |in_requests, sustained: f64, burst: f64, credit: f64| BurstFacts {
            in_requests,
            burst_per_s: burst * count,
            sustained_per_s: sustained * count,
            // Credit is earned while it is spent.
            lasts_s: credit / (burst - sustained),
        };
        layer.facts.bursts = vec![
            burst(true, self.iops, self.burst_iops, self.credit_requests),
            burst(false, self.bytes_per_s, self.burst_bytes_per_s, self.credit_bytes),
        ];
        layer.facts.bursts.retain(|one| one.burst_per_s > one.sustained_per_s && one.lasts_s > 0.0);
        vec![layer]
    }

    fn scale_latency(&mut self, by: f64) {
        self.read_us *= by;
        self.write_us *= by;
    }

    fn tunable(&mut self) -> Vec<Tunable<'_>> {
        // Without a burst, the quota and its burst are one number.
        let (iops_burst, bytes_burst) =
            (self.burst_iops != self.iops, self.burst_bytes_per_s != self.bytes_per_s);
        let mut numbers = vec![
            Tunable::new("read_us", &mut self.read_us),
            Tunable::new("write_us", &mut self.write_us),
            Tunable::new("stream_bytes_per_s", &mut self.stream_bytes_per_s),
        ];
        let requests = ("iops", &mut self.iops, "burst_iops", &mut self.burst_iops);
        let bytes = (
            "bytes_per_s",
            &mut self.bytes_per_s,
            "burst_bytes_per_s",
            &mut self.burst_bytes_per_s,
        );
        for ((name, value, burst_name, burst), differ) in
            [(requests, iops_burst), (bytes, bytes_burst)]
        {
            if differ {
                numbers.extend([Tunable::new(name, value), Tunable::new(burst_name, burst)]);
            } else {
                numbers.push(Tunable { name, value, along: vec![burst] });
            }
        }
        numbers.extend(self.write_iops.as_mut().map(|iops| Tunable::new("write_iops", iops)));
        numbers.extend(
            self.write_bytes_per_s.as_mut().map(|rate| Tunable::new("write_bytes_per_s", rate)),
        );
        numbers
    }
}

struct Bucket {
    earn_per_s: f64,
    spend_per_s: f64,
    full: f64,
    credit: f64,
    at: Nanos,
    paced: Nanos,
}

impl Bucket {
    fn new(earn_per_s: f64, spend_per_s: f64, full: f64) -> Self {
        Bucket { earn_per_s, spend_per_s, full, credit: full, at: 0, paced: 0 }
    }

    fn earn(&mut self, now: Nanos) {
        if now > self.at {
            self.credit =
                (self.credit + (now - self.at) as f64 * 1e-9 * self.earn_per_s).min(self.full);
            self.at = now;
        }
    }

    fn admit(&mut self, now: Nanos, amount: f64) -> Nanos {
        let start = now.max(self.paced);
        self.earn(start);
        self.credit -= amount;
        let debt = if self.credit < 0.0 { -self.credit / self.earn_per_s } else { 0.0 };
        let pass = start.max(self.at + (debt * 1e9) as Nanos);
        self.paced = start + (amount / self.spend_per_s * 1e9) as Nanos;
        pass
    }

    fn rest(&mut self, now: Nanos) {
        self.earn(now);
        (self.at, self.paced) = (0, 0);
    }
}

struct Quota {
    requests: Bucket,
    bytes: Bucket,
    used: (f64, f64),
}

impl Quota {
    fn rest(&mut self, now: Nanos) {
        self.requests.rest(now);
        self.bytes.rest(now);
        self.used = (0.0, 0.0);
    }

    fn admit(&mut self, now: Nanos, counted: f64, bytes: f64) -> Nanos {
        self.used = (self.used.0 + counted, self.used.1 + bytes);
        self.requests.admit(now, counted).max(self.bytes.admit(now, bytes))
    }

    fn busy(&self) -> Nanos {
        let (requests, bytes) =
            (self.used.0 / self.requests.spend_per_s, self.used.1 / self.bytes.spend_per_s);
        (requests.max(bytes) * 1e9) as Nanos
    }
}

struct Cloud {
    volume: CloudVolume,
    quota: Quota,
    writes: Option<Quota>,
    limited: Nanos,
}

impl Cloud {
    fn new(volume: CloudVolume) -> Self {
        let (requests, bytes) =
            (volume.credit_requests.max(1.0), volume.credit_bytes.max(volume.request_bytes as f64));
        let quota = Quota {
            requests: Bucket::new(volume.iops, volume.burst_iops, requests),
            bytes: Bucket::new(volume.bytes_per_s, volume.burst_bytes_per_s, bytes),
            used: (0.0, 0.0),
        };
        let writes =
            (volume.write_iops.is_some() || volume.write_bytes_per_s.is_some()).then(|| {
                let (iops, rate) = (
                    volume.write_iops.unwrap_or(volume.iops),
                    volume.write_bytes_per_s.unwrap_or(volume.bytes_per_s),
                );
                Quota {
                    requests: Bucket::new(iops, iops, requests),
                    bytes: Bucket::new(rate, rate, bytes),
                    used: (0.0, 0.0),
                }
            });
        Cloud { volume, quota, writes, limited: 0 }
    }
}

impl Cloud {
    fn admit(&mut self, now: Nanos, op: Op, counted: u64, bytes: u64) -> Nanos {
        let quota = match (&mut self.writes, op) {
            (Some(writes), Op::Write) => writes,
            _ => &mut self.quota,
        };
        let admitted = quota.admit(now, counted as f64, bytes as f64);
        self.limited = self.quota.busy().max(self.writes.as_ref().map_or(0, Quota::busy));
        admitted
    }
}

impl Device for Cloud {
    fn capacity_bytes(&self) -> u64 {
        self.volume.capacity_bytes
    }

    fn queue(&self) -> u32 {
        self.volume.queue
    }

    fn rest(&mut self, now: Nanos) {
        self.quota.rest(now);
        if let Some(writes) = &mut self.writes {
            writes.rest(now);
        }
        self.limited = 0;
    }

    fn serve(&mut self, now: Nanos, command: &Command) -> Nanos {
        let mut counted = command.bytes.div_ceil(self.volume.request_bytes).max(1);
        if self.volume.throttle {
            counted = counted.max(command.queued);
        }
        let admitted = self.admit(now, command.op, counted, command.bytes);
        let latency =
            if command.op == Op::Read { self.volume.read_us } else { self.volume.write_us };
        admitted
            + us(latency)
            + (command.bytes as f64 / self.volume.stream_bytes_per_s * 1e9) as Nanos
    }

    fn admit_flush(&mut self, now: Nanos) -> Nanos {
        if self.volume.throttle { self.admit(now, Op::Write, 1, 0) } else { now }
    }

    fn busy(&self, ran: Nanos) -> Vec<(&'static str, Nanos)> {
        vec![("volume quota", self.limited.min(ran))]
    }
}
