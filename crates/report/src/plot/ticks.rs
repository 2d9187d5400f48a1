use super::text;
use crate::format::{grouped, trim_zeros};
use machine::units::{GIB, KIB, MIB, rate_number, show_time, shown_in, significant};
use results::Axis;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub value: f64,
    pub label: String,
}

const GAP: f64 = 10.0;

/// 1, 2 or 5 times a power of ten, for at most `max` parts.
fn step(length: f64, max: usize) -> f64 {
    let rough = (length / max.max(1) as f64).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= rough * 0.999_999)
        .unwrap_or(10.0 * power)
}

/// The unit's size in the axis's values, and its name.
fn unit(axis: Axis, max: f64) -> (f64, &'static str) {
    match axis {
        Axis::BytesPerS => (shown_in().rate_bytes(), ""),
        Axis::Iops if max >= 10_000.0 => (1e3, "k"),
        Axis::Position | Axis::MissShare => (0.01, " %"),
        Axis::TimeNs | Axis::CpuNsPerMib | Axis::CpuNsPerRequest | Axis::ServiceNs => match max {
            max if max >= 2e9 => (1e9, " s"),
            max if max >= 2e6 => (1e6, " ms"),
            max if max >= 2e3 => (1e3, " us"),
            _ => (1.0, " ns"),
        },
        Axis::RequestBytes | Axis::OffsetBytes | Axis::ChunkBytes | Axis::CacheBytes => match max {
            max if max >= 2.0 * GIB as f64 => (GIB as f64, " GiB"),
            max if max >= 2.0 * MIB as f64 => (MIB as f64, " MiB"),
            max if max >= 2.0 * KIB as f64 => (KIB as f64, " KiB"),
            _ => (1.0, " B"),
        },
        _ => (1.0, ""),
    }
}

/// At most `parts` + 1 ticks from zero to at least `max`; the last ends the axis.
pub(crate) fn from_zero(axis: Axis, max: f64, parts: usize) -> Vec<Tick> {
    let (factor, name) = unit(axis, max);
    let max = if max > 0.0 && max.is_finite() { max / factor } else { 1.0 };
    let mut step = step(max, parts);
    if axis == Axis::Members {
        step = step.max(1.0);
    }
    let decimals = (-(step.log10().floor())).clamp(0.0, 12.0) as usize;
    let count = ((max / step).ceil() as usize).clamp(1, parts.max(1));
    (0..=count)
        .map(|place| {
            let value = place as f64 * step;
            let number = if (1e-9..1e15).contains(&step) {
                if decimals == 0 { grouped(value.round()) } else { format!("{value:.decimals$}") }
            } else {
                format!("{value:e}")
            };
            Tick {
                value: value * factor,
                label: if place == 0 && name == "k" {
                    "0".into()
                } else {
                    format!("{number}{name}")
                },
            }
        })
        .collect()
}

fn log_label(axis: Axis, value: f64) -> String {
    let squeeze = |text: String| match text.split_once(' ') {
        Some((number, unit)) => format!("{} {unit}", trim_zeros(number)),
        None => trim_zeros(&text),
    };
    match axis {
        Axis::RequestBytes | Axis::OffsetBytes | Axis::ChunkBytes | Axis::CacheBytes
            if value >= 1.0 =>
        {
            crate::format::size(value)
        }
        Axis::TimeNs | Axis::CpuNsPerMib | Axis::CpuNsPerRequest | Axis::ServiceNs
            if value >= 1e-6 =>
        {
            squeeze(show_time(value))
        }
        Axis::BytesPerS => trim_zeros(&rate_number(value)),
        _ => trim_zeros(&significant(value, 3)),
    }
}

/// Labels every, every second, every fourth power of two ..., the finest that fit; else the ends.
pub(crate) fn powers_of_two(axis: Axis, low: f64, high: f64, length: f64) -> Vec<Tick> {
    let (first, last) = (low.log2().ceil() as i32, high.log2().floor() as i32);
    let per_power = length / (high / low).log2().max(1e-9);
    let ticks = |every: i32| -> Vec<Tick> {
        let first =
            first.div_euclid(every) * every + if first.rem_euclid(every) == 0 { 0 } else { every };
        (first..=last)
            .step_by(every as usize)
            .map(|power| {
                let value = f64::from(power).exp2();
                Tick { value, label: log_label(axis, value) }
            })
            .collect()
    };
    let fits = |ticks: &[Tick], every: i32| {
        ticks.windows(2).all(|pair| {
            (text::width(&pair[0].label) + text::width(&pair[1].label)) / 2.0 + GAP
                <= per_power * f64::from(every)
        })
    };
    for every in [1, 2, 4, 10, 20, 40, 80, 160, 320, 640, 1280] {
        let ticks = ticks(every);
        if ticks.len() >= 2 && fits(&ticks, every) {
            return ticks;
        }
    }
    Vec::new()
}

pub(crate) fn of_values(
    axis: Axis,
    values: &[f64],
    place: impl Fn(f64) -> Option<f64>,
) -> Vec<Tick> {
    let mut free_from = f64::NEG_INFINITY;
    let mut ticks = Vec::new();
    for &value in values {
        let label = crate::format::axis_value(axis, value);
        let half = text::width(&label) / 2.0;
        let Some(x) = place(value) else { continue };
        if x - half >= free_from {
            free_from = x + half + GAP;
            ticks.push(Tick { value, label });
        }
    }
    ticks
}

/// The 1, 2 or 5 x 10^n at or below, or at or above, a positive value.
fn round_log(value: f64, up: bool) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let digits = [1.0, 2.0, 5.0, 10.0];
    let near = |digit: &f64| {
        if up { digit * power >= value * 0.999_999 } else { digit * power <= value * 1.000_001 }
    };
    let digit =
        if up { digits.into_iter().find(near) } else { digits.into_iter().rev().find(near) };
    let round = digit.unwrap_or(1.0) * power;
    if round > 0.0 && round.is_finite() { round } else { value }
}

/// Labels 1, 2, 5 while they fit, then powers of ten, then every second, third ... of these.
pub(crate) fn decades(axis: Axis, low: f64, high: f64, height: f64) -> (f64, f64, Vec<Tick>) {
    // Rates are round in their unit.
    let unit = if axis == Axis::BytesPerS { shown_in().rate_bytes() } else { 1.0 };
    let (low, mut high) = (round_log(low / unit, false), round_log(high / unit, true));
    if high <= low * 1.01 {
        high = low * 10.0;
    }
    let span = (high / low).log10().max(0.01);
    let room = (height / (text::HEIGHT + 6.0)).max(2.0);
    let digits: &[f64] = if span * 3.0 <= room { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = ((span / room).ceil() as i32).max(1);
    let mut ticks = Vec::new();
    let mut power = (low.log10() - 1e-9).floor() as i32;
    while 10f64.powi(power) <= high * 1.000_001 && ticks.len() < 100 {
        for digit in digits {
            let value = digit * 10f64.powi(power);
            if value >= low * 0.999_999 && value <= high * 1.000_001 && power.rem_euclid(every) == 0
            {
                let value = value * unit;
                ticks.push(Tick { value, label: log_label(axis, value) });
            }
        }
        power += 1;
    }
    (low * unit, high * unit, ticks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn rates_from_zero_in_round_steps() {
        assert_eq!(
            labels(&from_zero(Axis::BytesPerS, 1640.0 * MIB as f64, 5)),
            ["0", "500", "1000", "1500", "2000"]
        );
        assert_eq!(
            labels(&from_zero(Axis::BytesPerS, 0.9 * MIB as f64, 5)),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&from_zero(Axis::Iops, 419_000.0, 5)),
            ["0", "100k", "200k", "300k", "400k", "500k"]
        );
        assert_eq!(labels(&from_zero(Axis::Position, 1.0, 4)), ["0 %", "50 %", "100 %"]);
        assert_eq!(labels(&from_zero(Axis::Members, 2.0, 5)), ["0", "1", "2"]);
        assert_eq!(labels(&from_zero(Axis::TimeNs, 3.4e9, 5)), ["0 s", "1 s", "2 s", "3 s", "4 s"]);
    }

    #[test]
    fn request_sizes_by_powers_of_two() {
        let wide = powers_of_two(Axis::RequestBytes, 400.0, 5e6, 600.0);
        assert_eq!(
            labels(&wide),
            ["1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"]
        );
        let narrow = powers_of_two(Axis::RequestBytes, 400.0, 5e6, 280.0);
        assert_eq!(labels(&narrow), ["4 KiB", "64 KiB", "1 MiB"]);
        assert_eq!(
            labels(&powers_of_two(Axis::Depth, 0.9, 300.0, 600.0)),
            ["1", "2", "4", "8", "16", "32", "64", "128", "256"]
        );
        assert!(
            powers_of_two(Axis::Depth, 2.9, 3.1, 600.0).is_empty(),
            "no power of two in between: the values are labelled"
        );
    }

    #[test]
    fn times_by_decades() {
        let (low, high, ticks) = decades(Axis::ServiceNs, 31e3, 812e3, 300.0);
        assert_eq!((low, high.round()), (20e3, 1e6));
        assert_eq!(labels(&ticks), ["20 us", "50 us", "100 us", "200 us", "500 us", "1 ms"]);
        let (_, _, ticks) = decades(Axis::CpuNsPerMib, 1e3, 1e9, 200.0);
        assert_eq!(labels(&ticks), ["1 us", "10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s"]);
    }

    proptest! {
        #[test]
        fn a_linear_axis_reaches_its_values(max in 1e-300f64..1e300, parts in 2usize..8) {
            let ticks = from_zero(Axis::BytesPerS, max, parts);
            prop_assert!(ticks.len() <= parts + 1 && ticks.last().is_some_and(|tick| tick.value >= max * 0.9999));
        }

        #[test]
        fn labels_of_powers_keep_their_distance(low in 1e-9f64..1e9, ratio in 1.01f64..1e12, length in 100.0f64..800.0) {
            let (high, axis) = (low * ratio, Axis::RequestBytes);
            let ticks = powers_of_two(axis, low, high, length);
            let at = |value: f64| (value / low).log2() / ratio.log2() * length;
            for pair in ticks.windows(2) {
                let room = at(pair[1].value) - at(pair[0].value);
                prop_assert!(room >= (text::width(&pair[0].label) + text::width(&pair[1].label)) / 2.0);
            }
        }

        #[test]
        fn decades_enclose_and_keep_their_distance(low in 1e-200f64..1e200, ratio in 1.0f64..1e20, height in 100.0f64..400.0) {
            let (from, to, ticks) = decades(Axis::ServiceNs, low, low * ratio, height);
            prop_assert!(from <= low * 1.001 && to >= low * ratio * 0.999);
            prop_assert!(ticks.len() as f64 * text::HEIGHT <= height + 2.0 * text::HEIGHT);
        }
    }
}
