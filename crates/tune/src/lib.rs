//! Finds the settings worth changing: tries every applicable knob against the current setting in
//! interleaved runs, then restores it.
//!
//! A [`Plan`] lists the trials: the [`Knob`](machine::Knob)s of a machine and those of the
//! [`workload`](mod@knobs). [`tune`] runs them on a [`Subject`], which sets the machine's knobs and
//! runs workloads; the result is a [`Tuning`], the document. The implementation of [`Subject`] must
//! restore all settings.

mod document;
pub mod knobs;
mod making;
mod plan;
mod profile;
mod prove;
mod sentences;
mod tuning;

pub use document::{
    KeepLine, LeftOut, Outcome, Resized, Step, TUNE_SCHEMA, Tried, Tuning, tuning_schema,
};
pub use making::{STRIPE_UNIT, stripe_unit, stripe_unit_of};
pub use plan::{Change, Plan, Scope, Trial, Wanted};
pub use profile::{PROFILES, Profile};
pub use prove::Target;
pub use tuning::{Limits, Subject, tune};
