use crate::parse::{joined, no_nul, number, number_of, refuse, shortened};
use crate::rows::OptionKind::{Flag, Value};
use crate::rows::{Own, Row, put, set_own};
use machine::Result;
use machine::units::{parse_size, parse_time, show_size};
use std::fmt;
use std::path::PathBuf;
use workload::MAX_DEPTH;

/// Over all files.
pub const MAX_THREADS: u32 = 256;
pub const DEFAULT_FILE: &str = "testfile.dat";
/// The default of `-F`.
pub const DEFAULT_PARAMETERS: &str = "param.txt";
const MAX_FILE_MB: u64 = (1 << 40) - 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// `-kR`
    #[default]
    Read,
    /// `-kW`
    Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// `-frandom`
    Random,
    /// `-fsequential`
    Sequential,
    /// `-f<n>`: rows of n blocks, visited column by column.
    Stripes(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Caching {
    /// `-BN`: writes complete on stable storage.
    #[default]
    None,
    /// `-BY`: the file cache and the disk's cache.
    Both,
    /// `-BH`: the disk's cache.
    Hardware,
    /// `-BS`: the file cache; writes complete on stable storage.
    Software,
}

/// How several blocks form one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multi {
    /// `-mC`: one buffer, copied block by block.
    Copy(u32),
    /// `-mS`: scatter and gather. Here one buffer holds all blocks.
    Scatter(u32),
}

impl Multi {
    /// Per request.
    pub fn blocks(self) -> u32 {
        match self {
            Multi::Copy(blocks) | Multi::Scatter(blocks) => blocks,
        }
    }
}

/// `None`: the original's default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// `-k`
    pub kind: Option<Kind>,
    /// `-t`: of each file.
    pub threads: Option<u32>,
    /// `-s` (seconds), or `--runtime`.
    pub run_ns: Option<u64>,
    /// `-f`
    pub access: Option<Access>,
    /// `-o`: per thread; 0: unset.
    pub outstanding: Option<u32>,
    /// `-b` (KB).
    pub block_bytes: Option<u32>,
    /// `-i`: of a stripe pattern.
    pub rows: Option<u32>,
    /// `-m`
    pub multi: Option<Multi>,
    /// `-B`
    pub caching: Option<Caching>,
    /// `-S`
    pub start_block: Option<u64>,
    /// `-p`; true for `-pI`, only a preference in the original.
    pub processor: Option<(bool, u32)>,
    /// `-a`
    pub mask: Option<u64>,
    /// `-L`: `S` or `P` with an optional `i` select the original's clock.
    pub latency: Option<(char, bool)>,
    /// `-U`; true: of each processor.
    pub cpu: Option<bool>,
    /// `-64`: buffers in the upper address space, always the case here.
    pub wide: bool,
    /// `-F`
    pub parameters: Option<PathBuf>,
    /// `-R`
    pub raw: Vec<PathBuf>,
    /// `-d`: directories; the file is used in each.
    pub drives: Vec<PathBuf>,
    pub files: Vec<PathBuf>,
    pub json: Option<PathBuf>,
    /// `--size`: of a new file, in bytes.
    pub size: Option<u64>,
    pub matrix: bool,
    /// `--align`: partition starts, emulated by shifting every request.
    pub align: Vec<u64>,
    /// `--repeats`: maximum runs of a point.
    pub repeats: Option<u32>,
    pub max_threads: Option<u32>,
    pub seed: Option<u64>,
    pub destroy: Vec<PathBuf>,
    pub destroy_signed: bool,
}

/// A line of a parameter file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLine {
    pub path: PathBuf,
    pub threads: u32,
    /// 0: all processors.
    pub mask: u64,
    pub size_mb: Option<u64>,
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:#x}", self.path.display(), self.threads, self.mask)?;
        self.size_mb.map_or(Ok(()), |mb| write!(f, " {mb}"))
    }
}

fn mask(words: &str, text: &str) -> Result<u64> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => number_of(words, text, 0, u64::MAX).ok(),
    };
    parsed.map_or_else(
        || refuse(shortened(words), "it is not a mask of processors", "write it as 5 or 0x5"),
        Ok,
    )
}

/// Lines of `<file> <threads> [<mask> [<size in MB>]]`; `#` starts a comment.
pub fn parse_parameters(text: &str) -> Result<Vec<FileLine>> {
    let mut lines = Vec::new();
    // Some editors start files with a byte-order mark.
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_none_or(|word| word.starts_with('#')) {
            continue;
        }
        let place = format!("line {} of the parameter file", index + 1);
        if line.contains('\0') {
            return refuse(place, "it contains a NUL", "is it a text?");
        }
        if words.len() < 2 || words.len() > 4 {
            return refuse(
                place,
                format!("it has {} words", words.len()),
                "write <file> <threads> [<mask> [<size in MB>]]",
            );
        }
        lines.push(FileLine {
            path: words[0].into(),
            threads: number(&format!("{place}, threads"), words[1], 1, u64::from(MAX_THREADS))?
                as u32,
            mask: words
                .get(2)
                .map_or(Ok(0), |word| mask(&format!("{place}, mask {word}"), word))?,
            size_mb: words
                .get(3)
                .map(|word| number(&format!("{place}, size"), word, 1, MAX_FILE_MB))
                .transpose()?,
        });
    }
    if lines.is_empty() {
        return refuse(
            "the parameter file",
            "it names no file",
            "write <file> <threads> [<mask> [<size in MB>]] on a line",
        );
    }
    Ok(lines)
}

/// Without the program's name.
pub fn parse(arguments: &[String]) -> Result<Options> {
    no_nul(arguments)?;
    let mut options = Options::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            set_own(OWN, &mut options, long, || words.next().map(String::as_str))?;
        } else if let Some(glued) = word.strip_prefix('-') {
            options.glued(glued)?;
        } else if word.is_empty() {
            return refuse("a file", "its name is empty", "name one");
        } else {
            options.files.push(word.into());
        }
    }
    options.check()?;
    Ok(options)
}

fn list(option: &str, text: &str) -> Result<Vec<PathBuf>> {
    let names: Vec<PathBuf> = text.split(',').map(PathBuf::from).collect();
    if names.iter().any(|name| name.as_os_str().is_empty()) {
        return refuse(
            option,
            "a name is missing",
            "write names with commas between them, such as /mnt/a,/mnt/b",
        );
    }
    Ok(names)
}

fn own_size(option: &str, text: &str) -> Result<u64> {
    parse_size(text).or_else(|why| refuse(option, shortened(&why), "give a size"))
}

static OWN: &[Own<Options>] = &[
    Row::new("json", (), Value(|o, text| put(&mut o.json, Ok(Some(text.into()))))),
    Row::new("size", (), Value(|o, text| put(&mut o.size, own_size("--size", text).map(Some)))),
    Row::new("matrix", (), Flag(|o, on| o.matrix = on)),
    Row::new(
        "align",
        (),
        Value(|o, text| {
            put(&mut o.align, text.split(',').map(|one| own_size("--align", one)).collect())
        }),
    ),
    Row::new(
        "runtime",
        (),
        Value(|o, text| {
            let time =
                parse_time(text).or_else(|why| refuse("--runtime", shortened(&why), "give a time"));
            put(&mut o.run_ns, time.map(Some))
        }),
    ),
    Row::new(
        "repeats",
        (),
        Value(|o, text| {
            put(&mut o.repeats, number("--repeats", text, 1, 1000).map(|n| Some(n as u32)))
        }),
    ),
    Row::new(
        "max-threads",
        (),
        Value(|o, text| {
            put(
                &mut o.max_threads,
                number("--max-threads", text, 1, u64::from(MAX_THREADS)).map(|n| Some(n as u32)),
            )
        }),
    ),
    Row::new(
        "seed",
        (),
        Value(|o, text| put(&mut o.seed, number("--seed", text, 0, u64::MAX).map(Some))),
    ),
    Row::new(
        "destroy-data",
        (),
        Value(|o, text| {
            o.destroy.push(text.into());
            Ok(())
        }),
    ),
    Row::new("destroy-signature", (), Flag(|o, on| o.destroy_signed = on)),
];

impl Options {
    fn glued(&mut self, word: &str) -> Result<()> {
        if word == "64" {
            self.wide = true;
            return Ok(());
        }
        let mut letters = word.chars();
        let Some(letter) = letters.next() else {
            return refuse("-", "an option is missing", "leave it out");
        };
        let value = letters.as_str();
        let option = format!("-{letter}");
        let spelling = format!("-{word}");
        let unknown = |hint: &str| refuse(format!("-{}", shortened(word)), "unknown option", hint);
        let wrong = |why: &str, hint: &str| refuse(format!("-{}", shortened(word)), why, hint);
        match letter {
            'k' => {
                self.kind = Some(match value {
                    "R" => Kind::Read,
                    "W" => Kind::Write,
                    "RW" | "WR" => {
                        return wrong(
                            "SQLIO has no such kind: one run reads or writes",
                            "start one with -kR and one with -kW",
                        );
                    }
                    _ => return wrong("it is neither R nor W", "write -kR or -kW"),
                })
            }
            't' => {
                self.threads = Some(number_of(&spelling, value, 1, u64::from(MAX_THREADS))? as u32)
            }
            's' => self.run_ns = Some(number_of(&spelling, value, 1, 86_400_000)? * 1_000_000_000),
            'f' => {
                self.access = Some(match value {
                    "random" => Access::Random,
                    "sequential" => Access::Sequential,
                    stripes => Access::Stripes(number_of(&spelling, stripes, 1, 1 << 24)? as u32),
                })
            }
            'o' => {
                // 0 asks for plain calls, as without the option.
                let depth = number_of(&spelling, value, 0, u64::from(MAX_DEPTH))? as u32;
                self.outstanding = Some(depth).filter(|depth| *depth > 0);
            }
            'b' => self.block_bytes = Some(number_of(&spelling, value, 1, 1 << 20)? as u32 * 1024),
            'i' => self.rows = Some(number_of(&spelling, value, 1, 1 << 24)? as u32),
            'm' => {
                self.multi = Some(match value.split_at_checked(1) {
                    Some(("C", blocks)) => {
                        Multi::Copy(number_of(&spelling, blocks, 1, 1024)? as u32)
                    }
                    Some(("S", blocks)) => {
                        Multi::Scatter(number_of(&spelling, blocks, 1, 1024)? as u32)
                    }
                    _ => {
                        return wrong(
                            "it says neither C (copied) nor S (scattered)",
                            "write -mC or -mS with a number of blocks, such as -mC4",
                        );
                    }
                })
            }
            'B' => {
                self.caching = Some(match value {
                    "N" => Caching::None,
                    "Y" => Caching::Both,
                    "H" => Caching::Hardware,
                    "S" => Caching::Software,
                    _ => return wrong("it names no cache", "write -BN, -BY, -BH or -BS"),
                })
            }
            'S' => self.start_block = Some(number_of(&spelling, value, 0, 1 << 40)?),
            'p' => {
                let (ideal, digits) =
                    value.strip_prefix('I').map_or((false, value), |digits| (true, digits));
                self.processor = Some((ideal, number_of(&spelling, digits, 0, 1023)? as u32));
            }
            'a' => self.mask = Some(mask(&spelling, value)?),
            'L' => {
                self.latency = Some(match value {
                    "S" => ('S', false),
                    "P" => ('P', false),
                    "Si" => ('S', true),
                    "Pi" => ('P', true),
                    _ => return wrong("it names no clock", "write -LS or -LP"),
                })
            }
            'U' => {
                self.cpu = Some(match value {
                    "" => false,
                    "p" => true,
                    _ => return wrong("it takes p or nothing", "write -U or -Up"),
                })
            }
            'F' => {
                self.parameters =
                    Some(if value.is_empty() { DEFAULT_PARAMETERS.into() } else { value.into() })
            }
            'R' => self.raw = list(&option, value)?,
            'd' => self.drives = list(&option, value)?,
            _ => return unknown("see halfpower sqlio --help"),
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.parameters.is_some()
            && !(self.files.is_empty() && self.raw.is_empty() && self.drives.is_empty())
        {
            return refuse("-F", "the files come from the parameter file", "name no others");
        }
        if self.matrix && (self.parameters.is_some() || self.targets() > 2) {
            let hint = "name one file, directory or device, or two of them";
            return refuse(
                "--matrix",
                "the study is made on one target, or on two that are compared",
                hint,
            );
        }
        if self.compares() && !self.align.is_empty() {
            let hint = "name one target, or leave out --align";
            return refuse(
                "--align",
                "it shifts the requests on one target, and two are named",
                hint,
            );
        }
        if self.matrix && (self.kind.is_some() || self.access.is_some() || self.threads.is_some()) {
            return refuse(
                "--matrix",
                "the study itself goes through -k, -f and -t",
                "leave these out",
            );
        }
        if !self.matrix && (!self.align.is_empty() || self.max_threads.is_some()) {
            return refuse("--align and --max-threads", "they belong to the study", "add --matrix");
        }
        if self.run_ns == Some(0) {
            return refuse("--runtime 0", "nothing would be measured", "give a time above 0");
        }
        if self.processor.is_some() && self.mask.is_some() {
            return refuse(
                "-p and -a",
                "threads are bound to one processor or to a set",
                "leave out one of the two",
            );
        }
        let request =
            u64::from(self.block_bytes()) * u64::from(self.multi.map_or(1, Multi::blocks));
        if request > u64::from(workload::MAX_REQUEST_BYTES) {
            return refuse(
                format!("requests of {}", show_size(request)),
                "a request has at most 1 GiB",
                "use smaller or fewer blocks",
            );
        }
        if self.align.iter().collect::<std::collections::BTreeSet<_>>().len() != self.align.len() {
            return refuse("--align", "a value is there twice", "name each once");
        }
        Ok(())
    }

    pub fn block_bytes(&self) -> u32 {
        self.block_bytes.unwrap_or(if self.matrix { 8 << 10 } else { 2 << 10 })
    }

    /// Equivalent arguments.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut put = |option: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("{option}{value}")))
        };
        let plain = |value: Option<u32>| value.map(|value| value.to_string());
        let commas = |paths: &[PathBuf]| {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            (!names.is_empty()).then(|| names.join(","))
        };
        let kind = |kind: Kind| if kind == Kind::Read { "R".to_string() } else { "W".into() };
        put("-k", self.kind.map(kind));
        put("-t", plain(self.threads));
        put(
            "-f",
            self.access.map(|access| match access {
                Access::Random => "random".into(),
                Access::Sequential => "sequential".into(),
                Access::Stripes(n) => n.to_string(),
            }),
        );
        put("-o", plain(self.outstanding));
        put("-b", plain(self.block_bytes.map(|bytes| bytes / 1024)));
        put("-i", plain(self.rows));
        put(
            "-m",
            self.multi.map(|multi| match multi {
                Multi::Copy(n) => format!("C{n}"),
                Multi::Scatter(n) => format!("S{n}"),
            }),
        );
        put(
            "-B",
            self.caching.map(|caching| match caching {
                Caching::None => "N".into(),
                Caching::Both => "Y".into(),
                Caching::Hardware => "H".into(),
                Caching::Software => "S".into(),
            }),
        );
        put("-S", self.start_block.map(|block| block.to_string()));
        put(
            "-p",
            self.processor.map(|(ideal, cpu)| format!("{}{cpu}", if ideal { "I" } else { "" })),
        );
        put("-a", self.mask.map(|mask| format!("{mask:#x}")));
        put("-L", self.latency.map(|(clock, i)| format!("{clock}{}", if i { "i" } else { "" })));
        put("-U", self.cpu.map(|each| if each { "p".into() } else { String::new() }));
        put("-F", self.parameters.as_ref().map(|path| path.display().to_string()));
        put("-R", commas(&self.raw));
        put("-d", commas(&self.drives));
        put("-64", self.wide.then(String::new));
        put("--matrix", self.matrix.then(String::new));
        put("--destroy-signature", self.destroy_signed.then(String::new));
        put("--runtime=", self.run_ns.map(|ns| format!("{ns}ns")));
        put("--size=", self.size.map(|bytes| bytes.to_string()));
        let aligns: Vec<String> = self.align.iter().map(u64::to_string).collect();
        put("--align=", (!aligns.is_empty()).then(|| aligns.join(",")));
        put("--repeats=", plain(self.repeats));
        put("--max-threads=", plain(self.max_threads));
        put("--seed=", self.seed.map(|seed| seed.to_string()));
        put("--json=", self.json.as_ref().map(|path| path.display().to_string()));
        self.destroy
            .iter()
            .for_each(|path| put("--destroy-data=", Some(path.display().to_string())));
        words.extend(self.files.iter().map(|path| path.display().to_string()));
        words
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.words()))
    }
}
