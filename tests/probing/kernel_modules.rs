//! Probes in kernel modules, whose files are relocatable (not linked).

use std::fs;
use std::process::Command;

use rperf_testkit::{Run, Scratch};

use super::programs::rperf;

/// A module whose first function has the address 0, and whose second function has an array in its stack frame.
const SOURCE: &str = r"
void fill(char *buffer);
long total;
__attribute__((noinline)) long first(long n)
{
	return n + total;
}
__attribute__((noinline)) long second(long n)
{
	char buffer[64];
	fill(buffer);
	return n + buffer[total];
}
";

/// Compiles the module with further flags, and returns what `probe -D` prints for each definition. The module has call frame
/// information in `.debug_frame`, not in `.eh_frame`.
fn defined(flags: &[&str], definitions: &[&str]) -> String {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("module.c"), SOURCE).expect("a source");
    let compiled = Command::new("cc")
        .args(["-g", "-c", "-O2", "-fcf-protection=none"])
        .args(["-fno-asynchronous-unwind-tables", "-fno-stack-protector"])
        .args(flags)
        .args(["-o", "sample.ko", "module.c"])
        .current_dir(scratch.path())
        .status();
    assert!(compiled.expect("a compiler").success());
    let run = Run::new(rperf()).args(["probe", "-m", "./sample.ko"]);
    let words = definitions.iter().flat_map(|definition| ["-D", definition]);
    let run = run.args(words).within(scratch.path());
    let outcome = run.env("HOME", scratch.path()).finish();
    let outcome = outcome.expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    outcome.stdout
}

#[test]
fn a_function_at_address_0_has_variables() {
    let printed = defined(&[], &["first n"]);
    assert_eq!(printed, "p:probe/first sample:first+0 n=%di:s64\n");
}

/// In a relocatable file, the addresses in `.debug_frame` are correct only after its relocations are applied.
#[test]
fn the_stack_frame_of_a_function_behind_another_is_known() {
    let expected = "p:probe/second sample:second+0 buffer=-72(%sp)\n";
    assert_eq!(defined(&[], &["second+0 buffer"]), expected);
    // The same with compressed debug sections.
    assert_eq!(defined(&["-gz"], &["second+0 buffer"]), expected);
}
