//! The shape of a program that keeps several requests outstanding from one thread: how it learns that one is done.

/// How a program of NT learns of the end of a request that it did not wait for in the call. A program of several threads that wait, each for
/// its own, is the engine `threads`, and makes no call more than a synchronous loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// An event for each: it waits for the oldest, and takes a younger one that is done first only after that.
    Events,
    /// Completion routines, which the system calls while the program sleeps: the programs of the 1997 study.
    #[default]
    Routines,
    /// A completion port, from which it takes whatever is done.
    Port,
}

/// Each shape with its name, the calls that it makes for a request beyond the one that asks for it, and whether it takes completions in the
/// order of the requests.
const SHAPES: [(Shape, &str, u32, bool); 3] = [
    // WaitForSingleObject.
    (Shape::Events, "events", 1, true),
    // SleepEx, and NtContinue, with which a routine returns to what it interrupted.
    (Shape::Routines, "routines", 2, false),
    // GetQueuedCompletionStatus.
    (Shape::Port, "port", 1, false),
];

impl Shape {
    /// Every shape.
    pub fn all() -> impl Iterator<Item = Shape> {
        SHAPES.iter().map(|row| row.0)
    }

    /// The shape of this name.
    pub fn named(name: &str) -> Option<Shape> {
        Shape::all().find(|shape| shape.name() == name)
    }

    fn row(self) -> &'static (Shape, &'static str, u32, bool) {
        &SHAPES[self as usize]
    }

    /// The name in settings.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// System calls of a request beyond the one that asks for it.
    pub fn more_calls(self) -> u32 {
        self.row().2
    }

    /// A request that is done waits until all that were asked for before it are.
    pub(crate) fn oldest_first(self) -> bool {
        self.row().3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_shapes_and_names_are_unique() {
        for shape in Shape::all() {
            assert_eq!((shape.row().0, Shape::named(shape.name())), (shape, Some(shape)));
        }
    }
}
