//! `rperf`: Linux perf rewritten as one Rust binary with git-style subcommands.
//!
//! The command line is in [`cli`]; the library crates neither print nor exit.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
