//! Text wrapped between words.

/// Wraps each line of a text to `width` columns. Lines are indented by `indent` columns and by their own leading spaces. A word
/// that is longer than a line gets a line of its own.
pub(crate) fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    for paragraph in text.lines() {
        let words = paragraph.trim_start_matches(' ');
        let indent = indent + paragraph.len() - words.len();
        fill(&mut out, words, [indent, indent], width);
        out.push('\n');
    }
    out
}

/// Wraps a line of a message to `width` columns. If the first word consists of letters and a colon (`hint: `, `# hint: `),
/// continuation lines are indented to the text after it, otherwise by two columns more than the line. Continuation lines of a
/// comment also begin with `# `. Lines of a table, whose cells are separated by two blanks or a tab, are not wrapped.
pub(crate) fn wrap_message(line: &str, width: usize) -> String {
    let mark = if line.starts_with("# ") { "# " } else { "" };
    let text = line.strip_prefix(mark).unwrap_or(line);
    let words = text.trim_start_matches(' ');
    let has_cells = words.contains("  ") || line.contains('\t');
    if has_cells || line.chars().count() <= width {
        return line.to_owned();
    }
    let indent = text.len() - words.len();
    let first = words.split(' ').next().unwrap_or_default();
    let hanging = match first.strip_suffix(':') {
        Some(word) if word.chars().all(char::is_alphabetic) => first.len() + 1,
        _ => 2,
    };
    let mut out = String::new();
    let width = width.saturating_sub(mark.len());
    fill(&mut out, words, [indent, indent + hanging], width);
    let lines: Vec<String> = out.lines().map(|line| format!("{mark}{line}")).collect();
    lines.join("\n")
}

/// Adds the words of a text: the first line indented by `indents[0]`, the others by `indents[1]`.
fn fill(out: &mut String, text: &str, indents: [usize; 2], width: usize) {
    let mut column = 0;
    let mut indent = indents[0];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if column > 0 && column + 1 + length <= width {
            out.push(' ');
            column += 1;
        } else {
            if column > 0 {
                out.push('\n');
            }
            out.push_str(&" ".repeat(indent));
            column = indent;
            indent = indents[1];
        }
        out.push_str(word);
        column += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_filled_and_keep_their_indentation() {
        let text = format!(
            "{}\n  {}\n\nend",
            "word ".repeat(20).trim_end(),
            "item ".repeat(17).trim_end()
        );
        let filled = wrap(&text, 4, 80);
        let lines: Vec<&str> = filled.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= 80), "{filled}");
        assert_eq!(lines[0], format!("    {}", "word ".repeat(15).trim_end()));
        assert_eq!(lines[1], format!("    {}", "word ".repeat(5).trim_end()));
        assert_eq!(lines[2], format!("      {}", "item ".repeat(15).trim_end()));
        assert_eq!(lines[3], format!("      {}", "item ".repeat(2).trim_end()));
        assert_eq!(lines[4..], ["", "    end"]);
    }

    #[test]
    fn messages_are_wrapped_below_their_text() {
        let wrapped = wrap_message("hint: one two three four", 14);
        assert_eq!(wrapped, "hint: one two\n      three\n      four");
        let wrapped = wrap_message("# hint: one two three", 16);
        assert_eq!(wrapped, "# hint: one two\n#       three");
        let wrapped = wrap_message("# (Tip: one two three)", 16);
        assert_eq!(wrapped, "# (Tip: one two\n#   three)");
        let wrapped = wrap_message("  one two three four", 12);
        assert_eq!(wrapped, "  one two\n    three\n    four");
        let wrapped = wrap_message("/a/long/path: one two", 16);
        assert_eq!(wrapped, "/a/long/path:\n  one two");
    }

    #[test]
    fn short_lines_and_lines_of_a_table_are_not_wrapped() {
        for line in [
            "hint: one two",
            "  name          value",
            "name   value of it",
        ] {
            assert_eq!(wrap_message(line, 14), line);
        }
    }
}
