//! A phase of all tasks, made of parts.

use super::result::Stonewall;
use super::task::Accessed;
use crate::tasks::Span;
use machine::Nanos;

#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) opens: bool,
    pub(super) transfers: bool,
    pub(super) closes: bool,
}

/// The times exclude the tasks' agreement between parts.
pub(super) struct Done {
    pub(super) tasks: Vec<Accessed>,
    /// In the first part, on one clock.
    pub(super) begins: Vec<Span>,
    pub(super) times_ns: Vec<Nanos>,
    pub(super) open_ns: Nanos,
    pub(super) transfer_ns: Nanos,
    pub(super) close_ns: Nanos,
    pub(super) total_ns: Nanos,
    pub(super) stonewall: Option<Stonewall>,
}

impl Done {
    pub(super) fn of(hold_ns: Nanos) -> Done {
        Done {
            tasks: Vec::new(),
            begins: Vec::new(),
            times_ns: Vec::new(),
            open_ns: hold_ns,
            transfer_ns: 0,
            close_ns: 0,
            total_ns: hold_ns,
            stonewall: None,
        }
    }

    pub(super) fn add(&mut self, these: Vec<Accessed>, part: Part) {
        let around = |of: fn(&Accessed) -> Span| Span::around(these.iter().map(of)).ns();
        let spans: Vec<Span> = these
            .iter()
            .map(|one| {
                let own = [
                    (part.opens, one.open),
                    (part.transfers, one.transfer),
                    (part.closes, one.close),
                ];
                Span::around(own.into_iter().filter(|(has, _)| *has).map(|(_, span)| span))
            })
            .collect();
        self.open_ns += if part.opens { around(|one| one.open) } else { 0 };
        self.transfer_ns += if part.transfers { around(|one| one.transfer) } else { 0 };
        self.close_ns += if part.closes { around(|one| one.close) } else { 0 };
        self.total_ns += Span::around(spans.iter().copied()).ns();
        if self.tasks.is_empty() {
            self.times_ns = spans.iter().map(|span| span.ns()).collect();
            (self.begins, self.tasks) = (spans, these);
            return;
        }
        for (sum, span) in self.times_ns.iter_mut().zip(spans) {
            *sum += span.ns();
        }
        for (sum, one) in self.tasks.iter_mut().zip(these) {
            sum.latency.merge(&one.latency);
            sum.wrong += one.wrong;
            sum.transfers = one.transfers;
            (sum.file_bytes, sum.number) = (one.file_bytes, one.number);
        }
    }
}
