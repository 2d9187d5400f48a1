//! Use of a client's network during a run.

use machine::{Machine, Nanos, NetworkLink};

/// The counters at the start.
pub(crate) struct LinkWatch {
    began: Nanos,
    before: Vec<NetworkLink>,
}

impl LinkWatch {
    pub(crate) fn begin<M: Machine>(machine: &M) -> LinkWatch {
        LinkWatch { before: machine.network(), began: machine.now() }
    }

    /// Use of the busiest link in its busier direction since the start, in percent of its speed;
    /// `None` if no link has a known speed. `active_ns`: the time in which the run did I/O.
    pub(crate) fn end<M: Machine>(self, machine: &M, active_ns: Nanos) -> Option<f64> {
        let passed = machine.now().saturating_sub(self.began).min(active_ns).max(1);
        busiest(&self.before, &machine.network(), passed)
    }
}

fn busiest(before: &[NetworkLink], after: &[NetworkLink], passed_ns: Nanos) -> Option<f64> {
    let percent = |link: &NetworkLink| {
        let first = before.iter().find(|one| one.name == link.name)?;
        let received = link.received_bytes.saturating_sub(first.received_bytes);
        let sent = link.sent_bytes.saturating_sub(first.sent_bytes);
        let most = link.speed_bytes_per_s as f64 * passed_ns as f64 / 1e9;
        (most > 0.0).then(|| received.max(sent) as f64 / most * 100.0)
    };
    after.iter().filter_map(percent).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busier_direction_of_the_busiest_link_counts() {
        let link = |name: &str, received_bytes, sent_bytes| NetworkLink {
            name: name.into(),
            received_bytes,
            sent_bytes,
            speed_bytes_per_s: 125_000_000,
        };
        let before = [link("a", 1000, 1000), link("b", 0, 0)];
        let after = [link("a", 1000, 50_001_000), link("b", 1_000_000, 0), link("new", 1 << 40, 0)];
        let found = busiest(&before, &after, 500_000_000).unwrap();
        assert!((found - 80.0).abs() < 1e-9, "{found}");
        assert_eq!(busiest(&[], &[], 1), None);
    }
}
