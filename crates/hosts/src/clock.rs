//! The offset between two clocks, from round trips.

use ::machine::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// On our clock.
    pub sent: Nanos,
    /// On the other clock.
    pub there: Nanos,
    /// On our clock.
    pub returned: Nanos,
}

/// Another clock's lead over ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offset {
    pub ns: i64,
    /// Half the round trip.
    pub error_ns: Nanos,
}

impl Offset {
    /// By the shortest round trip, whose middle is off by at most half of it (Cristian, Distributed
    /// Computing 3, 1989).
    pub fn of(trips: &[RoundTrip]) -> Option<Offset> {
        let shortest = trips.iter().min_by_key(|trip| trip.returned.saturating_sub(trip.sent))?;
        let length = shortest.returned.saturating_sub(shortest.sent);
        let middle = i128::from(shortest.sent) + i128::from(length / 2);
        let ns = i64::try_from(i128::from(shortest.there) - middle).unwrap_or_default();
        Some(Offset { ns, error_ns: length.div_ceil(2) })
    }

    pub fn there(self, ours: Nanos) -> Nanos {
        ours.saturating_add_signed(self.ns)
    }

    /// Nanoseconds from our time to the other clock's; negative if that is earlier.
    pub fn between(self, ours: Nanos, there: Nanos) -> i64 {
        let passed = i128::from(there) - i128::from(ours) - i128::from(self.ns);
        i64::try_from(passed).unwrap_or(if passed < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error(
            ahead in -(1i64 << 50)..1 << 50,
            trips in prop::collection::vec((1u64 << 51..1 << 52, 0u64..5_000_000, 0u64..5_000_000), 1..10),
        ) {
            let trips: Vec<RoundTrip> = trips.into_iter().map(|(sent, go, back)| RoundTrip {
                sent,
                there: (sent + go).saturating_add_signed(ahead),
                returned: sent + go + back,
            }).collect();
            let offset = Offset::of(&trips).unwrap();
            prop_assert!(offset.ns.abs_diff(ahead) <= offset.error_ns, "{offset:?} for {ahead}");
            let shortest = trips.iter().map(|trip| trip.returned - trip.sent).min().unwrap();
            prop_assert_eq!(offset.error_ns, shortest.div_ceil(2));
            let now = trips[0].sent;
            prop_assert_eq!(offset.between(now, offset.there(now)), 0);
        }
    }
}
