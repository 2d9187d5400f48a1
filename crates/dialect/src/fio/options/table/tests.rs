use super::*;
use std::collections::BTreeSet;

#[test]
fn every_name_is_in_one_row() {
    let mut seen = BTreeSet::new();
    for name in ROWS.iter().flat_map(Row::names) {
        assert!(seen.insert(name), "{name} stands twice");
    }
}

/// From Debian's fio 3.33: `--cmdhelp=all` and `--enghelp=ENGINE`.
const OF_FIO: &str = include_str!("../../../../tests/data/fio-options.txt");

#[test]
fn every_option_of_fio_is_taken_or_refused_with_advice() {
    let mut count = 0;
    for name in OF_FIO.split_whitespace() {
        count += 1;
        let row = find(name).unwrap_or_else(|| panic!("{name} has no row"));
        let (OnlyValues(_, hint) | OnlyZero(hint) | Refused(hint)) = row.takes else { continue };
        assert!(hint.len() >= LEAVE.len(), "{name}: what to use instead");
        let value = if matches!(row.takes, OnlyZero(_)) { "1" } else { "7" };
        let why = Options::default().set(name, Some(value)).unwrap_err();
        assert!(why.contains(hint), "{name}: {why}");
    }
    assert_eq!(count, 268, "the list is complete");
}

#[test]
fn options_with_an_effect_are_not_taken_without_it() {
    for line in ["uncached=1", "force_async=1", "hipri_percentage=50", "log_store_compressed=1"] {
        let (name, value) = line.split_once('=').unwrap();
        assert!(Options::default().set(name, Some(value)).is_err(), "{line}");
        assert!(Options::default().set(name, Some("0")).is_ok(), "{name}=0");
    }
}

#[test]
fn misspelt_and_unsupported_options_give_different_errors() {
    for (name, value, reason) in [
        ("run_time", "3", "did you mean runtime?"),
        ("io_depth", "3", "did you mean iodepth?"),
        ("group-reporting", "1", "did you mean group_reporting?"),
        ("numa_cpu_nodes", "0", "does not serve it; start halfpower under numactl"),
        ("xyzzy", "1", "does not know it"),
        ("write_barrier", "1", "serves only 0 here"),
        ("sync_file_range", "8", "not wait_before, write or wait_after"),
    ] {
        let why = Options::default().set(name, Some(value)).unwrap_err();
        assert!(why.contains(reason), "{name}: {why}");
    }
}

#[test]
fn aliases_set_the_same_option() {
    for (name, other, value) in [
        ("runtime", "timeout", "7"),
        ("nrfiles", "nr_files", "3"),
        ("bs", "blocksize", "8k"),
        ("offset", "fileoffset", "4k"),
    ] {
        let mut options = [Options::default(), Options::default()];
        options[0].set(name, Some(value)).unwrap();
        options[1].set(other, Some(value)).unwrap();
        assert_eq!(options[0], options[1], "{other}");
        assert_eq!(canonical(other), name);
    }
    assert!(is_flag("refill_buffers") && !is_flag("direct"));
}

#[test]
fn ignored_options_still_check_their_value() {
    for flag in ["registerfiles", "userspace_reap", "hipri", "sqthread_poll", "bs_unaligned"] {
        assert!(is_flag(flag) && Options::default().set(flag, Some("0")).is_ok(), "{flag}");
        assert!(Options::default().set(flag, Some("--iodepth=4")).is_err(), "{flag}");
    }
    for (name, good, bad) in [
        ("nowait", "1", "--iodepth=4"),
        ("clocksource", "cpu", "bogus"),
        ("verify_async", "4", "x"),
        ("nonvectored", "-1", "x"),
        ("mem_align", "4k", "4x"),
    ] {
        assert!(!is_flag(name) && Options::default().set(name, Some(good)).is_ok(), "{name}");
        assert!(Options::default().set(name, Some(bad)).is_err(), "{name}={bad}");
    }
    assert!(Options::default().set("sqthread_poll", None).unwrap_err().contains("only 0"));
}

#[test]
fn a_dash_separates_read_and_write_sizes() {
    let blocks = |text: &str| {
        let mut options = Options::default();
        options.set("bs", Some(text)).unwrap();
        let one = |mix: &SizeMix| mix.bounds().unwrap().1 >> 10;
        [one(&options.blocks[0]), one(&options.blocks[1]), one(&options.trim_blocks)]
    };
    assert_eq!(
        (blocks("8k-32k"), blocks("32k-8k"), blocks("4k")),
        ([8, 32, 32], [32, 8, 8], [4, 4, 4])
    );
    assert_eq!((blocks("4k-8k,16k-32k"), blocks("4k,8k,64k")), ([4, 16, 16], [4, 8, 64]));
    // An empty size stays as it was.
    assert_eq!(
        (blocks("8k,,16k"), blocks("8k,"), blocks(",8k")),
        ([8, 4, 16], [8, 4, 4], [4, 8, 8])
    );
}

#[test]
fn the_order_of_size_options_has_no_effect() {
    let largest = |all: &[(&str, &str)]| {
        let mut options = Options::default();
        for (name, value) in all {
            options.set(name, Some(value)).unwrap();
        }
        options.blocks[1].bounds().unwrap().1 >> 10
    };
    let (size, range, split) = (("bs", "8k"), ("bsrange", "4k-32k"), ("bssplit", "4k/50:16k/50"));
    assert_eq!((largest(&[size, range]), largest(&[range, size])), (32, 32));
    assert_eq!((largest(&[split, range]), largest(&[split, size, range])), (16, 16));
    assert_eq!(largest(&[size, ("bs", "2k")]), 2, "the last of one option counts");
}

#[test]
fn the_help_lists_supported_options() {
    let help = help(100);
    assert!(
        help.contains("  requests  rw rwmixread") && !help.contains("numa_cpu_nodes"),
        "{help}"
    );
    assert!(help.lines().all(|line| line.len() <= 100));
}
