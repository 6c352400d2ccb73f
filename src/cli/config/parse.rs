//! The text format of the configuration files (perf-config(1)): `[section]`, `[section "sub"]`, `key = value`.
//!
//! `#` and `;` start a comment outside quotes, a backslash at the end of a line joins the next line unless it is in a comment,
//! and `\"`, `\\`, `\n`, `\t`, `\b` are escapes. Names of sections and keys are case-insensitive, those of
//! subsections are not.

/// One setting: its name, `section.key` or `section.sub.key`, its value, and the number of its first line (from 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigEntry {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) line: usize,
}

/// The number of a line that cannot be parsed (from 1), and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadLine {
    pub(super) line: usize,
    pub(super) cause: &'static str,
}

/// Returns `section.key` or `section.sub.key` as in [`ConfigEntry::name`]: in lower case, except the subsection.
pub(super) fn canonical(name: &str) -> String {
    let (section, rest) = name.split_once('.').unwrap_or((name, ""));
    let section = section.to_ascii_lowercase();
    match rest.rsplit_once('.') {
        Some((sub, key)) => format!("{section}.{sub}.{}", key.to_ascii_lowercase()),
        None => format!("{section}.{}", rest.to_ascii_lowercase()),
    }
}

/// Returns the section of the header at the start of `line`, as `section` or `section.sub` (the beginning of
/// [`ConfigEntry::name`]); `None` if the line does not start with a valid header.
pub(super) fn header_of(line: &str) -> Option<String> {
    let inside = line.trim_start().strip_prefix('[')?;
    let (name, _) = section_name(inside).ok()?;
    Some(name)
}

/// Parses a file; returns the settings, and the lines that cannot be parsed.
pub(super) fn parse(text: &str) -> (Vec<ConfigEntry>, Vec<BadLine>) {
    let mut entries = Vec::new();
    let mut bad = Vec::new();
    let mut section: Option<String> = None;
    for joined in joined_lines(text.lines()) {
        let line = joined.number;
        if let Err(cause) = read_line(joined.text.trim(), line, &mut section, &mut entries) {
            bad.push(BadLine { line, cause });
        }
    }
    (entries, bad)
}

/// A line with the lines that a backslash at its end joins to it.
pub(super) struct JoinedLine {
    /// The number of the first of the lines, from 1.
    pub(super) number: usize,
    /// How many lines were joined, 1 or more.
    pub(super) count: usize,
    /// The text, without the backslashes that join.
    pub(super) text: String,
}

/// Joins lines, which have no line breaks.
pub(super) fn joined_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<JoinedLine> {
    let mut all_joined = Vec::new();
    let mut lines = lines.into_iter().enumerate();
    while let Some((index, first)) = lines.next() {
        let mut joined = JoinedLine {
            number: index + 1,
            count: 1,
            text: first.to_owned(),
        };
        while is_continued(&joined.text) {
            joined.text.pop();
            let Some((_, next)) = lines.next() else { break };
            joined.text.push_str(next);
            joined.count += 1;
        }
        all_joined.push(joined);
    }
    all_joined
}

/// Whether the next line is joined to `line`: `line` has no comment, and ends in a backslash that is not escaped.
fn is_continued(line: &str) -> bool {
    let mut is_quoted = false;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => return false,
            // A backslash escapes the next letter, which is skipped; without one, it is the end of the line.
            '\\' if letters.next().is_none() => return true,
            _ => {}
        }
    }
    false
}

/// Parses a line; sets the section if the line has a header, and adds the setting if it has one.
fn read_line(
    line: &str,
    number: usize,
    section: &mut Option<String>,
    entries: &mut Vec<ConfigEntry>,
) -> Result<(), &'static str> {
    let mut rest = line;
    if let Some(inside) = line.strip_prefix('[') {
        let (name, after) = section_name(inside)?;
        *section = Some(name);
        rest = after.trim_start();
    }
    if rest.is_empty() || rest.starts_with(['#', ';']) {
        return Ok(());
    }
    let Some(section) = section else {
        return Err("setting before the first [section]");
    };
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(rest.len());
    let (key, after) = rest.split_at(end);
    if key.is_empty() {
        return Err("expected the name of a setting");
    }
    let after = after.trim_start();
    let value = match after.strip_prefix('=') {
        Some(value) => unquote(value.trim_start())?,
        None if after.is_empty() || after.starts_with(['#', ';']) => String::new(),
        None => return Err("expected '=' after the name of the setting"),
    };
    entries.push(ConfigEntry {
        name: format!("{section}.{}", key.to_ascii_lowercase()),
        value,
        line: number,
    });
    Ok(())
}

/// Parses `section]` or `section "sub"]`; returns the section as [`header_of`] does, and the text after the bracket.
fn section_name(inside: &str) -> Result<(String, &str), &'static str> {
    let close = inside.find(']').ok_or("the [section] is not closed")?;
    let (name, after) = inside.split_at(close);
    let after = after.strip_prefix(']').unwrap_or(after);
    let mut words = name.splitn(2, char::is_whitespace);
    let main = words.next().unwrap_or_default().to_ascii_lowercase();
    if main.is_empty() {
        return Err("the [section] has no name");
    }
    match words.next().map(str::trim) {
        None | Some("") => Ok((main, after)),
        Some(sub) => {
            let sub = sub.strip_prefix('"').and_then(|sub| sub.strip_suffix('"'));
            let sub = sub.ok_or("expected a quoted name after the first word of a [section]")?;
            Ok((format!("{main}.{sub}"), after))
        }
    }
}

/// Returns the value with quotes and escapes resolved, without a comment and the spaces before it.
fn unquote(text: &str) -> Result<String, &'static str> {
    let mut value = String::new();
    // The length of `value` without the spaces at its end that are neither quoted nor escaped.
    let mut trimmed_len = 0;
    let mut quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => value.push(match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('b') => '\u{8}',
                Some(c @ ('"' | '\\')) => c,
                _ => return Err("unknown escape in the value"),
            }),
            c => value.push(c),
        }
        // For an escape, `c` is the backslash: escaped spaces such as `\t` are kept at the end, too.
        if quoted || !c.is_whitespace() {
            trimmed_len = value.len();
        }
    }
    if quoted {
        return Err("the quote in the value is not closed");
    }
    value.truncate(trimmed_len);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Vec<(String, String)> {
        let (entries, bad) = parse(text);
        assert_eq!(bad, []);
        entries
            .into_iter()
            .map(|entry| (entry.name, entry.value))
            .collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn sections_keys_comments_and_quotes() {
        let text = "# mine\n[report]\n  sort_order = comm,dso ; as I like it\n[buildid] dir = \" /a b \" # there\n[tui]\nreport\n";
        assert_eq!(
            settings(text),
            [
                pair("report.sort_order", "comm,dso"),
                pair("buildid.dir", " /a b "),
                pair("tui.report", "")
            ]
        );
    }

    #[test]
    fn lines_are_joined_and_escapes_undone() {
        assert_eq!(
            settings("[a \"B c\"]\nX-y = one\\\n two\\t\\\\\n"),
            [pair("a.B c.x-y", "one two\t\\")]
        );
    }

    #[test]
    fn comments_are_not_joined() {
        let text = "# C:\\\n[a] ; \\\nb = 1 # \\\nc = \"2#\\\n ;\"\nd = 3\n";
        let all = [("a.b", "1"), ("a.c", "2# ;"), ("a.d", "3")];
        assert_eq!(settings(text), all.map(|(name, value)| pair(name, value)));
    }

    #[test]
    fn bad_lines_are_reported_and_skipped() {
        let (entries, bad) =
            parse("x = 1\n[report\n[report]\n= 5\nchildren : no\nok = \"open\ngood = 1\n");
        assert_eq!(
            bad.iter().map(|bad| bad.line).collect::<Vec<_>>(),
            [1, 2, 4, 5, 6]
        );
        assert_eq!(
            entries,
            [ConfigEntry {
                name: "report.good".to_owned(),
                value: "1".to_owned(),
                line: 7
            }]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[\\[\\]\"=#;\\\\a-c \n\t]{0,60}") {
            let (entries, bad) = parse(&text);
            let lines = text.lines().count();
            proptest::prop_assert!(entries.iter().all(|entry| (1..=lines).contains(&entry.line)));
            proptest::prop_assert!(bad.iter().all(|bad| (1..=lines).contains(&bad.line)));
        }
    }
}
