//! Nothing interrupts a connection, so its phases are computed when the bus is granted, and one
//! event ends it.

use super::geometry::SECTOR;
use super::read_cache::Lookup;
use super::{Chore, Disk, Media, MediaWork};
use crate::bus::{Connect, Phase};
use crate::device::{Command, Device, Host, Outcome};
use crate::event::{Event, Wake};
use machine::{Nanos, Op};

const SEND: u8 = 0;
const DONE: u8 = 1;
const DISCONNECTED: u8 = 2;
/// The drive may begin to write.
const RECEIVED: u8 = 3;
const RESELECT: u8 = 4;
const MEDIA: u8 = 5;
const MEDIA_DONE: u8 = 6;
const MEDIA_RELEASE: u8 = 7;
const CHORE_DONE: u8 = 8;

impl Device for Disk {
    fn capacity_bytes(&self) -> u64 {
        self.geometry.sectors() * SECTOR
    }

    fn queue(&self) -> u32 {
        self.queue_limit
    }

    fn rest(&mut self, _idle: Nanos) {
        self.cache.clear();
        self.chores.clear();
        self.pending.clear();
        self.media = Media::Free;
        self.selecting.clear();
        self.working = false;
        (self.free_at, self.head_lba, self.write_used, self.media_busy) = (0, 0, 0, 0);
        (self.list, self.media_end, self.left_bus, self.reads) = (0, 0, 0, 0);
    }

    fn accept(&mut self, number: u32, host: &mut Host<'_>) -> bool {
        let command = &host.commands[number];
        // If the drive answers late and does not turn the adapter away, the adapter sends commands
        // in the order it received them.
        if !(self.selecting.is_empty() || self.firmware.select_wait > 0) {
            return false;
        }
        if command.op == Op::Read {
            if self.reads >= self.reads_limit {
                return false;
            }
            self.reads += 1;
        } else {
            if !self.has_room(command.bytes) {
                return false;
            }
            self.take_room(command.bytes);
        }
        self.selecting.push_back(number);
        self.select(host);
        true
    }

    fn event(&mut self, wake: Wake, host: &mut Host<'_>) -> Outcome {
        match wake.what {
            SEND => self.select(host),
            DONE => {
                if host.commands[wake.command].op == Op::Read {
                    self.reads -= 1;
                }
                return Outcome::Done(wake.command);
            }
            DISCONNECTED => return Outcome::Ready,
            RECEIVED => {
                let left = self.firmware.half_turnaround;
                self.chores.push_back(Chore { command: wake.command, written: false, left });
                self.do_chores(host);
                return Outcome::Ready;
            }
            RESELECT => host.want_bus(self.bus, Connect::Reselect(wake.command), self),
            MEDIA => self.media_start(host),
            MEDIA_DONE => {
                self.media_done(host);
                return Outcome::Ready;
            }
            MEDIA_RELEASE => {
                self.media = Media::Free;
                self.media_start(host);
            }
            CHORE_DONE => self.chore_done(host),
            _ => {}
        }
        Outcome::Nothing
    }

    fn granted(&mut self, connect: Connect, host: &mut Host<'_>) -> (Nanos, Wake) {
        let (until, wake) = match connect {
            Connect::Select => self.selected(host),
            Connect::Reselect(command) => self.reselected(command, host),
        };
        self.left_bus = until;
        (until, wake)
    }

    fn dirty(&self, before: Nanos) -> bool {
        let cached =
            |work: &MediaWork| work.write && work.command.is_none() && work.since <= before;
        self.pending.iter().any(cached)
            || matches!(&self.media, Media::Busy(work, _) if cached(work))
    }

    fn busy(&self, ran: Nanos) -> Vec<(&'static str, Nanos)> {
        vec![("disk mechanics", self.media_busy.min(ran))]
    }
}

impl Disk {
    fn select(&mut self, host: &mut Host<'_>) {
        // The last part of recovery is spent on the bus, in selection.
        let from = self.free_at.saturating_sub(self.firmware.select_wait);
        if from > host.now() {
            host.wake(from, Wake::device(SEND));
        } else {
            host.want_bus(self.bus, Connect::Select, self);
        }
    }

    fn selected(&mut self, host: &mut Host<'_>) -> (Nanos, Wake) {
        let now = host.now();
        let Some(index) = self.selecting.pop_front() else {
            return (now, Wake::device(DISCONNECTED));
        };
        let command = host.commands[index];
        let end = |what: u8| Wake { what, command: index };
        let bus = &mut host.buses[self.bus as usize];
        let (times, phases, stalled) = (bus.times, &mut bus.phases, &mut bus.stalled);
        let mut t = now
            + phases.add(Phase::Arbitrate, times.arbitrate)
            + phases.add(Phase::ArbitrateWin, times.arbitrate_win);
        // Back to back: the drive is still working on the previous command.
        let behind =
            now <= self.left_bus.max(self.free_at.saturating_sub(self.firmware.select_wait));
        let cycle = if behind { self.firmware.queued_cycle } else { 0 };
        let answer = self.free_at.saturating_sub(t);
        t += phases.add(Phase::Select, times.select + answer)
            + phases.add(Phase::SelectEnd, times.select_end);
        t += phases.add(Phase::MessageOut, times.message_out)
            + phases.add(Phase::Command, times.command);
        let (lba, last) = blocks(&command);
        if command.op == Op::Write {
            let queued = if behind { self.firmware.queued_write } else { 0 };
            t += phases.add(Phase::MessageIn, self.firmware.write + queued);
            if self.caches(&command) {
                self.free_at = now + answer + queued + cycle;
                let resting = self.media == Media::Free && self.pending.is_empty();
                if resting && self.firmware.write_rest > 0 {
                    t += phases.add(Phase::MessageIn, times.disconnect);
                    host.wake(t + self.firmware.write_rest, end(RESELECT));
                    return (t, end(DISCONNECTED));
                }
                return (self.receive(&command, t, host), end(DONE));
            }
            let arrival = t;
            let done = host.pci.data_phase((self.bus, &times, stalled), command.bytes, true, t);
            t += phases.add(Phase::DataOut, done - t) + phases.add(Phase::DataEnd, times.data_end);
            t += phases.add(Phase::MessageIn, times.disconnect);
            if !self.writes_on_arrival {
                return (t, end(RECEIVED));
            }
            host.wake(arrival, end(RECEIVED));
            return (t, end(DISCONNECTED));
        }
        self.free_at = now + answer + self.firmware.read_cycle.max(cycle);
        t += phases.add(Phase::MessageIn, self.firmware.read);
        let sending = times.data(command.bytes, false);
        if command.since <= self.left_bus {
            self.cache.resume_stream();
        } else if now > self.left_bus + self.geometry.revolution() {
            self.cache.end_stream(&self.geometry, now);
        }
        let writing = matches!(&self.media, Media::Busy(work, _) if work.write);
        let found = if writing && !self.answers_during_writes {
            Lookup::Miss
        } else {
            self.cache.lookup(&self.geometry, lba, last, t, sending, self.restarts())
        };
        if matches!(found, Lookup::Hit { again: false, .. }) {
            // The head has moved, or moves, for this command.
            self.media_busy += self.geometry.end(last) - self.geometry.start(lba);
        }
        match found {
            // A short wait is cheaper than a disconnect and a reselection.
            Lookup::Hit { ready, searched, .. }
                if ready <= t + times.disconnect + times.identify =>
            {
                let search = if searched { self.firmware.reread } else { 0 };
                let wait = (ready - t) + search;
                t += phases.add(Phase::MessageIn, wait);
                let done =
                    host.pci.data_phase((self.bus, &times, stalled), command.bytes, false, t);
                t += phases.add(Phase::DataIn, done - t)
                    + phases.add(Phase::DataEnd, times.data_end);
                let floor = (now + answer + self.firmware.read_floor)
                    .saturating_sub(t + times.status + times.complete);
                t += phases.add(Phase::MessageIn, floor);
                t += phases.add(Phase::Status, times.status)
                    + phases.add(Phase::MessageIn, times.complete);
                self.cache.taken(&self.geometry, lba, last, t, self.restarts());
                self.free_at = self.free_at.max(t + self.firmware.read_recover);
                return (t, end(DONE));
            }
            Lookup::Hit { ready, .. } => {
                t += phases.add(Phase::MessageIn, times.disconnect);
                host.wake(ready.max(t), end(RESELECT));
            }
            Lookup::Miss => {
                t += phases.add(Phase::MessageIn, times.disconnect);
                self.pending.push(MediaWork {
                    lba,
                    end: last,
                    write: false,
                    command: Some(index),
                    since: t,
                });
                host.wake(t, Wake::device(MEDIA));
            }
        }
        (t, end(DISCONNECTED))
    }

    fn caches(&self, command: &Command) -> bool {
        command.op == Op::Write && self.wce && !command.durable
    }

    /// Takes the data of a cached write; returns the end of the connection.
    fn receive(&mut self, command: &Command, from: Nanos, host: &mut Host<'_>) -> Nanos {
        let bus = &mut host.buses[self.bus as usize];
        let (times, phases, stalled) = (bus.times, &mut bus.phases, &mut bus.stalled);
        let done = host.pci.data_phase((self.bus, &times, stalled), command.bytes, true, from);
        let t = done
            + phases.add(Phase::DataEnd, times.data_end)
            + phases.add(Phase::Status, times.status)
            + phases.add(Phase::MessageIn, times.complete);
        phases.add(Phase::DataOut, done - from);
        self.free_at = self.free_at.max(t + self.firmware.write_recover);
        let (lba, end) = blocks(command);
        self.pending.push(MediaWork { lba, end, write: true, command: None, since: t });
        host.wake(t, Wake::device(MEDIA));
        t
    }

    fn restarts(&self) -> bool {
        self.prefetches_on_idle_hits || self.reads > 1
    }

    fn reselected(&mut self, index: u32, host: &mut Host<'_>) -> (Nanos, Wake) {
        let command = host.commands[index];
        let bus = &mut host.buses[self.bus as usize];
        let (times, phases, stalled) = (bus.times, &mut bus.phases, &mut bus.stalled);
        let mut t = host.kernel.now()
            + phases.add(Phase::Arbitrate, times.arbitrate)
            + phases.add(Phase::ArbitrateWin, times.arbitrate_win);
        t += phases.add(Phase::Reselect, times.reselect)
            + phases.add(Phase::SelectEnd, times.select_end);
        t += phases.add(Phase::MessageIn, times.identify);
        if self.caches(&command) {
            return (self.receive(&command, t, host), Wake { what: DONE, command: index });
        }
        if command.op == Op::Read {
            let done = host.pci.data_phase((self.bus, &times, stalled), command.bytes, false, t);
            t += phases.add(Phase::DataIn, done - t) + phases.add(Phase::DataEnd, times.data_end);
            let (lba, last) = blocks(&command);
            self.cache.taken(&self.geometry, lba, last, t, self.restarts());
        }
        t += phases.add(Phase::Status, times.status) + phases.add(Phase::MessageIn, times.complete);
        let recover = if command.op == Op::Read {
            self.firmware.read_recover
        } else {
            self.firmware.write_recover
        };
        self.free_at = self.free_at.max(t + recover);
        (t, Wake { what: DONE, command: index })
    }

    fn media_start(&mut self, host: &mut Host<'_>) {
        let now = host.now();
        if self.media != Media::Free || self.pending.is_empty() {
            return;
        }
        self.serve_what_was_read(host);
        if self.pending.is_empty() {
            return;
        }
        let held = self.prefetch_holds_until(now);
        if held > now {
            self.media = Media::Held;
            host.wake(held, Wake::device(MEDIA_RELEASE));
            return;
        }
        let Some(work) = self.pick(now) else { return };
        let end =
            if work.write { self.begin_write(&work, now) } else { self.begin_read(&work, now) };
        self.media = Media::Busy(work, end);
        self.media_busy += end - now;
        if let (false, Some(command)) = (work.write, work.command) {
            let sending =
                host.buses[self.bus as usize].times.data(host.commands[command].bytes, false);
            host.wake(end.saturating_sub(sending).max(now), Wake { what: RESELECT, command });
        }
        host.wake(end, Wake::device(MEDIA_DONE));
    }

    fn serve_what_was_read(&mut self, host: &mut Host<'_>) {
        let now = host.now();
        let times = host.buses[self.bus as usize].times;
        let restarts = self.restarts();
        let (geometry, cache) = (&self.geometry, &mut self.cache);
        self.pending.retain(|work| {
            let Some(command) = work.command.filter(|_| !work.write && work.since <= now) else {
                return true;
            };
            let sending = times.data(host.commands[command].bytes, false);
            let Lookup::Hit { ready, .. } =
                cache.lookup(geometry, work.lba, work.end, now, sending, restarts)
            else {
                return true;
            };
            host.kernel
                .at(ready.max(now), Event::Device(host.number, Wake { what: RESELECT, command }));
            false
        });
    }

    fn media_done(&mut self, host: &mut Host<'_>) {
        if let Media::Busy(work, _) = self.media
            && work.write
        {
            self.give_room((work.end - work.lba) * SECTOR);
            if let Some(command) = work.command {
                self.chores.push_back(Chore {
                    command,
                    written: true,
                    left: self.firmware.half_turnaround,
                });
            }
        }
        self.media = Media::Free;
        self.media_start(host);
        self.do_chores(host);
    }

    fn do_chores(&mut self, host: &mut Host<'_>) {
        let now = host.now();
        let Some(chore) = self.chores.front_mut().filter(|_| !self.working) else { return };
        if let Media::Busy(MediaWork { write: true, command: Some(_), .. }, end) = self.media {
            let attention = end.saturating_sub(self.firmware.attention);
            if now + chore.left > attention {
                chore.left -= attention.saturating_sub(now).min(chore.left);
                return;
            }
        }
        self.working = true;
        host.wake(now + chore.left, Wake::device(CHORE_DONE));
    }

    fn chore_done(&mut self, host: &mut Host<'_>) {
        self.working = false;
        let Some(Chore { command, written, .. }) = self.chores.pop_front() else { return };
        if written {
            host.want_bus(self.bus, Connect::Reselect(command), self);
        } else {
            let (lba, end) = blocks(&host.commands[command]);
            self.pending.push(MediaWork {
                lba,
                end,
                write: true,
                command: Some(command),
                since: host.now(),
            });
            self.media_start(host);
        }
        self.do_chores(host);
    }
}

fn blocks(command: &Command) -> (u64, u64) {
    (command.offset / SECTOR, (command.offset + command.bytes).div_ceil(SECTOR))
}
