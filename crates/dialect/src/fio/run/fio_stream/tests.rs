use super::*;
use crate::fio::plan::arrange::ClonePlan;
use crate::fio::plan::jobs::job;
use crate::fio::plan::translate;
use crate::fio::run::syncs::Passes;
use machine::{Completion, Next, Op, RequestSource, Stability};

/// r and w are requests, S syncs, C cache drops, P pauses, and a dot is a completion. With depth, requests
/// complete only when no other can be issued.
fn asked_and_done(settings: &str, blocks: u64) -> String {
    let job = job(settings);
    let clone = ClonePlan {
        number: 1,
        job: (0, 0),
        files: vec![0],
        part: (0, 4 * 4096),
        lengths: Vec::new(),
        file_bytes: 0,
        limit_bytes: Some(blocks * 4096),
        passes: 1,
        has_rest: false,
        named: Vec::new(),
    };
    let workload = translate::clone_workload(&job, &clone, 1);
    let filler = workload::Filler::new(&workload);
    let stream =
        Stream::new(&workload, (0, 4 * 4096), (0, 0), workload::Cursor::Own, filler, 0).unwrap();
    let bytes = if job.options.invalidate { 4 * 4096 } else { 0 };
    let state = StreamState {
        passes: Passes { bytes, cold: true, synced: false },
        ..StreamState::default()
    };
    let mut recorder = FioStream::new(stream, &job, translate::turns(&job, &clone, 1), 0, state);
    recorder.begin(0);
    let (mut text, mut outstanding, mut now) = (String::new(), Vec::new(), 0);
    loop {
        match recorder.next(now) {
            Next::Issue(request) => {
                text.push(if request.op == Op::Read { 'r' } else { 'w' });
                outstanding.push(request);
                continue;
            }
            Next::Discard(request) => {
                text.push('t');
                recorder
                    .complete(Completion { slot: request.slot, result: request.len as i32 }, now);
                continue;
            }
            Next::Done => return text,
            Next::WaitUntil(until) if until > now => {
                text.push('P');
                now = until;
            }
            Next::WaitUntil(_) => {}
            Next::WaitForCompletion => {
                let request = outstanding.remove(0);
                text.push('.');
                recorder
                    .complete(Completion { slot: request.slot, result: request.len as i32 }, now);
            }
        }
        if let Some(what) = recorder.sync_due() {
            text.push(if what == Stability::Uncached { 'C' } else { 'S' });
            recorder.synced(now, now);
        }
    }
}

fn asked(settings: &str, blocks: u64) -> String {
    asked_and_done(settings, blocks).replace('.', "")
}

#[test]
fn pauses_follow_completions_or_requests_as_in_fio() {
    let settings = "rw=read invalidate=0 ioengine=io_uring thinktime=1000";
    let two = format!("{settings} thinktime_blocks=2");
    assert_eq!(asked_and_done(&two, 4), "r.r.Pr.r.P");
    let deep = format!("{two} iodepth=4");
    // The requests that were in flight at a pause suffice for another.
    assert_eq!(asked_and_done(&deep, 12), "rrrr.r....Pr.Prrrr....Pr.Pr.P");
    assert_eq!(
        asked_and_done(&format!("{deep} thinktime_blocks_type=issue"), 6),
        "rr..Prr..Prr..P"
    );
}

#[test]
fn a_queue_refills_at_its_low_mark() {
    let settings = "rw=read invalidate=0 ioengine=io_uring iodepth=4";
    assert_eq!(asked_and_done(settings, 7), "rrrr.r.r.r....");
    assert_eq!(asked_and_done(&format!("{settings} iodepth_low=1"), 10), "rrrr...rrr...rrr....");
    assert_eq!(asked_and_done(&format!("{settings} iodepth_low=0"), 8), "rrrr....rrrr....");
}

#[test]
fn a_trim_goes_before_its_write() {
    assert_eq!(asked("rw=trim", 4), "tttt");
    assert_eq!(asked("rw=trimwrite", 4), "twtwtwtw");
    assert_eq!(asked("rw=trimwrite ioengine=io_uring iodepth=3 fsync=2", 4), "twtwStwtw");
    // The write after a trim has the same offset.
    let places = |mode: &str| {
        let job = job(&format!("rw={mode} bs=4k,4k,8k ioengine=io_uring iodepth=2"));
        let clone = ClonePlan {
            number: 1,
            job: (0, 0),
            files: vec![0],
            part: (0, 16 * 8192),
            lengths: Vec::new(),
            file_bytes: 0,
            limit_bytes: None,
            passes: 1,
            has_rest: false,
            named: Vec::new(),
        };
        let workload = translate::clone_workload(&job, &clone, 1);
        let filler = workload::Filler::new(&workload);
        let stream =
            Stream::new(&workload, (0, 16 * 8192), (0, 0), workload::Cursor::Own, filler, 0)
                .unwrap();
        let mut recorder = FioStream::new(
            stream,
            &job,
            translate::turns(&job, &clone, 1),
            0,
            StreamState::default(),
        );
        recorder.begin(0);
        let (mut trims, mut writes) = (Vec::new(), Vec::new());
        loop {
            let (list, request) = match recorder.next(0) {
                Next::Discard(request) => (&mut trims, request),
                Next::Issue(request) => (&mut writes, request),
                Next::WaitForCompletion => panic!("each is done at once"),
                Next::WaitUntil(_) => continue,
                Next::Done => break,
            };
            list.push((request.offset, request.len));
            recorder.complete(Completion { slot: request.slot, result: request.len as i32 }, 0);
        }
        let record = recorder.finish().record;
        assert_eq!(record.requests, [0, writes.len() as u64, trims.len() as u64]);
        (trims, writes)
    };
    for mode in ["trimwrite", "randtrimwrite"] {
        let (trims, writes) = places(mode);
        assert_eq!((trims.len(), trims[0].1), (16, 8192), "{mode}");
        assert_eq!(trims, writes, "{mode}");
    }
}

#[test]
fn poisson_arrivals_have_the_right_mean_and_deviation() {
    let spread = |process: &str| {
        let job = job(&format!("rw=randread norandommap=1 rate_iops=1000 rate_process={process}"));
        let size = 4096 * 4096;
        let clone = ClonePlan {
            number: 1,
            job: (0, 0),
            files: vec![0],
            part: (0, size),
            lengths: Vec::new(),
            file_bytes: 0,
            limit_bytes: None,
            passes: 1,
            has_rest: false,
            named: Vec::new(),
        };
        let workload = translate::clone_workload(&job, &clone, 1);
        let filler = workload::Filler::new(&workload);
        let stream =
            Stream::new(&workload, (0, size), (0, 0), workload::Cursor::Own, filler, 0).unwrap();
        let mut recorder = FioStream::new(
            stream,
            &job,
            translate::turns(&job, &clone, 1),
            7,
            StreamState::default(),
        );
        recorder.begin(0);
        let (mut now, mut times) = (0, Vec::new());
        loop {
            match recorder.next(now) {
                Next::Issue(request) => {
                    times.push(now as f64);
                    recorder.complete(
                        Completion { slot: request.slot, result: request.len as i32 },
                        now,
                    );
                }
                Next::WaitUntil(then) => now = then,
                Next::Done => break,
                Next::WaitForCompletion | Next::Discard(_) => panic!("each is done at once"),
            }
        }
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        (gaps.len(), mean / 1e6, variance.sqrt() / mean)
    };
    let (count, mean, deviation) = spread("linear");
    assert!(count == 4095 && (mean - 1.0).abs() < 0.01 && deviation < 0.01, "{mean} {deviation}");
    // 4095 gaps: both are within four standard errors, 1/64 each.
    let (count, mean, deviation) = spread("poisson");
    assert!(
        count == 4095 && (mean - 1.0).abs() < 0.07 && (deviation - 1.0).abs() < 0.1,
        "{mean} {deviation}"
    );
}

#[test]
fn latency_is_the_sum_of_submission_and_completion() {
    let job = job("rw=read ioengine=libaio iodepth=2");
    let clone = ClonePlan {
        number: 1,
        job: (0, 0),
        files: vec![0],
        part: (0, 4 * 4096),
        lengths: Vec::new(),
        file_bytes: 0,
        limit_bytes: None,
        passes: 1,
        has_rest: false,
        named: Vec::new(),
    };
    let workload = translate::clone_workload(&job, &clone, 1);
    let filler = workload::Filler::new(&workload);
    let stream =
        Stream::new(&workload, (0, 4 * 4096), (0, 0), workload::Cursor::Own, filler, 0).unwrap();
    let mut recorder =
        FioStream::new(stream, &job, translate::turns(&job, &clone, 1), 0, StreamState::default());
    assert!(recorder.times_submission());
    recorder.begin(0);
    let done = |slot| Completion { slot, result: 4096 };
    let slots: Vec<u32> = std::iter::from_fn(|| match recorder.next(100) {
        Next::Issue(request) => Some(request.slot),
        _ => None,
    })
    .collect();
    recorder.submitted(130);
    recorder.complete(done(slots[0]), 200);
    let Next::Issue(third) = recorder.next(200) else { panic!("a slot is free") };
    // It completes before its call returns.
    recorder.complete(done(third.slot), 205);
    recorder.submitted(230);
    recorder.complete(done(slots[1]), 300);
    let [submission, completion] = recorder.finish().record.phases.unwrap();
    let all = |sides: &[measure::histogram::Histogram; 3]| {
        (sides[0].count(), sides[0].sum(), sides[0].max())
    };
    assert_eq!((all(&submission), all(&completion)), ((3, 65, 30), (3, 240, 170)));
}

#[test]
fn passes_drop_the_cache_and_writes_are_synced() {
    assert_eq!(asked("rw=read", 12), "rrrrCrrrrCrrrr");
    assert_eq!(asked("rw=randread ioengine=io_uring iodepth=3", 8), "rrrrCrrrr");
    assert_eq!(asked("rw=write fsync=2", 6), "wwSwwSCww");
    assert_eq!(
        asked("rw=write fsync=2 fdatasync=3 invalidate=0", 8),
        "wwSwSwSwwSww",
        "as Debian's fio has it"
    );
    assert_eq!(
        asked("rw=write fsync=2 fdatasync=4 invalidate=0", 8),
        "wwSwwSwwSww",
        "no second sync for the same write"
    );
    assert_eq!(asked("rw=write ioengine=io_uring iodepth=4 fsync=1", 4), "wSwSwSw");
}

/// Completions, failures and whether the job continues.
fn with_failures(settings: &str, result: i32) -> (u64, u64, bool) {
    let job = job(settings);
    let clone = ClonePlan {
        number: 1,
        job: (0, 0),
        files: vec![0],
        part: (0, 12 * 4096),
        lengths: Vec::new(),
        file_bytes: 0,
        limit_bytes: Some(12 * 4096),
        passes: 1,
        has_rest: false,
        named: Vec::new(),
    };
    let workload = translate::clone_workload(&job, &clone, 1);
    let filler = workload::Filler::new(&workload);
    let stream =
        Stream::new(&workload, (0, 12 * 4096), (0, 0), workload::Cursor::Own, filler, 0).unwrap();
    let mut recorder =
        FioStream::new(stream, &job, translate::turns(&job, &clone, 1), 0, StreamState::default());
    recorder.begin(0);
    let (mut outstanding, mut ended, mut goes_on) = (Vec::new(), 0, true);
    while goes_on {
        match recorder.next(0) {
            Next::Issue(request) => outstanding.push(request),
            Next::WaitForCompletion => {
                let request = outstanding.remove(0);
                ended += 1;
                if ended % 3 == 0 {
                    goes_on = recorder.failed(Completion { slot: request.slot, result }, 0);
                } else {
                    recorder
                        .complete(Completion { slot: request.slot, result: request.len as i32 }, 0);
                }
            }
            Next::WaitUntil(_) | Next::Discard(_) => {}
            Next::Done => break,
        }
    }
    let record = recorder.finish().record;
    (record.requests.iter().sum(), record.failures.count, goes_on)
}

#[test]
fn a_job_continues_after_tolerated_errors() {
    let settings = "invalidate=0 ioengine=libaio iodepth=2 rw";
    for tolerated in ["read", "io", "all"] {
        assert_eq!(
            with_failures(&format!("continue_on_error={tolerated} {settings}=read"), -5),
            (12, 4, true)
        );
    }
    for (mode, tolerated) in
        [("read", "none"), ("read", "write"), ("read", "verify"), ("write", "read")]
    {
        let found = with_failures(&format!("continue_on_error={tolerated} {settings}={mode}"), -5);
        assert_eq!(found, (2, 0, false), "{mode} {tolerated}");
    }
    // Named errors replace the default ones.
    assert_eq!(
        with_failures(&format!("ignore_error=EAGAIN,ENOSPC:122 {settings}=write"), -28),
        (12, 4, true)
    );
    assert_eq!(with_failures(&format!("ignore_error=,ENOSPC {settings}=write"), -5), (2, 0, false));
    assert_eq!(with_failures(&format!("ignore_error=EIO {settings}=write"), -5), (2, 0, false));
    // A full disk and a short request are not tolerated device errors.
    for result in [-28, 512] {
        assert_eq!(
            with_failures(&format!("continue_on_error=all {settings}=write"), result),
            (2, 0, false)
        );
    }
}
