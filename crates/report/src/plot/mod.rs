//! Figures as shapes and texts with their places: everything is decided here, so that a page only has to write it down.
//!
//! A figure is laid out for a width in its own units (about a CSS pixel). Texts are placed so that none overlaps another: widths are
//! taken from a wide font, so any narrower one keeps the promise.

pub(crate) mod colour;
mod figure;
mod labels;
mod memory;
mod scale;
pub(crate) mod scene;
mod text;
mod ticks;

pub(crate) use figure::lay_out;
pub(crate) use memory::{lay_out as lay_out_memory, name as memory_name};

/// For which room a figure is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// A page on a desk or on paper.
    Wide,
    /// A telephone.
    Narrow,
}

impl Room {
    /// The figure's width.
    pub(crate) fn width(self) -> f64 {
        match self {
            Room::Wide => 760.0,
            Room::Narrow => 380.0,
        }
    }

    /// The height between the axes, if nothing asks for more.
    pub(crate) fn height(self) -> f64 {
        match self {
            Room::Wide => 300.0,
            Room::Narrow => 240.0,
        }
    }

    /// A word for ids and classes.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Room::Wide => "wide",
            Room::Narrow => "narrow",
        }
    }
}
