//! Maps requests to files and offsets.

use super::jobs::Job;
use super::regions::{end_with_holes, without_holes};
use crate::fio::options::kinds::{Distribution, FileService, Zone};
use crate::fio::options::sync_every::SyncEvery;
use machine::{Op, Request};
use own_places::{FilePlace, OwnPlaces};
use spread::Spread;
use std::sync::{Arc, Mutex, PoisonError};
use workload::{FreeMap, Normal, Permutation, SelfSimilar, Zipf, rng};

mod own_places;
mod spread;

/// The stream sees all files as one region, or a single file if they follow one another.
#[derive(Debug, Clone)]
pub(crate) struct FileTurns {
    files: u64,
    request_bytes: u64,
    /// First byte and greatest length in each file.
    part: (u64, u64),
    lengths: Arc<[u64]>,
    service: FileService,
    draw: FileDraw,
    service_run: u64,
    open: u64,
    in_row: bool,
    /// If syncs take turns.
    sync_every: SyncEvery,
    seed: u64,
    /// A sequential run and the gap after it; gap 0: none.
    stride: (u64, u64),
    zones: Vec<Zone>,
    bell: Option<Normal>,
    rounds: Option<Rounds>,
    align: u64,
    /// Requests differ in size.
    differ: bool,
    spread: Option<Arc<Spread>>,
    own_places: Option<Arc<OwnPlaces>>,
    random_percent: [u8; 2],
    /// Length of each file, and step back of sequential requests; 0: none.
    backward: (u64, u64),
    /// Both directions of a mix cover the file, with gaps.
    mixes_holes: bool,
    /// End of such a mix's pass; `None`: the size.
    ends: Option<Ends>,
    /// Not determined by the stream's offset; shared by threads.
    state: Option<Arc<Mutex<State>>>,
}

#[derive(Debug, Clone)]
enum FileDraw {
    Even(u64),
    Zipf(Zipf),
    Pareto(SelfSimilar),
    Normal(Normal),
}

/// As in fio.
const PLACES_PER_FILE: u64 = 1024;

/// The place of a rank, as in fio: an odd factor, 2^64 over the golden ratio, keeps powers of two
/// free of collisions. Of other numbers of places some have several ranks, and some none.
fn scattered(rank: u64, places: u64) -> u64 {
    rank.wrapping_mul(0x61c8_8646_80b5_83eb) % places
}

impl FileDraw {
    fn new(service: FileService, files: u64) -> FileDraw {
        let places = files * PLACES_PER_FILE;
        match service {
            FileService::Zipf(theta) => FileDraw::Zipf(Zipf::new(places, theta)),
            FileService::Pareto(h) => FileDraw::Pareto(SelfSimilar::new(places, h)),
            FileService::Normal(deviation) => {
                FileDraw::Normal(Normal::new(places, 50.0, deviation))
            }
            FileService::RoundRobin | FileService::Sequential | FileService::Random => {
                FileDraw::Even(files)
            }
        }
    }

    fn file(&self, seed: u64, number: u64) -> u64 {
        match self {
            FileDraw::Even(files) => rng::below(rng::hash(seed, number), *files),
            FileDraw::Zipf(zipf) => (zipf.draw(seed, number) - 1) / PLACES_PER_FILE,
            FileDraw::Pareto(pareto) => pareto.draw(seed, number) / PLACES_PER_FILE,
            FileDraw::Normal(normal) => normal.draw(seed, number) / PLACES_PER_FILE,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    /// Nothing is left here for another request.
    at: u64,
    passes: u64,
}

impl Ends {
    /// `None`: the cursors restart until the size is reached.
    fn new(job: &Job, len: u64, file_bytes: u64, passes: Option<u64>) -> Option<Ends> {
        let holes = (job.request_bytes(), job.options.hole_bytes);
        let at = end_with_holes(len, holes, file_bytes)?;
        Some(Ends { at, passes: passes.unwrap_or(u64::MAX) })
    }
}

#[derive(Debug, Clone, Copy)]
struct Rounds {
    requests: u64,
    places: u64,
    step: u64,
    zones: u64,
    repeats: bool,
}

impl Rounds {
    fn new(job: &Job, len: u64) -> Option<Rounds> {
        let (options, strides) = (&job.options, &job.options.strides);
        if !(options.random && strides.are_on()) {
            return None;
        }
        let request = job.request_bytes();
        // A remainder at the end too short for a zone is used.
        let range =
            if strides.range > 0 { strides.range } else { strides.size }.min(len).max(request);
        let step = range + strides.skip;
        Some(Rounds {
            requests: (strides.size / request).max(1),
            places: range / request,
            step,
            zones: (len - range.min(len)) / step + 1,
            repeats: options.no_random_map,
        })
    }
}

#[derive(Debug, Default)]
struct State {
    maps: Vec<FreeMap>,
    /// Number of a zone's visit, and its blocks.
    order: Option<(u64, Permutation)>,
    drawn: u64,
    issued: u64,
    passes: u64,
    /// The file and its consecutive requests so far.
    stay: (u64, u64),
    /// Requests so far, and next sequential offsets by direction.
    follow: (u64, [u64; 2]),
    /// Bytes read and written in each file.
    cursors: Vec<[u64; 2]>,
    places: Vec<FilePlace>,
    zone_bytes: u64,
    full: Vec<bool>,
    writes: u64,
    sync_file: Option<u32>,
}

impl FileTurns {
    /// `passes` of `None` is endless.
    pub(crate) fn new(
        job: &Job,
        files: u64,
        (part, lengths, file_bytes): ((u64, u64), &[u64], u64),
        seed: u64,
        passes: Option<u64>,
    ) -> FileTurns {
        let options = &job.options;
        let several = files > 1 && !options.random && options.service != FileService::Sequential;
        let syncs = several && options.writes && options.sync_every.any();
        let differ = files > 1
            && (job.sizes().is_some() || (options.align_bytes.is_some() && options.random));
        let drawn = several && options.service != FileService::RoundRobin;
        let spread = Spread::new(job, (part.1, lengths), passes).map(Arc::new);
        let own_places = OwnPlaces::new(job, (part.1, lengths), passes).map(Arc::new);
        let in_row = several
            && own_places.is_none()
            && (options.service_run > 1
                || drawn
                || (syncs && !differ)
                || (job.open_files().is_some() && !differ));
        let own_cursors = !options.random
            && own_places.is_none()
            && ((options.reads && options.writes) || differ || in_row || options.back_bytes > 0);
        let mixes_holes = options.hole_bytes > 0
            && options.reads
            && options.writes
            && files == 1
            && !options.random;
        let zones = match &options.distribution {
            Distribution::ManyZones(zones) if options.random => zones.clone(),
            _ => Vec::new(),
        };
        let cursors = vec![[0; 2]; if own_cursors { files as usize } else { 0 }];
        // A remainder too short for a whole request is not used.
        let request = job.request_bytes();
        let goes_on = files == 1 && !options.random && options.reads && options.writes;
        let has_rest =
            job.sizes().is_none() && part.1 >= request && !goes_on && options.hole_bytes == 0;
        let rest = if has_rest { part.1 % request } else { 0 };
        let some_follow = options.random && options.random_percent != [100; 2];
        let in_turn = files > 1 && options.service == FileService::Sequential;
        let rounds = Rounds::new(job, part.1).filter(|_| own_places.is_none());
        // With a map, each block is visited once.
        let bell = match options.distribution {
            Distribution::Normal { deviation, center }
                if options.random
                    && options.no_random_map
                    && files == 1
                    && job.sizes().is_none() =>
            {
                Some(Normal::new((part.1 / request.max(1)).max(1), center, deviation))
            }
            _ => None,
        };
        let draws = rounds.is_some()
            || bell.is_some()
            || own_cursors
            || some_follow
            || in_turn
            || differ
            || spread.is_some()
            || own_places.is_some()
            || !zones.is_empty();
        let maps = spread.as_ref().map_or(Vec::new(), |spread| spread.maps(files));
        FileTurns {
            files,
            request_bytes: request,
            part: (part.0, part.1 - rest),
            lengths: lengths.into(),
            service: options.service,
            draw: FileDraw::new(options.service, files),
            service_run: options.service_run,
            open: job.open_files().unwrap_or(files).clamp(1, files.max(1)),
            in_row,
            sync_every: if syncs { options.sync_every } else { SyncEvery::default() },
            backward: (part.1, if options.random { 0 } else { options.back_bytes }),
            ends: if mixes_holes { Ends::new(job, part.1, file_bytes, passes) } else { None },
            mixes_holes,
            seed,
            rounds,
            stride: if options.strides.are_on() && !options.random && own_places.is_none() {
                (options.strides.size, options.strides.left_out())
            } else {
                (request, if own_places.is_some() { 0 } else { options.hole_bytes })
            },
            own_places,
            zones,
            bell,
            align: options.align_bytes.unwrap_or(0).max(job.min_request_bytes()),
            differ,
            spread,
            random_percent: if options.random { options.random_percent } else { [100; 2] },
            state: draws.then(|| Arc::new(Mutex::new(State { cursors, maps, ..State::default() }))),
        }
    }

    pub(crate) fn region(&self) -> (u64, u64) {
        let in_turn = self.service == FileService::Sequential && self.files > 1;
        if self.own_places.is_none() && (in_turn || self.differ) {
            return self.part;
        }
        if self.stride.1 > 0 && !self.mixes_holes {
            return (self.part.0.saturating_mul(self.files), self.pass_bytes());
        }
        (self.part.0.saturating_mul(self.files), self.all_bytes())
    }

    fn all_bytes(&self) -> u64 {
        match &*self.lengths {
            [] => self.part.1.saturating_mul(self.files),
            lengths => lengths.iter().sum(),
        }
    }

    fn length(&self, file: usize) -> u64 {
        self.lengths.get(file).copied().unwrap_or(self.part.1)
    }

    pub(crate) fn pass_bytes(&self) -> u64 {
        if self.stride.1 > 0 && !self.mixes_holes {
            return without_holes(self.part.1, self.request_bytes, self.stride)
                .saturating_mul(self.files);
        }
        self.all_bytes()
    }

    /// `false`: the files are full, which ends the stream.
    #[inline(always)]
    pub(crate) fn place(&self, request: &mut Request) -> bool {
        if self.state.is_some() {
            return self.place_by_state(request);
        }
        self.in_turn(request)
    }

    #[inline(always)]
    fn in_turn(&self, request: &mut Request) -> bool {
        if self.files > 1 {
            let (turn, within) =
                (request.offset / self.request_bytes, request.offset % self.request_bytes);
            request.target = (turn % self.files) as u32;
            request.offset = turn / self.files * self.request_bytes + within;
        }
        if self.stride.1 > 0 {
            request.offset += (request.offset - self.part.0) / self.stride.0 * self.stride.1;
        }
        true
    }

    /// `moves` is false for a sync. As in fio, a full file gets syncs until a request finds it
    /// full.
    fn file_in_row(&self, state: &mut State, at: u64, moves: bool) -> u64 {
        let State { cursors, full, stay, .. } = state;
        full.resize(self.files as usize, false);
        let mut takes = |file: &u64| {
            let place = *file as usize;
            if moves && cursors[place].iter().sum::<u64>() >= self.part.1 {
                full[place] = true;
            }
            !full[place]
        };
        let (file, done) = *stay;
        if done > 0 && done < self.service_run && takes(&file) {
            stay.1 += 1;
            return file;
        }
        let first = match self.service {
            FileService::RoundRobin | FileService::Sequential if done == 0 => 0,
            FileService::RoundRobin | FileService::Sequential => (file + 1) % self.files,
            _ => self.draw.file(self.seed, if moves { at } else { !at }),
        };
        let next = self.in_window(first, takes);
        *stay = (next, 1);
        next
    }

    /// Finds an open file from `first` on, opening others if none takes a request; otherwise
    /// `first`.
    fn in_window(&self, first: u64, mut takes: impl FnMut(&u64) -> bool) -> u64 {
        for from in (0..self.files).step_by(self.open as usize) {
            let window = from..(from + self.open).min(self.files);
            let begins = if window.contains(&first) { first - from } else { first };
            let len = window.end - from;
            let mut turns = (0..len).map(|turn| from + (begins + turn) % len);
            if let Some(next) = turns.find(&mut takes) {
                return next;
            }
        }
        first
    }

    /// As in fio, a sync takes a request's turn and syncs its file.
    fn sync_turn(&self, state: &mut State, at: u64) {
        state.writes += 1;
        if self.sync_every.after(state.writes).is_none() {
            return;
        }
        let file = if self.in_row {
            self.file_in_row(state, at, false)
        } else {
            state.drawn += 1;
            (state.drawn - 1) % self.files
        };
        state.sync_file = Some(file as u32);
    }

    pub(crate) fn sync_file(&self, last: u32) -> u32 {
        let state = self.state.as_ref().filter(|_| self.sync_every.any());
        let state = state.map(|state| state.lock().unwrap_or_else(PoisonError::into_inner));
        match state.and_then(|state| state.sync_file) {
            Some(file) => file,
            None if self.service == FileService::Sequential => last,
            None => (last + 1) % self.files as u32,
        }
    }

    fn backward(&self, cursor: u64) -> u64 {
        let (whole, back) = self.backward;
        match cursor {
            0 => 0,
            _ => cursor.checked_sub(back).unwrap_or(whole.saturating_sub(back)),
        }
    }

    fn in_a_zone(&self, number: u64, len: u64) -> u64 {
        let drawn = rng::hash(self.seed, number);
        let chance = rng::below(drawn, 100);
        let (mut from, mut access) = (0, 0);
        let places = (self.part.1 - len) / self.align + 1;
        for zone in &self.zones {
            let to = from + u64::from(zone.share);
            access += u64::from(zone.access);
            if chance < access {
                let (low, high) =
                    (places * from / 100, (places * to / 100).max(places * from / 100 + 1));
                return (low + rng::below(rng::hash(drawn, 1), high - low)).min(places - 1)
                    * self.align;
            }
            from = to;
        }
        0
    }

    fn in_a_round(&self, rounds: Rounds, state: &mut State) -> u64 {
        let number = state.drawn;
        state.drawn += 1;
        let (zone, within) = (number / rounds.requests, number % rounds.requests);
        let place = if rounds.repeats {
            rng::below(rng::hash(self.seed, number), rounds.places)
        } else {
            // A zone that gets more requests than it has blocks is visited again.
            let pass = zone * rounds.requests.div_ceil(rounds.places) + within / rounds.places;
            if state.order.as_ref().is_none_or(|(known, _)| *known != pass) {
                state.order =
                    Some((pass, Permutation::new(rounds.places, rng::hash(self.seed, pass))));
            }
            state.order.as_ref().map_or(0, |(_, order)| order.at(within % rounds.places))
        };
        zone % rounds.zones * rounds.step + place * self.request_bytes
    }

    fn place_by_state(&self, request: &mut Request) -> bool {
        let Some(state) = &self.state else { return true };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, share) = self.part;
        if let Some(spread) = &self.spread {
            return self.place_spread(spread, &mut state, request);
        }
        if let Some(own) = &self.own_places {
            return self.place_own(own, &mut state, request);
        }
        if self.random_percent != [100; 2] {
            let side = request.op as usize;
            let (drawn, len) = (state.follow.0, u64::from(request.len));
            state.follow.0 += 1;
            if rng::below(rng::hash(self.seed, drawn), 100) >= u64::from(self.random_percent[side])
            {
                let next = state.follow.1[side].max(first);
                request.offset = if next + len > first + share { first } else { next };
            }
            state.follow.1[side] = request.offset + len;
            return true;
        }
        if let Some(rounds) = self.rounds {
            request.offset = first + self.in_a_round(rounds, &mut state);
            return true;
        }
        if let Some(bell) = &self.bell {
            let rank = bell.draw(self.seed, state.drawn);
            let places = self.part.1 / self.request_bytes;
            request.offset = first + scattered(rank, places) * self.request_bytes;
            state.drawn += 1;
            return true;
        }
        if !self.zones.is_empty() {
            request.offset = first + self.in_a_zone(state.drawn, u64::from(request.len));
            state.drawn += 1;
            return true;
        }
        let side = usize::from(request.op == Op::Write);
        if self.ends.is_some_and(|ends| state.passes >= ends.passes) {
            return false;
        }
        let ended = self.ends.is_some_and(|ends| state.cursors[0][side] >= ends.at);
        if ended || state.issued >= self.pass_bytes() {
            (state.issued, state.stay) = (0, (0, 0));
            state.full.clear();
            state.passes += 1;
            if self.ends.is_some_and(|ends| state.passes >= ends.passes) {
                return false;
            }
            if self.backward.1 == 0 {
                state.cursors.iter_mut().for_each(|cursor| *cursor = [0; 2]);
            }
        }
        let at = std::mem::replace(&mut state.issued, 0);
        state.issued = at + u64::from(request.len);
        let file = match self.service {
            FileService::Sequential => at / share,
            _ if self.in_row => self.file_in_row(&mut state, at, true),
            FileService::RoundRobin if self.differ => {
                state.drawn += 1;
                (state.drawn - 1) % self.files
            }
            FileService::RoundRobin => at / self.request_bytes % self.files,
            _ => self.draw.file(self.seed, at),
        };
        request.target = file as u32;
        if let Some(cursor) = state.cursors.get_mut(file as usize) {
            let cursor = &mut cursor[side];
            if self.backward.1 > 0 {
                *cursor = self.backward(*cursor);
            }
            if *cursor + u64::from(request.len) > share {
                // With several sizes, none may fit at the end.
                *cursor = 0;
            }
            request.offset = first + *cursor;
            // The gap after each request is not part of it.
            *cursor += u64::from(request.len)
                + if self.stride.0 == self.request_bytes { self.stride.1 } else { 0 };
        }
        if request.op == Op::Write && self.sync_every.any() {
            self.sync_turn(&mut state, at);
        }
        true
    }
}

#[cfg(test)]
mod tests;
