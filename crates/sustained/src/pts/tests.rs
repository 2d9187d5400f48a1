//! Sections are those of SNIA's published specification 2.0.2: 2.1.24 steady state, 7.2 IOPS. Other
//! tests have the parameters of public programs for versions 1.1 and 2.0; docs/sustained.md names
//! each source.

use super::plan::{Cell, HistogramCells, Measured, Phase, PhaseKind, PtsPlan, Purge, Until};
use machine::units::show_size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const KIB: u32 = 1 << 10;
const MINUTE_S: f64 = 60.0;
const ROUNDS: u32 = 25;
const MIXES: [u8; 7] = [100, 95, 65, 50, 35, 5, 0];
const IOPS_BLOCKS: [u32; 8] =
    [1024 * KIB, 128 * KIB, 64 * KIB, 32 * KIB, 16 * KIB, 8 * KIB, 4 * KIB, 512];
/// Idle times of host idle recovery.
pub const WAITS_S: [f64; 5] = [5.0, 10.0, 15.0, 25.0, 50.0];
/// Only the first minute counts for steady state.
const MINUTES_A_ROUND: u32 = 30;
/// Host idle recovery: the length of accesses with one wait, and of the return to the base rate.
const ACCESS_S: f64 = 5.0;
const ACCESSES: u32 = 360;
const RETURN_MINUTES: u32 = 30;
/// Demand intensity: writes before each round and histogram, and length of these.
const WRITES_BEFORE_ROUND_S: f64 = 5.0 * MINUTE_S;
const WRITES_BEFORE_HISTOGRAM_S: f64 = 60.0 * MINUTE_S;
const HISTOGRAM_S: f64 = 10.0 * MINUTE_S;
const MAX_MEAN_LATENCY_NS: f64 = 5e6;
const INTENSITIES: [u32; 7] = [32, 16, 8, 6, 4, 2, 1];
/// Of a scaled test, in bytes.
pub const SMALLEST_SCALED: u64 = 32 << 20;
const SHORTEST_S: f64 = 0.05;

/// A test of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PtsTest {
    Iops,
    Throughput,
    Latency,
    /// Write saturation.
    Wsat,
    /// Host idle recovery.
    Hir,
    /// Cross stimulus recovery.
    Xsr,
    /// Demand intensity and response time histograms.
    Dirth,
}

impl PtsTest {
    pub const ALL: [PtsTest; 7] = [
        PtsTest::Iops,
        PtsTest::Throughput,
        PtsTest::Latency,
        PtsTest::Wsat,
        PtsTest::Hir,
        PtsTest::Xsr,
        PtsTest::Dirth,
    ];

    /// In options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            PtsTest::Iops => "iops",
            PtsTest::Throughput => "throughput",
            PtsTest::Latency => "latency",
            PtsTest::Wsat => "wsat",
            PtsTest::Hir => "hir",
            PtsTest::Xsr => "xsr",
            PtsTest::Dirth => "dirth",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            PtsTest::Iops => "IOPS test",
            PtsTest::Throughput => "Throughput test",
            PtsTest::Latency => "Latency test",
            PtsTest::Wsat => "Write saturation test",
            PtsTest::Hir => "Host idle recovery test",
            PtsTest::Xsr => "Cross stimulus recovery test",
            PtsTest::Dirth => "Demand intensity and response time histogram test",
        }
    }
}

/// Choices that the specification leaves to the operator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PtsOptions {
    pub scale: f64,
    /// The used share of the target in percent: 100 for enterprise drives, 75 for clients'.
    pub active_percent: u8,
    pub threads: u32,
    pub depth: u32,
    pub purge: Purge,
    pub seed: u64,
}

impl PtsOptions {
    /// Threads and depth of 7.2 for enterprise drives (all space is active) or client drives.
    pub fn recommended(active_percent: u8) -> (u32, u32) {
        if active_percent == 100 { (4, 32) } else { (2, 16) }
    }
}

impl Default for PtsOptions {
    fn default() -> Self {
        let (threads, depth) = PtsOptions::recommended(100);
        PtsOptions {
            scale: 1.0,
            active_percent: 100,
            threads,
            depth,
            purge: Purge::Discard,
            seed: 1,
        }
    }
}

struct Plan<'a> {
    options: &'a PtsOptions,
    active: u64,
    align: u32,
    phases: Vec<Phase>,
}

impl Plan<'_> {
    fn seconds(&self, seconds: f64) -> f64 {
        if self.options.scale == 1.0 {
            seconds
        } else {
            (seconds / self.options.scale).max(SHORTEST_S)
        }
    }

    fn add(&mut self, title: impl Into<String>, kind: PhaseKind) {
        self.phases.push(Phase { title: title.into(), kind });
    }

    fn purge(&mut self) {
        self.add("Purge", PhaseKind::Purge);
    }

    /// Workload-independent preconditioning.
    fn fill(&mut self, block_bytes: u32) {
        let size = show_size(u64::from(block_bytes));
        self.add(
            format!("Preconditioning: twice the space in sequence, {size}"),
            PhaseKind::Fill { block_bytes, times: 2 },
        );
    }

    fn cell(&self, read_percent: u8, block_bytes: u32, random: bool) -> Cell {
        Cell {
            read_percent,
            block_bytes,
            random,
            threads: self.options.threads,
            depth: self.options.depth,
            seconds: self.seconds(MINUTE_S),
            wait_s: 0.0,
        }
    }

    fn rounds(
        &mut self,
        title: &str,
        cells: Vec<Cell>,
        track: &[Cell],
        measured: Measured,
        until: Until,
    ) {
        let place = |track: &Cell| {
            let same = |cell: &Cell| {
                (cell.read_percent, cell.block_bytes, cell.threads, cell.depth)
                    == (track.read_percent, track.block_bytes, track.threads, track.depth)
            };
            cells.iter().position(same)
        };
        let mut tracked = track.iter().filter_map(place);
        let tracking = tracked.next().unwrap_or(cells.len() - 1);
        let also_tracking = tracked.collect();
        self.add(title, PhaseKind::Rounds { cells, tracking, also_tracking, measured, until });
    }

    fn minutes(&mut self, title: &str, cell: Cell, measured: Measured, until: Until) {
        self.rounds(title, vec![cell], &[cell], measured, until);
    }

    fn iops(&mut self) {
        self.purge();
        self.fill(128 * KIB);
        let blocks = IOPS_BLOCKS.into_iter().filter(|bytes| bytes.is_multiple_of(self.align));
        let cells: Vec<Cell> = MIXES
            .into_iter()
            .flat_map(|mix| blocks.clone().map(move |block| (mix, block)))
            .map(|(mix, block)| self.cell(mix, block, true))
            .collect();
        // 7.2, step 3.2.1.2.2: all three must be steady.
        let track = [(0, 4 * KIB), (65, 64 * KIB), (100, 1024 * KIB)]
            .map(|(mix, block)| self.cell(mix, block, true));
        self.rounds("Random mixes and sizes", cells, &track, Measured::Iops, STEADY);
    }

    fn throughput(&mut self) {
        for block in [1024 * KIB, 128 * KIB] {
            self.purge();
            self.fill(block);
            let cells = [100, 0].map(|mix| self.cell(mix, block, false)).to_vec();
            let track = cells[1];
            let title = format!("Sequential, {}", show_size(u64::from(block)));
            self.rounds(&title, cells, &[track], Measured::Throughput, STEADY);
        }
    }

    fn latency(&mut self) {
        self.purge();
        self.fill(128 * KIB);
        let blocks =
            [8 * KIB, 4 * KIB, 512].into_iter().filter(|bytes| bytes.is_multiple_of(self.align));
        let single = |cell: Cell| Cell { threads: 1, depth: 1, ..cell };
        let cells: Vec<Cell> = [100, 65, 0]
            .into_iter()
            .flat_map(|mix| blocks.clone().map(move |block| (mix, block)))
            .map(|(mix, block)| single(self.cell(mix, block, true)))
            .collect();
        let track = single(self.cell(0, 4 * KIB, true));
        let of = cells.iter().position(|cell| *cell == track).unwrap_or(0);
        self.rounds("One request at a time", cells, &[track], Measured::Latency, STEADY);
        self.histograms(HistogramCells::Cell(of), 20.0 * MINUTE_S, 0.0);
    }

    fn histograms(&mut self, which: HistogramCells, seconds: f64, writes_before_s: f64) {
        let kind = PhaseKind::Histograms {
            of_phase: self.phases.len() - 1,
            which,
            seconds: self.seconds(seconds),
            writes_before_s: if writes_before_s > 0.0 {
                self.seconds(writes_before_s)
            } else {
                0.0
            },
        };
        self.add("Response time histograms", kind);
    }

    /// Ends after 24 hours, four times the capacity, or at steady state.
    fn wsat(&mut self) {
        self.purge();
        let cell = self.cell(0, 4 * KIB, true);
        let bytes = 4 * self.active;
        let until = Until::Written { bytes, max_rounds: 24 * 60, every: MINUTES_A_ROUND };
        self.minutes("Random writes of 4 KiB", cell, Measured::Iops, until);
    }

    fn hir(&mut self) {
        self.purge();
        let cell = self.cell(0, 4 * KIB, true);
        self.minutes(
            "Random writes of 4 KiB to steady state",
            cell,
            Measured::Iops,
            STEADY_OF_HALF_HOURS,
        );
        for wait in WAITS_S {
            let (seconds, wait_s) = (self.seconds(ACCESS_S), self.seconds(wait));
            let access = Cell { seconds, wait_s, ..cell };
            let title = format!("5 s of writes, {wait:.0} s idle");
            self.minutes(&title, access, Measured::Iops, Until::Rounds(ACCESSES));
            let title = "Return to the base rate";
            self.minutes(title, cell, Measured::Iops, Until::Rounds(RETURN_MINUTES));
        }
    }

    fn xsr(&mut self) {
        self.purge();
        let one = |cell| Cell { threads: 1, depth: 32, ..cell };
        let sequential = one(self.cell(0, 1024 * KIB, false));
        let random = one(self.cell(0, 8 * KIB, true));
        for (title, cell, hours) in [
            ("Sequential writes of 1 MiB, 8 h", sequential, 8),
            ("Random writes of 8 KiB, 6 h", random, 6),
            ("Sequential writes of 1 MiB again, 8 h", sequential, 8),
        ] {
            self.minutes(title, cell, Measured::Throughput, Until::Rounds(hours * 60));
        }
    }

    fn dirth(&mut self) {
        self.purge();
        self.fill(128 * KIB);
        let cell = |mix, threads, depth| Cell { threads, depth, ..self.cell(mix, 8 * KIB, true) };
        let writes = cell(0, 32, 32);
        let most = cell(65, 32, 32);
        let before = Cell { seconds: self.seconds(WRITES_BEFORE_ROUND_S), ..writes };
        let grid = INTENSITIES
            .into_iter()
            .flat_map(|threads| INTENSITIES.map(|depth| cell(65, threads, depth)));
        let cells: Vec<Cell> = std::iter::once(before).chain(grid).collect();
        self.minutes(
            "Writes of 8 KiB, 32 x 32 outstanding, to steady state",
            writes,
            Measured::Iops,
            STEADY_OF_HALF_HOURS,
        );
        self.rounds("Demand intensity", cells, &[most], Measured::Iops, STEADY);
        let which = HistogramCells::Points { max_mean_latency_ns: MAX_MEAN_LATENCY_NS };
        self.histograms(which, HISTOGRAM_S, WRITES_BEFORE_HISTOGRAM_S);
    }
}

const STEADY: Until = Until::Steady { max_rounds: ROUNDS, every: 1 };
const STEADY_OF_HALF_HOURS: Until =
    Until::Steady { max_rounds: ROUNDS * MINUTES_A_ROUND, every: MINUTES_A_ROUND };

/// A scaled plan has proportionally less space and shorter steps, but the same rounds.
pub fn plan(test: PtsTest, size_bytes: u64, align_bytes: u32, options: &PtsOptions) -> PtsPlan {
    let used = size_bytes as f64 * f64::from(options.active_percent) / 100.0;
    let scaled = (used / options.scale) as u64;
    let active = if options.scale == 1.0 { scaled } else { scaled.max(SMALLEST_SCALED) };
    // Whole blocks of every size.
    let active = active.min(size_bytes) >> 20 << 20;
    let mut plan = Plan { options, active, align: align_bytes.max(512), phases: Vec::new() };
    match test {
        PtsTest::Iops => plan.iops(),
        PtsTest::Throughput => plan.throughput(),
        PtsTest::Latency => plan.latency(),
        PtsTest::Wsat => plan.wsat(),
        PtsTest::Hir => plan.hir(),
        PtsTest::Xsr => plan.xsr(),
        PtsTest::Dirth => plan.dirth(),
    }
    let small = matches!(test, PtsTest::Iops | PtsTest::Latency) && plan.align > 512;
    let left_out = small.then(|| {
        format!(
            "512 B requests: the target takes multiples of {}",
            show_size(u64::from(plan.align))
        )
    });
    PtsPlan {
        test,
        scale: options.scale,
        active_bytes: active,
        align_bytes: plan.align,
        purge: options.purge,
        seed: options.seed,
        phases: plan.phases,
        left_out: left_out.into_iter().collect(),
    }
}
