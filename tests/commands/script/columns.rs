//! Arguments of Python handlers, sent to the interpreter in columns: the values of one argument for many calls together.

use rperf_testkit::{Outcome, Scratch, skip};

use super::native::{recorded, run};

/// The parameters that the handlers of all tracepoints have.
const COMMON: &str = "name, context, cpu, secs, nsecs, pid, comm, chain";

/// Samples of three tracepoints with a text and with numbers of 32 and 64 bits. The field `name` is the parameter `text` of the
/// handlers. A handler that takes the sample's dict gets its arguments as a tuple, other handlers as columns. As in perf, numbers
/// of 32 bits arrive without a sign: -5 as 4294967291.
const LINES: &str = "\
a 1 [000] 1.000001: own:first: number=-5 big=18446744073709551615 name=x
b 2 [001] 1.000002: own:second: number=6 name=y
a 1 [000] 1.000003: own:first: number=7 big=8 name=z
b 2 [001] 1.000004: own:third: number=9 name=\"\"
";

/// The outcome of a script on the recording.
fn run_script(scratch: &Scratch, script: &str) -> Outcome {
    scratch.write("own.py", script.as_bytes()).expect("a file");
    run(scratch, &["script", "-s", "own.py"])
}

#[test]
fn arguments_of_all_kinds_arrive_in_order() {
    if !super::scripts::has_python() {
        return skip(
            "arguments_of_all_kinds_arrive_in_order",
            "there is no Python",
        );
    }
    let script = format!(
        "def own__first({COMMON}, number, big, text):\n    print(name, cpu, secs, nsecs, pid, comm, chain, number, big, text)\n\
         def own__second({COMMON}, number, text, sample):\n    print(name, number, text, sample['comm'])\n\
         def own__third({COMMON}, number, text):\n    print(name, repr(text))\n\
         def trace_unhandled(event, context, fields): print('unhandled', event)\n"
    );
    let outcome = run_script(&recorded(LINES), &script);
    let expected = "\
own__first 0 1 1000 1 a [] 4294967291 18446744073709551615 x
own__second 6 y b
own__first 0 1 3000 1 a [] 7 8 z
own__third '\"\"'
";
    assert_eq!(outcome.stdout, expected, "{}", outcome.stderr);
}

#[test]
fn exceptions_of_handlers_end_the_script() {
    if !super::scripts::has_python() {
        return skip(
            "exceptions_of_handlers_end_the_script",
            "there is no Python",
        );
    }
    let scratch = recorded(LINES);
    // The handler ends the script at the first of the two samples of `own:first`.
    let script = format!(
        "def own__first({COMMON}, number, big, text):\n    print(number)\n    raise SystemExit(4)\n"
    );
    let outcome = run_script(&scratch, &script);
    assert_eq!(
        (outcome.status, &*outcome.stdout),
        (4, "4294967291\n"),
        "{}",
        outcome.stderr
    );
    let script = format!("def own__first({COMMON}, number, big, text): text + 1\n");
    let outcome = run_script(&scratch, &script);
    // The status of SIGABRT in a shell: perf aborts on an exception.
    assert_eq!(outcome.status, 134);
    assert!(
        outcome.stderr.contains("line 1, in own__first"),
        "{}",
        outcome.stderr
    );
    // The traceback has no frames of rperf's own code.
    assert!(!outcome.stderr.contains("<calls>"), "{}", outcome.stderr);
    // If a script has several handlers, generators call them. Python replaces a StopIteration that leaves a generator
    // with a RuntimeError.
    let script = format!(
        "def own__first({COMMON}, number, big, text): raise StopIteration\n\
         def own__second({COMMON}, number, text): pass\n"
    );
    let outcome = run_script(&scratch, &script);
    assert_eq!(outcome.status, 134);
    assert!(
        !outcome.stderr.contains("RuntimeError"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("in own__first\n"),
        "{}",
        outcome.stderr
    );
}
