//! A workload in words: as options of the command line, and in short.

use crate::{Pattern, Stop, Workload};
use machine::units::show_size;
use machine::{Allocation, CacheState, Hint};
use std::fmt::Write;

/// A size as an option takes it: `64k`, `1m`, `31.5k`.
fn size(bytes: u64) -> String {
    match show_size(bytes).split_once(' ') {
        Some((number, "B")) => number.into(),
        Some((number, unit)) => format!("{number}{}", unit[..1].to_lowercase()),
        None => bytes.to_string(),
    }
}

impl Pattern {
    /// As `--pattern` takes it.
    pub fn option(&self) -> String {
        match self {
            Pattern::Seq => "seq".into(),
            Pattern::Random => "random".into(),
            Pattern::Backward => "backward".into(),
            Pattern::Stride(bytes) => format!("stride:{}", size(*bytes)),
            Pattern::Columns(columns) => format!("columns:{columns}"),
            Pattern::Zipf(theta) => format!("zipf:{theta}"),
            Pattern::HotCold { hot_percent, access_percent } => format!("hotcold:{hot_percent}:{access_percent}"),
            Pattern::Pareto(h) => format!("pareto:{h}"),
            Pattern::Normal { deviation_percent, center_percent } if *center_percent == 50.0 => format!("normal:{deviation_percent}"),
            Pattern::Normal { deviation_percent, center_percent } => format!("normal:{deviation_percent}:{center_percent}"),
        }
    }
}

impl Workload {
    /// As options of `halfpower run`; what is default is left out, except what a reader wants to see.
    pub fn options(&self) -> String {
        let mut text =
            format!("--op {} --pattern {} --request {}", self.op_name(), self.pattern.option(), size(u64::from(self.request_bytes)));
        // Writing to a String cannot fail.
        let mut add = |part: String| {
            let _ = write!(text, " {part}");
        };
        if !matches!(self.read_percent, 0 | 100) {
            add(format!("--read-percent {}", self.read_percent));
        }
        add(format!("--depth {}", self.depth));
        if self.threads > 1 {
            add(format!("--threads {}", self.threads));
        }
        add(format!("--engine {}", self.engine));
        add(if self.buffering.is_direct() { "--direct".into() } else { "--buffered".into() });
        if self.buffering.is_dsync() {
            add("--dsync".into());
        }
        if self.allocation != Allocation::Written {
            add(format!("--allocate {}", self.allocation.name()));
        }
        if self.offset_bytes > 0 {
            add(format!("--offset {}", size(self.offset_bytes)));
        }
        match self.hint {
            Hint::None => {}
            Hint::Sequential => add("--hint sequential".into()),
            Hint::Random => add("--hint random".into()),
        }
        match self.cache {
            CacheState::AsIs => {}
            CacheState::Cold => add("--cache cold".into()),
            CacheState::Warm => add("--cache warm".into()),
        }
        if let Stop::AfterBytes(bytes) = self.stop {
            add(format!("--bytes {}", size(bytes)));
        }
        if let Some(rate) = self.rate_iops {
            add(format!("--rate {rate}"));
        }
        if self.think_ns > 0 {
            add(format!("--think {}ns", self.think_ns));
        }
        if self.sync_at_end {
            add("--fsync".into());
        }
        text
    }

    /// In short, for a progress bar or a table: `direct read, random, 4 KiB x 32, io_uring`.
    pub fn short(&self) -> String {
        let mode = self.buffering.name().replace('_', " ");
        let outstanding = match (self.threads, self.depth) {
            (1, 1) => String::new(),
            (1, depth) => format!(" x {depth}"),
            (threads, depth) => format!(" x {depth} x {threads} threads"),
        };
        format!(
            "{mode} {}, {}, {}{outstanding}, {}",
            self.op_name(),
            self.pattern.option(),
            if self.sizes.is_some() {
                format!("up to {}", show_size(u64::from(self.request_bytes)))
            } else {
                show_size(u64::from(self.request_bytes))
            },
            self.engine
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_back() {
        for bytes in [512, 4096, 32256, 65536, 1 << 20, 12345, 100 << 20] {
            assert_eq!(machine::units::parse_size(&size(bytes)), Ok(bytes));
        }
    }

    #[test]
    fn options_name_what_differs() {
        let workload = Workload { depth: 8, engine: machine::Engine::IoUring, offset_bytes: 12 << 10, ..Workload::default() };
        assert_eq!(workload.options(), "--op read --pattern seq --request 64k --depth 8 --engine io_uring --direct --offset 12k");
        assert_eq!(workload.short(), "direct read, seq, 64 KiB x 8, io_uring");
    }
}
