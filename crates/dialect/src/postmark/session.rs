use super::{
    BANNER, Command, Complaint, Config, PostmarkResult, ReportStyle, RunError, classic, command,
    extra, parse, run, show, terse,
};
use files::Input;
use machine::files::{FileError, FileSystem};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Continue,
    Quit,
    Interrupted,
}

const DEEPEST: usize = 16;

fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.into())
}

/// Limited in case a disk image is named by mistake.
const COMMANDS: Input = Input::new("a file of commands", 16 << 20);

const BYTE_ORDER_MARK: char = '\u{feff}';

fn as_text(bytes: &[u8]) -> String {
    let units = |join: fn([u8; 2]) -> u16| -> String {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| join([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

pub struct Session<'a, F> {
    system: &'a F,
    interrupt: &'a AtomicBool,
    config: Config,
    results: Vec<PostmarkResult>,
    refused: u64,
    failed: u64,
    is_forced: bool,
    /// Files being read, each loaded by the one before.
    loading: Vec<PathBuf>,
    before_run: Option<BeforeRun<'a>>,
}

type BeforeRun<'a> = Box<dyn Fn(&Config) -> Result<(), String> + 'a>;

impl<'a, F: FileSystem> Session<'a, F> {
    /// `interrupt` ends a run, which removes its files.
    pub fn new(system: &'a F, interrupt: &'a AtomicBool) -> Self {
        Session {
            system,
            interrupt,
            config: Config::default(),
            results: Vec::new(),
            refused: 0,
            failed: 0,
            is_forced: false,
            loading: Vec::new(),
            before_run: None,
        }
    }

    pub fn checked(self, before_run: impl Fn(&Config) -> Result<(), String> + 'a) -> Self {
        Session { before_run: Some(Box::new(before_run)), ..self }
    }

    /// Allows reports to be added to any file.
    pub fn forced(self, is_forced: bool) -> Self {
        Session { is_forced, ..self }
    }

    /// Prints the banner.
    pub fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{BANNER}")
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The last may be interrupted.
    pub fn results(&self) -> &[PostmarkResult] {
        &self.results
    }

    /// 1 after a failed run, 2 after a rejected line or location, otherwise 0. Blank lines and
    /// those with `#`, to which the original also answers `Eh?`, do not count.
    pub fn exit_code(&self) -> u8 {
        match (self.failed, self.refused) {
            (0, 0) => 0,
            (0, _) => 2,
            _ => 1,
        }
    }

    /// Errors go to `err`, everything else to `out`.
    pub fn line(
        &mut self,
        line: &str,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> io::Result<Outcome> {
        self.obey(line, true, out, err)
    }

    /// An unreadable file counts as a rejected line.
    pub fn load_file(
        &mut self,
        path: &Path,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> io::Result<Outcome> {
        let text = match self.read_commands(path) {
            Ok(text) => text,
            Err(why) => {
                self.refuse();
                writeln!(err, "Error: cannot read configuration file '{}': {why}", path.display())?;
                return Ok(Outcome::Continue);
            }
        };
        writeln!(out, "Reading configuration from file '{}'", path.display())?;
        self.loading.push(identity(path));
        let mut outcome = Ok(Outcome::Continue);
        for line in text.lines() {
            outcome = self.obey(line, false, out, err);
            if !matches!(outcome, Ok(Outcome::Continue)) {
                break;
            }
        }
        self.loading.pop();
        outcome
    }

    fn refuse(&mut self) {
        self.refused += 1;
    }

    fn read_commands(&self, path: &Path) -> Result<String, String> {
        if self.loading.contains(&identity(path)) {
            return Err(
                "it would load itself again and again; remove the line that loads it".into()
            );
        }
        if self.loading.len() >= DEEPEST {
            return Err(format!("{DEEPEST} files already load one another"));
        }
        Ok(as_text(&COMMANDS.read(path).map_err(|error| error.to_string())?))
    }

    fn obey(
        &mut self,
        line: &str,
        at_prompt: bool,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> io::Result<Outcome> {
        // Some editors start files with a byte-order mark.
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let obeyed =
            parse(line, at_prompt).and_then(|command| self.config.set(&command).map(|()| command));
        match obeyed {
            Ok(Command::Run(file)) => self.run(file.as_deref(), out, err),
            Ok(Command::Load(file)) => self.load_file(Path::new(&file), out, err),
            Ok(Command::Show(file)) => self
                .deliver(&show(&self.config), file.as_deref(), out, err)
                .map(|()| Outcome::Continue),
            Ok(Command::Help(prefix)) => {
                out.write_all(command::help(&prefix).as_bytes()).map(|()| Outcome::Continue)
            }
            Ok(Command::Quit) => Ok(Outcome::Quit),
            Ok(_) => Ok(Outcome::Continue),
            Err(complaint) => {
                let nothing = line.trim().is_empty() || line.starts_with('#');
                if !nothing {
                    self.refuse();
                }
                match complaint {
                    Complaint::Unknown => writeln!(out, "{complaint}")?,
                    _ => writeln!(err, "{complaint}")?,
                }
                Ok(Outcome::Continue)
            }
        }
    }

    fn run(
        &mut self,
        file: Option<&str>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> io::Result<Outcome> {
        if let Some(Err(why)) = self.before_run.as_ref().map(|check| check(&self.config)) {
            self.refuse();
            writeln!(err, "{why}")?;
            return Ok(Outcome::Continue);
        }
        match run(self.system, &self.config, self.interrupt, out) {
            Ok(result) => {
                let text = match self.config.report {
                    ReportStyle::Verbose => classic(&result) + &extra(&result),
                    ReportStyle::Terse => terse(&result),
                };
                let interrupted = result.interrupted_after.is_some();
                self.results.push(result);
                self.deliver(&text, file, out, err)?;
                if interrupted {
                    self.failed += 1;
                    let why =
                        "interrupted; the files of the run were removed; the report ends there";
                    writeln!(err, "Error: {why}")?;
                    return Ok(Outcome::Interrupted);
                }
                Ok(Outcome::Continue)
            }
            Err(RunError::Print(error)) => Err(error),
            Err(error) => {
                // An invalid location is a usage error, because nothing was run.
                match error {
                    RunError::Plan(_)
                    | RunError::File(
                        FileError::NoLocation(_)
                        | FileError::NotADirectory(_)
                        | FileError::Engine { .. }
                        | FileError::Refused { .. },
                    ) => {
                        self.refused += 1;
                    }
                    _ => self.failed += 1,
                }
                if !matches!(error, RunError::OutOfFiles(_)) {
                    writeln!(err, "Error: {error}")?;
                }
                Ok(if matches!(error, RunError::Interrupted(_)) {
                    Outcome::Interrupted
                } else {
                    Outcome::Continue
                })
            }
        }
    }

    /// Appends to `file`, or prints if that fails or there is none.
    fn deliver(
        &mut self,
        text: &str,
        file: Option<&str>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> io::Result<()> {
        if let Some(name) = file {
            let appended = results::append("run", Path::new(name), text.as_bytes(), self.is_forced);
            let Err(error) = appended else { return Ok(()) };
            self.refused += 1;
            writeln!(err, "Error: Cannot direct output to file '{name}': {error}")?;
        }
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
