//! Jobs that another crate describes.

use crate::follow::Perform;
use crate::group::Group;
use crate::lead::{Error, Leader};
use crate::lead_time::Preparation;
use crate::message::{Answer, Failure, Order};
use ::machine::Machine;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobDone {
    pub answer: String,
    /// The rank's clock minus rank 0's; exact at a common start.
    pub ahead_ns: i64,
}

impl<G: Group, M: Machine> Leader<'_, G, M> {
    /// A job for each rank, rank 0's by `own`; answers keep the order. `together`: all begin at
    /// once. Fails on a lost rank, an interrupt, or failed jobs, by name.
    pub fn jobs(
        &mut self,
        jobs: &[(usize, String)],
        together: bool,
        own: Perform<'_>,
    ) -> Result<Vec<JobDone>, Error> {
        let others: Vec<usize> = jobs.iter().map(|job| job.0).filter(|&rank| rank > 0).collect();
        let mut start = None;
        let lead_ns = self.lead_times.of(Preparation::Job);
        if together && !others.is_empty() {
            self.refresh_clocks(&others)?;
            start = Some(self.machine.now().saturating_add(lead_ns));
        }
        // A lost rank does not keep the others from their jobs: they may remove files.
        for (rank, job) in jobs.iter().filter(|job| job.0 > 0) {
            let start = start.map(|start| self.offsets[*rank].there(start));
            match self.order(*rank, &Order::Job { job: job.clone(), start }) {
                Ok(()) | Err(Error::Lost(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let mut ended: Vec<(usize, Result<String, Failure>)> = Vec::new();
        if let Some((_, job)) = jobs.iter().find(|job| job.0 == 0) {
            ended.push((0, own(job, start)));
        }
        let mut needed_ns = 0;
        for (rank, answer) in self.gather(others)? {
            let Answer::Job { answer, early_ns } = answer else { return Err(self.confused(rank)) };
            needed_ns = needed_ns.max(lead_ns.saturating_sub(early_ns));
            ended.push((rank, answer));
        }
        if start.is_some() {
            self.lead_times.learn(Preparation::Job, needed_ns);
        }
        let mut failures = Vec::new();
        let mut done: Vec<(usize, JobDone)> = Vec::new();
        let mut interrupted = false;
        for (rank, answer) in ended {
            match answer {
                Ok(answer) => {
                    done.push((rank, JobDone { answer, ahead_ns: self.offsets[rank].ns }));
                }
                Err(failure) if failure.interrupted => interrupted = true,
                Err(failure) => failures.push((self.clients[rank].name(), failure)),
            }
        }
        if !failures.is_empty() {
            let usage = failures.iter().all(|(_, failure)| failure.usage);
            return Err(if usage { Error::Refused(failures) } else { Error::Failed(failures) });
        }
        if interrupted {
            return Err(self.interrupted());
        }
        let of = |rank: usize| done.iter().find(|one| one.0 == rank).map(|one| one.1.clone());
        let ordered: Option<Vec<JobDone>> = jobs.iter().map(|job| of(job.0)).collect();
        ordered.ok_or_else(|| Error::Confused("a rank has two jobs at once".into()))
    }
}
