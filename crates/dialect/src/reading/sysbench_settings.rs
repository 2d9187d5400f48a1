//! The settings in sysbench's reports, the same in all versions.

use super::case::case;
use super::lines::between;
use results::compare::{Measurement, Reading};

#[derive(Default)]
pub(super) struct Settings {
    threads: String,
    block: String,
    mode: String,
    order: String,
    files: String,
}

impl Settings {
    pub(super) fn keep(&mut self, line: &str) -> bool {
        let (setting, value) = if let Some(count) = line.strip_prefix("Number of threads: ") {
            (&mut self.threads, count)
        } else if let Some(size) = line.strip_prefix("Block size ") {
            (&mut self.block, size)
        } else if let Some(mode) =
            between(line, "Using ", " I/O mode").filter(|_| line.ends_with(" I/O mode"))
        {
            (&mut self.mode, mode)
        } else if let Some(test) = line.strip_prefix("Doing ") {
            (&mut self.order, test.trim_end_matches(" test"))
        } else if line.contains(" files, ") && line.ends_with("each") {
            (&mut self.files, line.trim_end_matches(" each"))
        } else {
            return false;
        };
        *setting = value.into();
        true
    }

    pub(super) fn case(&self, name: &str, does: &str, readings: Vec<Reading>) -> Measurement {
        let settings = [
            ("does", does.to_owned()),
            ("test", self.order.clone()),
            ("block", self.block.clone()),
            ("threads", self.threads.clone()),
            ("mode", self.mode.clone()),
            ("files", self.files.clone()),
        ];
        case(name, &settings, readings)
    }

    pub(super) fn direction(&self, does: &str, readings: Vec<Reading>) -> Measurement {
        self.case(&format!("{} {does}s", self.order), does, readings)
    }
}
