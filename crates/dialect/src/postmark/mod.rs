//! PostMark 1.5 (NetApp; Katcher, "PostMark: A New File System Benchmark", Network Appliance
//! TR3022, 1997).

mod command;
mod config;
mod rates;
mod report;
mod result;
mod run;
mod session;
mod show;

pub use command::{Command, Complaint, LocationEdit, ReportStyle, parse};
pub use config::Config;
pub use report::{classic, extra, terse};
pub use result::{Interval, Phases, PostmarkResult, Rates};
pub use run::{RunError, run};
pub use session::{Outcome, Session};
pub use show::show;

/// The banner of every 1.5x version.
pub const BANNER: &str = "PostMark v1.51 : 8/14/01";

pub const PROMPT: &str = "pm>";
