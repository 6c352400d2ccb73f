//! `sched latency`: distributions of waits, and which tasks ran instead.

use rperf_testkit::Scratch;

use super::recording::SchedFile;
use super::{run, waits};

const PERCENTILES: &str = "\
# Task   Thread  Tasks  Waits  Runtime ms  Mean delay ms  p50 ms  p90 ms  p99 ms  p99.9 ms  Max ms
  seven       7      1      2       0.039          0.055   0.010   0.100   0.100     0.100   0.100
  eight       8      1      1       0.100          0.000   0.000   0.000   0.000     0.000   0.000
";

#[test]
fn percentiles_of_waits_are_printed() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    // Task 7 waits for 10 us, and for 100 us while task 8 runs; the only wait of task 8 takes no time.
    waits(&mut file);
    scratch.write("perf.data", file.finish())?;
    let text = run(&scratch, &["sched", "latency", "--percentiles"]);
    assert_eq!((text.status, &*text.stderr), (0, ""));
    assert_eq!(text.stdout, PERCENTILES);
    let printed = run(&scratch, &["sched", "latency", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(json["version"], 1);
    assert_eq!(json["lost_records"], 0);
    let row = &json["rows"][0];
    assert_eq!((&row["comm"], &row["tid"]), (&"seven".into(), &7.into()));
    assert_eq!(
        (&row["waits"], &row["runtime_ns"]),
        (&2.into(), &39_000.into())
    );
    assert_eq!(
        (&row["mean_delay_ns"], &row["max_delay_ns"]),
        (&55_000.into(), &100_000.into())
    );
    // Refused before the input is opened.
    for excluded in ["--percentiles", "-D"] {
        let words = ["sched", "latency", "--json", excluded, "-i", "none"];
        let outcome = run(&scratch, &words);
        assert_eq!(outcome.status, 129, "{outcome:?}");
    }
    Ok(())
}

const ANTAGONISTS: &str = "\
# Ran while others waited  Tasks delayed  Runs  Time ms   Share
  eight                                1     1    0.100  90.91%
  <idle>                               1     1    0.010   9.09%

# Task   Thread  Waits  Delay ms  Ran meanwhile  Runs  Time ms   Share
  seven       7      2     0.110  eight             1    0.100  90.91%
                                  <idle>            1    0.010   9.09%
  eight       8      1     0.000                                      
";

#[test]
fn antagonists_of_waits_are_printed() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    waits(&mut file);
    scratch.write("perf.data", file.finish())?;
    let text = run(&scratch, &["sched", "latency", "--antagonists"]);
    assert_eq!((text.status, &*text.stderr), (0, ""));
    assert_eq!(text.stdout, ANTAGONISTS);
    let threads = run(&scratch, &["sched", "latency", "--antagonists", "-p"]).stdout;
    assert!(threads.contains("  eight:8       "), "{threads}");
    let words = ["sched", "latency", "--antagonists", "--json", "-p"];
    let printed = run(&scratch, &words).stdout;
    let json: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let pairs = json["antagonists"].as_array().expect("pairs");
    // `comm` and `tid` are those of the delayed task.
    let [by_eight, by_idle] = &pairs[..] else {
        panic!("{printed}");
    };
    assert_eq!(
        (&by_eight["comm"], &by_eight["tid"]),
        (&"seven".into(), &7.into())
    );
    assert_eq!(
        (
            &by_eight["kind"],
            &by_eight["antagonist"],
            &by_eight["antagonist_tid"]
        ),
        (&"task".into(), &"eight".into(), &8.into())
    );
    assert_eq!(by_idle["kind"], "idle");
    assert!(by_idle["antagonist"].is_null() && by_idle["antagonist_tid"].is_null());
    // The pairs of a task add up to its delay.
    let nanos: u64 = pairs
        .iter()
        .filter_map(|pair| pair["time_ns"].as_u64())
        .sum();
    assert_eq!(nanos, 110_000);
    assert_eq!(json["rows"][0]["mean_delay_ns"], nanos / 2);
    Ok(())
}

const HISTOGRAM: &str = "\
# seven:7: 2 waits, mean 0.055 ms, maximum 0.100 ms
# From us    To us  Waits   Share                                          
    8.192   16.384      1  50.00%  ########################################
   16.384   32.768      0   0.00%                                          
   32.768   65.536      0   0.00%                                          
   65.536  131.072      1  50.00%  ########################################
";

#[test]
fn histograms_of_waits_are_printed() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    waits(&mut file);
    scratch.write("perf.data", file.finish())?;
    let text = run(&scratch, &["sched", "latency", "--histogram"]);
    assert_eq!((text.status, &*text.stderr), (0, ""));
    let parts: Vec<&str> = text.stdout.split("\n\n").collect();
    let [all, seven, eight] = &parts[..] else {
        panic!("{text:?}");
    };
    let title = "# all tasks: 3 waits, mean 0.037 ms, maximum 0.100 ms\n";
    assert!(all.starts_with(title), "{all}");
    assert!(
        all.contains("\n    0.000    1.024      1  33.33%  ####"),
        "{all}"
    );
    assert_eq!(format!("{seven}\n"), HISTOGRAM);
    assert!(eight.starts_with("# eight:8: 1 wait, "), "{eight}");
    let printed = run(&scratch, &["sched", "latency", "--histogram", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let buckets = json["buckets"].as_array().expect("buckets");
    // Two waits of `seven`, one of `eight`.
    for (bucket, wait) in buckets.iter().zip([10_000, 100_000, 0]) {
        let bound = |key: &str| bucket[key].as_u64().expect("a number");
        assert!(
            (bound("from_ns")..bound("to_ns")).contains(&wait),
            "{bucket}"
        );
        assert_eq!(bucket["waits"], 1);
    }
    assert_eq!(buckets.len(), 3, "{printed}");
    let words = [
        "sched",
        "latency",
        "--histogram",
        "--antagonists",
        "-i",
        "none",
    ];
    let outcome = run(&scratch, &words);
    assert_eq!(outcome.status, 129, "{outcome:?}");
    assert!(
        outcome.stderr.contains("--json can have both"),
        "{outcome:?}"
    );
    Ok(())
}
