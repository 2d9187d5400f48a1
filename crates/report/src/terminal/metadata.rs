use results::MetadataResult;
use std::fmt::Write;
use workload::metadata::Operation;

pub fn metadata(result: &MetadataResult) -> String {
    let plan = &result.plan;
    let several = |count: u32, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    let mut text = format!(
        "{} of {} over {} by {}, {}, engine {}, sync {}\n",
        several(plan.files, "file", "files"),
        several(plan.file_bytes, "byte", "bytes"),
        several(plan.directories, "directory", "directories"),
        several(plan.threads, "thread", "threads"),
        several(plan.rounds, "round", "rounds"),
        plan.engine.name(),
        plan.sync.name()
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:<7} {:>12} {:>8} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "per second", "+- %", "files/s", "mean us", "50 % us", "95 % us", "99 % us", "max us"
    );
    for operation in &result.operations {
        let l = &operation.latency;
        let spread = operation
            .rate_interval_per_s
            .map_or("-".into(), |e| format!("{:.1}", e.relative_half_width * 100.0));
        let us: String =
            [l.mean_ns, l.p50_ns as f64, l.p95_ns as f64, l.p99_ns as f64, l.max_ns as f64]
                .iter()
                .map(|ns| format!(" {:>10.2}", ns / 1e3))
                .collect();
        let _ = writeln!(
            text,
            "{:<7} {:>12.0} {spread:>8} {:>12.0}{us}",
            operation.operation.name(),
            operation.rate_per_s,
            operation.files_per_s
        );
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text + &sentence(result) + "\n"
}

fn sentence(result: &MetadataResult) -> String {
    let rate = |wanted: Operation| {
        result.operations.iter().find(|o| o.operation == wanted).map(|o| o.rate_per_s)
    };
    let slowest = result
        .operations
        .iter()
        .filter(|o| o.operation != Operation::List)
        .min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let slowest = slowest.map_or(String::new(), |o| {
        format!("; the slowest operation is {} at {:.0} a second", o.operation.name(), o.rate_per_s)
    });
    let threads = if result.plan.threads == 1 {
        "one thread makes".into()
    } else {
        format!("{} threads make", result.plan.threads)
    };
    let made = rate(Operation::Create).unwrap_or(0.0);
    // Without it the user interrupted the run.
    let deleted = rate(Operation::Delete).map_or(String::new(), |rate| {
        let s = if result.plan.threads == 1 { "s" } else { "" };
        format!(" and delete{s} {rate:.0}")
    });
    format!("Here {threads} {made:.0} files a second{deleted}{slowest}.")
}
