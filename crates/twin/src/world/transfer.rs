//! From transfers of the volume to commands of its members, and back.

use super::{Command, Device, Event, Owner, Transfer, World};
use crate::volume::{Parity, Piece};
use machine::{Nanos, Op};

impl World {
    /// Begins a transfer at `at`.
    pub(crate) fn transfer(&mut self, at: Nanos, owner: Owner, op: Op, offset: u64, bytes: u64, durable: bool) {
        let record = Transfer { owner, op, offset, bytes, durable, pending: 0, combined: false, second: false, copied: false };
        let number = self.transfers.insert(record);
        if at <= self.now() {
            self.launch(number);
        } else {
            self.kernel.at(at, Event::Launch(number));
        }
    }

    pub(super) fn launch(&mut self, number: u32) {
        if self.ram_cache.is_some() && self.through_ram_cache(number) {
            return;
        }
        let mut plan = std::mem::take(&mut self.plan);
        let transfer = &self.transfers[number];
        self.layout.plan(transfer.op, transfer.offset, transfer.bytes, &mut plan);
        // Parity of whole rows is needed before the first write, of parts before the second.
        let parity_now = plan.second.is_empty() || transfer.second;
        if plan.parity_bytes > 0 && parity_now && !transfer.combined && self.layout.parity == Some(Parity::Host) {
            self.transfers[number].combined = true;
            let at = self.cpu.work(self.now(), plan.parity_bytes * self.costs.parity_fs / super::FS);
            self.kernel.at(at, Event::Launch(number));
        } else {
            let pieces = if self.transfers[number].second { &plan.second } else { &plan.first };
            self.send_pieces(number, pieces);
        }
        self.plan = plan;
    }

    fn send_pieces(&mut self, number: u32, pieces: &[Piece]) {
        let (limit, durable, now) = (self.fs.command_bytes, self.transfers[number].durable, self.now());
        let count: u64 = pieces.iter().map(|piece| piece.bytes.div_ceil(limit)).sum();
        self.transfers[number].pending = count as u32;
        for piece in pieces {
            let (mut offset, end) = (piece.offset, piece.offset + piece.bytes);
            while offset < end {
                let bytes = limit.min(end - offset);
                let command = Command { transfer: number, member: piece.member, op: piece.op, offset, bytes, durable, since: now };
                let command = self.commands.insert(command);
                self.send(piece.member, command);
                offset += bytes;
            }
        }
    }

    fn send(&mut self, number: u32, command: u32) {
        let now = self.now();
        let member = &mut self.members[number as usize];
        if member.flying == 0 {
            member.busy_since = now;
        }
        member.flying += 1;
        if let Device::Disk(disk) = &mut member.device {
            disk.to_send.push_back(command);
            self.try_send(number);
        } else {
            member.waiting.push_back(command);
            self.serve(number);
        }
    }

    /// Devices that need no events of their own say at once when they are done.
    fn serve(&mut self, number: u32) {
        let now = self.kernel.now();
        let member = &mut self.members[number as usize];
        if let Device::Virtio(virtio) = &mut member.device
            && virtio.disk().batched
        {
            if !member.waiting.is_empty()
                && let Some(at) = virtio.wake(now)
            {
                self.kernel.at(at, Event::Ring(number));
            }
            return;
        }
        while member.inside < member.queue {
            let Some(index) = member.waiting.pop_front() else { return };
            let command = self.commands[index];
            member.inside += 1;
            let Command { op, offset, bytes, durable, .. } = command;
            let done = match &mut member.device {
                Device::Flash(flash) => flash.submit(now, op, offset, bytes, durable),
                Device::Cloud(cloud) => cloud.submit(now, op, bytes),
                Device::Virtio(virtio) => virtio.submit(now, op, bytes, durable),
                Device::Disk(_) => now,
            };
            self.kernel.at(done, Event::CommandDone(index));
        }
    }

    /// A hypervisor takes what is in the ring and comes back when all of it is done.
    pub(super) fn look_at_ring(&mut self, number: u32) {
        let now = self.kernel.now();
        let member = &mut self.members[number as usize];
        let Device::Virtio(virtio) = &mut member.device else { return };
        let batch = member.waiting.len().min(member.queue as usize);
        if batch == 0 {
            virtio.sleep();
            return;
        }
        let mut done = now;
        for index in member.waiting.iter().take(batch) {
            let Command { op, bytes, durable, .. } = self.commands[*index];
            done = done.max(virtio.serve(now, op, bytes, durable));
        }
        let told = virtio.interrupt(done);
        for index in member.waiting.drain(..batch) {
            member.inside += 1;
            self.kernel.at(told, Event::CommandDone(index));
        }
        self.kernel.at(done, Event::Ring(number));
    }

    pub(super) fn served(&mut self, index: u32) {
        let member = self.commands[index].member;
        self.members[member as usize].inside -= 1;
        self.command_done(index);
        self.serve(member);
    }

    /// The host has the end of a command.
    pub(super) fn command_done(&mut self, index: u32) {
        let now = self.now();
        let command = self.commands[index];
        self.commands.release(index);
        let member = &mut self.members[command.member as usize];
        member.flying -= 1;
        if member.flying == 0 {
            member.busy += now - member.busy_since;
        }
        self.device.weighted_ns += now - command.since;
        match command.op {
            Op::Read => {
                self.device.reads += 1;
                self.device.read_bytes += command.bytes;
            }
            Op::Write => {
                self.device.writes += 1;
                self.device.write_bytes += command.bytes;
            }
        }
        let transfer = &mut self.transfers[command.transfer];
        transfer.pending -= 1;
        if transfer.pending == 0 {
            self.pieces_done(command.transfer);
        }
    }

    fn pieces_done(&mut self, number: u32) {
        let transfer = &self.transfers[number];
        if transfer.op == Op::Write && self.layout.parity.is_some() && !transfer.second {
            let mut plan = std::mem::take(&mut self.plan);
            self.layout.plan(transfer.op, transfer.offset, transfer.bytes, &mut plan);
            let more = !plan.second.is_empty();
            self.plan = plan;
            if more {
                self.transfers[number].second = true;
                self.launch(number);
                return;
            }
        }
        self.end_transfer(number);
    }

    pub(crate) fn end_transfer(&mut self, number: u32) {
        let (owner, bytes) = (self.transfers[number].owner, self.transfers[number].bytes);
        self.transfers.release(number);
        self.transfer_done(owner, bytes);
    }
}
