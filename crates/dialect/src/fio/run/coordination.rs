//! Connects the jobs of a set.

use super::flow::FlowGroup;
use super::group::{Group, streams_of};
use super::pacing::Exit;
use super::steady::Watch;
use crate::fio::options::kinds::ExitWhat;
use crate::fio::plan::arrange::ClonePlan;
use crate::fio::plan::jobs::Job;
use machine::Machine;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) type Watches = Vec<Option<Arc<Watch>>>;

impl<M: Machine> Group<'_, M> {
    pub(crate) fn flows(&self) -> Vec<Option<(Arc<FlowGroup>, usize)>> {
        let of = |clone: &&ClonePlan| {
            Some(&self.job_of(clone).options).filter(|options| options.flow > 0)
        };
        let mut ids: Vec<u64> =
            self.clones.iter().filter_map(|clone| Some(of(clone)?.flow_id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut flows: Vec<Option<(Arc<FlowGroup>, usize)>> = vec![None; self.clones.len()];
        for id in ids {
            let places: Vec<usize> = (0..self.clones.len())
                .filter(|&place| {
                    of(&self.clones[place]).is_some_and(|options| options.flow_id == id)
                })
                .collect();
            let weights = places.iter().map(|&place| self.job_of(self.clones[place]).options.flow);
            let group = Arc::new(FlowGroup::new(weights));
            places
                .iter()
                .enumerate()
                .for_each(|(member, &place)| flows[place] = Some((group.clone(), member)));
        }
        flows
    }

    pub(crate) fn exits(&self) -> Vec<Option<Exit>> {
        let all = Arc::new(AtomicBool::new(false));
        let mut groups: Vec<(u32, Arc<AtomicBool>)> = Vec::new();
        let mut of_group = |id: u32| match groups.iter().find(|(known, _)| *known == id) {
            Some((_, flag)) => flag.clone(),
            None => {
                groups.push((id, Arc::new(AtomicBool::new(false))));
                groups[groups.len() - 1].1.clone()
            }
        };
        let any = self.jobs.iter().any(|job| job.options.exitall || job.options.exitall_on_error);
        let mut exit = |job: &Job| {
            let own = of_group(job.group_id);
            let sets = match job.options.exit_what {
                _ if !job.options.exitall => None,
                ExitWhat::Group => Some(own.clone()),
                ExitWhat::Stonewall | ExitWhat::All => Some(all.clone()),
            };
            let sets_on_error = job.options.exitall_on_error.then(|| all.clone());
            Exit { ends_if: [all.clone(), own], sets, sets_on_error }
        };
        self.jobs.iter().map(|job| any.then(|| exit(job))).collect()
    }

    /// Jobs reported together are watched together.
    pub(crate) fn watches(&self) -> Watches {
        let together = |a: &Job, b: &Job| {
            a.options.group_reporting && b.options.group_reporting && a.group_id == b.group_id
        };
        let streams = |job: &Job| job.options.clones * streams_of(job);
        let mut watches = Watches::new();
        for (index, job) in self.jobs.iter().enumerate() {
            let known = self.jobs[..index]
                .iter()
                .position(|other| together(other, job) && other.options.steady.watches());
            let count = || {
                self.jobs
                    .iter()
                    .filter(|other| {
                        std::ptr::eq(*other, job)
                            || (together(other, job) && other.options.steady.watches())
                    })
                    .map(streams)
                    .sum()
            };
            watches.push(match known {
                _ if !job.options.steady.watches() => None,
                Some(known) => watches[known].clone(),
                None => Some(Arc::new(Watch::new(job.options.steady, count()))),
            });
        }
        watches
    }
}
