//! The command language: accepted, refused and arbitrary texts.

use dialect::postmark::{Command, Complaint, Config, LocationEdit, ReportStyle, parse, show};
use machine::files::{FileEngine, FileSync};
use proptest::prelude::*;

fn command(line: &str) -> Command {
    parse(line, false).unwrap_or_else(|complaint| panic!("{line}: {complaint}"))
}

/// The behaviour of PostMark 1.53 with these lines.
#[test]
fn arguments_are_read_as_the_original_reads_them() {
    assert_eq!(command("set size 500"), Command::SetSize(500, 500));
    assert_eq!(command("set size 10 5"), Command::SetSize(10, 10));
    assert_eq!(command("set size 1k 1048576"), Command::SetSize(1, 1_048_576));
    assert_eq!(command("set number 9  \r"), Command::SetNumber(9));
    assert_eq!(command("set bias read -1"), Command::SetBiasRead(None));
    assert_eq!(command("set bias read 3x"), Command::SetBiasRead(Some(3)));
    assert_eq!(command("set bias create 5 foo"), Command::SetBiasCreate(Some(5)));
    assert_eq!(
        command("set location /tmp"),
        Command::SetLocation(LocationEdit::Replace("/tmp".into(), 1))
    );
    assert_eq!(
        command("set location +/tmp 3"),
        Command::SetLocation(LocationEdit::Add("/tmp".into(), 3))
    );
    assert_eq!(
        command("set location  -1"),
        Command::SetLocation(LocationEdit::Remove("1".into())),
        "blanks before a sign"
    );
    assert_eq!(
        command("set location -/tmp"),
        Command::SetLocation(LocationEdit::Remove("/tmp".into()))
    );
    assert_eq!(command("set report terse"), Command::SetReport(ReportStyle::Terse));
    assert_eq!(command("set buffering false"), Command::SetBuffering(false));
    assert_eq!(command("run\tout"), Command::Run(Some("out".into())));
    assert_eq!(command("quitx"), Command::Quit);
    assert_eq!(command("set sync all"), Command::SetSync(FileSync::All));
    assert_eq!(command("set engine io_uring"), Command::SetEngine(FileEngine::IoUring));
}

#[test]
fn what_is_refused_says_what_would_be_right() {
    for (line, words) in [
        ("set number 0", "invalid number of files: write a number from 1 to 1073741823: '0'"),
        ("set number -3", "'-3'"),
        ("set number 99999999999999999999999", "'99999999999999999999999'"),
        ("set size abc", "no file size low or high bounds specified"),
        ("set size 0 5", "no file size low or high bounds specified"),
        ("set size 5 99999999999", "from 1 to 2147483647"),
        ("set seed -1", "invalid seed for random numbers"),
        ("set transactions", "no transactions specified"),
        ("set subdirectories 0", "invalid number of subdirectories"),
        ("set read 0", "invalid read block size"),
        ("set write -5", "invalid write block size"),
        ("set bias read 11", "no bias specified (0-10 for greater chance,-1 to disable)"),
        ("set bias create -2", "no bias specified"),
        ("set bias read", "no bias specified"),
        ("set report TERSE", "either 'verbose' or 'terse' required"),
        ("set buffering t", "no buffering mode (true/false) specified"),
        ("set location", "no directory name specified"),
        ("set location /a 0", "invalid weight"),
        ("set location a\0b", "NUL"),
        ("load", "no configuration file specified"),
        ("set threads 0", "invalid number of threads"),
        ("set threads 1000000", "from 1 to 1024"),
        ("set sync some", "one of none, file, all required"),
        ("set engine libaio", "one of stdio, syscalls, io_uring required"),
        ("!rm -rf /", "starts no shell"),
    ] {
        let complaint = parse(line, true).unwrap_err().to_string();
        assert!(
            complaint.starts_with("Error: ") && complaint.contains(words),
            "{line}: {complaint}"
        );
    }
}

#[test]
fn unknown_lines_and_those_of_the_prompt() {
    for line in
        ["", "sho", "SHOW", " show", "# comment", "set", "set foo", "set bias foo", "exit", "?"]
    {
        assert_eq!(parse(line, false), Err(Complaint::Unknown), "{line:?}");
    }
    assert_eq!(parse("exit", true), Ok(Command::Quit));
    assert_eq!(parse("? set s", true), Ok(Command::Help("set s".into())));
}

#[test]
fn a_long_argument_comes_back_short() {
    let complaint =
        parse(&format!("set number {}", "x".repeat(1_000_000)), true).unwrap_err().to_string();
    assert!(complaint.len() < 300, "{} characters", complaint.len());
}

/// Shown by PostMark 1.53 after the same commands.
#[test]
fn the_configuration_is_shown_as_the_original_shows_it() {
    let mut config = Config::default();
    for line in [
        "set size 1024 1048577",
        "set location /nonexist",
        "set location +/tmp 3",
        "set subdirectories 1",
        "set write 1000000",
        "set bias read -1",
        "set report terse",
    ] {
        config.set(&command(line)).unwrap();
    }
    assert_eq!(
        show(&config),
        "Current configuration is:\nThe base number of files is 500\nTransactions: 500\nFiles range between 1.00 kilobytes and 1.00 megabytes in size\n\
         Working directories: \n\t/nonexist (weight=1)\n\t/tmp (weight=3)\n1 subdirectory will be used\n\
         Block sizes are: read=512 bytes, write=976.56 kilobytes\nBiases are: read/append=-1, create/delete=5\nUsing Unix buffered file I/O\n\
         Random number generator seed is 42\nReport format is terse.\n"
    );
    for line in [
        "set size 5",
        "set location -/tmp",
        "set subdirectories 2",
        "set buffering false",
        "set threads 4",
        "set sync file",
    ] {
        config.set(&command(line)).unwrap();
    }
    let text = show(&config);
    for line in [
        "Files are 5 bytes in size\n",
        "Working directory: \n\t/nonexist (weight=1)\n2 subdirectories will be used\n",
        "Not using Unix buffered file I/O\n",
        "Report format is terse.\nThreads: 4\nSync: file\n",
    ] {
        assert!(text.contains(line), "{line:?} in\n{text}");
    }
    let gone = config.set(&command("set location -/zz")).unwrap_err().to_string();
    assert!(gone.contains("cannot find location") && gone.contains("/zz"));
}

fn line_like() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "set size",
        "set number",
        "set seed",
        "set transactions",
        "set location",
        "set subdirectories",
        "set read",
        "set write",
        "set buffering",
        "set bias read",
        "set bias create",
        "set report",
        "set threads",
        "set sync",
        "set engine",
        "run",
        "load",
        "show",
        "help",
        "quit",
        "?",
        "exit",
        "!",
    ]);
    let words = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        (0u32..20).prop_map(|n| n.to_string()),
        "[+-]?[/a-z0-9.]{1,12}",
        "\\PC{0,6}",
        prop::sample::select(vec![
            "true", "false", "verbose", "terse", "none", "file", "all", "stdio", "syscalls",
            "io_uring", "\0", "1k"
        ])
        .prop_map(String::from),
    ];
    (names, "[ \t=é]?", prop::collection::vec(words, 0..4))
        .prop_map(|(name, gap, words)| format!("{name}{gap}{}", words.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_accepted_line_round_trips(line in line_like()) {
        if let Ok(command) = parse(&line, true) {
            let again = command.to_string();
            prop_assert_eq!(parse(&again, true), Ok(command.clone()), "{:?} came back as {:?}", line, again);
            let mut config = Config::default();
            if config.set(&command).is_ok() {
                prop_assert!(show(&config).ends_with('\n'));
            }
        }
    }

    #[test]
    fn no_text_panics(line in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&line, true);
        let _ = parse(&String::from_utf8_lossy(&bytes), false);
    }
}
