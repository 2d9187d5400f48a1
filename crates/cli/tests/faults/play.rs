//! Plays a row of the table: creates the fault, runs the commands, and compares output and side
//! effects.
//!
//! In every row a command must end by itself, without a panic, with a message if it fails, and
//! without terminal control characters. Only the names in the row may change.

use crate::common::places::tool;
use crate::common::{HALFPOWER, has_numbers, skip, wait_until};
use crate::fuse::Fault;
use crate::stage::{Given, Stage, test_files};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub fault: &'static str,
    pub given: &'static [Given],
    pub steps: &'static [Step],
    /// Names that must be new or different at the end; a star at the end matches any suffix.
    /// Everything else must be unchanged.
    pub leaves: &'static [&'static str],
}

pub const UNHARMED: Row = Row { fault: "", given: &[], steps: &[], leaves: &[] };

#[derive(Debug, Clone, Copy)]
pub enum Step {
    Run(By, &'static [&'static str], Ends),
    Start(&'static str),
    Until(State),
    Signal(i32),
    Ended(Ends),
    Do(Given),
    /// Checks that the faults of this FUSE file system occurred at least once.
    Met(&'static str),
    /// Another program, which must fail.
    Fails(&'static str),
    Stop {
        fs: &'static str,
        at: Fault,
        line: &'static str,
        ends: Ends,
    },
    /// Stops a line for 20 of each 40 ms until its end.
    Stutter(Stops, By, &'static str, Ends),
    Together(usize, &'static str, Ends),
    Storm {
        seed: u64,
        times: u32,
        line: &'static str,
        signal: i32,
    },
}

#[derive(Debug, Clone, Copy)]
pub enum Stops {
    Signals,
    Freezer(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub enum State {
    /// This directory has a test file of this many bytes or more.
    TestFile(&'static str, u64),
    Read(u64),
    Written(u64),
    Mapped(&'static str),
    Hangs(&'static str),
    Said(&'static str),
    Stopped,
    /// This file has this many bytes or more.
    Long(&'static str, u64),
    /// This directory has no test file.
    Gone(&'static str),
    Set(&'static str, &'static str, &'static str),
}

#[derive(Debug, Clone, Copy)]
pub struct By {
    pub words: &'static str,
    pub starter: &'static [&'static str],
    pub nobody: bool,
    pub stdout: Sink,
    pub stderr: Sink,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    Caught,
    Full,
    Unread,
}

pub const PLAIN: By =
    By { words: "", starter: &[], nobody: false, stdout: Sink::Caught, stderr: Sink::Caught };

#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// The accepted exit codes; empty if a signal must kill the program.
    pub codes: &'static [i32],
    /// Words that the output must contain; `|` separates alternatives.
    pub words: &'static [&'static str],
    /// Some points of the JSON failed with these words; none has both an error and numbers.
    pub failed_points: bool,
}

pub const fn refused(words: &'static [&'static str]) -> Ends {
    Ends { codes: &[2], words, failed_points: false }
}

pub const fn fails(words: &'static [&'static str]) -> Ends {
    Ends { codes: &[1], words, failed_points: false }
}

pub const fn no_result(words: &'static [&'static str]) -> Ends {
    Ends { codes: &[1, 2], words, failed_points: false }
}

pub const fn well(words: &'static [&'static str]) -> Ends {
    Ends { codes: &[0], words, failed_points: false }
}

pub const INTERRUPTED: Ends = Ends { codes: &[130], words: &[], failed_points: false };

pub const KILLED: Ends = Ends { codes: &[], words: &[], failed_points: false };

pub const fn failed_points(words: &'static [&'static str]) -> Ends {
    Ends { codes: &[0, 1], words, failed_points: true }
}

pub const fn run(lines: &'static [&'static str], ends: Ends) -> Step {
    Step::Run(PLAIN, lines, ends)
}

struct Running {
    line: String,
    child: Child,
    stdout: File,
    stderr: File,
    by: By,
}

/// Users without access to the path of the program run it through this descriptor.
const PROGRAM_FD: i32 = 97;

const STOP: Duration = Duration::from_millis(600);

const STUTTER: Duration = Duration::from_millis(20);

/// After this time a command counts as hanging.
const PATIENCE: Duration = Duration::from_secs(40);

impl Running {
    fn start(stage: &Stage, by: By, line: &str) -> Running {
        let (stdout, stderr) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut words: Vec<OsString> = by.starter.iter().map(|word| stage.word(word)).collect();
        if by.nobody {
            // A new user each time, because a process limit counts all processes of a user.
            static USERS: AtomicU32 = AtomicU32::new(64_321);
            let user = format!("--reuid={}", USERS.fetch_add(1, Ordering::Relaxed));
            words.extend(["setpriv", &user, "--regid=64321", "--clear-groups"].map(OsString::from));
        }
        // A user who owns nothing may lack access to the program's path.
        let program = File::open(HALFPOWER).unwrap();
        words.push(if by.nobody {
            format!("/proc/self/fd/{PROGRAM_FD}").into()
        } else {
            HALFPOWER.into()
        });
        words.extend(line.split(' ').map(|word| stage.word(word)));
        let sink = |sink: Sink, caught: &File| match sink {
            Sink::Caught => Stdio::from(caught.try_clone().unwrap()),
            Sink::Full => File::options().write(true).open("/dev/full").unwrap().into(),
            Sink::Unread => std::io::pipe().unwrap().1.into(),
        };
        let mut command = Command::new(&words[0]);
        let prepare = move || {
            if by.nobody {
                // SAFETY: dup2 is async-signal-safe and allowed between fork and exec.
                unsafe { libc::dup2(program.as_raw_fd(), PROGRAM_FD) };
            }
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                // SAFETY: as above.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: as above. Background jobs of a shell ignore SIGINT, and their children inherit
        // that.
        unsafe { command.pre_exec(prepare) };
        let child = command
            .args(&words[1..])
            .current_dir(stage.here())
            .env("NO_COLOR", "1")
            .env("HALFPOWER_HISTORY", "none")
            .env("HALFPOWER_STATE", stage.here().join("state"))
            .env("TMPDIR", stage.here().join("tmp"))
            .stdin(Stdio::null())
            .stdout(sink(by.stdout, &stdout))
            .stderr(sink(by.stderr, &stderr))
            .spawn()
            .unwrap_or_else(|error| panic!("{words:?}: {error}"));
        Running { line: line.into(), child, stdout, stderr, by }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a signal to a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    fn status(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            if Instant::now() > until {
                let _ = self.child.kill();
                let said = self.said().1;
                panic!("'{}' hangs: {said}", self.line);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn said(&self) -> (String, String) {
        // Read without moving the file position that the command shares.
        let text = |file: &File| {
            let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        (text(&self.stdout), text(&self.stderr))
    }

    fn ends(mut self, ends: &Ends) {
        let status = self.status();
        let (stdout, stderr) = self.said();
        let shown: String = self.line.chars().take(200).collect();
        let all = format!("'{shown}' ended with {status}\nstdout: {stdout}\nstderr: {stderr}");
        let raw = |c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}';
        assert!(
            !stdout.contains(raw) && !stderr.contains(raw),
            "a character that steers a terminal: {all:?}"
        );
        assert!(!stderr.contains("panicked"), "a panic: {all}");
        // The message may quote an argument of maximum length a few times.
        assert!(stderr.len() < 20_000, "a message of {} bytes: {all}", stderr.len());
        match status.code() {
            Some(code) => {
                assert!(ends.codes.contains(&code), "not an exit code of {:?}: {all}", ends.codes)
            }
            None => assert!(ends.codes.is_empty(), "killed by signal {:?}: {all}", status.signal()),
        }
        if ends.codes == [2] && self.by.stdout == Sink::Caught && !self.line.starts_with("postmark")
        {
            assert!(stdout.is_empty(), "refused, and yet a result: {all}");
        }
        let reported = !stderr.is_empty() || self.by.stderr != Sink::Caught;
        assert!(reported || matches!(ends.codes, [0, ..] | [130] | []), "no message: {all}");
        let mut points = Vec::new();
        if ends.failed_points {
            points = failed_points_of(&stdout).unwrap_or_else(|why| panic!("{why}: {all}"));
        }
        let words = if ends.failed_points { points.join("\n") } else { stdout + &stderr };
        for word in ends.words {
            assert!(
                word.split('|').any(|either| words.contains(either)),
                "nothing of '{word}': {all}"
            );
        }
    }

    /// Returns whether the program has ended, without reaping it, so it can still be signalled.
    fn has_ended(&self) -> bool {
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    }

    fn is_stopped(&self) -> bool {
        let threads =
            fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten();
        let stat = |thread: fs::DirEntry| {
            fs::read_to_string(thread.path().join("stat")).unwrap_or_default()
        };
        let mut states = threads.map(stat).peekable();
        let is_stopped =
            |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
        states.peek().is_some() && states.all(is_stopped)
    }

    /// Reads a counter from /proc/PID/io.
    fn count(&self, name: &str) -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id())).unwrap_or_default();
        io.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
            .unwrap_or(0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed_points_of(stdout: &str) -> Result<Vec<String>, String> {
    let document: Value =
        serde_json::from_str(stdout).map_err(|error| format!("no document: {error}"))?;
    let points = document["points"].as_array().ok_or("no points")?;
    let mut errors = Vec::new();
    for point in points {
        if !has_numbers(point) {
            errors.push(point["error"].as_str().ok_or("an error that is not text")?.to_owned());
        }
    }
    if errors.is_empty() { Err("no point failed".into()) } else { Ok(errors) }
}

/// Returns the next random number of SplitMix64.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

const STORM_US: u64 = 60_000;

pub fn play(name: &str, row: &Row) {
    let mut stage = Stage::new();
    for given in row.given {
        if let Err(why) = stage.give(given) {
            return skip(&format!("{name}: {given:?}: {why}"));
        }
    }
    stage.remember();
    let mut running: Option<Running> = None;
    // The next run removes what a killed one leaves.
    let kills =
        row.steps.iter().any(|step| matches!(step, Step::Storm { signal: libc::SIGKILL, .. }));
    for step in row.steps {
        match step {
            Step::Run(by, lines, ends) => {
                for line in *lines {
                    Running::start(&stage, *by, line).ends(ends);
                    if running.is_none() && !kills {
                        let mut changed = stage.changed();
                        changed
                            .retain(|name| !row.leaves.iter().any(|pattern| fits(pattern, name)));
                        assert_eq!(changed, Vec::<String>::new(), "'{line}' left or changed these");
                    }
                }
            }
            Step::Start(line) => running = Some(Running::start(&stage, PLAIN, line)),
            Step::Until(state) => until(&stage, running.as_mut(), *state),
            Step::Signal(signal) => {
                running.as_ref().expect("a command was started").signal(*signal)
            }
            Step::Ended(ends) => running.take().expect("a command was started").ends(ends),
            Step::Do(given) => stage.give(given).unwrap_or_else(|why| panic!("{given:?}: {why}")),
            Step::Met(faulty) => assert!(stage.faulty(faulty).hits() > 0, "the fault never came"),
            Step::Fails(line) => {
                let words: Vec<String> = line
                    .split(' ')
                    .map(|word| stage.word(word).into_string().expect("plain words"))
                    .collect();
                let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
                assert!(tool(&words[0], &arguments).is_err(), "'{line}' should fail");
            }
            Step::Stop { fs, at, line, ends } => {
                stage.faulty(fs).set(&[*at]);
                let mut stopped = Running::start(&stage, PLAIN, line);
                until(&stage, Some(&mut stopped), State::Hangs(fs));
                stopped.signal(libc::SIGSTOP);
                // A thread that waits for storage stops when it gets the answer.
                stage.faulty(fs).set(&[]);
                stage.faulty(fs).release();
                until(&stage, Some(&mut stopped), State::Stopped);
                stopped.signal(libc::SIGCONT);
                stopped.ends(ends);
            }
            Step::Stutter(stops, by, line, ends) => {
                let stuttering = Running::start(&stage, *by, line);
                let frozen = |frozen: bool| match stops {
                    Stops::Signals => {
                        stuttering.signal(if frozen { libc::SIGSTOP } else { libc::SIGCONT })
                    }
                    Stops::Freezer(group) => stage.freeze(group, frozen),
                };
                let until = Instant::now() + PATIENCE;
                while !stuttering.has_ended() && Instant::now() < until {
                    for stop in [true, false] {
                        frozen(stop);
                        std::thread::sleep(STUTTER);
                    }
                }
                frozen(false);
                stuttering.ends(ends);
            }
            Step::Together(times, line, ends) => {
                let all: Vec<Running> =
                    (0..*times).map(|_| Running::start(&stage, PLAIN, line)).collect();
                all.into_iter().for_each(|one| one.ends(ends));
            }
            Step::Storm { seed, times, line, signal } => {
                storm(&stage, *seed, *times, line, *signal)
            }
        }
    }
    drop(running);
    let mut left = stage.changed();
    for pattern in row.leaves {
        assert!(
            left.iter().any(|one| fits(pattern, one)),
            "{name}: nothing new or changed is called {pattern}"
        );
        left.retain(|one| !fits(pattern, one));
    }
    assert_eq!(left, Vec::<String>::new(), "{name}: these were left or changed");
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

fn until(stage: &Stage, running: Option<&mut Running>, state: State) {
    let mut running = running;
    let mut stopped_since: Option<Instant> = None;
    wait_until(&format!("{state:?}"), || {
        if let Some(one) = &mut running
            && let Some(status) = one.child.try_wait().unwrap()
        {
            let (stdout, stderr) = one.said();
            panic!(
                "'{}' ended with {status} before {state:?}\nstdout: {stdout}\nstderr: {stderr}",
                one.line
            );
        }
        match state {
            State::TestFile(at, bytes) => test_files(&stage.path(at))
                .iter()
                .any(|file| fs::metadata(file).is_ok_and(|file| file.len() >= bytes)),
            State::Read(bytes) => running
                .as_ref()
                .is_some_and(|one| one.count("rchar").max(one.count("read_bytes")) >= bytes),
            State::Written(bytes) => {
                running.as_ref().is_some_and(|one| one.count("wchar") >= bytes)
            }
            State::Mapped(name) => running.as_ref().is_some_and(|one| {
                let maps = fs::read_to_string(format!("/proc/{}/maps", one.child.id()))
                    .unwrap_or_default();
                maps.contains(stage.path(name).to_str().expect("a plain name"))
            }),
            State::Hangs(name) => stage.faulty(name).hanging() > 0,
            State::Said(words) => running.as_mut().is_some_and(|one| one.said().1.contains(words)),
            State::Stopped => {
                let stopped = running.as_ref().is_some_and(|one| one.is_stopped());
                stopped && stopped_since.get_or_insert_with(Instant::now).elapsed() >= STOP
            }
            State::Long(name, bytes) => {
                fs::metadata(stage.path(name)).is_ok_and(|file| file.len() >= bytes)
            }
            State::Set(disk, setting, value) => {
                stage.setting(disk, setting).is_some_and(|now| now == value)
            }
            State::Gone(at) => test_files(&stage.path(at)).is_empty(),
        }
    });
}

/// Ends a line at random times. A clean end must leave nothing; after a kill the next start cleans
/// up.
fn storm(stage: &Stage, seed: u64, times: u32, line: &str, signal: i32) {
    let mut state = seed;
    for time in 0..times {
        let mut running = Running::start(stage, PLAIN, line);
        // Any moment will do.
        std::thread::sleep(Duration::from_micros(random(&mut state) % STORM_US));
        running.signal(signal);
        let status = running.status();
        let (_, stderr) = running.said();
        let all = format!("seed {seed}, time {time}: '{line}' ended with {status}: {stderr}");
        assert!(!stderr.contains("panicked"), "{all}");
        // Before the program handles signals, a signal kills it; afterwards it ends cleanly.
        let in_order =
            status.code().is_some_and(|code| code == 130) || status.signal() == Some(signal);
        assert!(in_order, "{all}");
        if signal != libc::SIGKILL {
            assert_eq!(stage.changed(), Vec::<String>::new(), "{all}");
        }
    }
}
