//! Options that change nothing here, and those that halfpower does not serve: each with what to do instead.

use super::value::Reason;

/// Options of fio's that are taken with these values alone, because they are what halfpower does in any case. No values: any.
const ACCEPTED: [(&str, &[&str]); 38] = [
    ("thread", &["", "0", "1"]),
    ("openfiles", &[]),
    ("thinktime_blocks", &["1"]),
    ("thinktime_spin", &["0"]),
    ("rate_process", &["linear"]),
    ("rate_cycle", &["1000"]),
    ("refill_buffers", &["", "0", "1"]),
    ("scramble_buffers", &["1"]),
    ("create_serialize", &["0", "1"]),
    ("create_fsync", &["0", "1"]),
    ("create_on_open", &["0"]),
    ("create_only", &["0"]),
    ("allow_file_create", &["1"]),
    ("pre_read", &["0"]),
    ("file_append", &["0"]),
    ("fill_device", &["0"]),
    ("unlink_each_loop", &["0"]),
    ("per_job_logs", &["1"]),
    ("log_offset", &["0"]),
    ("log_max_value", &["0"]),
    ("log_unix_epoch", &["0"]),
    ("bwavgtime", &["500"]),
    ("iopsavgtime", &["500"]),
    ("gtod_reduce", &["0"]),
    ("disable_lat", &["0"]),
    ("disable_clat", &["0"]),
    ("disable_slat", &["0"]),
    ("disable_bw_measurement", &["0"]),
    ("slat_percentiles", &["0"]),
    ("significant_figures", &[]),
    ("unit_base", &["0", "8"]),
    ("random_generator", &[]),
    ("percentage_random", &["100"]),
    ("zonemode", &["none"]),
    ("fixedbufs", &["1"]),
    ("registerfiles", &["1"]),
    ("hipri", &["0"]),
    ("mem", &["malloc", "mmap"]),
];

/// Options that halfpower does not serve, with the hint; the part of a name before `*` stands for all that begin so.
const REFUSED: [(&str, &str); 24] = [
    ("verify*", "leave it out: whole requests are verified, each with its own header, after all were written"),
    ("trim*", "halfpower does not trim: leave it out"),
    ("cpus_allowed*", "start halfpower under taskset -c LIST"),
    ("cpumask", "start halfpower under taskset MASK"),
    ("numa*", "start halfpower under numactl"),
    ("nice", "start halfpower under nice"),
    ("prio*", "start halfpower under ionice"),
    ("openfiles", "all files of a job stay open: leave it out"),
    ("thinktime*", "the pause follows each request: leave it out"),
    (
        "iodepth_*",
        "completions are replaced at once, or where iodepth_batch and iodepth_batch_complete_min say so: leave it out",
    ),
    ("rate_process", "requests are issued by the clock, evenly (linear): leave it out"),
    ("rate*", "a rate that is missed is a warning in the result: leave it out"),
    ("latency_*", "halfpower sweep over --depth finds the depth for a latency"),
    ("exitall*", "give all jobs the same runtime with time_based"),
    ("wait_for", "order jobs with stonewall"),
    ("flow*", "give jobs a rate or rate_iops"),
    ("percentage_random", "give a job of random and one of sequential requests"),
    ("softrandommap", "leave it out: the order of random blocks takes no memory"),
    ("log_*", "logs have fio's four columns and the block size: leave it out"),
    ("per_job_logs", "each job writes logs of its own: leave it out"),
    ("write_hist_log", "use --output-format=json+, which holds all buckets"),
    ("scramble_buffers", "data never repeats; for data that does, give dedupe_percentage"),
    ("exec_*", "start the program before or after halfpower"),
    ("zone*", "two zones of the file: random_distribution=zoned:90/10:10/90"),
];

/// Further names of fio's, so that an option that is not served and a misspelt one read differently.
const OTHERS: &str = "\
    buffer_pattern buffer_compress_chunk clocksource continue_on_error dedupe_mode disk_util ignore_error \
    inflight io_submit_mode ioscheduler lockfile mem_align profile read_iolog replay_redirect rw_sequencer \
    sqthread_poll sync_file_range uid write_iolog";

/// The options that [`super::options::Options`] understands.
const SERVED: &str = "\
    name description rw readwrite rwmixread rwmixwrite bs blocksize bsrange bssplit ba blockalign iodepth \
    iodepth_batch iodepth_batch_complete_min iodepth_batch_complete_max numjobs random_distribution norandommap \
    randseed randrepeat allrandrepeat directory filename filename_format nrfiles file_service_type unlink size \
    io_size filesize loops offset offset_increment fallocate overwrite ioengine direct buffered sync fsync \
    fdatasync end_fsync fsync_on_close invalidate fadvise_hint runtime time_based ramp_time startdelay \
    steadystate steadystate_duration steadystate_ramp_time thinktime rate rate_iops stonewall new_group \
    buffer_compress_percentage zero_buffers dedupe_percentage verify verify_pattern do_verify group_reporting \
    percentile_list clat_percentiles lat_percentiles write_bw_log write_iops_log write_lat_log log_avg_msec \
    kb_base";

/// Whether an option has a value with which it changes nothing here.
///
/// # Errors
/// It has another value.
pub(crate) fn accepts_anyway(name: &str, value: Option<&str>) -> Result<bool, Reason> {
    let Some((_, values)) = ACCEPTED.iter().find(|(accepted, _)| *accepted == name) else { return Ok(false) };
    if values.is_empty() || values.contains(&value.unwrap_or_default()) {
        return Ok(true);
    }
    let given = values.iter().filter(|value| !value.is_empty()).copied().collect::<Vec<_>>().join(" or ");
    Err(match hint(name) {
        Some(hint) => format!("halfpower serves only {given} here; {hint}"),
        None => format!("halfpower serves only {given} here; leave it out"),
    })
}

fn hint(name: &str) -> Option<&'static str> {
    let fits = |pattern: &str| pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start));
    REFUSED.iter().find(|(pattern, _)| fits(pattern)).map(|(_, hint)| *hint)
}

/// Why an option is not taken: it is not served, or nobody knows it.
pub(crate) fn unknown(name: &str) -> Reason {
    if let Some(hint) = hint(name) {
        return format!("halfpower does not serve it; {hint}");
    }
    if OTHERS.split(' ').any(|other| other == name) {
        return "halfpower does not serve it; leave it out".into();
    }
    match nearest(name) {
        Some(near) => format!("there is no such option; did you mean {near}?"),
        None => "halfpower does not know it; leave it out".into(),
    }
}

/// The known option that is nearest in letters, if any is near.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_").to_ascii_lowercase();
    let known = SERVED.split(' ').chain(ACCEPTED.iter().map(|(name, _)| *name));
    let (distance, near) = known.map(|known| (strsim::levenshtein(&name, known), known)).min()?;
    (distance <= 2 && distance * 3 <= name.len().max(2)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::options::Options;

    #[test]
    fn what_is_called_served_is_served() {
        for name in SERVED.split(' ') {
            if let Err(reason) = Options::default().set(name, Some("no such value")) {
                assert!(
                    !reason.contains("does not serve it")
                        && !reason.contains("no such option")
                        && !reason.contains("does not know"),
                    "{name}: {reason}"
                );
            }
        }
    }

    #[test]
    fn a_misspelt_option_and_one_that_is_not_served_read_differently() {
        for (name, reason) in [
            ("run_time", "runtime"),
            ("io_depth", "iodepth"),
            ("group-reporting", "group_reporting"),
            ("verify_async", "whole requests"),
            ("cpus_allowed", "taskset"),
            ("xyzzy", "know"),
        ] {
            let why = unknown(name);
            assert!(why.contains(reason), "{name}: {why}");
        }
        assert!(accepts_anyway("thinktime_blocks", Some("4")).unwrap_err().contains("leave it out"));
        assert_eq!(accepts_anyway("thinktime_blocks", Some("1")), Ok(true));
    }
}
