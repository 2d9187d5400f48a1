//! Offsets that depend on earlier requests to the same file.
//!
//! As in fio, the bytes of a zone are counted over all files; then only the file whose turn it is
//! moves to its next zone.

use super::spread::{DRAWS, PlaceDraw};
use super::{FileTurns, State};
use crate::fio::options::kinds::{Distribution, FileService};
use crate::fio::plan::jobs::Job;
use machine::{Op, Request};
use workload::{Permutation, SizeDraw, rng};

#[derive(Debug, Clone)]
pub(crate) struct OwnPlaces {
    zones: Option<Zones>,
    random: bool,
    /// One if files are alike; empty: places are equally likely.
    draws: Vec<PlaceDraw>,
    /// Uses each block once before any again.
    covers: bool,
    /// A file at its end has no turn until the next pass.
    ends: bool,
    /// As in fio, with time_based a used-up file begins again by itself.
    renews: bool,
    passes: u64,
    /// One of this many requests is random, others follow; 1: chance decides.
    run: u64,
    /// They do not follow: they have the same offset.
    stays: bool,
    stream_draws: bool,
    sizes: [SizeDraw; 2],
    /// As in fio, the file begins again if this gap reaches its end.
    hole: u64,
    unit: u64,
}

#[derive(Debug, Clone, Copy)]
struct Zones {
    size: u64,
    range: u64,
    skip: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct FilePlace {
    zone: u64,
    /// Where each direction continues.
    next: [u64; 2],
    /// With the number of used blocks.
    order: Option<(Permutation, u64)>,
    is_done: bool,
}

impl OwnPlaces {
    /// `None`: the stream's own offsets are right.
    pub(super) fn new(
        job: &Job,
        (len, lengths): (u64, &[u64]),
        passes: Option<u64>,
    ) -> Option<OwnPlaces> {
        let differ = !lengths.is_empty();
        if (!differ && !job.has_own_places()) || job.spreads() {
            return None;
        }
        let options = &job.options;
        let strides = &options.strides;
        let unit = job.min_request_bytes();
        let even = options.distribution == Distribution::Uniform;
        let stream_draws = options.run > 1
            && !(options.run_stays() && even)
            && job.file_count() == 1
            && job.sizes().is_none();
        let draw = |&len: &u64| PlaceDraw::new(&options.distribution, (len / unit).max(1));
        let draws = match lengths {
            _ if even || stream_draws || !options.random => Vec::new(),
            [] => vec![draw(&len)],
            lengths => lengths.iter().map(draw).collect(),
        };
        let range = if strides.range > 0 { strides.range } else { strides.size };
        let zones = Zones { size: strides.size, range: range.max(1), skip: strides.skip };
        Some(OwnPlaces {
            zones: strides.are_on().then_some(zones),
            random: options.random,
            draws,
            // As in fio, other distributions have no map.
            covers: !options.no_random_map && even,
            ends: !options.strides.are_on() && (job.varies_in_order() || differ),
            renews: options.time_based,
            // The bytes end a job whose requests stay.
            passes: passes.filter(|_| !options.run_stays()).unwrap_or(u64::MAX),
            run: options.run,
            stays: options.run_stays(),
            stream_draws,
            sizes: options.blocks.each_ref().map(SizeDraw::new),
            hole: if options.random { 0 } else { options.hole_bytes },
            unit,
        })
    }
}

impl FileTurns {
    /// `None`: no block is left.
    fn file_of_own(&self, state: &mut State) -> Option<usize> {
        let number = state.drawn;
        state.drawn += 1;
        let places = &state.places;
        let is_done = |file: u64| places[file as usize].is_done;
        let (file, runs) = state.stay;
        let next = if runs > 0 && runs < self.service_run && !is_done(file) {
            (file, runs + 1)
        } else {
            let first = match self.service {
                FileService::RoundRobin if runs > 0 => file + 1,
                FileService::RoundRobin | FileService::Sequential => 0,
                _ => self.draw.file(self.seed, !number),
            };
            let file = self.in_window(first % self.files, |&file| !is_done(file));
            (Some(file).filter(|&file| !is_done(file))?, 1)
        };
        state.stay = next;
        Some(next.0 as usize)
    }

    pub(super) fn place_own(
        &self,
        own: &OwnPlaces,
        state: &mut State,
        request: &mut Request,
    ) -> bool {
        state.places.resize_with(self.files as usize, FilePlace::default);
        let mut begins = false;
        let (file, offset) = loop {
            let Some(file) = self.file_of_own(state) else {
                state.passes += 1;
                // A pass without room for a single request is the last one.
                if begins || state.passes >= own.passes {
                    return false;
                }
                begins = true;
                state.places = vec![FilePlace::default(); self.files as usize];
                state.stay = (0, 0);
                continue;
            };
            if let Some(offset) = self.offset_in(own, state, file, request) {
                break (file, offset);
            }
            state.places[file].is_done = true;
        };
        (request.target, request.offset) = (file as u32, self.part.0 + offset);
        if request.op == Op::Write && self.sync_every.any() {
            state.writes += 1;
            if self.sync_every.after(state.writes).is_some() {
                state.sync_file = self.file_of_own(state).map(|file| file as u32);
            }
        }
        true
    }

    /// `None`: no block is left.
    fn offset_in(
        &self,
        own: &OwnPlaces,
        state: &mut State,
        file: usize,
        request: &mut Request,
    ) -> Option<u64> {
        let (side, len) = (request.op as usize, u64::from(request.len));
        let share = self.length(file);
        if len > share {
            return None;
        }
        let chance = rng::hash(self.seed, state.drawn);
        let State { places, zone_bytes, follow: (requests, _), .. } = state;
        let place = &mut places[file];
        let mut end = share;
        if let Some(Zones { size, range, skip }) = own.zones {
            if *zone_bytes >= size {
                *zone_bytes = 0;
                place.zone += range + skip;
                if place.zone + len > share {
                    place.zone = 0;
                }
                place.next[side] = place.zone;
            }
            if place.next[side] >= place.zone + range {
                place.next[side] = place.zone;
            }
            if zone_bytes.is_multiple_of(range) {
                (place.next, place.order) = ([place.zone; 2], None);
            }
            end = share.min(place.zone + range);
        }
        let is_random = match own.run {
            1 => rng::below(chance, 100) < u64::from(self.random_percent[side]),
            run => requests.is_multiple_of(run),
        };
        let mut next = place.next[side];
        if own.hole > 0 && (1..share).contains(&next) {
            next += own.hole;
            if next >= share {
                next = 0;
            }
        }
        let left = share.saturating_sub(next);
        if (own.stays || own.ends && !own.random) && left >= own.unit && len > left {
            // As in fio, a size that fits is drawn.
            let again = (0..DRAWS).map(|draw| own.sizes[side].at(rng::hash(chance, draw)));
            let fits = again.map(u64::from).find(|&len| len <= left);
            request.len = fits.unwrap_or(left / own.unit * own.unit) as u32;
        }
        let follows = u64::from(request.len) <= left;
        let offset = if own.random && own.stream_draws && (is_random || !follows) {
            request.offset - self.part.0
        } else if own.random && (is_random || !follows) {
            let blocks = ((end - place.zone) / own.unit).max(1);
            let block = match own.draws.get(file).or(own.draws.first()) {
                Some(draw) => draw.place(self.seed, (file as u64, *requests), blocks),
                None => place.block(own, rng::hash(chance, 1), blocks)?,
            };
            let drawn = block * own.unit;
            // As in fio, a request shrinks to fit at the end of a file.
            request.len = request.len.min((share - place.zone - drawn) as u32);
            place.zone + drawn
        } else if follows {
            next
        } else if own.ends {
            return None;
        } else {
            place.zone
        };
        *requests += 1;
        *zone_bytes += u64::from(request.len);
        place.next[side] = if own.stays { offset } else { offset + u64::from(request.len) };
        Some(offset)
    }
}

impl FilePlace {
    fn block(&mut self, own: &OwnPlaces, drawn: u64, blocks: u64) -> Option<u64> {
        if !own.covers {
            return Some(rng::below(drawn, blocks));
        }
        if own.renews && self.order.as_ref().is_some_and(|(_, used)| *used >= blocks) {
            self.order = None;
        }
        let (order, used) = self.order.get_or_insert_with(|| (Permutation::new(blocks, drawn), 0));
        *used += 1;
        (*used <= blocks).then(|| order.at(*used - 1))
    }
}
