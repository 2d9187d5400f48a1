use super::counters::tick_ns;
use super::facts::Roots;
use machine::ProcessorTimes;

/// Since boot, in CPU order; empty if unreadable.
pub(crate) fn processors(roots: &Roots) -> Vec<ProcessorTimes> {
    std::fs::read_to_string(roots.proc.join("stat"))
        .map_or(Vec::new(), |text| parse(&text, tick_ns()))
}

fn parse(text: &str, tick_ns: u64) -> Vec<ProcessorTimes> {
    let line = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
        // The line of the total has no number.
        let processor = fields.next().filter(|_| !line.starts_with("cpu "))?.parse().ok()?;
        // user nice system idle iowait irq softirq; stolen time is not counted.
        let times: Vec<u64> = fields.map_while(|field| field.parse::<u64>().ok()).collect();
        let at = |index: usize| times.get(index).copied().unwrap_or(0) * tick_ns;
        Some(ProcessorTimes {
            processor,
            user_ns: at(0) + at(1),
            system_ns: at(2) + at(5) + at(6),
            idle_ns: at(3) + at(4),
        })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_has_its_line() {
        let text =
            "cpu  10 1 20 300 4 5 6 7 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu12 10 0 0 90\nintr 5 6\n";
        let seen = parse(text, 10);
        assert_eq!(
            seen[0],
            ProcessorTimes { processor: 0, user_ns: 30, system_ns: 160, idle_ns: 90 }
        );
        assert_eq!(
            seen[1],
            ProcessorTimes { processor: 12, user_ns: 100, system_ns: 0, idle_ns: 900 }
        );
        assert_eq!(seen.len(), 2);
        assert!(!processors(&Roots::default()).is_empty(), "this machine has a processor");
    }
}
