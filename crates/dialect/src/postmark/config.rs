use super::{Command, Complaint, LocationEdit, ReportStyle, parse};
use machine::files::{AreaSpec, FileEngine, FileSync};
use workload::smallfile::{Location, SmallFilePlan};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub plan: SmallFilePlan,
    pub threads: u32,
    pub sync: FileSync,
    pub engine: FileEngine,
    pub report: ReportStyle,
}

impl Default for Config {
    /// The original's defaults.
    fn default() -> Self {
        Config {
            plan: SmallFilePlan::default(),
            threads: 1,
            sync: FileSync::None,
            engine: FileEngine::Stdio,
            report: ReportStyle::Verbose,
        }
    }
}

impl Config {
    /// Applies a `set` command; ignores others. Removing an unknown location fails.
    pub fn set(&mut self, command: &Command) -> Result<(), Complaint> {
        let plan = &mut self.plan;
        match command {
            Command::SetSize(low, high) => (plan.low_bytes, plan.high_bytes) = (*low, *high),
            Command::SetNumber(n) => plan.number = *n,
            Command::SetSeed(n) => plan.seed = *n,
            Command::SetTransactions(n) => plan.transactions = *n,
            Command::SetLocation(edit) => edit_locations(&mut plan.locations, edit)?,
            Command::SetSubdirectories(n) => plan.subdirectories = *n,
            Command::SetRead(n) => plan.read_block_bytes = *n,
            Command::SetWrite(n) => plan.write_block_bytes = *n,
            Command::SetBuffering(on) => {
                self.engine = if *on { FileEngine::Stdio } else { FileEngine::Syscalls }
            }
            Command::SetBiasRead(bias) => plan.bias_read = *bias,
            Command::SetBiasCreate(bias) => plan.bias_create = *bias,
            Command::SetReport(style) => self.report = *style,
            Command::SetThreads(n) => self.threads = *n,
            Command::SetSync(sync) => self.sync = *sync,
            Command::SetEngine(engine) => self.engine = *engine,
            Command::Run(_)
            | Command::Load(_)
            | Command::Show(_)
            | Command::Help(_)
            | Command::Quit => {}
        }
        Ok(())
    }

    /// The configuration at the first `run` of a file of commands, or at its end. Naming another
    /// file is an error.
    pub fn of_commands(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.contains('#') {
                continue;
            }
            let wrong = |why: String| format!("line {}: '{}': {why}", number + 1, line.trim());
            match parse(line, false).map_err(|error| wrong(error.to_string()))? {
                Command::Run(_) | Command::Quit => break,
                Command::Load(_) => {
                    return Err(wrong(
                        "commands of another file are not read; name that file".into(),
                    ));
                }
                command => config.set(&command).map_err(|error| wrong(error.to_string()))?,
            }
        }
        Ok(config)
    }

    /// Minimum and maximum: a transaction may create a file and append to one.
    pub fn written_bytes(&self) -> [u64; 2] {
        let plan = &self.plan;
        let [number, transactions] = [plan.number, plan.transactions].map(u64::from);
        let [low, high] = [plan.low_bytes, plan.high_bytes].map(u64::from);
        [number.saturating_mul(low), (number + 2 * transactions).saturating_mul(high)]
    }

    pub fn area(&self) -> AreaSpec {
        AreaSpec {
            locations: self.plan.locations.iter().map(|location| location.path.clone()).collect(),
            joins: false,
            branch: 0,
            subdirectories: self.plan.subdirectories_used(),
            engine: self.engine,
            sync: self.sync,
            read_block_bytes: self.plan.read_block_bytes,
            write_block_bytes: self.plan.write_block_bytes,
        }
    }
}

fn edit_locations(locations: &mut Vec<Location>, edit: &LocationEdit) -> Result<(), Complaint> {
    match edit {
        LocationEdit::Replace(path, weight) => {
            *locations = vec![Location { path: path.clone(), weight: *weight }]
        }
        LocationEdit::Add(path, weight) => {
            locations.push(Location { path: path.clone(), weight: *weight })
        }
        LocationEdit::Remove(path) => {
            let Some(index) = locations.iter().position(|location| location.path == *path) else {
                let given = path.display().to_string();
                return Err(Complaint::Argument {
                    what: "cannot find location, `show` lists them".into(),
                    given,
                });
            };
            locations.remove(index);
        }
    }
    Ok(())
}
