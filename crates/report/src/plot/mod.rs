//! Units are about a CSS pixel; text widths are those of a wide font, so none overlap.

pub(crate) mod changes;
pub(crate) mod colour;
pub(crate) mod course;
pub(crate) mod density;
mod figure;
mod frame;
mod halves;
pub(crate) mod heat;
mod labels;
mod memory;
mod scale;
pub(crate) mod scene;
mod style;
pub(crate) mod surface;
pub(crate) mod text;
mod ticks;

pub(crate) use figure::lay_out;
pub(crate) use halves::peak_on_axis;
pub(crate) use memory::{lay_out as lay_out_memory, name as memory_name};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Wide,
    Narrow,
}

impl Room {
    pub(crate) fn width(self) -> f64 {
        match self {
            Room::Wide => 760.0,
            Room::Narrow => 380.0,
        }
    }

    pub(crate) fn height(self) -> f64 {
        match self {
            Room::Wide => 300.0,
            Room::Narrow => 240.0,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Room::Wide => "wide",
            Room::Narrow => "narrow",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::labels::Rect;
    use super::scene::{Scene, Text};
    use super::{Room, lay_out};
    use proptest::prelude::*;
    use results::{Axis, Figure, HalfPower, PeakSource, Series, Value, Varied};

    fn texts(scene: &Scene) -> Vec<&Text> {
        let curves = scene.curves.iter().flat_map(|curve| {
            curve.label.iter().chain(curve.half_power.iter().filter_map(|half| half.label.as_ref()))
        });
        let lines = scene.half_lines.iter().filter_map(|line| line.label.as_ref());
        scene
            .x_labels
            .iter()
            .chain(&scene.y_labels)
            .chain(&scene.x_title)
            .chain(&scene.y_title)
            .chain(curves)
            .chain(lines)
            .collect()
    }

    fn series(name: String, heights: &[Option<f64>], half: Option<f64>) -> Series {
        let value = |(place, y): (usize, &Option<f64>)| Value {
            x: f64::from(512u32 << place),
            y: *y,
            interval_95: y.map(|y| [y * 0.9, y * 1.1]),
            point: None,
        };
        let half_power = half.map(|crossing| HalfPower {
            of: Varied::RequestBytes,
            at: name.clone(),
            fixed: None,
            op: workload::OpKind::Read,
            peak_bytes_per_s: 1e9,
            peak_from: PeakSource::Measured,
            smallest: Some(crossing),
            crossing: Some(crossing),
            interval_95: None,
            at_or_below: false,
        });
        let values = heights.iter().enumerate().map(value).collect();
        Series { half_power, ..Series::new(name, values) }
    }

    proptest! {
        #[test]
        fn no_text_covers_another(
            curves in prop::collection::vec(("[a-zA-Z0-9 ,]{1,50}", prop::collection::vec(prop::option::weighted(0.9, 1.0f64..2e9), 1..14), prop::option::of(600.0f64..4e6)), 0..16),
            x in prop::sample::select(&[Axis::RequestBytes, Axis::Depth, Axis::OffsetBytes, Axis::TimeNs, Axis::Members][..]),
            y in prop::sample::select(&[Axis::BytesPerS, Axis::Iops, Axis::CpuNsPerMib, Axis::ServiceNs][..]),
        ) {
            let series = curves.into_iter().map(|(name, heights, half)| series(name, &heights, half)).collect();
            let figure = Figure { id: "f".into(), title: "t".into(), x, y, series };
            for room in [Room::Wide, Room::Narrow] {
                let scene = lay_out(&figure, &[], room);
                let boxes: Vec<(Rect, &Text)> = texts(&scene).into_iter().map(|text| (text.rect(), text)).collect();
                for (place, (a, text)) in boxes.iter().enumerate() {
                    prop_assert!(a.x >= -1.0 && a.x + a.width <= scene.width + 1.0 && a.y >= -1.0 && a.y + a.height <= scene.height + 1.0, "{text:?} lies outside");
                    for (b, other) in &boxes[..place] {
                        prop_assert!(!a.overlaps(b), "{text:?} covers {other:?}");
                    }
                }
            }
        }

        #[test]
        fn every_value_is_drawn_or_marked_as_failed(heights in prop::collection::vec(prop::option::weighted(0.7, 1.0f64..2e9), 1..14)) {
            let measured = heights.iter().flatten().count();
            let figure = Figure { id: "f".into(), title: "t".into(), x: Axis::RequestBytes, y: Axis::BytesPerS, series: vec![series("read".into(), &heights, None)] };
            let scene = lay_out(&figure, &[], Room::Wide);
            prop_assert_eq!(scene.curves[0].marks.len(), measured);
            prop_assert_eq!(scene.curves[0].failed.len(), heights.len() - measured);
            // A failed point breaks the line: one piece per stretch of measured points.
            let pieces = heights.split(Option::is_none).filter(|stretch| !stretch.is_empty()).count();
            prop_assert_eq!(scene.curves[0].line.matches('M').count(), pieces);
        }
    }

    #[test]
    fn a_half_power_point_is_at_half_of_the_peak() {
        let heights: Vec<Option<f64>> =
            (0..12).map(|place| Some(1e9 / (1.0 + 64.0 / f64::from(1 << place)))).collect();
        let figure = Figure {
            id: "f".into(),
            title: "t".into(),
            x: Axis::RequestBytes,
            y: Axis::BytesPerS,
            series: vec![series("read".into(), &heights, Some(32768.0))],
        };
        let scene = lay_out(&figure, &[], Room::Wide);
        let half = scene.curves[0].half_power.as_ref().expect("it is marked");
        assert_eq!(half.label.as_ref().map(|label| label.text.as_str()), Some("32.0 KiB"));
        assert_eq!(scene.half_lines.len(), 1);
        assert!(
            (scene.half_lines[0].stroke.y1 - half.y).abs() < 0.11,
            "the mark is on the half-peak line"
        );
        // 512 B x 2^6 = 32 KiB is the seventh value, at half of the peak.
        assert_eq!((scene.curves[0].marks[6].x, scene.curves[0].marks[6].y), (half.x, half.y));
    }
}
