//! One task of mdtest.

use super::result::{Kind, Operation};
use crate::tasks::Span;
use machine::{Error, Nanos, Result, TaskFiles, fill_random};
use measure::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use workload::Permutation;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The test makes its tree and missing directories.
    pub creates: bool,
    pub directories: Vec<PathBuf>,
    pub iteration: u32,
    /// Each task has its own tree.
    pub unique: bool,
    pub branch: u64,
    pub depth: u32,
    pub leaf_only: bool,
    pub per_directory: u64,
    pub write_bytes: u64,
    pub read_bytes: u64,
    pub sync: bool,
    pub sync_phase: bool,
    /// Seed of the order of stats.
    pub random: Option<u64>,
    pub verify: bool,
}

impl Plan {
    pub fn base(&self, task: u64) -> PathBuf {
        let directory = &self.directories[task as usize % self.directories.len()];
        directory.join(format!("test-dir.0-{}", self.iteration))
    }

    /// Parents first.
    pub fn tree(&self, task: u64) -> Vec<PathBuf> {
        let name = if self.unique { format!("mdtest_tree.{task}") } else { "mdtest_tree".into() };
        let mut all = vec![self.base(task).join(format!("{name}.0"))];
        let mut level = 0..1;
        for _ in 0..self.depth {
            let from = all.len();
            for parent in level {
                for _ in 0..self.branch {
                    let child = all[parent].join(format!("{name}.{}", all.len()));
                    all.push(child);
                }
            }
            level = from..all.len();
        }
        all
    }

    fn first_holding(&self, directories: usize) -> usize {
        let leaves = self.branch.saturating_pow(self.depth) as usize;
        if self.leaf_only { directories.saturating_sub(leaves) } else { 0 }
    }
}

/// An operation on some of a task's items.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Items {
    pub kind: Kind,
    pub operation: Operation,
    /// The task that made the items.
    pub of_task: u64,
    pub from: u64,
    pub upto: u64,
    /// No operation begins after this time.
    pub deadline_ns: Option<Nanos>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Step {
    Begin {
        plan: Plan,
        task: u64,
    },
    /// Refuse an existing tree if the test makes one.
    Check,
    MakeTree,
    Items(Items),
    RemoveTree,
    Keep,
    CleanUp,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    Ready,
    Done {
        span: Span,
        /// Items, or directories of a tree, so far.
        count: u64,
        latency: Histogram,
        /// Items with wrong data.
        wrong: u64,
    },
}

pub struct Task<'f, F: TaskFiles> {
    files: &'f F,
    plan: Option<(Plan, u64)>,
    /// Items of each kind to remove.
    made: [u64; 2],
    /// Made directories, parents first.
    tree: Vec<PathBuf>,
    /// The test's directory, if made here.
    root: Option<PathBuf>,
    content: Vec<u8>,
    buffer: Vec<u8>,
}

impl<'f, F: TaskFiles> Task<'f, F> {
    pub fn new(files: &'f F) -> Task<'f, F> {
        Task {
            files,
            plan: None,
            made: [0; 2],
            tree: Vec::new(),
            root: None,
            content: Vec::new(),
            buffer: Vec::new(),
        }
    }

    pub fn perform(&mut self, step: &Step, start: Option<Nanos>) -> Result<Reply> {
        if let Step::Begin { plan, task } = step {
            self.begin(plan.clone(), *task)?;
            return Ok(Reply::Ready);
        }
        let Some((plan, task)) = self.plan.clone() else {
            return Err(Error::Unsupported("no test has begun".into()));
        };
        if let Some(start) = start {
            self.files.wait_until(start);
        }
        let done = |span, count| Reply::Done { span, count, latency: Histogram::new(), wrong: 0 };
        match step {
            Step::Begin { .. } => Ok(Reply::Ready),
            Step::Check => {
                let directory = &plan.directories[task as usize % plan.directories.len()];
                self.files.free_bytes(directory).map_err(|_| missing(directory))?;
                let root = &plan.tree(task)[0];
                if plan.creates && self.files.stat(root).is_ok() {
                    return Err(Error::refused(
                        root.display().to_string(),
                        "an earlier test has left it",
                        "remove it with the same options and -r instead of -C, or name another directory",
                    ));
                }
                Ok(Reply::Ready)
            }
            Step::MakeTree => {
                let base = plan.base(task);
                let tree = plan.tree(task);
                let files = self.files;
                if files.make_directory(&base)? {
                    self.tree.push(base);
                }
                let made = &mut self.tree;
                let (count, span) = Span::of(files, || {
                    for directory in &tree {
                        interrupted(files)?;
                        if files.make_directory(directory)? {
                            made.push(directory.clone());
                        }
                    }
                    Ok(tree.len() as u64)
                })?;
                Ok(done(span, count))
            }
            Step::Items(items) => self.items(&plan, items),
            Step::RemoveTree => {
                let tree = plan.tree(task);
                let files = self.files;
                let (count, span) = Span::of(files, || {
                    for directory in tree.iter().rev() {
                        interrupted(files)?;
                        files.remove_directory(directory)?;
                    }
                    Ok(tree.len() as u64)
                })?;
                self.tree.clear();
                // Another task's tree may still be in it.
                let _ = files.remove_directory(&plan.base(task));
                Ok(done(span, count))
            }
            Step::Keep => {
                (self.made, self.tree) = ([0; 2], Vec::new());
                Ok(Reply::Ready)
            }
            Step::CleanUp => {
                self.clean_up();
                Ok(Reply::Ready)
            }
        }
    }

    fn begin(&mut self, plan: Plan, task: u64) -> Result<()> {
        let no_memory = |bytes: u64| {
            let why = "not enough memory for the data of a file";
            Error::refused(format!("a file of {bytes} bytes"), why, "give smaller -w and -e")
        };
        for (data, bytes) in
            [(&mut self.content, plan.write_bytes), (&mut self.buffer, plan.read_bytes)]
        {
            data.clear();
            data.try_reserve_exact(bytes as usize).map_err(|_| no_memory(bytes))?;
            data.resize(bytes as usize, 0);
        }
        // The same for all tasks, because another one reads it.
        fill_random(plan.write_bytes, &mut self.content);
        let own = plan.directories.get(task as usize).filter(|_| plan.creates);
        // As mdtest: the last name only. A failure shows when all tasks look for it.
        if let Some(own) = own.filter(|own| self.files.make_directory(own).unwrap_or(false)) {
            self.root = Some(own.clone());
        }
        self.plan = Some((plan, task));
        Ok(())
    }

    fn items(&mut self, plan: &Plan, items: &Items) -> Result<Reply> {
        let files = self.files;
        let tree: Vec<String> = plan.tree(items.of_task).iter().map(|path| text(path)).collect();
        let first = plan.first_holding(tree.len());
        let count = items.upto - items.from;
        let order = plan
            .random
            .filter(|_| items.operation == Operation::Stat)
            .map(|seed| Permutation::new(count, seed ^ items.of_task));
        let (mut latency, mut wrong) = (Histogram::new(), 0);
        let mut name = String::new();
        let from = files.now();
        let until = items.deadline_ns.map(|ns| from.saturating_add(ns));
        let mut began = from;
        let mut done = items.from;
        while done < items.upto {
            interrupted(files)?;
            if until.is_some_and(|until| began >= until) {
                break;
            }
            let item =
                order.as_ref().map_or(done, |order| items.from + order.at(done - items.from));
            let place = first + (item / plan.per_directory) as usize;
            name.clear();
            let kind = items.kind.name();
            let _ = write!(name, "{}/{kind}.mdtest.{}.{item}", tree[place], items.of_task);
            began = files.now();
            wrong += u64::from(!self.one(plan, items, Path::new(&name))?);
            let ended = files.now();
            latency.record(ended.saturating_sub(began));
            began = ended;
            done += 1;
            match items.operation {
                Operation::Create => self.made[items.kind as usize] = done,
                // Other tasks have removed the own ones meanwhile.
                Operation::Remove if done == items.upto => self.made[items.kind as usize] = 0,
                _ => {}
            }
        }
        if plan.sync_phase {
            files.sync_file_system(&plan.base(items.of_task))?;
        }
        Ok(Reply::Done { span: Span { from, to: files.now() }, count: done, latency, wrong })
    }

    /// `false`: wrong data.
    fn one(&mut self, plan: &Plan, items: &Items, path: &Path) -> Result<bool> {
        let files = self.files;
        match (items.operation, items.kind) {
            (Operation::Create, Kind::File) => {
                files.create(path, &self.content, plan.sync)?;
            }
            (Operation::Create, Kind::Directory) => {
                if !files.make_directory(path)? {
                    let exists = std::io::ErrorKind::AlreadyExists.into();
                    return Err(Error::io("cannot make the directory", path)(exists));
                }
            }
            (Operation::Stat, Kind::File) => {
                let bytes = files.stat(path)?;
                return Ok(plan.write_bytes == 0 || bytes == plan.write_bytes);
            }
            (Operation::Stat | Operation::Read, Kind::Directory) => drop(files.stat(path)?),
            (Operation::Read, Kind::File) => {
                let got = files.read(path, &mut self.buffer)?;
                let right = self.content.get(..got) == self.buffer.get(..got);
                return Ok(got == self.buffer.len() && (!plan.verify || right));
            }
            (Operation::Remove, Kind::File) => files.remove(path)?,
            (Operation::Remove, Kind::Directory) => files.remove_directory(path)?,
        }
        Ok(true)
    }

    /// Errors only mean that the items were gone.
    fn clean_up(&mut self) {
        let Some((plan, task)) = &self.plan else { return };
        let tree = plan.tree(*task);
        let first = plan.first_holding(tree.len());
        for kind in [Kind::Directory, Kind::File] {
            for item in 0..std::mem::take(&mut self.made[kind as usize]) {
                let place = first + (item / plan.per_directory) as usize;
                let path = tree[place].join(format!("{}.mdtest.{task}.{item}", kind.name()));
                let _ = match kind {
                    Kind::Directory => self.files.remove_directory(&path),
                    Kind::File => self.files.remove(&path),
                };
            }
        }
        let tree = std::mem::take(&mut self.tree);
        for directory in self.root.iter().chain(&tree).rev() {
            let _ = self.files.remove_directory(directory);
        }
    }
}

/// The leader may be gone.
impl<F: TaskFiles> Drop for Task<'_, F> {
    fn drop(&mut self) {
        self.clean_up();
    }
}

fn interrupted<F: TaskFiles>(files: &F) -> Result<()> {
    if files.is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}

fn missing(directory: &Path) -> Error {
    let hint = "make the directory above it first, on a file system that all tasks see";
    Error::refused(directory.display().to_string(), "no such directory", hint)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(branch: u64, depth: u32, leaf_only: bool) -> Plan {
        Plan {
            creates: true,
            directories: vec!["/a".into(), "/b".into()],
            iteration: 2,
            unique: false,
            branch,
            depth,
            leaf_only,
            per_directory: 10,
            write_bytes: 0,
            read_bytes: 0,
            sync: false,
            sync_phase: false,
            random: None,
            verify: false,
        }
    }

    #[test]
    fn the_tree_has_mdtests_names() {
        let tree: Vec<String> = plan(2, 2, false).tree(1).iter().map(|path| text(path)).collect();
        assert_eq!(tree.len(), 7);
        assert_eq!(tree[0], "/b/test-dir.0-2/mdtest_tree.0");
        assert_eq!(tree[2], "/b/test-dir.0-2/mdtest_tree.0/mdtest_tree.2");
        assert_eq!(tree[6], "/b/test-dir.0-2/mdtest_tree.0/mdtest_tree.2/mdtest_tree.6");
        let unique = Plan { unique: true, ..plan(1, 0, false) };
        assert_eq!(text(&unique.tree(4)[0]), "/a/test-dir.0-2/mdtest_tree.4.0");
    }

    #[test]
    fn leaves_come_last() {
        assert_eq!(plan(3, 2, true).first_holding(13), 4);
        assert_eq!(plan(1, 4, true).first_holding(5), 4);
        assert_eq!(plan(3, 2, false).first_holding(13), 0);
        assert_eq!(plan(1, 0, true).first_holding(1), 0);
    }
}
