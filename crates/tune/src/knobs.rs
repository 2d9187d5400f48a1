//! Settings that a program controls itself.

use machine::units::{parse_size, show_size};
use machine::{
    Allocation, Buffering, CacheState, Engine, Hint, Keep, Layer, TargetFacts, TargetKind,
};
use workload::{Pattern, Workload};

/// What a workload knob may depend on.
pub struct Scene<'a> {
    pub facts: &'a TargetFacts,
    pub engines: &'a [Engine],
}

impl Scene<'_> {
    /// For several requests outstanding per thread.
    pub fn deep_engine(&self) -> Engine {
        Engine::asynchronous(self.engines)
    }
}

/// A setting of the requests, not of the machine.
pub struct WorkloadKnob {
    pub name: &'static str,
    pub about: &'static str,
    pub value: fn(&Workload) -> String,
    pub try_: fn(&Workload, &Scene<'_>) -> Vec<String>,
    /// `None` if the value is invalid.
    pub with: fn(&Workload, &str, &Scene<'_>) -> Option<Workload>,
    /// How the value can lose data.
    pub risk: fn(&Workload, &str) -> Option<String>,
    /// Changes to a program for the value.
    pub keep: fn(&str, &Scene<'_>) -> Vec<Keep>,
}

pub const KNOBS: [WorkloadKnob; 7] = [BUFFERING, REQUEST, DEPTH, ENGINE, HINT, ALLOCATION, OFFSET];

fn no_risk(_workload: &Workload, _value: &str) -> Option<String> {
    None
}

fn in_program(line: impl Into<String>) -> Vec<Keep> {
    vec![Keep { place: "in the program".into(), line: line.into() }]
}

pub(crate) fn size(bytes: u64) -> String {
    show_size(bytes)
        .replace(" KiB", "k")
        .replace(" MiB", "m")
        .replace(" GiB", "g")
        .replace(" B", "")
}

const BUFFERING: WorkloadKnob = WorkloadKnob {
    name: "buffering",
    about: "through the file-system cache or direct",
    value: |workload| {
        if workload.buffering.is_direct() { "direct".into() } else { "buffered".into() }
    },
    try_: |_, _| vec!["direct".into(), "buffered".into()],
    with: |workload, value, scene| {
        let dsync = workload.buffering.is_dsync();
        let mut changed = workload.clone();
        match value {
            "direct" if scene.facts.direct && !scene.facts.in_memory => {
                changed.buffering = if dsync { Buffering::DirectDsync } else { Buffering::Direct };
                changed.cache = CacheState::AsIs;
                changed.hint = Hint::None;
            }
            "buffered" => {
                changed.buffering =
                    if dsync { Buffering::BufferedDsync } else { Buffering::Buffered };
                // A warm cache would be measured instead of the storage.
                changed.cache = if workload.writes() { workload.cache } else { CacheState::Cold };
            }
            _ => return None,
        }
        Some(changed)
    },
    risk: |workload, value| {
        let unsafe_ = value == "buffered" && workload.writes() && !workload.buffering.is_dsync();
        unsafe_.then(|| "a crash loses unsynced writes in the page cache".into())
    },
    keep: |value, _| match value {
        "direct" => {
            in_program("open the file with O_DIRECT, with aligned buffers, offsets and lengths")
        }
        _ => in_program("open the file without O_DIRECT"),
    },
};

const REQUEST: WorkloadKnob = WorkloadKnob {
    name: "request",
    about: "request size in bytes",
    value: |workload| size(u64::from(workload.request_bytes)),
    // The program dictates the size of random reads.
    try_: |workload, _| match workload.pattern {
        Pattern::Seq => ["16k", "64k", "256k", "1m"].map(str::to_owned).into(),
        _ => Vec::new(),
    },
    with: |workload, value, _| {
        let request_bytes = parse_size(value).ok().and_then(|bytes| u32::try_from(bytes).ok())?;
        workload.sizes.is_none().then(|| Workload { request_bytes, ..workload.clone() })
    },
    risk: no_risk,
    keep: |value, _| in_program(format!("read and write {value} at a time")),
};

const DEPTH: WorkloadKnob = WorkloadKnob {
    name: "depth",
    about: "requests each thread keeps outstanding",
    value: |workload| workload.depth.to_string(),
    try_: |workload, _| {
        // Requests through the cache are memory copies, one after the other.
        if workload.buffering.is_direct() {
            ["1", "4", "16", "64"].map(str::to_owned).into()
        } else {
            Vec::new()
        }
    },
    with: |workload, value, scene| {
        let depth: u32 = value.parse().ok().filter(|&depth| depth > 0)?;
        let mut engine = workload.engine;
        if depth > engine.max_depth() {
            engine = scene.deep_engine();
        } else if depth == 1 && workload.depth > 1 && scene.engines.contains(&Engine::Sync) {
            engine = Engine::Sync;
        }
        Some(Workload { depth, engine, ..workload.clone() })
    },
    risk: no_risk,
    keep: |value, _| in_program(format!("keep {value} requests outstanding")),
};

const ENGINE: WorkloadKnob = WorkloadKnob {
    name: "engine",
    about: "how requests are issued",
    value: |workload| workload.engine.name().into(),
    try_: |_, scene| {
        let real = |engine: &&Engine| engine.does_io() && !engine.is_mapped();
        scene.engines.iter().filter(real).map(|engine| engine.name().to_owned()).collect()
    },
    with: |workload, value, scene| {
        let engine = scene.engines.iter().copied().find(|engine| engine.name() == value)?;
        (workload.depth <= engine.max_depth()).then(|| Workload { engine, ..workload.clone() })
    },
    risk: no_risk,
    keep: |value, _| {
        let engine = Engine::ALL.into_iter().find(|engine| engine.name() == value);
        in_program(engine.map_or_else(
            || format!("issue requests through {value}"),
            |engine| engine.advice().into(),
        ))
    },
};

const HINT: WorkloadKnob = WorkloadKnob {
    name: "hint",
    about: "the access hint given to the file-system cache",
    value: |workload| workload.hint.name().into(),
    try_: |workload, _| match workload.pattern {
        Pattern::Seq => vec!["sequential".into()],
        _ => vec!["random".into()],
    },
    with: |workload, value, _| {
        let hint = Hint::ALL.into_iter().find(|hint| hint.name() == value)?;
        let reads_cached = workload.read_percent > 0 && !workload.buffering.is_direct();
        reads_cached.then(|| Workload { hint, ..workload.clone() })
    },
    risk: no_risk,
    keep: |value, _| {
        in_program(format!("posix_fadvise(fd, 0, 0, POSIX_FADV_{})", value.to_uppercase()))
    },
};

const ALLOCATION: WorkloadKnob = WorkloadKnob {
    name: "allocation",
    about: "allocation of the file's space before the writes",
    value: |workload| workload.allocation.name().into(),
    try_: |_, _| ["written", "reserved", "extend"].map(str::to_owned).into(),
    with: |workload, value, scene| {
        let allocation = Allocation::ALL.into_iter().find(|one| one.name() == value)?;
        let made = scene.facts.kind == TargetKind::TestFile && scene.facts.members <= 1;
        (workload.writes() && workload.read_percent == 0 && made)
            .then(|| Workload { allocation, ..workload.clone() })
    },
    risk: no_risk,
    keep: |value, _| {
        in_program(match value {
            "written" => "write the file once, then overwrite it in place",
            "reserved" => "reserve the file's space with fallocate",
            _ => "let the file grow as it is written",
        })
    },
};

const OFFSET: WorkloadKnob = WorkloadKnob {
    name: "alignment",
    about: "offset of requests from the start of the target",
    value: |workload| size(workload.offset_bytes),
    try_: |workload, scene| {
        let shift = straddle(&scene.facts.layers);
        let aligned = (4096 - shift) % 4096;
        if workload.offset_bytes % 4096 == aligned { Vec::new() } else { vec![size(aligned)] }
    },
    with: |workload, value, scene| {
        let offset_bytes = parse_size(value).ok()?;
        let align = u64::from(scene.facts.direct_align_bytes.max(1));
        let possible = !workload.buffering.is_direct() || offset_bytes.is_multiple_of(align);
        possible.then(|| Workload { offset_bytes, ..workload.clone() })
    },
    risk: no_risk,
    keep: |_, scene| match straddle(&scene.facts.layers) {
        0 => in_program("align requests to 4 KiB"),
        _ => crate::making::aligned_partition(&scene.facts.layers),
    },
};

/// Bytes past a 4 KiB boundary at which the partition starts.
fn straddle(layers: &[Layer]) -> u64 {
    layers
        .iter()
        .find_map(|layer| layer.facts.partition)
        .map_or(0, |partition| partition.start_bytes % 4096)
}
