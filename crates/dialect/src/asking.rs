//! What every asker around a stream says in the same way.

/// Depth, greatest request and whether anything writes: those of the stream inside.
macro_rules! of_the_stream {
    () => {
        fn depth(&self) -> u32 {
            self.stream.depth()
        }

        fn max_request(&self) -> u32 {
            self.stream.max_request()
        }

        fn writes(&self) -> bool {
            self.stream.writes()
        }
    };
}
pub(crate) use of_the_stream;
