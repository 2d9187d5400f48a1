//! IOzone 3: file size against record size (Norcott and Capps, "Iozone Filesystem Benchmark").

mod clients;
mod help;
mod options;
mod plan;
mod report;
mod result;
mod run;
mod spreadsheet;
mod words;

pub use clients::Client;
pub use help::HELP;
pub use options::{LAST_TEST, MAX_CHILDREN, Options, parse};
pub use plan::{Cell, STDIO_BYTES, STRIDE, Test};
pub use report::{
    COMPLETE, banner, excel, extra, header, row, throughput_block, throughput_intro, version,
};
pub use result::{Child, Cliff, IozoneResult, Measured, Surface, Throughput, cliffs, surfaces};
pub use run::{files, run};
pub use spreadsheet::spreadsheet;
