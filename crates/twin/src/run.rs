//! One run of a simulated computer: its event loop, and the askers in it.

use crate::disk::geometry::SECTOR;
use crate::volume::Layout;
use crate::world::{Event, Owner, World};
use machine::{Access, Asker, Completion, Error, Nanos, Next, Result, Stability};

/// One run: the askers and what they wait for.
pub(crate) struct Run<'a, A> {
    world: &'a mut World,
    askers: &'a mut [A],
    /// The machine's clock when the world's showed zero.
    began: Nanos,
    size: u64,
    /// One call at a time: an asker waits for each request.
    blocking: bool,
    /// Offsets and lengths are multiples of it.
    align: u64,
    /// Why a request cannot be made; the run ends there.
    refused: Option<Error>,
    /// Askers that are not done.
    left: usize,
    done: Vec<bool>,
    /// When each asker's next wake is scheduled.
    wakes: Vec<Nanos>,
    /// Askers that wait for stable storage, and since when.
    syncing: Vec<(u32, Nanos, Stability)>,
    /// Those of them whose data the devices are about to have.
    synced: Vec<(u32, Nanos)>,
    /// Bytes of one member, for askers that have one to themselves.
    member_size: u64,
    last: Nanos,
}

impl<'a, A: Asker> Run<'a, A> {
    /// A run of a volume of `size` bytes that begins when the machine's clock shows `began`.
    pub(crate) fn new(world: &'a mut World, askers: &'a mut [A], access: &Access, began: Nanos, size: u64) -> Self {
        let count = askers.len();
        Run {
            member_size: size / u64::from(world.layout().members),
            world,
            askers,
            began,
            size,
            blocking: !access.engine.is_async(),
            align: if access.buffering.is_direct() { SECTOR } else { 1 },
            refused: None,
            left: count,
            done: vec![false; count],
            wakes: vec![Nanos::MAX; count],
            syncing: Vec::new(),
            synced: Vec::new(),
            last: 0,
        }
    }

    /// Runs the askers to their end. Returns the time of the last completion.
    pub(crate) fn go(mut self) -> Result<Nanos> {
        self.all();
        match self.refused {
            Some(error) => Err(error),
            None if self.left > 0 => {
                Err(Error::Unsupported(format!("{} streams wait for something that will never happen on this machine", self.left)))
            }
            None => Ok(self.last),
        }
    }

    fn all(&mut self) {
        for asker in self.askers.iter_mut() {
            asker.begin(self.began);
        }
        for asker in 0..self.askers.len() as u32 {
            self.ask(asker);
        }
        while self.left > 0 && self.refused.is_none() {
            let Some(event) = self.world.kernel.take() else { return };
            match event {
                Event::Deliver(number) => self.deliver(number),
                Event::Wake(asker) => {
                    self.wakes[asker as usize] = Nanos::MAX;
                    self.ask(asker);
                }
                Event::Synced(asker) => self.synced(asker),
                event => self.world.handle(event),
            }
            if !self.syncing.is_empty() && self.world.clean() {
                self.stable();
            }
        }
    }

    fn deliver(&mut self, number: u32) {
        let request = self.world.finish(number);
        self.last = self.world.kernel.now();
        let completion = Completion { slot: request.slot, result: request.len as i32 };
        self.askers[request.asker as usize].complete(completion, self.began + self.last);
        self.ask(request.asker);
    }

    /// Everything written is on its way out of the caches: who waited for that learns of it when the devices have it too.
    fn stable(&mut self) {
        let done = self.world.flush_devices();
        for (asker, since, stability) in std::mem::take(&mut self.syncing) {
            match stability {
                Stability::Data => self.world.kernel.at(done, Event::Synced(asker)),
                // What the log says of the data is true only once the data are there.
                Stability::File => self.world.log(done, Owner::SyncLog(asker)),
            }
            self.synced.push((asker, since));
        }
        self.world.flushed();
    }

    fn synced(&mut self, asker: u32) {
        let Some(index) = self.synced.iter().position(|&(other, _)| other == asker) else { return };
        let (_, since) = self.synced.swap_remove(index);
        self.last = self.world.kernel.now();
        self.askers[asker as usize].synced(self.began + since, self.began + self.last);
        self.ask(asker);
    }

    fn waits_for_sync(&self, asker: u32) -> bool {
        self.syncing.iter().any(|&(other, _, _)| other == asker) || self.synced.iter().any(|&(other, _)| other == asker)
    }

    /// Takes all that an asker wants now.
    fn ask(&mut self, number: u32) {
        let index = number as usize;
        if (!self.syncing.is_empty() || !self.synced.is_empty()) && self.waits_for_sync(number) {
            return;
        }
        if let Some(stability) = self.askers[index].sync_due() {
            self.syncing.push((number, self.world.kernel.now(), stability));
            self.world.flush();
            if self.world.clean() {
                self.stable();
            }
            return;
        }
        loop {
            let now = self.world.kernel.now();
            match self.askers[index].next(self.began + now) {
                Next::Issue(request) => {
                    if self.issue(number, request) && self.blocking {
                        return;
                    }
                }
                Next::WaitUntil(until) => {
                    let until = until.saturating_sub(self.began).max(now + 1);
                    if until < self.wakes[index] {
                        self.wakes[index] = until;
                        self.world.kernel.at(until, Event::Wake(number));
                    }
                    return;
                }
                Next::WaitForCompletion => return,
                Next::Done => {
                    if !std::mem::replace(&mut self.done[index], true) {
                        self.left -= 1;
                    }
                    return;
                }
            }
        }
    }

    /// A target ends where it ends: a request across the end is cut there, one beyond it does nothing. Returns whether one is under way.
    fn issue(&mut self, asker: u32, mut request: machine::Request) -> bool {
        let member = self.askers[asker as usize].member();
        let size = if member.is_some() { self.member_size } else { self.size };
        let room = size.saturating_sub(request.offset);
        if room == 0 || request.len == 0 {
            let now = self.began + self.world.kernel.now();
            self.askers[asker as usize].complete(Completion { slot: request.slot, result: 0 }, now);
            return false;
        }
        if !request.offset.is_multiple_of(self.align) || !u64::from(request.len).is_multiple_of(self.align) {
            let what = format!("a direct request of {} bytes at {}", request.len, request.offset);
            let mend = format!("give multiples of {} bytes, or go through the cache", self.align);
            self.refused = Some(Error::refused(what, "a device takes whole blocks", mend));
            return true;
        }
        request.len = request.len.min(room.min(u64::from(u32::MAX)) as u32);
        if let Some(member) = member {
            request.offset = Layout::on_member(member, request.offset);
        }
        self.world.issue(asker, request);
        true
    }
}
