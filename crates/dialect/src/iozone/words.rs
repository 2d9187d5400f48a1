//! Formats options as a command line.

use super::options::Options;
use crate::parse::joined;
use machine::units::KIB;
use std::fmt;

impl Options {
    /// As typed, or equivalent.
    pub fn command(&self) -> String {
        self.typed.clone().unwrap_or_else(|| self.to_string())
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.words()))
    }
}

impl Options {
    /// Equivalent arguments.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let flags = [
            (self.auto, "-a"),
            (self.all_records, "-z"),
            (self.direct, "-I"),
            (self.sync, "-o"),
            (self.read_sync, "-+r"),
            (self.dsync, "-+D"),
            (self.flush, "-e"),
            (self.close, "-c"),
            (self.threads, "-T"),
            (self.mmap, "-B"),
            (self.mmap_sync, "-G"),
            (self.mmap_async, "-D"),
            (self.lock, "-W"),
            (self.operations, "-O"),
            (self.microseconds, "-N"),
            (self.excel, "-R"),
            (self.keep, "-w"),
            (self.no_stonewall, "-x"),
            (self.purge, "-p"),
            (self.latency_files, "-Q"),
            (self.machine, "-M"),
            (self.each_child, "-C"),
            (self.extensions, "-E"),
            (self.cpu, "-+u"),
            (self.no_retests, "-+n"),
            (self.destroy_signed, "--destroy-signature"),
        ];
        words.extend(flags.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_string()));
        let mut put = |option: &str, value: String| words.extend([option.to_string(), value]);
        let kilobytes = |bytes: u64| format!("{}k", bytes / KIB);
        let sizes = [
            ("-n", self.file_range.0),
            ("-g", self.file_range.1),
            ("-y", self.record_range.0),
            ("-q", self.record_range.1),
            ("-S", self.cache_bytes),
        ];
        sizes
            .iter()
            .filter_map(|(option, bytes)| Some((option, (*bytes)?)))
            .for_each(|(option, bytes)| put(option, kilobytes(bytes)));
        self.files.iter().for_each(|bytes| put("-s", kilobytes(*bytes)));
        self.records.iter().for_each(|bytes| put("-r", kilobytes(*bytes)));
        self.tests.iter().for_each(|test| put("-i", test.to_string()));
        self.children.iter().for_each(|count| put("-t", count.to_string()));
        if let Some((copies, depth)) = self.asynchronous {
            put(if copies { "-k" } else { "-H" }, depth.to_string());
        }
        let numbers = [
            ("-l", self.child_range.0.map(u64::from)),
            ("-u", self.child_range.1.map(u64::from)),
            ("-V", self.verify.map(u64::from)),
            ("-L", self.line_bytes),
            ("-j", self.stride.map(u64::from)),
            ("-J", self.think_ms.map(u64::from)),
            ("-P", self.bind.map(u64::from)),
            ("-+p", self.readers_percent.map(u64::from)),
            ("-+q", self.rest_s.map(u64::from)),
            ("--repeats", self.repeats.map(u64::from)),
            ("--seed", self.seed),
        ];
        numbers
            .iter()
            .filter_map(|(option, value)| Some((option, (*value)?)))
            .for_each(|(option, value)| put(option, value.to_string()));
        let paths = [
            ("-f", &self.file),
            ("-U", &self.uncached),
            ("-+m", &self.client_list),
            ("-b", &self.excel_file),
            ("--json", &self.json),
            ("--html", &self.html),
        ];
        paths
            .iter()
            .filter_map(|(option, path)| Some((option, path.as_ref()?)))
            .for_each(|(option, path)| put(option, path.display().to_string()));
        self.destroy.iter().for_each(|path| put("--destroy-data", path.display().to_string()));
        if !self.process_files.is_empty() {
            words.push("-F".into());
            words.extend(self.process_files.iter().map(|path| path.display().to_string()));
        }
        words
    }
}
