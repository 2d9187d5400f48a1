//! PostMark and operations on many files.

use crate::failure::Failure;
use crate::target::is_twin;
use dialect::metadata::{of_file, of_plan};
use dialect::postmark::{self, Config, RunError};
use files::Input;
use host::files::{HostFiles, remove_leftovers};
use machine::Error;
use machine::files::FileSystem;
use results::{OperationRate, measure_metadata};
use std::io;
use std::path::{Path, PathBuf};
use twin::settings::split_file;
use twin::{Setup, TwinFiles};
use workload::metadata::MetadataPlan;
use workload::smallfile::Location;

#[derive(Debug, Clone)]
pub(crate) enum SmallFiles {
    Postmark(Box<Config>),
    Metadata(MetadataPlan),
}

const COMMANDS: Input = Input::new("a file of PostMark's commands", 1 << 20);

impl SmallFiles {
    pub(crate) fn of(
        postmark: Option<&Path>,
        metadata: Option<&str>,
    ) -> Result<Option<SmallFiles>, Failure> {
        if let Some(file) = postmark {
            let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
            let text = COMMANDS.text(file).map_err(|error| wrong(error.to_string()))?;
            let config = Config::of_commands(&text).map_err(wrong)?;
            return Ok(Some(SmallFiles::Postmark(Box::new(config))));
        }
        let plan = metadata.map(crate::metadata::plan_of).transpose()?;
        Ok(plan.map(SmallFiles::Metadata))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            SmallFiles::Postmark(_) => "PostMark",
            SmallFiles::Metadata(_) => "operations on files",
        }
    }

    pub(crate) fn check(&self, place: &Path) -> Result<(), Failure> {
        if is_twin(place) {
            let text = place.to_string_lossy();
            if split_file(&text).1.is_some() {
                return Err(Failure::Usage(format!(
                    "{text}: {} makes files of its own; leave out what follows '#'",
                    self.name()
                )));
            }
            return Setup::parse(&text)
                .map(|_| ())
                .map_err(|error| Failure::Usage(error.to_string()));
        }
        if place.is_dir() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{}: not a directory; {} needs a directory or a simulated machine (twin:NAME)",
            place.display(),
            self.name()
        )))
    }

    pub(crate) fn run(&self, place: &Path) -> machine::Result<Vec<OperationRate>> {
        if is_twin(place) {
            let refused = |error: twin::Error| {
                Error::refused(place.display().to_string(), error.to_string(), "see twin list")
            };
            let setup = Setup::parse(&place.to_string_lossy()).map_err(refused)?;
            return self.run_on(&TwinFiles::new(&setup), place);
        }
        remove_leftovers(place);
        self.run_on(&HostFiles::new(), place)
    }

    fn run_on<F: FileSystem>(
        &self,
        files: &F,
        place: &Path,
    ) -> machine::Result<Vec<OperationRate>> {
        let interrupt = crate::interrupt::flag();
        let place: PathBuf = place.to_owned();
        match self {
            SmallFiles::Postmark(config) => {
                let mut config = (**config).clone();
                config.plan.locations = vec![Location { path: place.clone(), weight: 1 }];
                let ran = postmark::run(files, &config, interrupt, &mut io::sink());
                let result = ran.map_err(|error| match error {
                    RunError::Interrupted(_) => Error::Interrupted,
                    RunError::File(error) => of_file(&place, error),
                    RunError::Plan(error) => {
                        Error::refused("PostMark", error.to_string(), "change the commands")
                    }
                    error => Error::Unsupported(error.to_string()),
                })?;
                Ok(result.operation_rates())
            }
            SmallFiles::Metadata(plan) => {
                let plan = MetadataPlan { location: place.clone(), ..plan.clone() };
                let ran = measure_metadata(files, &plan, interrupt, &mut |_, _| ());
                let result = ran.map_err(|error| of_plan(&place, error))?;
                Ok(result.operation_rates())
            }
        }
    }
}
