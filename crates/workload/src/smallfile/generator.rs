use super::pool::{Pool, Slot};
use super::{Mt19937, PlanError, SmallFilePlan};
use machine::files::FileId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOp {
    /// Bytes of the text.
    Create(FileId, u32),
    /// The whole file, of this many bytes.
    Read(FileId, u32),
    /// Bytes from the start of the text.
    Append(FileId, u32),
    Delete(FileId),
}

impl FileOp {
    pub fn file(self) -> FileId {
        match self {
            FileOp::Create(file, _)
            | FileOp::Read(file, _)
            | FileOp::Append(file, _)
            | FileOp::Delete(file) => file,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Create,
    Transact,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Do(FileOp),
    /// The transaction's index, from 0.
    Transacted(u32),
    /// The files ran out; no report follows.
    OutOfFiles,
    End(Phase),
}

/// The numbers of operations and bytes, which follow from the plan.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct SmallFileCounts {
    /// Files created before the transactions.
    pub created_alone: u64,
    /// Files created by transactions.
    pub created_mixed: u64,
    pub read: u64,
    pub appended: u64,
    /// Files deleted after the transactions.
    pub deleted_alone: u64,
    /// Files deleted by transactions.
    pub deleted_mixed: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl SmallFileCounts {
    pub fn created(&self) -> u64 {
        self.created_alone + self.created_mixed
    }

    pub fn deleted(&self) -> u64 {
        self.deleted_alone + self.deleted_mixed
    }

    pub fn plus(&self, other: &SmallFileCounts) -> SmallFileCounts {
        SmallFileCounts {
            created_alone: self.created_alone + other.created_alone,
            created_mixed: self.created_mixed + other.created_mixed,
            read: self.read + other.read,
            appended: self.appended + other.appended,
            deleted_alone: self.deleted_alone + other.deleted_alone,
            deleted_mixed: self.deleted_mixed + other.deleted_mixed,
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
        }
    }

    pub fn count(&mut self, phase: Phase, op: FileOp) {
        match op {
            FileOp::Create(_, bytes) => {
                self.written_bytes += u64::from(bytes);
                *(if phase == Phase::Create {
                    &mut self.created_alone
                } else {
                    &mut self.created_mixed
                }) += 1;
            }
            FileOp::Read(_, bytes) => {
                self.read += 1;
                self.read_bytes += u64::from(bytes);
            }
            FileOp::Append(_, bytes) => {
                self.appended += 1;
                self.written_bytes += u64::from(bytes);
            }
            FileOp::Delete(_) => {
                *(if phase == Phase::Delete {
                    &mut self.deleted_alone
                } else {
                    &mut self.deleted_mixed
                }) += 1;
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Creating,
    First(u32),
    Second(u32),
    Ending(u32),
    Deleting(u32),
    Over,
}

/// Always the same operations.
///
/// Each worker can iterate a clone and execute only its own files, without a lock; operations on
/// one file stay in order.
#[derive(Debug, Clone)]
pub struct Generator {
    plan: Arc<SmallFilePlan>,
    rng: Mt19937,
    pool: Pool,
    weights: u32,
    made: u32,
    state: State,
}

#[derive(Debug, Clone)]
pub struct Start {
    pub generator: Generator,
    /// Printable characters, from which each file starts.
    pub text: Arc<[u8]>,
}

impl Generator {
    /// Checks the plan and draws the text.
    ///
    /// ```
    /// use workload::smallfile::{Generator, SmallFilePlan};
    ///
    /// let counts = Generator::start(&SmallFilePlan::default())?.generator.dry_run().unwrap();
    /// assert_eq!((counts.created(), counts.deleted()), (764, 764));
    /// # Ok::<(), workload::smallfile::PlanError>(())
    /// ```
    pub fn start(plan: &SmallFilePlan) -> Result<Start, PlanError> {
        plan.check()?;
        let mut rng = Mt19937::seeded_1999(plan.seed);
        let size = plan.high_bytes as usize;
        let mut text = Vec::new();
        text.try_reserve_exact(size).map_err(|_| PlanError::Memory { bytes: size as u64 })?;
        let mut letter = || 32 + rng.below(95) as u8;
        text.extend((0..size).map(|_| letter()));
        // PostMark's text is twice as long as it can use, and each character takes a draw.
        (0..size).for_each(|_| {
            letter();
        });
        let weights = plan.locations.iter().map(|location| location.weight).sum();
        let pool = Pool::new(plan.number * 2);
        let generator = Generator {
            plan: Arc::new(plan.clone()),
            rng,
            pool,
            weights,
            made: 0,
            state: State::Creating,
        };
        Ok(Start { generator, text: text.into() })
    }

    pub fn plan(&self) -> &SmallFilePlan {
        &self.plan
    }

    /// `None` if the files run out.
    pub fn dry_run(self) -> Option<SmallFileCounts> {
        let mut counts = SmallFileCounts::default();
        let mut phase = Phase::Create;
        for step in self {
            match step {
                Step::Do(op) => counts.count(phase, op),
                Step::Transacted(_) => {}
                Step::OutOfFiles => return None,
                Step::End(Phase::Create) => phase = Phase::Transact,
                Step::End(_) => phase = Phase::Delete,
            }
        }
        Some(counts)
    }

    fn create(&mut self) -> Option<FileOp> {
        let index = self.pool.free_slot()?;
        let location = if self.plan.locations.len() > 1 { self.draw_location() } else { 0 };
        let subdirectories = self.plan.subdirectories_used();
        let subdirectory = self.rng.below(subdirectories);
        let bytes =
            self.plan.low_bytes + self.rng.below(self.plan.high_bytes - self.plan.low_bytes);
        self.made += 1;
        let file = FileId { location, subdirectory, number: self.made };
        self.pool.put(index, Slot { file, bytes });
        Some(FileOp::Create(file, bytes))
    }

    fn draw_location(&mut self) -> u32 {
        let mut drawn = self.rng.below(self.weights);
        for (index, location) in self.plan.locations.iter().enumerate() {
            if drawn < location.weight {
                return index as u32;
            }
            drawn -= location.weight;
        }
        unreachable!("a draw below the sum of the weights falls to one of them")
    }

    fn delete(&mut self, index: u32) -> Option<FileOp> {
        self.pool.take(index).map(|slot| FileOp::Delete(slot.file))
    }

    /// `None` for an append to a full file.
    fn first_half(&mut self) -> Option<FileOp> {
        let bias = self.plan.bias_read?;
        let reads = self.rng.below(10) < u32::from(bias);
        let index = self.pool.pick(&mut self.rng)?;
        let high = self.plan.high_bytes;
        let slot = self.pool.get_mut(index)?;
        if reads {
            return Some(FileOp::Read(slot.file, slot.bytes));
        }
        if slot.bytes >= high {
            return None;
        }
        let more = self.rng.below(high - slot.bytes) + 1;
        slot.bytes += more;
        Some(FileOp::Append(slot.file, more))
    }

    fn second_half(&mut self) -> Option<FileOp> {
        let bias = self.plan.bias_create?;
        if self.rng.below(10) < u32::from(bias) {
            self.create()
        } else {
            let index = self.pool.pick(&mut self.rng)?;
            self.delete(index)
        }
    }
}

impl Iterator for Generator {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            match self.state {
                State::Creating if self.made < self.plan.number => {
                    return self.create().map(Step::Do);
                }
                State::Creating => {
                    self.state = State::First(0);
                    return Some(Step::End(Phase::Create));
                }
                State::First(index) if index == self.plan.transactions => {
                    self.state = State::Deleting(0);
                    return Some(Step::End(Phase::Transact));
                }
                State::First(_) if self.pool.live() == 0 => {
                    self.state = State::Deleting(0);
                    return Some(Step::OutOfFiles);
                }
                State::First(index) => {
                    self.state = State::Second(index);
                    if let Some(op) = self.first_half() {
                        return Some(Step::Do(op));
                    }
                }
                State::Second(index) => {
                    self.state = State::Ending(index);
                    if let Some(op) = self.second_half() {
                        return Some(Step::Do(op));
                    }
                }
                State::Ending(index) => {
                    self.state = State::First(index + 1);
                    return Some(Step::Transacted(index));
                }
                State::Deleting(from) => {
                    if let Some(index) = self.pool.used_from(from) {
                        self.state = State::Deleting(index + 1);
                        return self.delete(index).map(Step::Do);
                    }
                    self.state = State::Over;
                    return Some(Step::End(Phase::Delete));
                }
                State::Over => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smallfile::Location;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn dry(plan: &SmallFilePlan) -> SmallFileCounts {
        Generator::start(plan).unwrap().generator.dry_run().unwrap()
    }

    fn megabytes(bytes: u64) -> String {
        format!("{:.2}", bytes as f64 / 1_048_576.0)
    }

    /// Counted by PostMark 1.53 itself.
    #[test]
    fn golden_counts_of_the_defaults() {
        let counts = dry(&SmallFilePlan::default());
        let expected = SmallFileCounts {
            created_alone: 500,
            created_mixed: 264,
            read: 243,
            appended: 257,
            deleted_alone: 528,
            deleted_mixed: 236,
            read_bytes: 1_430_770,
            written_bytes: 4_662_068,
        };
        assert_eq!(counts, expected);
    }

    /// Counted by PostMark 1.53 itself.
    #[test]
    fn golden_counts_with_subdirectories() {
        let plan = SmallFilePlan {
            seed: 7,
            number: 1000,
            transactions: 3000,
            low_bytes: 1000,
            high_bytes: 5000,
            subdirectories: 10,
            ..SmallFilePlan::default()
        };
        let counts = dry(&plan);
        assert_eq!(
            (counts.created(), counts.read, counts.appended, counts.deleted()),
            (2492, 1516, 1466, 2492)
        );
        assert_eq!((counts.deleted_alone, counts.deleted_mixed), (984, 1508));
        assert_eq!((counts.read_bytes, counts.written_bytes), (5_164_333, 8_620_598));
    }

    /// Published runs on file-system settings, and on a volume RAM cache on Windows NT. PostMark
    /// sums bytes in single precision: 1158.00 MB instead of 1157.99.
    #[test]
    fn golden_counts_of_published_runs() {
        let plan = SmallFilePlan {
            number: 10_000,
            transactions: 10_000,
            low_bytes: 500,
            high_bytes: 100_000,
            subdirectories: 5,
            ..SmallFilePlan::default()
        };
        let counts = dry(&plan);
        assert_eq!((counts.created(), counts.read, counts.appended), (15_047, 4_945, 5_055));
        assert_eq!(
            (megabytes(counts.read_bytes), megabytes(counts.written_bytes)),
            ("257.93".into(), "826.79".into())
        );
        let counts = dry(&SmallFilePlan { transactions: 20_000, ..plan });
        assert_eq!((counts.created(), counts.read, counts.appended), (20_092, 9_935, 10_064));
        assert_eq!(
            (megabytes(counts.read_bytes), megabytes(counts.written_bytes)),
            ("548.25".into(), "1157.99".into())
        );
    }

    /// From a trace of PostMark 1.53's system calls.
    #[test]
    fn weighted_locations_are_drawn_as_postmark_draws_them() {
        let location = |name: &str, weight| Location { path: name.into(), weight };
        let plan = SmallFilePlan {
            number: 30,
            low_bytes: 10,
            high_bytes: 20,
            transactions: 10,
            subdirectories: 2,
            locations: vec![location("A", 1), location("B", 3), location("C", 2)],
            ..SmallFilePlan::default()
        };
        let made: Vec<String> = Generator::start(&plan)
            .unwrap()
            .generator
            .filter_map(|step| match step {
                Step::Do(FileOp::Create(f, _)) => {
                    Some(format!("{}/s{}", ["A", "B", "C"][f.location as usize], f.subdirectory))
                }
                _ => None,
            })
            .collect();
        let expected = "C/s1 C/s0 B/s1 A/s1 B/s1 C/s1 B/s0 B/s1 B/s1 B/s1 B/s0 A/s1 C/s0 A/s1 C/s1 B/s0 B/s0 B/s0 A/s1 C/s0 B/s1 A/s1 C/s0 \
                        B/s0 B/s0 C/s1 B/s0 B/s0 C/s1 A/s0 B/s1 C/s0 B/s0 B/s0 B/s0 B/s1 B/s0 C/s0";
        assert_eq!(made.join(" "), expected);
    }

    #[test]
    fn a_value_out_of_range_is_named() {
        let error =
            Generator::start(&SmallFilePlan { number: 0, ..SmallFilePlan::default() }).unwrap_err();
        assert_eq!(error.to_string(), "the number of files is 0: it must be from 1 to 1073741823");
        assert!(
            Generator::start(&SmallFilePlan {
                low_bytes: 9,
                high_bytes: 8,
                ..SmallFilePlan::default()
            })
            .is_err()
        );
    }

    proptest! {
        #[test]
        fn every_operation_finds_its_file(
            (low, spread, number, transactions) in (1u32..3000, 0u32..3000, 1u32..60, 1u32..300),
            (seed, subdirectories) in (1u32.., 0u32..4),
            (bias_read, bias_create) in (proptest::option::of(0u8..=10), proptest::option::of(0u8..=10)),
        ) {
            let plan = SmallFilePlan {
                low_bytes: low, high_bytes: low + spread, number, transactions, seed, subdirectories, bias_read, bias_create,
                ..SmallFilePlan::default()
            };
            let mut files = HashMap::new();
            for step in Generator::start(&plan).unwrap().generator {
                match step {
                    Step::Do(FileOp::Create(file, bytes)) => {
                        prop_assert!(bytes >= low && bytes <= plan.high_bytes && file.subdirectory < subdirectories.max(1));
                        prop_assert!(files.insert(file, bytes).is_none());
                        prop_assert!(files.len() <= 2 * number as usize);
                    }
                    Step::Do(FileOp::Read(file, bytes)) => prop_assert_eq!(files.get(&file), Some(&bytes)),
                    Step::Do(FileOp::Append(file, more)) => {
                        let bytes = files.get_mut(&file).expect("an append goes to a file");
                        *bytes += more;
                        prop_assert!(more > 0 && *bytes <= plan.high_bytes);
                    }
                    Step::Do(FileOp::Delete(file)) => prop_assert!(files.remove(&file).is_some()),
                    Step::OutOfFiles => prop_assert!(files.is_empty()),
                    Step::Transacted(_) | Step::End(_) => {}
                }
            }
            prop_assert!(files.is_empty());
        }
    }
}
