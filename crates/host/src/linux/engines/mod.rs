//! Each engine has a file and a line in `engines!`.

mod aio;
mod mmap;
mod null;
mod open;
mod splice;
mod sync;
mod uring;

use super::clock::Clock;
use super::snapshot::waited_ns;
use crate::arena::Arena;
use crate::raid5::{self, ParitySession};
use crate::reaping::PartCounters;
use crate::run_streams::Ready;
use crate::serve::{serve, serve_blocking};
use crate::session::{BlockingSession, Halt, Session};
use crate::stripe::{StripeSet, Striped};
use machine::{Engine, Error, Hint, Memory, Nanos, NullBackend, Reap, RequestSource, Result};
use open::{Open, Setup};
use std::os::fd::RawFd;

pub(crate) struct Stream<'f, 's, S> {
    pub(crate) fds: &'f [RawFd],
    pub(crate) stripe: Option<&'f StripeSet>,
    pub(crate) end: u64,
    pub(crate) hint: Hint,
    pub(crate) memory: Memory,
    pub(crate) kernel_polls: bool,
    pub(crate) source: &'s mut S,
    pub(crate) arena: &'s mut Arena,
    pub(crate) clock: Clock,
    pub(crate) halt: Halt<'s>,
    pub(crate) ready: Ready<'s>,
    pub(crate) reap: (Reap, &'s PartCounters),
}

impl<'f, S: RequestSource> Stream<'f, '_, S> {
    fn open<Q: Open<'f>>(&mut self, engine: Engine) -> Result<Q> {
        let pieces = self.stripe.map_or(1, |set| set.max_pieces(self.source.max_request()));
        let setup = Setup {
            fds: self.fds,
            entries: u32::try_from(u64::from(self.source.depth()) * pieces).unwrap_or(u32::MAX),
            arena: self.arena,
            end: self.end,
            writes: self.source.writes(),
            hint: self.hint,
            register: self.memory != Memory::Pages,
            kernel_polls: self.kernel_polls,
            tally: self.reap.1,
        };
        Q::open(setup)
            .map_err(|error| Error::Unsupported(format!("{engine} is not available: {error}")))
    }

    fn queued<Q: Open<'f> + Session>(mut self, engine: Engine) -> Result<Nanos> {
        let session: Q = self.open(engine)?;
        let Stream { stripe, source, arena, clock, halt, ready, reap, .. } = self;
        from_the_start(ready, (halt, clock, reap.1), || match stripe {
            None => serve(session, source, arena, clock, halt, reap),
            Some(StripeSet { members, chunk, parity: None }) => {
                let session = Striped::new(session, *members, *chunk, source.depth());
                serve(session, source, arena, clock, halt, reap)
            }
            Some(set @ StripeSet { parity: Some((how, busy)), .. }) => {
                let setup = raid5::Setup {
                    layout: set.layout(),
                    how: *how,
                    busy,
                    tally: reap.1,
                    time: clock,
                    depth: source.depth(),
                    scratch: (arena.scratch(), set.scratch_bytes(source.max_request())),
                };
                serve(ParitySession::new(session, setup), source, arena, clock, halt, reap)
            }
        })
    }

    fn blocking<B: Open<'f> + BlockingSession>(mut self, engine: Engine) -> Result<Nanos> {
        let session: B = self.open(engine)?;
        let Stream { source, arena, clock, halt, ready, reap, .. } = self;
        from_the_start(ready, (halt, clock, reap.1), || {
            serve_blocking(session, source, arena, clock, halt)
        })
    }
}

/// Counts waits for a CPU only from the common start.
fn from_the_start<T>(
    ready: Ready<'_>,
    (halt, clock, tally): (Halt<'_>, Clock, &PartCounters),
    serve: impl FnOnce() -> T,
) -> T {
    let before = waited_ns();
    ready.wait(halt, clock);
    let ended = serve();
    tally.note_unserved(
        before.zip(waited_ns()).map_or(0, |(before, after)| after.saturating_sub(before)),
    );
    ended
}

/// Each line: the engine, how its sessions are served, their type, and any session of no-op
/// requests.
macro_rules! engines {
    ($($engine:ident: $serve:ident $session:ty $(, no_op $no_op:ty)?;)*) => {
        pub(crate) fn available() -> Vec<Engine> {
            let all = [$((Engine::$engine, <$session as Open<'_>>::available as fn() -> bool)),*];
            all.into_iter().filter(|(_, available)| available()).map(|(engine, _)| engine).collect()
        }

        pub(crate) fn has_backend(engine: Engine, backend: NullBackend) -> bool {
            match (engine, backend) {
                (_, NullBackend::Null) => true,
                $($((Engine::$engine, NullBackend::NoOp) => { let _: Option<$no_op> = None; true })?)*
                _ => false,
            }
        }

        fn serve_through<S: RequestSource>(
            engine: Engine,
            backend: Option<NullBackend>,
            stream: Stream<'_, '_, S>,
        ) -> Result<Nanos> {
            match (engine, backend) {
                $((Engine::$engine, None) => stream.$serve::<$session>(engine),
                $((Engine::$engine, Some(NullBackend::NoOp)) => stream.$serve::<$no_op>(engine),)?
                (Engine::$engine, Some(_)) => stream.$serve::<idle!($serve)>(engine),)*
                (other, _) => {
                    let available: Vec<&str> =
                        available().into_iter().map(Engine::name).collect();
                    let why = format!(
                        "engine {other} is not available on this computer; it has {}",
                        available.join(", ")
                    );
                    Err(Error::Unsupported(why))
                }
            }
        }
    };
}

macro_rules! idle {
    (blocking) => {
        null::Instant
    };
    (queued) => {
        null::Null
    };
}

engines! {
    Sync: blocking sync::Blocking<'_>;
    Threads: blocking sync::Blocking<'_>;
    IoUring: queued uring::Ring<'_>, no_op uring::NoOps;
    Libaio: queued aio::NativeAio<'_>;
    Mmap: blocking mmap::Mapped<'_>;
    Splice: blocking splice::Spliced<'_>;
    Null: queued null::Null;
}

/// Returns the time of the last completion.
pub(crate) fn run<S: RequestSource>(
    engine: Engine,
    backend: Option<NullBackend>,
    stream: Stream<'_, '_, S>,
) -> Result<Nanos> {
    // A stripe needs an asynchronous engine, even at depth 1, to use its members in parallel.
    let engine = match stream.stripe {
        Some(_) if !engine.is_async() => {
            available().into_iter().find(|engine| engine.is_async()).unwrap_or(engine)
        }
        _ => engine,
    };
    if stream.stripe.is_some() && !engine.is_async() {
        return Err(Error::Unsupported(
            "a stripe needs io_uring or libaio, and this kernel offers neither".into(),
        ));
    }
    serve_through(engine, backend, stream)
}
