//! `rperf kmem`: sums recomputed from `script`, options, planted leaks, losses, and recordings without the events.

mod distributions;
mod fragmentation;
mod recording;
mod usage;

use std::collections::BTreeMap;
use std::fs;
use std::io::{PipeReader, PipeWriter, pipe};
use std::thread;
use std::time::Duration;

use rperf_testkit::{Outcome, Scratch, may_trace};

use super::rperf;

#[track_caller]
fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = rperf(words)
        .within(scratch.path())
        .env("HOME", scratch.path());
    run.finish().expect("rperf starts")
}

/// Sums of one caller.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Sums {
    hits: u64,
    requested: u64,
    allocated: u64,
    /// Frees on another CPU than that of the allocation.
    other_cpu: u64,
}

/// The last object allocated at an address, kept after its free: as in perf, a second free counts too, as one on another CPU.
#[derive(Debug, Clone)]
struct Object {
    site: u64,
    allocated: u64,
    /// The CPU of the allocation; `None` once freed.
    cpu: Option<u32>,
}

/// The sums of the slab allocator, computed from the lines of `script`.
#[derive(Debug, Default)]
struct Recomputed {
    callers: BTreeMap<u64, Sums>,
    objects: BTreeMap<u64, Object>,
    /// Allocated bytes of freed objects.
    freed: u64,
}

/// Returns the value after `name=` as text.
fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let words = line.split([' ', ',']);
    let mut values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    values.next()
}

fn hex(text: &str) -> u64 {
    let digits = text.trim_start_matches("0x");
    match digits {
        "(nil)" => 0,
        digits => u64::from_str_radix(digits, 16).unwrap_or_else(|error| panic!("{text}: {error}")),
    }
}

impl Recomputed {
    /// Adds an event; `site` is the number of its caller.
    fn add(&mut self, cpu: u32, event: &str, site: u64, fields: &str) {
        let pointer = hex(field(fields, "ptr").expect("an address"));
        if event.contains("free") {
            let Some(object) = self.objects.get_mut(&pointer) else {
                return;
            };
            self.freed += object.allocated;
            if object.cpu != Some(cpu) {
                self.callers.entry(object.site).or_default().other_cpu += 1;
            }
            object.cpu = None;
            return;
        }
        let [requested, allocated] = ["bytes_req", "bytes_alloc"].map(|name| {
            let text = field(fields, name).expect("a size");
            text.parse::<u64>().expect("a number")
        });
        let sums = self.callers.entry(site).or_default();
        sums.hits += 1;
        sums.requested += requested;
        sums.allocated += allocated;
        self.objects.insert(
            pointer,
            Object {
                site,
                allocated,
                cpu: Some(cpu),
            },
        );
    }
}

/// Recomputes the sums from the text of `script`.
fn recompute(scratch: &Scratch) -> Recomputed {
    let script = run(scratch, &["script", "-F", "cpu,event,trace"]);
    assert_eq!(script.status, 0, "{script:?}");
    let mut all = Recomputed::default();
    let mut sites: BTreeMap<String, u64> = BTreeMap::new();
    for line in script.stdout.lines() {
        let (cpu, rest) = line.trim().split_once(']').expect("a CPU");
        let cpu = cpu.trim_start_matches('[').parse().expect("a number");
        let (event, fields) = rest.trim().split_once(": ").expect("an event");
        // Callers are symbols in the text: each gets a number.
        let number = sites.len() as u64;
        let site = field(fields, "call_site").unwrap_or_default().to_owned();
        let site = *sites.entry(site).or_insert(number);
        all.add(cpu, event, site, fields);
    }
    all
}

#[test]
fn sums_match_the_events_of_script() {
    const NAME: &str = "commands::kmem::sums_match_the_events_of_script";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let command = "for i in 1 2 3; do ls -l /usr > /dev/null & done; wait";
    let made = run(
        &scratch,
        &[
            "kmem",
            "record",
            "--slab",
            "-q",
            "-o",
            "perf.data",
            "--",
            "sh",
            "-c",
            command,
        ],
    );
    assert_eq!(made.status, 0, "{made:?}");
    let expected = recompute(&scratch);
    let json = run(&scratch, &["kmem", "stat", "--caller", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let slab = &json["slab"];
    let sum = |of: fn(&Sums) -> u64| expected.callers.values().map(of).sum::<u64>();
    assert_eq!(number(&slab["allocations"]), sum(|sums| sums.hits));
    assert!(number(&slab["allocations"]) > 100, "{slab}");
    assert_eq!(number(&slab["requested_bytes"]), sum(|sums| sums.requested));
    assert_eq!(number(&slab["allocated_bytes"]), sum(|sums| sums.allocated));
    assert_eq!(number(&slab["freed_bytes"]), expected.freed);
    let rows = json["slab_callers"].as_array().expect("rows");
    let mut actual: Vec<[u64; 4]> = rows
        .iter()
        .map(|row| {
            let keys = [
                "allocations",
                "requested_bytes",
                "allocated_bytes",
                "freed_on_other_cpu",
            ];
            keys.map(|key| number(&row[key]))
        })
        .collect();
    let callers = expected.callers.values().filter(|sums| sums.hits > 0);
    let mut recomputed: Vec<[u64; 4]> = callers
        .map(|sums| [sums.hits, sums.requested, sums.allocated, sums.other_cpu])
        .collect();
    actual.sort_unstable();
    recomputed.sort_unstable();
    assert_eq!(actual, recomputed);
}

#[test]
fn options_and_settings_select_what_stat_prints() {
    const NAME: &str = "commands::kmem::options_and_settings_select_what_stat_prints";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let made = run(
        &scratch,
        &[
            "kmem",
            "record",
            "--page",
            "--slab",
            "-q",
            "-o",
            "both.data",
            "--",
            "ls",
        ],
    );
    assert_eq!(made.status, 0, "{made:?}");
    let before = ["kmem", "-i", "both.data", "--caller", "-l", "2", "stat"];
    let expected = run(&scratch, &before);
    assert_eq!(expected.status, 0, "{expected:?}");
    assert!(expected.stdout.contains("\n ...  "), "{expected:?}");
    let after = ["kmem", "stat", "-i", "both.data", "--caller", "-l", "2"];
    assert_eq!(run(&scratch, &after).stdout, expected.stdout);
    let words = ["kmem", "stat", "-i", "both.data", "--page", "--caller"];
    let pages = run(&scratch, &words);
    assert!(
        pages.stdout.contains("SUMMARY (page allocator)"),
        "{pages:?}"
    );
    assert!(!pages.stdout.contains("SLAB"), "{pages:?}");
    // Callers are functions outside the allocator.
    assert!(
        !pages.stdout.contains("| __alloc_frozen_pages"),
        "{pages:?}"
    );
    scratch
        .write("pages", "[kmem]\n\tdefault = page\n")
        .expect("a file");
    let words = "kmem stat -i both.data --caller";
    let configured = rperf(&words.split(' ').collect::<Vec<_>>())
        .within(scratch.path())
        .env("HOME", scratch.path())
        .env("PERF_CONFIG", "pages");
    assert_eq!(
        configured.finish().expect("rperf starts").stdout,
        pages.stdout
    );
    let all = run(
        &scratch,
        &["kmem", "stat", "-i", "both.data", "--alloc", "--json"],
    )
    .stdout;
    let live = run(
        &scratch,
        &[
            "kmem",
            "stat",
            "-i",
            "both.data",
            "--alloc",
            "--live",
            "--json",
        ],
    );
    let rows = |text: &str| {
        let json: serde_json::Value = serde_json::from_str(text).expect("JSON");
        json["slab_addresses"].as_array().expect("rows").len()
    };
    assert!(rows(&live.stdout) < rows(&all), "{live:?}");
}

#[test]
fn recordings_without_the_events_and_invalid_words_are_refused() {
    const NAME: &str =
        "commands::kmem::recordings_without_the_events_and_invalid_words_are_refused";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let words = ["kmem", "record", "-q", "-o", "perf.data", "--", "true"];
    let made = run(&scratch, &words);
    assert_eq!(made.status, 0, "{made:?}");
    let other = "record -q -o other.data -e sched:sched_switch -a -- true";
    let made = run(&scratch, &other.split(' ').collect::<Vec<_>>());
    assert_eq!(made.status, 0, "{made:?}");
    let whole = fs::read(scratch.path().join("perf.data")).expect("a recording");
    // Truncated before the end of the records, and so without the header features, which follow them.
    let end = end_of_records(&whole);
    scratch
        .write("truncated.data", &whole[..end - 8])
        .expect("a file");
    for (words, status, message) in [
        (
            "kmem stat --page",
            255,
            "hint: perf.data only has events of the slab allocator: use --slab",
        ),
        (
            "kmem leaks -i other.data",
            255,
            "hint: other.data has no events of the slab and page allocators",
        ),
        (
            "kmem stat -i truncated.data",
            255,
            "hint: the descriptions of the tracepoints in truncated.data are missing",
        ),
        (
            "kmem stat --page",
            255,
            "No page allocation events found.  Have you run 'rperf kmem record --page'?",
        ),
        (
            "kmem stat -i other.data",
            255,
            "No slab allocation events found.  Have you run 'rperf kmem record --slab'?",
        ),
        ("kmem stat -s page", 129, "Unknown slab --sort key: 'page'"),
        (
            "kmem stat --page -s frag",
            129,
            "Unknown page --sort key: 'frag'",
        ),
        ("kmem", 129, "no subcommand given"),
        ("kmem top", 129, "unknown subcommand 'top'"),
        (
            "kmem --caller record true",
            129,
            "--caller applies to 'kmem stat'",
        ),
        ("kmem -i x record true", 129, "-i and -f apply to reading"),
    ] {
        let outcome = run(&scratch, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(outcome.status, status, "{words}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words}: {outcome:?}");
    }
}

/// Returns the end of the data section: the sum of its offset and its size, both in the header of the recording.
fn end_of_records(recording: &[u8]) -> usize {
    let number = |at: usize| {
        let bytes = recording[at..at + 8].try_into().expect("eight bytes");
        usize::try_from(u64::from_le_bytes(bytes)).expect("a size in memory")
    };
    number(40) + number(48)
}

#[test]
fn options_of_tables_need_a_table_and_sort_needs_keys() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::planted_leaks(recording::PAGE_SIZE))
        .expect("a file");
    let plain = run(&scratch, &["kmem", "stat"]);
    assert_eq!((plain.status, plain.stderr.as_str()), (0, ""), "{plain:?}");
    for option in ["-l 3", "-s bytes", "--live", "--raw-ip"] {
        let name = option.split(' ').next().expect("a name");
        let warning = format!(
            "Warning: {name} applies to tables: it has no effect without --caller and --alloc\n"
        );
        let line = format!("kmem stat {option}");
        let without = run(&scratch, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(without.status, 0, "{without:?}");
        assert_eq!((&without.stdout, without.stderr), (&plain.stdout, warning));
        let line = format!("kmem stat --caller {option}");
        let with = run(&scratch, &line.split(' ').collect::<Vec<_>>());
        assert_eq!((with.status, with.stderr.as_str()), (0, ""), "{line}");
    }
    for keys in ["", ",", "bytes,", "bytes,,hit"] {
        let refused = run(&scratch, &["kmem", "stat", "--caller", "-s", keys]);
        assert_eq!(refused.status, 129, "{keys}: {refused:?}");
        let message = "Unknown slab --sort key: ''\n";
        assert!(refused.stderr.starts_with(message), "{keys}: {refused:?}");
    }
    let spaced = run(&scratch, &["kmem", "stat", "--caller", "-s", "bytes, hit"]);
    let usual = run(&scratch, &["kmem", "stat", "--caller", "-s", "bytes,hit"]);
    assert_eq!((spaced.status, spaced.stdout), (0, usual.stdout));
}

#[test]
fn help_shows_all_subcommands() {
    let scratch = Scratch::new();
    let help = run(&scratch, &["kmem", "-h"]).stderr;
    let names = run(&scratch, &["kmem"]).stderr;
    let hint = names.split("hint: use ").nth(1).expect("a hint");
    let named = hint.split('\'').filter(|name| name.starts_with("kmem "));
    let mut count = 0;
    for name in named {
        let subcommand = name.trim_start_matches("kmem ");
        let line = format!("rperf kmem [<options>] {subcommand} ");
        assert!(help.contains(&line), "{name}: {help}");
        count += 1;
    }
    assert_eq!(count, 6, "{names}");
}

/// Returns the stacks that are suspected to leak.
fn suspects(json: &serde_json::Value) -> Vec<&serde_json::Value> {
    let stacks = json["stacks"].as_array().expect("stacks");
    let suspects = stacks.iter().filter(|stack| stack["is_suspect"] == true);
    suspects.collect()
}

#[test]
fn planted_leaks_are_found_and_named() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::planted_leaks(recording::PAGE_SIZE))
        .expect("a file");
    scratch
        .write("symbols", recording::kallsyms())
        .expect("a file");
    let leaks = ["kmem", "leaks", "--kallsyms", "symbols"];
    let printed = run(&scratch, &[&leaks[..], &["--json"]].concat());
    assert_eq!(printed.status, 0, "{printed:?}");
    let json: serde_json::Value = serde_json::from_str(&printed.stdout).expect("JSON");
    let stacks = suspects(&json);
    assert_eq!(stacks.len(), 2, "{json}");
    // 81,920 bytes of pages, then 6,400 bytes of objects.
    let [pages, objects] = [stacks[0], stacks[1]];
    assert_eq!(
        objects["stack"],
        serde_json::json!(["leaking_driver+0x10", "ioctl_entry+0x10"])
    );
    assert_eq!(objects["allocator"], "slab");
    assert_eq!(
        (&objects["live_bytes"], &objects["live"]),
        (&6400.into(), &100.into())
    );
    assert_eq!(objects["allocated"], 100);
    assert_eq!(objects["oldest_ns"], 9_999_000_000_u64);
    let process = serde_json::json!([{"pid": 70, "comm": "leaker", "live": 100}]);
    assert_eq!(objects["processes"], process);
    assert_eq!(pages["stack"], serde_json::json!(["leaking_pages+0x10"]));
    assert_eq!(
        (&pages["live_bytes"], &pages["live"]),
        (&81920.into(), &10.into())
    );
    // The planted leaks per second. A line is fitted to a curve of steps: its slope differs a little.
    for (stack, rate) in [(objects, 640.0), (pages, 8192.0)] {
        let growth = stack["growth_bytes_per_second"].as_f64().expect("a number");
        assert!((growth / rate - 1.0).abs() < 0.03, "{stack}");
    }
    // Freed memory has no row. The curves end with the memory that was not freed, also that of `cache_fill` and `late_burst`.
    assert!(!printed.stdout.contains("busy_path"), "{json}");
    let last = |key: &str| json[key].as_array().and_then(|all| all.last().cloned());
    assert_eq!(
        last("slab_bytes"),
        Some((6400 + 200 * 256 + 20 * 512).into())
    );
    assert_eq!(last("page_bytes"), Some(81920.into()));
    assert_eq!(json["unmatched_frees"], 2);
    let text = run(&scratch, &[&leaks[..], &["--suspects"]].concat()).stdout;
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('*')).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[1].ends_with("leaking_driver+0x10 (slab)"), "{text}");
    assert!(text.contains("  by leaker (70): 100\n"), "{text}");
    assert!(!text.contains("cache_fill"), "{text}");
    let note = "\nNote: the kernel has no events for objects that kfree_rcu() and kmem_cache_free_bulk() free: they look like leaks.\n";
    assert!(text.ends_with(note), "{text}");
    // The bars show the bytes of pages, as objects are in pages. These bytes reach their maximum, 81920, at the end.
    let page_bars: Vec<(u64, usize)> = text
        .lines()
        .filter(|line| line.ends_with('#'))
        .map(|line| {
            let bytes = line.split_whitespace().nth(2).expect("bytes of pages");
            let bar = line.matches('#').count();
            (bytes.parse().expect("a number"), bar)
        })
        .collect();
    assert!(page_bars.len() > 2, "{text}");
    for (bytes, bar) in page_bars {
        assert_eq!(bar as u64, bytes * 40 / 81920, "{text}");
    }
    // Both curves end at their maximum, on the right.
    let svg = run(&scratch, &[&leaks[..], &["--svg", "curve.svg"]].concat());
    assert_eq!((svg.status, svg.stdout.as_str()), (0, ""), "{svg:?}");
    let picture = std::fs::read_to_string(scratch.path().join("curve.svg")).expect("a picture");
    let assert_end = |class: &str, bytes: f64| {
        // The plot has 284 pixels above y = 380, for 120,000 bytes. The last point of the path only closes the area below it.
        let y = 380.0 - 284.0 * bytes / 120_000.0;
        let path = picture.lines().find(|line| line.contains(class));
        let path = path.unwrap_or_else(|| panic!("{class}: {picture}"));
        let last = path.rsplit('L').nth(1).expect("a point");
        assert_eq!(last, format!("860.0 {y:.1}"), "{path}");
    };
    assert_end("<path class=\"c0\"", 81920.0);
    assert_end("<path class=\"c1\"", 6400.0 + 200.0 * 256.0 + 20.0 * 512.0);
    // The sums above the rows do not depend on --suspects.
    let all = run(&scratch, &leaks).stdout;
    let sums = |text: &str| text.lines().take(4).collect::<Vec<_>>().join("\n");
    assert_eq!(sums(&text), sums(&all));
    assert!(sums(&text).contains(" 81920 bytes in "), "{text}");
    let first = |key: &str| {
        let words = [&leaks[..], &["--json", "-l", "1", "-s", key]].concat();
        let json: serde_json::Value =
            serde_json::from_str(&run(&scratch, &words).stdout).expect("JSON");
        json["stacks"][0]["stack"][0].as_str().map(str::to_owned)
    };
    assert_eq!(first("bytes").as_deref(), Some("leaking_pages+0x10"));
    assert_eq!(first("count").as_deref(), Some("cache_fill+0x10"));
    assert_eq!(first("age").as_deref(), Some("cache_fill+0x10"));
    let unknown = run(&scratch, &["kmem", "leaks", "-s", "frag"]);
    assert_eq!(unknown.status, 129, "{unknown:?}");
    assert!(
        unknown.stderr.contains("Unknown --sort key: 'frag'"),
        "{unknown:?}"
    );
}

/// The page size in the recording is used, not that of this machine.
#[test]
fn pages_of_64_kb_are_counted_as_such() {
    let scratch = Scratch::new();
    // The bytes of live pages in `leaks`, and of all allocated pages in `stat`.
    let planted_bytes = |page_size: u32| {
        scratch
            .write("perf.data", recording::planted_leaks(page_size))
            .expect("a file");
        let json = |words: &[&str]| -> serde_json::Value {
            let printed = run(&scratch, words).stdout;
            serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed}"))
        };
        let leaks = json(&["kmem", "leaks", "--json"]);
        let last = leaks["page_bytes"].as_array().and_then(|all| all.last());
        let stat = json(&["kmem", "stat", "--page", "--json"]);
        [last, Some(&stat["pages"]["allocated_bytes"])]
            .map(|bytes| bytes.and_then(serde_json::Value::as_u64))
    };
    let small = planted_bytes(4096).map(|bytes| bytes.expect("a number"));
    assert_eq!(small[0], 81920);
    assert_eq!(planted_bytes(65536), small.map(|bytes| Some(bytes * 16)));
}

#[test]
fn losses_are_shown_by_all_subcommands() {
    let scratch = Scratch::new();
    let mut file = recording::KmemFile::new(recording::PAGE_SIZE);
    // Times are in ms after the start at 1 s. At 1 ms an object of process 70 (address 0x1000, 64 bytes), at 2 ms the page 7.
    file.object(1, 70, "leaking_driver", 0x1000, 64);
    file.pages(2, "leaking_pages", 7, 0);
    let (lost_at_ms, lost_records) = (30, 17);
    let file = file.finish_after_loss(lost_at_ms, lost_records);
    scratch.write("perf.data", file).expect("a file");
    for (line, doubtful) in [
        ("kmem stat --slab --page", "sums of allocations"),
        ("kmem stat --histogram", "sums of allocations"),
        ("kmem leaks", "allocations that were not freed"),
        ("kmem usage", "sums of allocations"),
        ("kmem diff perf.data perf.data", "sums of allocations"),
        (
            "kmem fragmentation",
            "numbers of pages and objects that were not freed",
        ),
    ] {
        let outcome = run(&scratch, &line.split(' ').collect::<Vec<_>>());
        let warning = format!(
            "17 records were lost between 1.002000 and 1.030000 s; {doubtful} are doubtful there"
        );
        assert!(outcome.stderr.contains(&warning), "{line}: {outcome:?}");
        if !line.contains("diff") {
            let line = format!("{line} --json");
            let outcome = run(&scratch, &line.split(' ').collect::<Vec<_>>());
            let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
            assert_eq!(json["lost_records"], 17, "{line}");
        }
    }
}

#[test]
fn open_pipes_are_found_as_leaks() {
    const NAME: &str = "commands::kmem::open_pipes_are_found_as_leaks";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "kmem",
        "record",
        "-g",
        "-q",
        "-o",
        "perf.data",
        "-m",
        "4096",
        "--",
        "sleep",
        "1.5",
    ];
    let pipes = thread::scope(|scope| {
        let recording = scope.spawn(|| run(&scratch, &words));
        let mut pipes: Vec<(PipeReader, PipeWriter)> = Vec::new();
        while !recording.is_finished() && pipes.len() < 400 {
            pipes.push(pipe().expect("a pipe"));
            thread::sleep(Duration::from_millis(6));
        }
        let made = recording.join().expect("no panic");
        assert_eq!(made.status, 0, "{made:?}");
        pipes
    });
    let outcome = run(&scratch, &["kmem", "leaks", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let own_pid = std::process::id();
    let is_pipe = |stack: &&&serde_json::Value| {
        let caller = stack["stack"][0].as_str().unwrap_or_default();
        caller.starts_with("alloc_pipe_info+") && stack["processes"][0]["pid"] == own_pid
    };
    let suspects = suspects(&json);
    let pipe_stack = suspects.iter().find(is_pipe);
    let pipe_stack = pipe_stack.unwrap_or_else(|| panic!("no pipes among {suspects:?}"));
    let live = pipe_stack["live"].as_u64().expect("a number");
    // Not the exact number: the first pipes may be older than the recording, and other tests of this process may open pipes.
    assert!(live > 100, "{live} of {}: {pipe_stack}", pipes.len());
    let frames = pipe_stack["stack"].as_array().expect("a stack");
    assert!(frames.len() > 2, "{pipe_stack}");
}
