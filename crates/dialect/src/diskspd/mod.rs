//! diskspd: Microsoft's storage load generator (DISKSPD 2.2).

mod help;
mod options;
mod pool;
mod profile;
mod report;
mod result;
mod run;
mod words;
mod xml;
mod xml_report;

pub use crate::concurrent::Interval;
pub use help::HELP;
pub use options::{Options, Overrides, parse};
pub use pool::ThreadPool;
pub use profile::{Caching, Format, Profile, RangeLength, Source, Target, TimeSpan};
pub use report::{profile_text, text};
pub use result::{DiskspdResult, Half, SpanResult, System, ThreadResult, Topology};
pub use run::{profile, run};
pub(crate) use xml::{Element, tree};
pub use xml::{profile_xml, read_profile};
pub use xml_report::xml;
