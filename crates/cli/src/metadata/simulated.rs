//! Clients of a simulated file server.

use super::{Arguments, by_clients};
use crate::context::Context;
use crate::failure::Failure;
use crate::postmark::places::setup_of;
use crate::target::is_twin;
use dialect::metadata::Task;
use dialect::tasks::{Crew, Done, Error, Member, Reply, Step};
use machine::{Machine, Nanos, client_name};
use results::{Began, Client, Kind, Results};
use std::path::Path;
use twin::{FileClient, FileServer, Setup, Twin};
use workload::metadata::{MetadataError, MetadataPlan};

const STACK_BYTES: usize = 512 << 10;

pub(super) struct Server {
    files: FileServer,
    setup: Setup,
}

impl Server {
    pub(super) fn at(place: &Path) -> Result<Option<Server>, Failure> {
        if !is_twin(place) {
            return Ok(None);
        }
        let setup = setup_of(place).map_err(MetadataError::from)?;
        Ok(FileServer::new(&setup).map(|files| Server { files, setup }))
    }

    fn processors(&self) -> u32 {
        self.setup.description.processor.cores
    }

    fn ranks(&self) -> Vec<Client> {
        let client = |rank: usize| Client {
            rank: rank as u32,
            host: client_name(rank),
            processors: self.processors(),
            clock_offset_ns: 0,
            clock_error_ns: 0,
        };
        (0..self.files.clients().len()).map(client).collect()
    }

    fn crew(&self) -> SimulatedCrew<'_> {
        let task = |client| Task::new(client, self.processors(), crate::interrupt::flag());
        let member = |client: Client| Member {
            host: client.host,
            process_space: String::new(),
            process: client.rank,
        };
        SimulatedCrew {
            files: &self.files,
            tasks: self.files.clients().iter().map(task).collect(),
            members: self.ranks().into_iter().map(member).collect(),
        }
    }

    pub(super) fn metadata(
        &self,
        context: &Context,
        arguments: &Arguments,
        plan: &MetadataPlan,
    ) -> Result<(), Failure> {
        let ranks = self.ranks();
        let counts = by_clients::counts(arguments, ranks.len())?;
        let twin = Twin::new(self.setup.clone());
        let began = Began::now(&twin);
        let measured = by_clients::measure(context, &mut self.crew(), plan, (&counts, &ranks))?;
        let (target, program) = (twin.target_facts(&twin.volume()), crate::context::program());
        let document = Results::new(&twin, Kind::Metadata, program, began, target, plan.seed);
        by_clients::finish(context, arguments, document, (measured, &ranks))
    }
}

pub(crate) fn add_to_simulated_study(context: &Context, setup: &Setup, study: &mut Results) {
    let Some(files) = FileServer::new(setup).filter(|_| setup.clients > 1) else { return };
    let server = Server { files, setup: setup.clone() };
    let place = format!("twin:{}", setup.name);
    let (ranks, mut crew) = (server.ranks(), server.crew());
    by_clients::add_to_study(context, (Path::new(&place), None), &mut crew, &ranks, study);
}

struct SimulatedCrew<'s> {
    files: &'s FileServer,
    tasks: Vec<Task<'s, FileClient>>,
    members: Vec<Member>,
}

impl SimulatedCrew<'_> {
    fn step(task: &mut Task<'_, FileClient>, step: &Step) -> Result<Done, Error> {
        match step {
            Step::Metadata(step) => {
                Ok(Done { reply: Reply::Metadata(task.perform(step)?), ahead_ns: 0 })
            }
            Step::Ior(_) | Step::Mdtest(_) => {
                let why = "simulated clients make operations on files only".into();
                Err(machine::Error::Unsupported(why).into())
            }
        }
    }
}

impl Crew for SimulatedCrew<'_> {
    fn members(&self) -> &[Member] {
        &self.members
    }

    fn perform(&mut self, steps: Vec<(usize, Step)>, together: bool) -> Result<Vec<Done>, Error> {
        if !together {
            let one = |(task, step): (usize, Step)| Self::step(&mut self.tasks[task], &step);
            return steps.into_iter().map(one).collect();
        }
        let clients: Vec<usize> = steps.iter().map(|step| step.0).collect();
        let working = self.files.together(&clients);
        let mut tasks: Vec<Option<&mut Task<'_, FileClient>>> =
            self.tasks.iter_mut().map(Some).collect();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for ((client, step), working) in steps.into_iter().zip(working) {
                let task = tasks[client].take().ok_or_else(|| Error::Tasks {
                    message: "a client has two steps at once; this is a fault of halfpower".into(),
                    usage: false,
                })?;
                let body = move || {
                    let _working = working;
                    Self::step(task, &step)
                };
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
                threads.push(thread.spawn_scoped(scope, body).map_err(|error| Error::Tasks {
                    message: format!(
                        "the system refuses more threads: {error}; simulate fewer clients, or raise the limit (ulimit -u)"
                    ),
                    usage: true,
                })?);
            }
            let joined = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect()
        })
    }

    fn elsewhere(&mut self, _directory: &Path) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn pause(&mut self, for_ns: Nanos) {
        self.files.pause(for_ns);
    }
}
