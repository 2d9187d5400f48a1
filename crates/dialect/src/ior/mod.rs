//! IOR: many tasks write and read one file, or one each (Shan, Antypas and Shalf, "Characterizing
//! and predicting the I/O performance of HPC applications using a parameterized synthetic
//! benchmark", SC 2008).

mod data;
mod help;
mod options;
mod phase;
mod report;
mod result;
mod run;
mod table;
mod task;
mod test;

pub use help::HELP;
pub(crate) use options::tasks_here;
pub use options::{Format, MAX_TASKS_HERE, Options, Tests, parse};
pub(crate) use result::mean_and_deviation;
pub use result::{Direction, IorResult, Phase, Stonewall, TaskShare, TestResult};
pub use run::{Surroundings, files, files_or_namesakes, run};
pub use task::{Access, Accessed, FileEnd, Layout, Reply, Step, Task};
