//! Probes that are hit: what they record is what the program prints.

use std::path::Path;
use std::process::id;

use rperf_testkit::{Run, may_trace};

use super::programs::{probe, programs, rperf};

/// In the C program, whether it is optimised or not.
const C: &[&str] = &[
    "leaf=leaf n",
    "entry=leaf n=$arg1:s64",
    "middle=middle it->name:string it->val count it->flag it->mode b=it->in.b[2] it->tag:string",
    "global=middle total",
    "back=middle%return ret=$retval:s64",
    "mix=mix c=c:s32 text=text:string small=small:u8",
];

/// A group of events that is removed at the end.
pub(super) struct Group(pub(super) String);

impl Drop for Group {
    fn drop(&mut self) {
        probe(rperf(), &["-d", &format!("{}:*", self.0)]);
    }
}

/// Lines as the program and `script` print them, by name: the order of different events at one call is not theirs.
fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.sort_by(|a, b| a.split(':').next().cmp(&b.split(':').next()));
    lines
}

/// Records the events of these definitions in a program and compares them with its output.
fn check(program: &str, definitions: &[&str], name: &str) {
    let group = Group(format!("rperf{}_{name}", id()));
    let target = format!("./{program}");
    let named: Vec<String> = definitions
        .iter()
        .map(|definition| format!("{}:{definition}", group.0))
        .collect();
    let mut words = vec!["-x", &target];
    for definition in &named {
        words.extend(["--add", definition]);
    }
    let added = probe(rperf(), &words);
    assert_eq!(added.status, 0, "{program}: {}", added.stderr);
    let data = format!("{name}.data");
    let event = format!("{}:*", group.0);
    let rperf = |words: &[&str]| {
        let run = Run::new(rperf()).args(words).within(programs());
        run.env("HOME", programs()).finish().expect("rperf starts")
    };
    let recorded = rperf(&[
        "record", "-q", "-o", &data, "-e", &event, "--", &target, "3",
    ]);
    assert_eq!(recorded.status, 0, "{program}: {}", recorded.stderr);
    let shown = rperf(&["script", "-i", &data, "-F", "event,trace"]);
    let prefix = format!("{}:", group.0);
    let found = shown.stdout.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix(&prefix)?;
        let (event, rest) = line.split_once(": (")?;
        let (_, values) = rest.split_once(')')?;
        Some(format!("{event}:{values}"))
    });
    let printed = recorded.stdout.lines().map(str::to_owned);
    let (found, printed) = (sorted(found), sorted(printed));
    assert_eq!(found, printed, "{program}: {}", shown.stderr);
    assert!(!found.is_empty());
}

pub(super) fn can_probe(test: &str) -> bool {
    may_trace(test) && {
        let may = Path::new("/sys/kernel/tracing/uprobe_events").exists();
        if !may {
            rperf_testkit::skip(test, "the kernel has no uprobe_events");
        }
        may
    }
}

#[test]
fn values_of_c_are_those_that_the_program_prints() {
    if can_probe("values_of_c_are_those_that_the_program_prints") {
        for program in ["plain", "optimised", "fixed", "split", "apart"] {
            check(program, C, program);
        }
    }
}

#[test]
fn marked_places_are_switched_on_and_give_their_own_values() {
    if can_probe("marked_places_are_switched_on_and_give_their_own_values") {
        check("marked", &["tick=%sdt_demo:tick"], "marked");
    }
}

#[test]
fn values_of_cpp_and_rust_are_those_that_the_program_prints() {
    if can_probe("values_of_cpp_and_rust_are_those_that_the_program_prints") {
        let cpp = [
            "area=area this->x_ this->tag scale",
            "sum=_ZN3geo3sumERKNS_5PointEPKc p.x_ label=label:string",
            "number=_ZN3geo3sumEi n",
        ];
        check("plain++", &cpp, "cpp");
        let rust = [
            "weigh=weigh item->value:u64 factor=factor:u64 length=item->name.length:u64",
            "scale=inner::scale number",
        ];
        check("plain-rs", &rust, "rust");
    }
}

#[test]
fn events_that_were_just_added_are_listed_and_counted() {
    if !can_probe("events_that_were_just_added_are_listed_and_counted") {
        return;
    }
    let group = Group(format!("rperf{}_listed", id()));
    let added = ["middle=middle val=%di", "leaf=leaf"].map(|what| format!("{}:{what}", group.0));
    let words = ["-x", "./plain", "--add", &added[0], "--add", &added[1]];
    let outcome = probe(rperf(), &words);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let rperf = |words: &[&str]| {
        let run = Run::new(rperf()).args(words).within(programs());
        run.env("HOME", programs()).finish().expect("rperf starts")
    };
    let rows: String = ["leaf", "middle"]
        .map(|name| {
            format!(
                "  {:<50} [Tracepoint event]\n",
                format!("{}:{name}", group.0)
            )
        })
        .concat();
    let all = format!("{}:*", group.0);
    assert_eq!(rperf(&["list", &all]).stdout, rows);
    assert!(rperf(&["list"]).stdout.contains(&rows));
    let middle = format!("{}:middle", group.0);
    let told = rperf(&["list", "-v", &middle]).stdout;
    let defined = format!("\n       defined as p:{}/middle /", group.0);
    assert!(
        told.contains(&defined) && told.contains("\n       u64 val "),
        "{told}"
    );
    // Once in each round.
    let counted = rperf(&["stat", "-x,", "-e", &all, "./plain", "5"]);
    let counts = |name: &str| {
        let name = format!(",,{}:{name},", group.0);
        let row = counted.stderr.lines().find(|line| line.contains(&name));
        row.and_then(|row| row.split(',').next()?.parse::<u64>().ok())
    };
    for name in ["middle", "leaf"] {
        assert_eq!(counts(name), Some(5), "{}", counted.stderr);
    }
}
