//! From transfers of the volume to commands of its members, and back.

use super::{Owner, Transfer, World};
use crate::device::{Command, Host, Outcome};
use crate::event::{Event, Wake};
use crate::volume::{Parity, Piece};
use machine::{Nanos, Op};

impl World {
    /// Begins a transfer at `at`.
    pub(crate) fn transfer(&mut self, at: Nanos, owner: Owner, op: Op, offset: u64, bytes: u64, durable: bool) {
        let record =
            Transfer { owner, op, offset, bytes, durable, pending: 0, combined: false, second: false, copied: false };
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
        let file = self.files.of(transfer.offset);
        file.plan(transfer.op, transfer.offset, transfer.bytes, transfer.owner.is_log(), &mut plan);
        // Parity of whole rows is needed before the first write, of parts before the second.
        let parity_now = plan.second.is_empty() || transfer.second;
        if plan.parity_bytes > 0 && parity_now && !transfer.combined && file.layout.parity == Some(Parity::Host) {
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
                let command = Command {
                    transfer: number,
                    device: piece.member,
                    op: piece.op,
                    offset,
                    bytes,
                    durable,
                    since: now,
                };
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
        member.waiting.push_back(command);
        self.advance(number);
    }

    /// Offers a device the next command that waits for it.
    fn advance(&mut self, number: u32) {
        let World { members, kernel, commands, buses, pci, .. } = self;
        let member = &mut members[number as usize];
        if member.inside >= member.queue {
            return;
        }
        let Some(&front) = member.waiting.front() else { return };
        let mut host = Host { kernel, commands, buses, pci, number, inside: member.inside + 1 };
        if member.device.accept(front, &mut host) {
            member.waiting.pop_front();
            member.inside += 1;
        }
    }

    pub(super) fn device_event(&mut self, number: u32, wake: Wake) {
        let World { members, kernel, commands, buses, pci, .. } = self;
        let member = &mut members[number as usize];
        let mut host = Host { kernel, commands, buses, pci, number, inside: member.inside };
        match member.device.event(wake, &mut host) {
            Outcome::Nothing => return,
            Outcome::Ready => {}
            Outcome::Done(command) => {
                member.inside -= 1;
                self.command_done(command);
            }
        }
        self.advance(number);
    }

    /// A connection ends: the next device has the bus before the one that had it goes on.
    pub(super) fn bus_free(&mut self, number: u32) {
        let bus = &mut self.buses[number as usize];
        let ended = bus.holder.take();
        if let Some((next, connect)) = bus.waiting.pop_front() {
            let World { members, kernel, commands, buses, pci, .. } = self;
            let member = &mut members[next as usize];
            let mut host = Host { kernel, commands, buses, pci, number: next, inside: member.inside };
            host.connect(number, connect, member.device.as_mut());
        }
        if let Some((device, wake)) = ended {
            self.device_event(device, wake);
        }
    }

    /// The host has the end of a command.
    pub(super) fn command_done(&mut self, index: u32) {
        let now = self.now();
        let command = self.commands[index];
        self.commands.release(index);
        let member = &mut self.members[command.device as usize];
        member.flying -= 1;
        if member.flying == 0 {
            member.usage.busy_ns += now - member.busy_since;
        }
        member.usage.weighted_ns += now - command.since;
        let (count, bytes) = match command.op {
            Op::Read => (&mut member.usage.reads, &mut member.usage.read_bytes),
            Op::Write => (&mut member.usage.writes, &mut member.usage.write_bytes),
        };
        *count += 1;
        *bytes += command.bytes;
        let transfer = &mut self.transfers[command.transfer];
        transfer.pending -= 1;
        if transfer.pending == 0 {
            self.pieces_done(command.transfer);
        }
    }

    fn pieces_done(&mut self, number: u32) {
        let transfer = &self.transfers[number];
        let file = self.files.of(transfer.offset);
        if transfer.op == Op::Write && file.layout.parity.is_some() && !transfer.second {
            let mut plan = std::mem::take(&mut self.plan);
            file.plan(transfer.op, transfer.offset, transfer.bytes, transfer.owner.is_log(), &mut plan);
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
        let Transfer { owner, offset, bytes, .. } = self.transfers[number];
        self.transfers.release(number);
        self.transfer_done(owner, offset, bytes);
    }
}
