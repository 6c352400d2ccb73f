//! `rperf`: Linux perf written anew, one binary with git-style subcommands.
//!
//! Everything the command line does lives in [`cli`]; the library crates neither print nor exit.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
