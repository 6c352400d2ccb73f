//! `rperf`: Linux perf rewritten as one Rust binary with git-style subcommands.
//!
//! The command line is in [`cli`].

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
