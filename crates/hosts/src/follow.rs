//! The ranks that follow the orders of rank 0.

use crate::group::{Group, GroupError, receive, send};
use crate::marker;
use crate::message::{Answer, Failure, Hello, Order, Ran};
use crate::patience;
use ::machine::{Error, Machine, Nanos};
use measure::{LinkWatch, Options, RunRequest, Runner, sample};
use std::cell::Cell;
use std::time::{Duration, Instant};
use workload::Workload;

/// The minimum wait after the interrupt: a living process answers in it.
const LAST_WAIT: Duration = Duration::from_millis(50);

/// The user's interrupt: the patience of all waits together begins then.
pub(crate) type Noticed = Cell<Option<Instant>>;

pub(crate) struct Wait<'i> {
    is_interrupted: &'i dyn Fn() -> bool,
    patience: Duration,
    began: Instant,
    noticed: &'i Noticed,
}

impl<'i> Wait<'i> {
    pub(crate) fn new(
        is_interrupted: &'i dyn Fn() -> bool,
        patience: Duration,
        noticed: &'i Noticed,
    ) -> Wait<'i> {
        Wait { is_interrupted, patience, began: Instant::now(), noticed }
    }

    pub(crate) fn goes_on(&self) -> bool {
        if self.noticed.get().is_none() && (self.is_interrupted)() {
            self.noticed.set(Some(Instant::now()));
        }
        let waits = |noticed: Instant| {
            noticed.elapsed() < self.patience || self.began.elapsed() < LAST_WAIT
        };
        self.noticed.get().is_none_or(waits)
    }
}

/// Uses the first target, or the file of all clients, which is last.
pub(crate) fn run_once<M: Machine>(
    runner: &mut Runner<'_, M>,
    workload: &Workload,
    options: Options,
) -> Result<Ran, Failure> {
    let machine = runner.machine();
    let watch = LinkWatch::begin(machine);
    let last = runner.facts().len() - 1;
    let target = if workload.client_files.is_one() { last } else { 0 };
    let sample = Box::new(sample(machine, runner.target_mut(target), workload, options)?);
    let network_percent = watch.busiest(machine, sample.usage.elapsed_ns);
    Ok(Ran { sample, network_percent })
}

/// The job's description and time of start.
pub type Perform<'p> = &'p mut dyn FnMut(&str, Option<Nanos>) -> Result<String, Failure>;

pub fn no_jobs(_job: &str, _start: Option<Nanos>) -> Result<String, Failure> {
    Err(Error::Unsupported("this command has no jobs".into()).into())
}

/// Jobs go to `perform`. Fails if rank 0 is gone, or on an interrupt.
pub fn follow<M: Machine>(
    group: &impl Group,
    machine: &M,
    hello: &Hello,
    is_interrupted: &dyn Fn() -> bool,
    perform: Perform<'_>,
) -> Result<(), GroupError> {
    send(group, 0, hello)?;
    let noticed = Noticed::default();
    let wait = Wait::new(is_interrupted, patience::FOLLOWER, &noticed);
    let mut opened: Option<Runner<'_, M>> = None;
    loop {
        match receive(group, 0, || wait.goes_on())? {
            Order::Own(processes) => machine.add_own_processes(&processes),
            Order::Clock => send(group, 0, &Answer::Clock(machine.now()))?,
            Order::Open(request) => {
                opened = open(group, machine, &request, &wait)?;
            }
            Order::Run { workload, options } => {
                let ran = match &mut opened {
                    Some(runner) => run_once(runner, &workload, options),
                    None => Err(Error::Unsupported("no target is open".into()).into()),
                };
                send(group, 0, &Answer::Ran(ran))?;
            }
            Order::Look { directory, marker } => {
                let seen = directory.is_some_and(|directory| marker::is_seen(&directory, &marker));
                send(group, 0, &Answer::Seen(seen))?;
            }
            Order::Job { job, start } => {
                let early_ns = start.map_or(0, |start| start.saturating_sub(machine.now()));
                let answer = perform(&job, start);
                send(group, 0, &Answer::Job { answer, early_ns })?;
            }
            Order::Go | Order::Stop => {}
            Order::Finish => return Ok(()),
        }
    }
}

/// Tells rank 0 that this rank's files are removed.
pub fn say_finished(group: &impl Group) -> Result<(), GroupError> {
    send(group, 0, &Answer::Finished)
}

/// Writes nothing before rank 0 says that all ranks may.
fn open<'m, M: Machine>(
    group: &impl Group,
    machine: &'m M,
    request: &RunRequest,
    wait: &Wait<'_>,
) -> Result<Option<Runner<'m, M>>, GroupError> {
    let mut gone = None;
    let mut asked = false;
    let stopped = || Error::Unsupported("another rank refused".into());
    let opened = Runner::open_then(machine, request, |_| {
        asked = true;
        match checked(group, Ok(()), request, wait) {
            Ok(true) => Ok(()),
            Ok(false) => Err(stopped()),
            Err(error) => {
                gone = Some(error);
                Err(stopped())
            }
        }
    });
    if let Some(error) = gone {
        return Err(error);
    }
    match opened {
        // Rank 0 has said that nothing is written, or has to be heard saying it.
        Err(error) if !asked => {
            checked(group, Err(error.into()), request, wait)?;
            Ok(None)
        }
        Ok(runner) => {
            send(group, 0, &Answer::Opened(Ok(runner.facts().to_vec())))?;
            Ok(Some(runner))
        }
        Err(error) => {
            send(group, 0, &Answer::Opened(Err(error.into())))?;
            Ok(None)
        }
    }
}

fn checked(
    group: &impl Group,
    result: Result<(), Failure>,
    request: &RunRequest,
    wait: &Wait<'_>,
) -> Result<bool, GroupError> {
    let directory = request.targets.first().and_then(|spec| spec.places.first());
    send(group, 0, &Answer::Checked(result))?;
    loop {
        match receive(group, 0, || wait.goes_on())? {
            Order::Look { marker, .. } => {
                let seen = directory.is_some_and(|directory| marker::is_seen(directory, &marker));
                send(group, 0, &Answer::Seen(seen))?;
            }
            Order::Clock => send(group, 0, &Answer::Clock(0))?,
            Order::Go => return Ok(true),
            Order::Finish => return Err(GroupError::Gone(0)),
            _ => return Ok(false),
        }
    }
}
