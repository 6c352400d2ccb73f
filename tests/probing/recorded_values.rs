//! Probes that are hit: the recorded values equal the program's output.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::id;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rperf_testkit::{Run, may_trace};

use super::programs::{probe, programs, rperf};

/// A definition, and a template of the records of its events: those of one round of the program, separated by `|`. A round is an
/// iteration of the loop in its `main`.
///
/// - `{leaf.n}` is what the program printed as `n` after `leaf:`, `{leaf.n#x}` the same in hexadecimal, `{leaf.n#b}` its bits 2
///   to 5.
/// - A field that ends with `*` may end with anything.
/// - `^once` is a record of the whole run, without records in the rounds; `^once^each` is that record, followed by the records
///   `each` of every round.
/// - `~` at the start: each record occurs at least once, in any order. It is for probes that may be hit several times in a round:
///   in a loop, or at several addresses.
///
/// An empty record has no fields.
pub(super) type Row = (&'static str, &'static str);

/// Rows for the C program, optimised or not: most of the definitions in tests/probing/definitions.rs, and more. They have no
/// names of events, which [`check`] adds, and no two fields of one name, which kernels refuse.
const C: &[Row] = &[
    ("leaf", ""),
    ("leaf n", "n={leaf.n}"),
    ("leaf n:u8", "n_u8={leaf.n}"),
    ("leaf n:x", "n_x={leaf.n#x}"),
    ("leaf n:u n:s32", "n_u={leaf.n} n_s32={leaf.n}"),
    ("leaf a=n b=n c=%di:u32", "a={leaf.n} b={leaf.n} c={leaf.n}"),
    ("leaf@probed.c n", "n={leaf.n}"),
    ("leaf $arg1:s64", "arg1={leaf.n}"),
    ("leaf %di:u16", "arg1={leaf.n}"),
    ("leaf $stack %ip $comm", "arg1=* arg2=* arg3=*"),
    ("leaf \\5:u8", "arg1=5"),
    ("leaf%return", ""),
    ("leaf%return $retval", "arg1={more.leaf#x}"),
    ("leaf%return ret=$retval:s64", "ret={more.leaf}"),
    (
        "middle it->name:string it->val count",
        "name={middle.name} val={middle.val} count={middle.count}",
    ),
    (
        "middle it->flag it->mode b=it->in.b[2] it->tag:string",
        "flag={middle.flag} mode={middle.mode} b={middle.b} tag={middle.tag}",
    ),
    ("middle it->id it->in.a", "id={more.id} a={more.a}"),
    ("middle it->u", "u={more.u}"),
    ("middle it->in.b[2]:x8", "b={middle.b#x}"),
    ("middle it->grid[1][2]", "grid={more.grid}"),
    ("middle it->next->name:string", "name={middle.name}"),
    ("middle it->next->next->val", "val={middle.val}"),
    ("middle it->next->name:ustring", "name={middle.name}"),
    ("middle it", "it=*"),
    ("middle $params", "it=* count={middle.count}"),
    ("middle count:x32", "count_x32={middle.count#x}"),
    ("middle total", "total={global.total}"),
    // A variable in `.bss`, to which the program writes 77.
    ("middle zeroed", "zeroed=77"),
    ("middle%return ret=$retval:s64", "ret={back.ret}"),
    ("middle%return $retval", "arg1={back.ret#x}"),
    (
        "mix c text:string small",
        "c={mix.c#x} text_string={mix.text} small={mix.small#x}",
    ),
    ("mix small:u8 c:s32", "small_u8={mix.small} c_s32={mix.c}"),
    ("other n", "n={more.round}"),
    ("other%return", ""),
    ("mi*", "|"),
    ("leaf+0 %di:s64", "arg1={leaf.n}"),
    ("leaf@probed.c", ""),
    ("leaf;s+=*", "~"),
    ("leaf;s+=* n", "~n={leaf.n}"),
    ("leaf n=n:b4@2/8", "n={leaf.n#b}"),
    (
        "leaf %ax %di $stack $stack0 $comm +0(%di) +8(-16(%sp)):u32",
        "arg1=* arg2={leaf.n#x} arg3=* arg4=* arg5=* arg6=* arg7=*",
    ),
    ("probed.c;total*", "~"),
    // `main` once; `middle` and `mix` in each round.
    ("m*", "^^|"),
    ("twice", "~"),
    ("middle:4", ""),
    ("middle it->in.a it->in.b[-1]:x8", "a={more.a} b={more.a#x}"),
    ("middle it->in it->next->name", "in=* name=*"),
    (
        "mix text:ustring text@user",
        "text_ustring={mix.text} text=*",
    ),
    ("main argv[0]:string argc", "^argv=\"./* argc=2"),
    ("main%return ret=$retval", "^ret=0x0"),
    ("middle +16(%di):s64", "arg1={middle.val}"),
];

/// Rows that need no debug information.
const NO_DEBUG_ROWS: &[Row] = &[
    ("leaf", ""),
    ("leaf%return ret=$retval:s64", "ret={more.leaf}"),
    ("leaf%return $retval", "arg1={more.leaf#x}"),
    ("middle %di +8(%di):u64", "arg1=* arg2=*"),
    (
        "middle count=%si:s32 val=+16(%di):u64 name=+0(+8(%di)):string",
        "count={middle.count} val={middle.val} name={middle.name}",
    ),
    ("mi*", "|"),
    // Variables in `.data` (its contents are in the file) and in `.bss`.
    (
        "middle total=@total:s64 zeroed=@zeroed:s64",
        "total={global.total} zeroed=77",
    ),
];

/// Rows for the C program without optimisation. `twice` is then not inlined; it is called three times in a round: by `middle`
/// with `count`, by `other` with the number of the round and with this number + 1, which is `count`, too. Other source lines
/// with several records in a round have several addresses.
const PLAIN: &[Row] = &[
    ("leaf:5 n s", "n={leaf.n} s={more.leaf}"),
    ("leaf:2", ""),
    (
        "middle:4 s count it->val",
        "s={more.leaf} count={middle.count} val={middle.val}",
    ),
    (
        "middle total hidden",
        "total={global.total} hidden={more.hidden}",
    ),
    ("middle $vars", "it=* count={middle.count} s=*"),
    (
        "twice v",
        "v={middle.count}|v={more.round}|v={middle.count}",
    ),
    (
        "twice:3 v",
        "v={middle.count}|v={more.round}|v={middle.count}",
    ),
    ("other:2 n", "n={more.round}|n={more.round}|n={more.round}"),
    ("probed.c:51 it->val", "val={middle.val}"),
    ("middle;total*s* s", "s={more.leaf}"),
    ("leaf:3", "~"),
    ("probed.c:41 n", "n={leaf.n}"),
    (
        "twice v r",
        "v={middle.count} r=*|v={more.round} r=*|v={middle.count} r=*",
    ),
    (
        "twice:2 v",
        "v={middle.count}|v={more.round}|v={middle.count}",
    ),
    (
        "twice:3 v r",
        "v={middle.count} r=*|v={more.round} r=*|v={middle.count} r=*",
    ),
    ("middle:5 s", "s={more.leaf}|s={more.leaf}"),
    // 1.5 in IEEE 754.
    ("mix d", "d=0x3ff8000000000000"),
    (
        "mix $vars",
        "d=0x3ff8000000000000 c={mix.c#x} text=* small={mix.small#x} buffer=*",
    ),
    (
        "main it.val it.name:string it.in.b[1] argv[0] rounds",
        "^val=* name=* b=* argv=* rounds=*",
    ),
    ("main:7 rounds", "^rounds=*"),
];

const CPP: &[Row] = &[
    (
        "area this->x_ this->tag scale",
        "x_={area.x_} tag={area.tag} scale={area.scale}",
    ),
    ("area%return ret=$retval:s64", "ret={area.ret}"),
    (
        "_ZN3geo3sumERKNS_5PointEPKc p.x_ label=label:string",
        "x_={sum.x_} label={sum.label}",
    ),
    ("_ZN3geo3sumERKNS_5PointEPKc p.tag", "tag={area.tag}"),
    ("_ZN3geo3sumEi n", "n={number.n}"),
    ("_ZN3geo3sumEi%return ret=$retval:s64", "ret={number.ret}"),
    ("area", ""),
    ("probed.cpp:24", "~"),
    ("main", "^"),
];

/// Rows for the optimised C++ program, which lacks the other variables and functions of [`CPP`].
const OPTIMISED_CPP: &[Row] = &[
    ("area", ""),
    ("area scale", "scale={area.scale}"),
    ("area%return ret=$retval:s64", "ret={area.ret}"),
    ("_ZN3geo3sumEi n", "n={number.n}"),
    ("probed.cpp:24", "~"),
    ("main", "^"),
];

const RUST: &[Row] = &[
    (
        "weigh item->value:u64 factor=factor:u64 length=item->name.length:u64",
        "value={weigh.value} factor={weigh.factor} length={weigh.length}",
    ),
    ("weigh factor=factor:u64", "factor={weigh.factor}"),
    ("inner::scale number", "number={scale.number}"),
    ("scale number", "number={scale.number}"),
    ("weigh", ""),
    ("weigh item->value", "value=*"),
    ("inner::scale%return $retval", "arg1=*"),
];

/// The name of a group of events, which are removed on drop. The kernel lists events page by page, and skips one if others are
/// removed meanwhile: there is only one group at a time.
pub(super) struct Group(
    pub(super) String,
    #[expect(dead_code, reason = "the lock is held until the events are removed")]
    MutexGuard<'static, ()>,
);

impl Group {
    pub(super) fn new(name: &str) -> Self {
        static LOCK: Mutex<()> = Mutex::new(());
        let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        Self(format!("rperf{}_{name}", id()), lock)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        probe(rperf(), &["-d", &format!("{}:*", self.0)]);
    }
}

/// The values that a program printed, round by round: `leaf: n=10` gives `leaf.n` the value `10`. A line whose name the round
/// already has begins the next round.
fn facts(printed: &str) -> Vec<BTreeMap<String, String>> {
    let mut rounds = vec![BTreeMap::new()];
    let mut seen = Vec::new();
    for line in printed.lines() {
        let Some((name, values)) = line.split_once(": ") else {
            continue;
        };
        if seen.contains(&name) {
            rounds.push(BTreeMap::new());
            seen.clear();
        }
        seen.push(name);
        let pairs = values.split(' ').filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(key, value)| (format!("{name}.{key}"), value.to_owned()));
        rounds.last_mut().expect("one is there").extend(pairs);
    }
    rounds
}

/// Replaces the `{…}` in a template by what the program printed in one round.
fn with_facts(template: &str, facts: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (key, after) = after.split_once('}').expect("a brace that closes");
        text.push_str(before);
        let fact = |key: &str| facts.get(key).unwrap_or_else(|| panic!("no {key}"));
        let number = |key| -> i64 { fact(key).parse().expect("a number") };
        match key.split_once('#') {
            Some((key, "x")) => text.push_str(&format!("{:#x}", number(key))),
            // `#b`: bits 2 to 5.
            Some((key, _)) => text.push_str(&(number(key) >> 2 & 15).to_string()),
            None => text.push_str(fact(key)),
        }
        rest = after;
    }
    text + rest
}

/// Whether a record has the expected fields. An expected field that ends with `*` matches all fields that begin like it.
fn matches_record(expected: &str, found: &str) -> bool {
    let (expected, found) = (expected.split(' '), found.split(' '));
    expected.clone().count() == found.clone().count()
        && expected
            .zip(found)
            .all(|(expected, found)| match expected.strip_suffix('*') {
                Some(start) => found.starts_with(start),
                None => expected == found,
            })
}

/// All records that are expected for the template of a row.
fn expected(template: &str, rounds: &[BTreeMap<String, String>]) -> Vec<String> {
    let template = template.trim_start_matches('~');
    let (once, each) = match template.strip_prefix('^') {
        Some(rest) => match rest.split_once('^') {
            Some((once, each)) => (Some(once), Some(each)),
            None => (Some(rest), None),
        },
        None => (None, Some(template)),
    };
    let once = once.map(str::to_owned);
    let each = rounds.iter().flat_map(|facts| {
        let records = each.into_iter().flat_map(|each| each.split('|'));
        records.map(|record| with_facts(record, facts))
    });
    once.into_iter().chain(each).collect()
}

/// Whether the records match: one by one, or with `may_repeat` each expected one at least once, in any order, and no others.
fn match_records(expected: &[String], found: &[&str], may_repeat: bool) -> bool {
    if may_repeat {
        let is_expected = |found: &&str| {
            expected
                .iter()
                .any(|expected| matches_record(expected, found))
        };
        let is_found =
            |expected: &String| found.iter().any(|found| matches_record(expected, found));
        return found.iter().all(is_expected) && expected.iter().all(is_found);
    }
    let mut pairs = expected.iter().zip(found);
    expected.len() == found.len() && pairs.all(|(expected, found)| matches_record(expected, found))
}

/// Adds the events of these rows, records a run of the program, and compares the records with what the program printed. `name`
/// is that of the group of events and of the recording.
pub(super) fn check(program: &str, rows: &[&[Row]], name: &str) {
    let group = Group::new(name);
    let target = format!("./{program}");
    let rows: Vec<Row> = rows.concat();
    let named = rows.iter().enumerate();
    let named = named.map(|(index, (definition, _))| format!("{}:e{index}={definition}", group.0));
    let named: Vec<String> = named.collect();
    let mut words = vec!["-x", &target];
    for definition in &named {
        words.extend(["--add", definition]);
    }
    let added = probe(rperf(), &words);
    assert_eq!(added.status, 0, "{program}: {}", added.stderr);
    let data = format!("{name}.data");
    let all = format!("{}:*", group.0);
    let run_rperf = |words: &[&str]| {
        let run = Run::new(rperf()).args(words).within(programs());
        run.env("HOME", programs()).finish().expect("rperf starts")
    };
    let recorded = run_rperf(&["record", "-q", "-o", &data, "-e", &all, "--", &target, "3"]);
    assert_eq!(recorded.status, 0, "{program}: {}", recorded.stderr);
    let script = run_rperf(&["script", "-i", &data, "-F", "event,trace"]);
    let prefix = format!("{}:e", group.0);
    let mut found: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for line in script.stdout.lines() {
        let line = line.trim_start().strip_prefix(&prefix).unwrap_or_default();
        let Some((event, rest)) = line.split_once(": (") else {
            continue;
        };
        let values = rest.split_once(')').map_or("", |(_, values)| values.trim());
        // Each location of a definition has an event. Its name after the prefix: the number of the row, `__return` for a return
        // probe, and `_` with another number unless it is the first location.
        let index = event.split('_').next().unwrap_or_default();
        let index = index.parse().expect("the number of a row");
        found.entry(index).or_default().push(values);
    }
    let rounds = facts(&recorded.stdout);
    for (index, (definition, template)) in rows.iter().enumerate() {
        let found = found.get(&index).map_or(&[][..], Vec::as_slice);
        let expected = expected(template, &rounds);
        assert!(
            match_records(&expected, found, template.starts_with('~')),
            "{program}: {definition}\nexpected {expected:?}\nfound {found:?}\n{}",
            script.stderr
        );
    }
}

/// Whether this user can create uprobes; otherwise prints that the test is skipped.
pub(super) fn can_probe(test: &str) -> bool {
    may_trace(test) && {
        let exists = Path::new("/sys/kernel/tracing/uprobe_events").exists();
        if !exists {
            rperf_testkit::skip(test, "the kernel has no uprobe_events");
        }
        exists
    }
}

#[test]
fn values_of_c_match_the_programs_output() {
    if can_probe("values_of_c_match_the_programs_output") {
        let alike = [
            "optimised",
            "fixed",
            "compressed",
            "dwarf4",
            "split",
            "type_units",
            "separate_debug",
        ];
        for program in alike {
            check(program, &[C], program);
        }
        check("nodebug", &[NO_DEBUG_ROWS], "nodebug");
        check("plain", &[C, PLAIN], "plain");
    }
}

#[test]
fn usdt_probes_are_enabled_and_record_their_arguments() {
    if can_probe("usdt_probes_are_enabled_and_record_their_arguments") {
        let rows: [Row; 3] = [
            (
                "%sdt_demo:tick",
                "arg1={tick.arg1} arg2={tick.arg2} arg3={tick.arg3}",
            ),
            (
                "%sdt_demo:tick count=arg3 value=arg2:x arg1",
                "count={tick.arg3} value={tick.arg2#x} arg1={tick.arg1}",
            ),
            (
                "%sdt_demo:tick $params",
                "arg1={tick.arg1} arg2={tick.arg2} arg3={tick.arg3}",
            ),
        ];
        check("marked", &[&rows], "marked");
    }
}

#[test]
fn values_of_cpp_and_rust_match_the_programs_output() {
    if can_probe("values_of_cpp_and_rust_match_the_programs_output") {
        check("plain++", &[CPP], "cpp");
        check("optimised++", &[OPTIMISED_CPP], "cpp2");
        check("plain-rs", &[RUST], "rust");
        // Without the rows that read members of `item` or the return value.
        check("optimised-rs", &[&RUST[1..5]], "rust2");
    }
}

#[test]
fn events_that_were_just_added_are_listed_and_counted() {
    if !can_probe("events_that_were_just_added_are_listed_and_counted") {
        return;
    }
    let group = Group::new("listed");
    let definitions = ["middle=middle val=%di", "leaf=leaf"]
        .map(|definition| format!("{}:{definition}", group.0));
    let [middle, leaf] = &definitions;
    let words = ["-x", "./plain", "--add", middle, "--add", leaf];
    let outcome = probe(rperf(), &words);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let run_rperf = |words: &[&str]| {
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
    assert_eq!(run_rperf(&["list", &all]).stdout, rows);
    assert!(run_rperf(&["list"]).stdout.contains(&rows));
    let middle = format!("{}:middle", group.0);
    let output = run_rperf(&["list", "-v", &middle]).stdout;
    let defined = format!("\n       defined as p:{}/middle /", group.0);
    assert!(
        output.contains(&defined) && output.contains("\n       u64 val "),
        "{output}"
    );
    // Each of the 5 rounds hits each event once.
    let counted = run_rperf(&["stat", "-x,", "-e", &all, "./plain", "5"]);
    let counts = |name: &str| {
        let name = format!(",,{}:{name},", group.0);
        let row = counted.stderr.lines().find(|line| line.contains(&name));
        row.and_then(|row| row.split(',').next()?.parse::<u64>().ok())
    };
    for name in ["middle", "leaf"] {
        assert_eq!(counts(name), Some(5), "{}", counted.stderr);
    }
}
