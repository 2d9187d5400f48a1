//! A client's use of its network.

use machine::{Machine, Nanos, NetworkLink};

pub struct LinkWatch {
    began: Nanos,
    before: Vec<NetworkLink>,
}

impl LinkWatch {
    pub fn begin<M: Machine>(machine: &M) -> LinkWatch {
        LinkWatch { before: machine.network(), began: machine.now() }
    }

    /// Returns each link's use in its busier direction, in percent of its speed; `None` if the
    /// speed is unknown. `active_ns`: the time in which the run did I/O.
    pub fn each<M: Machine>(self, machine: &M, active_ns: Nanos) -> Vec<Option<f64>> {
        let passed = machine.now().saturating_sub(self.began).min(active_ns).max(1);
        percents(&self.before, &machine.network(), passed)
    }

    /// Returns `None` if no link has a known speed.
    pub fn busiest<M: Machine>(self, machine: &M, active_ns: Nanos) -> Option<f64> {
        self.each(machine, active_ns).into_iter().flatten().reduce(f64::max)
    }
}

fn percents(before: &[NetworkLink], after: &[NetworkLink], passed_ns: Nanos) -> Vec<Option<f64>> {
    let percent = |link: &NetworkLink| {
        let first = before.iter().find(|one| one.name == link.name)?;
        let received = link.received_bytes.saturating_sub(first.received_bytes);
        let sent = link.sent_bytes.saturating_sub(first.sent_bytes);
        let most = link.speed_bytes_per_s as f64 * passed_ns as f64 / 1e9;
        (most > 0.0).then(|| received.max(sent) as f64 / most * 100.0)
    };
    after.iter().map(percent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busier_direction_of_each_link_counts() {
        let link = |name: &str, received_bytes, sent_bytes| NetworkLink {
            name: name.into(),
            received_bytes,
            sent_bytes,
            speed_bytes_per_s: 125_000_000,
        };
        let before = [link("a", 1000, 1000), link("b", 0, 0)];
        let after = [link("a", 1000, 50_001_000), link("b", 1_000_000, 0), link("new", 1 << 40, 0)];
        let found = percents(&before, &after, 500_000_000);
        assert!((found[0].unwrap() - 80.0).abs() < 1e-9, "{found:?}");
        assert!((found[1].unwrap() - 1.6).abs() < 1e-9, "{found:?}");
        assert_eq!(found[2], None, "it was not there at the start");
        assert!(percents(&[], &[], 1).is_empty());
    }
}
