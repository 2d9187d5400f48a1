//! PostMark: a workload of small files, as on mail, news and web servers.
//!
//! The command language, the order of all file operations and both reports match PostMark 1.5
//! (NetApp; model and language: Katcher, "PostMark: A New File System Benchmark", Network Appliance
//! TR3022, 1997). Additions: threads, durability, engines, sub-second times with an interval,
//! latency percentiles, processor cost, warnings, JSON.

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

/// The start banner of every 1.5x version of the original.
pub const BANNER: &str = "PostMark v1.51 : 8/14/01";

pub const PROMPT: &str = "pm>";
