//! Random offsets of requests that differ in size or exceed their alignment.

use super::{FileTurns, State, scattered};
use crate::fio::options::kinds::{Distribution, FileService};
use crate::fio::plan::jobs::Job;
use machine::{Op, Request};
use workload::{FreeMap, Normal, SelfSimilar, SizeDraw, Zipf, rng};

#[derive(Debug, Clone)]
pub(crate) struct Spread {
    align: u64,
    min_bytes: u64,
    /// One if all are alike.
    files: Vec<Places>,
    sizes: [SizeDraw; 2],
    /// As in fio, no byte is used twice in a pass; requests shrink to the free space.
    covers: bool,
    /// As in fio, with time_based a full file begins again by itself.
    renews: bool,
    passes: u64,
}

#[derive(Debug, Clone)]
struct Places {
    count: u64,
    draw: PlaceDraw,
}

#[derive(Debug, Clone)]
pub(super) enum PlaceDraw {
    Even,
    Zipf(Zipf),
    Pareto(SelfSimilar),
    Normal(Normal),
}

impl PlaceDraw {
    pub(super) fn new(distribution: &Distribution, places: u64) -> PlaceDraw {
        match *distribution {
            Distribution::Zipf(theta) => PlaceDraw::Zipf(Zipf::new(places, theta)),
            Distribution::Pareto(h) => PlaceDraw::Pareto(SelfSimilar::new(places, h)),
            Distribution::Normal { deviation, center } => {
                PlaceDraw::Normal(Normal::new(places, center, deviation))
            }
            Distribution::Uniform | Distribution::Zones { .. } | Distribution::ManyZones(_) => {
                PlaceDraw::Even
            }
        }
    }

    pub(super) fn place(&self, seed: u64, (file, number): (u64, u64), places: u64) -> u64 {
        let (rank, first) = match self {
            PlaceDraw::Even => return rng::below(rng::hash(seed, number), places),
            PlaceDraw::Zipf(zipf) => (zipf.draw(seed, number) - 1, Some(file)),
            PlaceDraw::Pareto(pareto) => (pareto.draw(seed, number), Some(file)),
            PlaceDraw::Normal(normal) => (normal.draw(seed, number), None),
        };
        // As in fio, the most popular place is anywhere, but the middle of a bell stays.
        let first = first.map_or(0, |file| rng::below(rng::hash(seed, !file), places));
        (scattered(rank, places) + first) % places
    }
}

/// Attempts to draw a size that fits, before a request takes all that is left.
pub(super) const DRAWS: u64 = 64;

impl Spread {
    pub(crate) fn new(
        job: &Job,
        (len, lengths): (u64, &[u64]),
        passes: Option<u64>,
    ) -> Option<Spread> {
        if !job.spreads() {
            return None;
        }
        let min = job.min_request_bytes();
        let align = job.options.align_bytes.unwrap_or(min).max(1);
        let places = |&len: &u64| {
            let count = match min > align {
                true => len.saturating_sub(min) / align + 1,
                false => len / align,
            };
            // Of files that differ, some may have no room.
            let count =
                if lengths.is_empty() { count.max(1) } else { count * u64::from(len >= min) };
            Places { count, draw: PlaceDraw::new(&job.options.distribution, count.max(1)) }
        };
        let files = match lengths {
            [] => vec![places(&len)],
            lengths => lengths.iter().map(places).collect(),
        };
        Some(Spread {
            align,
            min_bytes: min,
            files,
            sizes: job.options.blocks.each_ref().map(SizeDraw::new),
            covers: job.covers(),
            renews: job.options.time_based,
            passes: passes.unwrap_or(u64::MAX),
        })
    }

    pub(crate) fn maps(&self, files: u64) -> Vec<FreeMap> {
        let count = if self.covers { files } else { 0 };
        (0..count).map(|file| FreeMap::new(self.places(file).count)).collect()
    }

    fn places(&self, file: u64) -> &Places {
        self.files.get(file as usize).unwrap_or(&self.files[0])
    }
}

impl FileTurns {
    fn file_of_spread(&self, spread: &Spread, state: &State, number: u64) -> u64 {
        let turn = number / self.service_run.max(1);
        let first = match self.service {
            FileService::RoundRobin => turn % self.open,
            FileService::Sequential if state.maps.is_empty() => self.file_at(state.issued),
            FileService::Sequential => 0,
            _ => self.draw.file(self.seed, !turn),
        };
        let left = |file: &u64| match state.maps.get(*file as usize) {
            Some(map) => !map.is_full(),
            None => spread.places(*file).count > 0,
        };
        self.in_window(first, left)
    }

    fn file_at(&self, at: u64) -> u64 {
        let mut at = at % self.all_bytes().max(1);
        let files = (0..self.files).find(|&file| {
            let length = self.length(file as usize);
            at.checked_sub(length).map(|rest| at = rest).is_none()
        });
        files.unwrap_or(0)
    }

    /// May shrink the request.
    pub(super) fn place_spread(
        &self,
        spread: &Spread,
        state: &mut State,
        request: &mut Request,
    ) -> bool {
        if spread.covers && state.maps.iter().all(FreeMap::is_full) {
            state.passes += 1;
            if state.passes >= spread.passes {
                return false;
            }
            state.maps = spread.maps(self.files);
        }
        let number = state.drawn;
        state.drawn += 1;
        let file = self.file_of_spread(spread, state, number);
        let chance = rng::hash(self.seed, number);
        let Places { count, draw } = spread.places(file);
        let drawn = draw.place(self.seed, (file, number), *count);
        let map = state.maps.get_mut(file as usize);
        let place = map.as_ref().map_or(Some(drawn), |map| map.next_free(drawn)).unwrap_or(drawn);
        let rest = self.length(file as usize) - place * spread.align;
        let sizes = &spread.sizes[usize::from(request.op == Op::Write)];
        let again = (0..DRAWS).map(|draw| u64::from(sizes.at(rng::hash(chance, draw))));
        let mut len = std::iter::once(u64::from(request.len)).chain(again).find(|&len| len <= rest);
        if let Some(map) = map {
            let wanted = len.unwrap_or(rest).div_ceil(spread.min_bytes);
            let free = map.take(place, wanted) * spread.min_bytes;
            if spread.renews && map.is_full() {
                *map = FreeMap::new(*count);
            }
            len = Some(len.unwrap_or(rest).min(free));
        }
        request.len = len.unwrap_or(rest / spread.min_bytes * spread.min_bytes) as u32;
        (request.target, request.offset) = (file as u32, self.part.0 + place * spread.align);
        state.issued += u64::from(request.len);
        true
    }
}
