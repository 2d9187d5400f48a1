//! Several tasks in one thread, each on its own pretended host, one after the other.

use dialect::tasks::{Access, Crew, Done, Error, Member, Step, Worker};
use host::HostTaskFiles;
use host::files::HostFiles;
use machine::{Nanos, TaskFiles};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

static NEVER: AtomicBool = AtomicBool::new(false);

pub fn files() -> HostTaskFiles {
    HostTaskFiles::new(&NEVER)
}

pub struct Several<'f> {
    workers: Vec<Worker<'f, HostTaskFiles, HostFiles>>,
    members: Vec<Member>,
    files: &'f HostTaskFiles,
}

impl<'f> Several<'f> {
    pub fn new(files: &'f HostTaskFiles, count: usize) -> Several<'f> {
        let member = |task| Member {
            host: format!("h{task}"),
            process_space: "k".into(),
            process: std::process::id(),
        };
        static SYSTEM: LazyLock<HostFiles> = LazyLock::new(HostFiles::new);
        let access = Access { files, system: &*SYSTEM, interrupt: &NEVER };
        Several {
            workers: (0..count).map(|_| Worker::new(access)).collect(),
            members: (0..count).map(member).collect(),
            files,
        }
    }
}

impl Crew for Several<'_> {
    fn members(&self) -> &[Member] {
        &self.members
    }

    fn perform(&mut self, steps: Vec<(usize, Step)>, _together: bool) -> Result<Vec<Done>, Error> {
        let mut done = Vec::new();
        for (task, step) in steps {
            // As it travels between processes.
            let step: Step = serde_json::from_str(&serde_json::to_string(&step).unwrap()).unwrap();
            done.push(Done { reply: self.workers[task].perform(&step, None)?, ahead_ns: 0 });
        }
        Ok(done)
    }

    fn elsewhere(&mut self, _directory: &Path) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn pause(&mut self, for_ns: Nanos) {
        self.files.wait_until(self.files.now() + for_ns);
    }
}
