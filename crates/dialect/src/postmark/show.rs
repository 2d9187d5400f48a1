use super::{Config, ReportStyle};
use machine::files::{FileEngine, FileSync};
use std::fmt::Write;

/// The original's text, plus our own settings that are not defaults.
pub fn show(config: &Config) -> String {
    let plan = &config.plan;
    let mut text = format!(
        "Current configuration is:\nThe base number of files is {}\nTransactions: {}\n",
        plan.number, plan.transactions
    );
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = text.write_fmt(arguments);
        text.push('\n');
    };
    if plan.low_bytes == plan.high_bytes {
        line(format_args!("Files are {} in size", size(plan.low_bytes)));
    } else {
        line(format_args!(
            "Files range between {} and {} in size",
            size(plan.low_bytes),
            size(plan.high_bytes)
        ));
    }
    if plan.locations.is_empty() {
        let here =
            std::env::current_dir().map_or_else(|_| ".".into(), |path| path.display().to_string());
        line(format_args!("Working directory: {here}"));
    } else {
        line(format_args!(
            "Working director{}: ",
            if plan.locations.len() == 1 { "y" } else { "ies" }
        ));
        for location in &plan.locations {
            line(format_args!("\t{} (weight={})", location.path.display(), location.weight));
        }
    }
    match plan.subdirectories {
        0 => {}
        1 => line(format_args!("1 subdirectory will be used")),
        n => line(format_args!("{n} subdirectories will be used")),
    }
    line(format_args!(
        "Block sizes are: read={}, write={}",
        size(plan.read_block_bytes),
        size(plan.write_block_bytes)
    ));
    let bias = |bias: Option<u8>| bias.map_or(-1, i32::from);
    line(format_args!(
        "Biases are: read/append={}, create/delete={}",
        bias(plan.bias_read),
        bias(plan.bias_create)
    ));
    line(format_args!(
        "{} Unix buffered file I/O",
        if config.engine == FileEngine::Stdio { "Using" } else { "Not using" }
    ));
    line(format_args!("Random number generator seed is {}", plan.seed));
    line(format_args!(
        "Report format is {}.",
        if config.report == ReportStyle::Verbose { "verbose" } else { "terse" }
    ));
    if config.engine == FileEngine::IoUring {
        line(format_args!("Engine is {}", config.engine.name()));
    }
    if config.threads > 1 {
        line(format_args!("Threads: {}", config.threads));
    }
    if config.sync != FileSync::None {
        line(format_args!("Sync: {}", config.sync.name()));
    }
    text
}

fn size(bytes: u32) -> String {
    let value = f64::from(bytes);
    if bytes >> 20 > 0 {
        format!("{:.2} megabytes", value / 1_048_576.0)
    } else if bytes >> 10 > 0 {
        format!("{:.2} kilobytes", value / 1024.0)
    } else {
        format!("{bytes} bytes")
    }
}
