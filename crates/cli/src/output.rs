//! With `--json` only JSON goes to standard output.

use crate::context::Context;
use crate::failure::Failure;
pub(crate) use crate::terminal::{colour, width};
use files::MadeDirectory;
use host::facts::Roots;
use machine::text::printable;
use report::openmetrics::OpenMetrics;
use results::{Output, OutputError, Results};
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

const TEMPORARY: &str = "/tmp";

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        match error {
            OutputError::Refused { .. } => Failure::Usage(error.to_string()),
            OutputError::Moved { .. } | OutputError::Io { .. } => Failure::Run(error.to_string()),
        }
    }
}

/// Refuses `targets` (measured and input files), layers under them, the history, and another user's
/// file.
pub(crate) fn output(
    context: &Context,
    option: &str,
    path: &Path,
    targets: &[&Path],
) -> Result<Output, Failure> {
    let mut targets: Vec<PathBuf> =
        targets.iter().flat_map(|target| with_backing(target)).collect();
    if let Ok(history) = context.history_file() {
        // SQLite's own files hold changes that are not in the history yet.
        targets.extend(["", "-wal", "-shm", "-journal"].map(|end| {
            let mut name = history.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        }));
    }
    // overlayfs reports a different device and inode than the layer that holds the file.
    if targets.iter().any(|target| host::facts::is_same_data(&Roots::default(), target, path)) {
        targets.push(path.to_path_buf());
    }
    Ok(Output::new(option, path, context.force, &targets)?)
}

pub(crate) fn optional(
    context: &Context,
    option: &str,
    path: Option<&Path>,
    targets: &[&Path],
) -> Result<Option<Output>, Failure> {
    path.map(|path| output(context, option, path, targets)).transpose()
}

fn with_backing(target: &Path) -> Vec<PathBuf> {
    let mut all = vec![target.to_path_buf()];
    if let Some(machine) = crate::target::machine_file(target) {
        all.push(machine);
        return all;
    }
    let there = if target.exists() { target } else { target.parent().unwrap_or(target) };
    if let Ok(under) = host::facts::under(&Roots::default(), there) {
        all.extend(under.layers.iter().filter_map(|layer| layer.facts.backing_file.clone()));
    }
    all
}

pub(crate) fn json(text: serde_json::Result<String>) -> Result<String, Failure> {
    text.map_err(|error| Failure::Run(format!("cannot turn the results into JSON: {error}")))
}

/// If writing fails, the error names a temporary file with the text.
pub(crate) fn save(output: &Output, text: &str) -> Result<(), Failure> {
    match output.write(text.as_bytes()) {
        Ok(()) => Ok(()),
        Err(OutputError::Moved { path }) => Err(moved(&path)),
        Err(error) => Err(kept_elsewhere(&error.to_string(), output.path(), text)),
    }
}

fn moved(path: &Path) -> Failure {
    let held = files::Directory::held(files::parent(path));
    let now = held
        .and_then(|held| std::fs::read_link(format!("/proc/self/fd/{}", held.as_fd().as_raw_fd())));
    let now = now.map_or_else(
        |_| "the directory that was there before".into(),
        |now| now.display().to_string(),
    );
    Failure::Run(format!(
        "{}: this directory was moved or replaced meanwhile; the file is in {now}",
        path.display()
    ))
}

fn kept_elsewhere(error: &str, path: &Path, text: &str) -> Failure {
    let mut name =
        OsString::from(format!("halfpower-{:016x}", RandomState::new().build_hasher().finish()));
    if let Some(suffix) = path.extension() {
        name.push(".");
        name.push(suffix);
    }
    let keep_in = |place: &Path| -> io::Result<PathBuf> {
        let directory = files::Directory::held(place)?;
        let mut file = directory.create(&name, 0o600)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        // A partial document is useless.
        written.inspect_err(|_| drop(directory.remove(&name))).map(|()| place.join(&name))
    };
    // Fall back to /tmp if root may not trust TMPDIR.
    let kept = keep_in(&std::env::temp_dir())
        .or_else(|why| keep_in(Path::new(TEMPORARY)).map_err(|_| why));
    Failure::Run(match kept {
        Ok(path) => format!("{error}; the output was saved in {}", path.display()),
        Err(other) => format!("{error}; saving it as a temporary file also failed: {other}"),
    })
}

pub(crate) fn save_late(
    context: &Context,
    option: &str,
    path: &Path,
    targets: &[&Path],
    text: &str,
) -> Result<(), Failure> {
    match output(context, option, path, targets) {
        Ok(file) => save(&file, text),
        Err(Failure::Usage(why) | Failure::Run(why)) => Err(kept_elsewhere(&why, path, text)),
        Err(other) => Err(other),
    }
}

pub(crate) struct Metrics {
    file: Output,
    pub(crate) gauges: OpenMetrics,
}

impl Metrics {
    pub(crate) fn open(
        context: &Context,
        path: Option<&Path>,
        targets: &[&Path],
    ) -> Result<Option<Metrics>, Failure> {
        let file = optional(context, "--openmetrics", path, targets)?;
        Ok(file.map(|file| Metrics { file, gauges: OpenMetrics::default() }))
    }

    pub(crate) fn save(&self) -> Result<(), Failure> {
        let text = self.gauges.text();
        let text = text.map_err(|error| Failure::Run(format!("cannot write metrics: {error}")))?;
        save(&self.file, &text)
    }
}

pub(crate) fn show_points(context: &Context, results: &Results, json: bool) -> Result<(), Failure> {
    if json {
        return context.console.print(&self::json(results::to_json(results))?);
    }
    context.console.print(&report::terminal::points(results, width(), colour()))
}

pub(crate) fn surface_page(
    results: &Results,
    own: &dialect::iozone::IozoneResult,
) -> Result<String, Failure> {
    report::surfaces::of_iozone(results, own)
        .map_err(|error| Failure::Run(format!("cannot draw the surfaces: {error}")))
}

pub(crate) fn report_page(results: &Results) -> Result<String, Failure> {
    report::html(results).map_err(|error| Failure::Run(format!("cannot draw the report: {error}")))
}

/// Prints `details` first, so that the answer stays on the screen.
pub(crate) fn show_study(
    context: &Context,
    results: &Results,
    report: Option<&Path>,
    form: Form,
) -> Result<(), Failure> {
    let details = match form {
        Form::Json => return context.console.print(&self::json(results::to_json(results))?),
        Form::Screen => false,
        Form::Details => true,
    };
    // Documents without an answer are their points.
    let mut text = String::new();
    if details || results.answer.is_none() {
        text += &report::terminal::tables(results, width(), colour());
        text += &report::terminal::details(results, width(), colour());
    }
    text += &report::terminal::answer(results, width(), colour());
    if let Some(report) = report {
        text += &format!("\nReport: {}", printable(&report.to_string_lossy()));
        let more = results.answer.is_some() && !details;
        text += if more { " (--details shows it here)\n" } else { "\n" };
    }
    context.console.print(&text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Screen,
    Details,
}

impl Form {
    pub(crate) fn of(json: bool, details: bool) -> Form {
        match (json, details) {
            (true, _) => Form::Json,
            (_, true) => Form::Details,
            _ => Form::Screen,
        }
    }
}

pub(crate) struct Directory<'a> {
    context: &'a Context,
    path: &'a Path,
    targets: &'a [&'a Path],
    /// The outermost first.
    made: Vec<MadeDirectory>,
}

/// A refused command leaves no empty directories.
impl Drop for Directory<'_> {
    fn drop(&mut self) {
        files::remove_empty(&self.made);
    }
}

impl<'a> Directory<'a> {
    pub(crate) fn new(
        context: &'a Context,
        path: &'a Path,
        targets: &'a [&'a Path],
        files: &[&str],
    ) -> Result<Directory<'a>, Failure> {
        // An empty path means the current directory.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let (_, made) = files::Directory::make(path, 0o777).map_err(|error| {
            let why = format!("cannot make this directory: {error}; name one that you may write");
            Failure::Usage(format!("--output {}: {why}", path.display()))
        })?;
        let directory = Directory { context, path, targets, made };
        files.iter().try_for_each(|name| {
            output(context, "--output", &path.join(name), targets).map(drop)
        })?;
        Ok(directory)
    }

    pub(crate) fn save(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        save_late(self.context, "--output", &path, self.targets, text).map(|()| path)
    }

    /// Tries all files and returns the first failure.
    pub(crate) fn save_report(&self, results: &Results) -> Result<PathBuf, Failure> {
        let report = self.save("report.html", &report_page(results)?);
        let tables: Vec<_> =
            results::csv(results).iter().map(|(name, text)| self.save(name, text)).collect();
        tables.into_iter().collect::<Result<Vec<_>, Failure>>().and(report)
    }
}
