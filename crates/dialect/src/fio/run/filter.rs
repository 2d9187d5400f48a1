//! Features that hold, watch or end a stream.

use super::core::{Core, Issue};
use super::finished::Finished;
use super::stream_stats::Done;
use machine::{Completion, Nanos, Next, Request, Stability};

/// No method has a default, so that each feature considers new ones. [`ignores`](ignores!) lists
/// unneeded ones.
pub(crate) trait Filter: Send {
    fn begin(&mut self, core: &Core);

    /// `None`: go on.
    fn before(&mut self, core: &mut Core, now: Nanos) -> Option<Next>;

    fn issued(&mut self, core: &mut Core, issue: &Issue);

    fn idle(&mut self, next: Next);

    /// `done` is absent for failed and unmeasured requests. `whole`: not a trim whose write
    /// follows.
    fn completed(&mut self, core: &mut Core, slot: u32, whole: bool, done: Option<&Done>);

    fn synced(&mut self, core: &mut Core, what: Stability, began: Nanos, ended: Nanos);

    fn owes(&mut self, core: &Core) -> Option<Stability>;

    /// `done`: all requests were made.
    fn left(&mut self, done: bool);

    fn fails(&mut self);

    fn read_back(&mut self, completion: Completion, now: Nanos);

    fn fill(&mut self, request: &Request, buffer: &mut [u8]);

    fn check(&mut self, core: &mut Core, slot: u32, data: &[u8]);

    fn finish(self: Box<Self>, finished: &mut Finished);
}

macro_rules! ignores {
    ($($method:ident)*) => { $($crate::fio::run::filter::ignores!(@ $method);)* };
    (@ begin) => { fn begin(&mut self, _: &$crate::fio::run::core::Core) {} };
    (@ before) => {
        fn before(&mut self, _: &mut $crate::fio::run::core::Core, _: machine::Nanos) -> Option<machine::Next> {
            None
        }
    };
    (@ issued) => {
        fn issued(&mut self, _: &mut $crate::fio::run::core::Core, _: &$crate::fio::run::core::Issue) {}
    };
    (@ idle) => { fn idle(&mut self, _: machine::Next) {} };
    (@ completed) => {
        fn completed(
            &mut self,
            _: &mut $crate::fio::run::core::Core,
            _: u32,
            _: bool,
            _: Option<&$crate::fio::run::stream_stats::Done>,
        ) {}
    };
    (@ synced) => {
        fn synced(
            &mut self,
            _: &mut $crate::fio::run::core::Core,
            _: machine::Stability,
            _: machine::Nanos,
            _: machine::Nanos,
        ) {}
    };
    (@ owes) => {
        fn owes(&mut self, _: &$crate::fio::run::core::Core) -> Option<machine::Stability> {
            None
        }
    };
    (@ left) => { fn left(&mut self, _: bool) {} };
    (@ fails) => { fn fails(&mut self) {} };
    (@ read_back) => { fn read_back(&mut self, _: machine::Completion, _: machine::Nanos) {} };
    (@ fill) => { fn fill(&mut self, _: &machine::Request, _: &mut [u8]) {} };
    (@ check) => { fn check(&mut self, _: &mut $crate::fio::run::core::Core, _: u32, _: &[u8]) {} };
    (@ finish) => { fn finish(self: Box<Self>, _: &mut $crate::fio::run::finished::Finished) {} };
}
pub(crate) use ignores;
