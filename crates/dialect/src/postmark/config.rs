use super::{Command, Complaint, LocationEdit, ReportStyle};
use machine::files::{AreaSpec, FileEngine, FileSync};
use workload::smallfile::{Location, SmallFilePlan};

/// The configuration of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub plan: SmallFilePlan,
    pub threads: u32,
    pub sync: FileSync,
    pub engine: FileEngine,
    pub report: ReportStyle,
}

impl Default for Config {
    /// The original's defaults: one thread, standard I/O, no synchronisation.
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
    /// Applies a `set` command; ignores any other command.
    ///
    /// # Errors
    /// The location to remove is not in the list.
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

    /// The locations of a run's files and how they are accessed.
    pub fn area(&self) -> AreaSpec {
        AreaSpec {
            locations: self.plan.locations.iter().map(|location| location.path.clone()).collect(),
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
