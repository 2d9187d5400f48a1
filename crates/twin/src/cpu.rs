use machine::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// In arrival order, charged to the program.
    Program,
    /// Before program threads, charged to the program.
    System,
    /// Before program threads, charged to no program.
    Uncharged,
}

pub struct Cpu {
    free_at: Vec<Nanos>,
    system_free_at: Vec<Nanos>,
    pub busy: Nanos,
    pub uncharged: Nanos,
    threads: Vec<(Nanos, usize)>,
}

fn first_free(free_at: &[Nanos], now: Nanos) -> usize {
    let mut core = 0;
    for index in 1..free_at.len() {
        // Any idle core will do.
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
    pub fn new(cores: u32) -> Self {
        let idle = vec![0; cores.max(1) as usize];
        Cpu {
            system_free_at: idle.clone(),
            free_at: idle,
            busy: 0,
            uncharged: 0,
            threads: Vec::new(),
        }
    }

    pub fn cores(&self) -> u32 {
        self.free_at.len() as u32
    }

    pub fn rest(&mut self) {
        self.free_at.fill(0);
        self.system_free_at.fill(0);
        (self.busy, self.uncharged) = (0, 0);
        self.threads.clear();
    }

    /// Program work that has started keeps its end: system work preempts the core's next work.
    pub fn work(&mut self, what: Work, now: Nanos, cost: Nanos) -> Nanos {
        let core = self.free_core(what, now);
        self.work_at(core, what, now, cost)
    }

    /// A thread keeps its one core while no other has queued there; otherwise it moves to the first
    /// free one.
    pub fn work_of(&mut self, thread: u32, what: Work, now: Nanos, cost: Nanos) -> Nanos {
        let thread = thread as usize;
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, (0, 0));
        }
        let (until, core) = self.threads[thread];
        let busy = until > now;
        // System work does not wait for the thread.
        let start = if what == Work::Program { now.max(until) } else { now };
        let stays = busy && (what != Work::Program || self.free_at[core] <= start);
        let core = if stays { core } else { self.free_core(what, start) };
        let done = self.work_at(core, what, start, cost);
        // System work that preempts a thread delays the rest of that thread's work.
        let until = if busy && what != Work::Program { until + cost } else { done };
        self.threads[thread] = (until, core);
        done
    }

    fn free_core(&self, what: Work, now: Nanos) -> usize {
        first_free(if what == Work::Program { &self.free_at } else { &self.system_free_at }, now)
    }

    fn work_at(&mut self, core: usize, what: Work, now: Nanos, cost: Nanos) -> Nanos {
        self.busy += cost;
        if what == Work::Program {
            self.free_at[core] = self.free_at[core].max(now) + cost;
            return self.free_at[core];
        }
        if what == Work::Uncharged {
            self.uncharged += cost;
        }
        self.system_free_at[core] = self.system_free_at[core].max(now) + cost;
        self.free_at[core] = self.free_at[core].max(now) + cost;
        self.system_free_at[core]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_serialises_and_two_run_in_parallel() {
        let mut one = Cpu::new(1);
        let mut program = |now, cost| one.work(Work::Program, now, cost);
        assert_eq!((program(0, 10), program(5, 10), program(100, 1)), (10, 20, 101));
        let mut two = Cpu::new(2);
        let mut program = |now, cost| two.work(Work::Program, now, cost);
        assert_eq!((program(0, 10), program(5, 10), program(6, 10)), (10, 15, 20));
        assert_eq!(two.busy, 30);
    }

    #[test]
    fn a_thread_has_one_core_at_a_time() {
        let mut two = Cpu::new(2);
        assert_eq!(two.work_of(0, Work::Program, 0, 10), 10);
        assert_eq!(
            two.work_of(0, Work::Program, 5, 10),
            20,
            "the other core is idle, and is not this thread's"
        );
        assert_eq!(two.work_of(1, Work::Program, 6, 10), 16);
        assert_eq!(two.work_of(0, Work::System, 7, 4), 11, "the system goes first there, too");
        assert_eq!(two.work_of(0, Work::Program, 8, 1), 25);
        assert_eq!(two.work_of(0, Work::Program, 100, 1), 101);
        assert_eq!(two.busy, 36);
    }

    #[test]
    fn busy_threads_spread_over_the_cores() {
        let mut cpu = Cpu::new(4);
        for (thread, cost) in [(0, 10), (1, 1000), (2, 1000), (3, 1000)] {
            cpu.work_of(thread, Work::Program, 0, cost);
        }
        // Core 0 is free first, so four more threads queue there for a moment.
        for thread in 4..8 {
            cpu.work_of(thread, Work::Program, 0, 1);
        }
        let ends = [0, 4, 5, 6, 7].map(|thread| cpu.work_of(thread, Work::Program, 5, 1000));
        assert!(ends.iter().all(|end| *end <= 2014), "two at most share a core: {ends:?}");
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
