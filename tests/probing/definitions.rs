//! `probe -D`: perf and rperf print the same definitions.

use std::path::Path;
use std::process::Command;

use rperf_testkit::{real_perf, skip};

use super::programs::{probe, programs, rperf};

/// Definitions for which both tools print the same text, for each build of the C program whose debug information perf can read.
const C: &[&str] = &[
    "leaf",
    "leaf n",
    "leaf%return",
    "back=leaf%return",
    "own:back=leaf%return ret=$retval",
    "leaf%return $retval",
    "leaf%return ret=$retval:s64",
    "leaf;s+=*",
    "probed.c;total*",
    "m*",
    "leaf:0",
    "middle:0 count",
    "twice",
    "leaf@probed.c",
    "middle it->name:string it->val count",
    "middle it->in.b[2] it->tag:string it->tag it->u it->next->name",
    "middle it->in.a it->in.b[-1]:x8",
    "middle $params",
    "middle $vars",
    "middle it",
    "middle it->in",
    "mix c text:string small",
    "mix text:ustring text@user",
    "g:e=leaf n",
    "e=middle it->id",
    "leaf %ax %di $stack $stack0 $comm +0(%di) +8(-16(%sp)):u32",
    "leaf \\1",
    "leaf n:u8",
    "leaf n:x",
    "leaf n:u n:s32",
    "leaf n:b4@2/8",
    "leaf a=n b=n c=%di:u32",
    "middle:4",
    "middle total",
    "main argv[0]:string argc",
    "main%return ret=$retval",
];

/// Definitions for which both tools print the same text, for the C program compiled without optimisation.
const PLAIN: &[&str] = &[
    "leaf:2",
    "leaf:3",
    "leaf:5 n s",
    "probed.c:41 n",
    "probed.c:51 it->val",
    "twice v",
    "twice v r",
    "twice:2 v",
    "twice:3 v r",
    "middle:4 s count it",
    "middle:5 s",
    "middle total hidden",
    "other:2 n",
    "mix d",
    "mix $vars",
    "main it.val it.name:string it.in.b[1] argv[0] rounds",
    "main:7 rounds",
];

/// Definitions that both tools refuse.
const REFUSED: &[&str] = &[
    "leaf nosuch",
    "nosuch",
    "leaf:99",
    "leaf:1",
    "leaf+999",
    "middle it->nosuch",
    "middle it.val",
    "middle count->x",
    "middle count:string",
    "leaf:x",
    "leaf%entry",
    "leaf:3+4",
    "other%return:2",
    "leaf it->",
    "nosuch.c:3",
];

/// Programs, and definitions that perf 6.1 refuses and rperf accepts; docs/compatibility.md explains why.
const ACCEPTED_BY_RPERF: &[(&str, &str)] = &[
    ("plain", "middle it->flag it->mode"),
    ("optimised", "middle it->flag it->mode"),
    ("optimised", "leaf:3"),
    ("optimised", "mix $vars"),
    ("plain++", "area this->x_ this->tag scale"),
    ("plain++", "geo::sum%return $retval"),
    ("plain++", "twice value"),
    ("plain-rs", "inner::scale number"),
];

/// Replaces what differs on purpose: the places of global variables (only their types are kept), perf's marker for missing values
/// (`\deade12d` without `0x`), and field names of perf that kernels refuse.
fn normalized(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| match word.split_once("=@") {
            Some((name, place)) => {
                let kind = place.rsplit(':').next().unwrap_or_default();
                format!("{name}=@:{kind}")
            }
            None => {
                let word = word.replace("\\deade12d", "\\0xdeade12d");
                word.replace("n_b4@2/8=", "n_b4_2_8=")
            }
        });
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Compares what perf and rperf print for these definitions, in one run of each.
#[track_caller]
fn compare(perf: &Path, program: &str, definitions: &[&str]) {
    let target = format!("./{program}");
    let mut words = vec!["-x", &target];
    for definition in definitions {
        words.extend(["-D", definition]);
    }
    let (theirs, ours) = (probe(perf, &words), probe(rperf(), &words));
    assert_eq!(ours.status, 0, "{program}: {}", ours.stderr);
    assert_eq!(
        normalized(&ours.stdout),
        normalized(&theirs.stdout),
        "{program}: {}",
        theirs.stderr
    );
    // A definition may match several functions or places.
    assert!(ours.stdout.lines().count() >= definitions.len());
}

#[test]
fn definitions_match_perf() {
    let Some(perf) = real_perf() else {
        return skip("definitions_match_perf", "there is no perf");
    };
    for program in [
        "plain",
        "optimised",
        "fixed",
        "compressed",
        "dwarf4",
        "separate_debug",
    ] {
        compare(&perf, program, C);
    }
    compare(&perf, "plain", PLAIN);
    let cpp = ["area", "_ZN3geo3sumEi n", "probed.cpp:24", "main"];
    compare(&perf, "plain++", &cpp);
    compare(&perf, "optimised++", &cpp);
    compare(&perf, "optimised++", &["area scale"]);
    compare(
        &perf,
        "plain-rs",
        &["weigh", "scale number", "weigh factor", "weigh item->value"],
    );
    compare(
        &perf,
        "optimised-rs",
        &["weigh", "scale number", "weigh factor"],
    );
    let without_debug_information = ["leaf", "leaf%return $retval", "middle %di +8(%di):u64"];
    compare(&perf, "nodebug", &without_debug_information);
}

#[test]
fn definitions_that_perf_refuses_are_refused() {
    let Some(perf) = real_perf() else {
        return skip(
            "definitions_that_perf_refuses_are_refused",
            "there is no perf",
        );
    };
    for definition in REFUSED {
        let words = ["-x", "./plain", "-D", definition];
        let (theirs, ours) = (probe(&perf, &words), probe(rperf(), &words));
        assert_ne!(theirs.status, 0, "{definition}: {}", theirs.stdout);
        assert_ne!(ours.status, 0, "{definition}: {}", ours.stdout);
        assert_eq!(ours.stdout, "");
    }
}

#[test]
fn definitions_that_only_perf_refuses_are_accepted() {
    let Some(perf) = real_perf() else {
        return skip(
            "definitions_that_only_perf_refuses_are_accepted",
            "there is no perf",
        );
    };
    for (program, definition) in ACCEPTED_BY_RPERF {
        let target = format!("./{program}");
        let words = ["-x", &target, "-D", definition];
        let (theirs, ours) = (probe(&perf, &words), probe(rperf(), &words));
        assert_ne!(theirs.status, 0, "{definition}: {}", theirs.stdout);
        assert_eq!(ours.status, 0, "{definition}: {}", ours.stderr);
    }
}

/// The compiler clones the function `scaled` for its callers, as `scaled.constprop.0`.
#[test]
fn function_variants_are_probed_by_symbol() {
    let Some(perf) = real_perf() else {
        return skip("function_variants_are_probed_by_symbol", "there is no perf");
    };
    // With `-k` the program is read as an image of the kernel: only kprobes are written with a symbol, not with a file offset.
    for definition in ["scaled", "scaled value", "scaled:4", "main"] {
        let words = ["-k", "./variants", "-D", definition];
        let (theirs, ours) = (probe(&perf, &words), probe(rperf(), &words));
        assert_eq!(ours.stdout, theirs.stdout, "{definition}: {}", ours.stderr);
        assert!(ours.stdout.starts_with("p:probe/"), "{}", ours.stdout);
    }
}

/// Returns what rperf prints for the definitions [`C`] in a program, with `PROGRAM` as the program's name.
fn defined(program: &str) -> String {
    let target = format!("./{program}");
    let mut words = vec!["-x", &target];
    words.extend(C.iter().flat_map(|definition| ["-D", definition]));
    let outcome = probe(rperf(), &words);
    assert_eq!(outcome.status, 0, "{program}: {}", outcome.stderr);
    outcome.stdout.replace(program, "PROGRAM")
}

/// rperf's outputs for different builds are compared with each other: perf 6.1 crashes on split DWARF.
#[test]
fn split_debug_information_and_type_units_lead_to_the_same_places() {
    assert_eq!(defined("split"), defined("optimised"));
    assert_eq!(defined("type_units"), defined("optimised"));
    assert!(programs().join("split-probed.dwo").exists());
}

/// In DWARF 2 and 3, attributes refer to location lists by other forms than in DWARF 4. Only optimised code has location lists:
/// if the forms were not known, the code would be taken for unoptimised and its prologues skipped. This shows only in programs,
/// such as these, with one row of the line table at the entry of a function: with two, the prologue ends at the entry.
#[test]
fn old_versions_of_dwarf_lead_to_the_same_places() {
    let expected = defined("dwarf4_one_row");
    assert_eq!(defined("dwarf2"), expected);
    assert_eq!(defined("dwarf3"), expected);
}

/// Variables of code that is not optimised are relative to the frame address, which `.debug_frame` describes.
#[test]
fn compressed_frame_information_leads_to_the_same_places() {
    assert_eq!(defined("debug_frame_compressed"), defined("debug_frame"));
    let mut readelf = Command::new("readelf");
    let sections = readelf.args(["-SW", "debug_frame_compressed"]);
    let sections = sections.current_dir(programs()).output().expect("binutils");
    let sections = String::from_utf8_lossy(&sections.stdout).into_owned();
    let is_compressed = |line: &str| line.contains(" .debug_frame ") && line.contains("  C ");
    assert!(sections.lines().any(is_compressed), "{sections}");
}
