//! The progress bar: on standard error, only on a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A bar of `steps` steps.
pub(crate) fn bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {eta} left  {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(steps).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
