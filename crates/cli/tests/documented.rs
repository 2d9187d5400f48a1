//! Every command in README and docs runs in a scratch directory in little time, or at least parses.

mod common;

use common::places::{Loop, memory_directory};
use common::{Ended, HALFPOWER, command, finish};
use std::fs;
use std::path::{Path, PathBuf};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Commands that are only parsed: they would take long or change this computer.
const PARSED_ONLY: [(&str, &str); 8] = [
    ("halfpower record", "needs root and a process to record; record.rs runs it"),
    ("halfpower profile", "needs a recording; record.rs runs it"),
    ("halfpower twin validate", "replays all published figures; twin_cli.rs runs it"),
    ("halfpower twin fit", "calibrates a machine for a minute; twin_cli.rs runs it"),
    ("halfpower stack", "measures every layer for 20 s; stack.rs runs it"),
    ("halfpower sqlio --matrix --size 80g", "36 points on two volumes; tools.rs runs it"),
    (
        "halfpower tune . --profile",
        "--yes changes settings of this computer; tune.rs runs it on loop devices",
    ),
    (
        "halfpower tune /srv ",
        "--yes changes settings of this computer; tune.rs runs it on loop devices",
    ),
];

/// An option, its value, and whether a command without it gets it.
type ShortOption = (&'static str, &'static str, bool);

const SHORT: [(&str, &[ShortOption]); 12] = [
    ("study --sustained", &[]),
    ("study", &[("--budget", "5s", true), ("--size", "16m", true), ("--only", "random", true)]),
    ("run", RUN),
    ("sweep", RUN),
    (
        "compare --a",
        &[("--budget", "1s", true), ("--size", "16m", true), ("--runtime", "30ms", true)],
    ),
    ("tune", &[]),
    ("check", &[("--budget", "5s", true)]),
    ("metadata", &[("--files", "100", true)]),
    ("iozone", &[("-g", "128k", true)]),
    ("sqlio", &[("--size", "4m", false), ("--runtime", "1s", false)]),
    ("diskspd", &[]),
    ("twin cache --op", &[("--bytes", "16m", true), ("--size", "64m", true)]),
];
const RUN: &[ShortOption] = &[
    ("--runtime", "30ms", true),
    ("--size", "16m", true),
    ("--repeats", "1", true),
    ("--max-repeats", "1", true),
];

const SHORT_WORDS: [(&str, &str); 5] = [
    (" -s10 ", " -s1 "),
    (" -d5 ", " -d1 -W0 "),
    (" -c64M ", " -c4M "),
    ("--size=64m", "--size=4m"),
    ("--runtime=5", "--runtime=1"),
];
struct Shown {
    line: usize,
    text: String,
}

fn shown(page: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let (mut fenced, mut continued) = (false, false);
    for (number, line) in page.lines().enumerate() {
        fenced ^= line.starts_with("```");
        let block = fenced || line.starts_with("    ");
        let text = without_comment(line.trim());
        let (text, more) = text.strip_suffix('\\').map_or((text, false), |text| (text, true));
        if continued {
            let last = found.last_mut().expect("a continued line follows its first");
            last.text = format!("{} {}", last.text, text.trim());
        } else if block && text.starts_with("halfpower ") {
            found.push(Shown { line: number + 1, text: text.trim().into() });
        }
        continued = more && (continued || block && text.starts_with("halfpower "));
    }
    found
}

fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, character) in line.char_indices() {
        match quote {
            None if character == '#' && before == ' ' => return line[..at].trim_end(),
            None if character == '\'' || character == '"' => quote = Some(character),
            Some(open) if open == character => quote = None,
            _ => {}
        }
        before = character;
    }
    line
}

fn shortened(text: &str) -> String {
    let mut text = SHORT_WORDS
        .iter()
        .fold(text.replace(['[', ']'], ""), |text, (long, short)| text.replace(long, short));
    let options = SHORT
        .iter()
        .find(|(start, _)| text.starts_with(&format!("halfpower {start}")))
        .map(|(_, options)| *options);
    for (option, value, add) in options.unwrap_or_default() {
        let mut words: Vec<&str> = text.split(' ').collect();
        if let Some(at) = words.iter().position(|word| word == option) {
            words[at + 1] = value;
            text = words.join(" ");
        } else if *add && !(*option == "--runtime" && text.contains(" --load ")) {
            // Before a redirection, which is outside quotes.
            let redirection =
                text.match_indices(" >").find(|(at, _)| text[..*at].matches('\'').count() % 2 == 0);
            let at = redirection.map_or(text.len(), |(at, _)| at);
            text.insert_str(at, &format!(" {option} {value}"));
        }
    }
    text
}

struct Scratch {
    root: tempfile::TempDir,
    devices: Result<[Loop; 3], String>,
}

impl Scratch {
    fn make(history: &Path) -> Scratch {
        let root = memory_directory();
        let file = |name: &str, content: &[u8]| fs::write(root.path().join(name), content).unwrap();
        for directory in [
            "mnt/ext4",
            "mnt/xfs",
            "data",
            "srv",
            "dirA",
            "dirB",
            "dirC",
            "state",
            "bin",
            "sys/block/sda/queue",
        ] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        fs::copy(history, root.path().join("history.sqlite")).unwrap();
        std::os::unix::fs::symlink(HALFPOWER, root.path().join("bin/halfpower")).unwrap();
        file("disk.img", &[]);
        fs::File::options()
            .write(true)
            .open(root.path().join("disk.img"))
            .unwrap()
            .set_len(16 << 20)
            .unwrap();
        file("FILE", b"set location twin:server-2003,ramcache=256m\nset number 20\nset transactions 20\nrun\nquit\n");
        file("TRACE", b"time_ns,op,offset,bytes\n0,w,0,4096\n1000,r,0,4096\n");
        file("app.strace", b"1 1.000000 openat(AT_FDCWD, \"/d/log\", O_WRONLY|O_CREAT|O_TRUNC) = 3 <0.000020>\n1 1.001000 write(3, \"\"..., 8192) = 8192 <0.000100>\n1 1.002000 fdatasync(3) = 0 <0.001000>\n");
        file("old.csv", b"case,before,after\nread,100,120\nwrite,50,51\n");
        let alignment = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../dialect/tests/data/sqlio_partition_alignment.csv"
        );
        fs::copy(alignment, root.path().join("sqlio_partition_alignment.csv")).unwrap();
        let devices = || Ok([Loop::make(64 << 20)?, Loop::make(64 << 20)?, Loop::make(64 << 20)?]);
        let scratch = Scratch { devices: devices(), root };
        let made = ["before.json", "after.json", "a.json", "b.json"]
            .map(|name| format!("run twin:nvme --bytes 16m --json > {name}"));
        for words in made.iter().map(String::as_str).chain([
            "twin show nvme --toml > fitted.toml",
            "trace convert app.strace -o app.hptrace",
        ]) {
            let ended = scratch.shell(&format!("halfpower --no-history {words}"));
            assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        }
        scratch
    }

    fn placed(&self, text: &str) -> Option<String> {
        let root = self.root.path().to_str().expect("paths of tests are UTF-8");
        let mut text = text.to_owned();
        for name in ["/mnt/", "/data", "/srv", "/sys/block/"] {
            text = text.replace(name, &format!("{root}{name}"));
        }
        if text.contains("/dev/sd") {
            let devices = self.devices.as_ref().ok()?;
            for (name, device) in ["/dev/sdX", "/dev/sdY", "/dev/sdb"].iter().zip(devices) {
                text = text.replace(name, &device.device);
            }
        }
        Some(text)
    }

    fn shell(&self, line: &str) -> Ended {
        let root = self.root.path();
        let path =
            format!("{}:{}", root.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = command("sh", ["-c", line]);
        command
            .current_dir(root)
            .env("PATH", path)
            .env("HALFPOWER_HISTORY", root.join("history.sqlite"))
            .env("HALFPOWER_STATE", root.join("state"))
            .env("GITHUB_STEP_SUMMARY", root.join("summary.md"));
        finish(command)
    }

    /// Parses a command: `--help` after all words is reached only if they are accepted.
    fn parse(&self, text: &str) -> Ended {
        self.shell(&format!("{} --help", text.replace(['[', ']'], "")))
    }

    fn fault(&self, shown: &Shown) -> Option<String> {
        let reason = PARSED_ONLY
            .iter()
            .find(|(start, _)| shown.text.starts_with(start))
            .map(|(_, reason)| *reason);
        let parquet = shown.text.contains("parquet") && !cfg!(feature = "parquet");
        let reason = reason.or(parquet.then_some("needs the feature parquet"));
        let line = self.placed(&shortened(&shown.text));
        let ended = match (reason, line) {
            (None, Some(line)) => self.shell(&line),
            (reason, _) => {
                eprintln!(
                    "parsed only: {}: {}",
                    shown.text,
                    reason.unwrap_or("no loop device can be made here")
                );
                self.parse(&shown.text)
            }
        };
        // Exit code 3 is an answer: slower than allowed.
        let answers = shown.text.starts_with("halfpower check") || shown.text.contains("--fail-if");
        let good = ended.code == Some(0) || answers && ended.code == Some(3);
        (!good).then(|| {
            format!("`{}` ended with {:?}: {}", shown.text, ended.code, ended.stderr.trim())
        })
    }
}

fn history(directory: &Path) -> PathBuf {
    let file = directory.join("history.sqlite");
    let run = |words: &str| {
        let mut command = command(HALFPOWER, words.split(' '));
        command.current_dir(directory).env("HALFPOWER_HISTORY", &file);
        let ended = finish(command);
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
    };
    for _ in 0..20 {
        run("run twin:nvme --bytes 16m");
    }
    run("compare --a twin:nvme --b twin:sata-ssd --bytes 16m --budget 3s");
    file
}

/// Returns README and the pages of docs; docs/reliability.md shows no commands.
fn pages() -> Vec<(String, String)> {
    let docs =
        fs::read_dir(format!("{REPOSITORY}/docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    pages.push(format!("{REPOSITORY}/README.md").into());
    pages.sort();
    let name = |path: &PathBuf| {
        path.file_name().expect("a page has a name").to_string_lossy().into_owned()
    };
    pages.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

fn faults_of(name: &str, commands: &[Shown], history: &Path) -> Vec<String> {
    let scratch = Scratch::make(history);
    // An earlier result, for `check` and the trend of a target.
    for target in [".", "data", "srv"] {
        let ended = scratch
            .shell(&format!("halfpower sweep {target} --size 16m --runtime 30ms --repeats 2"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    let mut faults = Vec::new();
    for one in commands {
        let began = std::time::Instant::now();
        faults.extend(scratch.fault(one).map(|fault| format!("{name}:{}: {fault}", one.line)));
        eprintln!("{:5.1} s  {name}:{}  {}", began.elapsed().as_secs_f64(), one.line, one.text);
    }
    faults
}

#[test]
fn every_shown_command_works() {
    let directory = memory_directory();
    let history = history(directory.path());
    let pages = pages();
    let shown: Vec<(&str, Vec<Shown>)> =
        pages.iter().map(|(name, page)| (name.as_str(), shown(page))).collect();
    let commands: usize = shown.iter().map(|(_, commands)| commands.len()).sum();
    let faults: Vec<String> = std::thread::scope(|scope| {
        let busy = shown.iter().filter(|(_, commands)| !commands.is_empty());
        let threads: Vec<_> = busy
            .map(|(name, commands)| scope.spawn(|| faults_of(name, commands, &history)))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a page is checked")).collect()
    });
    assert!(commands > 60, "the pages show commands: {commands} found");
    assert!(
        faults.is_empty(),
        "{} of {commands} shown commands do not work:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn every_command_named_in_a_sentence_exists() {
    let help = common::halfpower("--help").stdout;
    let known: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(
        known.contains(&"study") && known.contains(&"twin"),
        "the list of commands is read: {known:?}"
    );
    let helps = known.iter().filter(|name| **name != "help").map(|name| {
        let ended = common::halfpower(&format!("{name} --help"));
        (format!("{name} --help"), ended.stdout)
    });
    let mut unknown = Vec::new();
    for (page, text) in helps.chain(pages()) {
        for rest in text.split("`halfpower ").skip(1) {
            let word = rest
                .split(|character: char| !character.is_ascii_alphanumeric() && character != '-')
                .next()
                .unwrap_or("");
            if !word.starts_with('-') && !known.contains(&word) {
                unknown.push(format!("{page}: `halfpower {word}`"));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn comments_and_continued_lines_are_read() {
    let page = "    halfpower run 'twin:nvme#a' --size 1g   # a comment\n\n    halfpower compare --a x \\\n        --b y\nhalfpower is a word\n```\nhalfpower study\n```\n";
    let texts: Vec<String> = shown(page).into_iter().map(|one| one.text).collect();
    assert_eq!(
        texts,
        [
            "halfpower run 'twin:nvme#a' --size 1g",
            "halfpower compare --a x --b y",
            "halfpower study"
        ]
    );
    assert_eq!(shortened("halfpower check 'a > b'"), "halfpower check 'a > b' --budget 5s");
    assert_eq!(
        shortened("halfpower run . --runtime 2s > a"),
        "halfpower run . --runtime 30ms --size 16m --repeats 1 --max-repeats 1 > a"
    );
}
