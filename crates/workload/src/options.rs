use crate::load_step::{LoadStep, time_option};
use crate::{ClientFiles, Pattern, Stop, Workload};
use machine::units::{parse_size, show_size};
use machine::{Allocation, CacheState, Hint, Memory, Reap};
use std::fmt;
use std::str::FromStr;

/// As `64k`, `31.5k`.
pub fn size_option(bytes: u64) -> String {
    match show_size(bytes).split_once(' ') {
        Some((number, "B")) => number.into(),
        Some((number, unit)) => format!("{number}{}", unit[..1].to_lowercase()),
        None => bytes.to_string(),
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Seq => f.pad("seq"),
            Pattern::Together => f.pad("together"),
            Pattern::Random => f.pad("random"),
            Pattern::Uniform => f.pad("uniform"),
            Pattern::Backward => f.pad("backward"),
            Pattern::Stride(bytes) => write!(f, "stride:{}", size_option(*bytes)),
            Pattern::Columns(columns) => write!(f, "columns:{columns}"),
            Pattern::Zipf(theta) => write!(f, "zipf:{theta}"),
            Pattern::HotCold { hot_percent, access_percent } => {
                write!(f, "hotcold:{hot_percent}:{access_percent}")
            }
            Pattern::Pareto(h) => write!(f, "pareto:{h}"),
            Pattern::Normal { deviation_percent, center_percent, scattered } => {
                write!(
                    f,
                    "{}:{deviation_percent}",
                    if *scattered { "scattered-normal" } else { "normal" }
                )?;
                if *center_percent == 50.0 { Ok(()) } else { write!(f, ":{center_percent}") }
            }
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        fn number<T: FromStr>(text: &str, what: &str) -> Result<T, String> {
            text.trim_end_matches('%').parse().map_err(|_| format!("'{text}' is not {what}"))
        }
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        match (name, parts.collect::<Vec<_>>().as_slice()) {
            ("seq", []) => Ok(Pattern::Seq),
            ("together", []) => Ok(Pattern::Together),
            ("random", []) => Ok(Pattern::Random),
            ("uniform", []) => Ok(Pattern::Uniform),
            ("backward", []) => Ok(Pattern::Backward),
            ("stride", [bytes]) => parse_size(bytes).map(Pattern::Stride),
            ("columns", [blocks]) => {
                number(blocks, "a number of blocks; write columns:64").map(Pattern::Columns)
            }
            ("zipf", []) => Ok(Pattern::Zipf(1.1)),
            ("zipf", [theta]) => number(theta, "a number; write zipf:1.1").map(Pattern::Zipf),
            ("pareto", []) => Ok(Pattern::Pareto(0.2)),
            ("pareto", [h]) => number(h, "a number; write pareto:0.2").map(Pattern::Pareto),
            ("normal" | "scattered-normal", [deviation, center @ ..]) if center.len() < 2 => {
                Ok(Pattern::Normal {
                    deviation_percent: number(deviation, "a percentage; write normal:20")?,
                    center_percent: center.first().map_or(Ok(50.0), |text| {
                        number(text, "a percentage; write normal:20:50")
                    })?,
                    scattered: name == "scattered-normal",
                })
            }
            ("hotcold", [hot, access]) => Ok(Pattern::HotCold {
                hot_percent: number(hot, "a whole percentage; write hotcold:10:90")?,
                access_percent: number(access, "a whole percentage; write hotcold:10:90")?,
            }),
            _ => Err(format!(
                "'{text}' is no pattern; write one of seq, together, random, uniform, backward, stride:1m, columns:64, zipf:1.1, pareto:0.2, normal:20, \
                 scattered-normal:20, hotcold:10:90"
            )),
        }
    }
}

impl Workload {
    /// For `halfpower run`, without defaults and the length of a timed run. Mixed sizes and
    /// separate alignments have none: only other tools' languages support them.
    ///
    /// ```
    /// let options = workload::Workload::default().options();
    /// assert!(options.starts_with("--op read --pattern seq --request 64k"), "{options}");
    /// ```
    pub fn options(&self) -> String {
        let mut options = vec![format!(
            "--op {} --pattern {} --request {}",
            self.op(),
            self.pattern,
            size_option(u64::from(self.request_bytes))
        )];
        let mut add = |wanted: bool, option: String| options.extend(wanted.then_some(option));
        add(!matches!(self.read_percent, 0 | 100), format!("--read-percent {}", self.read_percent));
        add(true, format!("--depth {}", self.depth));
        add(self.threads > 1, format!("--threads {}", self.threads));
        add(self.clients.is_some(), format!("--clients {}", self.clients.unwrap_or_default()));
        add(self.client_files.is_one(), "--shared-file".into());
        add(self.client_files == ClientFiles::Interleaved, "--interleaved".into());
        add(true, format!("--engine {}", self.engine));
        add(true, if self.buffering.is_direct() { "--direct".into() } else { "--buffered".into() });
        add(self.buffering.is_dsync(), "--dsync".into());
        add(
            self.allocation != Allocation::Written,
            format!("--allocate {}", self.allocation.name()),
        );
        add(self.offset_bytes > 0, format!("--offset {}", size_option(self.offset_bytes)));
        add(
            self.region_start_bytes > 0,
            format!("--region-start {}", size_option(self.region_start_bytes)),
        );
        add(
            self.region_bytes.is_some(),
            format!("--region {}", size_option(self.region_bytes.unwrap_or_default())),
        );
        add(self.hint != Hint::None, format!("--hint {}", self.hint.name()));
        add(self.memory != Memory::Huge, format!("--memory {}", self.memory.name()));
        add(self.cache != CacheState::AsIs, format!("--cache {}", self.cache.name()));
        if let Stop::AfterBytes(bytes) = self.stop {
            add(true, format!("--bytes {}", size_option(bytes)));
        }
        add(
            self.limit_bytes.is_some(),
            format!("--limit {}", size_option(self.limit_bytes.unwrap_or_default())),
        );
        add(self.rate_iops.is_some(), format!("--rate {}", self.rate_iops.unwrap_or_default()));
        if !self.load.is_empty() {
            let steps: Vec<String> = self.load.iter().map(LoadStep::to_string).collect();
            add(true, format!("--load {}", steps.join(",")));
        }
        if let Some(ns) = self.latency_window_ns {
            add(true, format!("--latency-every {}", time_option(ns)));
        }
        add(self.reap != Reap::default(), format!("--reap {}", self.reap));
        add(self.think_ns > 0, format!("--think {}ns", self.think_ns));
        add(self.sync_at_end, "--end-fdatasync".into());
        add(
            self.data.compressible_percent > 0,
            format!("--compressible {}", self.data.compressible_percent),
        );
        add(
            self.data.duplicate_percent > 0,
            format!("--duplicate {}", self.data.duplicate_percent),
        );
        add(self.data.verify, "--verify".into());
        add(self.seed != 1, format!("--seed {}", self.seed));
        options.join(" ")
    }

    /// A few words.
    ///
    /// ```
    /// assert_eq!(workload::Workload::default().short(), "direct read, seq, 64 KiB, sync");
    /// ```
    pub fn short(&self) -> String {
        let mode = self.buffering.name().replace('_', " ");
        let outstanding = match (self.threads, self.depth) {
            (1, 1) => String::new(),
            (1, depth) => format!(" x {depth}"),
            (threads, depth) => format!(" x {depth} x {threads} threads"),
        };
        let clients = match self.clients {
            None => String::new(),
            Some(1) => ", 1 client".into(),
            Some(clients) => format!(", {clients} clients"),
        };
        let files = match self.client_files {
            ClientFiles::Own => "",
            ClientFiles::Segments => ", one file in parts",
            ClientFiles::Interleaved => ", one file in turn",
        };
        format!(
            "{mode} {}, {}, {}{outstanding}, {}{clients}{files}",
            self.op(),
            self.pattern,
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
            assert_eq!(parse_size(&size_option(bytes)), Ok(bytes));
        }
    }

    #[test]
    fn options_name_what_differs() {
        let workload = Workload {
            depth: 8,
            engine: machine::Engine::IoUring,
            offset_bytes: 12 << 10,
            ..Workload::default()
        };
        assert_eq!(
            workload.options(),
            "--op read --pattern seq --request 64k --depth 8 --engine io_uring --direct --offset 12k"
        );
        assert_eq!(workload.short(), "direct read, seq, 64 KiB x 8, io_uring");
    }
}
