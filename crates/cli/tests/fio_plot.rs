//! The Python package fio-plot works with `halfpower fio`: it runs job files and plots the output.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn missing(what: &str) {
    assert_ne!(std::env::var("HALFPOWER_REQUIRE").as_deref(), Ok("all"), "{what}");
    eprintln!("skipped: {what}");
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn programs() -> Result<PathBuf, String> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fio-plot");
    let programs = environment.join("bin");
    if programs.join("fio-plot").exists() {
        return Ok(programs);
    }
    if !succeeds(Command::new("python3").args(["-m", "venv"]).arg(&environment)) {
        return Err("python3 with venv is not installed".into());
    }
    if !succeeds(Command::new(programs.join("pip")).args(["install", "--quiet", "fio-plot"])) {
        return Err("pip cannot install fio-plot".into());
    }
    Ok(programs)
}

struct Bench {
    directory: tempfile::TempDir,
    path: String,
    programs: PathBuf,
}

impl Bench {
    fn new(programs: PathBuf) -> Bench {
        let directory = tempfile::tempdir().unwrap();
        for name in ["bin", "data"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let fio = directory.path().join("bin/fio");
        fs::write(
            &fio,
            format!(
                "#!/bin/sh\nHALFPOWER_HISTORY=none exec {} fio \"$@\"\n",
                env!("CARGO_BIN_EXE_halfpower")
            ),
        )
        .unwrap();
        fs::set_permissions(&fio, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!(
            "{}:{}:{}",
            directory.path().join("bin").display(),
            programs.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        Bench { directory, path, programs }
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let output = Command::new(self.programs.join(program))
            .args(arguments)
            .current_dir(self.directory.path())
            .env("PATH", &self.path)
            .env("PYTHONIOENCODING", "utf-8")
            .env("MPLCONFIGDIR", self.directory.path())
            .output()
            .unwrap();
        let reported = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {reported}");
    }

    fn draw(&self, name: &str, arguments: &[&str]) {
        let file = format!("{name}.png");
        let mut all = vec!["-i", "out/data/4k", "-T", "halfpower", "-o", &file];
        all.extend(arguments);
        self.run("fio-plot", &all);
        let picture = fs::read(self.directory.path().join(&file))
            .unwrap_or_else(|error| panic!("{file} was not drawn: {error}"));
        assert!(
            picture.starts_with(b"\x89PNG\r\n\x1a\n") && picture.len() > 10_000,
            "{file} is not an image"
        );
    }
}

#[test]
fn fio_plot_runs_and_draws() {
    let bench = match programs() {
        Ok(programs) => Bench::new(programs),
        Err(why) => return missing(&format!("fio-plot is not to be had: {why}")),
    };
    bench.run(
        "bench-fio",
        &[
            "--target",
            "data",
            "--type",
            "directory",
            "--size",
            "8m",
            "--output",
            "out",
            "--mode",
            "randread",
            "--block-size",
            "4k",
            "--iodepth",
            "1",
            "4",
            "--numjobs",
            "1",
            "2",
            "--runtime",
            "1",
            "--time-based",
            "--loginterval",
            "100",
            "--engine",
            "libaio",
            "--direct",
            "0",
            "--quiet",
        ],
    );
    let _ = fs::remove_file("/tmp/data-tmpjobfile.fio");
    assert_ne!(
        fs::read_dir(bench.directory.path().join("data")).unwrap().count(),
        0,
        "as with fio, the files that were laid out stay for the next command"
    );
    bench.draw("depths", &["--bargraph2d-qd", "-r", "randread", "-d", "1", "4", "-n", "1"]);
    bench.draw("jobs", &["--bargraph2d_nj", "-r", "randread", "-d", "1", "-n", "1", "2"]);
    bench.draw(
        "grid",
        &["--bargraph3d", "-r", "randread", "-d", "1", "4", "-n", "1", "2", "-t", "iops"],
    );
    bench.draw("histogram", &["--histogram", "-r", "randread", "-d", "1", "-n", "1"]);
    bench.draw(
        "log",
        &["--loggraph", "-r", "randread", "-d", "1", "4", "-n", "1", "-t", "bw", "iops", "lat"],
    );
}
