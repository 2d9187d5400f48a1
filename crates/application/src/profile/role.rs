//! A file's role, by its use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of a file in the application's work.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A file that is appended to, with each few writes made durable: a write-ahead log or journal.
    Log,
    /// A file that is read or written in places here and there.
    Data,
    /// A file that is written in bursts in places here and there, and then synced.
    Checkpoint,
    /// A file that is read once from one end to the other.
    Scan,
    /// A file that is written from one end to the other, and not made durable.
    Output,
    /// A file that is written and read back, and never made durable.
    Temporary,
    /// A file that is opened only, or used a few times.
    Other,
}

impl Role {
    pub const ALL: [Role; 7] = [
        Role::Log,
        Role::Data,
        Role::Checkpoint,
        Role::Scan,
        Role::Output,
        Role::Temporary,
        Role::Other,
    ];

    /// In a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Role::Log => "log",
            Role::Data => "data",
            Role::Checkpoint => "checkpoint",
            Role::Scan => "scan",
            Role::Output => "output",
            Role::Temporary => "temporary",
            Role::Other => "other",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) syncs: u64,
    pub(super) durable_writes: u64,
    pub(super) sequential_reads: f64,
    pub(super) appended_writes: f64,
    pub(super) reused: f64,
    pub(super) bursts: u64,
}

/// With fewer requests and syncs the use is unknown.
const FEW: u64 = 4;

/// Minimum share of requests in order.
pub(crate) const SEQUENTIAL: f64 = 0.6;

/// Per sync; a checkpoint has more.
const LOG_WRITES: u64 = 16;

/// Many syncs make a log even with more writes per sync, which gather while a sync is slow.
const MANY_SYNCS: u64 = 16;
const MAX_LOG_WRITES: u64 = 256;

impl Role {
    pub(super) fn of(shape: &Shape) -> Role {
        let Shape { reads, writes, syncs, durable_writes, .. } = *shape;
        let of_a_log = if syncs >= MANY_SYNCS { MAX_LOG_WRITES } else { LOG_WRITES };
        let is_dsync = durable_writes * 2 > writes;
        let is_durable = is_dsync || (syncs > 0 && writes <= syncs.saturating_mul(of_a_log));
        if reads + writes + syncs < FEW {
            return Role::Other;
        }
        // Replication and readers of recent pages read a log as often as it is written.
        let is_appended = writes > 0 && shape.appended_writes >= SEQUENTIAL;
        if is_appended && is_durable && (is_dsync || syncs >= FEW) {
            return Role::Log;
        }
        if writes > reads {
            return match (is_appended, is_durable) {
                (true, true) => Role::Log,
                (true, false) if reads > 0 => Role::Temporary,
                (true, false) => Role::Output,
                (false, _) if shape.bursts > 1 && syncs > 0 => Role::Checkpoint,
                (false, _) => Role::Data,
            };
        }
        let is_scan = shape.sequential_reads >= SEQUENTIAL && shape.reused < 0.1;
        match (is_scan, writes) {
            (true, 0) => Role::Scan,
            (true, _) if syncs == 0 => Role::Temporary,
            _ => Role::Data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_from_the_use() {
        let none = Shape {
            reads: 0,
            writes: 0,
            syncs: 0,
            durable_writes: 0,
            sequential_reads: 0.0,
            appended_writes: 0.0,
            reused: 0.0,
            bursts: 1,
        };
        let role = |shape| Role::of(&shape);
        assert_eq!(role(none), Role::Other);
        let appended = Shape { writes: 100, appended_writes: 1.0, ..none };
        assert_eq!(role(appended), Role::Output);
        assert_eq!(role(Shape { syncs: 100, ..appended }), Role::Log);
        assert_eq!(role(Shape { durable_writes: 100, ..appended }), Role::Log);
        assert_eq!(role(Shape { syncs: 1, ..appended }), Role::Output);
        assert_eq!(role(Shape { reads: 90, sequential_reads: 1.0, ..appended }), Role::Temporary);
        // Writes gather while a sync is slow; a replica reads all of it.
        let slow = Shape { syncs: 20, writes: 900, reads: 1000, ..appended };
        assert_eq!(role(slow), Role::Log);
        assert_eq!(role(Shape { syncs: 2, ..slow }), Role::Data);
        let random = Shape { writes: 100, syncs: 1, ..none };
        assert_eq!(role(random), Role::Data);
        assert_eq!(role(Shape { bursts: 3, ..random }), Role::Checkpoint);
        let read = Shape { reads: 100, sequential_reads: 1.0, ..none };
        assert_eq!(role(read), Role::Scan);
        assert_eq!(role(Shape { reused: 0.5, ..read }), Role::Data);
        assert_eq!(role(Shape { sequential_reads: 0.0, ..read }), Role::Data);
    }
}
