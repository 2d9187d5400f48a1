//! Rank 0: opens all targets, and makes runs on many ranks at once.

use crate::clock::{Offset, RoundTrip};
use crate::follow::{Noticed, Wait, run_once};
use crate::group::{Group, GroupError, receive, send};
use crate::lead_time::LeadTimes;
use crate::marker::Made;
use crate::merge::ClientRun;
use crate::message::{Answer, Failure, Hello, Order, Ran};
use crate::patience;
use ::machine::{Error as MachineError, Machine, Nanos, Sharing, Start, TargetFacts};
use measure::{LATE_SHARE, Options, RunRequest, Runner};
use results::Client;
use std::path::Path;
use std::time::Duration;
use workload::Workload;

const ROUND_TRIPS: usize = 6;

/// Good clocks drift apart by less than 0.1 ms in this time.
const CLOCK_AGE_NS: Nanos = 1_000_000_000;

/// Attempts to begin together; then the run counts, and its lateness is a doubt.
const ATTEMPTS: u64 = 3;

const ANY_RANK: &str = "a rank";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was written.
    #[error("{}", each(.0))]
    Refused(Vec<(String, Failure)>),
    #[error("{}", each(.0))]
    Failed(Vec<(String, Failure)>),
    #[error("{} ended or does not answer; the launcher's own messages may say why", .0.join(" and "))]
    Lost(Vec<String>),
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Confused(String),
}

impl Error {
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::Refused(all) if all.iter().all(|(_, failure)| failure.usage))
    }
}

/// `rank 1 (b), rank 2 (c): no space`: a reason of several ranks appears once.
fn each(all: &[(String, Failure)]) -> String {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for (who, failure) in all {
        match said.iter_mut().find(|(message, _)| *message == failure.message) {
            Some((_, ranks)) => ranks.push(who),
            None => said.push((&failure.message, vec![who])),
        }
    }
    let one = |(message, ranks): &(&str, Vec<&str>)| format!("{}: {message}", ranks.join(", "));
    said.iter().map(one).collect::<Vec<_>>().join("; ")
}

pub struct Leader<'a, G: Group, M: Machine> {
    pub(crate) group: &'a G,
    pub(crate) machine: &'a M,
    pub(crate) clients: Vec<Client>,
    /// Each rank's kernel, and its process number there.
    processes: Vec<(String, u32)>,
    clock_spaces: Vec<String>,
    pub(crate) offsets: Vec<Offset>,
    measured: Vec<Option<Nanos>>,
    pub(crate) lead_times: LeadTimes,
    is_interrupted: &'a dyn Fn() -> bool,
    noticed: Noticed,
    lost: Vec<usize>,
    is_stuck: bool,
}

pub struct OpenGroup<'m, M: Machine> {
    runner: Runner<'m, M>,
    /// By rank.
    pub facts: Vec<Vec<TargetFacts>>,
    /// `None` if the target is not a directory.
    pub same_directory: Option<bool>,
    /// Ranks that do not see rank 0's directory.
    pub elsewhere: Vec<String>,
}

impl<M: Machine> OpenGroup<'_, M> {
    /// As one target, as large as the smallest.
    pub fn target_facts(&self) -> TargetFacts {
        let first = || self.facts.iter().filter_map(|own| own.first());
        let mut all = self.facts[0][0].clone();
        all.size_bytes = first().map(|own| own.size_bytes).min().unwrap_or(0);
        for warning in first().flat_map(|facts| &facts.warnings) {
            if !all.warnings.contains(warning) {
                all.warnings.push(warning.clone());
            }
        }
        all
    }
}

impl<'a, G: Group, M: Machine> Leader<'a, G, M> {
    /// Fails if a rank has another version.
    pub fn meet(
        group: &'a G,
        machine: &'a M,
        own: &Hello,
        is_interrupted: &'a dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let mut leader = Leader {
            group,
            machine,
            clients: Vec::new(),
            processes: Vec::new(),
            clock_spaces: Vec::new(),
            offsets: vec![Offset::default(); group.size()],
            measured: vec![None; group.size()],
            lead_times: LeadTimes::default(),
            is_interrupted,
            noticed: Noticed::default(),
            lost: Vec::new(),
            is_stuck: false,
        };
        let mut wrong = Vec::new();
        let mut lost = Vec::new();
        for rank in 0..group.size() {
            let wait = Wait::new(is_interrupted, patience::LEADER, &leader.noticed);
            let hello: Hello = match rank {
                0 => own.clone(),
                rank => match receive(group, rank, || wait.goes_on()) {
                    Ok(hello) => hello,
                    Err(GroupError::Unexpected { why, .. }) => {
                        let message = format!("it is not the halfpower of rank 0: {why}");
                        wrong.push((format!("rank {rank}"), usage(message)));
                        continue;
                    }
                    Err(_) => {
                        lost.push(format!("rank {rank}"));
                        continue;
                    }
                },
            };
            leader.processes.push((hello.process_space, hello.process));
            leader.clock_spaces.push(hello.clock_space);
            let client = Client {
                rank: rank as u32,
                host: hello.host,
                processors: hello.processors,
                clock_offset_ns: 0,
                clock_error_ns: 0,
            };
            if hello.version != own.version {
                let message = format!(
                    "it runs halfpower {}, and rank 0 ({}) runs {}; install the same version on all hosts",
                    hello.version, own.host, own.version
                );
                wrong.push((client.name(), usage(message)));
            }
            leader.clients.push(client);
        }
        if !lost.is_empty() {
            return Err(leader.lost_all(lost));
        }
        if !wrong.is_empty() {
            leader.finish();
            return Err(Error::Refused(wrong));
        }
        machine.add_own_processes(&leader.beside(0));
        for rank in 1..group.size() {
            let beside = leader.beside(rank);
            leader.order(rank, &Order::Own(beside))?;
        }
        Ok(leader)
    }

    fn beside(&self, rank: usize) -> Vec<u32> {
        let here = self.processes.iter().filter(|(space, _)| *space == self.processes[rank].0);
        here.map(|(_, process)| *process).collect()
    }

    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    pub fn machine(&self) -> &'a M {
        self.machine
    }

    pub fn processes(&self) -> &[(String, u32)] {
        &self.processes
    }

    /// `own` are rank 0's targets.
    fn joined(&self, rank: usize, request: &RunRequest, own: &[TargetFacts]) -> RunRequest {
        let mut request = request.clone();
        for (spec, own) in request.targets.iter_mut().zip(own) {
            if spec.sharing.is_none() {
                continue;
            }
            let processes = self.beside(rank);
            // Without a number it is not the same file.
            let number = own.file_number.unwrap_or(0);
            spec.sharing = Some(Sharing::Joins { number, processes });
        }
        request
    }

    /// Writes nothing before all ranks have checked their requests. Errors name all that refused or
    /// failed.
    pub fn open(
        &mut self,
        requests: &[RunRequest],
        unique: u64,
    ) -> Result<OpenGroup<'a, M>, Error> {
        // A file that all write is held by rank 0 before the others join.
        let shares = requests[0].targets.iter().any(|spec| spec.sharing.is_some());
        if !shares {
            self.order_open(requests, &[])?;
        }
        let mut agreed: Option<Result<Vec<String>, Error>> = None;
        let own = Runner::open_then(self.machine, &requests[0], |own| {
            let ordered = if shares { self.order_open(requests, own) } else { Ok(()) };
            let result = ordered.and_then(|()| self.agree(Ok(()), requests, unique));
            let may = result.is_ok();
            agreed = Some(result);
            if may { Ok(()) } else { Err(MachineError::Unsupported("a rank refused".into())) }
        });
        let (mut failures, mut elsewhere) = (Vec::new(), Vec::new());
        match agreed {
            // Rank 0 itself refused; the others have the word, too.
            None => {
                let failure = match own {
                    Err(error) => Failure::from(error),
                    Ok(_) => return Err(Error::Confused("the targets were not checked".into())),
                };
                if shares {
                    return Err(refused(vec![(self.clients[0].name(), failure)]));
                }
                self.agree(Err(failure), requests, unique)?;
                return Err(Error::Confused("a refusal was not heard".into()));
            }
            Some(Err(error)) => return Err(error),
            Some(Ok(seen)) => elsewhere.extend(seen),
        }
        let mut facts = Vec::new();
        let runner = match own {
            Ok(runner) => {
                facts.push(runner.facts().to_vec());
                Some(runner)
            }
            Err(error) => {
                failures.push((self.clients[0].name(), Failure::from(error)));
                None
            }
        };
        for (rank, answer) in self.gather(1..self.group.size())? {
            match answer {
                Answer::Opened(Ok(own)) => facts.push(own),
                Answer::Opened(Err(failure)) => {
                    failures.push((self.clients[rank].name(), failure));
                }
                _ => return Err(self.confused(rank)),
            }
        }
        let directory = self.marks_directory(requests).is_some();
        match runner {
            Some(runner) if failures.is_empty() => Ok(OpenGroup {
                runner,
                facts,
                same_directory: directory.then_some(elsewhere.is_empty()),
                elsewhere,
            }),
            _ => Err(refused(failures)),
        }
    }

    fn order_open(&mut self, requests: &[RunRequest], own: &[TargetFacts]) -> Result<(), Error> {
        for (rank, request) in requests.iter().enumerate().skip(1) {
            let request = self.joined(rank, request, own);
            self.order(rank, &Order::Open(request))?;
        }
        Ok(())
    }

    fn marks_directory<'r>(&self, requests: &'r [RunRequest]) -> Option<&'r Path> {
        let place = requests[0].targets.first()?.places.first()?;
        place.is_dir().then_some(place.as_path())
    }

    /// Returns the ranks that do not see rank 0's directory.
    fn agree(
        &mut self,
        own: Result<(), Failure>,
        requests: &[RunRequest],
        unique: u64,
    ) -> Result<Vec<String>, Error> {
        let mut refusals = Vec::new();
        refusals.extend(own.err().map(|failure| (self.clients[0].name(), failure)));
        for (rank, answer) in self.gather(1..self.group.size())? {
            match answer {
                Answer::Checked(Ok(())) => {}
                Answer::Checked(Err(failure)) => {
                    refusals.push((self.clients[rank].name(), failure));
                }
                _ => return Err(self.confused(rank)),
            }
        }
        if !refusals.is_empty() {
            self.order_all(&Order::Stop)?;
            return Err(refused(refusals));
        }
        let mut elsewhere = Vec::new();
        if let Some(directory) = self.marks_directory(requests) {
            match self.look(directory, unique) {
                Err(Error::Refused(all)) => {
                    self.order_all(&Order::Stop)?;
                    return Err(Error::Refused(all));
                }
                seen => elsewhere = seen?,
            }
        }
        self.order_all(&Order::Go)?;
        Ok(elsewhere)
    }

    /// Returns ranks that do not see a file that rank 0 makes; `unique` differs between calls.
    pub fn look(&mut self, directory: &Path, unique: u64) -> Result<Vec<String>, Error> {
        let made = Made::in_directory(directory, unique).map_err(|error| {
            let error = MachineError::io("cannot make a file in", directory)(error);
            refused(vec![(self.clients[0].name(), error.into())])
        })?;
        let look = Order::Look { directory: Some(directory.into()), marker: made.marker.clone() };
        self.order_all(&look)?;
        let mut elsewhere = Vec::new();
        for (rank, answer) in self.gather(1..self.group.size())? {
            match answer {
                Answer::Seen(true) => {}
                Answer::Seen(false) => elsewhere.push(self.clients[rank].name()),
                _ => return Err(self.confused(rank)),
            }
        }
        Ok(elsewhere)
    }

    /// On some ranks (the first is rank 0), with one start. Fails on a lost rank, an interrupt, or
    /// failed runs, by name.
    pub fn run(
        &mut self,
        open: &mut OpenGroup<'a, M>,
        work: &[(usize, Workload)],
        options: Options,
    ) -> Result<Vec<ClientRun>, Error> {
        let run_ns = work.first().and_then(|(_, workload)| workload.run_ns());
        let mut attempt = 1;
        loop {
            let runs = self.attempt(open, work, options, attempt)?;
            let began = runs.iter().map(|run| run.began_ns);
            let late = began.clone().max().unwrap_or(0).max(0) as u64;
            let longest = runs.iter().map(|run| run.sample.measured_ns).max().unwrap_or(0);
            let limit = (run_ns.unwrap_or(longest) as f64 * LATE_SHARE) as u64;
            if late <= limit || attempt == ATTEMPTS {
                return Ok(runs);
            }
            attempt += 1;
        }
    }

    fn attempt(
        &mut self,
        open: &mut OpenGroup<'a, M>,
        work: &[(usize, Workload)],
        options: Options,
        number: u64,
    ) -> Result<Vec<ClientRun>, Error> {
        let [(0, own), others @ ..] = work else {
            return Err(Error::Confused("rank 0 takes part in each run".into()));
        };
        let ranks: Vec<usize> = others.iter().map(|(rank, _)| *rank).collect();
        self.refresh_clocks(&ranks)?;
        // A computer that is busy gets more time with each attempt.
        let lead_ns = self.lead_times.of(own).saturating_mul(number);
        let start = self.machine.now().saturating_add(lead_ns);
        let at = |offset: Offset| Options { start: Start::At(offset.there(start)), ..options };
        for (rank, workload) in others {
            let options = at(self.offsets[*rank]);
            let workload = Box::new(workload.clone());
            self.order(*rank, &Order::Run { workload, options })?;
        }
        let mut ended = vec![(0, run_once(&mut open.runner, own, at(Offset::default())))];
        for (rank, answer) in self.gather(ranks)? {
            let Answer::Ran(ran) = answer else { return Err(self.confused(rank)) };
            ended.push((rank, ran));
        }
        let mut runs = Vec::new();
        let mut failures = Vec::new();
        let mut needed_ns = 0;
        for (rank, ran) in ended {
            match ran {
                Ok(Ran { sample, network_percent }) => {
                    let began_ns = self.offsets[rank].between(start, sample.usage.began);
                    let ready_ns = began_ns.saturating_sub_unsigned(sample.usage.waited_ns);
                    needed_ns = needed_ns.max(lead_ns.saturating_add_signed(ready_ns));
                    runs.push(ClientRun { rank, sample: *sample, began_ns, network_percent });
                }
                Err(failure) if failure.interrupted => return Err(self.interrupted()),
                Err(failure) => failures.push((self.clients[rank].name(), failure)),
            }
        }
        if !failures.is_empty() {
            return Err(Error::Failed(failures));
        }
        self.lead_times.learn(own, needed_ns);
        Ok(runs)
    }

    pub(crate) fn refresh_clocks(&mut self, ranks: &[usize]) -> Result<(), Error> {
        let now = self.machine.now();
        let old = |measured: Option<Nanos>| measured.is_none_or(|at| now - at > CLOCK_AGE_NS);
        let stale = ranks.iter().filter(|&&rank| old(self.measured[rank]));
        let stale: Vec<usize> = stale.copied().collect();
        for rank in stale {
            let space = &self.clock_spaces[rank];
            let alike = |&known: &usize| !space.is_empty() && self.clock_spaces[known] == *space;
            match (0..rank).find(alike) {
                Some(0) => {}
                Some(known) if !old(self.measured[known]) => {
                    self.note_clock(rank, self.offsets[known]);
                }
                _ => self.set_clock(rank)?,
            }
        }
        Ok(())
    }

    fn set_clock(&mut self, rank: usize) -> Result<(), Error> {
        let mut trips = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let sent = self.machine.now();
            self.order(rank, &Order::Clock)?;
            let (_, answer) = self.gather([rank])?.remove(0);
            let Answer::Clock(there) = answer else { return Err(self.confused(rank)) };
            trips.push(RoundTrip { sent, there, returned: self.machine.now() });
        }
        self.note_clock(rank, Offset::of(&trips).unwrap_or_default());
        Ok(())
    }

    fn note_clock(&mut self, rank: usize, offset: Offset) {
        self.offsets[rank] = offset;
        self.measured[rank] = Some(self.machine.now());
        self.clients[rank].clock_offset_ns = offset.ns;
        self.clients[rank].clock_error_ns = offset.error_ns;
    }

    /// After an interrupt, waits until other ranks have removed their files: a launcher kills them
    /// as soon as one has ended.
    pub fn finish(&mut self) {
        let living = (1..self.group.size()).filter(|rank| !self.lost.contains(rank));
        let living: Vec<usize> = living.collect();
        for &rank in &living {
            let _ = send(self.group, rank, &Order::Finish);
        }
        if !(self.is_interrupted)() {
            return;
        }
        let wait = Wait::new(self.is_interrupted, patience::END, &self.noticed);
        let answer = |rank| receive(self.group, rank, || wait.goes_on());
        for rank in living {
            while !matches!(answer(rank), Ok(Answer::Finished) | Err(_)) {}
        }
        while self.is_stuck && wait.goes_on() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// If a rank is lost, no other may wait for it.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// A lost rank would take no message.
    pub(crate) fn order(&mut self, rank: usize, order: &Order) -> Result<(), Error> {
        if self.lost.contains(&rank) {
            return Err(self.lost_rank(rank));
        }
        send(self.group, rank, order).map_err(|error| match error {
            GroupError::Stuck => self.stuck(),
            _ => self.lost_rank(rank),
        })
    }

    fn order_all(&mut self, order: &Order) -> Result<(), Error> {
        (1..self.group.size()).try_for_each(|rank| self.order(rank, order))
    }

    pub(crate) fn gather(
        &mut self,
        ranks: impl IntoIterator<Item = usize>,
    ) -> Result<Vec<(usize, Answer)>, Error> {
        let wait = Wait::new(self.is_interrupted, patience::LEADER, &self.noticed);
        let mut answers = Vec::new();
        let mut silent = Vec::new();
        for rank in ranks {
            if self.lost.contains(&rank) {
                silent.push(rank);
                continue;
            }
            match receive(self.group, rank, || wait.goes_on()) {
                Ok(answer) => answers.push((rank, answer)),
                Err(GroupError::Unexpected { why, .. }) => {
                    return Err(Error::Confused(format!("{}: {why}", self.clients[rank].name())));
                }
                Err(GroupError::Stuck) => {
                    return Err(self.stuck());
                }
                Err(GroupError::Gone(_) | GroupError::Silent(_)) => silent.push(rank),
            }
        }
        if silent.is_empty() {
            return Ok(answers);
        }
        self.lost.extend(&silent);
        Err(Error::Lost(silent.into_iter().map(|rank| self.clients[rank].name()).collect()))
    }

    /// The user interrupts, or the launcher because a rank is lost: ranks that still live answer.
    pub(crate) fn interrupted(&mut self) -> Error {
        let all: Vec<usize> = (1..self.group.size()).collect();
        for &rank in &all {
            if let Err(error) = self.order(rank, &Order::Clock) {
                return error;
            }
        }
        match self.gather(all) {
            Err(error) => error,
            Ok(_) => Error::Interrupted,
        }
    }

    fn lost_all(&mut self, names: Vec<String>) -> Error {
        self.lost.extend(0..self.group.size());
        Error::Lost(names)
    }

    fn stuck(&mut self) -> Error {
        self.is_stuck = true;
        self.lost_all(vec![ANY_RANK.into()])
    }

    fn lost_rank(&mut self, rank: usize) -> Error {
        if !self.lost.contains(&rank) {
            self.lost.push(rank);
        }
        Error::Lost(vec![self.clients[rank].name()])
    }

    pub(crate) fn confused(&self, rank: usize) -> Error {
        Error::Confused(format!(
            "{} sent an answer to another question; this is a fault of halfpower",
            self.clients[rank].name()
        ))
    }
}

fn usage(message: String) -> Failure {
    Failure { message, usage: true, interrupted: false }
}

fn refused(failures: Vec<(String, Failure)>) -> Error {
    if failures.iter().any(|(_, failure)| failure.interrupted) {
        return Error::Interrupted;
    }
    Error::Refused(failures)
}
