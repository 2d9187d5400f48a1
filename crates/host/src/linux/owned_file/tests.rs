use super::{OwnedFile, kept, kept_bytes, remove_leftovers};
use machine::mark::part_name;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

#[test]
fn only_leftovers_of_dead_runs_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let alive = OwnedFile::create(directory.path(), None).unwrap();
    let mut dead = OwnedFile::create(directory.path(), None).unwrap();
    let dead_path = dead.path.clone();
    fs::write(&dead_path, "left").unwrap();
    dead.kept = true;
    drop(dead);
    fs::copy(&dead_path, directory.path().join("aside")).unwrap();
    let name = dead_path.file_name().unwrap().to_owned();
    fs::create_dir(directory.path().join("restored")).unwrap();
    fs::copy(&dead_path, directory.path().join("restored").join(&name)).unwrap();
    for name in ["halfpower-mine.tmp", "halfpower-1-2.tmp", "halfpower-2024-11.tmp", "notes"] {
        fs::write(directory.path().join(name), "the user's").unwrap();
    }
    assert_eq!(remove_leftovers(directory.path()), (1, 4));
    assert!(!dead_path.exists() && alive.path.exists());
    assert_eq!(
        remove_leftovers(&directory.path().join("restored")),
        (0, 0),
        "a copy of the user's stays"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 7);
}

#[test]
fn a_name_that_now_leads_elsewhere_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let made = OwnedFile::create(directory.path(), None).unwrap();
    let path = made.path.clone();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "the user's").unwrap();
    drop(made);
    assert_eq!(fs::read(&path).unwrap(), b"the user's");
}

#[test]
fn a_killed_runs_user_named_file_stays() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("testfile.dat");
    let living = OwnedFile::create(directory.path(), path.file_name()).unwrap();
    assert!(kept(&path).is_none(), "its maker lives");
    assert!(OwnedFile::create(directory.path(), path.file_name()).is_err(), "the name is taken");
    drop(living);
    assert!(!path.exists());
    // The state after a kill: the file is not cleaned up.
    let killed = |mut made: OwnedFile| (made.kept, made.untouched) = (true, true.into());
    killed(OwnedFile::create(directory.path(), path.file_name()).unwrap());
    assert_eq!(kept_bytes(&path), None);
    std::fs::remove_file(&path).unwrap();
    // Killed while it overwrites a file kept by an earlier run.
    keep(&path, b"kept");
    let again = kept(&path).unwrap();
    again.touch();
    killed(again);
    assert_eq!(kept_bytes(&path), None);
    assert_eq!(fs::read(&path).unwrap(), b"kept");
}

#[test]
fn hidden_leftovers_are_removed_and_user_files_stay() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let here = inode(directory.path());
    let (empty, folder, full, living) =
        (at(&part_name(1, here)), at(&part_name(2, here)), at("full"), at(&part_name(4, here)));
    fs::write(&empty, "").unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(&full, "a part of a document").unwrap();
    let own = at(&part_name(3, inode(&full)));
    fs::rename(&full, &own).unwrap();
    let held = fs::File::create(&living).unwrap();
    crate::linux::sys::try_lock(&held).unwrap();
    let (named, copy, kept) =
        (at(".halfpower-0123456789abcdef.part"), at(&part_name(5, here)), at(&part_name(6, here)));
    fs::write(&named, "").unwrap();
    fs::write(&copy, "the user's").unwrap();
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("thesis"), "the user's").unwrap();
    remove_leftovers(directory.path());
    assert!(!empty.exists() && !folder.exists() && !own.exists());
    assert!(living.exists() && named.exists() && copy.exists() && kept.join("thesis").exists());
}

fn keep(path: &Path, content: &[u8]) {
    let mut made = OwnedFile::create(path.parent().unwrap(), path.file_name()).unwrap();
    made.file().write_all_at(content, 0).unwrap();
    made.keep();
}

fn directories() -> [tempfile::TempDir; 2] {
    [env!("CARGO_MANIFEST_DIR"), "/dev/shm"].map(|at| tempfile::tempdir_in(at).unwrap())
}

#[test]
fn a_kept_file_may_be_used_again() {
    for directory in directories() {
        let path = directory.path().join("testfile.dat");
        keep(&path, &[7; 4096]);
        for _ in 0..2 {
            assert_eq!(kept_bytes(&path), Some(4096), "a look leaves it as it is");
        }
        for _ in 0..2 {
            let again = kept(&path).expect("it was kept");
            again.touch();
            again.file().set_len(8192).unwrap();
        }
        assert_eq!(kept_bytes(&path), Some(8192));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no mark of its own name");
        kept(&path).unwrap().discard();
        assert!(!path.exists());
    }
}

#[test]
fn a_changed_kept_file_belongs_to_the_user() {
    type Change = fn(&Path, &Path);
    let changes: [(&str, Change); 7] = [
        ("a write of the same length", |path, _| fs::write(path, "data").unwrap()),
        ("a write, and the times set back", |path, _| {
            let times = fs::metadata(path).unwrap();
            let file = fs::File::options().write(true).open(path).unwrap();
            file.write_all_at(b"data", 0).unwrap();
            let times = fs::FileTimes::new().set_modified(times.modified().unwrap());
            file.set_times(times).unwrap();
        }),
        ("another length", |path, _| fs::write(path, "the user's").unwrap()),
        ("another name", |path, other| fs::hard_link(path, other).unwrap()),
        ("another name for a moment", |path, other| {
            fs::hard_link(path, other).unwrap();
            fs::remove_file(other).unwrap();
        }),
        ("renamed and back", |path, other| {
            fs::rename(path, other).unwrap();
            fs::rename(other, path).unwrap();
        }),
        ("a copy with its attributes", |path, other| {
            assert!(Command::new("cp").arg("-a").args([path, other]).status().unwrap().success());
            fs::rename(other, path).unwrap();
        }),
    ];
    for (what, change) in changes {
        for directory in directories() {
            let (path, other) =
                (directory.path().join("testfile.dat"), directory.path().join("other"));
            keep(&path, b"kept");
            assert_eq!(kept_bytes(&path), Some(4));
            change(&path, &other);
            assert_eq!(kept_bytes(&path), None, "{what}");
        }
    }
}

#[test]
fn a_file_open_for_writing_belongs_to_the_user() {
    for directory in directories() {
        let path = directory.path().join("testfile.dat");
        let mut made = OwnedFile::create(directory.path(), path.file_name()).unwrap();
        made.file().set_len(4096).unwrap();
        let other = fs::File::options().read(true).write(true).open(&path).unwrap();
        // SAFETY: a new mapping of a whole file, which outlives it.
        let mapped = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), 4096, access, libc::MAP_SHARED, other.as_raw_fd(), 0)
        };
        assert_ne!(mapped, libc::MAP_FAILED);
        drop(other);
        // SAFETY: the first byte of the mapping.
        unsafe { mapped.cast::<u8>().write_volatile(1) };
        made.keep();
        drop(made);
        // SAFETY: as above.
        unsafe { mapped.cast::<u8>().write_volatile(2) };
        assert_eq!(kept_bytes(&path), None, "mapped when it was kept");
        fs::remove_file(&path).unwrap();
        keep(&path, b"kept");
        let writer = fs::File::options().write(true).open(&path).unwrap();
        assert_eq!(kept_bytes(&path), None, "open when it is reused");
        drop(writer);
        assert_eq!(kept_bytes(&path), Some(4));
        // SAFETY: the mapping is not used after this.
        unsafe { libc::munmap(mapped, 4096) };
    }
}

#[test]
fn a_forged_mark_is_refused() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("mine");
    fs::write(&path, "the user's").unwrap();
    let file = fs::File::open(&path).unwrap();
    for text in ["", "kept", "halfpower kept 1 10 0.000000000 0.000000000"] {
        rustix::fs::fsetxattr(
            &file,
            "user.halfpower",
            text.as_bytes(),
            rustix::fs::XattrFlags::empty(),
        )
        .unwrap();
        assert!(kept(&path).is_none(), "{text:?}");
    }
}
