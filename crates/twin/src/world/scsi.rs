//! Adapter, bus and drive: how a command travels.
//!
//! A connection holds the bus from arbitration to bus free. Nothing can come between, so its phases are computed when the bus is
//! granted, and one event ends it.

use super::{Device, Event, World};
use crate::bus::{Connect, Outcome, Phase};
use crate::disk::geometry::SECTOR;
use crate::disk::read_cache::Lookup;
use crate::disk::{Chore, Disk, Media, MediaWork};
use machine::{Nanos, Op};

impl World {
    fn disk(&mut self, member: u32) -> Option<&mut Disk> {
        match &mut self.members[member as usize].device {
            Device::Disk(disk) => Some(disk),
            _ => None,
        }
    }

    /// Sends the next command to a disk if it can take one.
    pub(super) fn try_send(&mut self, member: u32) {
        let now = self.kernel.now();
        let Device::Disk(disk) = &mut self.members[member as usize].device else { return };
        if disk.sending || disk.inside >= disk.queue_limit {
            return;
        }
        let Some(&front) = disk.to_send.front() else { return };
        let command = &self.commands[front];
        if command.op == Op::Write && !disk.has_room(command.bytes) {
            return;
        }
        disk.sending = true;
        // The last part of a recovery is spent on the bus, in selection.
        let from = disk.free_at.saturating_sub(disk.firmware.select_wait);
        if from > now {
            self.kernel.at(from, Event::TrySend(member));
        } else {
            let bus = disk.bus;
            self.want_bus(bus, Connect::Select(member));
        }
    }

    pub(super) fn try_again(&mut self, member: u32) {
        if let Some(disk) = self.disk(member) {
            disk.sending = false;
        }
        self.try_send(member);
    }

    fn want_bus(&mut self, bus: u32, connect: Connect) {
        if self.buses[bus as usize].busy {
            self.buses[bus as usize].waiting.push_back(connect);
        } else {
            self.grant(bus, connect);
        }
    }

    fn grant(&mut self, number: u32, connect: Connect) {
        self.buses[number as usize].busy = true;
        let (until, outcome) = match connect {
            Connect::Select(member) => self.selected(number, member),
            Connect::Reselect(command) => self.reselected(number, command),
        };
        self.kernel.at(until, Event::BusFree(number, outcome));
    }

    /// The adapter has the bus and sends a disk its next command. Returns the end of the connection and what it came to.
    fn selected(&mut self, number: u32, member: u32) -> (Nanos, Outcome) {
        let now = self.kernel.now();
        let bus = &mut self.buses[number as usize];
        let Device::Disk(disk) = &mut self.members[member as usize].device else { unreachable!("only disks are on a bus") };
        let Some(index) = disk.to_send.pop_front() else { unreachable!("a selection has its command") };
        let command = self.commands[index];
        let (times, phases) = (bus.times, &mut bus.phases);
        disk.inside += 1;
        disk.sending = false;
        let mut t = now + phases.add(Phase::Arbitrate, times.arbitrate) + phases.add(Phase::ArbitrateWin, times.arbitrate_win);
        let answer = disk.free_at.saturating_sub(t);
        t += phases.add(Phase::Select, times.select + answer) + phases.add(Phase::SelectEnd, times.select_end);
        t += phases.add(Phase::MessageOut, times.message_out) + phases.add(Phase::Command, times.command);
        let (lba, end) = (command.offset / SECTOR, (command.offset + command.bytes).div_ceil(SECTOR));
        if command.op == Op::Write {
            t += phases.add(Phase::MessageIn, disk.firmware.write);
            let done = self.pci.transfer(command.bytes, t).max(t + times.data(command.bytes, true));
            t += phases.add(Phase::DataOut, done - t) + phases.add(Phase::DataEnd, times.data_end);
            disk.take_room(command.bytes);
            if disk.wce && !command.durable {
                t += phases.add(Phase::Status, times.status) + phases.add(Phase::MessageIn, times.complete);
                disk.free_at = t + disk.firmware.write_recover;
                disk.pending.push(MediaWork { lba, end, write: true, command: None, since: t });
                self.kernel.at(t, Event::Media(member));
                return (t, Outcome::Done(index));
            }
            t += phases.add(Phase::MessageIn, times.disconnect);
            return (t, Outcome::Received(index));
        }
        let queue = disk.firmware.queue * u64::from(disk.inside - 1);
        t += phases.add(Phase::MessageIn, disk.firmware.read + queue);
        let sending = times.data(command.bytes, false);
        let found = disk.cache.lookup(&disk.geometry, lba, end, t, sending);
        if matches!(found, Lookup::Hit { again: false, .. }) {
            // The head went there for it, before or now.
            disk.media_busy += disk.geometry.end(end) - disk.geometry.start(lba);
        }
        match found {
            // Coming back costs more than a short wait.
            Lookup::Hit { ready, again } if ready <= t + times.disconnect + times.identify => {
                let again = if again { disk.firmware.reread } else { 0 };
                let wait = (ready - t) + again;
                t += phases.add(Phase::MessageIn, wait);
                let done = self.pci.transfer(command.bytes, t).max(t + sending);
                t += phases.add(Phase::DataIn, done - t) + phases.add(Phase::DataEnd, times.data_end);
                let floor = (now + answer + disk.firmware.read_floor).saturating_sub(t + times.status + times.complete);
                t += phases.add(Phase::MessageIn, floor);
                t += phases.add(Phase::Status, times.status) + phases.add(Phase::MessageIn, times.complete);
                disk.cache.taken(&disk.geometry, lba, end, t);
                disk.free_at = t + disk.firmware.read_recover;
                (t, Outcome::Done(index))
            }
            Lookup::Hit { ready, .. } => {
                t += phases.add(Phase::MessageIn, times.disconnect);
                self.kernel.at(ready.max(t), Event::Reselect(index));
                (t, Outcome::Disconnected(index))
            }
            Lookup::Miss => {
                t += phases.add(Phase::MessageIn, times.disconnect);
                disk.pending.push(MediaWork { lba, end, write: false, command: Some(index), since: t });
                self.kernel.at(t, Event::Media(member));
                (t, Outcome::Disconnected(index))
            }
        }
    }

    /// A drive is back on the bus: the data of a read and its status, or the status of a write.
    fn reselected(&mut self, number: u32, index: u32) -> (Nanos, Outcome) {
        let now = self.kernel.now();
        let command = self.commands[index];
        let bus = &mut self.buses[number as usize];
        let Device::Disk(disk) = &mut self.members[command.member as usize].device else { unreachable!("only disks are on a bus") };
        let (times, phases) = (bus.times, &mut bus.phases);
        let mut t = now + phases.add(Phase::Arbitrate, times.arbitrate) + phases.add(Phase::ArbitrateWin, times.arbitrate_win);
        t += phases.add(Phase::Reselect, times.reselect) + phases.add(Phase::SelectEnd, times.select_end);
        t += phases.add(Phase::MessageIn, times.identify);
        if command.op == Op::Read {
            let done = self.pci.transfer(command.bytes, t).max(t + times.data(command.bytes, false));
            t += phases.add(Phase::DataIn, done - t) + phases.add(Phase::DataEnd, times.data_end);
            let (lba, end) = (command.offset / SECTOR, (command.offset + command.bytes).div_ceil(SECTOR));
            disk.cache.taken(&disk.geometry, lba, end, t);
        }
        t += phases.add(Phase::Status, times.status) + phases.add(Phase::MessageIn, times.complete);
        let recover = if command.op == Op::Read { disk.firmware.read_recover } else { disk.firmware.write_recover };
        disk.free_at = disk.free_at.max(t + recover);
        (t, Outcome::Done(index))
    }

    pub(super) fn bus_free(&mut self, number: u32, outcome: Outcome) {
        self.buses[number as usize].busy = false;
        let (Outcome::Done(index) | Outcome::Disconnected(index) | Outcome::Received(index)) = outcome;
        let member = self.commands[index].member;
        if let Some(next) = self.buses[number as usize].waiting.pop_front() {
            self.grant(number, next);
        }
        let half = self.disk(member).map_or(0, |disk| disk.firmware.half_turnaround);
        match outcome {
            Outcome::Done(_) => {
                if let Some(disk) = self.disk(member) {
                    disk.inside -= 1;
                }
                self.command_done(index);
            }
            Outcome::Received(_) => {
                if let Some(disk) = self.disk(member) {
                    disk.chores.push_back(Chore { command: index, written: false, left: half });
                }
                self.do_chores(member);
            }
            Outcome::Disconnected(_) => {}
        }
        self.try_send(member);
    }

    pub(super) fn reselect(&mut self, index: u32) {
        let member = self.commands[index].member;
        if let Some(bus) = self.disk(member).map(|disk| disk.bus) {
            self.want_bus(bus, Connect::Reselect(index));
        }
    }

    /// Sends the head to the next work if it is free.
    pub(super) fn media_start(&mut self, member: u32) {
        let now = self.kernel.now();
        let Device::Disk(disk) = &mut self.members[member as usize].device else { return };
        if disk.media != Media::Free || disk.pending.is_empty() {
            return;
        }
        let held = disk.prefetch_holds_until(now);
        if held > now {
            disk.media = Media::Held;
            self.kernel.at(held, Event::MediaRelease(member));
            return;
        }
        let Some(work) = disk.pick(now) else { return };
        let end = if work.write { disk.begin_write(&work, now) } else { disk.begin_read(&work, now) };
        disk.media = Media::Busy(work, end);
        disk.media_busy += end - now;
        let bus = disk.bus;
        if let (false, Some(index)) = (work.write, work.command) {
            let sending = self.buses[bus as usize].times.data(self.commands[index].bytes, false);
            self.kernel.at(end.saturating_sub(sending).max(now), Event::Reselect(index));
        }
        self.kernel.at(end, Event::MediaDone(member));
    }

    pub(super) fn media_release(&mut self, member: u32) {
        if let Some(disk) = self.disk(member) {
            disk.media = Media::Free;
        }
        self.media_start(member);
    }

    pub(super) fn media_done(&mut self, member: u32) {
        let Some(disk) = self.disk(member) else { return };
        if let Media::Busy(work, _) = disk.media
            && work.write
        {
            disk.give_room((work.end - work.lba) * SECTOR);
            if let Some(command) = work.command {
                let left = disk.firmware.half_turnaround;
                disk.chores.push_back(Chore { command, written: true, left });
            }
        }
        disk.media = Media::Free;
        self.media_start(member);
        self.do_chores(member);
        self.try_send(member);
    }

    /// Lets the drive's processor go on, unless the platter needs it.
    fn do_chores(&mut self, member: u32) {
        let now = self.kernel.now();
        let Device::Disk(disk) = &mut self.members[member as usize].device else { return };
        let Some(chore) = disk.chores.front_mut().filter(|_| !disk.working) else { return };
        if let Media::Busy(MediaWork { write: true, command: Some(_), .. }, end) = disk.media {
            let attention = end.saturating_sub(disk.firmware.attention);
            if now + chore.left > attention {
                chore.left -= attention.saturating_sub(now).min(chore.left);
                return;
            }
        }
        disk.working = true;
        let done = now + chore.left;
        self.kernel.at(done, Event::Firmware(member));
    }

    pub(super) fn chore_done(&mut self, member: u32) {
        let now = self.kernel.now();
        let Some(disk) = self.disk(member) else { return };
        disk.working = false;
        let Some(chore) = disk.chores.pop_front() else { return };
        if chore.written {
            self.reselect(chore.command);
        } else {
            let command = self.commands[chore.command];
            let (lba, end) = (command.offset / SECTOR, (command.offset + command.bytes).div_ceil(SECTOR));
            if let Some(disk) = self.disk(member) {
                disk.pending.push(MediaWork { lba, end, write: true, command: Some(chore.command), since: now });
            }
            self.media_start(member);
        }
        self.do_chores(member);
    }
}
