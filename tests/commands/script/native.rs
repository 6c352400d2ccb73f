//! Scripts of perf that rperf runs without an interpreter: `netdev-times` and `task-analyzer` on small recordings whose tables
//! were checked by hand, and `gecko`. The tables of `task-analyzer` also equal those of perf 7.2's script, except for blanks.

use rperf_testkit::{Outcome, Run, Scratch};

/// Runs rperf in a folder.
pub(super) fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
    run.within(scratch.path()).finish().expect("rperf starts")
}

/// Creates a folder with a recording `perf.data`, converted from `text`, the output of `script`.
pub(super) fn recorded(text: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch
        .write("text", text.as_bytes())
        .expect("a file can be written");
    let words = ["data", "convert", "-i", "text", "--to-perf", "perf.data"];
    let converted = run(&scratch, &words);
    assert_eq!(converted.status, 0, "{}", converted.stderr);
    scratch
}

#[track_caller]
fn reported(scratch: &Scratch, words: &[&str]) -> String {
    let outcome = run(scratch, &[&["script", "report"], words].concat());
    assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
    outcome.stdout
}

/// Two interrupts of network devices and one of another device; three received packets; one sent packet, and one that the device
/// refuses (`rc=16`).
const PACKETS: &str = "\
swapper 0 [000] 10.000000: irq:irq_handler_entry: irq=27 name=virtio0-input.0
swapper 0 [000] 10.000010: irq:softirq_raise: vec=3
swapper 0 [000] 10.000020: irq:irq_handler_exit: irq=27 ret=1
swapper 0 [000] 10.000022: irq:irq_handler_entry: irq=4 name=ttyS0
swapper 0 [000] 10.000023: irq:irq_handler_exit: irq=4 ret=1
swapper 0 [000] 10.000024: irq:irq_handler_entry: irq=28 name=eth1-rx
swapper 0 [000] 10.000025: net:netif_rx: skbaddr=77 len=60 name=eth1
swapper 0 [000] 10.000026: irq:irq_handler_exit: irq=28 ret=1
swapper 0 [000] 10.000030: irq:softirq_entry: vec=3
swapper 0 [000] 10.000040: net:netif_receive_skb: skbaddr=77 len=60 name=eth1
swapper 0 [000] 10.000050: net:netif_receive_skb: skbaddr=78 len=61 name=eth1
swapper 0 [000] 10.000060: napi:napi_poll: napi=1 dev_name=eth1 work=2 budget=64
swapper 0 [000] 10.000062: net:netif_receive_skb: skbaddr=79 len=62 name=eth1
swapper 0 [000] 10.000065: napi:napi_poll: napi=1 dev_name=eth1 work=2 budget=64
swapper 0 [000] 10.000070: irq:softirq_exit: vec=3
reader 55 [001] 10.000080: skb:skb_copy_datagram_iovec: skbaddr=77 len=60
sender 56 [001] 10.000081: net:net_dev_queue: skbaddr=99 len=100 name=eth1
sender 56 [001] 10.000085: net:net_dev_xmit: skbaddr=99 len=100 rc=0 name=eth1
swapper 0 [000] 10.000090: skb:consume_skb: skbaddr=99
sender 56 [001] 10.000091: net:net_dev_queue: skbaddr=98 len=100 name=eth1
sender 56 [001] 10.000095: net:net_dev_xmit: skbaddr=98 len=100 rc=16 name=eth1
sender 56 [001] 10.000096: skb:kfree_skb: skbaddr=78 location=4096
swapper 0 [000] 10.000100: irq:softirq_entry: vec=1
swapper 0 [000] 10.000101: irq:softirq_exit: vec=1
";

const RECEIVED: &str = "\
10.000000sec cpu=0
  irq_entry(+0.000msec irq=27:virtio0-input.0)
         |
  irq_entry(+0.024msec irq=28:eth1-rx)
         |
         |---netif_rx(+0.025msec skb=4d)
         |
  softirq_entry(+0.030msec)
         |
         |---netif_receive_skb(+0.040msec skb=4d len=60)
         |            |
         |      skb_copy_datagram_iovec(+0.080msec 55:reader)
         |
         |---netif_receive_skb(+0.050msec skb=4e len=61)
         |            |
         |      kfree_skb(+0.096msec location=1000)
         |
  napi_poll_exit(+0.060msec eth1)
         |
         |---netif_receive_skb(+0.062msec skb=4f len=62)
         |
  napi_poll_exit(+0.065msec eth1)

";

const SENT: &str = "   dev    len      Qdisc               netdevice             free
   eth1   100     10.000081sec        0.004msec             0.005msec
";

const COUNTS: &str = "\
debug buffer status
----------------------------
xmit Qdisc:remain:1 overflow:0
xmit netdevice:remain:0 overflow:0
receive:remain:1 overflow:0
";

#[test]
fn packets_are_followed_to_their_end() {
    let scratch = recorded(PACKETS);
    let table = |words: &[&str]| reported(&scratch, &[&["netdev-times"], words].concat());
    assert_eq!(table(&["rx"]), RECEIVED);
    assert_eq!(table(&["tx"]), SENT);
    assert_eq!(table(&["debug"]), format!("{RECEIVED}{SENT}{COUNTS}"));
    assert_eq!(table(&["rx", "dev=eth1"]), RECEIVED);
    assert_eq!(table(&["rx", "dev=eth2"]), "");
    let refused = run(&scratch, &["script", "report", "netdev-times", "up"]);
    assert_eq!(refused.status, 129);
    assert!(
        refused.stderr.contains("unknown word 'up'"),
        "{}",
        refused.stderr
    );
}

/// Switches on two CPUs. Thread 33 is renamed to `cc2` during its first run; its second run starts on one CPU and ends on the
/// other, so it is not shown.
fn switches() -> String {
    let switch = |time: &str, cpu: u32, prev: (&str, u32), next: (&str, u32)| {
        let ((prev_comm, prev_pid), (next_comm, next_pid)) = (prev, next);
        format!(
            "{prev_comm} {prev_pid} [00{cpu}] {time}: sched:sched_switch: prev_comm={prev_comm} prev_pid={prev_pid} \
             prev_prio=120 prev_state=S ==> next_comm={next_comm} next_pid={next_pid} next_prio=120\n"
        )
    };
    let (idle, a, b, c) = (("swapper", 0), ("aa", 11), ("bb", 22), ("cc", 33));
    [
        switch("10.000000000", 0, idle, a),
        switch("10.001000500", 0, a, b),
        switch("10.004000000", 0, b, idle),
        switch("10.005000000", 0, idle, a),
        switch("10.005500000", 1, idle, c),
        switch("10.006000000", 0, a, b),
        switch("10.007250000", 1, ("cc2", 33), idle),
        switch("10.009000000", 0, b, a),
        switch("10.010000000", 0, a, c),
        switch("10.020000000", 1, c, idle),
    ]
    .concat()
}

const RUNS: &str = "\
Switched-In Switched-Out CPU PID TID Comm Runtime Time Out-In Time Out-Out Time In-In Time In-Out
10.000000000 10.001000500 0 11 11 aa 1000500 -1 -1 -1 -1
10.001000500 10.004000000 0 22 22 bb 2999500 -1 -1 -1 -1
10.005000000 10.006000000 0 11 11 aa 1000000 3999500 4999500 5000000 6000000
10.005500000 10.007250000 1 33 33 cc 1750000 -1 -1 -1 -1
10.006000000 10.009000000 0 22 22 bb 3000000 2000000 5000000 4999500 7999500
10.009000000 10.010000000 0 11 11 aa 1000000 3000000 4000000 4000000 5000000

Summary
Task Information Runtime Information Max Inter Task Times
PID TID Comm Runs Accumulated Mean Median Min Max Max At Out-In Max At Out-Out In-In In-Out
11 11 aa 3 3000500 1000167 1000000 1000000 1000500 10.000000000 3999500 10.005000000 4999500 5000000 6000000
22 22 bb 2 5999500 2999750 2999750 2999500 3000000 10.006000000 2000000 10.006000000 5000000 4999500 7999500
33 33 cc 1 1750000 1750000 1750000 1750000 1750000 10.005500000 -1 -1.000000000 -1 -1 -1
";

/// The lines with one blank between words.
fn words_of(text: &str) -> String {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(|line| words(line) + "\n").collect()
}

#[test]
fn task_analyzer_prints_runs_and_sums() {
    let scratch = recorded(&switches());
    let report = |words: &[&str]| {
        let words = [&["task-analyzer"], words].concat();
        words_of(&reported(&scratch, &words))
    };
    let all = ["--ns", "--extended-times", "--summary-extended"];
    assert_eq!(report(&all), RUNS);
    let titles = "Switched-In Switched-Out CPU PID TID Comm Runtime Time Out-In\n";
    let renamed = ["--rename-comms-by-tids=11:xx", "--limit-to-tasks", "xx"];
    let rows = "10.000000 10.001000 0 11 11 xx 1000.500 -1.000\n\
                10.005000 10.006000 0 11 11 xx 1000.000 3999.500\n\
                10.009000 10.010000 0 11 11 xx 1000.000 3000.000\n";
    assert_eq!(report(&renamed), format!("{titles}{rows}"));
    let limited = ["--time-limit", "10.004:10.0075", "--ms"];
    let rows = "10.005000 10.006000 0 11 11 aa 1.000 -1.000\n\
                10.005500 10.007250 1 33 33 cc 1.750 -1.000\n";
    assert_eq!(report(&limited), format!("{titles}{rows}"));
    let excepted = ["--filter-tasks", "aa,22"];
    let rows = "10.005500 10.007250 1 33 33 cc 1750.000 -1.000\n";
    assert_eq!(report(&excepted), format!("{titles}{rows}"));
    let summary = report(&["--summary-only", "--ms"]);
    let sums = "11 11 aa 3 3.000 1.000 1.000 1.000 1.000 10.000000\n";
    assert!(summary.contains(sums), "{summary}");
    // A TID that equals the PID is grey.
    let colored = ["--stdio-color", "always", "--highlight-tasks", "33:blue,bb"];
    let colored = report(&colored);
    let row =
        "\x1b[94m 10.005500 10.007250 1 33 \x1b[90m 33\x1b[m\x1b[94m cc 1750.000 -1.000\x1b[m\n";
    assert!(colored.contains(row), "{colored:?}");
}

#[test]
fn task_analyzer_writes_csv_files() {
    let scratch = recorded(&switches());
    let words = [
        "task-analyzer",
        "--csv",
        "runs",
        "--csv-summary",
        "sums",
        "--ns",
    ];
    let words = [&words[..], &["--extended-times", "--summary-extended"]].concat();
    let messages = reported(&scratch, &words);
    assert_eq!(
        messages,
        "generating csv at runs\ngenerating csv summary at sums\n"
    );
    let read = |name| std::fs::read_to_string(scratch.path().join(name)).expect("it was written");
    let text = read("runs") + &read("sums");
    // Rows begin with a time or a pid, titles with letters.
    let rows = |text: &str| {
        let rows = text
            .lines()
            .filter(|line| line.starts_with(['1', '2', '3']));
        rows.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(rows(&text).replace(';', " "), rows(RUNS));
    assert!(
        text.starts_with("Switched-In;Switched-Out;CPU;PID;TID;Comm;Runtime;Time Out-In;"),
        "{text}"
    );
}

#[test]
fn task_analyzer_refuses_unusable_options_and_files() {
    let scratch = recorded(&switches());
    for (words, message) in [
        (&["--csv", "x", "--summary"][..], "no file for the summary"),
        (
            &["--csv", "x", "--summary-only"],
            "there are no runs with --summary-only",
        ),
        (
            &["--limit-to-tasks", "a", "--filter-tasks", "b"],
            "exclude each other",
        ),
        (&["--time-limit", "5"], "expected FROM:TO"),
        (&["--highlight-tasks", "1:pink"], "unknown colour 'pink'"),
        (&["--stdio-color", "some"], "expected always, never or auto"),
        (&["--csv"], "option '--csv' needs a value"),
        (&["--colour"], "unknown option '--colour'"),
    ] {
        let refused = run(
            &scratch,
            &[&["script", "report", "task-analyzer"], words].concat(),
        );
        assert_eq!((refused.status, &*refused.stdout), (129, ""), "{words:?}");
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
    let failed = run(
        &scratch,
        &["script", "report", "task-analyzer", "--csv", "none/runs"],
    );
    assert_ne!(failed.status, 0);
    assert!(
        failed.stderr.contains("none/runs: No such file"),
        "{}",
        failed.stderr
    );
}

#[test]
fn gecko_writes_the_profile_of_data_convert() {
    let fixture = crate::tidy::root().join("tests/fixtures/x86_64/cycles.data");
    let fixture = fixture.to_string_lossy();
    let scratch = Scratch::new();
    let words = [
        "script",
        "report",
        "gecko",
        "-i",
        &fixture,
        "--save-only",
        "own.json",
    ];
    assert_eq!(run(&scratch, &words).status, 0);
    let words = ["script", "-i", &fixture, "report", "gecko"];
    assert_eq!(run(&scratch, &words).status, 0);
    let words = [
        "data",
        "convert",
        "-i",
        &fixture,
        "--to-firefox",
        "data.json",
    ];
    assert_eq!(run(&scratch, &words).status, 0);
    let [named, by_default, converted] = ["own.json", "gecko_profile.json", "data.json"]
        .map(|name| std::fs::read_to_string(scratch.path().join(name)).expect("it was written"));
    assert!(converted.contains("\"threads\""));
    assert_eq!((&named, &by_default), (&converted, &converted));
    for words in [&["--save-only"][..], &["--user-color", "red"]] {
        let refused = run(&scratch, &[&["script", "report", "gecko"], words].concat());
        assert_eq!(refused.status, 129, "{refused:?}");
    }
}
