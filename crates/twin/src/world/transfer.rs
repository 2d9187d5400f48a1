use super::{Owner, Transfer, World};
use crate::cpu::Work;
use crate::device::{Command, Host, Outcome};
use crate::event::{Event, Wake};
use crate::volume::{Kind, Maker, Piece, Plan};
use machine::{Nanos, Op};

impl World {
    pub(crate) fn transfer(
        &mut self,
        at: Nanos,
        owner: Owner,
        op: Op,
        offset: u64,
        bytes: u64,
        durable: bool,
    ) {
        let record = Transfer {
            owner,
            op,
            offset,
            bytes,
            durable,
            pending: 0,
            combined: false,
            second: false,
            copied: false,
            crossed: None,
            rows: None,
            joined: Vec::new(),
        };
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
        if !self.has_rows(number) {
            return;
        }
        if self.transfers[number].copied {
            return self.end_transfer(number);
        }
        let mut plan = std::mem::take(&mut self.plan);
        self.plan_transfer(number, &mut plan);
        let Transfer { op, second, .. } = self.transfers[number];
        if op == Op::Write {
            // An array reads the old data while it receives the new.
            self.crosses(number, true);
        }
        // A full-row write needs parity before its first writes, a partial one before its second.
        let parity_now =
            op == Op::Write && plan.parity_bytes > 0 && (plan.second.is_empty() || second);
        if let Some(at) = parity_now.then(|| self.combine(number, plan.parity_bytes)).flatten() {
            self.kernel.at(at, Event::Launch(number));
        } else {
            self.send_pieces(number, if second { &plan.second } else { &plan.first });
        }
        self.plan = plan;
    }

    fn plan_transfer(&self, number: u32, plan: &mut Plan) {
        let Transfer { owner, op, offset, bytes, .. } = self.transfers[number];
        let file = self.files.of(offset);
        if owner == Owner::Rebuild {
            file.layout.rebuild(plan);
        } else {
            file.plan(op, offset, bytes, owner.is_metadata(), plan);
        }
    }

    /// Runs once per transfer; returns when, if the host computes it.
    fn combine(&mut self, number: u32, parity_bytes: u64) -> Option<Nanos> {
        if std::mem::replace(&mut self.transfers[number].combined, true)
            || !self.host_parity(self.transfers[number].offset)
        {
            return None;
        }
        let cost = parity_bytes * self.costs.parity_fs / super::FS;
        let Transfer { op, bytes, .. } = self.transfers[number];
        // No program thread waits for reconstruction of a failed member's data.
        let new = if op == Op::Write { bytes } else { 0 };
        let charged = (new * self.costs.parity_charged_fs / super::FS).min(cost);
        self.cpu.work(Work::System, self.now(), charged);
        Some(self.cpu.work(Work::Uncharged, self.now(), cost - charged))
    }

    pub(super) fn host_parity(&self, offset: u64) -> bool {
        self.maker == Maker::Host && self.files.of(offset).layout.kind == Kind::Raid5
    }

    /// Each piece after the first passes through the drivers separately.
    fn work_on_pieces(&mut self, number: u32, pieces: &[Piece]) {
        if self.maker != Maker::Host || pieces.len() < 2 {
            return;
        }
        let more = pieces.len() as u64 - 1;
        let Transfer { op, offset, .. } = self.transfers[number];
        // Internal work of a parity volume is charged to no program.
        let what = if op == Op::Write && self.host_parity(offset) {
            Work::Uncharged
        } else {
            Work::System
        };
        self.cpu.work(what, self.now(), more * self.costs.paging);
    }

    fn send_pieces(&mut self, number: u32, pieces: &[Piece]) {
        self.work_on_pieces(number, pieces);
        let (limit, durable, now) =
            (self.fs.command_bytes, self.transfers[number].durable, self.now());
        // A file system queues its journal a block at a time.
        let metadata = self.transfers[number].owner.is_metadata();
        let queued_bytes = if metadata { u64::from(self.fs.block_bytes) } else { u64::MAX };
        let count: u64 = pieces.iter().map(|piece| piece.bytes.div_ceil(limit)).sum();
        self.transfers[number].pending = count as u32;
        let client = match self.transfers[number].owner {
            Owner::Request(request) | Owner::Through(request) => {
                self.clients.get(self.requests[request].source as usize).copied()
            }
            _ => None,
        };
        let mut before = 0;
        for piece in pieces {
            let at = self.arrived(number, before, piece);
            before += piece.bytes;
            let (mut offset, end) = (piece.offset, piece.offset + piece.bytes);
            while offset < end {
                let bytes = limit.min(end - offset);
                let command = Command {
                    transfer: number,
                    device: piece.member,
                    op: piece.op,
                    offset,
                    bytes,
                    queued: bytes.div_ceil(queued_bytes),
                    durable,
                    since: at.max(now),
                    client,
                };
                let command = self.commands.insert(command);
                if at > now {
                    self.kernel.at(at, Event::Send(command));
                } else {
                    self.send(piece.member, command);
                }
                offset += bytes;
            }
        }
    }

    pub(super) fn send(&mut self, number: u32, command: u32) {
        let now = self.now();
        let member = &mut self.members[number as usize];
        if member.flying == 0 {
            member.busy_since = now;
        }
        member.flying += 1;
        member.waiting.push_back(command);
        self.advance(number);
    }

    fn advance(&mut self, number: u32) {
        let World { members, kernel, commands, buses, pci, array, .. } = self;
        let pci = array.as_mut().map_or(pci, |array| &mut array.memory);
        let member = &mut members[number as usize];
        if member.inside >= member.queue {
            return;
        }
        let Some(&front) = member.waiting.front() else { return };
        let waited = kernel.now().saturating_sub(commands[front].since);
        let mut host = Host { kernel, commands, buses, pci, number };
        if member.device.accept(front, &mut host) {
            *member.usage.queue_ns.get_or_insert(0) += waited;
            member.waiting.pop_front();
            member.inside += 1;
        }
    }

    pub(super) fn device_event(&mut self, number: u32, wake: Wake) {
        let World { members, kernel, commands, buses, pci, array, .. } = self;
        let pci = array.as_mut().map_or(pci, |array| &mut array.memory);
        let member = &mut members[number as usize];
        let mut host = Host { kernel, commands, buses, pci, number };
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

    /// The next device gets the bus before the previous holder continues.
    pub(super) fn bus_free(&mut self, number: u32) {
        let bus = &mut self.buses[number as usize];
        let ended = bus.holder.take();
        if let Some((next, connect)) = bus.waiting.pop_front() {
            let World { members, kernel, commands, buses, pci, array, .. } = self;
            let pci = array.as_mut().map_or(pci, |array| &mut array.memory);
            let member = &mut members[next as usize];
            let mut host = Host { kernel, commands, buses, pci, number: next };
            host.connect(number, connect, member.device.as_mut());
        }
        if let Some((device, wake)) = ended {
            self.device_event(device, wake);
        }
    }

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
        let Transfer { op, second, owner, offset, .. } = self.transfers[number];
        let (mut more, mut parity_bytes) = (false, 0);
        if owner == Owner::Rebuild || matches!(self.files.of(offset).layout.kind, Kind::Raid5) {
            let mut plan = std::mem::take(&mut self.plan);
            self.plan_transfer(number, &mut plan);
            (more, parity_bytes) = (!plan.second.is_empty() && !second, plan.parity_bytes);
            self.plan = plan;
        }
        if more {
            self.transfers[number].second = true;
            return self.launch(number);
        }
        if op == Op::Read {
            // A failed member's data are reconstructed from the others, and all of it goes to the
            // host.
            let combined = if parity_bytes > 0 { self.combine(number, parity_bytes) } else { None };
            let crossed = self.crosses(number, false).map(|(_, across)| across);
            if let Some(at) = combined.into_iter().chain(crossed).max() {
                self.transfers[number].copied = true;
                return self.kernel.at(at, Event::Launch(number));
            }
        }
        self.end_transfer(number);
    }

    pub(crate) fn end_transfer(&mut self, number: u32) {
        let transfer = &mut self.transfers[number];
        let (owner, offset, bytes, rows) =
            (transfer.owner, transfer.offset, transfer.bytes, transfer.rows.take());
        let joined = std::mem::take(&mut transfer.joined);
        self.transfers.release(number);
        if let Some(rows) = rows {
            self.give_rows(&rows);
        }
        if joined.is_empty() {
            return self.transfer_done(owner, offset, bytes);
        }
        for (owner, offset, bytes) in joined {
            self.transfer_done(owner, offset, bytes);
        }
    }
}
