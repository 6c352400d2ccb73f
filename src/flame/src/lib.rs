//! Charts, written as SVG files. Flame graphs and time charts can also be written as HTML pages, and flame graphs as JSON and as
//! folded text. The charts are:
//!
//! - flame graphs: stacks merged into a tree, with zoom and search
//! - heat maps: counts in a grid, in which time ranges can be selected
//! - time charts: rows of boxes over time
//! - bar charts, and curves of amounts over time
//!
//! ```text
//! stacks of names --add--> Stacks; folded text --read_folded--> Stacks
//! Stacks --write_folded--> folded text
//! Stacks --Flame::new, Flame::compare--> Flame (frames in drawing order) --svg::write--> SVG
//!                                                                        --svg::write_html--> HTML page
//!                                                                        --write_json--> JSON
//! times --add--> HeatMap (a grid of counts) --write--> SVG
//! rows of boxes --> TimeChart --write_svg--> SVG, --write_html--> HTML page
//! labels with counts --> BarChart --write--> SVG
//! amounts over time --> CurveChart --write--> SVG
//! ```
//!
//! **Invariants.** A flame graph does not depend on the order of the stacks.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod bars;
mod color;
mod curves;
mod error;
mod folded;
mod heat;
mod idle;
mod json;
mod kind;
mod stacks;
pub mod svg;
mod text;
mod timechart;
mod tree;

pub use bars::BarChart;
pub use color::{PALETTES, Palette};
pub use curves::CurveChart;
pub use error::Error;
pub use folded::{read as read_folded, write as write_folded};
pub use heat::{HeatMap, HeatScale, linear_edges, logarithmic_edges};
pub use idle::is_idle;
pub use json::write as write_json;
pub use kind::FrameKind;
pub use stacks::{Label, Stacks};
pub use text::amount;
pub use timechart::{
    ChartArrow, ChartBox, ChartGap, ChartRow, IDLE_PAINTS, Paint, RowKind, TimeChart,
};
pub use tree::{Flame, FlameFrame, FrameWidths};
