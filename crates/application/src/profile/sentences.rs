//! A profile in words.

use super::{FileProfile, FlowProfile, Profile, Role, SyncProfile};
use crate::Latency;
use machine::Nanos;
use machine::units::{plural, show_size, show_time};

const SHOWN: usize = 12;

impl FileProfile {
    pub(super) fn has_requests(&self) -> bool {
        self.reads.is_some()
            || self.writes.is_some()
            || self.syncs.is_some()
            || self.mapped_reads > 0
    }

    /// Returns `log: appends of 8 KiB, one at a time, each followed by fdatasync (p50 0.9 ms, p99 4
    /// ms), 210/s; 71 % of the time waited`.
    pub fn sentence(&self, elapsed_ns: Nanos) -> String {
        let flows = [("read", &self.reads), ("write", &self.writes)];
        let mut parts: Vec<String> = flows
            .into_iter()
            .filter_map(|(word, flow)| Some(flow_text(self.role, word, flow.as_ref()?, elapsed_ns)))
            .collect();
        if self.mapped_reads > 0 {
            parts
                .push(format!("{} of a mapping", plural(self.mapped_reads as usize, "page fault")));
        }
        if self.prefetches > 0 {
            parts.push(format!("{} prefetches", self.prefetches));
        }
        if let Some(concurrency) = self.concurrency.as_ref().filter(|_| !parts.is_empty()) {
            parts.push(match concurrency.max {
                1 => "one at a time".to_owned(),
                max => format!("{:.1} at a time (at most {max})", concurrency.mean),
            });
        }
        if let Some(syncs) = &self.syncs {
            parts.push(sync(syncs, elapsed_ns));
        }
        if let Some(locality) = self.locality.as_ref().filter(|locality| locality.reused >= 0.05) {
            parts.push(format!(
                "reads {} again and again ({:.0} % reuse; a cache of {} serves most)",
                show_size(locality.working_set_bytes),
                locality.reused * 100.0,
                show_size(locality.cache_bytes)
            ));
        }
        if let Some(bursts) = self.bursts.as_ref().filter(|bursts| bursts.count > 1) {
            parts.push(format!("writes in {} bursts of {:.0} s", bursts.count, bursts.mean_s));
        }
        if self.deleted {
            parts.push("deleted".to_owned());
        }
        format!(
            "{}: {}; {:.0} % of the time waited",
            self.role.name(),
            parts.join(", "),
            self.waited_share * 100.0
        )
    }
}

fn flow_text(role: Role, word: &str, flow: &FlowProfile, elapsed_ns: Nanos) -> String {
    let size = flow.sizes.first().map_or(0, |size| size.bytes);
    let is_one_size =
        flow.sizes.first().is_some_and(|size| size.requests * 10 >= flow.requests * 9);
    let size = if is_one_size { show_size(size) } else { format!("mostly {}", show_size(size)) };
    let again = flow.rewrites.unwrap_or(0.0);
    let order = match (flow.sequential, role, word) {
        (Some(_), Role::Log, "write") if again < 0.05 => "appends".to_owned(),
        (Some(_), Role::Log, "write") => {
            format!("appends ({:.0} % write the last block again)", again * 100.0)
        }
        (None, ..) => format!("{word}s (their order was not recorded)"),
        (Some(share), ..) if share >= 0.6 => format!("sequential {word}s"),
        (Some(share), ..) if share <= 0.1 => format!("random {word}s"),
        (Some(share), ..) => format!("{word}s, {:.0} % of them sequential,", share * 100.0),
    };
    let mut text = format!("{} {order} of {size}", per_second(flow.requests, elapsed_ns));
    if flow.direct > 0.5 {
        text += " with O_DIRECT";
    }
    if flow.durable > 0.5 {
        text += " with O_DSYNC";
    }
    if let Some(latency) = &flow.latency {
        text += &format!(" ({})", times(latency));
    }
    if flow.direct > 0.0 && flow.aligned.is_some_and(|aligned| aligned < 0.5) {
        text += ", not aligned to 4 KiB";
    }
    text
}
fn sync(syncs: &SyncProfile, elapsed_ns: Nanos) -> String {
    let name = if syncs.data_only > 0.5 { "fdatasync" } else { "fsync" };
    let follows = match syncs.writes_per_call {
        writes if writes < 0.5 => name.to_owned(),
        writes if writes < 1.5 => format!("each followed by {name}"),
        writes => format!("{name} after every {writes:.0} writes"),
    };
    let times =
        syncs.latency.as_ref().map_or(String::new(), |latency| format!(", {}", times(latency)));
    format!("{follows} ({}{times})", per_second(syncs.calls, elapsed_ns))
}

fn times(latency: &Latency) -> String {
    format!("p50 {}, p99 {}", show_time(latency.p50_ns as f64), show_time(latency.p99_ns as f64))
}

fn per_second(count: u64, elapsed_ns: Nanos) -> String {
    let rate = count as f64 / (elapsed_ns.max(1) as f64 / 1e9);
    if rate >= 10.0 { format!("{rate:.0}/s") } else { format!("{rate:.1}/s") }
}

impl Profile {
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        let what =
            if self.command.is_empty() { "recording".into() } else { self.command.join(" ") };
        lines.push(format!(
            "{what}: {} of {} in {}",
            plural(self.requests as usize, "request"),
            plural(self.threads as usize, "thread"),
            show_time(self.elapsed_ns as f64)
        ));
        lines.extend(self.doubts.iter().map(|doubt| format!("doubt: {doubt}")));
        let thread_time = self.elapsed_ns.max(1) as f64 * self.threads.max(1) as f64;
        lines.push(format!(
            "its threads waited {:.1} % of their time for storage calls{}",
            self.waited_ns as f64 / thread_time * 100.0,
            self.think_ns.map_or(String::new(), |think| format!(
                "; {} between two requests of a thread",
                show_time(think as f64)
            ))
        ));
        if let Some(hits) = self.read_hits {
            lines.push(format!(
                "{:.0} % of the bytes that it read came from the page cache",
                hits * 100.0
            ));
        }
        for file in self.files.iter().take(SHOWN) {
            lines.push(String::new());
            let size = match (file.size_bytes, file.grown_to_bytes) {
                (None, _) => String::new(),
                (Some(size), None) => format!(" ({})", show_size(size)),
                (Some(0), Some(end)) => format!(" (new, {})", show_size(end)),
                (Some(size), Some(end)) => {
                    format!(" ({}, grew to {})", show_size(size), show_size(end))
                }
            };
            lines.push(format!("{}{size}", file.name));
            lines.push(format!("  {}", file.sentence(self.elapsed_ns)));
        }
        if let Some(more) = self.files.len().checked_sub(SHOWN).filter(|&more| more > 0) {
            lines.push(format!("\n{more} more files: --json shows all"));
        }
        for device in &self.devices {
            let flows = [("read", &device.reads), ("write", &device.writes)];
            let parts: Vec<String> = flows
                .into_iter()
                .filter_map(|(word, flow)| {
                    Some(flow_text(Role::Other, word, flow.as_ref()?, self.elapsed_ns))
                })
                .collect();
            lines.push(format!("\n{}\n  reached the device: {}", device.name, parts.join(", ")));
        }
        lines.join("\n") + "\n"
    }
}
