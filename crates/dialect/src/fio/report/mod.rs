//! fio's reports and logs of a result.

pub(super) mod debug;
pub(super) mod direction;
pub(super) mod histlog;
pub(super) mod json;
pub(super) mod logs;
pub(super) mod states;
pub(super) mod steadystate;
pub(super) mod terse;
pub(super) mod text;
