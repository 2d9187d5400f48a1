//! Completions and manual pages.

mod common;

use common::{HALFPOWER, command, finish, halfpower, skip};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn offered(place: &Path, words: &str) -> Vec<String> {
    const SCRIPT: &str = r#"
        source completions.bash
        name=$(complete -p halfpower)
        name=${name##*-F } name=${name%% *}
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "$name" halfpower "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let programs = Path::new(HALFPOWER).parent().unwrap().to_str().unwrap();
    let mut bash = command("bash", ["--norc", "-c", SCRIPT, "bash"]);
    bash.args(words.split(' ')).current_dir(place);
    bash.env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()));
    let ended = finish(bash);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words}: {ended:?}");
    ended.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_values_and_targets() {
    let place = tempfile::tempdir().unwrap();
    let script = halfpower("completions bash");
    assert_eq!(script.code, Some(0), "{script:?}");
    fs::write(place.path().join("completions.bash"), script.stdout).unwrap();
    fs::create_dir(place.path().join("volume")).unwrap();
    fs::write(place.path().join("volume.img"), "").unwrap();
    let offered = |words: &str| offered(place.path(), words);
    for (words, expected) in [
        ("halfpower st", &["stack", "study"][..]),
        ("halfpower run --work", &["--workload"]),
        ("halfpower run . --workload po", &["postgres-oltp"]),
        ("halfpower tune . --engine io", &["io_uring"]),
        ("halfpower study vol", &["volume.img", "volume/"]),
        ("halfpower twin wh", &["whatif"]),
        ("halfpower run nothing-begins-so", &[]),
        // Bash replaces only what follows the colon.
        ("halfpower run twin : nv", &["nvme", "nvme-hot", "nvme-qlc"]),
        ("halfpower check twin : gate", &["gateway-1997"]),
    ] {
        let mut found = offered(words);
        found.sort_unstable();
        assert_eq!(found, expected, "{words}");
    }
    let twins: Vec<String> = twin::preset::names().map(|name| format!("twin:{name}")).collect();
    assert_eq!(offered("halfpower sweep tw"), twins);
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = halfpower(&format!("completions {shell}"));
        assert_eq!(script.code, Some(0), "{script:?}");
        assert!(script.stdout.contains("halfpower"), "{shell}");
    }
    halfpower("completions csh").refused(&["csh", "bash"]);
}

#[test]
fn every_command_has_a_manual_page() {
    let place = tempfile::tempdir().unwrap();
    let pages = place.path().join("man1");
    let written = halfpower(&format!("man {}", pages.display()));
    assert_eq!(written.code, Some(0), "{written:?}");
    // Again over its own pages.
    assert_eq!(halfpower(&format!("man {}", pages.display())).code, Some(0));
    let help = halfpower("help").stdout;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(commands.len() > 15, "{help}");
    for name in commands {
        assert!(pages.join(format!("halfpower-{name}.1")).is_file(), "{name}");
    }
    let run = fs::read_to_string(pages.join("halfpower-run.1")).unwrap();
    for option in ["request", "workload", "openmetrics", "destroy\\-data"] {
        assert!(run.contains(&format!("\\-\\-{option}")), "{option}");
    }
    if !Command::new("man").arg("-V").stdout(Stdio::null()).status().is_ok_and(|man| man.success())
    {
        return skip("no man");
    }
    for page in fs::read_dir(&pages).unwrap() {
        let page = page.unwrap().path();
        // Hidden files mark the pages as ours on file systems without extended attributes.
        if page.extension().is_none_or(|suffix| suffix != "1") {
            continue;
        }
        let mut man = command("man", ["--warnings", "-l"]);
        man.arg(&page).env("MANPAGER", "cat").env("MANWIDTH", "80");
        let shown = finish(man);
        assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{}", page.display());
        assert!(shown.stdout.contains("SYNOPSIS"), "{}", page.display());
    }
}
