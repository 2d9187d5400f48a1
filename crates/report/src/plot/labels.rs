#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Rect {
    pub(crate) fn overlaps(&self, other: &Rect) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }

    pub(crate) fn holds(&self, (x, y): (f64, f64)) -> bool {
        x >= self.x && x <= self.x + self.width && y >= self.y && y <= self.y + self.height
    }

    fn inside(&self, outer: &Rect) -> bool {
        self.x >= outer.x
            && self.y >= outer.y
            && self.x + self.width <= outer.x + outer.width
            && self.y + self.height <= outer.y + outer.height
    }
}

/// The closest to the wanted positions (least squares, order kept), at least `gap` apart, or less
/// if not all fit: the pool-adjacent-violators algorithm of isotonic regression.
pub(crate) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let count = wanted.len();
    let gap = if count > 1 { gap.min((high - low) / (count - 1) as f64) } else { gap };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // Each group: position of its first member, its size, and the sum of the first positions that
    // its members want.
    let mut groups: Vec<(f64, usize, f64)> = Vec::new();
    for &index in &order {
        let want = wanted[index].clamp(low, high);
        let mut group = (want, 1usize, want);
        let settle = |group: &mut (f64, usize, f64)| {
            group.0 =
                (group.2 / group.1 as f64).clamp(low, (high - gap * (group.1 - 1) as f64).max(low));
        };
        settle(&mut group);
        while let Some(&(first, members, sum)) = groups.last() {
            if first + gap * members as f64 <= group.0 + 1e-9 {
                break;
            }
            groups.pop();
            group = (0.0, members + group.1, sum + group.2 - gap * (members * group.1) as f64);
            settle(&mut group);
        }
        groups.push(group);
    }
    let mut placed = vec![0.0; count];
    let mut next = order.into_iter();
    for (first, members, _) in groups {
        for place in 0..members {
            if let Some(index) = next.next() {
                placed[index] = first + gap * place as f64;
            }
        }
    }
    placed
}

pub(crate) struct Placer {
    bounds: Rect,
    taken: Vec<Rect>,
    ink: Vec<Ink>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ink {
    pub x: f64,
    pub y: f64,
    pub weight: f64,
}

impl Placer {
    /// Labels stay within `bounds`, never touch `taken`, and avoid `ink`.
    pub(crate) fn new(bounds: Rect, taken: Vec<Rect>, ink: Vec<Ink>) -> Placer {
        Placer { bounds, taken, ink }
    }

    fn covered(&self, rect: &Rect) -> f64 {
        self.ink.iter().filter(|ink| rect.holds((ink.x, ink.y))).map(|ink| ink.weight).sum()
    }

    pub(crate) fn place(&mut self, anchor: (f64, f64), width: f64, height: f64) -> Option<Rect> {
        let mut best: Option<(f64, Rect)> = None;
        for (ring, distance) in
            [9.0, 15.0, 24.0, 36.0, 50.0, 66.0, 84.0, 108.0].into_iter().enumerate()
        {
            for (turn, (right, down)) in DIRECTIONS.into_iter().enumerate() {
                let rect = beside(anchor, (right, down), distance, width, height);
                if !rect.inside(&self.bounds)
                    || self.taken.iter().any(|other| other.overlaps(&rect))
                {
                    continue;
                }
                let cost = distance + self.covered(&rect) * 9.0 + turn as f64 * 0.2 + ring as f64;
                if best.is_none_or(|(min, _)| cost < min) {
                    best = Some((cost, rect));
                }
            }
        }
        let (_, rect) = best?;
        self.taken.push(rect);
        Some(rect)
    }

    pub(crate) fn place_along(&mut self, y: f64, width: f64, height: f64) -> Option<Rect> {
        let mut best: Option<(f64, Rect)> = None;
        let steps = ((self.bounds.width - width) / 8.0).max(0.0) as usize;
        for step in 0..=steps {
            for (turn, top) in [y - height - 1.0, y + 2.0].into_iter().enumerate() {
                let rect =
                    Rect { x: self.bounds.x + 4.0 + step as f64 * 8.0, y: top, width, height };
                if !rect.inside(&self.bounds)
                    || self.taken.iter().any(|other| other.overlaps(&rect))
                {
                    continue;
                }
                let cost = step as f64 + self.covered(&rect) * 30.0 + turn as f64 * 6.0;
                if best.is_none_or(|(min, _)| cost < min) {
                    best = Some((cost, rect));
                }
            }
        }
        let (_, rect) = best?;
        self.taken.push(rect);
        Some(rect)
    }
}

/// In order of preference: a rising curve leaves room above to the left and below to the right.
const DIRECTIONS: [(f64, f64); 8] = [
    (-1.0, -1.0),
    (1.0, 1.0),
    (1.0, 0.3),
    (-1.0, -0.3),
    (0.0, -1.0),
    (0.0, 1.0),
    (1.0, -1.0),
    (-1.0, 1.0),
];

fn beside(
    (x, y): (f64, f64),
    (right, down): (f64, f64),
    distance: f64,
    width: f64,
    height: f64,
) -> Rect {
    let along = |direction: f64, size: f64| match direction {
        d if d < -0.5 => -distance * 0.8 - size,
        d if d > 0.5 => distance * 0.8,
        d => d * distance - size / 2.0,
    };
    Rect { x: x + along(right, width), y: y + along(down, height), width, height }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn distant_labels_keep_their_position() {
        assert_eq!(spread(&[10.0, 90.0, 50.0], 15.0, 0.0, 100.0), [10.0, 90.0, 50.0]);
    }

    #[test]
    fn the_same_place_is_shared_around_it() {
        assert_eq!(spread(&[50.0, 50.0, 50.0], 10.0, 0.0, 100.0), [40.0, 50.0, 60.0]);
        assert_eq!(spread(&[0.0, 0.0], 10.0, 0.0, 100.0), [0.0, 10.0]);
        assert_eq!(spread(&[99.0, 100.0], 10.0, 0.0, 100.0), [90.0, 100.0]);
    }

    #[test]
    fn labels_leave_the_curve_free() {
        let bounds = Rect { x: 0.0, y: 0.0, width: 200.0, height: 200.0 };
        let ink: Vec<(f64, f64)> = (0..200).map(|x| (f64::from(x), 200.0 - f64::from(x))).collect();
        let weighted = ink.iter().map(|(x, y)| Ink { x: *x, y: *y, weight: 1.0 }).collect();
        let mut placer = Placer::new(bounds, Vec::new(), weighted);
        let rect = placer.place((100.0, 100.0), 40.0, 15.0).expect("there is room");
        assert!(!ink.iter().any(|point| rect.holds(*point)), "{rect:?} is on the curve");
    }

    proptest! {
        #[test]
        fn spread_keeps_distance_order_and_bounds(wanted in prop::collection::vec(-50.0f64..450.0, 0..20), gap in 5.0f64..20.0) {
            let (low, high) = (0.0, 400.0);
            let placed = spread(&wanted, gap, low, high);
            let mut order: Vec<usize> = (0..wanted.len()).collect();
            order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
            prop_assert!(placed.iter().all(|place| (low - 1e-6..=high + 1e-6).contains(place)));
            for pair in order.windows(2) {
                prop_assert!(placed[pair[1]] - placed[pair[0]] >= gap - 1e-6);
            }
        }

        #[test]
        fn placed_labels_never_overlap(anchors in prop::collection::vec((0.0f64..400.0, 0.0f64..300.0), 1..14)) {
            let bounds = Rect { x: 0.0, y: 0.0, width: 400.0, height: 300.0 };
            let mut placer = Placer::new(bounds, Vec::new(), Vec::new());
            let placed: Vec<Rect> = anchors.iter().filter_map(|anchor| placer.place(*anchor, 50.0, 15.0)).collect();
            for (place, rect) in placed.iter().enumerate() {
                prop_assert!(rect.inside(&bounds));
                prop_assert!(placed[..place].iter().all(|other| !other.overlaps(rect)));
            }
        }
    }
}
