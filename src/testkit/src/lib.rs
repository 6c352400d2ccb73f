//! Shared test utilities: scratch directories, hermetic program runs, golden files, a list of recordings, a web server; builders
//! of byte strings, perf.data files and BTF; a decoder of protocol buffers.
//!
//! Depends on no other crate of the project, so that every crate may use it in its tests.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "test support reads the environment and says why a test is skipped"
)]

pub mod btf;
pub mod bytes;
pub mod golden;
pub mod http;
pub mod perf_file;
pub mod protobuf;
pub mod recordings;
pub mod run;
pub mod scratch;

pub use self::bytes::Bytes;
pub use self::golden::assert_golden;
pub use self::http::{HttpResponse, HttpServer};
pub use self::perf_file::{FileAttr, PerfFile, record};
pub use self::recordings::recording_candidates;
pub use self::run::{
    Outcome, Run, copy_program, may_trace, real_perf, skip, skip_for_lack_of, write_program,
};
pub use self::scratch::Scratch;
