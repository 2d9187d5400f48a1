//! Requests overlap in virtual time and copy memory byte by byte: only illegal states raise an
//! alarm.

use super::*;
use crate::rng::SplitMix64;
use proptest::prelude::*;
use unit::Label;

const REQUEST: usize = 1024;
const BLOCKS: usize = 3;

#[derive(Clone)]
struct Write {
    block: usize,
    generation: u32,
    data: Vec<u8>,
    arrived: Vec<bool>,
    began: u64,
    ended: Option<u64>,
    done: bool,
    logged: bool,
}

struct Read {
    block: usize,
    issued: Expected,
    data: Vec<u8>,
    copied: Vec<bool>,
}

struct Model {
    random: SplitMix64,
    verifier: Verifier,
    log: Log<Vec<u8>>,
    bytes: Vec<Vec<u8>>,
    writes: Vec<Write>,
    reads: Vec<Read>,
    now: u64,
    judged: u64,
    /// Ends of writes not logged yet, if log records are delayed.
    late: Option<Vec<usize>>,
}

fn stretch(random: &mut SplitMix64) -> std::ops::Range<usize> {
    let from = random.below(REQUEST as u64) as usize;
    let len = if random.below(8) == 0 { REQUEST } else { 1 + random.below(64) as usize };
    from..(from + len).min(REQUEST)
}

impl Model {
    fn new(seed: u64) -> Model {
        let workload =
            Workload { request_bytes: REQUEST as u32, read_percent: 0, ..Workload::default() };
        let verifier = Verifier::new(&workload, (0, (BLOCKS * REQUEST) as u64), seed).unwrap();
        let mut bytes = vec![vec![0; REQUEST]; BLOCKS];
        bytes.iter_mut().for_each(|block| machine::fill_random(seed, block));
        let log = Log::create(Vec::new(), &verifier).unwrap();
        let random = SplitMix64::new(seed);
        Model {
            random,
            verifier,
            log,
            bytes,
            writes: Vec::new(),
            reads: Vec::new(),
            now: 0,
            judged: 0,
            late: None,
        }
    }

    fn offset(block: usize) -> u64 {
        (block * REQUEST) as u64
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    fn in_flight(&self) -> Vec<usize> {
        (0..self.writes.len()).filter(|&at| self.writes[at].ended.is_none()).collect()
    }

    fn begin(&mut self) {
        let block = self.below(BLOCKS);
        let mut data = vec![0; REQUEST];
        let generation = self.verifier.fill(Model::offset(block), &mut data);
        let arrived = vec![false; REQUEST];
        let (began, ended, done, logged) = (self.now, None, false, false);
        self.writes.push(Write { block, generation, data, arrived, began, ended, done, logged });
        if self.late.is_none() {
            self.log_begun(self.writes.len() - 1);
        }
    }

    fn log_begun(&mut self, at: usize) {
        let write = &mut self.writes[at];
        if !std::mem::replace(&mut write.logged, true) {
            self.log.begun(Model::offset(write.block), write.generation).unwrap();
        }
    }

    fn log_ended(&mut self, at: usize) {
        let write = &self.writes[at];
        self.log.ended(Model::offset(write.block), write.generation, write.done).unwrap();
    }

    fn arrive(&mut self, at: usize, range: std::ops::Range<usize>) {
        self.log_begun(at);
        let write = &mut self.writes[at];
        for byte in range.filter(|&byte| !std::mem::replace(&mut write.arrived[byte], true)) {
            self.bytes[write.block][byte] = write.data[byte];
        }
    }

    fn end(&mut self, at: usize, done: bool) {
        self.log_begun(at);
        if done {
            self.arrive(at, 0..REQUEST);
        } else if self.random.below(2) == 0 {
            let range = stretch(&mut self.random);
            let block = self.writes[at].block;
            let noise = self.random.next_u64();
            machine::fill_random(noise, &mut self.bytes[block][range]);
        }
        let write = &mut self.writes[at];
        (write.ended, write.done) = (Some(self.now), done);
        self.verifier.wrote(Model::offset(write.block), write.generation, done);
        // A failure is logged at once. A kill before that would make the bytes it left look like
        // damage: the log cannot know of the failure.
        match &mut self.late {
            Some(late) if done => late.push(at),
            _ => self.log_ended(at),
        }
    }

    fn issue(&mut self, block: usize) {
        let issued = self.verifier.expected(Model::offset(block));
        self.reads.push(Read {
            block,
            issued,
            data: vec![0; REQUEST],
            copied: vec![false; REQUEST],
        });
    }

    fn copy(&mut self, at: usize, range: std::ops::Range<usize>) {
        let read = &mut self.reads[at];
        for byte in range.filter(|&byte| !std::mem::replace(&mut read.copied[byte], true)) {
            read.data[byte] = self.bytes[read.block][byte];
        }
    }

    fn complete(&mut self, at: usize) -> Vec<Fault> {
        self.copy(at, 0..REQUEST);
        let Read { block, issued, data, .. } = self.reads.swap_remove(at);
        let mut faults = Vec::new();
        self.judged += self.verifier.check(Model::offset(block), &data, issued, &mut faults);
        faults
    }

    fn step(&mut self, fails: bool) -> Vec<Fault> {
        self.now += 1;
        let in_flight = self.in_flight();
        if let Some(late) = self.late.as_mut().filter(|late| !late.is_empty()) {
            let at = self.random.below(late.len() as u64 * 2) as usize;
            if at < late.len() {
                let ended = late.swap_remove(at);
                self.log_ended(ended);
            }
        }
        match self.below(8) {
            0 if in_flight.len() < 4 => self.begin(),
            1 if self.reads.len() < 3 => {
                let block = self.below(BLOCKS);
                self.issue(block);
            }
            2 | 3 if !in_flight.is_empty() => {
                let (at, range) =
                    (in_flight[self.below(in_flight.len())], stretch(&mut self.random));
                self.arrive(at, range);
            }
            4 if !in_flight.is_empty() => {
                let at = in_flight[self.below(in_flight.len())];
                let done = !(fails && self.random.below(4) == 0);
                self.end(at, done);
            }
            5 | 6 if !self.reads.is_empty() => {
                let (at, range) = (self.below(self.reads.len()), stretch(&mut self.random));
                self.copy(at, range);
            }
            7 if !self.reads.is_empty() => {
                let at = self.below(self.reads.len());
                return self.complete(at);
            }
            _ => {}
        }
        Vec::new()
    }

    fn look(&mut self, block: usize) -> Vec<Fault> {
        self.issue(block);
        self.complete(self.reads.len() - 1)
    }

    /// Returns the writes that may be left, and whether older data may be.
    fn legal(&self, block: usize) -> (Vec<&Write>, bool) {
        let writes = || self.writes.iter().filter(|write| write.block == block);
        let replaced = |ended: u64| writes().any(|other| other.done && other.began > ended);
        let legal = writes().filter(|write| !write.ended.is_some_and(replaced)).collect();
        (legal, !writes().any(|write| write.done))
    }

    fn illegal_states_are_found(&mut self) -> Result<(), TestCaseError> {
        for block in 0..BLOCKS {
            let offset = Model::offset(block);
            let (legal, before) = self.legal(block);
            let legal: Vec<Write> = legal.into_iter().cloned().collect();
            let unknown = before || legal.iter().any(|write| write.ended.is_some() && !write.done);
            let sound = self.bytes[block].clone();
            for write in self.writes.clone().into_iter().filter(|write| write.block == block) {
                self.bytes[block].copy_from_slice(&write.data);
                let right = legal.iter().any(|other| other.generation == write.generation);
                prop_assert_eq!(
                    self.look(block).is_empty(),
                    right,
                    "generation {} of {}",
                    write.generation,
                    block
                );
            }
            // A write that belongs to another block.
            let elsewhere = self
                .writes
                .iter()
                .find(|write| write.block != block)
                .map(|write| write.data.clone());
            if let Some(data) = elsewhere {
                self.bytes[block].copy_from_slice(&data);
                let kinds: Vec<FaultKind> =
                    self.look(block).iter().map(|fault| fault.kind).collect();
                prop_assert_eq!(kinds, vec![FaultKind::Misdirected]);
            }
            // A generation that was never issued.
            for (at, unit) in self.bytes[block].chunks_exact_mut(UNIT).enumerate() {
                let offset = offset + (at * UNIT) as u64;
                Label { seed: self.verifier.seed, offset, generation: 1000 }.write(unit);
            }
            prop_assert!(!self.look(block).is_empty());
            if !unknown {
                // Bytes of no allowed write.
                for write in &legal {
                    let at = self.below(REQUEST);
                    self.bytes[block].copy_from_slice(&write.data);
                    self.bytes[block][at] ^= 1 << self.below(8);
                    let mixture = legal.iter().any(|other| other.data[at] == self.bytes[block][at]);
                    prop_assert_eq!(self.look(block).is_empty(), mixture, "byte {}", at);
                }
                self.bytes[block].fill(0);
                prop_assert!(!self.look(block).is_empty(), "zeros");
            }
            self.bytes[block] = sound;
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn overlapping_requests_are_judged_by_what_they_may_have_left(seed: u64, steps in 0usize..300, fails: bool, killed: bool, late: bool) {
        let mut model = Model::new(seed);
        model.late = late.then(Vec::new);
        for _ in 0..steps {
            prop_assert_eq!(model.step(fails), vec![]);
        }
        while !model.reads.is_empty() {
            prop_assert_eq!(model.complete(0), vec![]);
        }
        if !killed {
            for at in model.in_flight() {
                model.now += 1;
                model.end(at, true);
            }
        }
        for at in model.in_flight() {
            let range = stretch(&mut model.random);
            model.arrive(at, range);
        }
        let (resumed, _) = Verifier::resume(model.log.written()).unwrap();
        for block in (0..BLOCKS).filter(|_| !late) {
            let (now, offset) = (model.verifier.expected(Model::offset(block)), Model::offset(block));
            prop_assert_eq!(&resumed.expected(offset), &now, "the log says the same");
            let again = Log::create(Vec::new(), &resumed).unwrap();
            prop_assert_eq!(&Verifier::resume(again.written()).unwrap().0.expected(offset), &now, "and so does a log of that");
        }
        if killed {
            model.verifier = resumed;
        }
        for block in 0..BLOCKS {
            prop_assert_eq!(model.look(block), vec![]);
        }
        // Late records make more writes overlap, so the log knows less.
        if !(late && killed) {
            model.illegal_states_are_found()?;
        }
    }
}

/// Only first and failed writes are not judged.
#[test]
fn overlapping_requests_are_judged() {
    let mut model = Model::new(7);
    for block in 0..BLOCKS {
        let (mut data, offset) = (vec![0; REQUEST], Model::offset(block));
        let generation = model.verifier.fill(offset, &mut data);
        model.bytes[block] = data;
        model.verifier.wrote(offset, generation, true);
    }
    let mut reads = 0;
    for _ in 0..20_000 {
        let before = model.reads.len();
        assert_eq!(model.step(false), []);
        reads += u64::from(model.reads.len() < before);
    }
    assert!(reads > 1000);
    assert_eq!(model.judged, reads * REQUEST as u64);
}
