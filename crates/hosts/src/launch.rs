//! The launcher, from the variables it sets.

/// The variables for size and rank, and the launcher. Slurm's are those of a step: a batch script
/// has `SLURM_NTASKS`, too, and is one process.
const VARIABLES: [(&str, &str, &str); 3] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"),
    ("PMI_SIZE", "PMI_RANK", "mpirun"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// `mpirun` or `srun`.
    pub launcher: &'static str,
    pub processes: usize,
    pub rank: usize,
}

impl Launch {
    /// `None` for a single process.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Launch> {
        let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
        let launch = VARIABLES.iter().find_map(|&(size, rank, launcher)| {
            Some(Launch { launcher, processes: number(size)?, rank: number(rank)? })
        });
        launch.filter(|launch| launch.processes > 1)
    }

    pub fn leads(&self) -> bool {
        self.rank == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Launch> {
        Launch::of(|name| {
            variables.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_are_recognised_by_their_variables() {
        let open_mpi = of(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3")]);
        assert_eq!(open_mpi, Some(Launch { launcher: "mpirun", processes: 4, rank: 3 }));
        assert!(!open_mpi.unwrap().leads());
        assert!(of(&[("PMI_SIZE", "2"), ("PMI_RANK", "0")]).unwrap().leads());
        let step = of(&[("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "1")]).unwrap();
        assert_eq!((step.launcher, step.processes), ("srun", 8));
    }

    #[test]
    fn a_single_process_has_no_launch() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")]), None);
        // A batch script, of which Slurm runs one.
        assert_eq!(of(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None);
    }
}
