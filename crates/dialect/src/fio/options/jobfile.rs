//! Splits job files, without interpreting settings.

use super::error::FioError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

const MAX_LINE_BYTES: usize = 16 << 10;
const MAX_INCLUDES: usize = 16;
/// Of all files together.
const MAX_SECTIONS: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// Lines count from 1.
    Line(PathBuf, usize),
    CommandLine,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Line(file, line) => write!(f, "{} line {line}", file.display()),
            At::CommandLine => f.write_str("command line"),
        }
    }
}

/// `name=value`, or only `name`.
#[derive(Debug, Clone)]
pub struct Setting {
    pub name: String,
    /// `None` without `=`.
    pub value: Option<String>,
    pub at: At,
}

/// Locations do not count.
impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.value) == (&other.name, &other.value)
    }
}

/// A job, or `[global]` defaults of later jobs.
#[derive(Debug, Clone)]
pub struct Section {
    pub name: String,
    pub settings: Vec<Setting>,
    pub at: At,
}

impl Section {
    pub fn is_global(&self) -> bool {
        self.name == "global"
    }
}

impl PartialEq for Section {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.settings) == (&other.name, &other.settings)
    }
}

/// With its includes; displays as one job file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFile {
    pub sections: Vec<Section>,
}

impl fmt::Display for JobFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for section in &self.sections {
            writeln!(f, "[{}]", section.name)?;
            for setting in &section.settings {
                match &setting.value {
                    Some(value) => writeln!(f, "{}={value}", setting.name)?,
                    None => writeln!(f, "{}", setting.name)?,
                }
            }
        }
        Ok(())
    }
}

/// What job files refer to.
pub struct World<'a> {
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// An environment variable or, after `$`, a fact about the computer.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl JobFile {
    /// Also reads includes; an unset variable is an error.
    pub fn read(path: &Path, world: &World<'_>) -> Result<JobFile, FioError> {
        let bytes = (world.read)(path).map_err(|error| {
            FioError::Usage(format!("cannot read the job file {}: {error}", path.display()))
        })?;
        Self::parse(&bytes, path, world)
    }

    pub fn parse(bytes: &[u8], path: &Path, world: &World<'_>) -> Result<JobFile, FioError> {
        let mut file = JobFile::default();
        file.take(bytes, path, world, 0)?;
        Ok(file)
    }

    fn take(
        &mut self,
        bytes: &[u8],
        path: &Path,
        world: &World<'_>,
        depth: usize,
    ) -> Result<(), FioError> {
        // Some editors write a byte-order mark first.
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let at = At::Line(path.into(), index + 1);
            let wrong = |why: String| FioError::Usage(format!("{at}: {why}"));
            let text = expand(clean(line).map_err(wrong)?, world).map_err(wrong)?;
            let text = text.split([';', '#']).next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            if let Some(name) = text.strip_prefix('[') {
                let name = name.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| {
                    wrong(format!("'{}' is not a section; write [name]", cut(text)))
                })?;
                if self.sections.len() == MAX_SECTIONS {
                    return Err(wrong(format!("there are more than {MAX_SECTIONS} sections")));
                }
                self.sections.push(Section { name: name.into(), settings: Vec::new(), at });
            } else if let Some(included) =
                text.strip_prefix("include").filter(|rest| rest.starts_with(char::is_whitespace))
            {
                self.include(included.trim(), path, &at, world, depth)?;
            } else {
                let mut setting = setting(text, at.clone()).map_err(wrong)?;
                setting.value = setting
                    .value
                    .map(|value| with_facts(value, world))
                    .transpose()
                    .map_err(wrong)?;
                let section = self.sections.last_mut();
                section
                    .ok_or_else(|| wrong(format!("'{}' is before any [section]", cut(text))))?
                    .settings
                    .push(setting);
            }
        }
        Ok(())
    }

    /// Also looks next to the including file.
    fn include(
        &mut self,
        name: &str,
        from: &Path,
        at: &At,
        world: &World<'_>,
        depth: usize,
    ) -> Result<(), FioError> {
        if depth == MAX_INCLUDES {
            return Err(FioError::Usage(format!(
                "{at}: include '{name}': {MAX_INCLUDES} files include one another; does one include itself?"
            )));
        }
        let named = PathBuf::from(name);
        let beside =
            from.parent().map(|directory| directory.join(&named)).filter(|beside| *beside != named);
        let (path, bytes) = match ((world.read)(&named), beside) {
            (Ok(bytes), _) => (named, bytes),
            (Err(error), Some(beside)) if error.kind() == io::ErrorKind::NotFound => {
                let bytes =
                    (world.read)(&beside).map_err(|error| cannot_include(at, &beside, &error))?;
                (beside, bytes)
            }
            (Err(error), _) => return Err(cannot_include(at, &named, &error)),
        };
        self.take(&bytes, &path, world, depth + 1)
    }
}

fn cannot_include(at: &At, path: &Path, error: &io::Error) -> FioError {
    FioError::Usage(format!("{at}: include {}: {error}", path.display()))
}

pub(crate) fn cut(text: &str) -> String {
    let shown: String =
        text.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().count() > 60 { format!("{shown}...") } else { shown }
}

fn clean(line: &[u8]) -> Result<&str, String> {
    if line.len() > MAX_LINE_BYTES {
        return Err(format!("the line is {} bytes long; the most is {MAX_LINE_BYTES}", line.len()));
    }
    let text = std::str::from_utf8(line)
        .map_err(|_| "the line is not text (UTF-8)".to_string())?
        .trim_end_matches('\r');
    match text.chars().find(|c| c.is_control() && *c != '\t') {
        Some(c) => Err(format!(
            "the line holds the control character {}; is this a job file?",
            c.escape_unicode()
        )),
        None => Ok(text),
    }
}

fn expand(text: &str, world: &World<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        out.push_str(&rest[..start]);
        let end =
            rest[start..].find('}').ok_or_else(|| "'${' has no '}' after it".to_string())? + start;
        let name = &rest[start + 2..end];
        let value = (world.variable)(name).ok_or_else(|| {
            format!("the environment variable {name} is not set (fio would use an empty text); set it before halfpower")
        })?;
        if value.contains("${")
            || value.chars().any(char::is_control)
            || out.len() + value.len() > MAX_LINE_BYTES
        {
            return Err(format!(
                "the value of the environment variable {name} is not fit for a job file: too long, or with control characters or '${{'"
            ));
        }
        out.push_str(&value);
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    // Text before or after a value could complete a new reference.
    if out.contains("${") { Err("replacing a variable produced '${'".into()) } else { Ok(out) }
}

const FACTS: [&str; 3] = ["$ncpus", "$pagesize", "$mb_memory"];

fn with_facts(value: String, world: &World<'_>) -> Result<String, String> {
    let mut text = value;
    let mut any = false;
    for name in FACTS.into_iter().filter(|name| text.contains(name)).collect::<Vec<_>>() {
        let fact = (world.variable)(name)
            .ok_or_else(|| format!("{name} is not known here; write the number"))?;
        (text, any) = (text.replace(name, &fact), true);
    }
    if !any || !text.contains('*') {
        return Ok(text);
    }
    let factors = text.split('*').map(|factor| factor.trim().parse::<u64>().ok());
    let product = factors.reduce(|product, factor| product?.checked_mul(factor?)).flatten();
    product.map(|product| product.to_string()).ok_or_else(|| {
        format!("'{}' is not a product of whole numbers below 2^64; write 4*$pagesize", cut(&text))
    })
}

pub(crate) fn setting(text: &str, at: At) -> Result<Setting, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value.trim().to_string())),
        None => (text, None),
    };
    if name.is_empty() {
        return Err(format!("'{}' has no option before the '='", cut(text)));
    }
    if let Some((first, rest)) = name.split_once(char::is_whitespace) {
        return Err(format!(
            "'{}' is not an option; write {}={}",
            cut(text),
            cut(first),
            cut(rest.trim())
        ));
    }
    Ok(Setting { name: name.into(), value, at })
}
