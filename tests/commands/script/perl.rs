//! `script -s FILE.pl`: scripts in Perl, on recordings of the repository.

use std::process::Command;

use rperf_testkit::{Outcome, Scratch, real_perf, skip};

use super::scripts::printed_for_kprobes;
use crate::tidy::root;

/// A script that prints the arguments of its functions. Of the sample, a `struct perf_sample`, it prints the members up to
/// `ins_lat` (156 bytes), which are before all pointers. The arguments for a kprobe, after the event and the context, are 6
/// common values and 3 fields: the last index is 8.
const PRINT_ALL: &str = r#"
use lib "$ENV{'PERF_EXEC_PATH'}/scripts/perl/Perf-Trace-Util/lib";
use Perf::Trace::Core;
use Perf::Trace::Context;
use Perf::Trace::Util;
sub show {
    my $v = shift;
    return "undef" unless defined $v;
    return "[" . join(",", map { show($_) } @$v) . "]" if ref($v) eq "ARRAY";
    return "{" . join(",", map { "$_=" . show($v->{$_}) } sort keys %$v) . "}" if ref($v) eq "HASH";
    return $v;
}
sub trace_begin {
    print "begin @ARGV\n", nsecs(2, 3), " ", avg(5, 2), " ", trace_flag_str(9), " ", nsecs_secs(1500000000), "\n";
}
sub trace_end { print "end\n"; }
sub trace_unhandled {
    my ($event, $context, @rest) = @_;
    # perf sometimes passes arguments of an earlier call at the end.
    $#rest = 8 if $event =~ /^kprobes/;
    print join("|", $event, common_pc($context), common_flags($context), common_lock_depth($context), map { show($_) } @rest), "\n";
}
sub kprobes::opened { print "opened: "; trace_unhandled(@_); }
sub process_event {
    my ($record, $attr, $sample, $raw) = @_;
    print join("|", map { unpack("H*", $_ // "") } $record, $attr, substr($sample, 0, 156), $raw), " ", length($sample), "\n";
}
"#;

/// Recordings of other machines, with many kinds of samples.
const RECORDINGS: [&str; 8] = [
    "branches-flags.data",
    "counted.data",
    "cycles.data",
    "kprobe.data",
    "memory.data",
    "pages.data",
    "registers.data",
    "switches.data",
];

fn has_perl() -> bool {
    let output = Command::new("perl").arg("-v").output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs `program` with `script` on a recording of the repository.
fn run(program: &str, script: &str, recording: &str, words: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    scratch
        .write("own.pl", script.as_bytes())
        .expect("a file can be written");
    let recording = root().join("tests/fixtures/x86_64").join(recording);
    let recording = recording.to_string_lossy().into_owned();
    let start = ["script", "-f", "-i", &recording, "-s", "own.pl"];
    let run = rperf_testkit::Run::new(program).args([&start[..], words].concat());
    run.within(scratch.path())
        .finish()
        .expect("the program starts")
}

#[test]
fn functions_get_the_values_that_perf_passes() {
    let test = "perl: functions_get_the_values_that_perf_passes";
    let (true, Some(perf)) = (has_perl(), real_perf()) else {
        return skip(test, "there is no perf or no Perl");
    };
    for recording in RECORDINGS {
        let expected = run(&perf.to_string_lossy(), PRINT_ALL, recording, &["a", "b c"]);
        let own = run(
            env!("CARGO_BIN_EXE_rperf"),
            PRINT_ALL,
            recording,
            &["a", "b c"],
        );
        assert_eq!((own.status, expected.status), (0, 0), "{}", own.stderr);
        assert!(own.stdout.starts_with("begin a b c\n"), "{}", own.stdout);
        assert_eq!(own.stdout, expected.stdout, "{recording}");
    }
}

#[test]
fn scripts_end_with_their_own_status() {
    if !has_perl() {
        return skip(
            "perl: scripts_end_with_their_own_status",
            "there is no Perl",
        );
    }
    for (script, status, stdout, stderr) in [
        ("print \"x\\n\"; exit 3;", 3, "x\n", ""),
        ("sub x {", 255, "", "Missing right curly"),
        ("die \"top\\n\";", 255, "", "top\n"),
        (
            "use NothingOfThisName;",
            255,
            "",
            "Can't locate NothingOfThisName.pm",
        ),
        ("sub trace_begin { exit 2 }", 2, "", ""),
        // `die` exits with the value of `$!` unless it is 0.
        (
            "print 1; sub process_event { $! = 0; die \"own\\n\" }",
            255,
            "1",
            "own\n",
        ),
        // A script, unlike a module, may end with a false value.
        ("sub trace_end { print \"end\" } 0;", 0, "end", ""),
    ] {
        let outcome = run(env!("CARGO_BIN_EXE_rperf"), script, "cycles.data", &[]);
        assert_eq!(
            (outcome.status, &*outcome.stdout),
            (status, stdout),
            "{script}: {}",
            outcome.stderr
        );
        assert!(
            outcome.stderr.contains(stderr),
            "{script}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn generated_scripts_run_under_both_tools() {
    let test = "perl: generated_scripts_run_under_both_tools";
    let (true, Some(perf)) = (has_perl(), real_perf()) else {
        return skip(test, "there is no perf or no Perl");
    };
    let scratch = Scratch::new();
    let call = |program: &str, words: &[&str]| printed_for_kprobes(&scratch, program, words);
    let own = env!("CARGO_BIN_EXE_rperf");
    let perf = perf.to_string_lossy();
    for generator in [own, &*perf] {
        call(generator, &["-g", "perl"]);
        let outputs = [own, &*perf].map(|program| call(program, &["-s", "perf-script.pl"]));
        assert!(outputs[0].starts_with("kprobes::"), "{}", outputs[0]);
        if generator == own {
            assert_eq!(outputs[0], outputs[1]);
            continue;
        }
        // The script that perf generates also prints the bytes of a structure with pointers, which differ. Only the lines of
        // events are compared.
        let lines = outputs
            .iter()
            .map(|output| output.lines().filter(|line| line.starts_with("kprobes::")));
        let lines: Vec<Vec<&str>> = lines.map(Iterator::collect).collect();
        assert_eq!(lines[0], lines[1]);
    }
    // A file name in place of the language: its extension chooses the language.
    call(own, &["-g", "own.pl"]);
    call(own, &["-g", "perl"]);
    let texts = ["own.pl", "perf-script.pl"].map(|name| {
        let path = scratch.path().join(name);
        std::fs::read_to_string(path).expect("it is written")
    });
    assert_eq!(texts[0], texts[1]);
}
