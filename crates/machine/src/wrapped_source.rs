use crate::{Completion, Nanos, Next, Request, RequestSource, Stability};

/// Shared by the trait and its sources.
macro_rules! delegated {
    ($each:ident) => {
        $each! {
            [&] depth() -> u32;
            [&] max_request() -> u32;
            [&] writes() -> bool;
            [&] keeps_requests() -> bool;
            [&] outstanding(slot: u32) -> Request;
            [&] sync_due() -> Option<Stability>;
            [&] sync_target() -> Option<u32>;
            [&] journal_blocks(slot: Option<u32>) -> Option<u32>;
            [mut] synced(began: Nanos, ended: Nanos) -> ();
            [mut] fill_buffers(buffers: &mut [u8]) -> ();
            [mut] begin(now: Nanos) -> ();
            [mut] next(now: Nanos) -> Next;
            [&] times_submission() -> bool;
            [&] gives_priorities() -> bool;
            [&] priority(slot: u32) -> u16;
            [mut] submitted(now: Nanos) -> ();
            [mut] complete(completion: Completion, now: Nanos) -> ();
            [mut] failed(completion: Completion, now: Nanos) -> bool;
            [mut] fill(request: &Request, buffer: &mut [u8]) -> ();
            [&] checks() -> bool;
            [mut] check(slot: u32, data: &[u8]) -> ();
        }
    };
}

macro_rules! to_inner {
    ($([$self:tt] $name:ident($($value:ident: $type:ty),*) -> $out:ty;)*) => {
        $(to_inner! { @ $self $name($($value: $type),*) -> $out })*
    };
    (@ & $name:ident($($value:ident: $type:ty),*) -> $out:ty) => {
        #[inline(always)]
        fn $name(&self, $($value: $type),*) -> $out {
            self.inner().$name($($value),*)
        }
    };
    (@ mut $name:ident($($value:ident: $type:ty),*) -> $out:ty) => {
        #[inline(always)]
        fn $name(&mut self, $($value: $type),*) -> $out {
            self.inner_mut().$name($($value),*)
        }
    };
}

macro_rules! to_wrapper {
    ($([$self:tt] $name:ident($($value:ident: $type:ty),*) -> $out:ty;)*) => {
        $(to_wrapper! { @ $self $name($($value: $type),*) -> $out })*
    };
    (@ & $name:ident($($value:ident: $type:ty),*) -> $out:ty) => {
        #[inline(always)]
        fn $name(&self, $($value: $type),*) -> $out {
            WrappedSource::$name(self, $($value),*)
        }
    };
    (@ mut $name:ident($($value:ident: $type:ty),*) -> $out:ty) => {
        #[inline(always)]
        fn $name(&mut self, $($value: $type),*) -> $out {
            WrappedSource::$name(self, $($value),*)
        }
    };
}

/// Uses another source's methods unless it has its own.
///
/// All requests come through [`WrappedSource::next`]: a wrapper that changes it needs no faster
/// variants, and one that has them offers them itself.
///
/// ```
/// use machine::{Completion, Nanos, RequestSource, WrappedSource};
///
/// struct Counted<S>(S, u64);
///
/// impl<S: RequestSource> WrappedSource for Counted<S> {
///     type Inner = S;
///
///     fn inner(&self) -> &S {
///         &self.0
///     }
///     fn inner_mut(&mut self) -> &mut S {
///         &mut self.0
///     }
///     fn complete(&mut self, completion: Completion, now: Nanos) {
///         self.1 += 1;
///         self.0.complete(completion, now);
///     }
/// }
/// ```
pub trait WrappedSource: Send {
    type Inner: RequestSource;

    fn inner(&self) -> &Self::Inner;

    fn inner_mut(&mut self) -> &mut Self::Inner;

    delegated!(to_inner);

    #[inline(always)]
    fn next_fast(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    #[inline(always)]
    fn next_sync(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    #[inline(always)]
    fn complete_sync(&mut self, _request: &Request, _since: Nanos, _now: Nanos) {
        unreachable!("next_sync issued no request");
    }
}

#[deny(clippy::missing_trait_methods)]
impl<W: WrappedSource> RequestSource for W {
    delegated!(to_wrapper);

    #[inline(always)]
    fn next_fast(&mut self, now: Nanos) -> Option<Request> {
        WrappedSource::next_fast(self, now)
    }

    #[inline(always)]
    fn next_sync(&mut self, now: Nanos) -> Option<Request> {
        WrappedSource::next_sync(self, now)
    }

    #[inline(always)]
    fn complete_sync(&mut self, request: &Request, since: Nanos, now: Nanos) {
        WrappedSource::complete_sync(self, request, since, now);
    }
}
