//! Finds settings worth changing: [`tune`] runs the trials of a [`Plan`] interleaved on a
//! [`Subject`], which must restore all settings.

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
pub use plan::{Change, Plan, Scope, Trial, Wanted, Whole};
pub use profile::{PROFILES, Profile};
pub use prove::Target;
pub use tuning::{Limits, Subject, tune};
