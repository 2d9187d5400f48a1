//! A recorded application: the profile of its requests.

pub mod profile;
pub mod stack_distance;
