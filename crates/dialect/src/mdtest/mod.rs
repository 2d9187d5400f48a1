//! mdtest: many tasks create, stat, read and remove files and directories in a tree.

mod help;
mod options;
mod report;
mod result;
mod run;
mod task;

pub use help::HELP;
pub use options::{Options, parse};
pub use result::{Kind, MdtestResult, Operation, Phase};
pub use run::{Surroundings, files, run};
pub use task::{Items, Plan, Reply, Step, Task};
