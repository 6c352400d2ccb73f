//! The tests that run the binary or look at the whole tree; one binary, so that it links once.

mod commands;
mod corpus;
mod differential;
mod forms;
mod guest;
mod kernel;
mod poked;
mod probing;
mod tidy;
mod unwinding;
