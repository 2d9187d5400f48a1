//! Device requests that a program's requests caused.

use super::script::{Act, Kept};
use crate::profile::BLOCK_BYTES;
use apptrace::Interface;
use machine::Op;
use std::collections::{BTreeMap, VecDeque};

/// Gives each write of metadata to the oldest sync under way, for which the file system made it,
/// though others share it. Returns the share of the bytes read without a device; `None` if the
/// trace shows no devices.
pub(super) fn look(kept: &mut [Kept]) -> Option<f64> {
    if !kept.iter().any(|one| one.interface == Interface::Block) {
        return None;
    }
    let mut under_way: VecDeque<usize> = VecDeque::new();
    // Bytes that each file was asked for, and those that devices read meanwhile.
    let mut reads: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for at in 0..kept.len() {
        let now = kept[at].at_ns;
        if kept[at].interface != Interface::Block {
            if kept[at].is_durable() && kept[at].end_ns.is_some() {
                kept[at].journal_blocks = Some(0);
            }
            if kept[at].act == Act::Move(Op::Read) {
                reads.entry(kept[at].file).or_default().0 += kept[at].bytes;
            }
            under_way.push_back(at);
            continue;
        }
        under_way.retain(|&call| kept[call].end_ns.is_some_and(|end| end >= now));
        let Kept { act, thread, metadata, bytes, .. } = kept[at];
        if act == Act::Move(Op::Read) {
            // A kernel thread starts what a throttle has delayed.
            let caused = |call: &&usize| {
                let call = &kept[**call];
                call.act == Act::Move(Op::Read) && (thread.is_none() || call.thread == thread)
            };
            if let Some(&call) = under_way.iter().find(caused) {
                reads.entry(kept[call].file).or_default().1 += bytes;
            }
        } else if act == Act::Move(Op::Write) && metadata {
            let durable = under_way.iter().find(|&&call| kept[call].journal_blocks.is_some());
            if let Some(&call) = durable {
                *kept[call].journal_blocks.get_or_insert(0) += bytes.div_ceil(BLOCK_BYTES) as u32;
            }
        }
    }
    let asked: u64 = reads.values().map(|(asked, _)| asked).sum();
    // What was read ahead of a file beyond its requests missed nothing.
    let missed: u64 = reads.values().map(|(asked, read)| asked.min(read)).sum();
    (asked > 0).then(|| 1.0 - missed as f64 / asked as f64)
}
