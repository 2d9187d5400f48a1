//! `record`, `profile` and `replay` of Debian's programs against their own statistics, as root.

mod common;

use common::places::{Mount, Throttle};
use common::{HALFPOWER, alone, command, ended, finish, number, skip, wait_until};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn sh(at: &Path, script: &str) -> String {
    let done = Command::new("sh").args(["-ec", script]).current_dir(at).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{script}: {error}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn has(program: &str) -> bool {
    let found = !sh(Path::new("/"), &format!("command -v {program} || true")).is_empty();
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

fn volume() -> Option<Mount> {
    if !Path::new("/sys/kernel/tracing/instances").is_dir() {
        skip("recording needs root and tracefs");
        return None;
    }
    let volume = Mount::on_loop("ext4", 1 << 30).map_err(|why| skip(&why)).ok()?;
    for place in [volume.at.parent().unwrap(), &volume.at] {
        fs::set_permissions(place, Permissions::from_mode(0o777)).unwrap();
    }
    Some(volume)
}

fn record(at: &Path, trace: &Path, script: &str) {
    let trace = trace.to_str().unwrap();
    let words = ["record", "--force", "-o", trace, "--", "sh", "-ec", script];
    let mut record = command(HALFPOWER, words);
    record.current_dir(at);
    let done = finish(record);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(!done.stderr.contains("lost"), "{}", done.stderr);
}

fn profile(trace: &Path) -> Value {
    finish(command(HALFPOWER, ["profile", trace.to_str().unwrap(), "--json"])).good_json()
}

fn sum(profile: &Value, part: &str, pointer: &str) -> f64 {
    let files = profile["files"].as_array().unwrap();
    let of_part = files.iter().filter(|file| file["name"].as_str().unwrap().contains(part));
    of_part.filter_map(|file| file.pointer(pointer)?.as_f64()).sum()
}

fn assert_within(found: f64, truth: f64, share: f64, what: &str) {
    let off = (found / truth - 1.0).abs();
    assert!(off <= share, "{what}: {found}, and the program counts {truth}");
}

#[test]
fn redis_syncs_its_append_only_file_at_each_command() {
    if !has("redis-server") || !has("redis-benchmark") {
        return;
    }
    let _alone = alone();
    let Some(volume) = volume() else { return };
    let traces = tempfile::tempdir().unwrap();
    let trace = traces.path().join("t.hptrace");
    let script = "redis-server --port 0 --unixsocket $PWD/s --appendonly yes --appendfsync always \
         --save '' --dir $PWD --daemonize no >/dev/null & \
        until redis-cli -s $PWD/s ping >/dev/null 2>&1; do sleep 0.1; done; \
        redis-benchmark -s $PWD/s -t set -n 1000 -c 1 -d 100 -q >/dev/null; \
        redis-cli -s $PWD/s info persistence > stats; \
        redis-cli -s $PWD/s shutdown nosave; wait";
    record(&volume.at, &trace, script);
    let profile = profile(&trace);
    let stats = fs::read_to_string(volume.at.join("stats")).unwrap();
    let stat = |name: &str| -> f64 {
        let line = stats.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').trim().parse().unwrap()
    };
    let log = ".incr.aof";
    assert_within(sum(&profile, log, "/syncs/calls"), 1000.0, 0.02, "syncs");
    assert_within(sum(&profile, log, "/writes/bytes"), stat("aof_current_size"), 0.02, "bytes");
    let files = profile["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["name"].as_str().unwrap().contains(log)).unwrap();
    assert_eq!(file["role"], "log", "{file:#}");
    let (writes, syncs) = (number(file, "/writes/requests"), number(file, "/syncs/calls"));
    assert_within(writes, syncs, 0.02, "writes");
}

#[test]
fn rocksdb_syncs_its_log_at_each_write() {
    if !has("db_bench") {
        return;
    }
    let _alone = alone();
    let Some(volume) = volume() else { return };
    let traces = tempfile::tempdir().unwrap();
    let trace = traces.path().join("t.hptrace");
    let script = "db_bench --benchmarks=fillrandom --num=2000 --value_size=400 --sync=1 --statistics \
        --compression_type=none --db=$PWD/db > stats 2>&1";
    record(&volume.at, &trace, script);
    let profile = profile(&trace);
    let stats = fs::read_to_string(volume.at.join("stats")).unwrap();
    let stat = |name: &str| -> f64 {
        let line =
            stats.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{stats}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (syncs, bytes) = (stat("rocksdb.wal.synced"), stat("rocksdb.wal.bytes"));
    assert!(syncs >= 2000.0);
    assert_within(sum(&profile, "/db/0", "/syncs/calls"), syncs, 0.02, "syncs");
    assert_within(sum(&profile, ".log", "/writes/bytes"), bytes, 0.05, "bytes");
    let longest = &profile["files"][0];
    assert!(longest["name"].as_str().unwrap().ends_with(".log"), "{longest:#}");
    assert_eq!(longest["role"], "log", "{longest:#}");
}

fn postgres() -> Option<PathBuf> {
    let found = sh(Path::new("/"), "ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || true");
    let found = found.trim();
    if found.is_empty() {
        skip("postgresql is not installed");
        return None;
    }
    Some(PathBuf::from(found))
}

fn pgbench_database(at: &Path, commands: &Path) {
    let commands = commands.display();
    let as_user = format!("runuser -u postgres -- env PATH={commands}:$PATH");
    let script = format!(
        "chown postgres . ; {as_user} initdb -D pg -A trust --no-sync >/dev/null; \
         printf \"listen_addresses=''\\nunix_socket_directories='%s/pg'\\nautovacuum=off\\ncheckpoint_timeout=1h\\nmax_wal_size=4GB\\n\" $PWD >> pg/postgresql.conf; \
         {as_user} pg_ctl -D pg -w -l pg/log start >/dev/null; \
         {as_user} pgbench -h $PWD/pg -i -s 2 -q postgres >/dev/null 2>&1; \
         {as_user} pg_ctl -D pg -w stop >/dev/null; sync"
    );
    sh(at, &script);
}

fn pgbench(commands: &Path, transactions: u32) -> String {
    let commands = commands.display();
    let as_user = format!("runuser -u postgres -- env PATH={commands}:$PATH");
    format!(
        "{as_user} pg_ctl -D pg -w -l pg/log start >/dev/null; \
         {as_user} psql -h $PWD/pg -qAtc \"select pg_stat_reset_shared('wal')\" postgres >/dev/null; \
         {as_user} pgbench -h $PWD/pg -n -N -c 1 -t {transactions} postgres >bench 2>&1; sleep 0.5; \
         {as_user} psql -h $PWD/pg -qAtc 'select wal_sync, wal_write from pg_stat_wal' postgres > stats; \
         {as_user} pg_ctl -D pg -w -m immediate stop >/dev/null"
    )
}

#[test]
fn postgresql_syncs_its_log_as_it_counts() {
    if !has("runuser") {
        return;
    }
    let (Some(commands), _alone) = (postgres(), alone()) else { return };
    let Some(volume) = volume() else { return };
    let traces = tempfile::tempdir().unwrap();
    let trace = traces.path().join("t.hptrace");
    pgbench_database(&volume.at, &commands);
    record(&volume.at, &trace, &pgbench(&commands, 500));
    let profile = profile(&trace);
    let stats = fs::read_to_string(volume.at.join("stats")).unwrap();
    let (syncs, writes) = stats.trim().split_once('|').unwrap_or_else(|| panic!("{stats}"));
    let (syncs, writes): (f64, f64) = (syncs.parse().unwrap(), writes.parse().unwrap());
    assert!(syncs >= 500.0, "{stats}");
    assert_within(sum(&profile, "/pg_wal/", "/syncs/calls"), syncs, 0.02, "syncs");
    assert_within(sum(&profile, "/pg_wal/", "/writes/requests"), writes, 0.02, "writes");
    let longest = &profile["files"][0];
    assert!(longest["name"].as_str().unwrap().contains("/pg_wal/"), "{longest:#}");
    // PostgreSQL writes its log in blocks of 8 KiB.
    let sizes = longest["writes"]["sizes"].as_array().unwrap();
    let whole = |size: &Value| size["bytes"].as_u64().unwrap().is_multiple_of(8192);
    assert!(sizes.iter().all(whole), "{longest:#}");
}

/// Returns pgbench's seconds.
fn recorded_pgbench(at: &Path, commands: &Path, transactions: u32, trace: Option<&Path>) -> f64 {
    let commands = commands.display();
    let as_user = format!("runuser -u postgres -- env PATH={commands}:$PATH");
    // The same pages are whole in the log again after a checkpoint.
    let start = format!(
        "{as_user} pg_ctl -D pg -w -l pg/log start >/dev/null; \
         {as_user} psql -h $PWD/pg -qAtc checkpoint postgres; head -1 pg/postmaster.pid"
    );
    let server = sh(at, &start);
    let recorder = trace.map(|trace| {
        let words = ["record", "--force", "-o", trace.to_str().unwrap(), "--pid", server.trim()];
        let child = command(HALFPOWER, words).spawn().unwrap();
        let own = format!("/sys/kernel/tracing/instances/halfpower-{}-0", child.id());
        let enabled = Path::new(&own).join("events/task/task_newtask/enable");
        wait_until("the recording runs", || {
            fs::read_to_string(&enabled).is_ok_and(|on| on.starts_with('1'))
        });
        wait_until("the trace is there", || trace.exists());
        sh(at, "sleep 0.5");
        child
    });
    let run = format!("{as_user} pgbench -h $PWD/pg -n -N -c 1 -t {transactions} postgres 2>&1");
    let report = sh(at, &run);
    if let Some(recorder) = recorder {
        sh(at, &format!("kill -INT {}", recorder.id()));
        let done = ended(recorder);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert!(!done.stderr.contains("lost"), "{}", done.stderr);
    }
    sh(at, &format!("{as_user} pg_ctl -D pg -w -m fast stop >/dev/null"));
    let rate = report.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap();
    f64::from(transactions) / rate.split(' ').next().unwrap().parse::<f64>().unwrap()
}

/// Returns the seconds that `plan` predicts for a device limited to this many writes per second.
fn planned(trace: &Path, iops: u32) -> f64 {
    let catalogue = trace.with_extension("toml");
    let limits = format!(
        "[limit]\nabout = \"a throttle\"\nsource = \"this test\"\ngib = [1, 1]\nrequest_bytes = 1048576\n\
         iops = {{ min = {iops}, max = {iops} }}\nbytes_per_s = {{ min = 1e9, max = 1e9 }}\n\
         throttle = true\nread_us = 100\nwrite_us = 100\n"
    );
    fs::write(&catalogue, limits).unwrap();
    let words = ["plan", trace.to_str().unwrap(), "--catalogue", catalogue.to_str().unwrap()];
    let more = ["--on", "limit,size=1g", "--json"];
    let plan = finish(command(HALFPOWER, words.into_iter().chain(more))).good_json();
    number(&plan, "/predictions/0/elapsed_s")
}

#[test]
fn a_replay_takes_as_long_as_postgresql_here_and_elsewhere() {
    const TRANSACTIONS: u32 = 600;
    if !has("runuser") {
        return;
    }
    let (Some(commands), _alone) = (postgres(), alone()) else { return };
    let Some(volume) = volume() else { return };
    let traces = tempfile::tempdir().unwrap();
    let trace = traces.path().join("pgbench");
    pgbench_database(&volume.at, &commands);
    let limits = [("write_iops", 400)];
    let Ok(limit) = Throttle::set(volume.device(), &limits).map_err(|why| skip(&why)) else {
        return;
    };
    let here = recorded_pgbench(&volume.at, &commands, TRANSACTIONS, Some(&trace));
    let replayed = || {
        let words = ["replay", trace.to_str().unwrap(), volume.name(), "--repeats", "2", "--json"];
        let more = ["--no-history"];
        finish(command(HALFPOWER, words.into_iter().chain(more))).good_json()
    };
    let document = replayed();
    // The recording also has the moments before and after the transactions.
    let recorded = number(&document, "/recorded_s");
    assert_within(recorded, here, 0.15, "seconds of the recording");
    assert_within(number(&document, "/elapsed_s/mean"), recorded, 0.05, "seconds here");
    limit.change(150);
    let elsewhere = recorded_pgbench(&volume.at, &commands, TRANSACTIONS, None);
    assert!(elsewhere > 2.0 * here, "{here} s with 400 IOPS, {elsewhere} s with 150");
    let replay = number(&replayed(), "/elapsed_s/mean");
    assert_within(replay, elsewhere, 0.10, "seconds of the replay elsewhere");
    assert_within(planned(&trace, 150), elsewhere, 0.15, "seconds of the plan");
}

/// On a throttled device the journal limits the speed: a control group counts its blocks, too.
#[test]
fn programs_that_append_take_as_long_elsewhere_as_replayed_and_planned() {
    const REDIS: &str = "rm -rf r; mkdir r; cd r; \
         redis-server --port 0 --unixsocket $PWD/s --appendonly yes --appendfsync always \
         --save '' --dir $PWD --daemonize no >/dev/null & \
        until redis-cli -s $PWD/s ping >/dev/null 2>&1; do sleep 0.1; done; \
        redis-benchmark -s $PWD/s -t set -n 200 -c 1 -d 100 -q >/dev/null; \
        redis-cli -s $PWD/s shutdown nosave; wait";
    const SQLITE: &str = "rm -f db*; (echo 'pragma journal_mode=wal; pragma synchronous=full; create table t(a, b);'; \
        for i in $(seq 200); do echo \"insert into t values($i, hex(randomblob(100)));\"; done) | sqlite3 db";
    if !["redis-server", "redis-benchmark", "sqlite3"].into_iter().all(has) {
        return;
    }
    let _alone = alone();
    let Some(volume) = volume() else { return };
    let traces = tempfile::tempdir().unwrap();
    for (name, script) in [("redis", REDIS), ("sqlite", SQLITE)] {
        let trace = traces.path().join(name);
        let limits = [("write_iops", 400)];
        let Ok(limit) = Throttle::set(volume.device(), &limits).map_err(|why| skip(&why)) else {
            return;
        };
        record(&volume.at, &trace, script);
        sh(&volume.at, "sync");
        limit.change(150);
        let began = std::time::Instant::now();
        sh(&volume.at, script);
        let elsewhere = began.elapsed().as_secs_f64();
        let words = ["replay", trace.to_str().unwrap(), volume.name(), "--repeats", "1", "--json"];
        let more = ["--no-history"];
        let replay = finish(command(HALFPOWER, words.into_iter().chain(more))).good_json();
        let replay = number(&replay, "/elapsed_s/mean");
        let plan = planned(&trace, 150);
        assert_within(replay, elsewhere, 0.15, &format!("seconds of {name}'s replay"));
        assert_within(plan, elsewhere, 0.15, &format!("seconds of {name}'s plan"));
    }
}

#[test]
fn the_bytes_are_those_of_the_process() {
    let _alone = alone();
    let Some(volume) = volume() else { return };
    let traces = tempfile::tempdir().unwrap();
    let trace = traces.path().join("t.hptrace");
    let script = format!(
        "exec 3>out 4>copy 5>third 6<out 7<copy; sleep 0.5; \
         dd if=/dev/zero bs=48k count=200 >&3 2>/dev/null; \
         dd bs=12k <&6 >&4 2>/dev/null; dd bs=64k <&7 >&5 2>/dev/null; sleep 0.5; cat /proc/$$/io > {}/io",
        traces.path().display()
    );
    record(&volume.at, &trace, &script);
    let io = fs::read_to_string(traces.path().join("io")).unwrap();
    let stat = |name: &str| -> f64 {
        let line = io.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').trim().parse().unwrap()
    };
    let profile = profile(&trace);
    // The file system's bytes: those of the children that ended, and no others.
    let at = volume.name();
    let written = sum(&profile, at, "/writes/bytes");
    assert_eq!(written, f64::from(3 * 200 * 48 * 1024), "{profile:#}");
    let read = sum(&profile, at, "/reads/bytes");
    assert_eq!(read, f64::from(2 * 200 * 48 * 1024));
    // The kernel also counts libraries, pipes and /dev/zero.
    assert!(stat("wchar") >= written && stat("wchar") < written * 1.01, "{io}");
    let zeros = f64::from(200 * 48 * 1024);
    let rest = stat("rchar") - read - zeros;
    assert!((0.0..4e6).contains(&rest), "{rest} {io}");
}
