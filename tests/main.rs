//! The tests that run rperf or check the source tree, except those in tests/hostile: one test binary, so that linking happens
//! once.

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
