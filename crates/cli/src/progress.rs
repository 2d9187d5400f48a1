//! Progress on standard error: a bar, on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};
use measure::Journal;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    // The ticker needs a thread; if the system refuses one, go on without it.
    if !bar.is_hidden() && std::thread::Builder::new().spawn(|| {}).is_ok() {
        bar.enable_steady_tick(Duration::from_millis(250));
    }
    bar
}

pub(crate) fn bar(steps: u64) -> ProgressBar {
    styled(ProgressBar::new(steps), "{bar:24} {percent:>3} %  {wide_msg}")
}

pub(crate) fn time_bar(budget_ns: u64) -> ProgressBar {
    styled(
        ProgressBar::new(budget_ns / 1_000_000),
        "{bar:24} {percent:>3} %  {prefix} left  {wide_msg}",
    )
}

pub(crate) fn at(bar: &ProgressBar, passed_ns: u64, doing: &str) {
    let passed_ms = passed_ns / 1_000_000;
    bar.set_position(passed_ms);
    let left_s = bar.length().unwrap_or(0).saturating_sub(passed_ms).div_ceil(1000);
    bar.set_prefix(format!("{}:{:02}", left_s / 60, left_s % 60));
    bar.set_message(doing.to_string());
}

/// A clock with a bar over a time budget.
pub(crate) struct Watch {
    began: Instant,
    /// Counts the time of the runs before `--resume`.
    journal: Option<Arc<Journal>>,
    bar: ProgressBar,
}

impl Watch {
    pub(crate) fn new(budget_ns: u64) -> Watch {
        Watch { began: Instant::now(), journal: None, bar: time_bar(budget_ns) }
    }

    /// The same on the clock of a journal.
    pub(crate) fn over(self, journal: Arc<Journal>) -> Watch {
        Watch { journal: Some(journal), ..self }
    }

    pub(crate) fn now(&self) -> u64 {
        match &self.journal {
            Some(journal) => journal.now(),
            None => self.began.elapsed().as_nanos() as u64,
        }
    }

    pub(crate) fn at(&self, passed_ns: u64, doing: &str) {
        at(&self.bar, passed_ns, doing);
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
