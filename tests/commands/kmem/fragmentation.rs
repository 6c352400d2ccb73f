//! `kmem fragmentation`: planted fragmentation, and numbers recomputed from `script`.

use std::collections::{BTreeMap, BTreeSet};

use rperf_testkit::{Scratch, may_trace};
use serde_json::{Value, json};

use super::recording::{self, KmemFile, Pages};
use super::{field, hex, run};

const UNMOVABLE: u32 = 0;
const MOVABLE: u32 = 1;
/// Pages of a pageblock.
const PAGEBLOCK: u64 = 512;

fn fragmentation(scratch: &Scratch, words: &[&str]) -> Value {
    let all = [&["kmem", "fragmentation", "--json"], words].concat();
    let printed = run(scratch, &all);
    assert_eq!(printed.status, 0, "{printed:?}");
    serde_json::from_str(&printed.stdout).unwrap_or_else(|error| panic!("{error}: {printed:?}"))
}

fn pages(function: &'static str, frame: u64, order: u32, migrate_type: u32) -> Pages {
    Pages {
        function,
        frame,
        order,
        migrate_type,
    }
}

/// Returns a recording in which `leaking_pages` keeps an unmovable page in each of 50 pageblocks, and `late_burst` uses parts of
/// movable blocks. The first argument of each event is its time in ms; pairs of sizes are bytes requested and allocated.
fn planted() -> Vec<u8> {
    let mut file = KmemFile::new(recording::PAGE_SIZE);
    for number in 0..50 {
        let frame = 10_000 * PAGEBLOCK + number * PAGEBLOCK;
        file.pages_of(number, pages("leaking_pages", frame + 7, 0, UNMOVABLE));
        // Movable pages in ten of the pageblocks.
        if number < 10 {
            file.pages_of(number, pages("busy_path", frame + 8, 0, MOVABLE));
        }
    }
    // 20 unmovable pages in one pageblock do less harm than 50 pages in 50 pageblocks.
    for number in 0..20 {
        file.pages_of(
            100,
            pages("cache_fill", 500 * PAGEBLOCK + number, 0, UNMOVABLE),
        );
    }
    // A whole pageblock that is not freed, and eight pages of which five are freed one by one.
    file.pages_of(110, pages("busy_path", 700 * PAGEBLOCK, 9, MOVABLE));
    file.pages_of(120, pages("busy_path", 800 * PAGEBLOCK, 3, MOVABLE));
    for page in [0, 2, 3, 6, 7] {
        file.free_pages(130, 800 * PAGEBLOCK + page, 0);
    }
    // Four pages that are freed, and were allocated before the recording.
    file.free_pages(131, 900 * PAGEBLOCK, 2);
    // A page that is allocated again without a free.
    file.pages_of(132, pages("busy_path", 950 * PAGEBLOCK, 0, MOVABLE));
    file.pages_of(133, pages("busy_path", 950 * PAGEBLOCK, 0, MOVABLE));
    // Requests that fail.
    for _ in 0..4 {
        file.pages_of(140, pages("busy_path", u64::MAX, 9, MOVABLE));
    }
    // Fallbacks to movable blocks: three of order 5, which are smaller than a pageblock, and one of order 9, a whole pageblock.
    for number in 0..3 {
        let taken = pages("late_burst", 960 * PAGEBLOCK + number, 0, UNMOVABLE);
        file.fallback(150 + number, taken, 5);
    }
    let taken = pages("cache_fill", 970 * PAGEBLOCK, 1, UNMOVABLE);
    file.fallback(160, taken, 9);
    for number in 0..5 {
        file.cache_object(170, "dentry", 0x1000 + number * 0x100, [192, 192]);
        file.cache_object(170, "wasteful", 0x2000 + number * 0x100, [20, 100]);
    }
    file.free(180, 0x2000);
    // By kmalloc() in process 70.
    file.object(190, 70, "busy_path", 0x3000, 2048);
    // An object whose allocation fails.
    file.cache_object(191, "wasteful", 0, [20, 100]);
    file.finish()
}

#[test]
fn planted_fragmentation_is_found_and_named() {
    let scratch = Scratch::new();
    scratch.write("perf.data", planted()).expect("a file");
    let symbols = recording::kallsyms();
    scratch.write("symbols", symbols).expect("a file");
    let report = fragmentation(&scratch, &["--kallsyms", "symbols"]);
    let order = |order: u32, kind: &str, numbers: [u64; 6]| {
        let [requests, failed, allocated, freed, reused, outstanding] = numbers;
        json!({
            "order": order, "migrate_type": kind, "requests": requests, "failed": failed, "allocated_pages": allocated,
            "freed_pages": freed, "reused_pages": reused, "outstanding_pages": outstanding,
        })
    };
    let expected = json!([
        order(0, "unmovable", [70, 0, 70, 0, 0, 70]),
        order(0, "movable", [12, 0, 12, 0, 1, 11]),
        order(3, "movable", [1, 0, 8, 5, 0, 3]),
        order(9, "movable", [5, 4, 512, 0, 0, 512]),
    ]);
    assert_eq!(report["orders"], expected);
    assert_eq!(report["freed_earlier_pages"], json!({"2": 4}));
    // 50 pageblocks of leaking_pages, and one each of cache_fill, of order 9, of order 3 and of the page that is allocated again.
    let outstanding =
        json!({"order": 9, "pageblocks": 54, "pages": 70 + 11 + 3 + 512, "mixed": 10});
    assert_eq!(report["outstanding"], outstanding);
    let types = report["outstanding_types"].as_array().expect("rows");
    assert_eq!(
        (&types[0]["pages"], &types[0]["pageblocks"]),
        (&70.into(), &51.into())
    );
    let fill = types[0]["fill_percent"].as_f64().expect("a number");
    assert!(
        (fill - 100.0 * 70.0 / (51.0 * 512.0)).abs() < 1e-9,
        "{fill}"
    );
    assert_eq!(
        (&types[1]["pages"], &types[1]["pageblocks"]),
        (&526.into(), &13.into())
    );
    let pinning = json!([
        {"pageblocks": 50, "pages": 50, "caller": "leaking_pages+10"},
        {"pageblocks": 1, "pages": 20, "caller": "cache_fill+10"},
    ]);
    assert_eq!(report["pinning_callers"], pinning);
    let callers = json!([
        {"events": 3, "fragmenting": 3, "caller": "late_burst+10"},
        {"events": 1, "fragmenting": 0, "caller": "cache_fill+10"},
    ]);
    assert_eq!(report["fallback_callers"], callers);
    let fallback = |numbers: [u32; 3], is_fragmenting: &str, changes: &str| {
        let [order, from_order, events] = numbers;
        json!({
            "order": order, "migrate_type": "unmovable", "from_order": from_order, "from_migrate_type": "movable",
            "is_fragmenting": is_fragmenting, "changes_ownership": changes, "events": events,
        })
    };
    // Order, order of the block that is taken, and number of events; is_fragmenting, changes_ownership.
    let fallbacks = json!([
        fallback([0, 5, 3], "yes", "no"),
        fallback([1, 9, 1], "no", "yes")
    ]);
    assert_eq!(report["fallbacks"], fallbacks);
    let caches = report["caches"].as_array().expect("rows");
    let wasteful = json!({
        "cache": "wasteful", "objects": 5, "failed": 1, "requested_bytes": 100, "allocated_bytes": 500, "wasted_bytes": 400,
        "wasted_percent": 80.0, "live": 4, "live_bytes": 400, "live_wasted_bytes": 320,
    });
    assert_eq!(caches[0], wasteful);
    let names: Vec<&str> = caches
        .iter()
        .filter_map(|row| row["cache"].as_str())
        .collect();
    assert_eq!(names, ["wasteful", "kmalloc-2k", "dentry"]);
}

#[test]
fn the_text_names_planted_fragmentation() {
    let scratch = Scratch::new();
    scratch.write("perf.data", planted()).expect("a file");
    let symbols = recording::kallsyms();
    scratch.write("symbols", symbols).expect("a file");
    let text = |words: &[&str]| {
        let all = [&["kmem", "fragmentation", "--kallsyms", "symbols"], words].concat();
        let printed = run(&scratch, &all);
        assert_eq!(
            (printed.status, printed.stderr.as_str()),
            (0, ""),
            "{printed:?}"
        );
        let lines = printed.stdout.lines();
        let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        words.collect::<Vec<_>>()
    };
    let all = text(&[]);
    for line in [
        "9 movable 5 4 512 0 0 512",
        "4 pages were freed that had been allocated earlier (order 2: 4).",
        "1 page was allocated again although no free was recorded; counted as freed.",
        "10 of 54 pageblocks have pages that can be moved and pages that cannot.",
        "50 50 leaking_pages+10",
        "Events of external fragmentation: 4, 3 of them from blocks smaller than a pageblock",
        "0 unmovable 5 movable yes no 3",
        "3 3 late_burst+10",
        "wasteful 5 1 100 500 400 80.00% 4 400 320",
    ] {
        assert!(
            all.iter().any(|printed| printed == line),
            "{line}: {all:#?}"
        );
    }
    let slab = text(&["--slab", "-l", "1"]);
    assert!(
        !slab.iter().any(|line| line.contains("pageblock")),
        "{slab:#?}"
    );
    assert_eq!(
        slab.last().map(String::as_str),
        Some("... 2 more; -l shows more")
    );
    let page = text(&["--page"]);
    assert!(
        !page.iter().any(|line| line.contains("wasteful")),
        "{page:#?}"
    );
}

/// The numbers of pages, recomputed page by page.
#[derive(Debug, Default)]
struct PageOracle {
    /// Requests, failed requests, and pages allocated, freed, and allocated again without a free, by order and migrate type.
    classes: BTreeMap<(u64, u64), [u64; 5]>,
    /// The class of each live page.
    live: BTreeMap<u64, (u64, u64)>,
    /// Freed pages that were allocated before the recording, by order.
    earlier: BTreeMap<String, u64>,
    fallbacks: u64,
}

impl PageOracle {
    fn add(&mut self, event: &str, fields: &str) {
        let text = |name| field(fields, name).unwrap_or_else(|| panic!("{name}: {fields}"));
        if event.ends_with("extfrag") {
            self.fallbacks += 1;
            return;
        }
        let order: u64 = text("order").parse().expect("an order");
        let frame = hex(text("pfn"));
        let frames = frame..frame.saturating_add(1 << order);
        if event.ends_with("mm_page_alloc") {
            let class = (order, text("migratetype").parse().expect("a type"));
            self.classes.entry(class).or_default()[0] += 1;
            if frame == u64::MAX {
                self.classes.entry(class).or_default()[1] += 1;
                return;
            }
            for frame in frames {
                self.classes.entry(class).or_default()[2] += 1;
                if let Some(older) = self.live.insert(frame, class) {
                    self.classes.entry(older).or_default()[4] += 1;
                }
            }
            return;
        }
        for frame in frames {
            match self.live.remove(&frame) {
                Some(class) => self.classes.entry(class).or_default()[3] += 1,
                None => *self.earlier.entry(order.to_string()).or_default() += 1,
            }
        }
    }
}

/// The numbers of objects, recomputed object by object.
#[derive(Debug, Default)]
struct CacheOracle {
    /// Objects, bytes requested and allocated, by cache.
    caches: BTreeMap<String, [u64; 3]>,
    /// Cache, bytes requested and allocated, by address.
    live: BTreeMap<u64, (String, u64, u64)>,
}

impl CacheOracle {
    fn add(&mut self, event: &str, fields: &str) {
        let text = |name| field(fields, name).unwrap_or_else(|| panic!("{name}: {fields}"));
        let pointer = hex(text("ptr"));
        if event.contains("free") {
            self.live.remove(&pointer);
            return;
        }
        let [requested, allocated] =
            ["bytes_req", "bytes_alloc"].map(|name| text(name).parse::<u64>().expect("a size"));
        let cache = match field(fields, "name") {
            Some(name) => name.to_owned(),
            None if allocated % 1024 == 0 && allocated > 0 => {
                format!("kmalloc-{}k", allocated / 1024)
            }
            None => format!("kmalloc-{allocated}"),
        };
        let sums = self.caches.entry(cache.clone()).or_default();
        *sums = [sums[0] + 1, sums[1] + requested, sums[2] + allocated];
        self.live.insert(pointer, (cache, requested, allocated));
    }
}

#[test]
fn numbers_match_the_events_of_script() {
    const NAME: &str = "commands::kmem::fragmentation::numbers_match_the_events_of_script";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let command = "for i in 1 2 3; do ls -lR /usr/share/doc > /dev/null & done; wait";
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
    let script = run(&scratch, &["script", "-F", "event,trace"]);
    assert_eq!(script.status, 0, "{script:?}");
    let (mut pages, mut caches) = (PageOracle::default(), CacheOracle::default());
    for line in script.stdout.lines() {
        let Some((event, fields)) = line.trim().split_once(": ") else {
            continue;
        };
        match event.contains("mm_page") {
            true => pages.add(event, fields),
            false => caches.add(event, fields),
        }
    }
    let report = fragmentation(&scratch, &[]);
    check_pages(&report, &pages);
    // Live objects, their bytes and their wasted bytes, by cache.
    let mut live: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for (cache, requested, allocated) in caches.live.values() {
        let sums = live.entry(cache).or_default();
        *sums = [
            sums[0] + 1,
            sums[1] + allocated,
            sums[2] + allocated - requested,
        ];
    }
    let rows = report["caches"].as_array().expect("rows");
    assert!(rows.len() > 10, "{rows:?}");
    assert_eq!(rows.len(), caches.caches.len());
    for row in rows {
        let cache = row["cache"].as_str().expect("a name");
        let number = |key: &str| row[key].as_u64().expect("a number");
        let sums = ["objects", "requested_bytes", "allocated_bytes"].map(number);
        assert_eq!(Some(&sums), caches.caches.get(cache), "{cache}");
        assert_eq!(number("wasted_bytes"), sums[2] - sums[1], "{cache}");
        let expected = live.get(cache).copied().unwrap_or_default();
        let sums = ["live", "live_bytes", "live_wasted_bytes"].map(number);
        assert_eq!(sums, expected, "{cache}");
    }
}

/// Compares everything that the report says about pages with the recomputed numbers.
fn check_pages(report: &Value, pages: &PageOracle) {
    const TYPES: [&str; 5] = [
        "unmovable",
        "movable",
        "reclaimable",
        "highatomic",
        "cma/isolate",
    ];
    let type_name = |number: u64| TYPES[usize::try_from(number).expect("a small number")];
    let rows = report["orders"].as_array().expect("rows").iter();
    let rows: BTreeMap<(u64, &str), [u64; 5]> = rows
        .map(|row| {
            let number = |key: &str| row[key].as_u64().expect("a number");
            let name = row["migrate_type"].as_str().expect("a type");
            let keys = [
                "requests",
                "failed",
                "allocated_pages",
                "freed_pages",
                "reused_pages",
            ];
            ((number("order"), name), keys.map(number))
        })
        .collect();
    let expected = pages.classes.iter();
    let expected: BTreeMap<(u64, &str), [u64; 5]> = expected
        .map(|((order, migrate_type), counts)| ((*order, type_name(*migrate_type)), *counts))
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(rows, expected);
    assert_eq!(report["freed_earlier_pages"], json!(pages.earlier));
    let fallbacks = report["fallbacks"].as_array().expect("rows").iter();
    let fallbacks: u64 = fallbacks.filter_map(|row| row["events"].as_u64()).sum();
    assert_eq!(fallbacks, pages.fallbacks);
    // The pageblocks with live pages of the migrate types that `is_counted` accepts by their numbers.
    let blocks = |is_counted: &dyn Fn(u64) -> bool| {
        let live = pages
            .live
            .iter()
            .filter(|(_, (_, number))| is_counted(*number));
        live.map(|(frame, _)| frame / PAGEBLOCK)
            .collect::<BTreeSet<u64>>()
    };
    // The indices in TYPES of movable, and of CMA or isolated.
    let is_movable = |number| matches!(number, 1 | 4);
    let [movable, other] = [blocks(&is_movable), blocks(&|number| !is_movable(number))];
    let any_type = |_: u64| true;
    let outstanding = json!({
        "order": 9,
        "pageblocks": blocks(&any_type).len(),
        "pages": pages.live.len(),
        "mixed": movable.intersection(&other).count(),
    });
    assert_eq!(report["outstanding"], outstanding);
    for row in report["outstanding_types"].as_array().expect("rows") {
        let name = row["migrate_type"].as_str().expect("a type");
        let position = TYPES.iter().position(|known| *known == name);
        let own_number = position.expect("known") as u64;
        let own = pages
            .live
            .values()
            .filter(|(_, number)| *number == own_number);
        assert_eq!(row["pages"], own.count(), "{name}");
        assert_eq!(
            row["pageblocks"],
            blocks(&|number| number == own_number).len(),
            "{name}"
        );
    }
}
