use super::PostmarkResult;
use std::fmt::Write;

/// At least one, as in the original.
fn seconds(ns: u64) -> u64 {
    ((ns + 500_000_000) / 1_000_000_000).max(1)
}

/// Megabytes only above one, as in the original.
fn scaled(bytes: f32) -> String {
    if bytes / 1_048_576.0 > 1.0 {
        format!("{:.2} megabytes", bytes / 1_048_576.0)
    } else if bytes / 1024.0 != 0.0 {
        format!("{:.2} kilobytes", bytes / 1024.0)
    } else {
        format!("{bytes:.6} bytes")
    }
}

/// Byte for byte like the original.
pub fn classic(result: &PostmarkResult) -> String {
    let counts = &result.counts;
    let total = seconds(result.phases.total_ns);
    let transactions = seconds(result.phases.transactions_ns);
    let mut text = String::new();
    let mut line = |indent: usize, what: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{what}", "\t".repeat(indent));
    };
    let over = |count: u64, seconds: u64| format!("({} per second)", count / seconds);
    line(0, "Time:".into());
    line(1, format!("{total} seconds total"));
    line(
        1,
        format!(
            "{transactions} seconds of transactions {}",
            over(u64::from(result.transactions()), transactions)
        ),
    );
    line(0, String::new());
    line(0, "Files:".into());
    line(1, format!("{} created {}", counts.created(), over(counts.created(), total)));
    let alone = |count, ns| format!("{count} files {}", over(count, seconds(ns)));
    line(2, format!("Creation alone: {}", alone(counts.created_alone, result.phases.create_ns)));
    let mixed =
        |count| format!("Mixed with transactions: {count} files {}", over(count, transactions));
    line(2, mixed(counts.created_mixed));
    line(1, format!("{} read {}", counts.read, over(counts.read, transactions)));
    line(1, format!("{} appended {}", counts.appended, over(counts.appended, transactions)));
    line(1, format!("{} deleted {}", counts.deleted(), over(counts.deleted(), total)));
    line(2, format!("Deletion alone: {}", alone(counts.deleted_alone, result.phases.delete_ns)));
    line(2, mixed(counts.deleted_mixed));
    line(0, String::new());
    line(0, "Data:".into());
    let data = |bytes: f32, what| {
        format!("{} {what} ({} per second)", scaled(bytes), scaled(bytes / total as f32))
    };
    line(1, data(result.classic_read_bytes, "read"));
    line(1, data(result.classic_written_bytes, "written"));
    text
}

pub fn terse(result: &PostmarkResult) -> String {
    let counts = &result.counts;
    let total = seconds(result.phases.total_ns);
    let transactions = seconds(result.phases.transactions_ns);
    let over = |count: u64, seconds: u64| count as f64 / seconds as f64;
    let rates = [
        over(u64::from(result.transactions()), transactions),
        over(counts.created(), total),
        over(counts.created_alone, seconds(result.phases.create_ns)),
        over(counts.created_mixed, transactions),
        over(counts.read, transactions),
        over(counts.appended, transactions),
        over(counts.deleted(), total),
        over(counts.deleted_alone, seconds(result.phases.delete_ns)),
        over(counts.deleted_mixed, transactions),
        f64::from(result.classic_read_bytes / total as f32),
        f64::from(result.classic_written_bytes / total as f32),
    ];
    let mut text = format!("{total} {transactions}");
    for rate in rates {
        // Writing to a string cannot fail.
        let _ = write!(text, " {rate:.2}");
    }
    text.push('\n');
    text
}

/// Lacks the keywords that parsers of the original's report look for (`seconds total`, `created`,
/// `read`, `transactions`, ...).
pub fn extra(result: &PostmarkResult) -> String {
    let mut text = String::from("\nHalfpower:\n");
    let mut line = |what: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\t{what}");
    };
    let s = |ns: u64| format!("{:.6} s", ns as f64 / 1e9);
    let phases = &result.phases;
    line(format!(
        "Time {} = creation {} + mix {} + deletion {}",
        s(phases.total_ns),
        s(phases.create_ns),
        s(phases.transactions_ns),
        s(phases.delete_ns)
    ));
    let interval = result.transactions_interval.map_or(String::new(), |i| {
        format!(" (95 % of this run: {:.1} to {:.1})", i.low_per_s, i.high_per_s)
    });
    line(format!("Mix rate {:.1}/s{interval}", result.rates.transactions_per_s));
    let cpu = machine::units::show_time(result.cpu_per_transaction_ns);
    line(format!(
        "Processor {cpu} for each step of the mix, all phases shared out ({} user, {} system)",
        s(result.cpu_user_ns),
        s(result.cpu_system_ns)
    ));
    line(format!(
        "Engine {}, sync {}, threads {}",
        result.engine.name(),
        result.sync.name(),
        result.threads
    ));
    line(format!(
        "{:<8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "Latency", "Count", "Mean us", "50 % us", "95 % us", "99 % us", "99.9 % us", "Max us"
    ));
    for name in ["create", "read", "append", "delete"] {
        let Some(l) = result.latency.get(name) else { continue };
        let us = |ns: f64| format!("{:>10.2}", ns / 1e3);
        let row: String = [l.p50_ns, l.p95_ns, l.p99_ns, l.p999_ns, l.max_ns]
            .iter()
            .map(|&ns| format!(" {}", us(ns as f64)))
            .collect();
        line(format!("{:<8} {:>10} {}{row}", capitalised(name), l.count, us(l.mean_ns)));
    }
    for warning in &result.warnings {
        line(format!("Warning: {warning}"));
    }
    text
}

fn capitalised(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..]
}
