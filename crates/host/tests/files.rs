//! Every file engine works, and nothing is left behind.

use host::files::{HostFiles, remove_leftovers};
use machine::files::{
    AreaSpec, FileArea, FileEngine, FileError, FileId, FileSync, FileSystem, FileWork,
};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

static GOES_ON: AtomicBool = AtomicBool::new(false);

fn spec(location: &Path, engine: FileEngine, sync: FileSync) -> AreaSpec {
    AreaSpec {
        locations: vec![location.into()],
        joins: false,
        branch: 0,
        subdirectories: 2,
        engine,
        sync,
        read_block_bytes: 700,
        write_block_bytes: 300,
    }
}

fn file(subdirectory: u32, number: u32) -> FileId {
    FileId { location: 0, subdirectory, number }
}

fn engines() -> Vec<FileEngine> {
    let here = tempfile::tempdir().unwrap();
    let is_here = |engine: &FileEngine| match HostFiles::new().open(&spec(
        here.path(),
        *engine,
        FileSync::None,
    )) {
        Ok(_) => true,
        Err(error) => {
            assert!(
                std::env::var_os("HALFPOWER_REQUIRE").is_none(),
                "{engine:?} is required: {error}"
            );
            false
        }
    };
    FileEngine::ALL.into_iter().filter(is_here).collect()
}

#[test]
fn every_engine_makes_reads_appends_and_deletes() {
    let here = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
    for (engine, sync) in
        engines().into_iter().flat_map(|engine| FileSync::ALL.map(|sync| (engine, sync)))
    {
        let area = HostFiles::new().open(&spec(here.path(), engine, sync)).unwrap();
        area.make_subdirectories(&GOES_ON).unwrap();
        let room = fs::read_dir(here.path()).unwrap().next().unwrap().unwrap().path();
        let mut work = area.work().unwrap();
        for (number, size) in [(1, 1), (2, 300), (3, 4096), (4, 4097), (5, 100_000)] {
            work.create(file(1, number), &content[..size]).unwrap();
            work.append(file(1, number), &content[..500]).unwrap();
            let expected = [&content[..size], &content[..500]].concat();
            assert_eq!(
                fs::read(room.join(format!("s1/{number}"))).unwrap(),
                expected,
                "{engine:?} {size}"
            );
            work.read(file(1, number), expected.len() as u64).unwrap();
            assert_eq!(work.stat(file(1, number)).unwrap(), expected.len() as u64);
            let short = work.read(file(1, number), expected.len() as u64 + 1).unwrap_err();
            assert!(
                matches!(short, FileError::Size { got, .. } if got == expected.len() as u64),
                "{short}"
            );
        }
        assert_eq!((work.list(0, 0).unwrap(), work.list(0, 1).unwrap()), (0, 5));
        work.rename(file(1, 5), file(0, 50)).unwrap();
        work.open(file(0, 50)).unwrap();
        assert!(
            work.open(file(1, 5)).unwrap_err().to_string().contains("s1/5"),
            "the error names the file"
        );
        assert!(work.create(file(0, 50), &[]).is_err(), "an existing file is never overwritten");
        work.delete(file(0, 50)).unwrap();
        (1..5).for_each(|number| work.delete(file(1, number)).unwrap());
        area.remove_subdirectories(&GOES_ON).unwrap();
        drop((area, work));
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0, "{engine:?} left something");
    }
}

#[test]
fn an_interrupt_ends_the_work_on_subdirectories() {
    let here = tempfile::tempdir().unwrap();
    let interrupted = AtomicBool::new(true);
    let area =
        HostFiles::new().open(&spec(here.path(), FileEngine::Stdio, FileSync::None)).unwrap();
    let own = fs::read_dir(here.path()).unwrap().next().unwrap().unwrap().path();
    assert!(!area.make_subdirectories(&interrupted).unwrap());
    assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    assert!(area.make_subdirectories(&GOES_ON).unwrap());
    assert!(!area.remove_subdirectories(&interrupted).unwrap());
    assert_eq!(fs::read_dir(&own).unwrap().count(), 2);
    drop(area);
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0);
}

#[test]
fn an_area_is_removed_with_its_contents() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("mine"), "kept").unwrap();
    let area =
        HostFiles::new().open(&spec(here.path(), FileEngine::Stdio, FileSync::None)).unwrap();
    area.make_subdirectories(&GOES_ON).unwrap();
    area.work().unwrap().create(file(0, 1), b"left").unwrap();
    drop(area);
    let left: Vec<_> =
        fs::read_dir(here.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["mine"]);
}

#[test]
fn only_leftovers_of_killed_runs_are_removed() {
    let here = tempfile::tempdir().unwrap();
    let first =
        HostFiles::new().open(&spec(here.path(), FileEngine::Stdio, FileSync::None)).unwrap();
    let dead = fs::read_dir(here.path()).unwrap().next().unwrap().unwrap().path();
    first.make_subdirectories(&GOES_ON).unwrap();
    first.work().unwrap().create(file(0, 1), b"left").unwrap();
    // The state after a kill: the lock is gone, the directory stays.
    std::mem::forget(first);
    for fd in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        if fs::read_link(fd.path()).is_ok_and(|path| path == dead) {
            // SAFETY: the descriptor of the forgotten directory.
            unsafe { libc::close(fd.file_name().to_str().unwrap().parse().unwrap()) };
        }
    }
    for users in ["halfpower-mine.files", "halfpower-2024-11.files", "halfpower-4000000-0.files"] {
        fs::create_dir(here.path().join(users)).unwrap();
    }
    let area =
        HostFiles::new().open(&spec(here.path(), FileEngine::Stdio, FileSync::None)).unwrap();
    assert!(!dead.exists(), "a run removes what a killed one left");
    assert_eq!(remove_leftovers(here.path()), 0, "the living one stays");
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 4);
    drop(area);
}

#[test]
fn a_bad_location_is_an_error() {
    let here = tempfile::tempdir().unwrap();
    let plain = here.path().join("plain");
    fs::write(&plain, "").unwrap();
    let open = |path: &Path| {
        HostFiles::new().open(&spec(path, FileEngine::Stdio, FileSync::None)).err().unwrap()
    };
    assert!(matches!(open(&here.path().join("nowhere")), FileError::NoLocation(_)));
    assert!(matches!(open(&plain), FileError::NotADirectory(_)));
    assert!(open(Path::new("/proc")).to_string().contains("/proc"));
}
