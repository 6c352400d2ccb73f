//! `rperf kmem`: sums recomputed from `script`, order of options, and recordings without the events.

use std::collections::BTreeMap;

use rperf_testkit::{Outcome, Scratch, may_trace};

use super::rperf;

#[track_caller]
fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = rperf(words)
        .within(scratch.path())
        .env("HOME", scratch.path());
    run.finish().expect("rperf starts")
}

/// Sums of one caller or of one address.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Sums {
    hits: u64,
    requested: u64,
    allocated: u64,
    other_cpu: u64,
}

/// The state of the object at an address.
#[derive(Debug, Clone)]
struct Object {
    site: u64,
    allocated: u64,
    /// `None` once freed.
    cpu: Option<u32>,
}

/// The sums of the slab allocator, computed from the lines of `script`.
#[derive(Debug, Default)]
struct Recomputed {
    callers: BTreeMap<u64, Sums>,
    objects: BTreeMap<u64, Object>,
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
    /// Adds a line `[CPU] EVENT: FIELDS`, whose caller is given as `site`.
    fn add(&mut self, cpu: u32, event: &str, site: u64, line: &str) {
        let pointer = hex(field(line, "ptr").expect("an address"));
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
            let text = field(line, name).expect("a size");
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
    let csv = run(scratch, &["kmem", "stat", "--alloc", "--json"]);
    assert_eq!((script.status, csv.status), (0, 0), "{script:?}");
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
    let mut found: Vec<[u64; 4]> = rows
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
    let mut wanted: Vec<[u64; 4]> = callers
        .map(|sums| [sums.hits, sums.requested, sums.allocated, sums.other_cpu])
        .collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn options_may_follow_and_precede_the_subcommand() {
    const NAME: &str = "commands::kmem::options_may_follow_and_precede_the_subcommand";
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
    let usual = ["kmem", "-i", "both.data", "--caller", "-l", "2", "stat"];
    let expected = run(&scratch, &usual);
    assert_eq!(expected.status, 0, "{expected:?}");
    assert!(expected.stdout.contains("\n ...  "), "{expected:?}");
    let after = ["kmem", "stat", "-i", "both.data", "--caller", "-l", "2"];
    assert_eq!(run(&scratch, &after).stdout, expected.stdout);
    let pages = run(
        &scratch,
        &["kmem", "stat", "-i", "both.data", "--page", "--caller"],
    );
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
    let set = rperf(&words.split(' ').collect::<Vec<_>>())
        .within(scratch.path())
        .env("HOME", scratch.path())
        .env("PERF_CONFIG", "pages");
    assert_eq!(set.finish().expect("rperf starts").stdout, pages.stdout);
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
fn recordings_without_the_events_are_refused() {
    const NAME: &str = "commands::kmem::recordings_without_the_events_are_refused";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let made = run(
        &scratch,
        &["kmem", "record", "-q", "-o", "perf.data", "--", "true"],
    );
    assert_eq!(made.status, 0, "{made:?}");
    let other = "record -q -o other.data -e sched:sched_switch -a -- true";
    let made = run(&scratch, &other.split(' ').collect::<Vec<_>>());
    assert_eq!(made.status, 0, "{made:?}");
    for (words, status, message) in [
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
