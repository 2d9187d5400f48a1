use super::*;

static CALM: AtomicBool = AtomicBool::new(false);

fn wanted(path: &Path, writes: bool, sharing: Option<Sharing>) -> Wanted {
    Wanted { path: path.into(), writes, destroy: false, sharing, number: None }
}

fn joins(file: &HostTaskFile) -> Option<Sharing> {
    let number = file.number().unwrap();
    Some(Sharing::Joins { number, processes: vec![std::process::id()] })
}

fn write(file: &mut HostTaskFile, data: &[u8], offset: u64) {
    file.open(OpenAs { writes: true, ..OpenAs::default() }).unwrap();
    assert_eq!(file.write_at(data, offset).unwrap(), data.len());
    file.close().unwrap();
}

#[test]
fn a_group_writes_one_file_and_no_other_run_can() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared");
    let files = HostTaskFiles::new(&CALM);
    let mut first = files.take(&wanted(&path, true, Some(Sharing::Holds))).unwrap();
    let mut second = files.take(&wanted(&path, true, joins(&first))).unwrap();
    write(&mut first, b"one", 0);
    write(&mut second, b"two", 3);
    assert_eq!(fs::read(&path).unwrap(), b"onetwo");
    for sharing in [None, Some(Sharing::Holds)] {
        let other = files.take(&wanted(&path, true, sharing));
        assert!(other.is_err_and(|error| error.is_usage()), "not of this group");
    }
    assert!(sys::is_locked(&File::open(&path).unwrap()), "another process cannot lock it either");
    drop((second, first));
    assert!(!path.exists(), "made by the first");
}

#[test]
fn only_the_file_that_the_group_holds_is_joined() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("shared"), directory.path().join("other"));
    fs::write(&other, "kept").unwrap();
    let files = HostTaskFiles::new(&CALM);
    let first = files.take(&wanted(&path, true, Some(Sharing::Holds))).unwrap();
    let error = files.take(&wanted(&other, true, joins(&first))).map(drop).unwrap_err();
    assert!(error.to_string().contains("not the file that the first process"), "{error}");
    assert_eq!(fs::read(&other).unwrap(), b"kept");
}

#[test]
fn a_file_is_kept_read_again_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let files = HostTaskFiles::new(&CALM);
    let mut made = files.take(&wanted(&path, true, None)).unwrap();
    write(&mut made, b"data", 0);
    made.keep();
    drop(made);
    assert_eq!(fs::read(&path).unwrap(), b"data");
    files.check(&wanted(&path, true, None)).expect("a kept file may be written again");
    let mut read = files.take(&wanted(&path, false, None)).unwrap();
    read.open(OpenAs::default()).unwrap();
    let mut data = [0; 4];
    assert_eq!((read.read_at(&mut data, 0).unwrap(), &data), (4, b"data"));
    drop(read);
    assert!(path.exists(), "reading does not remove it");
    files.take(&wanted(&path, false, None)).unwrap().discard();
    assert!(!path.exists());
}

#[test]
fn the_users_file_is_only_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "precious").unwrap();
    let files = HostTaskFiles::new(&CALM);
    for error in [
        files.check(&wanted(&path, true, None)).unwrap_err(),
        files.take(&wanted(&path, true, None)).map(drop).unwrap_err(),
    ] {
        assert!(error.is_usage() && error.to_string().contains("--destroy-data"), "{error}");
    }
    files.take(&wanted(&path, false, None)).unwrap().discard();
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let allowed = Wanted { destroy: true, ..wanted(&path, true, None) };
    let mut taken = files.take(&allowed).unwrap();
    taken.open(OpenAs { writes: true, empty: true, ..OpenAs::default() }).unwrap();
    taken.close().unwrap();
    drop(taken);
    assert_eq!(fs::read(&path).unwrap(), b"", "emptied, but not removed");
}

#[test]
fn names_are_made_once_and_errors_name_them() {
    let directory = tempfile::tempdir().unwrap();
    let files = HostTaskFiles::new(&CALM);
    let inner = directory.path().join("d");
    assert!(files.make_directory(&inner).unwrap() && !files.make_directory(&inner).unwrap());
    let path = inner.join("f");
    files.create(&path, b"abc", true).unwrap();
    assert!(files.create(&path, b"", false).unwrap_err().to_string().contains("cannot create"));
    assert_eq!(files.stat(&path).unwrap(), 3);
    let mut data = [0; 8];
    assert_eq!(files.read(&path, &mut data).unwrap(), 3);
    assert!(files.remove_directory(&inner).is_err(), "it is not empty");
    files.remove(&path).unwrap();
    files.remove_directory(&inner).unwrap();
    let missing = files.stat(&path).unwrap_err().to_string();
    assert!(missing.contains(&path.display().to_string()), "{missing}");
}
