use machine::Engine;

/// How an NT program with several overlapped requests per thread learns of completions. One waiting
/// thread per request is the engine `threads`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// One event per request; completions are taken oldest first.
    Events,
    /// Called while the program sleeps, as in the 1997 study.
    #[default]
    Routines,
    Port,
}

/// Name, extra system calls per request, and whether completions are in request order.
const SHAPES: [(Shape, &str, u32, bool); 3] = [
    // WaitForSingleObject.
    (Shape::Events, "events", 1, true),
    // SleepEx, and NtContinue, with which a routine returns to the interrupted code.
    (Shape::Routines, "routines", 2, false),
    // GetQueuedCompletionStatus.
    (Shape::Port, "port", 1, false),
];

impl Shape {
    pub fn all() -> impl Iterator<Item = Shape> {
        SHAPES.iter().map(|row| row.0)
    }

    pub fn named(name: &str) -> Option<Shape> {
        Shape::all().find(|shape| shape.name() == name)
    }

    fn row(self) -> &'static (Shape, &'static str, u32, bool) {
        &SHAPES[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// `None` if the engine leaves that to the machine.
    pub fn of_engine(engine: Engine) -> Option<Shape> {
        match engine {
            Engine::Events => Some(Shape::Events),
            Engine::Routines => Some(Shape::Routines),
            Engine::Port => Some(Shape::Port),
            _ => None,
        }
    }

    pub fn more_calls(self) -> u32 {
        self.row().2
    }

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
            let engine = Engine::ALL.into_iter().find(|engine| engine.name() == shape.name());
            assert_eq!(engine.and_then(Shape::of_engine), Some(shape));
        }
    }
}
