//! A group of ranks as one machine with several clients.

use crate::group::Group;
use crate::lead::{Error as GroupError, Leader, OpenGroup};
use crate::merge::merge;
use crate::shared::SharedFile;
use ::machine::units::MIB;
use ::machine::{
    Access, Buffers, Capabilities, ClientRuns, Error, Machine, MachineFacts, MemoryUse, Nanos,
    NullBackend, OWN_FILES, Part, ProcessorTimes, RequestSource, Result, RunOptions, RunUsage,
    Sharing, TargetFacts, TargetSpec,
};
use measure::{ClientsOrder, Repeats, RunRequest};
use results::{Client, Clients};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use workload::Workload;

const MIN_BYTES: u64 = MIB;

/// One rank of each host, then the second of each, and so on.
pub fn joining_order(clients: &[Client]) -> Vec<usize> {
    let place = |index: usize| {
        let own = &clients[index].host;
        clients[..index].iter().filter(|one| one.host == *own).count()
    };
    let mut order: Vec<usize> = (0..clients.len()).collect();
    order.sort_by_key(|&index| place(index));
    order
}

/// Ranks run the same workloads at once; rank 0 is this process.
pub struct GroupMachine<'a, G: Group, M: Machine> {
    leader: RefCell<Leader<'a, G, M>>,
    machine: &'a M,
    order: Vec<usize>,
    workloads: Vec<Workload>,
    files: Files,
    /// How ranks divide the file that all use, or why there is none.
    one_file: RefCell<std::result::Result<SharedFile, String>>,
    open: RefCell<Weak<RefCell<OpenGroup<'a, M>>>>,
    seen: RefCell<Seen>,
    ended: RefCell<Option<GroupError>>,
    unique: Cell<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Files {
    Own,
    One(SharedFile),
    OwnAndOne,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    same_directory: Option<bool>,
    elsewhere: Vec<String>,
}

pub struct GroupTarget<'a, M: Machine> {
    open: Rc<RefCell<OpenGroup<'a, M>>>,
}

impl<'a, G: Group, M: Machine> GroupMachine<'a, G, M> {
    /// `unique` differs between runs.
    pub fn new(leader: Leader<'a, G, M>, unique: u64) -> GroupMachine<'a, G, M> {
        GroupMachine {
            machine: leader.machine(),
            order: joining_order(leader.clients()),
            leader: RefCell::new(leader),
            workloads: Vec::new(),
            files: Files::Own,
            one_file: RefCell::new(Err(OWN_FILES.into())),
            open: RefCell::default(),
            seen: RefCell::default(),
            ended: RefCell::default(),
            unique: Cell::new(unique),
        }
    }

    /// Every rank checks these before anything is written.
    #[must_use]
    pub fn checking(self, workloads: &[Workload]) -> Self {
        GroupMachine { workloads: workloads.to_vec(), ..self }
    }

    /// All ranks use one file, the target.
    #[must_use]
    pub fn sharing(self, shared: SharedFile) -> Self {
        GroupMachine { files: Files::One(shared), one_file: RefCell::new(Ok(shared)), ..self }
    }

    /// Adds a file in the target's directory, for all ranks.
    #[must_use]
    pub fn with_one_file(self) -> Self {
        GroupMachine { files: Files::OwnAndOne, ..self }
    }

    /// Lets ranks do other work, unless they ended early; `work` returns why they did.
    pub fn with_leader(&self, work: impl FnOnce(&mut Leader<'a, G, M>) -> Option<GroupError>) {
        if self.ended.borrow().is_none() {
            let ended = work(&mut self.leader.borrow_mut());
            *self.ended.borrow_mut() = ended;
        }
    }

    /// With the clocks at the last run.
    pub fn clients(&self) -> Clients {
        Clients {
            ranks: self.leader.borrow().clients().to_vec(),
            same_directory: self.seen.borrow().same_directory,
        }
    }

    pub fn warnings(&self) -> Vec<String> {
        let (leader, seen) = (self.leader.borrow(), self.seen.borrow());
        let clients = leader.clients();
        let mut warnings = Vec::new();
        if !seen.elsewhere.is_empty() {
            warnings.push(format!(
                "{} do not see the file that rank 0 made in the target: these are several file systems, and the sum of their rates is not the rate of one server",
                seen.elsewhere.join(", ")
            ));
        }
        warnings.extend(shared_hosts(clients));
        if let Some(error) = &*self.ended.borrow() {
            warnings.push(format!("it ended early: {error}"));
        }
        warnings
    }

    /// Why the ranks ended early, and whether one is lost.
    pub fn finish(self) -> (Option<GroupError>, bool) {
        let mut leader = self.leader.into_inner();
        leader.finish();
        (self.ended.into_inner(), leader.has_lost())
    }

    /// Why the ranks ended early.
    pub fn ended(&self) -> Option<String> {
        self.ended.borrow().as_ref().map(ToString::to_string)
    }

    fn own(&self, workload: &Workload, rank: usize) -> Workload {
        let seed = workload.seed.wrapping_add(rank as u64);
        let mut own = Workload { seed, clients: None, ..workload.clone() };
        if let (true, Ok(shared)) = (workload.client_files.is_one(), &*self.one_file.borrow()) {
            shared.give(&mut own, rank as u64, self.order.len() as u64);
        }
        own
    }

    fn request(&self, spec: &TargetSpec, one: Option<&TargetSpec>, rank: usize) -> RunRequest {
        let mut spec = TargetSpec { seed: spec.seed.wrapping_add(rank as u64), ..spec.clone() };
        if let Files::One(shared) = &self.files {
            spec.sharing = shared.writes.then_some(Sharing::Holds);
            spec.create = shared.writes;
        }
        let own: Vec<Workload> = self.workloads.iter().map(|one| self.own(one, rank)).collect();
        let mut request = RunRequest::in_turn(&spec, &own, Repeats::default());
        request.targets.extend(one.cloned());
        request
    }

    fn file_for_all(&self, spec: &TargetSpec) -> Option<TargetSpec> {
        let [place] = spec.places.as_slice() else { return None };
        let size = spec.size?.checked_mul(self.order.len() as u64)?;
        (self.files == Files::OwnAndOne && place.is_dir()).then(|| TargetSpec {
            size: Some(size),
            sharing: Some(Sharing::Holds),
            ..spec.clone()
        })
    }

    fn open_ranks(
        &self,
        spec: &TargetSpec,
        one: Option<&TargetSpec>,
    ) -> std::result::Result<OpenGroup<'a, M>, GroupError> {
        let ranks = 0..self.order.len();
        let requests: Vec<RunRequest> = ranks.map(|rank| self.request(spec, one, rank)).collect();
        self.unique.set(self.unique.get().wrapping_add(1));
        self.leader.borrow_mut().open(&requests, self.unique.get())
    }

    fn open_files(&self, spec: &TargetSpec) -> std::result::Result<OpenGroup<'a, M>, GroupError> {
        let Some(one) = self.file_for_all(spec) else { return self.open_ranks(spec, None) };
        match self.open_ranks(spec, Some(&one)) {
            Err(why @ (GroupError::Refused(_) | GroupError::Failed(_))) => {
                *self.one_file.borrow_mut() = Err(why.to_string());
                self.open_ranks(spec, None)
            }
            opened => {
                *self.one_file.borrow_mut() = Ok(SharedFile {
                    start: 0,
                    whole: one.size.unwrap_or(0),
                    request: MIN_BYTES,
                    // A client reads what another has written, not what its own cache has.
                    shift: 1,
                    writes: true,
                });
                opened
            }
        }
    }

    /// All files together take what one would.
    fn size_of_each(&self, spec: &TargetSpec) -> Result<Option<u64>> {
        if spec.size.is_some() || !spec.places.iter().all(|place| place.is_dir()) {
            return Ok(spec.size);
        }
        let mut size = None;
        // Ends before anything is written.
        let probed = self.machine.open_all(std::slice::from_ref(spec), &mut |facts| {
            size = Some(facts[0].size_bytes);
            Err(Error::Unsupported("only the size was wanted".into()))
        });
        let Some(size) = size else {
            return Err(probed.err().unwrap_or(Error::Interrupted));
        };
        // The file for all takes as much as the others together.
        let files = if self.files == Files::OwnAndOne { 2 } else { 1 };
        let each = size / files / self.order.len() as u64 / MIN_BYTES * MIN_BYTES;
        if each < MIN_BYTES {
            return Err(Error::refused(
                spec.places[0].display().to_string(),
                format!(
                    "the free space is too small for the files of {} clients",
                    self.order.len()
                ),
                "free some or give --size",
            ));
        }
        Ok(Some(each))
    }

    fn failed(&self, error: GroupError) -> Error {
        match error {
            GroupError::Failed(failures) => {
                Error::Unsupported(GroupError::Failed(failures).to_string())
            }
            error => {
                *self.ended.borrow_mut() = Some(error);
                Error::Interrupted
            }
        }
    }
}

pub fn shared_hosts(clients: &[Client]) -> Option<String> {
    let hosts = hosts(clients).len();
    (hosts < clients.len()).then(|| {
        format!(
            "{} clients share {hosts} {}: its processors and its cache are theirs together; to measure a server, start one rank per host",
            clients.len(),
            if hosts == 1 { "host" } else { "hosts" },
        )
    })
}

fn hosts(clients: &[Client]) -> Vec<&Client> {
    let mut hosts: Vec<&Client> = Vec::new();
    for one in clients {
        if !hosts.iter().any(|known| known.host == one.host) {
            hosts.push(one);
        }
    }
    hosts
}

impl<G: Group, M: Machine> ClientRuns for GroupMachine<'_, G, M> {
    fn run(&self, run: &str) -> Result<String> {
        let confused = |error: serde_json::Error| Error::Unsupported(error.to_string());
        let ClientsOrder { workload, options } = serde_json::from_str(run).map_err(confused)?;
        if self.ended.borrow().is_some() {
            return Err(Error::Interrupted);
        }
        let open = self.open.borrow().upgrade();
        let open = open.ok_or_else(|| Error::Unsupported("no target is open".into()))?;
        let clients = workload.clients.map_or(self.order.len(), |clients| clients as usize);
        let ranks =
            self.order.get(..clients).filter(|ranks| !ranks.is_empty()).ok_or_else(|| {
                let why = format!("{} were started", self.order.len());
                Error::refused(format!("{clients} clients"), why, "start more (mpirun -np)")
            })?;
        let work: Vec<(usize, Workload)> =
            ranks.iter().map(|&rank| (rank, self.own(&workload, rank))).collect();
        let mut leader = self.leader.borrow_mut();
        let runs = leader.run(&mut open.borrow_mut(), &work, options);
        let runs = runs.map_err(|error| self.failed(error))?;
        let merged = merge(&runs, leader.clients(), &workload, options)
            .map_err(|error| Error::Unsupported(error.to_string()))?;
        serde_json::to_string(&merged).map_err(confused)
    }
}

impl<'a, G: Group, M: Machine> Machine for GroupMachine<'a, G, M> {
    type Target = GroupTarget<'a, M>;

    fn facts(&self) -> MachineFacts {
        let processors =
            hosts(self.leader.borrow().clients()).iter().map(|one| one.processors).sum();
        MachineFacts { processors, ..self.machine.facts() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            counts_instructions: false,
            traces_requests: false,
            ..self.machine.capabilities()
        }
    }

    fn clients(&self) -> u32 {
        self.order.len() as u32
    }

    fn one_file(&self) -> std::result::Result<(), String> {
        self.one_file.borrow().as_ref().map(|_| ()).map_err(Clone::clone)
    }

    fn client_runs(&self) -> Option<&dyn ClientRuns> {
        Some(self)
    }

    fn now(&self) -> Nanos {
        self.machine.now()
    }

    fn pause(&self, for_ns: Nanos) {
        self.machine.pause(for_ns);
    }

    fn open(&self, spec: &TargetSpec) -> Result<Self::Target> {
        self.open_checked(spec, |_| Ok(()))
    }

    fn open_all(
        &self,
        specs: &[TargetSpec],
        check: &mut dyn FnMut(&[TargetFacts]) -> Result<()>,
    ) -> Result<Vec<Self::Target>> {
        let [spec] = specs else {
            let what = format!("{} targets", specs.len());
            return Err(Error::refused(what, "several clients use one at a time", "name one"));
        };
        let spec = TargetSpec { size: self.size_of_each(spec)?, ..spec.clone() };
        let opened = self.open_files(&spec).map_err(|error| self.failed(error))?;
        *self.seen.borrow_mut() =
            Seen { same_directory: opened.same_directory, elsewhere: opened.elsewhere.clone() };
        // Every rank has checked the workloads before anything was written.
        check(&[opened.target_facts()])?;
        let open = Rc::new(RefCell::new(opened));
        *self.open.borrow_mut() = Rc::downgrade(&open);
        Ok(vec![GroupTarget { open }])
    }

    fn check_memory(&self, streams: &[Buffers]) -> Result<()> {
        self.machine.check_memory(streams)
    }

    fn target_facts(&self, target: &Self::Target) -> TargetFacts {
        target.open.borrow().target_facts()
    }

    fn run<S: RequestSource>(
        &self,
        _parts: &mut [Part<'_, Self::Target, S>],
        _options: RunOptions,
    ) -> Result<RunUsage> {
        let why = "the clients are other processes, which make their own requests";
        Err(Error::refused("requests of this process", why, "start halfpower without mpirun"))
    }

    fn measure_ceiling<A: RequestSource>(
        &self,
        _target: &Self::Target,
        _access: &Access,
        _backend: NullBackend,
        _sources: &mut [A],
    ) -> Result<bool> {
        Ok(false)
    }

    fn restripe(&self, _target: &mut Self::Target, members: &[u32], _chunk: u64) -> Result<()> {
        match members {
            [0] | [] => Ok(()),
            _ => Err(Error::refused("a stripe", "several clients use one target", "name one")),
        }
    }

    fn may_write(&self) -> u64 {
        self.machine.may_write()
    }

    fn processors(&self) -> Vec<ProcessorTimes> {
        self.machine.processors()
    }

    fn memory(&self, for_ns: Nanos) -> Result<Vec<MemoryUse>> {
        self.machine.memory(for_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_join_on_different_hosts_first() {
        let client = |rank: u32, host: &str| Client {
            rank,
            host: host.into(),
            processors: 2,
            clock_offset_ns: 0,
            clock_error_ns: 0,
        };
        let hosts = ["a", "a", "b", "b", "c"];
        let clients: Vec<Client> =
            hosts.iter().enumerate().map(|(rank, host)| client(rank as u32, host)).collect();
        assert_eq!(joining_order(&clients), [0, 2, 4, 1, 3]);
        assert_eq!(joining_order(&clients[..1]), [0]);
    }
}
