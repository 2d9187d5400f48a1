//! Which setting is worth changing here: every knob that applies, tried in turn against the present setting, and put back.
//!
//! A [`Plan`] says what would be tried: the [`Knob`](machine::Knob)s of a machine and those of the [`workload`](mod@knobs). [`tune`] tries it on a
//! [`Subject`], which sets the machine's knobs and runs workloads; the outcome is a [`Tuning`], the document. Whoever implements
//! [`Subject`] sees to it that settings are put back.

mod document;
pub mod knobs;
mod making;
mod plan;
mod profile;
mod prove;
mod sentences;
mod tuning;

pub use document::{KeepLine, LeftOut, Outcome, Resized, Step, TUNE_SCHEMA, Tried, Tuning, tuning_schema};
pub use making::{STRIPE_UNIT, stripe_unit, stripe_unit_of};
pub use plan::{Change, Plan, Scope, Trial, Wanted};
pub use profile::{PROFILES, Profile};
pub use prove::{Target, with_settings};
pub use tuning::{Limits, Subject, tune};
