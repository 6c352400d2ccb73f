//! The tests that run the binary or check the whole tree, in one binary, so that it links once.

mod commands;
mod corpus;
mod differential;
mod guest;
mod kernel;
mod probing;
mod python;
mod recording_formats;
mod text_pokes;
mod tidy;
mod tools;
mod unwinding;
