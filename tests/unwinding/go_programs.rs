//! The callers of `main.spin`, where `tests/workloads/stacks.go` spends its time.

use std::collections::BTreeSet;

use rperf_testkit::skip;

use super::c_programs::fits;
use super::programs::{GO, GO_PLAIN, ProgramFolder, RECORDINGS};
use super::stacks::{read, symbol};

/// The lists of callers that `main.spin` may have, each innermost first; `*` is any number of frames of libraries and the
/// runtime.
fn expected() -> Vec<Vec<&'static str>> {
    let panicking = [
        vec!["main.fails"; 4],
        vec!["main.recovers", "main.main", "*"],
    ]
    .concat();
    vec![
        vec!["main.burnLeaf", "main.main", "*"],
        [
            vec!["main.burnDeep"],
            vec!["main.deep"; 31],
            vec!["main.main", "*"],
        ]
        .concat(),
        [
            vec!["main.burnDeferred", "main.cleanUp", "*"],
            panicking.clone(),
        ]
        .concat(),
        [
            vec!["main.burnRecovered", "main.recovers.func1", "*"],
            panicking,
        ]
        .concat(),
        vec![
            "main.burnCompare",
            "main.throughLibrary.func1",
            "*",
            "main.throughLibrary",
            "main.main",
            "*",
        ],
        [
            vec!["main.burnWalker"],
            vec!["main.(*walker).walk"; 6],
            vec!["main.main", "*"],
        ]
        .concat(),
        vec![
            "main.burnGoroutine",
            "main.inGoroutine",
            "main.withGoroutines.func1",
            "*",
        ],
    ]
}

#[test]
fn known_functions_of_go_have_known_callers() {
    const NAME: &str = "known_functions_of_go_have_known_callers";
    let expected = expected();
    for (program, call_graph) in [
        (&GO, "dwarf,16384"),
        (&GO_PLAIN, "dwarf,16384"),
        (&GO, "fp"),
    ] {
        let folder = ProgramFolder::new();
        let mut found_callers = BTreeSet::new();
        for _ in 0..RECORDINGS {
            let file = match folder.record_as(program, call_graph) {
                Ok(file) => file,
                Err(reason) => return skip(NAME, &reason),
            };
            let script = folder.rperf(&["script", "--no-inline", "-i", &file]);
            for sample in read(&script.stdout) {
                let names: Vec<&str> = sample.frames.iter().map(|frame| symbol(frame)).collect();
                let Some((&"main.spin", callers)) = names.split_first() else {
                    continue;
                };
                // In a prologue and at a return instruction, unwinding by frame pointers can skip the direct caller. GO_PLAIN
                // has no DWARF, so its stack copies are unwound by frame pointers, too.
                let by_frame_pointers = call_graph == "fp" || program.name == GO_PLAIN.name;
                let found = direct_caller(&expected, callers, by_frame_pointers);
                assert!(
                    found.is_some(),
                    "{} {call_graph}: {sample:#?}",
                    program.name
                );
                found_callers.extend(found);
            }
            if found_callers.len() == expected.len() {
                break;
            }
        }
        let count = found_callers.len();
        assert_eq!(
            count,
            expected.len(),
            "{} {call_graph}: {found_callers:?}",
            program.name
        );
    }
}

/// Returns the direct caller of `main.spin`: the first function of the list in `expected` that `callers` match. Returns `None` if
/// they match no list, or if the last of them is not `runtime.goexit`. With `may_skip_first`, `callers` may lack the direct
/// caller.
fn direct_caller<'e>(
    expected: &[Vec<&'e str>],
    callers: &[&str],
    may_skip_first: bool,
) -> Option<&'e str> {
    let bottom = callers.last()?;
    let mut fitting = expected
        .iter()
        .filter(|known| fits(known, callers) || may_skip_first && fits(&known[1..], callers));
    let known = fitting.next()?;
    // Since Go 1.17, the name ends with `.abi0`.
    bottom
        .starts_with("runtime.goexit")
        .then(|| known.first().copied())?
}
