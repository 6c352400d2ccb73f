//! `lock contention --histogram`: the distribution of the waits of each row.

use rperf_testkit::{Outcome, Scratch, may_trace, skip};

use super::{folder_with_waits, recording, run};

/// A row of a table, and the counts in the lines of its histogram.
#[derive(Debug, Default)]
struct Block {
    row: String,
    counts: Vec<u64>,
}

/// Returns the rows of a table with histograms.
fn blocks(table: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_range = words.len() >= 4 && words[3].ends_with('%');
        match (is_range, words.first()) {
            (true, _) => {
                let count = words[2].parse().expect("a count");
                blocks.last_mut().expect("a row").counts.push(count);
            }
            (false, Some(first)) if first.parse::<u64>().is_ok() => blocks.push(Block {
                row: line.to_owned(),
                counts: Vec::new(),
            }),
            _ => {}
        }
    }
    blocks
}

#[test]
fn each_row_has_its_distribution() {
    let scratch = folder_with_waits();
    let bar = "#".repeat(40);
    // The first lock has waits of 1000 and 4333 ns, the second lock a wait of 1000 ns, the third lock one without end.
    // Percentiles are approximate, within 1/128: 4.32 us for 4333 ns.
    let expected = format!(
        "         2      5.33 us      4.33 us      2.67 us   ffff888000001000   0x4000 (spinlock)
        # median 1.00 us, p90 4.32 us, p99 4.32 us
        # From us  To us  Waits   Share
            0.512  1.024      1  50.00%  {bar}
            1.024  2.048      0   0.00%
            2.048  4.096      0   0.00%
            4.096  8.192      1  50.00%  {bar}
         1      1.00 us      1.00 us      1.00 us   ffff888000003010   0x4010 (mutex)
        # median 1.00 us, p90 1.00 us, p99 1.00 us
        # From us  To us  Waits    Share
            0.512  1.024      1  100.00%  {bar}
         1         0 ns         0 ns         0 ns   ffff888000002008   0x4008 (semaphore)
"
    );
    let table = run(&scratch, "lock contention -l --histogram -q").stderr;
    assert_eq!(table, expected);
    // Histograms also follow the rows of other tables, and rows with the columns of -F.
    let threads = run(&scratch, "lock contention -t --histogram -F contended -q").stderr;
    let counts: Vec<Vec<u64>> = blocks(&threads)
        .into_iter()
        .map(|block| block.counts)
        .collect();
    assert_eq!(counts, [vec![1, 0, 0, 1], vec![1]], "{threads}");
}

#[test]
fn histograms_exclude_other_formats_and_holders() {
    let scratch = folder_with_waits();
    for (words, message) in [
        (
            "--histogram --json",
            "--histogram and --json exclude each other",
        ),
        ("--histogram -x ,", "--histogram and -x exclude each other"),
        (
            "--histogram --svg -",
            "--svg and --histogram exclude each other",
        ),
        (
            "--histogram --holders",
            "--holders and --histogram exclude each other",
        ),
    ] {
        let refused = run(&scratch, &format!("lock contention {words}"));
        assert_eq!(refused.status, 129, "{words}: {refused:?}");
        assert!(refused.stderr.contains(message), "{words}: {refused:?}");
    }
}

#[test]
fn cgroups_have_their_distribution_and_container() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::waits_in_cgroups())
        .expect("a file");
    let bar = "#".repeat(40);
    let expected = format!(
        "         1      1.00 us      1.00 us      1.00 us   /docker/{}
\t\t\tcontainer docker:0123456789ab
        # median 1.00 us, p90 1.00 us, p99 1.00 us
        # From us  To us  Waits    Share
            0.512  1.024      1  100.00%  {bar}
",
        "0123456789abcdef".repeat(4)
    );
    let table = run(&scratch, "lock contention -g -i perf.data --histogram").stderr;
    assert!(table.ends_with(&expected), "{table}");
}

/// Runs `lock contention -ab`, whose BPF programs add up the waits in the kernel, on a load with contended locks. Returns `None`,
/// after printing the reason, if tracefs cannot be read or the kernel does not run the BPF programs.
fn live(test: &str, options: &str) -> Option<Outcome> {
    if !may_trace(test) {
        return None;
    }
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_rperf");
    let words = format!("lock contention -ab {options} -- {program} bench sched messaging -g 2");
    let outcome = run(&scratch, &words);
    if outcome.status == 255 && outcome.stderr.contains("BPF") {
        skip(test, &outcome.stderr);
        return None;
    }
    assert_eq!(outcome.status, 0, "{outcome:?}");
    Some(outcome)
}

#[test]
fn sums_of_the_running_system_have_distributions() {
    const NAME: &str = "commands::lock::histograms::sums_of_the_running_system_have_distributions";
    // Each wait is in one bucket of the row's histogram, so the counts add up to the waits in the row's first column.
    for options in ["-l --histogram", "--lock-cgroup --histogram"] {
        let Some(outcome) = live(NAME, options) else {
            return;
        };
        let blocks = blocks(&outcome.stderr);
        assert!(!blocks.is_empty(), "{outcome:?}");
        for block in blocks {
            let contended = block.row.split_whitespace().next();
            let contended: u64 = contended.and_then(|word| word.parse().ok()).expect("waits");
            assert_eq!(block.counts.iter().sum::<u64>(), contended, "{block:?}");
        }
    }
}
