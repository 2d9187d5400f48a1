#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Spread {
    Linear(f64, f64),
    Log(f64, f64),
    /// Each value has a slot, in this order.
    Each(Vec<f64>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    pub spread: Spread,
    pub begin: f64,
    pub end: f64,
}

impl Scale {
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        let share = match &self.spread {
            Spread::Linear(low, high) => (value - low) / (high - low),
            Spread::Log(low, high) if value > 0.0 => {
                (value.ln() - low.ln()) / (high.ln() - low.ln())
            }
            Spread::Log(..) => return None,
            Spread::Each(values) => {
                (values.iter().position(|known| *known == value)? as f64 + 0.5)
                    / values.len() as f64
            }
        };
        // A value this far outside the figure is not drawn.
        (share.is_finite() && share.abs() < 100.0)
            .then_some(self.begin + share * (self.end - self.begin))
    }

    /// Values without a logarithm go to the low end.
    pub(crate) fn at_or_end(&self, value: f64) -> f64 {
        let (low, high) =
            if self.begin < self.end { (self.begin, self.end) } else { (self.end, self.begin) };
        match self.at(value) {
            Some(place) => place.clamp(low, high),
            None if value > 0.0 && value.is_finite() => self.end,
            None => self.begin,
        }
    }

    pub(crate) fn slot(&self) -> Option<f64> {
        match &self.spread {
            Spread::Each(values) => {
                Some((self.end - self.begin).abs() / values.len().max(1) as f64)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let log = Scale { spread: Spread::Log(1024.0, 1_048_576.0), begin: 100.0, end: 200.0 };
        assert_eq!(log.at(32768.0), Some(150.0));
        assert_eq!((log.at(0.0), log.at(-1.0)), (None, None));
        let down = Scale { spread: Spread::Linear(0.0, 10.0), begin: 300.0, end: 0.0 };
        assert_eq!(down.at(2.5), Some(225.0));
        assert_eq!((down.at_or_end(20.0), down.at_or_end(-1.0)), (0.0, 300.0));
        let each = Scale { spread: Spread::Each(vec![0.0, 512.0]), begin: 0.0, end: 100.0 };
        assert_eq!((each.at(0.0), each.at(512.0), each.at(1.0)), (Some(25.0), Some(75.0), None));
    }
}
