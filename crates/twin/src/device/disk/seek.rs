use machine::Nanos;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seek {
    /// (cylinders, ns), ascending.
    points: Vec<(u64, Nanos)>,
    write_settle: Nanos,
    head_switch: Nanos,
    write_head_switch: Nanos,
}

impl Seek {
    pub(super) fn new(
        points: Vec<(u64, Nanos)>,
        write_settle: Nanos,
        head_switch: Nanos,
        write_head_switch: Nanos,
    ) -> Self {
        Seek { points, write_settle, head_switch, write_head_switch }
    }

    /// Between two points, time grows with the square root of the distance, as for an arm that
    /// accelerates and brakes.
    fn arm(&self, distance: u64) -> Nanos {
        if distance == 0 {
            return 0;
        }
        let above = self.points.iter().position(|&(cylinders, _)| cylinders >= distance);
        let (index, last) = (above.unwrap_or(self.points.len() - 1), self.points.len() - 1);
        let (cylinders, time) = self.points[index];
        if index == 0 || (above.is_none() && index == last) || cylinders == distance {
            return time;
        }
        let (below_cylinders, below_time) = self.points[index - 1];
        let root = |n: u64| (n as f64).sqrt();
        let part =
            (root(distance) - root(below_cylinders)) / (root(cylinders) - root(below_cylinders));
        below_time + ((time.saturating_sub(below_time)) as f64 * part) as Nanos
    }

    pub(super) fn time(&self, from: (u64, u64), to: (u64, u64), write: bool) -> Nanos {
        let distance = from.0.abs_diff(to.0);
        if distance > 0 {
            self.arm(distance) + if write { self.write_settle } else { 0 }
        } else if from.1 != to.1 {
            if write { self.write_head_switch } else { self.head_switch }
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_points_are_met_and_the_curve_grows() {
        let seek = Seek::new(
            vec![(1, 1_940_000), (10, 2_350_000), (100, 4_160_000), (4986, 16_680_000)],
            500_000,
            100_000,
            1_500_000,
        );
        assert_eq!(seek.time((5, 0), (6, 0), false), 1_940_000);
        assert_eq!(seek.time((0, 0), (4986, 3), true), 17_180_000);
        assert_eq!(seek.time((7, 0), (7, 1), false), 100_000);
        assert_eq!(seek.time((7, 1), (7, 1), true), 0);
        let mut last = 0;
        for distance in 1..5200 {
            let time = seek.time((0, 0), (distance, 0), false);
            assert!(time >= last, "{distance}");
            last = time;
        }
    }
}
