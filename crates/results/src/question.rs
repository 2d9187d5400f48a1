//! The criterion for comparing two points.

use machine::{Allocation, CacheState, Hint, Memory, Reap};
use std::fmt::{self, Write};
use workload::{ClientFiles, Data, SizeMix, Workload};

/// All settings of a workload except its length (stop, limit) and seed: points with one question
/// may be compared, regardless of machine, target and command. The text is stable across versions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Question(String);

impl Question {
    pub fn of(workload: &Workload) -> Question {
        // Every field is named, so a new field must be added to the question or left out
        // deliberately.
        let Workload {
            read_percent,
            pattern,
            request_bytes,
            sizes,
            align_bytes,
            depth,
            threads,
            clients,
            client_files,
            engine,
            buffering,
            hint,
            memory,
            allocation,
            cache,
            offset_bytes,
            region_start_bytes,
            region_bytes,
            stop: _,
            limit_bytes: _,
            rate_iops,
            load,
            latency_window_ns: _,
            reap,
            think_ns,
            sync_at_end,
            data:
                Data { compressible_percent, duplicate_percent, repeated_blocks, repeated_seed, verify },
            seed: _,
        } = workload;
        let mut text = format!("{} {pattern} {request_bytes}", workload.op());
        let _ = write!(text, " {depth}x{threads} {engine} {}", buffering.name());
        // Default settings are omitted, so existing questions keep their text when a setting is
        // added.
        let mut add = |is_usual: bool, part: &dyn fmt::Display| {
            if !is_usual {
                let _ = write!(text, " {part}");
            }
        };
        add(matches!(read_percent, 0 | 100), &format_args!("reads={read_percent}%"));
        if let Some(clients) = clients {
            add(false, &format_args!("clients={clients}"));
        }
        match client_files {
            ClientFiles::Own => {}
            ClientFiles::Segments => add(false, &"one_file=segments"),
            ClientFiles::Interleaved => add(false, &"one_file=interleaved"),
        }
        if let Some(sizes) = sizes {
            add(false, &format_args!("sizes={}/{}", mix(&sizes.read), mix(&sizes.write)));
        }
        if let Some(align) = align_bytes {
            add(false, &format_args!("align={align}"));
        }
        add(*hint == Hint::None, &format_args!("hint={}", hint.name()));
        add(*memory == Memory::Huge, &format_args!("memory={}", memory.name()));
        add(*allocation == Allocation::Written, &format_args!("allocation={}", allocation.name()));
        add(*cache == CacheState::AsIs, &format_args!("cache={}", cache.name()));
        add(*offset_bytes == 0, &format_args!("offset={offset_bytes}"));
        add(*region_start_bytes == 0, &format_args!("from={region_start_bytes}"));
        if let Some(bytes) = region_bytes {
            add(false, &format_args!("region={bytes}"));
        }
        if let Some(rate) = rate_iops {
            add(false, &format_args!("rate={rate}"));
        }
        for step in load {
            add(false, &format_args!("load={step}"));
        }
        add(*reap == Reap::default(), &format_args!("reap={reap}"));
        add(*think_ns == 0, &format_args!("think={think_ns}ns"));
        add(!sync_at_end, &"sync_at_end");
        add(*compressible_percent == 0, &format_args!("compressible={compressible_percent}%"));
        add(*duplicate_percent == 0, &format_args!("duplicate={duplicate_percent}%"));
        add(*repeated_blocks == 0, &format_args!("repeated={repeated_blocks}"));
        add(repeated_seed.is_none(), &"repeated_by_all");
        add(!verify, &"verify");
        Question(text)
    }

    /// Such as `read seq 65536 8x1 io_uring direct`.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn mix(mix: &SizeMix) -> String {
    match mix {
        SizeMix::Range { min_bytes, max_bytes, unaligned } => {
            let any = if *unaligned { " unaligned" } else { "" };
            format!("{min_bytes}-{max_bytes}{any}")
        }
        SizeMix::Shares(shares) => {
            let each: Vec<String> =
                shares.iter().map(|share| format!("{}:{}%", share.bytes, share.percent)).collect();
            each.join("+")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use workload::{Pattern, SizeShare, Sizes, Stop};

    #[test]
    fn length_and_seed_are_ignored() {
        let one = Workload::default();
        let other = Workload {
            seed: 7,
            stop: Stop::AfterBytes(1 << 20),
            limit_bytes: Some(1 << 30),
            ..one.clone()
        };
        assert_ne!(one, other);
        assert_eq!(Question::of(&one), Question::of(&other));
        assert_eq!(Question::of(&one).text(), "read seq 65536 1x1 sync direct");
    }

    #[test]
    fn all_other_settings_count() {
        let base = Workload::default;
        let shares = |bytes| SizeMix::Shares(vec![SizeShare { bytes, percent: 100 }]);
        let sizes = |read, write| Some(Sizes { read: shares(read), write: shares(write) });
        let all = [
            base(),
            Workload { read_percent: 0, ..base() },
            Workload { read_percent: 70, ..base() },
            Workload { read_percent: 71, ..base() },
            Workload { pattern: Pattern::Zipf(1.1), ..base() },
            Workload { pattern: Pattern::Zipf(1.1000001), ..base() },
            Workload { pattern: Pattern::Stride(1_000_001), ..base() },
            Workload { pattern: Pattern::Stride(1_000_000), ..base() },
            Workload { request_bytes: 4096, ..base() },
            Workload { sizes: sizes(512, 1024), ..base() },
            Workload { sizes: sizes(1024, 512), ..base() },
            Workload {
                sizes: Some(Sizes { read: SizeMix::range(512, 1024, false), write: shares(512) }),
                ..base()
            },
            Workload { align_bytes: Some(512), ..base() },
            Workload { depth: 2, ..base() },
            Workload { threads: 2, ..base() },
            Workload { clients: Some(2), ..base() },
            Workload { client_files: ClientFiles::Segments, ..base() },
            Workload { client_files: ClientFiles::Interleaved, ..base() },
            Workload { engine: machine::Engine::IoUring, ..base() },
            Workload { buffering: machine::Buffering::DirectDsync, ..base() },
            Workload { hint: Hint::Random, ..base() },
            Workload { allocation: Allocation::Extend, ..base() },
            Workload { cache: CacheState::Cold, ..base() },
            Workload { offset_bytes: 512, ..base() },
            Workload { region_start_bytes: 1 << 20, ..base() },
            Workload { region_bytes: Some(1 << 20), ..base() },
            Workload { rate_iops: Some(100.0), ..base() },
            Workload { rate_iops: Some(100.5), ..base() },
            Workload { think_ns: 1, ..base() },
            Workload { sync_at_end: true, ..base() },
            Workload { data: Data { compressible_percent: 50, ..Data::default() }, ..base() },
            Workload { data: Data { duplicate_percent: 50, ..Data::default() }, ..base() },
            Workload { data: Data { verify: true, ..Data::default() }, ..base() },
        ];
        let questions: HashSet<Question> = all.iter().map(Question::of).collect();
        assert_eq!(questions.len(), all.len());
    }
}
