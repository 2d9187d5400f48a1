//! The processor as a resource that saturates.

use machine::Nanos;

/// Cores that take pieces of work in order of arrival.
pub struct Cpu {
    free_at: Vec<Nanos>,
    /// Time worked, over all cores.
    pub busy: Nanos,
}

impl Cpu {
    /// Idle cores.
    pub fn new(cores: u32) -> Self {
        Cpu { free_at: vec![0; cores.max(1) as usize], busy: 0 }
    }

    /// How many.
    pub fn cores(&self) -> u32 {
        self.free_at.len() as u32
    }

    /// Idle again.
    pub fn rest(&mut self) {
        self.free_at.fill(0);
        self.busy = 0;
    }

    /// Does a piece of work as soon as a core is free; when it is done.
    pub fn work(&mut self, now: Nanos, cost: Nanos) -> Nanos {
        self.busy += cost;
        let mut core = 0;
        for index in 1..self.free_at.len() {
            // An idle core is as good as any.
            if self.free_at[core] <= now {
                break;
            }
            if self.free_at[index] < self.free_at[core] {
                core = index;
            }
        }
        self.free_at[core] = self.free_at[core].max(now) + cost;
        self.free_at[core]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_works_in_turn_and_two_side_by_side() {
        let mut one = Cpu::new(1);
        assert_eq!((one.work(0, 10), one.work(5, 10), one.work(100, 1)), (10, 20, 101));
        let mut two = Cpu::new(2);
        assert_eq!((two.work(0, 10), two.work(5, 10), two.work(6, 10)), (10, 15, 20));
        assert_eq!(two.busy, 30);
    }
}
