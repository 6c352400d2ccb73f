//! Sums of `kwork`, compared with a search through all events (the oracle).

use rperf_testkit::Scratch;

use super::recording::{
    ALL, KworkFile, SOFTIRQ_ENTRY, SOFTIRQ_EXIT, SOFTIRQ_RAISE, WORK_ACTIVATE, WORK_END,
    WORK_START, at,
};
use super::run;

/// A step in the processing of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Raise,
    Entry,
    Exit,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    /// Microseconds.
    time: u64,
    cpu: u32,
    step: Step,
    /// The number of a softirq, or the address of a work item.
    id: u64,
}

/// Ids from this one on are those of work items; lower ones are those of softirqs.
const FIRST_ITEM: u64 = 0x7000;

impl Event {
    /// Whether both are events of the same work: of a softirq on one CPU, or of a work item on any CPUs.
    fn has_same_work_as(&self, other: &Self) -> bool {
        self.id == other.id && (self.id >= FIRST_ITEM || self.cpu == other.cpu)
    }
}

/// A delay or a run: a start event and its end event, with their times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    cpu: u32,
    id: u64,
    begin: u64,
    end: u64,
}

/// Pairs each `end` with the latest `begin` of the same work, unless another `end` comes between them.
fn pairs(events: &[Event], begin: Step, end: Step) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (index, end_event) in events.iter().enumerate() {
        if end_event.step != end {
            continue;
        }
        let before = events[..index].iter().rev();
        let mut before = before.filter(|event| {
            event.has_same_work_as(end_event) && [begin, end].contains(&event.step)
        });
        if let Some(begin_event) = before.next().filter(|event| event.step == begin) {
            // The CPU is that of the entry event, which begins a run and ends a delay.
            let entry = if begin == Step::Entry {
                begin_event
            } else {
                end_event
            };
            pairs.push(Pair {
                cpu: entry.cpu,
                id: end_event.id,
                begin: begin_event.time,
                end: end_event.time,
            });
        }
    }
    pairs
}

/// A generator of numbers below a limit (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Returns random events of two softirqs and two work items on two CPUs, in order of time.
fn events(seed: u64) -> Vec<Event> {
    let mut random = Random(seed);
    let mut time = 10;
    let ids = [1, 9, FIRST_ITEM, FIRST_ITEM + 0x100];
    let mut events = Vec::new();
    for _ in 0..400 {
        time += random.below(50);
        let index = usize::try_from(random.below(4)).expect("below 4");
        events.push(Event {
            time,
            cpu: u32::try_from(random.below(2)).expect("below 2"),
            step: [Step::Raise, Step::Entry, Step::Exit]
                [usize::try_from(random.below(3)).expect("below 3")],
            id: ids[index],
        });
    }
    events
}

/// Adds an event to the recording.
fn write(file: &mut KworkFile, event: &Event) {
    let when = at(event.time, event.cpu);
    if event.id >= FIRST_ITEM {
        let kind = match event.step {
            Step::Raise => WORK_ACTIVATE,
            Step::Entry => WORK_START,
            Step::Exit => WORK_END,
        };
        file.work(kind, when, event.id);
    } else {
        let kind = match event.step {
            Step::Raise => SOFTIRQ_RAISE,
            Step::Entry => SOFTIRQ_ENTRY,
            Step::Exit => SOFTIRQ_EXIT,
        };
        file.softirq(kind, when, u32::try_from(event.id).expect("a softirq"));
    }
}

#[test]
fn sums_equal_those_of_a_search() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for seed in [1, 88_172_645_463_325_252, 7_777_777] {
        let events = events(seed);
        let mut file = KworkFile::with(ALL);
        for event in &events {
            write(&mut file, event);
        }
        scratch.write("perf.data", file.finish())?;
        for (command, begin, end) in [
            ("report", Step::Entry, Step::Exit),
            ("latency", Step::Raise, Step::Entry),
        ] {
            check(&scratch, command, &pairs(&events, begin, end));
        }
    }
    Ok(())
}

/// Compares the rows of a command's JSON with the pairs of the oracle, and the sum of the counts in its text with the number of
/// pairs.
fn check(scratch: &Scratch, command: &str, pairs: &[Pair]) {
    let json = run(scratch, &["kwork", command, "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let number = |row: &serde_json::Value, key: &str| row[key].as_u64().expect("a number");
    let mut count = 0;
    for row in rows {
        let id = row["id"].as_str().expect("text");
        let id = match id.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => id.parse(),
        };
        let (id, cpu) = (id.expect("a number"), number(row, "cpu"));
        let of_row = pairs.iter();
        let of_row = of_row.filter(|pair| pair.id == id && u64::from(pair.cpu) == cpu);
        let times: Vec<u64> = of_row.map(|pair| (pair.end - pair.begin) * 1000).collect();
        assert_eq!(number(row, "count"), times.len() as u64, "{command} {row}");
        assert_eq!(
            number(row, "total_ns"),
            times.iter().sum::<u64>(),
            "{command} {row}"
        );
        assert_eq!(
            Some(&number(row, "max_ns")),
            times.iter().max(),
            "{command} {row}"
        );
        assert_eq!(
            number(row, "max_end_ns") - number(row, "max_start_ns"),
            number(row, "max_ns"),
            "{command} {row}"
        );
        count += times.len();
    }
    assert_eq!(count, pairs.len(), "{command}: {json}");
    let text = run(scratch, &["kwork", command]).stdout;
    let printed: u64 = text
        .lines()
        .filter(|line| line.contains(" ms |"))
        .map(|line| {
            let cell = line.split('|').nth(3).expect("a count").trim();
            cell.parse::<u64>().expect("a number")
        })
        .sum();
    assert_eq!(printed, count as u64, "{text}");
}
