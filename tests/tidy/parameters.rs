//! Parameters of tuple type hide several arguments: use separate parameters, or a struct with named fields.

use std::fs;

use super::{assert_none, code, files, root, shown};

/// Takes the text after an opening bracket, and returns the part before the bracket that closes it, or all if none does.
fn closed(text: &str) -> &str {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..at];
        }
    }
    text
}

/// Whether a text between brackets has a comma outside of inner brackets, like a tuple.
fn is_tuple(text: &str) -> bool {
    let mut depth = 0;
    let mut before = ' ';
    for letter in text.chars() {
        match letter {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            ',' if depth == 0 => return true,
            _ => {}
        }
        before = letter;
    }
    false
}

/// The parameters of tuple type in a text, each from its colon to the end of the list.
fn tuples(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("fn ") {
        let ends_longer_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_comment = text[..at]
            .lines()
            .last()
            .is_some_and(|line| line.contains("//"));
        let Some((name, rest)) = text[at + 3..].split_once('(') else {
            continue;
        };
        // Generics may come between the name and the list. With `Fn(…)` in them the first bracket does not begin the list: such
        // functions are not checked. Braces, semicolons and quotes before the bracket show that no function begins here.
        if ends_longer_word
            || is_comment
            || name.contains(['{', '}', ';', '"'])
            || name.contains("Fn")
        {
            continue;
        }
        let parameters = closed(rest);
        for (colon, _) in parameters.match_indices(": ") {
            let kind = parameters[colon + 2..].trim_start_matches('&');
            let kind = kind.strip_prefix("mut ").unwrap_or(kind);
            let inner = kind.strip_prefix('(').map(closed);
            if inner.is_some_and(is_tuple) {
                found.push(&parameters[colon..]);
            }
        }
    }
    found
}

#[test]
fn no_parameter_is_a_tuple() {
    let sources = files(&root().join("src")).into_iter();
    let sources = sources
        .map(|path| (shown(&path), path))
        .filter(|(name, _)| {
            let is_test = name.ends_with("tests.rs")
                || name.contains("/tests/")
                || name.contains("/benches/");
            name.ends_with(".rs") && !is_test
        });
    let mut findings = Vec::new();
    for (name, path) in sources {
        let text = fs::read_to_string(path).expect("a source file can be read");
        // `code`: without the unit tests at the end of the file.
        findings.extend(tuples(code(&text)).iter().map(|tuple| {
            let tuple = tuple.lines().next().unwrap_or_default();
            format!("{name}{tuple}")
        }));
    }
    assert_none("name the struct, or take separate parameters", &findings);
}

#[test]
fn tuples_are_found() {
    let text = "fn a((x, y): (u32, &str)) {}\nfn b<'a>(&self, pair: &mut (Vec<(u8, u8)>, u8)) {}\n";
    assert_eq!(tuples(text).len(), 2);
    let text =
        "fn a(list: &[(u8, u8)], f: &(dyn Fn(u8, u8) + Sync), g: (), e: Map<u8, (u8, u8)>) {}\n";
    assert_eq!(tuples(text), [""; 0]);
}
