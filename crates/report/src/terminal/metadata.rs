use crate::sentences;
use results::{MetadataResult, OperationResult, Results};
use std::fmt::Write;
use workload::metadata::{MetadataPlan, Operation};

fn several(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn work(plan: &MetadataPlan) -> String {
    let (one, many) = match plan.shared_directory {
        true => ("shared directory", "shared directories"),
        false => ("directory", "directories"),
    };
    let tree = if plan.branch > 0 {
        format!(" in a tree, {} in each", plan.branch)
    } else {
        String::new()
    };
    let shifted = if plan.shift > 0 { ", looked up by another client" } else { "" };
    format!(
        "{} of {} over {}{tree} by {}, {}, engine {}, sync {}{shifted}",
        several(plan.files, "file", "files"),
        several(plan.file_bytes, "byte", "bytes"),
        several(plan.directories, one, many),
        several(plan.threads, "thread", "threads"),
        several(plan.rounds, "round", "rounds"),
        plan.engine.name(),
        plan.sync.name()
    )
}

const COLUMNS: [&str; 8] =
    ["per second", "+- %", "files/s", "mean us", "50 % us", "95 % us", "99 % us", "max us"];

fn header() -> String {
    let [rate, spread, files, times @ ..] = COLUMNS;
    let times: String = times.iter().map(|time| format!(" {time:>10}")).collect();
    format!("{rate:>12} {spread:>8} {files:>12}{times}")
}

fn row(operation: &OperationResult) -> String {
    let l = &operation.latency;
    let spread = operation
        .rate_interval_per_s
        .map_or("-".into(), |e| format!("{:.1}", e.relative_half_width * 100.0));
    let us: String =
        [l.mean_ns, l.p50_ns as f64, l.p95_ns as f64, l.p99_ns as f64, l.max_ns as f64]
            .iter()
            .map(|ns| format!(" {:>10.2}", ns / 1e3))
            .collect();
    format!("{:>12.0} {spread:>8} {:>12.0}{us}", operation.rate_per_s, operation.files_per_s)
}

pub fn metadata(result: &MetadataResult) -> String {
    let mut text = format!("{}\n{:<7} {}\n", work(&result.plan), "", header());
    for operation in &result.operations {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<7} {}", operation.operation.name(), row(operation));
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text + &sentence(result) + "\n"
}

pub fn metadata_by_clients(measured: &[MetadataResult], document: &Results) -> String {
    let Some(first) = measured.first() else { return String::new() };
    let mut text = format!(
        "Each client: {}\n{:<7} {:>7} {} {:>10}\n",
        work(&first.plan),
        "",
        "clients",
        header(),
        "efficiency"
    );
    for operation in Operation::ALL {
        let scaling =
            document.operation_scaling.iter().find(|one| one.operation == operation.name());
        for result in measured {
            let of = result.operations.iter().find(|one| one.operation == operation);
            let Some(of) = of else { continue };
            let steps = scaling.map_or(&[][..], |one| &one.steps);
            let step = steps.iter().find(|step| step.clients == result.clients);
            let efficiency = step
                .and_then(|step| step.efficiency)
                .map_or(String::new(), |share| format!("{:.0} %", share * 100.0));
            let line = format!(
                "{:<7} {:>7} {} {efficiency:>10}",
                operation.name(),
                result.clients,
                row(of)
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    for warning in &document.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    for sentence in sentences::of_operations(document) {
        let _ = writeln!(text, "{sentence}");
    }
    text
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
