//! The twelve experiments of the synthetic study.

use super::{modelled, point, workload};
use machine::{Allocation, Buffering, Engine, MemoryKind, MemoryUse};
use results::{
    Axis, CurveName, Experiment, Figure, Fixed, HalfPower, PeakSource, Point, Series, Value, Varied,
};
use workload::OpKind;
use workload::{Pattern, Workload};

const SIZES: [u32; 12] =
    [512, 2048, 4096, 8192, 16384, 32768, 65536, 131_072, 262_144, 524_288, 1 << 20, 4 << 20];

fn y_of(axis: Axis, point: &Point) -> (Option<f64>, Option<[f64; 2]>) {
    let Some(numbers) = &point.numbers else { return (None, None) };
    let size = f64::from(point.workload.request_bytes);
    let scaled = |factor: f64| numbers.interval_95.map(|[low, high]| [low * factor, high * factor]);
    let cpu = numbers.cpu_ns_per_request;
    let process = cpu.user + cpu.system;
    let cpu_scaled = |factor: f64| {
        cpu.process_interval_95.map(|[low, high]| [low / process * factor, high / process * factor])
    };
    match axis {
        Axis::Iops => (Some(numbers.iops), scaled(1.0 / size)),
        Axis::CpuNsPerMib => {
            let y = cpu.machine * 1_048_576.0 / size;
            (Some(y), cpu_scaled(y))
        }
        Axis::CpuNsPerRequest => (Some(cpu.machine), cpu_scaled(cpu.machine)),
        Axis::ServiceNs => (Some(numbers.latency_ns.mean), None),
        _ => (Some(numbers.throughput_bytes_per_s), scaled(1.0)),
    }
}

struct Curve<'a> {
    name: &'a str,
    made: Vec<(f64, Workload)>,
}

fn draw(points: &mut Vec<Point>, y: Axis, curve: Curve<'_>) -> Series {
    let mut values = Vec::new();
    for (x, workload) in curve.made {
        let number = points.len() as u64;
        points.push(match number {
            23 | 61 => Point::failed(
                workload,
                "a write of 65536 bytes at offset 18874368 failed: No space left on device (os error 28)",
            ),
            _ => point(workload, number),
        });
        let (value, interval_95) = y_of(y, &points[number as usize]);
        values.push(Value { x, y: value, interval_95, point: Some(number as usize) });
    }
    Series::new(curve.name, values)
}

fn redraw(points: &[Point], y: Axis, series: &[Series]) -> Vec<Series> {
    let value = |v: &Value| {
        let (value, interval_95) = v.point.map_or((None, None), |index| y_of(y, &points[index]));
        Value { y: value, interval_95, ..*v }
    };
    series
        .iter()
        .map(|s| Series {
            values: s.values.iter().map(value).collect(),
            half_power: None,
            ..s.clone()
        })
        .collect()
}

fn half_power(series: &Series, of: Varied, fixed: Fixed, op: OpKind, peak: f64) -> HalfPower {
    let half = peak / 2.0;
    let reached = series.values.iter().position(|v| v.y.is_some_and(|y| y >= half));
    let crossing = reached.filter(|&place| place > 0).and_then(|place| {
        let (a, b) = (series.values[place - 1], series.values[place]);
        let share = (half - a.y?) / (b.y? - a.y?);
        Some((a.x.log2() + share * (b.x / a.x).log2()).exp2())
    });
    HalfPower {
        of,
        at: fixed.to_string(),
        fixed: Some(fixed),
        op,
        peak_bytes_per_s: peak,
        peak_from: PeakSource::Measured,
        smallest: reached.map(|place| series.values[place].x),
        crossing,
        interval_95: crossing.map(|x| [x * 0.94, x * 1.07]),
        at_or_below: reached == Some(0),
    }
}

fn figure(id: &str, title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Figure {
    Figure { id: id.into(), title: title.into(), x, y, series }
}

fn experiment(
    id: &str,
    title: &str,
    question: &str,
    sentence: &str,
    figures: Vec<Figure>,
) -> Experiment {
    Experiment {
        id: id.into(),
        title: title.into(),
        question: question.into(),
        sentence: sentence.into(),
        skipped: None,
        left_out: Vec::new(),
        figures,
        memory: Vec::new(),
    }
}

fn by_size(name: &str, change: impl Fn(u32) -> Workload) -> Curve<'_> {
    Curve { name, made: SIZES.iter().map(|&size| (f64::from(size), change(size))).collect() }
}

pub fn all(points: &mut Vec<Point>) -> Vec<Experiment> {
    vec![
        memory(),
        buffered(points),
        unbuffered(points),
        cost(points),
        depth(points),
        random(points),
        allocation(points),
        alignment(points),
        streams(points),
        location(points),
        stripe(),
        device_cache(points),
    ]
}

fn memory() -> Experiment {
    let rates = |kind, threads, rate: f64| MemoryUse {
        kind,
        threads,
        rates_bytes_per_s: [0.97, 1.0, 0.99, 1.01, 0.985].map(|share| share * rate).to_vec(),
    };
    Experiment {
        memory: vec![
            rates(MemoryKind::Read, 1, 14.8e9),
            rates(MemoryKind::Read, 2, 23.5e9),
            rates(MemoryKind::Write, 1, 10.5e9),
            rates(MemoryKind::Write, 2, 17.8e9),
            rates(MemoryKind::Copy, 1, 10.7e9),
            rates(MemoryKind::Copy, 2, 17.9e9),
        ],
        ..experiment(
            "memory",
            "Memory",
            "How fast does memory itself move bytes, the ceiling of all buffered I/O?",
            "Two threads copy 17.9 GB/s, 10 times the best rate of the storage: memory is not the limit.",
            Vec::new(),
        )
    }
}

fn buffered(points: &mut Vec<Point>) -> Experiment {
    let buffered = |read: bool, size: u32| Workload {
        buffering: Buffering::Buffered,
        ..workload(read, size, 1)
    };
    let series = vec![
        draw(
            points,
            Axis::BytesPerS,
            by_size("read, cold", |size| Workload {
                cache: machine::CacheState::Cold,
                ..buffered(true, size)
            }),
        ),
        draw(
            points,
            Axis::BytesPerS,
            by_size("read, cold, sequential hint", |size| buffered(true, size)),
        ),
        draw(
            points,
            Axis::BytesPerS,
            by_size("write, to the last return", |size| buffered(false, size)),
        ),
        draw(
            points,
            Axis::BytesPerS,
            by_size("write, to stable storage", |size| Workload {
                buffering: Buffering::Direct,
                ..buffered(false, size)
            }),
        ),
    ];
    experiment(
        "buffered",
        "Out of the box",
        "What does a plain program get through the file-system cache?",
        "Buffered reads reach 1150 MiB/s from 64 KiB requests on; the hint changes nothing; writes return at memory speed and then wait 412 ms for stable storage.",
        vec![figure(
            "buffered",
            "Buffered rate by request size",
            Axis::RequestBytes,
            Axis::BytesPerS,
            series,
        )],
    )
}

fn unbuffered(points: &mut Vec<Point>) -> Experiment {
    let mut read = draw(points, Axis::BytesPerS, by_size("read", |size| workload(true, size, 1)));
    let mut write =
        draw(points, Axis::BytesPerS, by_size("write", |size| workload(false, size, 1)));
    let through = by_size("write-through", |size| Workload {
        buffering: Buffering::DirectDsync,
        ..workload(false, size, 1)
    });
    let through = draw(points, Axis::BytesPerS, through);
    read.half_power = Some(half_power(
        &read,
        Varied::RequestBytes,
        Fixed::Depth(1),
        OpKind::Read,
        1640.0 * super::MIB,
    ));
    write.half_power = Some(half_power(
        &write,
        Varied::RequestBytes,
        Fixed::Depth(1),
        OpKind::Write,
        905.0 * super::MIB,
    ));
    Experiment {
        left_out: vec!["8 MiB and 16 MiB requests: the budget ended first".into()],
        ..experiment(
            "unbuffered",
            "Unbuffered",
            "What does one request at a time get past the cache, and what does write-through cost?",
            "One read at a time reaches half of the peak at 170 KiB requests; write-through costs a factor of 4.9 at 4 KiB.",
            vec![figure(
                "unbuffered",
                "Direct synchronous rate by request size",
                Axis::RequestBytes,
                Axis::BytesPerS,
                vec![read, write, through],
            )],
        )
    }
}

fn cost(points: &mut Vec<Point>) -> Experiment {
    let direct =
        draw(points, Axis::CpuNsPerMib, by_size("direct read", |size| workload(true, size, 1)));
    let buffered = by_size("buffered read", |size| Workload {
        buffering: Buffering::Buffered,
        ..workload(true, size, 1)
    });
    let buffered = draw(points, Axis::CpuNsPerMib, buffered);
    let series = vec![direct, buffered];
    let requests = redraw(points, Axis::CpuNsPerRequest, &series);
    experiment(
        "cost",
        "Cost",
        "How much processor time does a request take, and how much a byte?",
        "A request costs 3.1 us whatever its size; a buffered byte costs 0.12 ns, ten times a direct one.",
        vec![
            figure(
                "cost-mib",
                "Processor time per MiB",
                Axis::RequestBytes,
                Axis::CpuNsPerMib,
                series,
            ),
            figure(
                "cost-request",
                "Processor time per request",
                Axis::RequestBytes,
                Axis::CpuNsPerRequest,
                requests,
            ),
        ],
    )
}

fn depth(points: &mut Vec<Point>) -> Experiment {
    let mut figures = Vec::new();
    for (op, read, peak) in [(OpKind::Read, true, 1640.0), (OpKind::Write, false, 905.0)] {
        let mut family = Vec::new();
        for depth in [1, 2, 4, 8, 32, 128] {
            let name = format!("depth {depth}");
            let mut series =
                draw(points, Axis::BytesPerS, by_size(&name, |size| workload(read, size, depth)));
            series.parts = Some(CurveName::from(&*name).ordered(depth));
            series.half_power = Some(half_power(
                &series,
                Varied::RequestBytes,
                Fixed::Depth(depth),
                op,
                peak * super::MIB,
            ));
            family.push(series);
        }
        figures.push(figure(
            &format!("depth-{op}"),
            &format!("Asynchronous {op}s by request size, one curve a depth"),
            Axis::RequestBytes,
            Axis::BytesPerS,
            family,
        ));
    }
    let mut engines = Vec::new();
    for engine in [Engine::IoUring, Engine::Libaio, Engine::Threads, Engine::Mmap] {
        let made = (0..9)
            .map(|power| {
                (f64::from(1 << power), Workload { engine, ..workload(true, 16384, 1 << power) })
            })
            .collect();
        let mut series = draw(points, Axis::BytesPerS, Curve { name: engine.name(), made });
        series.half_power = Some(half_power(
            &series,
            Varied::Depth,
            Fixed::RequestBytes(16_384),
            OpKind::Read,
            1640.0 * super::MIB,
        ));
        engines.push(series);
    }
    figures.push(figure(
        "engines",
        "16 KiB reads by depth, one curve a mechanism",
        Axis::Depth,
        Axis::BytesPerS,
        engines,
    ));
    experiment(
        "depth",
        "Depth",
        "Which depth is needed, and does the engine matter?",
        "Eight outstanding reach half of the peak with 24 KiB requests; io_uring and libaio agree to 3 %, threads lag by 12 %.",
        figures,
    )
}

fn random(points: &mut Vec<Point>) -> Experiment {
    let mut series = Vec::new();
    for (name, read, size) in [
        ("4 KiB read", true, 4096),
        ("8 KiB read", true, 8192),
        ("4 KiB write", false, 4096),
        ("8 KiB write", false, 8192),
    ] {
        let made = (0..9)
            .map(|power| {
                let threads = 1 << power;
                (
                    f64::from(threads),
                    Workload {
                        pattern: Pattern::Random,
                        threads,
                        engine: Engine::IoUring,
                        ..workload(read, size, 4)
                    },
                )
            })
            .collect();
        series.push(draw(points, Axis::Iops, Curve { name, made }));
    }
    experiment(
        "random",
        "Random",
        "Which rate do small requests reach, with how many streams of 4 outstanding?",
        "4 KiB reads peak at 419,000 a second with 256 streams.",
        vec![figure(
            "random",
            "Random requests by streams, 4 outstanding each",
            Axis::Threads,
            Axis::Iops,
            series,
        )],
    )
}

fn allocation(points: &mut Vec<Point>) -> Experiment {
    let mut series = Vec::new();
    for allocation in
        [Allocation::Written, Allocation::Reserved, Allocation::Extend, Allocation::Truncate]
    {
        let slower =
            if matches!(allocation, Allocation::Extend | Allocation::Truncate) { 1 } else { 8 };
        let change = |size| Workload { allocation, ..workload(false, size, slower) };
        series.push(draw(points, Axis::BytesPerS, by_size(allocation.name(), change)));
    }
    experiment(
        "allocation",
        "Allocation",
        "What does the state of a file's space cost its writers?",
        "A file that grows as it is written takes one write at a time whatever the depth: at 64 KiB 4.1 times slower than one written before.",
        vec![figure(
            "allocation",
            "Direct writes at depth 8 by the state of the file's space",
            Axis::RequestBytes,
            Axis::BytesPerS,
            series,
        )],
    )
}

fn alignment(points: &mut Vec<Point>) -> Experiment {
    let shifts = [0_u64, 512, 1024, 2048, 4096, 12288, 32256];
    let mut series = Vec::new();
    for (name, read) in [("64 KiB read", true), ("64 KiB write", false)] {
        let made = shifts
            .iter()
            .map(|&shift| {
                let slower = if shift % 4096 == 0 { 8 } else { 6 };
                (shift as f64, Workload { offset_bytes: shift, ..workload(read, 65536, slower) })
            })
            .collect();
        series.push(draw(points, Axis::BytesPerS, Curve { name, made }));
    }
    experiment(
        "alignment",
        "Alignment",
        "What do requests cost that start off the natural boundaries?",
        "Requests off the 4 KiB page lose 9 % of reads and 14 % of writes.",
        vec![figure(
            "alignment",
            "64 KiB requests at depth 8 by shift",
            Axis::OffsetBytes,
            Axis::BytesPerS,
            series,
        )],
    )
}

fn streams(points: &mut Vec<Point>) -> Experiment {
    let mut series = Vec::new();
    for (name, read) in [("read", true), ("write", false)] {
        let made = [1, 2, 3, 4, 8, 16]
            .map(|threads| (f64::from(threads), Workload { threads, ..workload(read, 65536, 1) }))
            .to_vec();
        series.push(draw(points, Axis::BytesPerS, Curve { name, made }));
    }
    experiment(
        "streams",
        "Streams",
        "Do sequential streams that compete help or hurt?",
        "Sixteen streams of 64 KiB requests reach 94 % of the peak: this device does not mind the seeks between them.",
        vec![figure(
            "streams",
            "64 KiB sequential streams",
            Axis::Threads,
            Axis::BytesPerS,
            series,
        )],
    )
}

fn location(points: &mut Vec<Point>) -> Experiment {
    let made =
        (0..=16).map(|place| (f64::from(place) / 16.0, workload(true, 1 << 20, 8))).collect();
    let series = vec![draw(points, Axis::BytesPerS, Curve { name: "read", made })];
    experiment(
        "location",
        "Location",
        "Is the target as fast at its end as at its beginning?",
        "The rate is the same everywhere to within 3 %: no zones.",
        vec![figure(
            "location",
            "1 MiB reads by position",
            Axis::Position,
            Axis::BytesPerS,
            series,
        )],
    )
}

fn stripe() -> Experiment {
    let reason = "a stripe takes several targets and one was given: name two directories or more";
    Experiment {
        skipped: Some(reason.into()),
        ..experiment(
            "stripe",
            "Stripe",
            "What do several targets give together?",
            reason,
            Vec::new(),
        )
    }
}

fn device_cache(points: &mut Vec<Point>) -> Experiment {
    let mut series = Vec::new();
    for (name, factor) in [("same blocks again", 1), ("next blocks", 2), ("miss", 4)] {
        let made = (9..=20)
            .map(|power| {
                let size = 1_u32 << power;
                (
                    f64::from(size),
                    Workload {
                        pattern: Pattern::Stride(u64::from(size) * factor),
                        ..workload(true, size, 1)
                    },
                )
            })
            .collect();
        series.push(draw(points, Axis::ServiceNs, Curve { name, made }));
    }
    // More distant locations are slower.
    for (place, series) in series.iter_mut().enumerate() {
        for value in &mut series.values {
            value.y = value.y.map(|y| y * [0.4, 0.7, 1.0][place]);
        }
    }
    experiment(
        "device_cache",
        "The device's cache",
        "Which requests does the device serve from its own memory?",
        "The same blocks again take 0.4 of a miss: 31 us and 2600 MiB/s.",
        vec![figure(
            "device-cache",
            "Service time by request size",
            Axis::RequestBytes,
            Axis::ServiceNs,
            series,
        )],
    )
}

pub fn best(points: &[Point], read: bool) -> usize {
    let rate = |point: &Point| {
        if (point.workload.read_percent == 100) == read { point.rate().unwrap_or(0.0) } else { 0.0 }
    };
    let direct = |point: &Point| {
        if point.workload.buffering == Buffering::Direct && point.workload.threads == 1 {
            rate(point)
        } else {
            0.0
        }
    };
    (0..points.len())
        .max_by(|&a, &b| direct(&points[a]).total_cmp(&direct(&points[b])))
        .unwrap_or(0)
}

/// Returns the index of the first measured point that matches, or 0 without any.
pub fn find(points: &[Point], wanted: impl Fn(&Workload) -> bool) -> usize {
    points.iter().position(|point| point.numbers.is_some() && wanted(&point.workload)).unwrap_or(0)
}

pub fn gain(points: &[Point], from: usize, to: usize) -> f64 {
    modelled(&points[to].workload) / modelled(&points[from].workload)
}
