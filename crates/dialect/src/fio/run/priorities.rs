use super::core::{Core, Issue};
use super::filter::{Filter, ignores};
use super::stream_stats::TRIM;
use crate::fio::options::cmdprio::CommandPriority;
use crate::fio::options::job_options::Options;
use machine::IoPriority;
use workload::rng;

const PURPOSE: u64 = 0xc3d9;

#[derive(Debug)]
pub(crate) struct Priorities {
    asked: CommandPriority,
    seed: u64,
    drawn: u64,
    usual: u16,
}

impl Priorities {
    pub(crate) fn of(options: &Options, seed: u64, core: &mut Core) -> Option<Priorities> {
        core.gives_priorities = options.cmdprio.is_on();
        core.gives_priorities.then(|| Priorities {
            asked: options.cmdprio.clone(),
            seed: rng::derive(seed, PURPOSE, 0),
            drawn: 0,
            usual: options.io_priority().map_or(0, IoPriority::bits),
        })
    }
}

impl Filter for Priorities {
    fn issued(&mut self, core: &mut Core, issue: &Issue) {
        let slot = &mut core.slots[issue.request.slot as usize];
        if issue.side != TRIM {
            let draw = rng::below(rng::hash(self.seed, self.drawn), 100);
            self.drawn += 1;
            slot.given = self.asked.of(issue.side, slot.bytes, draw).map_or(0, IoPriority::bits);
        }
        slot.effective = if slot.given == 0 { self.usual } else { slot.given };
    }

    ignores!(begin before idle completed synced owes left fails read_back fill check finish);
}
