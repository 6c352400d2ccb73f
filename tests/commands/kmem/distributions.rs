//! `kmem stat --histogram`: numbers recomputed from `script`, and planted lifetimes.

use std::collections::BTreeMap;

use rperf_testkit::{Scratch, may_trace};
use serde_json::{Value, json};

use super::recording;
use super::{field, hex, run};

/// Allowed relative error of percentiles of sizes.
const EXACT: f64 = 0.0;
/// Allowed relative error of percentiles of lifetimes. They are computed from a log-linear histogram, whose buckets have at most
/// this relative width; the printed histogram has one bucket for each power of two.
const BUCKET_WIDTH: f64 = 1.0 / 64.0;

/// An event of an allocator, as a line of `script` shows it.
#[derive(Debug, Clone)]
struct ScriptEvent {
    time: u64,
    is_free: bool,
    /// The address of an object, or a page frame number.
    address: u64,
    /// Bytes requested and allocated; 0 if the event has none.
    bytes: [u64; 2],
}

/// Parses `SECONDS.NANOSECONDS: EVENT: FIELDS`; returns whether the event is one of pages, and the event. `None` for events that
/// the distributions do not count.
fn parse(line: &str) -> Option<(bool, ScriptEvent)> {
    let (time, rest) = line.trim().split_once(": ")?;
    let (seconds, nanos) = time.split_once('.')?;
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let time = number(seconds) * 1_000_000_000 + number(nanos);
    let (event, fields) = rest.trim().split_once(": ")?;
    // Events of external fragmentation neither allocate nor free.
    if event.ends_with("extfrag") {
        return None;
    }
    let text = |name| field(fields, name).unwrap_or_else(|| panic!("{name}: {line}"));
    let (is_free, is_page) = (event.contains("free"), event.contains("mm_page"));
    let address = hex(text(if is_page { "pfn" } else { "ptr" }));
    let bytes = match (is_free, is_page) {
        (true, _) => [0; 2],
        (_, true) => [4096 << number(text("order")); 2],
        _ => [number(text("bytes_req")), number(text("bytes_alloc"))],
    };
    // The address of a failed allocation, and of kfree(NULL).
    let failed = if is_page { u64::MAX } else { 0 };
    // kfree() of ZERO_SIZE_PTR, the address of objects of 0 bytes, has an event; their allocation has none.
    let is_zero_size = !is_page && is_free && address == 16;
    let is_ignored = address == failed || is_zero_size;
    let event = ScriptEvent {
        time,
        is_free,
        address,
        bytes,
    };
    (!is_ignored).then_some((is_page, event))
}

/// Summary and counts by power of two.
fn summary(values: &[u64]) -> Value {
    let mut powers: BTreeMap<u64, u64> = BTreeMap::new();
    for value in values {
        let from = if *value == 0 { 0 } else { 1 << value.ilog2() };
        *powers.entry(from).or_default() += 1;
    }
    let powers = powers.into_iter();
    let histogram: Vec<[u64; 3]> = powers
        .map(|(from, count)| [from, (from * 2).max(1), count])
        .collect();
    json!({
        "count": values.len(),
        "sum": values.iter().sum::<u64>(),
        "min": values.iter().min(),
        "max": values.iter().max(),
        "histogram": histogram,
    })
}

/// Compares a distribution with values; `error` is the allowed relative error of percentiles.
#[track_caller]
fn check_values(distribution: &Value, values: &[u64], error: f64, what: &str) {
    let expected = summary(values);
    for key in ["count", "sum", "min", "max", "histogram"] {
        assert_eq!(distribution[key], expected[key], "{what}: {key}");
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    for (key, per_cent) in [("p50", 50), ("p90", 90), ("p99", 99)] {
        let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
        let exact = sorted[rank - 1] as f64;
        let value = distribution[key].as_f64().expect("a number");
        assert!(
            (value - exact).abs() <= exact * error,
            "{what}: {key} {value} instead of {exact}"
        );
    }
}

/// Compares all distributions of an allocator with its events; `all` are those of both allocators. Returns the number of
/// lifetimes.
fn check(report: &Value, name: &str, events: &[ScriptEvent], all: &[ScriptEvent]) -> usize {
    let allocations = events.iter().filter(|event| !event.is_free);
    let sizes: Vec<u64> = allocations.map(|event| event.bytes[0]).collect();
    check_values(&report[format!("{name}_sizes")], &sizes, EXACT, name);
    let mut live: BTreeMap<u64, &ScriptEvent> = BTreeMap::new();
    // `freed` is the time of each free, and the bytes of its allocation; 0 if that was not recorded.
    let (mut lifetimes, mut freed) = (Vec::new(), Vec::new());
    for event in events {
        if !event.is_free {
            live.insert(event.address, event);
            continue;
        }
        let allocation = live.remove(&event.address);
        lifetimes.extend(allocation.map(|allocation| event.time - allocation.time));
        freed.push((
            event.time,
            allocation.map_or(0, |allocation| allocation.bytes[1]),
        ));
    }
    check_values(
        &report[format!("{name}_lifetimes_ns")],
        &lifetimes,
        BUCKET_WIDTH,
        name,
    );
    assert_eq!(report[format!("{name}_not_freed")], live.len(), "{name}");
    let rates = report[format!("{name}_rates")]
        .as_array()
        .expect("intervals");
    // A time after the 32nd interval merges the intervals in pairs, so at least 16 are in use afterwards.
    assert!((16..=32).contains(&rates.len()), "{}", rates.len());
    assert_eq!(rates[0]["from_ns"], all[0].time);
    for pair in rates.windows(2) {
        assert_eq!(pair[0]["to_ns"], pair[1]["from_ns"]);
    }
    for rate in rates {
        let bound = |key: &str| rate[key].as_u64().expect("a time");
        let within = |time: u64| bound("from_ns") <= time && time < bound("to_ns");
        let allocated = events
            .iter()
            .filter(|event| !event.is_free && within(event.time));
        let count_and_sum = |values: &mut dyn Iterator<Item = u64>| {
            values.fold([0, 0], |[count, sum], bytes| [count + 1, sum + bytes])
        };
        let [allocations, bytes] = count_and_sum(&mut allocated.map(|event| event.bytes[1]));
        let freed = freed.iter().filter(|(time, _)| within(*time));
        let [frees, freed_bytes] = count_and_sum(&mut freed.map(|(_, bytes)| *bytes));
        assert_eq!(
            (&rate["allocations"], &rate["allocated_bytes"]),
            (&allocations.into(), &bytes.into())
        );
        assert_eq!(
            (&rate["frees"], &rate["freed_bytes"]),
            (&frees.into(), &freed_bytes.into())
        );
    }
    lifetimes.len()
}

fn histograms(scratch: &Scratch) -> Value {
    let words = "kmem stat --slab --page --histogram --json";
    let outcome = run(scratch, &words.split(' ').collect::<Vec<_>>());
    assert_eq!(outcome.status, 0, "{outcome:?}");
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

/// The large ring buffers (`-m 4096`) are meant to hold all events, without losses. Three `ls` free far more than 100
/// objects, and far more than 100 blocks of pages.
#[test]
fn distributions_match_the_events_of_script() {
    const NAME: &str = "commands::kmem::distributions::distributions_match_the_events_of_script";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let command = "for i in 1 2 3; do ls -l /usr > /dev/null; done";
    let words = [
        "kmem",
        "record",
        "--page",
        "--slab",
        "-m",
        "4096",
        "-q",
        "-o",
        "perf.data",
        "--",
        "sh",
        "-c",
        command,
    ];
    let made = run(&scratch, &words);
    assert_eq!(made.status, 0, "{made:?}");
    let script = run(&scratch, &["script", "--ns", "-F", "time,event,trace"]);
    assert_eq!(script.status, 0, "{script:?}");
    let parsed: Vec<(bool, ScriptEvent)> = script.stdout.lines().filter_map(parse).collect();
    let events_of = |page: bool| {
        let events = parsed.iter().filter(|(is_page, _)| *is_page == page);
        events.map(|(_, event)| event.clone()).collect::<Vec<_>>()
    };
    let all: Vec<ScriptEvent> = parsed.iter().map(|(_, event)| event.clone()).collect();
    let report = histograms(&scratch);
    for (name, page) in [("slab", false), ("page", true)] {
        let lifetimes = check(&report, name, &events_of(page), &all);
        assert!(lifetimes > 100, "{lifetimes}");
    }
}

/// 100 objects, each of 120 requested bytes, live for 5 ms, 10 pages for 1 ms. The other objects (100 leaked, 220 of caches) and
/// 10 leaked blocks of two pages are not freed.
#[test]
fn planted_lifetimes_are_shown() {
    let scratch = Scratch::new();
    let file = recording::planted_leaks(recording::PAGE_SIZE);
    scratch.write("perf.data", file).expect("a file");
    let report = histograms(&scratch);
    let objects = &report["slab_lifetimes_ns"];
    assert_eq!(objects["histogram"], json!([[1 << 22, 1 << 23, 100]]));
    assert_eq!(
        (&objects["min"], &objects["max"]),
        (&5_000_000.into(), &5_000_000.into())
    );
    let pages = &report["page_lifetimes_ns"];
    assert_eq!(
        (&pages["count"], &pages["max"]),
        (&10.into(), &1_000_000.into())
    );
    assert_eq!(report["slab_not_freed"], 320);
    assert_eq!(
        report["page_sizes"]["histogram"],
        json!([[4096, 8192, 10], [8192, 16384, 10]])
    );
    let (sizes, percentiles) = (&report["page_sizes"], [4096, 8192, 8192]);
    assert_eq!(
        ["p50", "p90", "p99"].map(|key| &sizes[key]),
        percentiles.map(Value::from).each_ref()
    );
    let words = "kmem stat --slab --page --histogram";
    let text = run(&scratch, &words.split(' ').collect::<Vec<_>>()).stdout;
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let bar = "#".repeat(40);
    for line in [
        "# Life times of objects (SLAB allocator); 320 were not freed".to_owned(),
        "# 100 objects, mean 5000.000 us, median 5000.000, p90 5000.000, p99 5000.000, maximum 5000.000".to_owned(),
        format!("4194.304 8388.608 100 100.00% {bar}"),
        format!("4096 8192 10 50.00% {bar}"),
    ] {
        assert!(lines.contains(&line), "{line}: {text}");
    }
    // The distributions follow the text that is printed without the option.
    let plain = run(&scratch, &["kmem", "stat", "--slab", "--page"]).stdout;
    assert!(text.starts_with(&plain), "{plain}");
    assert!(!plain.contains("Life times"), "{plain}");
    // In the middle of the recording, the leaking caller and the one that frees its objects each allocate 10 objects per second.
    // An interval may contain one object more or less than the average interval, which changes its rate by a few per second.
    let rates = lines
        .iter()
        .skip_while(|line| *line != "# Rates (SLAB allocator)");
    let middle: Vec<&String> = rates.skip(10).take(5).collect();
    assert_eq!(middle.len(), 5, "{text}");
    for row in middle {
        let cells: Vec<&str> = row.split(' ').collect();
        let rate: f64 = cells[1].parse().expect("a rate");
        assert!((17.0..=23.0).contains(&rate), "{row}");
    }
}
