//! The output of `strace -f -ttt -T`, with or without `-y`. An interrupted call has two lines.
//! Descriptors are followed through open, dup, fork and exec, to know each request's file and
//! offset.

mod call;
mod descriptors;
mod line;

use super::text::{Lines, Names, quoted};
use super::{Reader, Result};
use crate::{Event, Request};
use descriptors::Processes;
pub(super) use line::is_line;
use line::{Line, Rest};
use machine::Nanos;
use std::collections::{HashMap, VecDeque};
use std::io::BufRead;

/// `-s` sets a line's length.
const MAX_LINE_BYTES: usize = 1 << 20;
const MAX_PENDING: usize = 1 << 18;
const MAX_UNFINISHED: usize = 1 << 16;

struct Unfinished {
    at_ns: Nanos,
    start: String,
    place: u64,
}

pub(super) struct Strace<R> {
    lines: Lines<R>,
    processes: Processes,
    names: Names,
    unfinished: HashMap<u32, Unfinished>,
    /// By start; `None` until the end is known.
    order: VecDeque<Option<Option<Request>>>,
    first: u64,
}

impl<R: BufRead> Strace<R> {
    pub(super) fn new(from: R) -> Strace<R> {
        Strace {
            lines: Lines::new(from, MAX_LINE_BYTES),
            processes: Processes::default(),
            names: Names::default(),
            unfinished: HashMap::new(),
            order: VecDeque::new(),
            first: 0,
        }
    }

    fn take(&mut self, text: &str, out: &mut VecDeque<Event>) -> Result<(), String> {
        let Some(Line { pid, at_ns, rest }) = line::parse(text)? else { return Ok(()) };
        match rest {
            Rest::Exited => {
                self.processes.exit(pid);
                if let Some(call) = self.unfinished.remove(&pid) {
                    self.end(call.place, None);
                }
            }
            Rest::Unfinished(start) => {
                if self.unfinished.len() == MAX_UNFINISHED {
                    return Err(format!(
                        "more than {MAX_UNFINISHED} threads have a call under way"
                    ));
                }
                let place = self.first + self.order.len() as u64;
                self.order.push_back(None);
                let call = Unfinished { at_ns, start: start.to_owned(), place };
                self.unfinished.insert(pid, call);
            }
            Rest::Resumed(name, end) => {
                // The recording may begin within a call.
                let Some(mut call) = self.unfinished.remove(&pid) else { return Ok(()) };
                if !call.start.starts_with(name) {
                    return Err(format!("{} resumes, but another call was open", quoted(name)));
                }
                call.start.push_str(end);
                if call.start.len() > 2 * MAX_LINE_BYTES {
                    return Err("the call is too long; record with a smaller strace -s".into());
                }
                let request = self.call(pid, call.at_ns, &call.start, out)?;
                self.end(call.place, request);
            }
            Rest::Call(text) => {
                let request = self.call(pid, at_ns, text, out)?;
                if let Some(request) = request {
                    self.order.push_back(Some(Some(request)));
                }
            }
        }
        self.emit(false, out);
        Ok(())
    }

    fn call(
        &mut self,
        pid: u32,
        at_ns: Nanos,
        text: &str,
        out: &mut VecDeque<Event>,
    ) -> Result<Option<Request>, String> {
        let Some(call) = call::Call::parse(text) else { return Ok(None) };
        let Some(done) = self.processes.call(pid, &call, &mut self.names, out)? else {
            return Ok(None);
        };
        let process = self.processes.process_of(pid);
        let thread = self.names.thread(process, pid, None, out)?;
        Ok(Some(Request {
            at_ns,
            duration_ns: call.duration_ns,
            thread: Some(thread),
            file: done.file,
            access: done.access,
            interface: crate::Interface::SystemCall,
            offset: done.offset,
            bytes: done.bytes,
            result: call.result,
            open: done.open,
        }))
    }

    fn end(&mut self, place: u64, request: Option<Request>) {
        let index = place.checked_sub(self.first);
        if let Some(slot) = index.and_then(|index| self.order.get_mut(index as usize)) {
            *slot = Some(request);
        }
    }

    fn emit(&mut self, all: bool, out: &mut VecDeque<Event>) {
        while let Some(front) = self.order.front() {
            if front.is_none() && !all && self.order.len() <= MAX_PENDING {
                break;
            }
            self.first += 1;
            let request = self.order.pop_front().flatten().flatten();
            out.extend(request.map(Event::Request));
        }
    }
}

impl<R: BufRead + Send> Reader for Strace<R> {
    fn step(&mut self, out: &mut VecDeque<Event>) -> Result<bool> {
        let Some(line) = self.lines.next()? else {
            self.emit(true, out);
            return Ok(false);
        };
        self.take(&line, out).map_err(|reason| self.lines.wrong(reason))?;
        Ok(true)
    }
}
