//! Compares an application with a study of its volume.

mod advice;
mod cause;
mod demand;
mod reference;
mod workloads;

pub use workloads::workloads;

use crate::profile::{Profile, Role};
use demand::Demand;
use reference::References;
use results::{Kind, Limit, Results};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::OpKind;

/// The verdict on an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The volume that the study measured.
    pub target: String,
    /// The study's start in seconds since 1970-01-01 UTC.
    pub studied_unix_s: u64,
    /// The study's kind: a sweep is one that was measured for this application.
    pub study: Kind,
    /// Reads and writes by role, the longest waited for first.
    pub flows: Vec<FlowVerdict>,
    /// Reasons not to trust the verdict.
    pub doubts: Vec<String>,
}

/// The requests of one kind to the files of one role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowVerdict {
    pub role: Role,
    pub op: OpKind,
    /// Number of files with this role.
    pub files: u64,
    /// The file that is waited for longest.
    pub name: String,
    pub shape: Shape,
    /// Requests per second while at least one is under way; of durable writes, those made durable by
    /// one call count as one.
    pub iops: f64,
    pub throughput_bytes_per_s: f64,
    /// Share of the recording's time with at least one such request under way, 0 to 1.
    pub busy_share: f64,
    /// Share of the program's waiting that is for these requests, 0 to 1.
    pub waited_share: f64,
    /// The study's rate of the same requests; `None` if it has none like them.
    pub same: Option<Reference>,
    /// The application's rate over the rate in `same`.
    pub share: Option<Share>,
    /// The study's best rate of requests of this size, order and durability, with any number
    /// outstanding.
    pub best: Option<Reference>,
    /// The application's rate over the rate in `best`.
    pub share_of_best: Option<Share>,
    pub limit: Limit,
    /// Changes to the program, the most useful first.
    pub advice: Vec<Advice>,
}

/// The form of the requests, as a study's points have it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Mean request size in bytes; for durable writes, the bytes that one call makes durable.
    pub request_bytes: f64,
    pub sequential: bool,
    /// Mean number of requests under way while there is at least one.
    pub outstanding: f64,
    /// The program waits until the requests are on stable storage.
    pub durable: bool,
    /// The requests bypass the page cache.
    pub direct: bool,
    /// The writes go to space that the file did not have before.
    pub extends: bool,
}

/// A rate of the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// Indices of the study's points with this rate; two if the size is between theirs.
    pub points: Vec<usize>,
    pub request_bytes: f64,
    pub outstanding: u32,
    pub iops: f64,
    pub iops_interval_95: Option<[f64; 2]>,
}

/// A ratio with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    pub ratio: f64,
    pub interval_95: Option<[f64; 2]>,
}

/// A change to the program, with its effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    pub change: Change,
    /// The predicted rate of these requests over the present one.
    pub gain: Share,
    /// The predicted speedup of the whole program, if its other work takes as long as now.
    pub program_gain: Share,
    /// The study's points with the present and the changed setting; empty if the recording itself
    /// shows the gain.
    pub points: Vec<usize>,
}

/// A change to the program.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// One call makes this many times as much durable: group commit.
    GroupCommit { times: u32 },
    /// Keep this many requests outstanding: prefetch, asynchronous I/O, more threads.
    Deeper { outstanding: u32 },
    /// Requests of this size.
    Larger { request_bytes: u64 },
    /// Write into space that the file already has.
    Preallocate,
    /// Start requests at multiples of the block size.
    Align { block_bytes: u32 },
    /// Read ahead as much as this many bytes.
    ReadAhead { bytes: u64 },
    /// A cache of this size.
    Cache { bytes: u64 },
}

/// Flows with less of the waiting are left out.
const MIN_WAITED: f64 = 0.01;

pub fn verdict(profile: &Profile, study: &Results) -> Verdict {
    let mut flows: Vec<FlowVerdict> = demand::demands(profile)
        .iter()
        .filter(|demand| demand.waited_share >= MIN_WAITED)
        .map(|demand| of_flow(demand, profile, study))
        .collect();
    flows.sort_by(|a, b| b.waited_share.total_cmp(&a.waited_share));
    let mut doubts = Vec::new();
    if flows.iter().any(|flow| flow.same.is_none()) {
        let which: Vec<String> = flows
            .iter()
            .filter(|flow| flow.same.is_none())
            .map(|flow| format!("{} {}s", flow.role.name(), flow.op))
            .collect();
        doubts.push(format!(
            "the study has no point like the {}; --now measures them",
            which.join(" and the ")
        ));
    }
    let prefetches: u64 = profile.files.iter().map(|file| file.prefetches).sum();
    let is_deeper = |advice: &Advice| matches!(advice.change, Change::Deeper { .. });
    if prefetches > 0 && flows.iter().flat_map(|flow| &flow.advice).any(is_deeper) {
        doubts.push(format!(
            "the program prefetches already ({prefetches} calls of posix_fadvise or readahead): more outstanding may gain less"
        ));
    }
    if study.machine.simulated {
        doubts.push("the study is of a simulated machine, not of the recorded one".to_owned());
    }
    Verdict {
        target: study.target.name.clone(),
        studied_unix_s: study.began_unix_s,
        study: study.kind,
        flows,
        doubts,
    }
}

fn of_flow(demand: &Demand, profile: &Profile, study: &Results) -> FlowVerdict {
    let references = References::new(study, demand);
    let (same, best) = (references.same(), references.best());
    let share =
        |reference: &Option<Reference>| reference.as_ref().map(|one| one.share_of(demand.iops));
    let limit = cause::limit(demand, profile, study, (same.as_ref(), best.as_ref()));
    let advice = advice::advice(demand, &references, limit.what);
    FlowVerdict {
        role: demand.role,
        op: demand.op,
        files: demand.files,
        name: demand.name.clone(),
        shape: demand.shape,
        iops: demand.iops,
        throughput_bytes_per_s: demand.bytes_per_s(),
        busy_share: demand.busy_share,
        waited_share: demand.waited_share,
        share: share(&same),
        share_of_best: share(&best),
        same,
        best,
        limit,
        advice,
    }
}
