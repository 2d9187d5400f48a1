//! Each operation on a name asks the server, a change is stable before the answer, and a client
//! keeps attributes and data that it has seen (as with NFS: RFC 1813).

use crate::description::Drive;
use crate::device::{Command, Device, Model, Slot};
use crate::settings::Setup;
use crate::units::us;
use machine::files::{
    AreaSpec, FileAct, FileArea, FileEngine, FileError, FileId, FileSystem, FileUsage, FileWork,
    directories_below,
};
use machine::{Nanos, Op};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of a message without data. Assumed.
const MESSAGE: u64 = 200;

/// Directory entries per answer, and the bytes of each. Assumed.
const LISTED: u64 = 256;
const ENTRY: u64 = 128;

type Name = (u32, FileId);

struct Client {
    now: Nanos,
    works: bool,
    system_ns: Nanos,
    attributes: HashSet<Name>,
    data: HashSet<Name>,
}

struct Server {
    device: Box<dyn Device>,
    /// `call_ns` is for a call that a client serves itself.
    request_ns: Nanos,
    call_ns: Nanos,
    hold_ns: Nanos,
    clients: Vec<Client>,
    sizes: HashMap<Name, u64>,
    held: HashMap<(u32, u32), Nanos>,
    areas: HashMap<PathBuf, u32>,
}

impl Server {
    fn next(&self) -> Option<usize> {
        let working = (0..self.clients.len()).filter(|&client| self.clients[client].works);
        working.min_by_key(|&client| self.clients[client].now)
    }

    fn spend(&mut self, client: usize, ns: Nanos) {
        let client = &mut self.clients[client];
        client.now += ns;
        client.system_ns += ns;
    }

    fn ask(&mut self, client: usize, op: Op, bytes: u64) {
        self.spend(client, self.request_ns);
        let own = &mut self.clients[client];
        let command = Command {
            transfer: 0,
            device: 0,
            op,
            offset: 0,
            bytes: MESSAGE + bytes,
            queued: 1,
            durable: op == Op::Write,
            since: own.now,
            client: Some(client as u32),
        };
        own.now = self.device.serve(own.now, &command);
    }

    fn change(&mut self, client: usize, area: u32, subdirectory: u32) {
        let held = self.held.entry((area, subdirectory)).or_default();
        let own = &mut self.clients[client];
        own.now = own.now.max(*held);
        *held = own.now + self.hold_ns;
        self.ask(client, Op::Write, 0);
    }

    fn forget(&mut self, name: Name) {
        self.clients.iter_mut().for_each(|client| {
            client.attributes.remove(&name);
            client.data.remove(&name);
        });
    }
}

struct Shared {
    name: PathBuf,
    server: Mutex<Server>,
    turns: Vec<Condvar>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests arrive in the order of their times.
    fn in_turn<T>(&self, client: usize, work: impl FnOnce(&mut Server) -> T) -> T {
        let mut server = self.lock();
        while server.clients[client].works && server.next() != Some(client) {
            server = self.turns[client].wait(server).unwrap_or_else(PoisonError::into_inner);
        }
        let done = work(&mut server);
        self.wake_next(&server);
        done
    }

    fn wake_next(&self, server: &Server) {
        if let Some(next) = server.next() {
            self.turns[next].notify_one();
        }
    }
}

/// A file server and its clients, in virtual time.
///
/// ```
/// use machine::files::{AreaSpec, FileArea, FileEngine, FileId, FileSync, FileSystem, FileWork};
///
/// let server = twin::FileServer::new(&twin::Setup::parse("nas,clients=2")?).expect("a server");
/// let client = &server.clients()[0];
/// let area = client.open(&AreaSpec {
///     locations: Vec::new(),
///     joins: false,
///     subdirectories: 1,
///     branch: 0,
///     engine: FileEngine::Syscalls,
///     sync: FileSync::None,
///     read_block_bytes: 1,
///     write_block_bytes: 1,
/// })?;
/// let mut work = area.work()?;
/// let before = client.now();
/// work.create(FileId { location: 0, subdirectory: 0, number: 1 }, b"")?;
/// assert!(client.now() > before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileServer {
    clients: Vec<FileClient>,
    shared: Arc<Shared>,
}

impl FileServer {
    /// `None` if the machine's volume is not on a server.
    pub fn new(setup: &Setup) -> Option<FileServer> {
        let Drive::Network(volume) = setup.drive() else { return None };
        let count = setup.clients.max(1);
        let slot = Slot { number: 0, bus: 0, wce: setup.wce, clients: count };
        let processor = &setup.description.processor;
        let client = || Client {
            now: 0,
            works: false,
            system_ns: 0,
            attributes: HashSet::new(),
            data: HashSet::new(),
        };
        let server = Server {
            device: volume.build(slot),
            request_ns: us(processor.request_us),
            call_ns: us(processor.buffered_read_us),
            hold_ns: us(volume.write_us),
            clients: (0..count).map(|_| client()).collect(),
            sizes: HashMap::new(),
            held: HashMap::new(),
            areas: HashMap::new(),
        };
        let shared = Arc::new(Shared {
            name: PathBuf::from(format!("twin:{}", setup.name)),
            server: Mutex::new(server),
            turns: (0..count).map(|_| Condvar::new()).collect(),
        });
        let client = |number| FileClient { shared: Arc::clone(&shared), number };
        Some(FileServer { clients: (0..count as usize).map(client).collect(), shared })
    }

    pub fn clients(&self) -> &[FileClient] {
        &self.clients
    }

    /// Starts clients together: each takes turns until its [`Working`] is dropped, and needs its
    /// own thread.
    pub fn together(&self, clients: &[usize]) -> Vec<Working> {
        let mut server = self.shared.lock();
        let start = server.clients.iter().map(|client| client.now).max().unwrap_or(0);
        for &client in clients {
            let own = &mut server.clients[client];
            (own.now, own.works) = (start, true);
        }
        let of = |&client: &usize| Working { shared: Arc::clone(&self.shared), client };
        clients.iter().map(of).collect()
    }

    pub fn pause(&self, for_ns: Nanos) {
        self.shared.lock().clients.iter_mut().for_each(|client| client.now += for_ns);
    }
}

/// A client that works at the same time as others.
#[must_use]
pub struct Working {
    shared: Arc<Shared>,
    client: usize,
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut server = self.shared.lock();
        server.clients[self.client].works = false;
        self.shared.wake_next(&server);
    }
}

/// Files as one client sees them, on its clock.
pub struct FileClient {
    shared: Arc<Shared>,
    number: usize,
}

impl FileClient {
    fn refused(&self, why: &str) -> FileError {
        FileError::Refused { path: self.shared.name.clone(), why: why.into() }
    }
}

impl FileSystem for FileClient {
    type Area = ServerArea;

    fn now(&self) -> Nanos {
        self.shared.lock().clients[self.number].now
    }

    fn usage(&self) -> FileUsage {
        let system_ns = self.shared.lock().clients[self.number].system_ns;
        FileUsage { user_ns: 0, system_ns, block_bytes: None }
    }

    fn warnings(&self) -> Vec<String> {
        vec!["simulated: these are predictions, not measurements".into()]
    }

    fn open(&self, spec: &AreaSpec) -> Result<ServerArea, FileError> {
        if spec.engine == FileEngine::IoUring {
            return Err(FileError::Engine {
                engine: spec.engine.name(),
                why: "a simulated machine works on files with calls".into(),
            });
        }
        let mut server = self.shared.lock();
        let (directory, area) = if spec.joins {
            let directory = spec.locations.first().cloned().unwrap_or_default();
            let area = server.areas.get(&directory).copied();
            let area = area.ok_or_else(|| FileError::NoLocation(directory.clone()))?;
            (directory, area)
        } else {
            let area = server.areas.len() as u32;
            let directory = self.shared.name.join(area.to_string());
            server.areas.insert(directory.clone(), area);
            (directory, area)
        };
        drop(server);
        Ok(ServerArea {
            client: FileClient { shared: Arc::clone(&self.shared), number: self.number },
            directory,
            area,
            spec: spec.clone(),
            workers: Mutex::new(0),
        })
    }
}

pub struct ServerArea {
    client: FileClient,
    directory: PathBuf,
    area: u32,
    spec: AreaSpec,
    workers: Mutex<u32>,
}

impl ServerArea {
    fn each_subdirectory(&self, interrupt: &AtomicBool) -> bool {
        (0..self.spec.subdirectories).all(|subdirectory| {
            let FileClient { shared, number } = &self.client;
            shared.in_turn(*number, |server| server.change(*number, self.area, subdirectory));
            !interrupt.load(Ordering::Relaxed)
        })
    }
}

impl FileArea for ServerArea {
    type Work = ServerWork;

    fn make_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError> {
        Ok(self.each_subdirectory(interrupt))
    }

    fn remove_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError> {
        Ok(self.each_subdirectory(interrupt))
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.directory)
    }

    fn work(&self) -> Result<ServerWork, FileError> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        *workers += 1;
        if *workers > 1 {
            return Err(self.client.refused(
                "a simulated client has one thread for files; use 1 (--threads 1), and more clients",
            ));
        }
        Ok(ServerWork {
            shared: Arc::clone(&self.client.shared),
            client: self.client.number,
            area: self.area,
            directories: self.spec.subdirectories,
            branch: self.spec.branch,
        })
    }
}

pub struct ServerWork {
    shared: Arc<Shared>,
    client: usize,
    area: u32,
    directories: u32,
    branch: u32,
}

impl ServerWork {
    fn in_turn<T>(&self, work: impl FnOnce(&mut Server) -> T) -> T {
        self.shared.in_turn(self.client, work)
    }

    fn path(&self, file: FileId) -> PathBuf {
        let subdirectory = format!("s{}", file.subdirectory);
        self.shared
            .name
            .join(self.area.to_string())
            .join(subdirectory)
            .join(file.number.to_string())
    }

    fn size(&self, server: &Server, file: FileId, act: FileAct) -> Result<u64, FileError> {
        let size = server.sizes.get(&(self.area, file)).copied();
        size.ok_or_else(|| FileError::of(act, self.path(file), io::ErrorKind::NotFound.into()))
    }

    /// The server confirms that the client's copy is current.
    fn opened(&self, server: &mut Server, file: FileId, act: FileAct) -> Result<u64, FileError> {
        server.ask(self.client, Op::Read, 0);
        self.size(server, file, act)
    }

    /// The data are stable when the file is closed.
    fn send(&self, server: &mut Server, bytes: usize) {
        if bytes > 0 {
            server.ask(self.client, Op::Write, bytes as u64);
        }
    }
}

impl FileWork for ServerWork {
    fn create(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        let name = (self.area, file);
        self.in_turn(|server| {
            server.change(self.client, self.area, file.subdirectory);
            if server.sizes.insert(name, content.len() as u64).is_some() {
                let taken = io::ErrorKind::AlreadyExists.into();
                return Err(FileError::of(FileAct::Create, self.path(file), taken));
            }
            let own = &mut server.clients[self.client];
            own.attributes.insert(name);
            own.data.insert(name);
            Ok(())
        })?;
        self.in_turn(|server| self.send(server, content.len()));
        Ok(())
    }

    fn read(&mut self, file: FileId, bytes: u64) -> Result<(), FileError> {
        let got = self.in_turn(|server| self.opened(server, file, FileAct::Read))?;
        if got != bytes {
            return Err(FileError::Size { path: self.path(file), expected: bytes, got });
        }
        self.in_turn(|server| {
            if server.clients[self.client].data.insert((self.area, file)) {
                server.ask(self.client, Op::Read, bytes);
            } else {
                server.spend(self.client, server.call_ns);
            }
        });
        Ok(())
    }

    fn append(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        self.in_turn(|server| {
            self.opened(server, file, FileAct::Append)?;
            *server.sizes.entry((self.area, file)).or_default() += content.len() as u64;
            Ok::<_, FileError>(())
        })?;
        self.in_turn(|server| self.send(server, content.len()));
        Ok(())
    }

    fn delete(&mut self, file: FileId) -> Result<(), FileError> {
        let name = (self.area, file);
        self.in_turn(|server| {
            self.size(server, file, FileAct::Delete)?;
            server.change(self.client, self.area, file.subdirectory);
            server.sizes.remove(&name);
            server.forget(name);
            Ok(())
        })
    }

    fn stat(&mut self, file: FileId) -> Result<u64, FileError> {
        self.in_turn(|server| {
            if server.clients[self.client].attributes.insert((self.area, file)) {
                server.ask(self.client, Op::Read, 0);
            } else {
                server.spend(self.client, server.call_ns);
            }
            self.size(server, file, FileAct::Stat)
        })
    }

    fn open(&mut self, file: FileId) -> Result<(), FileError> {
        self.in_turn(|server| self.opened(server, file, FileAct::Open).map(drop))
    }

    fn rename(&mut self, from: FileId, to: FileId) -> Result<(), FileError> {
        self.in_turn(|server| {
            let bytes = self.size(server, from, FileAct::Rename)?;
            server.change(self.client, self.area, from.subdirectory);
            server.sizes.remove(&(self.area, from));
            server.forget((self.area, from));
            server.sizes.insert((self.area, to), bytes);
            Ok(())
        })
    }

    fn list(&mut self, _location: u32, subdirectory: u32) -> Result<u64, FileError> {
        let files = self.in_turn(|server| {
            let here =
                |(area, file): &&Name| *area == self.area && file.subdirectory == subdirectory;
            server.sizes.keys().filter(here).count()
        });
        let below = directories_below(subdirectory, self.branch, self.directories).len();
        let entries = (files + below) as u64;
        for answer in 0..entries.div_ceil(LISTED).max(1) {
            let listed = (entries - answer * LISTED).min(LISTED);
            self.in_turn(|server| server.ask(self.client, Op::Read, listed * ENTRY));
        }
        Ok(entries)
    }
}
