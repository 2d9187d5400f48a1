//! Names files at once: a program may close a file before its events are in order.

use super::calls::Call;
use super::identity::{self, Found};
use super::seen::{Seen, What};
use machine::Nanos;
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub(super) struct EarlyNames(HashMap<(i32, Nanos), Found>);

impl EarlyNames {
    pub(super) fn look(&mut self, events: &[Seen]) {
        let mut gone: HashSet<(i32, i32)> = HashSet::new();
        for seen in events.iter().rev() {
            match seen.what {
                What::Enter(Call::Close, arguments) => {
                    gone.insert((seen.thread, arguments[0] as i32));
                }
                What::Leave(Call::Open(_) | Call::Duplicate, result) if result >= 0 => {
                    let descriptor = result as i32;
                    if gone.insert((seen.thread, descriptor))
                        && let Some(found) = identity::look(seen.thread, descriptor)
                    {
                        self.0.insert((seen.thread, seen.at), found);
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn take(&mut self, seen: &Seen) -> Option<Found> {
        self.0.remove(&(seen.thread, seen.at))
    }
}
