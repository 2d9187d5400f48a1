//! Operations on files by several tasks.

mod crew;

use crew::{Several, files};
use dialect::metadata::{Measured, Reply, Step, run};
use dialect::tasks::{self, Crew, Done, Error, Member};
use machine::Nanos;
use std::fs;
use std::path::{Path, PathBuf};
use workload::metadata::{MetadataPlan, Operation};

fn plan(directory: &Path) -> MetadataPlan {
    MetadataPlan {
        location: directory.to_owned(),
        files: 60,
        directories: 3,
        threads: 2,
        file_bytes: 100,
        rounds: 2,
        ..MetadataPlan::default()
    }
}

fn left(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn each_number_of_tasks_does_all_operations_on_files_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let files = files();
    let mut crew = Several::new(&files, 3);
    let mut phases = Vec::new();
    let Measured { results, ended } = run(
        &mut crew,
        &plan(directory.path()),
        &[1, 3],
        &[0, 2, 1],
        &mut |count, round, operation| phases.push((count, round, operation)),
    )
    .unwrap();
    assert!(ended.is_none(), "{ended:?}");
    assert_eq!(phases.len(), 2 * 2 * Operation::ALL.len());
    assert_eq!(results.iter().map(|one| one.clients).collect::<Vec<_>>(), [1, 3]);
    for result in &results {
        assert_eq!(result.operations.len(), Operation::ALL.len());
        for one in &result.operations {
            let of_each = if one.operation == Operation::List { 3 } else { 60 };
            let count = of_each * u64::from(result.clients);
            assert_eq!((one.count, one.latency.count), (count, count * 2), "{:?}", one.operation);
            assert_eq!(one.elapsed_ns.len(), 2);
            let shares = if result.clients == 1 { 0 } else { 3 };
            assert_eq!(one.client_rates_per_s.len(), shares);
        }
        let settings = &result.operation_rates()[0].settings;
        assert_eq!(settings.contains("--clients 3"), result.clients == 3, "{settings}");
    }
    assert_eq!(left(directory.path()), 0);
}

#[test]
fn tasks_share_a_directory_and_list_the_files_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let files = files();
    let mut crew = Several::new(&files, 3);
    let plan = MetadataPlan { shared_directory: true, shift: 1, ..plan(directory.path()) };
    let mut seen = Vec::new();
    let mut look = |count, _, operation| {
        if operation == Operation::Stat {
            let areas: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().collect();
            let of_first = areas[0].path().join("s0");
            seen.push((count, areas.len(), left(&of_first)));
        }
    };
    let Measured { results, ended } =
        run(&mut crew, &plan, &[2, 3], &[0, 1, 2], &mut look).unwrap();
    assert!(ended.is_none(), "{ended:?}");
    assert_eq!(seen, [(2, 1, 40), (2, 1, 40), (3, 1, 60), (3, 1, 60)]);
    let list = results[1].operations.iter().find(|one| one.operation == Operation::List).unwrap();
    assert_eq!(list.count, 9, "each task lists each directory");
    assert!((list.files_per_s / list.rate_per_s - 60.0).abs() < 1e-6, "of all tasks");
    assert_eq!(left(directory.path()), 0);
    let many = MetadataPlan { files: 1 << 30, ..plan };
    let error = run(&mut crew, &many, &[3], &[0, 1, 2], &mut |_, _, _| ()).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("each client"), "{error}");
}

#[test]
fn directories_form_a_tree() {
    let directory = tempfile::tempdir().unwrap();
    let files = files();
    let mut crew = Several::new(&files, 2);
    // Below 0: 1 to 3; below 1: 4 to 6.
    let plan = MetadataPlan { directories: 7, branch: 3, ..plan(directory.path()) };
    let mut deepest = 0;
    let mut look = |_, _, operation| {
        if operation == Operation::Delete {
            let areas: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().collect();
            assert_eq!(areas.len(), 2);
            for path in ["t0/t1/t6", "t0/t3"] {
                deepest += left(&areas[0].path().join(path));
            }
        }
    };
    let Measured { results, ended } = run(&mut crew, &plan, &[2], &[0, 1], &mut look).unwrap();
    assert!(ended.is_none(), "{ended:?}");
    // Of 60 files, numbers 6, 13, ... and 3, 10, ...; in two rounds.
    assert_eq!(deepest, 2 * (8 + 9));
    let words = results[0].plan.files_in_words();
    assert!(words.ends_with("in a tree of 7 directories"), "{words}");
    assert!(results[0].plan.settings().contains("--branch 3"));
    assert_eq!(left(directory.path()), 0);
    let wrong = MetadataPlan { branch: 1, ..plan };
    let error = run(&mut crew, &wrong, &[2], &[0, 1], &mut |_, _, _| ()).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("below each is 1"), "{error}");
}

struct Meddled<'f> {
    tasks: Several<'f>,
    own: Vec<PathBuf>,
    visited: Option<PathBuf>,
    failed: Option<usize>,
}

impl Crew for Meddled<'_> {
    fn members(&self) -> &[Member] {
        self.tasks.members()
    }

    fn perform(
        &mut self,
        steps: Vec<(usize, tasks::Step)>,
        together: bool,
    ) -> Result<Vec<Done>, Error> {
        let mut all = Vec::new();
        for (task, step) in steps {
            match &step {
                tasks::Step::Metadata(Step::Visit(files)) if task == 0 => {
                    self.visited.clone_from(&files.directory);
                }
                tasks::Step::Metadata(Step::Phase(Operation::Read)) if task == 0 => {
                    let directory = self.visited.as_ref().unwrap().join("s0");
                    let file = fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
                    fs::remove_file(file).unwrap();
                }
                _ => {}
            }
            let done = self.tasks.perform(vec![(task, step)], together);
            let done = done.inspect_err(|_| self.failed = Some(task))?;
            if let Some(tasks::Reply::Metadata(Reply::Ready { directory: Some(own), .. })) =
                done.first().map(|one| &one.reply)
            {
                self.own.push(own.clone());
            }
            all.extend(done);
        }
        Ok(all)
    }

    fn elsewhere(&mut self, directory: &Path) -> Result<Vec<String>, Error> {
        self.tasks.elsewhere(directory)
    }

    fn pause(&mut self, for_ns: Nanos) {
        self.tasks.pause(for_ns);
    }
}

#[test]
fn a_task_reads_the_files_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let files = files();
    let tasks = Several::new(&files, 3);
    let mut crew = Meddled { tasks, own: Vec::new(), visited: None, failed: None };
    let plan = MetadataPlan { shift: 2, ..plan(directory.path()) };
    let Measured { ended, .. } =
        run(&mut crew, &plan, &[3], &[0, 1, 2], &mut |_, _, _| ()).unwrap();
    assert!(ended.is_some_and(|error| error.to_string().contains("removed")));
    assert_eq!(crew.failed, Some(0), "the first task misses the file of the third");
    assert_eq!(crew.visited.as_ref(), crew.own.get(2));
    assert_eq!(left(directory.path()), 0);
}

#[test]
fn a_directory_that_is_missing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let files = files();
    let mut crew = Several::new(&files, 2);
    let plan = plan(&directory.path().join("missing"));
    let error = run(&mut crew, &plan, &[2], &[0, 1], &mut |_, _, _| ()).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("missing"), "{error}");
}

#[test]
fn a_failure_keeps_what_was_measured_and_removes_all_files() {
    let directory = tempfile::tempdir().unwrap();
    let files = files();
    let mut crew = Several::new(&files, 2);
    let place = directory.path().to_owned();
    // Someone else removes a file in the second round.
    let mut meddle = |_, round, operation| {
        if round == 1 && operation == Operation::Stat {
            let area = fs::read_dir(&place).unwrap().next().unwrap().unwrap().path();
            let own = fs::read_dir(area).unwrap().map(|entry| entry.unwrap().path());
            let directory = own.into_iter().find(|path| path.is_dir()).unwrap();
            let file = fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
            fs::remove_file(file).unwrap();
        }
    };
    let plan = plan(directory.path());
    let Measured { results, ended } = run(&mut crew, &plan, &[2], &[0, 1], &mut meddle).unwrap();
    assert!(ended.is_some_and(|error| error.to_string().contains("removed")));
    let counts: Vec<usize> = results[0].operations.iter().map(|one| one.elapsed_ns.len()).collect();
    assert_eq!(counts, [2, 1, 1, 1, 1, 1, 1], "create of both rounds, the others of the first");
    assert_eq!(left(directory.path()), 0);
}
