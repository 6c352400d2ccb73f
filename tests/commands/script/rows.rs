//! `script --csv` and `--template`: compared with `--json`, and refusals.

use serde_json::Value;

use super::super::outcome;
use crate::tidy::root;

#[track_caller]
fn printed(words: &[&str]) -> String {
    let file = root().join("tests/fixtures/x86_64/cycles.data");
    let file = file.to_string_lossy().into_owned();
    let outcome = outcome(&[&["script", "-f", "-i", &file], words].concat());
    assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
    outcome.stdout
}

/// The given members of each object that `--json` prints, joined by `separator`.
fn expected(members: &[&str], separator: &str) -> Vec<String> {
    let text = printed(&["--json"]);
    let row = |line| {
        let object: Value = serde_json::from_str(line).expect("an object");
        let member = |name: &&str| match &object[*name] {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        members
            .iter()
            .map(member)
            .collect::<Vec<_>>()
            .join(separator)
    };
    text.lines().map(row).collect()
}

#[test]
fn rows_of_csv_have_the_members_of_objects() {
    let csv = printed(&["--csv", "-F", "time,comm,pid,tid,event"]);
    let (titles, rows) = csv.split_once('\n').expect("titles");
    assert_eq!(titles, "time,comm,pid,tid,event");
    let members = ["time", "comm", "pid", "tid", "event"];
    let expected = expected(&members, ",");
    assert!(expected.len() > 5, "{csv}");
    assert_eq!(rows.lines().collect::<Vec<_>>(), expected);
    let default_columns = printed(&["--csv"]);
    let titles = default_columns.lines().next().expect("titles");
    assert!(
        titles.ends_with(",ip,symbol,offset,dso,callchain"),
        "{titles}"
    );
}

#[test]
fn templates_are_filled_with_the_members_of_objects() {
    let lines = printed(&["--template", "{comm}:{pid} {{{period}}}"]);
    let expected = expected(&["comm", "pid", "period"], "|");
    let expected = expected.iter().map(|row| {
        let mut members = row.split('|');
        let mut next = || members.next().expect("a member");
        format!("{}:{} {{{}}}", next(), next(), next())
    });
    assert_eq!(
        lines.lines().collect::<Vec<_>>(),
        expected.collect::<Vec<_>>()
    );
    let symbols = printed(&["--template", "{symbol}"]);
    let chains = printed(&["--template", "{callchain}"]);
    assert_eq!(symbols.lines().count(), lines.lines().count());
    assert_eq!(chains.lines().count(), lines.lines().count());
    for (symbol, chain) in symbols.lines().zip(chains.lines()) {
        let first = chain.split(';').next().expect("a frame");
        // A frame without a symbol is shown as an address, and `{symbol}` is empty.
        let expected = match first.starts_with("0x") {
            true => "",
            false => first,
        };
        assert_eq!(symbol, expected, "{chain}");
    }
}

#[test]
fn conflicting_formats_and_invalid_templates_are_refused() {
    for (words, message) in [
        (&["script", "--csv", "--json"][..], "--csv and --json"),
        (
            &["script", "--template", "x", "-F", "ip"],
            "--template and -F",
        ),
        (&["script", "--csv", "-D"], "--csv and -D"),
        (
            &["script", "--template", "{x"],
            "--template: unbalanced '{'",
        ),
    ] {
        let refused = outcome(words);
        assert_eq!((refused.status, &*refused.stdout), (129, ""), "{words:?}");
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
}
