//! Spellings of definitions and options, names and variables in lists, and messages about the kernel's abilities.

use rperf_testkit::{Outcome, Run, Scratch, may_trace, real_perf, skip};

use super::programs::{probe, programs, rperf};
use super::recorded_values::can_probe;

/// The standard output of `rperf probe` with these arguments.
fn stdout_of(words: &[&str]) -> String {
    let outcome = probe(rperf(), words);
    assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
    outcome.stdout
}

/// rperf finds libraries by name; perf needs the full path.
#[test]
fn libraries_are_found_by_name() {
    let line = stdout_of(&["-x", "libc.so.6", "-D", "malloc size=%di"]);
    let path = line
        .split_whitespace()
        .nth(1)
        .and_then(|place| place.rsplit_once(":0x"));
    let (path, _) = path.expect("it has a place");
    assert!(line.starts_with("p:probe_libc/malloc /"), "{line}");
    let Some(perf) = real_perf() else {
        return skip("libraries_are_found_by_name", "there is no perf");
    };
    let theirs = probe(&perf, &["-x", path, "-D", "malloc size=%di"]);
    assert_eq!(theirs.stdout, line, "{}", theirs.stderr);
}

#[test]
fn addresses_and_hexadecimal_offsets_are_accepted() {
    let entry = stdout_of(&["-x", "./nodebug", "-D", "leaf"]);
    let (_, offset) = entry.trim_end().rsplit_once(":0x").expect("an offset");
    let by_address = stdout_of(&["-x", "./nodebug", "-D", &format!("0x{offset}")]);
    let expected = entry.replace("/leaf ", &format!("/abs_{offset} "));
    assert_eq!(by_address, expected);
    let decimal = stdout_of(&["-x", "./plain", "-D", "leaf+1"]);
    assert_eq!(stdout_of(&["-x", "./plain", "-D", "leaf+0x1"]), decimal);
}

#[test]
fn a_path_before_the_definition_is_that_of_the_program() {
    let test = "a_path_before_the_definition_is_that_of_the_program";
    if !can_probe(test) {
        return;
    }
    let path = programs().join("nodebug").display().to_string();
    let outcome = probe(rperf(), &["-n", "-v", &path, "leaf+0x0", "%di"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let line = stdout_of(&["-x", &path, "-D", "leaf %di"]);
    let expected = format!(
        "Writing event: {line}Would add new event:\n  {:<20} (on leaf in {path} with %di)\n",
        "probe_nodebug:leaf"
    );
    assert_eq!(outcome.stderr, expected);
}

#[test]
fn names_of_cpp_are_demangled_by_default() {
    let readable = stdout_of(&["-x", "./plain++", "-F", "*sum*"]);
    let raw = stdout_of(&["-x", "./plain++", "--no-demangle", "-F", "*sum*"]);
    assert!(readable.contains("geo::sum"), "{readable}");
    assert!(
        raw.contains("_ZN3geo3sum") && !raw.contains("geo::sum"),
        "{raw}"
    );
}

#[test]
fn display_options_may_be_anywhere() {
    let before = stdout_of(&["-x", "./plain", "--externs", "--range", "-V", "middle:4"]);
    assert!(before.contains("[EXT]\tlong int\ttotal"), "{before}");
    for words in [
        ["-V", "middle:4", "--range", "--externs", "-x", "./plain"],
        ["--range", "-V", "middle:4", "-x", "./plain", "--externs"],
    ] {
        assert_eq!(stdout_of(&words), before, "{words:?}");
    }
    let filtered = stdout_of(&[
        "-x",
        "./plain",
        "-V",
        "middle:4",
        "--externs",
        "--filter",
        "!t* & !*_*",
    ]);
    assert!(
        filtered.contains("\tcount\n") && !filtered.contains("total"),
        "{filtered}"
    );
}

#[test]
fn arguments_of_markers_are_listed() {
    let listed = stdout_of(&["-x", "./marked", "-V", "%sdt_demo:tick"]);
    assert!(
        listed.starts_with("Available variables at %tick\n\t@<main+"),
        "{listed}"
    );
    assert!(
        listed.ends_with("\t\ts32\targ1\n\t\tu64\targ2\n\t\tu32\targ3\n"),
        "{listed}"
    );
}

/// Runs `rperf probe` with these arguments and an empty home: without settings, and without a build-id cache, in which images of
/// the kernel could be found.
fn probe_with_empty_home(words: &[&str]) -> Outcome {
    let home = Scratch::new();
    let run = Run::new(rperf()).args(["probe"]).args(words);
    run.env("HOME", home.path())
        .finish()
        .expect("the binary starts")
}

#[test]
fn boot_configurations_define_probes_of_the_kernel_only() {
    if !may_trace("boot_configurations_define_probes_of_the_kernel_only") {
        return;
    }
    let boot = probe_with_empty_home(&["--bootconfig", "-D", "vfs_read"]);
    let prefix = "ftrace.event.kprobes.vfs_read.probe = '";
    assert!(boot.stdout.starts_with(prefix), "{}", boot.stderr);
    let program = probe(rperf(), &["--bootconfig", "-x", "./plain", "-D", "leaf"]);
    assert_eq!(program.status, 129, "{}", program.stdout);
}

#[test]
fn kernels_without_probes_or_image_are_reported() {
    let test = "kernels_without_probes_or_image_are_reported";
    if !may_trace(test) {
        return;
    }
    let lines = probe_with_empty_home(&["-L", "vfs_read"]);
    // The lines are listed if there is an image of the kernel with debug information.
    if lines.status != 0 {
        assert_eq!(lines.status, 254, "{}", lines.stderr);
        assert!(
            lines
                .stderr
                .contains("hint: searched in the build-id cache and as vmlinux, /boot/"),
            "{}",
            lines.stderr
        );
    }
    if std::path::Path::new("/sys/kernel/tracing/kprobe_events").exists() {
        return skip(test, "the kernel has probes");
    }
    let added = probe_with_empty_home(&["vfs_read"]);
    assert_eq!(added.status, 254, "{}", added.stderr);
    for part in [
        "kprobe_events does not exist.\nPlease rebuild kernel with CONFIG_KPROBE_EVENTS=y.\n",
        "hint: a tracepoint with a similar name: ",
    ] {
        assert!(added.stderr.contains(part), "{}", added.stderr);
    }
}

/// Debug information of a function `f` with 20,000 nested blocks and a variable in the innermost one. Before `f` comes a
/// function `g` that extends beyond the highest address. The variable is a struct whose ten members have no name and the type of
/// the struct itself: a search for a member looks into unnamed ones. Abbreviations 1 to 6 are a compile unit, structure,
/// subprogram, lexical block, variable and member. The 20,002 zeros at the end close the blocks, `f` and the unit.
const DEEP: &str = r#"
    .text
    .globl f
    .type f, %function
f:  .rept 8
    nop
    .endr
end:
    .size f, end - f
    .section .debug_abbrev, "", %progbits
    .uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6; .uleb128 0; .uleb128 0
    .uleb128 2; .uleb128 0x13; .byte 1; .uleb128 3; .uleb128 8; .uleb128 0; .uleb128 0
    .uleb128 3; .uleb128 0x2e; .byte 1; .uleb128 3; .uleb128 8; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6
    .uleb128 0; .uleb128 0
    .uleb128 4; .uleb128 0x0b; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6; .uleb128 0; .uleb128 0
    .uleb128 5; .uleb128 0x34; .byte 0; .uleb128 3; .uleb128 8; .uleb128 0x49; .uleb128 0x13; .uleb128 2; .uleb128 0x18
    .uleb128 0; .uleb128 0
    .uleb128 6; .uleb128 0x0d; .byte 0; .uleb128 0x49; .uleb128 0x13; .uleb128 0x38; .uleb128 0x0b; .uleb128 0; .uleb128 0
    .byte 0
    .section .debug_info, "", %progbits
start:
    .4byte behind - unit
unit:
    .2byte 4; .4byte 0; .byte 8
    .uleb128 1; .8byte f; .4byte 8
kind:
    .uleb128 2; .asciz "record"
    .rept 10
    .uleb128 6; .4byte kind - start; .byte 0
    .endr
    .byte 0
    .uleb128 3; .asciz "g"; .8byte -16; .4byte 256; .byte 0
    .uleb128 3; .asciz "f"; .8byte f; .4byte 8
    .rept 20000
    .uleb128 4; .8byte f; .4byte 8
    .endr
    .uleb128 5; .asciz "deep"; .4byte kind - start; .uleb128 9; .byte 3; .8byte f
    .fill 20002
behind:
"#;

#[test]
fn deep_blocks_and_recursive_types_are_read() {
    let scratch = Scratch::new();
    let source = scratch.write("deep.s", DEEP).expect("a scratch file");
    let object = scratch.path().join("deep");
    let mut compiler = std::process::Command::new("cc");
    let compiler = compiler.args(["-nostdlib", "-static", "-Wl,-e,f", "-o"]);
    let Ok(status) = compiler.arg(&object).arg(&source).status() else {
        return skip("deep_blocks_and_recursive_types_are_read", "there is no cc");
    };
    assert!(status.success());
    let object = object.display().to_string();
    let expected = "Available variables at f\n\t@<f+0>\n\t\tstruct record\tdeep\n";
    assert_eq!(stdout_of(&["-x", &object, "-V", "f"]), expected);
    let outcome = probe(rperf(), &["-x", &object, "-D", "f deep.nosuch"]);
    let expected = "deep(type:record) has no member nosuch.";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
}
