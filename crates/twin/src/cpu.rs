//! The processor as a resource that saturates.

use machine::Nanos;

/// What a piece of work is, for its turn and for who pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A thread's of the program, charged to it, in order of arrival.
    Program,
    /// The system's on behalf of the program: before what threads of programs wait to do, and charged to the program.
    System,
    /// The system's own: before what threads of programs wait to do, and charged to nobody.
    Uncharged,
}

/// Cores that take pieces of work: the system's first, those of programs in order of arrival.
pub struct Cpu {
    /// When each core has done all that it was given.
    free_at: Vec<Nanos>,
    /// When each core has done the system's part of that.
    system_free_at: Vec<Nanos>,
    /// Time worked, over all cores.
    pub busy: Nanos,
    /// The part of it that the system charges to no program.
    pub uncharged: Nanos,
}

/// The core that is idle, or will be first.
fn first_free(free_at: &[Nanos], now: Nanos) -> usize {
    let mut core = 0;
    for index in 1..free_at.len() {
        // An idle core is as good as any.
        if free_at[core] <= now {
            break;
        }
        if free_at[index] < free_at[core] {
            core = index;
        }
    }
    core
}

impl Cpu {
    /// Idle cores.
    pub fn new(cores: u32) -> Self {
        let idle = vec![0; cores.max(1) as usize];
        Cpu { system_free_at: idle.clone(), free_at: idle, busy: 0, uncharged: 0 }
    }

    /// How many.
    pub fn cores(&self) -> u32 {
        self.free_at.len() as u32
    }

    /// Idle again.
    pub fn rest(&mut self) {
        self.free_at.fill(0);
        self.system_free_at.fill(0);
        (self.busy, self.uncharged) = (0, 0);
    }

    /// Does a piece of work as soon as a core is free for it; when it is done. What a program has begun ends when it would have: the
    /// time that the system takes from it is taken from what the core does next.
    pub fn work(&mut self, what: Work, now: Nanos, cost: Nanos) -> Nanos {
        self.busy += cost;
        if what == Work::Program {
            let core = first_free(&self.free_at, now);
            self.free_at[core] = self.free_at[core].max(now) + cost;
            return self.free_at[core];
        }
        if what == Work::Uncharged {
            self.uncharged += cost;
        }
        let core = first_free(&self.system_free_at, now);
        self.system_free_at[core] = self.system_free_at[core].max(now) + cost;
        self.free_at[core] = self.free_at[core].max(now) + cost;
        self.system_free_at[core]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_works_in_turn_and_two_side_by_side() {
        let mut one = Cpu::new(1);
        let mut program = |now, cost| one.work(Work::Program, now, cost);
        assert_eq!((program(0, 10), program(5, 10), program(100, 1)), (10, 20, 101));
        let mut two = Cpu::new(2);
        let mut program = |now, cost| two.work(Work::Program, now, cost);
        assert_eq!((program(0, 10), program(5, 10), program(6, 10)), (10, 15, 20));
        assert_eq!(two.busy, 30);
    }

    #[test]
    fn the_system_goes_first_and_takes_its_time_from_the_program() {
        let mut cpu = Cpu::new(1);
        assert_eq!(cpu.work(Work::Program, 0, 100), 100);
        assert_eq!(cpu.work(Work::System, 10, 5), 15);
        assert_eq!(cpu.work(Work::Uncharged, 12, 5), 20);
        assert_eq!(cpu.work(Work::Program, 20, 10), 120);
        assert_eq!((cpu.busy, cpu.uncharged), (120, 5));
    }
}
