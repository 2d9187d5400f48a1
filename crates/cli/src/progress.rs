//! On standard error: two lines on a terminal, else a plain line now and then. One thread draws it.

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use machine::live::{self, Reading};
use machine::text::printable;
use machine::units::{Units, show_in, show_rate, show_size, show_time};
use measure::Journal;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TICK: Duration = live::SPARE_LOOK;

const FIRST_BAR: Duration = Duration::from_millis(750);

const FIRST_LINE: Duration = Duration::from_millis(2500);
const LINES: Duration = Duration::from_secs(10);

/// Ticks over which a rate is averaged.
const WINDOW: usize = 4;

/// `--progress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Mode {
    /// A bar on a terminal, else lines
    #[default]
    Auto,
    /// A bar, on a terminal only
    Bar,
    /// A plain line every 10 s
    Lines,
    /// Nothing
    None,
}

impl Mode {
    fn here(self) -> Mode {
        let dumb = std::env::var_os("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb");
        match (self, std::io::stderr().is_terminal() && !dumb) {
            (Mode::Auto | Mode::Bar, true) => Mode::Bar,
            (Mode::Auto, false) => Mode::Lines,
            (Mode::Bar, false) => Mode::None,
            (other, _) => other,
        }
    }
}

/// Another tool's words may hold the option, too.
pub(crate) fn mode(parsed: Mode, words: impl Iterator<Item = OsString>) -> Mode {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let own = words.iter().enumerate().find_map(|(at, word)| match word.as_str() {
        "--progress" => words.get(at + 1).map(String::as_str),
        word => word.strip_prefix("--progress="),
    });
    own.and_then(|own| Mode::from_str(own, false).ok()).unwrap_or(parsed)
}

/// `at` is the end of the last step, from the start.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Done {
    Steps { done: u64, of: u64, at: Duration },
    Time { passed_ns: u64, of_ns: u64 },
    Rest { from: Instant, of: Option<Duration> },
}

#[derive(Debug, Clone)]
struct Task {
    began: Instant,
    doing: String,
    done: Done,
}

impl Task {
    fn new(done: Done) -> Task {
        Task { began: Instant::now(), doing: String::new(), done }
    }

    fn share(&self) -> f64 {
        match self.done {
            Done::Steps { done, of, .. } => done as f64 / of.max(1) as f64,
            Done::Time { passed_ns, of_ns } => passed_ns as f64 / of_ns.max(1) as f64,
            Done::Rest { from, of } => of.map_or(0.0, |of| {
                let before = from - self.began;
                self.began.elapsed().as_secs_f64() / (before + of).as_secs_f64().max(1e-9)
            }),
        }
        .clamp(0.0, 1.0)
    }

    fn left(&self) -> Option<Duration> {
        match self.done {
            Done::Time { passed_ns, of_ns } => {
                Some(Duration::from_nanos(of_ns.saturating_sub(passed_ns)))
            }
            // The step at work is as long as the mean of those before it.
            Done::Steps { done, of, at } if done > 0 && done < of => {
                let rest = at.mul_f64((of - done) as f64 / done as f64);
                let since = self.began.elapsed().saturating_sub(at);
                (since < rest).then(|| rest - since)
            }
            Done::Steps { .. } => None,
            Done::Rest { from, of } => of.map(|of| of.saturating_sub(from.elapsed())),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Picture {
    share: f64,
    left: Option<Duration>,
    doing: String,
    numbers: String,
}

#[derive(Default)]
struct Drawn {
    task: Option<Task>,
    bar: Option<ProgressBar>,
    within_line: bool,
    in_line: bool,
    stopped: bool,
    runs: bool,
    units: Units,
}

#[derive(Default)]
pub(crate) struct Progress {
    drawn: Mutex<Drawn>,
    wake: Condvar,
}

impl Progress {
    fn drawn(&self) -> MutexGuard<'_, Drawn> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self, stop: bool) {
        let mut drawn = self.drawn();
        drawn.task = None;
        drawn.stopped |= stop;
        drawn.leave_line();
        drawn.remove_bar();
    }

    pub(crate) fn show_in(&self, units: Units) {
        self.drawn().units = units;
    }

    pub(crate) fn suspended<T>(&self, print: impl FnOnce() -> T) -> T {
        self.drawn().suspend(print)
    }

    pub(crate) fn reported<T>(&self, within_line: bool, print: impl FnOnce() -> T) -> T {
        let mut drawn = self.drawn();
        if within_line {
            drawn.remove_bar();
        }
        drawn.within_line = within_line;
        drawn.suspend(print)
    }
}

impl Drawn {
    fn remove_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn leave_line(&mut self) {
        if std::mem::take(&mut self.in_line) {
            let _ = std::io::stderr().write_all(ERASE);
        }
    }

    fn suspend<T>(&mut self, print: impl FnOnce() -> T) -> T {
        self.leave_line();
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

pub(crate) struct Display {
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
}

impl Display {
    pub(crate) fn start(progress: &Arc<Progress>, mode: Mode) -> Display {
        let progress = Arc::clone(progress);
        let mode = mode.here();
        if mode == Mode::None || std::mem::replace(&mut progress.drawn().runs, true) {
            return Display { progress, thread: None };
        }
        // Without a thread the command runs as well.
        let thread = std::thread::Builder::new().name("progress".into()).stack_size(256 << 10);
        let spare = live::SPARE.begin();
        let of = Arc::clone(&progress);
        let paint = move || {
            let _spare = spare;
            Painter::new(mode).paint(&of);
        };
        Display { progress, thread: thread.spawn(paint).ok() }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.progress.clear(true);
            self.progress.wake.notify_all();
            let _ = thread.join();
        }
    }
}

const ERASE: &[u8] = b"\x1b[K";

/// The width of a picture that follows a report's text on its line.
const IN_LINE: usize = 44;

fn draw_in_line(drawn: &mut Drawn, picture: &Picture) {
    let percent = format!("{:.0} %", picture.share * 100.0);
    let numbers = picture.numbers.replace("operations/s", "/s");
    let parts: Vec<String> =
        [percent, picture.left(), numbers].into_iter().filter(|one| !one.is_empty()).collect();
    let text: String = printable(&parts.join("  ")).chars().take(IN_LINE).collect();
    // Saves and restores the cursor.
    let _ = write!(std::io::stderr(), "\x1b7  {text}\x1b[K\x1b8");
    drawn.in_line = true;
}

struct Painter {
    mode: Mode,
    began: Instant,
    next_line: Duration,
    readings: Vec<(Instant, Reading, u64)>,
    runs: (u64, Instant),
}

impl Painter {
    fn new(mode: Mode) -> Painter {
        let began = Instant::now();
        let runs = (0, began);
        Painter { mode, began, next_line: FIRST_LINE, readings: Vec::new(), runs }
    }

    fn paint(&mut self, progress: &Progress) {
        let mut drawn = progress.drawn();
        while !drawn.stopped {
            drawn = progress
                .wake
                .wait_timeout(drawn, TICK)
                .map_or_else(|both| both.into_inner().0, |both| both.0);
            if drawn.stopped {
                break;
            }
            if live::SPARE.must_end() {
                drawn.remove_bar();
                break;
            }
            let _units = show_in(drawn.units);
            let (of, numbers) = self.numbers();
            let picture = picture(drawn.task.as_ref(), live::WORK.read(), numbers);
            let shown = picture.map(|picture| Picture {
                doing: of.unwrap_or_else(|| picture.doing.clone()),
                ..picture
            });
            // Without a name, another tool's report may be on the terminal: only a plain line does
            // no harm.
            let is_bar = self.mode == Mode::Bar;
            let Some(picture) = shown.filter(|one| !(is_bar && one.doing.is_empty())) else {
                drawn.remove_bar();
                continue;
            };
            match self.mode {
                Mode::Bar if self.began.elapsed() < FIRST_BAR => {}
                Mode::Bar if drawn.within_line => draw_in_line(&mut drawn, &picture),
                Mode::Bar => draw(&mut drawn, &picture),
                Mode::Lines if self.began.elapsed() >= self.next_line => {
                    self.next_line = self.began.elapsed() + LINES;
                    // Standard error may be closed.
                    let line = picture.line(self.began.elapsed());
                    let _ = writeln!(std::io::stderr(), "halfpower: {}", printable(&line));
                }
                _ => {}
            }
        }
    }

    fn numbers(&mut self) -> (Option<String>, String) {
        let now = Instant::now();
        let filled = live::FILLING.read().map_or(0, |(done, _)| done);
        self.readings.push((now, live::REQUESTS.read(), filled));
        if self.readings.len() > WINDOW + 1 {
            self.readings.remove(0);
        }
        let (before, first, filled_before) = self.readings[0];
        let (_, last, _) = self.readings[self.readings.len() - 1];
        let seconds = (now - before).as_secs_f64().max(1e-3);
        if live::FILLING.read().is_some() {
            let rate = filled.saturating_sub(filled_before) as f64 / seconds;
            return (None, if rate > 0.0 { show_rate(rate) } else { String::new() });
        }
        let run = live::last_run();
        if let Some(run) = run.as_ref().filter(|run| run.runs != self.runs.0) {
            self.runs = (run.runs, now);
        }
        let requests = last.requests.saturating_sub(first.requests);
        // Short runs show their results, long ones their rate now.
        let long = now - self.runs.1 > TICK * (WINDOW as u32 + 1);
        let mut of = None;
        let mut text = match &run {
            Some(run) if !long || requests == 0 => {
                of = Some(run.what.clone());
                rates(run.bytes_per_s, run.iops, run.mean_latency_ns)
            }
            _ if requests > 0 => {
                of = live::running();
                rates(
                    last.bytes.saturating_sub(first.bytes) as f64 / seconds,
                    requests as f64 / seconds,
                    last.latency_ns.saturating_sub(first.latency_ns) as f64 / requests as f64,
                )
            }
            _ if live::FILLING.last_rate() > 0.0 => {
                format!("the test file was filled at {}", show_rate(live::FILLING.last_rate()))
            }
            _ => String::new(),
        };
        let [read, write] = run.map_or([0.0; 2], |run| run.best_bytes_per_s);
        let best: Vec<String> = [("reads", read), ("writes", write)]
            .into_iter()
            .filter(|(_, rate)| *rate > 0.0)
            .map(|(op, rate)| format!("{op} {}", show_rate(rate)))
            .collect();
        if !best.is_empty() {
            text += &format!("; best: {}", best.join(", "));
        }
        (of, text)
    }
}

fn rates(bytes_per_s: f64, iops: f64, mean_latency_ns: f64) -> String {
    if bytes_per_s == 0.0 {
        return format!("{iops:.0} operations/s, mean {}", show_time(mean_latency_ns));
    }
    format!("{}, {iops:.0} IOPS, mean {}", show_rate(bytes_per_s), show_time(mean_latency_ns))
}

fn picture(
    task: Option<&Task>,
    work: Option<(f64, Option<Duration>)>,
    numbers: String,
) -> Option<Picture> {
    if let Some((done, of)) = live::FILLING.read() {
        let doing = format!("filling the test file: {} of {}", show_size(done), show_size(of));
        let share = done as f64 / of as f64;
        return Some(Picture { share: share.min(1.0), left: None, doing, numbers });
    }
    let doing = task.map_or_else(String::new, |task| task.doing.clone());
    if let Some((share, left)) = work {
        let running = if doing.is_empty() { live::running() } else { None };
        return Some(Picture { share, left, doing: running.unwrap_or(doing), numbers });
    }
    match task {
        Some(task) => Some(Picture { share: task.share(), left: task.left(), doing, numbers }),
        None if numbers.is_empty() => None,
        None => Some(Picture { share: 0.0, left: None, doing: String::new(), numbers }),
    }
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_millis().div_ceil(1000);
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

impl Picture {
    fn left(&self) -> String {
        self.left.map(|left| format!("{} left", minutes(left))).unwrap_or_default()
    }

    fn line(&self, passed: Duration) -> String {
        let time: Vec<String> =
            [minutes(passed), self.left()].into_iter().filter(|one| !one.is_empty()).collect();
        let parts = [time.join(", "), self.doing.clone(), self.numbers.clone()];
        let parts: Vec<String> = parts.into_iter().filter(|one| !one.is_empty()).collect();
        parts.join(": ")
    }
}

const BAR_COLUMNS: usize = 24;

fn draw(drawn: &mut Drawn, picture: &Picture) {
    let bar = drawn.bar.get_or_insert_with(|| {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:16} {percent:>3} %  {prefix}\n{wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    });
    let left = picture.left();
    let prefix =
        if left.is_empty() { picture.doing.clone() } else { format!("{left}  {}", picture.doing) };
    let room = crate::terminal::width().saturating_sub(BAR_COLUMNS + 1);
    bar.set_position((picture.share * 1000.0) as u64);
    bar.set_prefix(printable(&prefix).chars().take(room).collect::<String>());
    bar.set_message(printable(&picture.numbers));
    bar.tick();
}

pub(crate) struct Bar(Arc<Progress>);

impl Bar {
    pub(crate) fn of_steps(progress: &Arc<Progress>, steps: u64) -> Bar {
        Bar::new(progress, Done::Steps { done: 0, of: steps, at: Duration::ZERO })
    }

    pub(crate) fn of_time(progress: &Arc<Progress>, budget_ns: u64) -> Bar {
        Bar::new(progress, Done::Time { passed_ns: 0, of_ns: budget_ns })
    }

    fn new(progress: &Arc<Progress>, done: Done) -> Bar {
        progress.drawn().task = Some(Task::new(done));
        Bar(Arc::clone(progress))
    }

    fn change(&self, change: impl FnOnce(&mut Task)) {
        if let Some(task) = &mut self.0.drawn().task {
            change(task);
        }
    }

    #[cfg(test)]
    pub(crate) fn share(&self) -> Option<f64> {
        self.0.drawn().task.as_ref().map(Task::share)
    }

    pub(crate) fn set_message(&self, doing: impl Into<String>) {
        self.change(|task| task.doing = doing.into());
    }

    pub(crate) fn inc(&self, steps: u64) {
        self.change(|task| {
            if let Done::Steps { done, at, .. } = &mut task.done {
                *done += steps;
                *at = task.began.elapsed();
            }
        });
    }

    pub(crate) fn set_position(&self, steps: u64) {
        self.change(|task| {
            if let Done::Steps { done, at, .. } = &mut task.done {
                if *done != steps {
                    *at = task.began.elapsed();
                }
                *done = steps;
            }
        });
    }

    pub(crate) fn expect(&self, rest: Option<Duration>) {
        self.change(|task| task.done = Done::Rest { from: Instant::now(), of: rest });
    }

    pub(crate) fn at(&self, passed: u64, doing: &str) {
        self.change(|task| {
            doing.clone_into(&mut task.doing);
            if let Done::Time { passed_ns, .. } = &mut task.done {
                *passed_ns = passed;
            }
        });
    }

    pub(crate) fn finish_and_clear(&self) {
        self.0.clear(false);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.clear(false);
    }
}

pub(crate) struct Watch {
    began: Instant,
    /// It also counts the runs before `--resume`.
    journal: Option<Arc<Journal>>,
    bar: Bar,
}

impl Watch {
    pub(crate) fn new(bar: Bar) -> Watch {
        Watch { began: Instant::now(), journal: None, bar }
    }

    pub(crate) fn over(self, journal: Arc<Journal>) -> Watch {
        let Watch { began, bar, .. } = self;
        Watch { began, journal: Some(journal), bar }
    }

    pub(crate) fn now(&self) -> u64 {
        match &self.journal {
            Some(journal) => journal.now(),
            None => self.began.elapsed().as_nanos() as u64,
        }
    }

    pub(crate) fn at(&self, passed_ns: u64, doing: &str) {
        self.bar.at(passed_ns, doing);
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_time_the_work_and_the_numbers() {
        let picture = Picture {
            share: 0.25,
            left: Some(Duration::from_secs(131)),
            doing: "direct read, seq, 64 KiB, sync".into(),
            numbers: rates(606.0 * 1048576.0, 9690.0, 99.6e3),
        };
        assert_eq!(
            picture.line(Duration::from_secs(13)),
            "0:13, 2:11 left: direct read, seq, 64 KiB, sync: 606 MiB/s, 9690 IOPS, mean 99.6 us"
        );
    }

    #[test]
    fn steps_extrapolate_the_time() {
        let ago =
            |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).expect("a clock");
        let task = |seconds, done| Task {
            began: ago(seconds),
            ..Task::new(Done::Steps { done, of: 4, at: Duration::from_secs(10) })
        };
        assert_eq!(task(10, 0).left(), None);
        let left = |task: Task| task.left().expect("a time").as_secs_f64();
        assert!((29.5..30.1).contains(&left(task(10, 1))));
        assert!((25.5..26.1).contains(&left(task(14, 1))), "the time passes during a step");
        assert_eq!(task(50, 1).left(), None, "the step is longer than those before it");
        let rest = |of| Task { began: ago(5), ..Task::new(Done::Rest { from: ago(4), of }) };
        let known = rest(Some(Duration::from_secs(20)));
        assert!((0.22..0.26).contains(&known.share()), "{}", known.share());
        assert!((15.5..16.1).contains(&left(known)));
        assert_eq!(rest(None).left(), None);
        assert_eq!(minutes(Duration::from_millis(61_001)), "1:02");
    }
}
