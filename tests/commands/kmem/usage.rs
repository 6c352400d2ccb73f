//! `kmem usage` and `kmem diff`: generated recordings with known sums, and sums recomputed from `script`.

use std::collections::BTreeMap;

use rperf_testkit::{Scratch, may_trace};
use serde_json::{Value, json};

use super::recording::{self, KmemFile};
use super::{field, hex, run};

/// Returns the JSON that a command line prints.
#[track_caller]
fn json_of(scratch: &Scratch, line: &str) -> Value {
    let outcome = run(scratch, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(outcome.status, 0, "{line}: {outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Returns the values of these keys of each row.
fn rows(report: &Value, keys: &[&str]) -> Vec<Value> {
    let rows = report["rows"].as_array().expect("rows").iter();
    let rows = rows.map(|row| keys.iter().map(|key| row[*key].clone()).collect());
    rows.collect()
}

/// Values of `has_burst` of [`planted`].
const WITHOUT_BURST: bool = false;
const WITH_BURST: bool = true;

/// Returns a recording of `seconds` with cgroups, and two processes: `leaker` (70) and `worker` (71).
///
/// Each 100 ms `leaking_driver` keeps 64 bytes in a container, and `busy_path` uses 128 bytes for 5 ms outside of it. Within the
/// first second `leaking_pages` keeps ten blocks of two pages, in a cgroup below that of the container, and the slab allocator
/// takes three pages and frees one. If `has_burst`, `late_burst` keeps 100 objects of 512 bytes.
fn planted(seconds: u64, has_burst: bool) -> Vec<u8> {
    const OUTSIDE: u64 = 1;
    const CONTAINER: u64 = 2;
    const INNER: u64 = 3;
    let id = "0123456789abcdef".repeat(4);
    let docker = format!("/system.slice/docker-{id}.scope");
    let inner = format!("{docker}/inner");
    let mut file = KmemFile::with_cgroups(&["/user.slice", &docker, &inner]);
    for number in 0..seconds * 10 {
        file.enter_cgroup(CONTAINER);
        file.object(
            number * 100,
            70,
            "leaking_driver",
            0x10_0000 + number * 64,
            64,
        );
        file.enter_cgroup(OUTSIDE);
        file.object(number * 100 + 10, 71, "busy_path", 0x1000, 128);
        file.free(number * 100 + 15, 0x1000);
    }
    file.enter_cgroup(INNER);
    for number in 0..10 {
        file.pages(number * 100 + 20, "leaking_pages", 2 * number, 1);
    }
    file.enter_cgroup(CONTAINER);
    for number in 0..3 {
        file.slab_page(number * 100 + 30, "leaking_driver", 1000 + number);
    }
    file.free_pages(400, 1002, 0);
    if has_burst {
        for number in 0..100 {
            file.object(
                500 + number,
                71,
                "late_burst",
                0x80_0000 + number * 512,
                512,
            );
        }
    }
    // The last event, a free of an unknown object: the recording ends at `seconds`.
    file.free(seconds * 1000, 0x9000);
    file.finish()
}

/// Creates a folder with these files, and the symbols of the generated kernel in `symbols`.
fn folder(files: &[(&str, Vec<u8>)]) -> Scratch {
    let scratch = Scratch::new();
    for (name, content) in files {
        scratch.write(name, content).expect("a file");
    }
    scratch
        .write("symbols", recording::kallsyms())
        .expect("a file");
    scratch
}

#[test]
fn slab_pages_are_not_counted_twice() {
    let scratch = folder(&[("perf.data", planted(10, WITHOUT_BURST))]);
    let usage = "kmem usage --kallsyms symbols --json";
    let report = json_of(&scratch, usage);
    let total = json!({
        "allocated": {"requests": 210, "bytes": 6400 + 12800 + 81920},
        "freed": {"requests": 100, "bytes": 12800},
        "live": {"requests": 110, "bytes": 6400 + 81920},
    });
    assert_eq!(report["total"], total);
    assert_eq!(
        (
            &report["unmatched_object_frees"],
            &report["unmatched_page_frees"]
        ),
        (&1.into(), &0.into())
    );
    let keys = [
        "memory",
        "stack",
        "allocations",
        "allocated_bytes",
        "freed_bytes",
        "live_bytes",
        "peak_bytes",
    ];
    let expected = [
        json!(["pages", ["leaking_pages+0x10"], 10, 81920, 0, 81920, 81920]),
        json!([
            "objects",
            ["busy_path+0x10", "ioctl_entry+0x10"],
            100,
            12800,
            12800,
            0,
            128
        ]),
        json!([
            "slab pages",
            ["leaking_driver+0x10", "ioctl_entry+0x10"],
            3,
            12288,
            4096,
            8192,
            12288
        ]),
        json!([
            "objects",
            ["leaking_driver+0x10", "ioctl_entry+0x10"],
            100,
            6400,
            0,
            6400,
            6400
        ]),
    ];
    assert_eq!(rows(&report, &keys), expected);
    let kinds = report["kinds"].as_array().expect("kinds");
    let counted = |kinds: &[Value]| -> Vec<Value> {
        kinds
            .iter()
            .map(|kind| json!([kind["memory"], kind["is_counted"]]))
            .collect()
    };
    let expected = [
        json!(["objects", true]),
        json!(["pages", true]),
        json!(["slab pages", false]),
    ];
    assert_eq!(counted(kinds), expected);
    // With --page, objects are not counted, but the pages of the slab allocator are.
    let pages = json_of(&scratch, &format!("{usage} --page"));
    assert_eq!(pages["total"]["allocated"]["bytes"], 81920 + 12288);
    // The row of `busy_path`, as in `expected` above: each of its objects lives for 5 ms.
    let life = &report["rows"][1]["lifetimes_ns"];
    assert_eq!(
        (&life["count"], &life["max"]),
        (&100.into(), &5_000_000.into())
    );
    let text = run(&scratch, &["kmem", "usage", "--kallsyms", "symbols"]).stdout;
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    // The columns of a row: bytes, their share (`-` if not counted), allocations, live bytes, live allocations, peak bytes,
    // median lifetime in us (`-` if none was freed), kind of memory, stack.
    for line in [
        "101120 bytes in 210 in total not freed: 88320 bytes in 110",
        "12288 bytes in 3 slab pages not freed: 8192 bytes in 2 (contain the objects, not counted)",
        "81920 81.01% 10 81920 10 81920 - pages leaking_pages+0x10",
        // The only freed page lived from 230 to 400 ms.
        "12288 - 3 8192 2 12288 170000.000 slab pages leaking_driver+0x10",
        "12800 12.66% 100 0 0 128 5000.000 objects busy_path+0x10",
    ] {
        assert!(
            lines.iter().any(|printed| printed == line),
            "{line}: {text}"
        );
    }
}

#[test]
fn memory_is_summed_up_by_cgroup_and_container() {
    let scratch = folder(&[("perf.data", planted(10, WITHOUT_BURST))]);
    let by = |keys: &str| {
        json_of(
            &scratch,
            &format!("kmem usage --kallsyms symbols --json --by {keys}"),
        )
    };
    let report = rows(
        &by("container"),
        &["memory", "container", "allocated_bytes", "live_bytes"],
    );
    let docker = "docker:0123456789ab";
    let expected = [
        // The rows of the container include both of its cgroups.
        json!(["pages", docker, 81920, 81920]),
        json!(["objects", "no container", 12800, 0]),
        json!(["slab pages", docker, 12288, 8192]),
        json!(["objects", docker, 6400, 6400]),
    ];
    assert_eq!(report, expected);
    let id = "0123456789abcdef".repeat(4);
    let report = rows(
        &by("cgroup,function"),
        &["cgroup", "function", "allocated_bytes"],
    );
    let path = |end: &str| format!("/system.slice/docker-{id}.scope{end}");
    let expected = [
        json!([path("/inner"), "leaking_pages", 81920]),
        json!(["/user.slice", "busy_path", 12800]),
        // A row of pages of the slab allocator, and one of objects.
        json!([path(""), "leaking_driver", 12288]),
        json!([path(""), "leaking_driver", 6400]),
    ];
    assert_eq!(report, expected);
    let report = rows(&by("process,cache"), &["process", "cache", "allocations"]);
    let expected = [
        json!(["worker (71)", "order 1", 10]),
        json!(["worker (71)", "kmalloc-128", 100]),
        json!(["leaker (70)", "order 0", 3]),
        json!(["leaker (70)", "kmalloc-64", 100]),
    ];
    assert_eq!(report, expected);
}

#[test]
fn unknown_keys_and_keys_without_recorded_cgroups_are_refused() {
    let scratch = folder(&[
        ("perf.data", planted(10, WITHOUT_BURST)),
        ("plain.data", recording::planted_leaks(recording::PAGE_SIZE)),
    ]);
    let refused = |line: &str, status: i32, message: &str| {
        let outcome = run(&scratch, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(outcome.status, status, "{outcome:?}");
        assert!(outcome.stderr.contains(message), "{outcome:?}");
    };
    refused("kmem usage --by pid", 129, "Unknown key of --by: 'pid'");
    refused("kmem usage --by ,", 129, "--by: no key is given");
    refused("kmem usage -s frag", 129, "Unknown --sort key: 'frag'");
    refused(
        "kmem usage -i plain.data --by container",
        255,
        "kmem record --all-cgroups",
    );
}

#[test]
fn recordings_of_different_length_are_compared_by_rates() {
    let scratch = folder(&[
        ("perf.data.old", planted(10, WITHOUT_BURST)),
        ("perf.data", planted(20, WITH_BURST)),
    ]);
    let report = json_of(&scratch, "kmem diff --kallsyms symbols --json");
    assert_eq!(
        (&report["baseline_seconds"], &report["new_seconds"]),
        (&10.0.into(), &20.0.into())
    );
    let rate_delta = |row: &Value| row["delta"]["bytes_per_second"].as_f64().expect("a number");
    // Rows are sorted by the absolute difference, so a row that shrank can come first.
    let expected: [(&str, &str, f64); 5] = [
        (
            "leaking_pages+0x10",
            "order 1",
            81920.0 / 20.0 - 81920.0 / 10.0,
        ),
        ("late_burst+0x10", "kmalloc-512", 51200.0 / 20.0),
        (
            "leaking_driver+0x10",
            "order 0",
            12288.0 / 20.0 - 12288.0 / 10.0,
        ),
        // The same number of bytes per second in both recordings.
        ("busy_path+0x10", "kmalloc-128", 0.0),
        ("leaking_driver+0x10", "kmalloc-64", 0.0),
    ];
    let found_rows = report["rows"].as_array().expect("rows");
    assert_eq!(found_rows.len(), expected.len());
    for (row, (caller, cache, difference)) in found_rows.iter().zip(expected) {
        assert_eq!(
            (&row["caller"], &row["cache"]),
            (&caller.into(), &cache.into())
        );
        assert!((rate_delta(row) - difference).abs() < 1e-6, "{row}");
    }
    let driver = &found_rows[4];
    assert_eq!(
        (
            &driver["baseline"]["live_bytes"],
            &driver["new"]["live_bytes"]
        ),
        (&6400.into(), &12800.into())
    );
    assert_eq!(driver["new"]["growth_per_second"], 640.0);
    assert_eq!(driver["delta"]["live_bytes"], 6400.0);
    let burst = &found_rows[1];
    assert_eq!(
        (
            &burst["baseline"]["allocations"],
            &burst["new"]["allocations"]
        ),
        (&0.into(), &100.into())
    );
    // The total contains the objects, but not the pages of the slab allocator, in which they are.
    let total = &report["totals"]["total"];
    assert_eq!(
        total["new"]["allocated_bytes"],
        200 * (64 + 128) + 81920 + 51200
    );
    assert_eq!(
        report["totals"]["slab pages"]["new"]["allocated_bytes"],
        12288
    );
    let first = |sort: &str| {
        let line =
            format!("kmem diff perf.data.old perf.data --kallsyms symbols --json -l 1 -s {sort}");
        let report = json_of(&scratch, &line);
        report["rows"][0]["caller"].as_str().map(str::to_owned)
    };
    assert_eq!(first("live").as_deref(), Some("late_burst+0x10"));
    assert_eq!(first("hit").as_deref(), Some("late_burst+0x10"));
    assert_eq!(first("growth").as_deref(), Some("leaking_pages+0x10"));
    let text = run(
        &scratch,
        &[
            "kmem",
            "diff",
            "--kallsyms",
            "symbols",
            "-l",
            "2",
            "--by",
            "function",
        ],
    );
    let lines: Vec<String> = text
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    // Of a row: bytes per second and their difference, allocations per second, growth, live bytes and their difference. All but
    // the differences are two numbers, of the baseline and of the new recording.
    for line in [
        "# Duration: baseline 10.000000 s, new 20.000000 s. Growth: bytes that were not freed, per second",
        "0 2560 +2560 0 5 0 2560 0 51200 +51200 objects late_burst",
        "8192 4096 -4096 1 0 8192 4096 81920 81920 +0 pages leaking_pages",
        "... 3 more; -l shows more",
    ] {
        assert!(
            lines.iter().any(|printed| printed == line),
            "{line}: {text:?}"
        );
    }
    let rows = text.stdout.lines().filter(|line| !line.starts_with('#'));
    assert!(rows.clone().all(|row| row == row.trim_end()), "{text:?}");
    let same = json_of(&scratch, "kmem diff perf.data perf.data --json");
    let rows = same["rows"].as_array().expect("rows");
    assert!(!rows.is_empty(), "{same}");
    assert!(rows.iter().all(|row| rate_delta(row) == 0.0), "{same}");
}

/// An allocation that may be freed later.
#[derive(Debug, Default, Clone)]
struct Allocation {
    kind: &'static str,
    caller: String,
    bytes: u64,
    time: u64,
}

/// Sums by kind and caller: allocations, their bytes, freed bytes, live bytes, and the lifetimes of freed allocations in ns.
type Sums = BTreeMap<(&'static str, String), [u64; 5]>;

/// The allocations of a recording, recomputed from the lines of `script` with stacks.
#[derive(Debug, Default)]
struct Recomputed {
    sums: Sums,
    /// The allocations that are not freed; the key is whether they are pages, and the page frame number or address.
    live: BTreeMap<(bool, u64), Allocation>,
}

/// Prefixes of the names of the page allocator's functions, without leading `_`.
const PAGE_ALLOCATOR: [&str; 5] = [
    "alloc_pages",
    "alloc_frozen_pages",
    "get_free_page",
    "folio_alloc",
    "vma_alloc_folio",
];
/// Prefixes of the names of the slab allocator's functions, without leading `_`.
const SLAB_ALLOCATOR: [&str; 5] = [
    "allocate_slab",
    "new_slab",
    "slab_alloc",
    "kmalloc_large",
    "refill_",
];

impl Recomputed {
    /// Adds an event with the functions of its stack, innermost first.
    fn add(&mut self, time: u64, event: &str, fields: &str, stack: &[&str]) {
        // Events of external fragmentation neither allocate nor free.
        if event.ends_with("extfrag") {
            return;
        }
        let text = |name| field(fields, name).unwrap_or_else(|| panic!("{name}: {fields}"));
        let is_page = event.contains("mm_page");
        let address = hex(text(if is_page { "pfn" } else { "ptr" }));
        if event.contains("free") {
            if let Some(allocation) = self.live.remove(&(is_page, address)) {
                let key = (allocation.kind, allocation.caller);
                let [_, _, freed, live, lifetimes] = self.sums.entry(key).or_default();
                *freed += allocation.bytes;
                *live -= allocation.bytes;
                *lifetimes += time - allocation.time;
            }
            return;
        }
        let mut allocation = Allocation {
            kind: "objects",
            time,
            ..Allocation::default()
        };
        if is_page {
            let order: u32 = text("order").parse().expect("an order");
            allocation.bytes = 4096 << order;
            let begins = |frame: &&str, starts: &[&str]| {
                let name = frame.trim_start_matches('_');
                starts.iter().any(|start| name.starts_with(start))
            };
            let outside = stack.iter().find(|frame| !begins(frame, &PAGE_ALLOCATOR));
            let is_slab = outside.is_some_and(|frame| begins(frame, &SLAB_ALLOCATOR));
            allocation.kind = if is_slab { "slab pages" } else { "pages" };
            allocation.caller = match is_slab {
                // The callers of the slab allocator are not recomputed.
                true => String::new(),
                false => outside.map_or("unknown", |frame| *frame).to_owned(),
            };
        } else {
            allocation.bytes = text("bytes_alloc").parse().expect("a size");
            allocation.caller = text("call_site").to_owned();
        }
        let key = (allocation.kind, allocation.caller.clone());
        let [allocations, allocated, _, live, _] = self.sums.entry(key).or_default();
        *allocations += 1;
        *allocated += allocation.bytes;
        *live += allocation.bytes;
        // The free of an older allocation at this address is not recorded: the older one is neither live nor counted as freed.
        if let Some(older) = self.live.insert((is_page, address), allocation) {
            let key = (older.kind, older.caller);
            let [_, _, _, live, _] = self.sums.entry(key).or_default();
            *live -= older.bytes;
        }
    }

    /// Reads the text of `script -F time,event,trace,ip,sym,symoff --ns`.
    fn read(text: &str) -> Self {
        let mut all = Self::default();
        for block in text.split("\n\n") {
            let mut lines = block.lines();
            let Some((time, rest)) = lines.next().and_then(|line| line.trim().split_once(": "))
            else {
                continue;
            };
            let (event, fields) = rest.trim().split_once(": ").expect("an event");
            let (seconds, nanos) = time.trim().split_once('.').expect("a time");
            let whole = |text: &str| text.parse::<u64>().expect("a number");
            let time = whole(seconds) * 1_000_000_000 + whole(nanos);
            let stack: Vec<&str> = lines
                .filter_map(|line| line.trim().split_once(' ').map(|(_, symbol)| symbol))
                .collect();
            all.add(time, event, fields, &stack);
        }
        all
    }
}

#[test]
fn sums_by_caller_match_the_events_of_script() {
    const NAME: &str = "commands::kmem::usage::sums_by_caller_match_the_events_of_script";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let command = "mkdir d; i=0; while [ $i -lt 500 ]; do : > d/$i; i=$((i + 1)); done; rm -r d";
    let words = [
        "kmem",
        "record",
        "--page",
        "--slab",
        "-g",
        "--all-cgroups",
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
    let script = run(
        &scratch,
        &["script", "--ns", "-F", "time,event,trace,ip,sym,symoff"],
    );
    assert_eq!(script.status, 0, "{script:?}");
    let expected = Recomputed::read(&script.stdout).sums;
    let report = json_of(&scratch, "kmem usage --by caller --json");
    let mut sums = Sums::new();
    for row in report["rows"].as_array().expect("rows") {
        let kind = match row["memory"].as_str() {
            Some("objects") => "objects",
            Some("pages") => "pages",
            Some("slab pages") => "slab pages",
            _ => panic!("{row}"),
        };
        let caller = match kind {
            "slab pages" => String::new(),
            _ => row["caller"].as_str().expect("a caller").to_owned(),
        };
        let sums_of_caller = sums.entry((kind, caller)).or_default();
        let numbers = [
            &row["allocations"],
            &row["allocated_bytes"],
            &row["freed_bytes"],
            &row["live_bytes"],
            &row["lifetimes_ns"]["sum"],
        ];
        for (sum, value) in sums_of_caller.iter_mut().zip(numbers) {
            *sum += number(value);
        }
    }
    for kind in ["objects", "pages", "slab pages"] {
        let bytes = |sums: &Sums| {
            let of_kind = sums.iter().filter(|((other, _), _)| *other == kind);
            of_kind
                .map(|(_, [_, allocated, ..])| allocated)
                .sum::<u64>()
        };
        // The slab allocator may have so many free objects that it needs no pages.
        assert!(bytes(&expected) > 0 || kind == "slab pages", "no {kind}");
        assert_eq!(bytes(&sums), bytes(&expected), "{kind}");
    }
    assert_eq!(sums, expected);
    // The sum of the rows does not depend on their keys.
    for keys in ["stack", "process,cache", "cgroup,container,function"] {
        let other = json_of(&scratch, &format!("kmem usage --json --by {keys}"));
        assert_eq!(other["total"], report["total"], "{keys}");
        let rows = other["rows"].as_array().expect("rows").iter();
        let counted = rows.filter(|row| row["memory"] != "slab pages");
        let bytes: u64 = counted.map(|row| number(&row["allocated_bytes"])).sum();
        assert_eq!(report["total"]["allocated"]["bytes"], bytes, "{keys}");
    }
    let cgroups = json_of(&scratch, "kmem usage --json --by cgroup");
    let first = cgroups["rows"][0]["cgroup"]
        .as_str()
        .expect("a path")
        .to_owned();
    assert!(first.starts_with('/'), "{first}");
}
