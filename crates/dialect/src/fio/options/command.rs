use super::error::FioError;
use super::jobfile::{At, JobFile, Section, Setting, World, cut};
use super::table::{is_flag, names};
use super::value::time_ns;
use crate::parse::joined;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Normal,
    /// One line for each entry.
    Terse,
    Json,
    /// With all latency buckets.
    JsonPlus,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IdleProfile {
    #[default]
    None,
    System,
    /// All together and each.
    Processors,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    pub files: Vec<PathBuf>,
    /// Given as options; those before the first `--name` are global.
    pub sections: Vec<Section>,
    /// `--section`.
    pub only: Vec<String>,
    pub formats: Vec<Format>,
    /// From 2 to 5.
    pub terse_version: u8,
    pub output: Option<PathBuf>,
    /// Path of halfpower's own result.
    pub json: Option<PathBuf>,
    /// Existing paths that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// Overwrites even file systems.
    pub destroy_signed: bool,
    pub cleanup: bool,
    /// File prefix of the combined logs.
    pub bandwidth_log: Option<String>,
    /// Directory of verify states.
    pub aux_path: Option<PathBuf>,
    pub debug: Vec<String>,
    pub parse_only: bool,
    pub readonly: bool,
    pub warnings_fatal: bool,
    pub version: bool,
    pub help: bool,
    pub idle: IdleProfile,
    /// `--status-interval`.
    pub status_ns: Option<u64>,
    /// `--showcmd`.
    pub show: bool,
    /// `--enghelp` and `--cmdhelp`; empty: all.
    pub engine_help: Option<String>,
    pub option_help: Option<String>,
}

const REFUSED: [(&str, &str); 5] = [
    ("server", EACH_MACHINE),
    ("client", EACH_MACHINE),
    ("remote-config", EACH_MACHINE),
    ("daemonize", "use nohup or a service manager"),
    ("trigger-file", "leave it out"),
];

const EACH_MACHINE: &str = "run halfpower on each machine at the same time (ssh, or pdsh for many) and put the reports together";

const PROGRAM: [&str; 23] = [
    "status-interval",
    "idle-prof",
    "output",
    "json",
    "destroy-data",
    "destroy-signature",
    "section",
    "output-format",
    "terse-version",
    "eta",
    "eta-newline",
    "max-jobs",
    "alloc-size",
    "debug",
    "aux-path",
    "cleanup",
    "parse-only",
    "readonly",
    "warnings-fatal",
    "bandwidth-log",
    "minimal",
    "version",
    "help",
];

impl Default for Command {
    fn default() -> Self {
        Command {
            files: Vec::new(),
            sections: Vec::new(),
            only: Vec::new(),
            formats: vec![Format::Normal],
            terse_version: 3,
            output: None,
            json: None,
            destroy: Vec::new(),
            destroy_signed: false,
            cleanup: false,
            bandwidth_log: None,
            aux_path: None,
            debug: Vec::new(),
            parse_only: false,
            readonly: false,
            warnings_fatal: false,
            version: false,
            help: false,
            idle: IdleProfile::None,
            show: false,
            status_ns: None,
            engine_help: None,
            option_help: None,
        }
    }
}

impl Command {
    /// Without the program's name.
    pub fn parse(arguments: &[String]) -> Result<Command, FioError> {
        let mut command = Command::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument.contains('\0') {
                return Err(FioError::Usage(format!(
                    "command line: '{}' holds a NUL character",
                    cut(argument)
                )));
            }
            let Some(option) = argument
                .strip_prefix("--")
                .or_else(|| argument.strip_prefix('-'))
                .filter(|option| !option.is_empty())
            else {
                command.files.push(PathBuf::from(argument));
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (option, None),
            };
            let name = whole_name(name)?;
            if command.flag(name, value.as_deref())? {
                continue;
            }
            // As in fio, only a value after = counts.
            if let Some(topic) = match name {
                "enghelp" => Some(&mut command.engine_help),
                "cmdhelp" => Some(&mut command.option_help),
                _ => None,
            } {
                *topic = Some(value.filter(|value| value != "all").unwrap_or_default());
                continue;
            }
            if name == "bandwidth-log" {
                // As in fio, only a value after = counts.
                command.bandwidth_log = Some(value.unwrap_or_else(|| "agg".into()));
                continue;
            }
            let value = if value.is_none() && !is_flag(name) {
                let next = rest.next().ok_or_else(|| {
                    FioError::Usage(format!(
                        "command line: --{} has no value; write --{0}=VALUE",
                        cut(name)
                    ))
                })?;
                Some(next.clone())
            } else {
                value
            };
            command.option(name, value)?;
        }
        Ok(command)
    }

    fn flag(&mut self, name: &str, value: Option<&str>) -> Result<bool, FioError> {
        let mut other = false;
        let flag = match name {
            "minimal" | "append-terse" => {
                self.formats.retain(|format| name == "append-terse" && *format != Format::Terse);
                self.formats.push(Format::Terse);
                &mut other
            }
            "cleanup" => &mut self.cleanup,
            // The default.
            "keep" => &mut other,
            "destroy-signature" => &mut self.destroy_signed,
            "parse-only" => &mut self.parse_only,
            "readonly" => &mut self.readonly,
            "warnings-fatal" => &mut self.warnings_fatal,
            "version" | "v" => &mut self.version,
            "help" | "h" => &mut self.help,
            "showcmd" => &mut self.show,
            _ => match REFUSED.iter().find(|(refused, _)| *refused == name) {
                Some((_, hint)) => {
                    return Err(FioError::Usage(format!(
                        "command line: halfpower does not serve --{name}; {hint}"
                    )));
                }
                None => return Ok(false),
            },
        };
        if let Some(value) = value {
            return Err(FioError::Usage(format!(
                "command line: --{name} takes no value, and got '{}'",
                cut(value)
            )));
        }
        *flag = true;
        Ok(true)
    }

    fn option(&mut self, name: &str, value: Option<String>) -> Result<(), FioError> {
        let text = value.clone().unwrap_or_default();
        match name {
            "output" => self.output = Some(text.into()),
            "json" => self.json = Some(text.into()),
            "destroy-data" => self.destroy.push(text.into()),
            "section" => self.only.push(text),
            "idle-prof" => {
                self.idle = match text.as_str() {
                    "system" => IdleProfile::System,
                    "percpu" => IdleProfile::Processors,
                    other => {
                        return Err(FioError::Usage(format!(
                            "command line: --idle-prof={}: use --idle-prof=system or --idle-prof=percpu",
                            cut(other)
                        )));
                    }
                };
            }
            "status-interval" => {
                let ns = time_ns(&text, 1_000_000_000).ok().filter(|ns| *ns > 0);
                let ns = ns.ok_or_else(|| {
                    FioError::Usage(format!(
                        "command line: --status-interval={}: it is not a time above 0; write seconds, as in --status-interval=5",
                        cut(&text)
                    ))
                })?;
                self.status_ns = Some(ns);
            }
            "output-format" => self.formats = formats(&text)?,
            "terse-version" => self.terse_version = terse_version(&text)?,
            // halfpower has no progress display, no pool of memory or jobs, and no program trace.
            "eta" | "eta-newline" | "max-jobs" | "alloc-size" => {}
            "debug" => self.debug.extend(text.split(',').map(str::to_string)),
            "aux-path" => self.aux_path = Some(text.into()),
            "name" => {
                let setting = Setting { name: "name".into(), value, at: At::CommandLine };
                let settings = if text == "global" { Vec::new() } else { vec![setting] };
                if text.is_empty() {
                    return Err(FioError::Usage(
                        "command line: --name has no value; write --name=JOB".into(),
                    ));
                }
                self.sections.push(Section { name: text, settings, at: At::CommandLine });
            }
            _ => self.setting(name, value),
        }
        Ok(())
    }

    fn setting(&mut self, name: &str, value: Option<String>) {
        if self.sections.is_empty() {
            self.sections.push(Section {
                name: "global".into(),
                settings: Vec::new(),
                at: At::CommandLine,
            });
        }
        let setting = Setting { name: name.into(), value, at: At::CommandLine };
        self.sections.last_mut().expect("a section was just made").settings.push(setting);
    }

    /// Equivalent arguments.
    pub fn words(&self) -> Vec<String> {
        let flags = [
            (self.cleanup, "cleanup"),
            (self.destroy_signed, "destroy-signature"),
            (self.parse_only, "parse-only"),
            (self.readonly, "readonly"),
            (self.warnings_fatal, "warnings-fatal"),
            (self.version, "version"),
            (self.help, "help"),
        ];
        let mut words: Vec<String> =
            flags.iter().filter(|(on, _)| *on).map(|(_, name)| format!("--{name}")).collect();
        let formats: Vec<&str> = self.formats.iter().map(|format| format.name()).collect();
        words.push(format!("--output-format={}", formats.join(",")));
        words.push(format!("--terse-version={}", self.terse_version));
        words.extend(self.status_ns.map(|ns| format!("--status-interval={}us", ns / 1000)));
        words.extend(self.output.iter().map(|path| format!("--output={}", path.display())));
        words.extend(self.json.iter().map(|path| format!("--json={}", path.display())));
        words.extend(self.destroy.iter().map(|path| format!("--destroy-data={}", path.display())));
        words.extend(self.bandwidth_log.iter().map(|prefix| format!("--bandwidth-log={prefix}")));
        words.extend(self.aux_path.iter().map(|path| format!("--aux-path={}", path.display())));
        words.extend((!self.debug.is_empty()).then(|| format!("--debug={}", self.debug.join(","))));
        words.extend(self.only.iter().map(|name| format!("--section={name}")));
        words.extend(self.files.iter().map(|path| path.display().to_string()));
        for section in &self.sections {
            // A job's name is its first setting.
            words.extend(section.is_global().then(|| "--name=global".to_string()));
            words.extend(section.settings.iter().map(|setting| match &setting.value {
                Some(value) => format!("--{}={value}", setting.name),
                None => format!("--{}", setting.name),
            }));
        }
        words
    }

    /// Global options, job files, then the command line's jobs.
    pub fn all_sections(&self, world: &World<'_>) -> Result<Vec<Section>, FioError> {
        let first_job = self
            .sections
            .iter()
            .position(|section| !section.is_global())
            .unwrap_or(self.sections.len());
        let (global, jobs) = self.sections.split_at(first_job);
        let mut sections = global.to_vec();
        for file in &self.files {
            sections.extend(JobFile::read(file, world)?.sections);
        }
        sections.extend_from_slice(jobs);
        Ok(sections)
    }
}

/// Completes a prefix, as fio does.
fn whole_name(name: &str) -> Result<&str, FioError> {
    let known = || PROGRAM.into_iter().chain(REFUSED.map(|(name, _)| name)).chain(names());
    if name.len() < 2 || known().any(|one| one == name) {
        return Ok(name);
    }
    let longer: Vec<&str> = known().filter(|one| one.starts_with(name)).collect();
    match longer[..] {
        [] => Ok(name),
        [one] => Ok(one),
        _ => Err(FioError::Usage(format!(
            "command line: --{}: several options begin so: {}; write the whole name",
            cut(name),
            longer.join(", ")
        ))),
    }
}

pub fn command_line(sections: &[Section]) -> String {
    let mut words = vec!["fio".to_string()];
    for section in sections {
        if !section.is_global() {
            words.push(format!("--name={}", section.name));
        }
        words.extend(section.settings.iter().filter(|setting| setting.name != "name").map(
            |setting| match &setting.value {
                Some(value) => format!("--{}={value}", setting.name),
                None => format!("--{}", setting.name),
            },
        ));
    }
    joined(&words) + "\n"
}

impl Format {
    const ALL: [Format; 4] = [Format::Normal, Format::Terse, Format::Json, Format::JsonPlus];

    fn name(self) -> &'static str {
        match self {
            Format::Normal => "normal",
            Format::Terse => "terse",
            Format::Json => "json",
            Format::JsonPlus => "json+",
        }
    }
}

fn formats(text: &str) -> Result<Vec<Format>, FioError> {
    let one = |text: &str| match text.trim() {
        "minimal" => Some(Format::Terse),
        name => Format::ALL.into_iter().find(|format| format.name() == name),
    };
    text.split(',').map(one).collect::<Option<Vec<_>>>().ok_or_else(|| {
        FioError::Usage(format!(
            "command line: --output-format={}: halfpower writes normal, terse, json or json+",
            cut(text)
        ))
    })
}

fn terse_version(text: &str) -> Result<u8, FioError> {
    match text.parse() {
        Ok(version @ 2..=5) => Ok(version),
        _ => Err(FioError::Usage(format!(
            "command line: --terse-version={}: there are versions 2, 3, 4 and 5; write one of these",
            cut(text)
        ))),
    }
}
