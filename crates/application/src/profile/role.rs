//! The role of a file, by its use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of a file in the application's work.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Appended, and each few writes made durable: a write-ahead log or journal.
    Log,
    /// Read or written in places here and there.
    Data,
    /// Written in bursts in places here and there, and then synced.
    Checkpoint,
    /// Read once from one end to the other.
    Scan,
    /// Written from one end to the other, and not made durable.
    Output,
    /// Written and read back, and never made durable.
    Temporary,
    /// Opened only, or used a few times.
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

    /// Its name in a sentence.
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

/// The figures that decide a role.
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

/// Requests and syncs below which the use of a file is not known.
const FEW: u64 = 4;

/// From here on requests are called sequential.
const SEQUENTIAL: f64 = 0.6;

/// Writes per sync of a log; a checkpoint has more.
const LOG_WRITES: u64 = 16;

impl Role {
    pub(super) fn of(shape: &Shape) -> Role {
        let Shape { reads, writes, syncs, durable_writes, .. } = *shape;
        let is_durable = durable_writes * 2 > writes
            || (syncs > 0 && writes <= syncs.saturating_mul(LOG_WRITES));
        if reads + writes + syncs < FEW {
            return Role::Other;
        }
        if writes > reads {
            let is_appended = shape.appended_writes >= SEQUENTIAL;
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
        let random = Shape { writes: 100, syncs: 1, ..none };
        assert_eq!(role(random), Role::Data);
        assert_eq!(role(Shape { bursts: 3, ..random }), Role::Checkpoint);
        let read = Shape { reads: 100, sequential_reads: 1.0, ..none };
        assert_eq!(role(read), Role::Scan);
        assert_eq!(role(Shape { reused: 0.5, ..read }), Role::Data);
        assert_eq!(role(Shape { sequential_reads: 0.0, ..read }), Role::Data);
    }
}
