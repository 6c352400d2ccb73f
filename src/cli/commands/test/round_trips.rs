//! Tests that record workloads with this program, and check that reports show their known functions, threads and values.

use super::environment::{TestEnding, TestResult, TestRun, failed, skip};
use super::machine;

/// The first arguments of recordings: user space only, which needs no privileges by default.
const RECORD: &str = "record -q -o perf.data -e cpu-clock:u";
/// How long the workload of a first and of a second try runs, in seconds.
const WORKLOAD_SECONDS: [f32; 2] = [0.2, 2.0];

/// Skips the test if this machine does not allow recordings at all.
fn require_events(run: &mut TestRun<'_>) -> TestResult {
    machine::own_user(run)
}

/// Records a workload with additional options.
fn record(run: &mut TestRun<'_>, options: &str, workload: &str) -> TestResult {
    require_events(run)?;
    let separator = if options.is_empty() { "" } else { " " };
    run.succeed(&format!(
        "{RECORD}{separator}{options} -- PROGRAM test -w {workload}"
    ))?;
    Ok(())
}

/// Runs a test of a workload that ends after a time, which is the second argument of `round_trip`. On a busy machine a brief
/// workload may get so little time on a CPU that it has no samples: after a failure the test is run once more, with a longer one.
fn with_samples(
    run: &mut TestRun<'_>,
    round_trip: impl Fn(&mut TestRun<'_>, f32) -> TestResult,
) -> TestResult {
    let [brief, long] = WORKLOAD_SECONDS;
    match round_trip(run, brief) {
        Err(TestEnding::Failed(reason)) => {
            run.log(format_args!("{reason}; once more, for {long} seconds"));
            round_trip(run, long)
        }
        ending => ending,
    }
}

/// `record`, `report`.
pub(super) fn report(run: &mut TestRun<'_>) -> TestResult {
    with_samples(run, |run, seconds| {
        record(run, "", &format!("noploop {seconds}"))?;
        let text = run.succeed("report --stdio -s symbol")?;
        run.expect(&text, &["noploop"])
    })
}

/// `record`, `script`, `data check`.
pub(super) fn script(run: &mut TestRun<'_>) -> TestResult {
    with_samples(run, |run, seconds| {
        record(run, "", &format!("thloop {seconds} 3"))?;
        let text = run.succeed("script -F comm,tid,time,event,ip,sym")?;
        run.expect(&text, &["cpu-clock", " test_loop\n"])?;
        run.succeed("data check perf.data")?;
        Ok(())
    })
}

/// A compressed recording.
pub(super) fn compressed(run: &mut TestRun<'_>) -> TestResult {
    with_samples(run, |run, seconds| {
        record(run, "-z", &format!("noploop {seconds}"))?;
        let text = run.succeed("report --stdio -s symbol")?;
        run.expect(&text, &["noploop"])
    })
}

/// `stat`.
pub(super) fn stat(run: &mut TestRun<'_>) -> TestResult {
    require_events(run)?;
    let line = "stat -x , -o stat.txt -e task-clock:u,page-faults:u -- PROGRAM test -w noploop 0.1";
    run.succeed(line)?;
    match run.size_of("stat.txt")? {
        0 => failed("stat.txt is empty"),
        _ => Ok(()),
    }
}

/// Checks that a sample in `text`, the output of `script -F ip,sym`, contains the callchain `chain`: function names separated
/// by blanks, innermost first.
fn expect_chain(run: &mut TestRun<'_>, text: &str, chain: &str) -> TestResult {
    let joined_names = |sample: &str| {
        let names = sample
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        names.collect::<Vec<_>>().join(" ")
    };
    let has_chain = text
        .split("\n\n")
        .map(joined_names)
        .any(|names| names.contains(chain));
    match has_chain {
        true => Ok(()),
        false => {
            // If the output lacks one of the functions, fails with its name.
            run.expect(text, &["leaf", "parent", "leafloop"])?;
            failed(format!("no sample has the callchain {chain}"))
        }
    }
}

/// Callchains by frame pointers.
pub(super) fn frame_pointers(run: &mut TestRun<'_>) -> TestResult {
    with_samples(run, |run, seconds| {
        record(run, "--call-graph fp", &format!("leafloop {seconds}"))?;
        let text = run.succeed("script -F ip,sym")?;
        expect_chain(run, &text, "leaf parent leafloop")
    })
}

/// Callchains from copies of the stack.
pub(super) fn dwarf(run: &mut TestRun<'_>) -> TestResult {
    with_samples(run, |run, seconds| {
        record(run, "--call-graph dwarf", &format!("leafloop {seconds}"))?;
        let text = run.succeed("script --no-inline -F ip,sym")?;
        expect_chain(run, &text, "leaf parent leafloop")
    })
}

/// Callchains that are unwound while recording.
pub(super) fn live_unwinding(run: &mut TestRun<'_>) -> TestResult {
    with_samples(run, |run, seconds| {
        record(
            run,
            "--call-graph dwarf --unwind live",
            &format!("leafloop {seconds}"),
        )?;
        let text = run.succeed("script --no-inline -F ip,sym")?;
        expect_chain(run, &text, "leaf parent leafloop")
    })
}

/// Source lines and inlined functions.
pub(super) fn lines(run: &mut TestRun<'_>) -> TestResult {
    with_samples(run, |run, seconds| {
        record(run, "--call-graph dwarf", &format!("inlineloop {seconds}"))?;
        let text = run.succeed("script -F ip,sym,srcline")?;
        let mut lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("inlineloop.c:"))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        if lines.is_empty() {
            return skip("the program has no debug information");
        }
        // Only lines of calls are expected: which lines of the innermost function are hit depends on the machine.
        let lines = lines.join("\n") + "\n";
        run.expect(
            &lines,
            &["inlineloop.c:27 (inlined)\n", "inlineloop.c:34\n"],
        )
    })
}

/// Code generated at run time: `report` itself reads the workload's jitdump, whose times need the clock `mono`.
pub(super) fn generated_code(run: &mut TestRun<'_>) -> TestResult {
    // 5000 rounds of 65536 loop iterations take 0.1 s or more: enough for samples in the generated code.
    record(run, "-k mono", "jitdump 5000")?;
    let text = run.succeed("report --stdio -s symbol")?;
    run.expect(&text, &["jit_workload"])
}

/// A flame graph.
pub(super) fn flame_graph(run: &mut TestRun<'_>) -> TestResult {
    with_samples(run, |run, seconds| {
        record(run, "--call-graph fp", &format!("leafloop {seconds}"))?;
        run.succeed("flamegraph -o flames.svg")?;
        match run.size_of("flames.svg")? {
            0 => failed("flames.svg is empty"),
            _ => Ok(()),
        }
    })
}

/// Instructions with their samples.
pub(super) fn annotation(run: &mut TestRun<'_>) -> TestResult {
    with_samples(run, |run, seconds| {
        record(run, "", &format!("noploop {seconds}"))?;
        let text = run.succeed("annotate --stdio noploop")?;
        run.expect(&text, &["Percent", "noploop"])
    })
}

/// A probe on a function of this program, created only for the recording (`record --probe`).
pub(super) fn probe(run: &mut TestRun<'_>) -> TestResult {
    require_events(run)?;
    match machine::uprobes(run) {
        // record does not need tracefs if the kernel has the uprobe PMU: it uses the PMU if tracefs is not mounted. If tracefs is
        // mounted but this user may not read it, record fails below.
        Err(_) if machine::has_uprobe_pmu() => {}
        result => result?,
    }
    let program = run.environment.program.display().to_string();
    if program.contains([' ', ':']) {
        return skip("the program's path contains a blank or a colon");
    }
    let line = format!(
        "record -q -o perf.data --probe {program}:leafloop -- PROGRAM test -w leafloop 0.05"
    );
    let output = run.run(&line)?;
    if !output.status.success() && is_refused(&output.stderr) {
        return skip("needs CAP_PERFMON");
    }
    if !output.status.success() {
        return failed(format!("record: {}", output.status));
    }
    let text = run.succeed("script -F comm,event")?;
    run.expect(&text, &["leafloop"])?;
    match text.lines().count() {
        1 => Ok(()),
        count => failed(format!(
            "the function was called once, and the probe hit {count} times"
        )),
    }
}

/// Whether `record` failed because the user has no permission, according to its messages.
fn is_refused(message: &str) -> bool {
    let parts = ["permi", "Permi", "not allowed", "paranoid", "CAP_"];
    parts.iter().any(|part| message.contains(part))
}

/// A tracepoint of the workload's processes; `sqrtloop` forks.
pub(super) fn tracepoint(run: &mut TestRun<'_>) -> TestResult {
    require_events(run)?;
    machine::tracepoints(run)?;
    let line =
        "record -q -o perf.data -e sched:sched_process_fork -- PROGRAM test -w sqrtloop 0.05";
    let output = run.run(line)?;
    match output.status.success() {
        true => {}
        false if is_refused(&output.stderr) => {
            // A level of perf_event_paranoid: the highest that permits the raw data of tracepoints.
            return skip(machine::why_refused(machine::RAW_TRACEPOINT_LEVEL));
        }
        false => return failed(format!("record: {}", output.status)),
    }
    let text = run.succeed("script")?;
    run.expect(&text, &["sched:sched_process_fork:", "child_pid="])
}

/// The whole system.
pub(super) fn whole_system(run: &mut TestRun<'_>) -> TestResult {
    machine::system_wide(run)?;
    with_samples(run, |run, seconds| {
        run.succeed(&format!(
            "record -q -o perf.data -a -e cpu-clock -- PROGRAM test -w noploop {seconds}"
        ))?;
        let text = run.succeed("report --stdio -s symbol")?;
        run.expect(&text, &["noploop"])
    })
}

/// Time off the CPU.
pub(super) fn off_cpu(run: &mut TestRun<'_>) -> TestResult {
    require_events(run)?;
    let line = "record -q -o perf.data -e cpu-clock:u --off-cpu -- PROGRAM test -w context_switch_loop 500";
    let output = run.run(line)?;
    match output.status.success() {
        true => {}
        // `--off-cpu` records kernel stacks and context switches, which needs events that include the kernel: the level is the
        // highest perf_event_paranoid that permits them.
        false if is_refused(&output.stderr) => {
            return skip(machine::why_refused(machine::OWN_KERNEL_LEVEL));
        }
        false => return failed(format!("record: {}", output.status)),
    }
    let text = run.succeed("script -F comm,event")?;
    run.expect(&text, &["offcpu-time"])
        // The message of `expect` would be about missing text.
        .map_err(|ending| match ending {
            TestEnding::Failed(_) => {
                TestEnding::Failed("no time off the CPU was recorded".to_owned())
            }
            ending => ending,
        })
}
