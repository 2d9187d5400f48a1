use super::frame::{Frame, LINE, X_PAD, drawable};
use super::halves::{halves, peaks};
use super::labels::{Rect, spread};
use super::scene::{Curve, DASHES, Mark, SHAPES, Scene, Stroke, Text, tenth};
use super::style::styles;
use super::{Room, text};
use machine::text::printable;
use results::Point;
use results::{Figure, Series, Value};
use std::fmt::Write;

/// More bands would cover one another, so only whiskers are drawn.
const MAX_BANDS: usize = 2;
/// With more values, a curve has a band instead of markers and whiskers.
const DENSE: usize = 60;

/// `points` are the document's: their warnings make hollow markers.
pub(crate) fn lay_out(figure: &Figure, points: &[Point], room: Room) -> Scene {
    let names: Vec<String> = figure.series.iter().map(|series| printable(&series.name)).collect();
    let peaks = peaks(figure, points);
    let frame = Frame::new(figure, &names, &peaks, room);
    let mut scene = frame.axes(figure, room);
    scene.curves = curves(figure, points, &names, &frame);
    fill_if_all_are_hollow(&mut scene.curves);
    halves(figure, &peaks, &frame, &mut scene);
    if frame.direct {
        label_ends(&names, &frame, &mut scene);
    } else {
        label_key(&frame, &mut scene);
    }
    if scene.curves.iter().all(|curve| curve.marks.is_empty() && curve.below.is_empty()) {
        let [left, top, right, bottom] = scene.plot;
        let said = if figure.series.is_empty() {
            "nothing was measured"
        } else {
            "no point of this figure could be measured"
        };
        scene.empty = Some(Text::new((left + right) / 2.0, (top + bottom) / 2.0, "middle", said));
    }
    scene
}

fn curves(figure: &Figure, points: &[Point], names: &[String], frame: &Frame) -> Vec<Curve> {
    let styles = styles(&figure.series);
    let count = figure.series.len();
    let mut failures: Vec<f64> = Vec::new();
    figure
        .series
        .iter()
        .enumerate()
        .map(|(place, series)| {
            let style = &styles[place];
            // Discrete values are offset sideways, so that intervals do not hide one another.
            let aside = match frame.x.slot() {
                Some(slot) => {
                    (place as f64 - (count - 1) as f64 / 2.0)
                        * (slot * 0.6 / count as f64).min(12.0)
                }
                None => 0.0,
            };
            let mut curve = Curve {
                name: names[place].clone(),
                light: style.pair.light.clone(),
                dark: style.pair.dark.clone(),
                dashes: DASHES[style.dash % DASHES.len()],
                shape: SHAPES[style.shape % SHAPES.len()],
                ..Curve::default()
            };
            draw(&mut curve, figure, series, points, frame, aside, &mut failures);
            if count > MAX_BANDS || frame.category {
                curve.band.clear();
            }
            if frame.category {
                curve.line.clear();
            } else if curve.marks.len() > DENSE {
                curve.dense = true;
                curve.whiskers.clear();
            }
            curve
        })
        .collect()
}

fn fill_if_all_are_hollow(curves: &mut [Curve]) {
    let all = |curve: &Curve| curve.marks.iter().all(|mark| mark.doubtful);
    if curves.iter().all(all) {
        curves.iter_mut().flat_map(|curve| &mut curve.marks).for_each(|mark| mark.doubtful = false);
    }
}

/// x, y, and the low and high end of the interval.
type Placed = (f64, f64, Option<(f64, f64)>);

fn draw(
    curve: &mut Curve,
    figure: &Figure,
    series: &Series,
    points: &[Point],
    frame: &Frame,
    aside: f64,
    failures: &mut Vec<f64>,
) {
    let mut run: Vec<Placed> = Vec::new();
    let bottom = frame.y.begin;
    for (place, value) in series.values.iter().enumerate() {
        let Some(x) =
            frame.x.at(value.x).filter(|_| drawable(figure.x, value.x)).map(|x| x + aside)
        else {
            continue;
        };
        let doubtful = warned(value, points);
        let mark = |y: f64| Mark { x: tenth(x), y: tenth(y), value: place, doubtful };
        match value.y {
            None => {
                finish(curve, &mut run);
                // Failures at the same position are stacked.
                let same = failures.iter().filter(|known| (**known - x).abs() < 8.0).count();
                failures.push(x);
                curve.failed.push(mark(bottom - 8.0 - same as f64 * 9.0));
            }
            Some(y) if !drawable(figure.y, y) || y < 0.0 || frame.y.at(y).is_none() => {
                finish(curve, &mut run);
                curve.below.push(mark(bottom - 4.0));
            }
            Some(y) => {
                let y = frame.y.at_or_end(y);
                let interval = value
                    .interval_95
                    .map(|[low, high]| (frame.y.at_or_end(low), frame.y.at_or_end(high)));
                if let Some((low, high)) = interval {
                    // Writing to a String cannot fail.
                    let _ = write!(curve.whiskers, "M{} {}V{}", tenth(x), tenth(low), tenth(high));
                }
                run.push((x, y, interval));
                curve.marks.push(mark(y));
            }
        }
    }
    finish(curve, &mut run);
}

fn finish(curve: &mut Curve, run: &mut Vec<Placed>) {
    for (place, (x, y, _)) in run.iter().enumerate() {
        let _ =
            write!(curve.line, "{}{} {}", if place == 0 { 'M' } else { 'L' }, tenth(*x), tenth(*y));
    }
    if run.len() > 1 && run.iter().all(|(_, _, interval)| interval.is_some()) {
        let upper = run.iter().map(|(x, y, interval)| (*x, interval.map_or(*y, |(_, high)| high)));
        let lower =
            run.iter().rev().map(|(x, y, interval)| (*x, interval.map_or(*y, |(low, _)| low)));
        for (place, (x, y)) in upper.chain(lower).enumerate() {
            let _ = write!(
                curve.band,
                "{}{} {}",
                if place == 0 { 'M' } else { 'L' },
                tenth(x),
                tenth(y)
            );
        }
        curve.band.push('Z');
    }
    run.clear();
}

fn warned(value: &Value, points: &[Point]) -> bool {
    let numbers =
        value.point.and_then(|index| points.get(index)).and_then(|point| point.numbers.as_ref());
    numbers.is_some_and(|numbers| !numbers.warnings.is_empty())
}

fn label_ends(names: &[String], frame: &Frame, scene: &mut Scene) {
    let [_, top, right, bottom] = frame.plot();
    let ends: Vec<(f64, f64)> = scene
        .curves
        .iter()
        .map(|curve| {
            curve
                .marks
                .last()
                .or(curve.failed.last())
                .or(curve.below.last())
                .map_or((right, bottom), |mark| (mark.x, mark.y))
        })
        .collect();
    // A curve that ends early has its name at its end, if nothing is there.
    let mut taken: Vec<Rect> = inner_texts(scene);
    let early: Vec<Option<Rect>> = (0..ends.len())
        .map(|place| {
            let rect = at_end(scene, place, ends[place], text::width(&names[place]), right)?;
            let free = !taken.iter().any(|other| other.overlaps(&rect));
            free.then(|| taken.push(rect)).map(|()| rect)
        })
        .collect();
    let outside: Vec<usize> = (0..ends.len()).filter(|&place| early[place].is_none()).collect();
    let wanted = settled(scene, &ends);
    let wanted: Vec<f64> = outside.iter().map(|&place| wanted[place]).collect();
    let placed = spread(&wanted, LINE, top, bottom - 5.0);
    let x = right + 14.0;
    for (place, rect) in early.iter().enumerate() {
        if let Some(rect) = rect {
            let label = Text::new(rect.x, rect.y + text::ASCENT, "start", &names[place]);
            scene.curves[place].label = Some(label);
        }
    }
    for (&place, y) in outside.iter().zip(placed) {
        let curve = &mut scene.curves[place];
        let (end_x, end_y) = ends[place];
        curve.label =
            Some(Text::new(x, y + 4.2, "start", text::fit(&names[place], frame.width - x)));
        if (end_x - right).abs() > X_PAD + 2.0 || (end_y - y).abs() > 3.0 {
            curve.leader = Some(Stroke::new(end_x + 6.0, end_y, x - 4.0, y));
        }
    }
}

fn inner_texts(scene: &Scene) -> Vec<Rect> {
    let halves = scene.curves.iter().filter_map(|curve| curve.half_power.as_ref()?.label.as_ref());
    let lines = scene.half_lines.iter().filter_map(|line| line.label.as_ref());
    halves.chain(lines).map(Text::rect).collect()
}

fn at_end(scene: &Scene, place: usize, (x, y): (f64, f64), width: f64, right: f64) -> Option<Rect> {
    let rect =
        Rect { x: x + 9.0, y: y - text::HEIGHT / 2.0, width: width + 2.0, height: text::HEIGHT };
    let others = scene.curves.iter().enumerate().filter(|(other, _)| *other != place);
    let crossed = |curve: &Curve| {
        let marks = curve.marks.iter().chain(&curve.failed).chain(&curve.below);
        let between = curve.marks.windows(2).flat_map(|pair| {
            (0..=SAMPLES).map(move |part| {
                let share = f64::from(part) / f64::from(SAMPLES);
                let along = |from: f64, to: f64| from + share * (to - from);
                (along(pair[0].x, pair[1].x), along(pair[0].y, pair[1].y))
            })
        });
        marks.map(|mark| (mark.x, mark.y)).chain(between).any(|point| rect.holds(point))
    };
    let fits = rect.x + rect.width <= right && x < right - X_PAD - 2.0;
    (fits && !others.into_iter().any(|(_, curve)| crossed(curve))).then_some(rect)
}

/// Points between two values at which a line is tested for crossing a name.
const SAMPLES: u32 = 40;

/// The curves' ends; if these are too close to order, labels follow the whole curves.
fn settled(scene: &Scene, ends: &[(f64, f64)]) -> Vec<f64> {
    let mean = |curve: usize| {
        let marks = &scene.curves[curve].marks;
        marks.iter().map(|mark| mark.y).sum::<f64>() / marks.len().max(1) as f64
    };
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|&a, &b| ends[a].1.total_cmp(&ends[b].1));
    let mut wanted = vec![0.0; ends.len()];
    for group in order.chunk_by(|&a, &b| ends[b].1 - ends[a].1 < LINE * 0.6) {
        let mut by_mean = group.to_vec();
        by_mean.sort_by(|&a, &b| mean(a).total_cmp(&mean(b)));
        for (&place, &curve) in group.iter().zip(&by_mean) {
            wanted[curve] = ends[place].1;
        }
    }
    wanted
}

fn label_key(frame: &Frame, scene: &mut Scene) {
    for (curve, (x, row, name)) in scene.curves.iter_mut().zip(&frame.key) {
        let y = 9.0 + *row as f64 * LINE;
        curve.key = Some(Mark { x: tenth(x + 8.0), y: tenth(y), value: 0, doubtful: false });
        curve.label = Some(Text::new(x + 20.0, y + 4.2, "start", name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Axis;

    fn figure(curves: &[(&str, &[f64])]) -> Figure {
        let value = |(y, power): (&f64, i32)| Value {
            x: f64::from(1 << power),
            y: Some(*y),
            interval_95: None,
            point: None,
        };
        let series = |(name, heights): &(&str, &[f64])| {
            Series::new(*name, heights.iter().zip(12..).map(value).collect())
        };
        Figure {
            id: "f".into(),
            title: "t".into(),
            x: Axis::RequestBytes,
            y: Axis::BytesPerS,
            series: curves.iter().map(series).collect(),
        }
    }

    #[test]
    fn curves_far_apart_share_a_logarithmic_axis() {
        let labels = |low: f64| {
            let figure = figure(&[("read", &[2e9, 3e9]), ("write", &[low, low])]);
            let scene = lay_out(&figure, &[], Room::Wide);
            scene.y_labels.iter().map(|label| label.text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(labels(3.1e7)[0], "0", "less than a hundred times: from zero");
        assert_eq!(labels(2.9e7)[..3], ["20", "50", "100"]);
    }

    #[test]
    fn a_curve_that_ends_early_has_its_name_at_its_end() {
        let figure = figure(&[("read", &[1e9, 2e9, 3e9, 3e9, 3e9, 3e9]), ("write", &[1e8, 2e8])]);
        let scene = lay_out(&figure, &[], Room::Wide);
        let right = scene.plot[2];
        let label = |place: usize| scene.curves[place].label.as_ref().expect("a name").x;
        assert!(label(0) > right && label(1) < right / 2.0);
        assert!(scene.curves.iter().all(|curve| curve.leader.is_none()));
    }

    #[test]
    fn points_are_hollow_only_if_others_are_filled() {
        let curve = |doubtful: [bool; 2]| {
            let mark = |doubtful| Mark { x: 0.0, y: 0.0, value: 0, doubtful };
            Curve { marks: doubtful.map(mark).to_vec(), ..Curve::default() }
        };
        let hollow = |mut curves: Vec<Curve>| {
            fill_if_all_are_hollow(&mut curves);
            let marks = curves.iter().flat_map(|curve| &curve.marks);
            marks.filter(|mark| mark.doubtful).count()
        };
        assert_eq!(hollow(vec![curve([true; 2]), curve([true; 2])]), 0);
        assert_eq!(hollow(vec![curve([true; 2]), curve([true, false])]), 3);
    }
}
