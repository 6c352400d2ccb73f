//! Changes one setting in the text of a configuration file. Other settings, and comments on other lines, are kept.

use super::parse::{BadLine, canonical, header_of, joined_lines, parse};

/// The first line that perf writes to a new file.
const FILE_HEADER: &str = "# this file is auto-generated.\n";

/// Returns the text with the setting `name` (`section.key`) set to `value`: where it was last set, otherwise after the last
/// setting of its section, otherwise after the last header of the section, otherwise in a new section.
/// `Err` holds the number of the first line that cannot be parsed, and why.
pub(crate) fn set(text: &str, name: &str, value: &str) -> Result<String, (usize, &'static str)> {
    let (entries, bad) = parse(text);
    if let Some(BadLine { line, cause }) = bad.first() {
        return Err((*line, cause));
    }
    let (section, key) = name.rsplit_once('.').unwrap_or((name, ""));
    let setting = format!("\t{key} = {}", quoted(value));
    let mut lines: Vec<String> = match text {
        "" => FILE_HEADER.lines().map(str::to_owned).collect(),
        text => text.lines().map(str::to_owned).collect(),
    };
    let wanted = canonical(name);
    let wanted_section = wanted.rsplit_once('.').map(|(section, _)| section);
    let joined = joined_lines(lines.iter().map(String::as_str));
    let at = |number: usize| joined.iter().find(|line| line.number == number);
    let last_set = entries.iter().rfind(|entry| entry.name == wanted);
    let in_section =
        |name: &str| name.rsplit_once('.').map(|(section, _)| section) == wanted_section;
    let section_end = entries
        .iter()
        .rfind(|entry| in_section(&entry.name))
        .and_then(|entry| at(entry.line));
    let header = || {
        joined
            .iter()
            .rfind(|line| header_of(&line.text).as_deref() == wanted_section)
    };
    match (
        last_set.and_then(|entry| at(entry.line)),
        section_end.or_else(header),
    ) {
        (Some(line), _) => {
            // A setting may share its line with the section header, which is kept on a line of its own.
            let header = header_text(&line.text).map(str::to_owned);
            let new: Vec<String> = header.into_iter().chain([setting]).collect();
            let index = line.number - 1;
            lines.splice(index..index + line.count, new);
        }
        (None, Some(line)) => lines.insert(line.number - 1 + line.count, setting),
        (None, None) => lines.extend([title(section), setting]),
    }
    // For the line break at the end.
    lines.push(String::new());
    Ok(lines.join("\n"))
}

/// Returns the section header at the start of a line, up to its bracket; `None` if there is none.
fn header_text(line: &str) -> Option<&str> {
    let end = line.find(']')?;
    line.get(..=end)
        .filter(|_| line.trim_start().starts_with('['))
}

/// Formats `[section]`, or `[section "sub"]` for a name with a dot.
fn title(section: &str) -> String {
    match section.split_once('.') {
        Some((section, sub)) => format!("[{section} \"{sub}\"]"),
        None => format!("[{section}]"),
    }
}

/// Formats the value for a file, in quotes if it would otherwise be parsed differently.
fn quoted(value: &str) -> String {
    let plain = value.trim() == value && !value.contains(['#', ';', '"', '\\', '\n', '\t']);
    if plain {
        return value.to_owned();
    }
    let mut text = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_and_new_sections() {
        let text = set("", "annotate.disassembler_style", "intel").unwrap();
        let text = set(&text, "top.children", "true").unwrap();
        let text = set(&text, "annotate.x", "1").unwrap();
        let expected = "# this file is auto-generated.\n[annotate]\n\tdisassembler_style = intel\n\tx = 1\n[top]\n\tchildren = true\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn comments_and_other_lines_stay() {
        let text = "# mine\n[Report] children\n; and\n\tsort_order = a,\\\n b\n[a \"B\"]\n[tui]\n report = on\n";
        let changed = set(text, "report.children", "false").unwrap();
        let changed = set(&changed, "report.sort_order", "sym").unwrap();
        let changed = set(&changed, "a.B.c", "1").unwrap();
        let expected = "# mine\n[Report]\n\tchildren = false\n; and\n\tsort_order = sym\n[a \"B\"]\n\tc = 1\n[tui]\n report = on\n";
        assert_eq!(changed, expected);
        assert_eq!(
            set("[a\n", "a.b", "c"),
            Err((1, "the [section] is not closed"))
        );
    }

    #[test]
    fn only_the_names_of_subsections_are_case_sensitive() {
        let text = "[A \"b\"]\n\tc = 1\n[a \"B\"]\n";
        let changed = set(text, "a.B.c", "2").unwrap();
        let changed = set(&changed, "A.b.C", "3").unwrap();
        let expected = "[A \"b\"]\n\tC = 3\n[a \"B\"]\n\tc = 2\n";
        assert_eq!(changed, expected);
    }

    #[test]
    fn joined_lines_are_one() {
        let text = "[a\\\n]\n[b]c = \"1\\\n # \\\n\"\n";
        let changed = set(text, "a.b", "1").unwrap();
        assert_eq!(
            set(&changed, "b.c", "2").unwrap(),
            "[a\\\n]\n\tb = 1\n[b]\n\tc = 2\n"
        );
    }

    proptest::proptest! {
        #[test]
        fn written_settings_are_read_back(before in "([a-c]\\.[a-c]=[ -~]{0,9}\n){0,4}", value in "[ -~\t]{0,12}") {
            let mut text = String::new();
            for line in before.lines() {
                let (name, value) = line.split_once('=').unwrap_or_default();
                text = set(&text, name, value).unwrap();
            }
            let (old, _) = parse(&text);
            text = set(&text, "b.b", &value).unwrap();
            let (entries, bad) = parse(&text);
            proptest::prop_assert_eq!(bad, []);
            let read = |entries: &[super::super::parse::ConfigEntry], name: &str| {
                let found = entries.iter().rev().find(|entry| entry.name == name);
                found.map(|entry| entry.value.clone())
            };
            proptest::prop_assert_eq!(read(&entries, "b.b"), Some(value));
            for entry in old.iter().filter(|entry| entry.name != "b.b") {
                proptest::prop_assert_eq!(read(&entries, &entry.name), read(&old, &entry.name));
            }
        }
    }
}
