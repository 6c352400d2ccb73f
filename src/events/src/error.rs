//! Errors in a selector (the argument of `-e`, a list of events), with their positions.

use std::fmt;
use std::ops::Range;

/// An invalid selector. For each fault, `Display` writes the text and an arrow under the fault with the reason (which may suggest
/// a name), but not the hint, and no newline at the end:
///
/// ```text
/// event syntax error: 'cs,page-fualts'
///                         \___ unknown event `page-fualts', did you mean `page-faults'?
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The whole text of the selector.
    pub text: String,
    /// All faults, in text order; at least one.
    pub faults: Vec<SelectorFault>,
}

/// One fault of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorFault {
    /// Byte range of the fault; empty if the fault is at the end of the text or of an event in it.
    pub position: Range<usize>,
    /// Description in one line.
    pub reason: String,
    /// How to fix it, if known.
    pub hint: Option<String>,
}

const TITLE: &str = "event syntax error: ";
/// If a fault starts after this column, the text is truncated at the front, as in perf.
const MAX_INDENT: usize = 13;

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write_block(f, TITLE, &self.text, &fault.position, &fault.reason)?;
        }
        Ok(())
    }
}

/// Writes a line with the title and the text, and a line with an arrow under the start of `position` and the reason,
/// without a final newline. Newlines in the texts become blanks.
pub(crate) fn write_block(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    text: &str,
    position: &Range<usize>,
    reason: &str,
) -> fmt::Result {
    let before = text.get(..position.start).unwrap_or(text);
    let column = before.chars().count();
    let skipped = column.saturating_sub(MAX_INDENT);
    let dots = if skipped > 0 { ".." } else { "" };
    // The dots replace characters, so that the columns of the rest don't change.
    let shown: String = text.chars().skip(skipped + dots.len()).collect();
    let quote = 1;
    let indent = title.len() + quote + column - skipped;
    let [title, shown, reason] = [title, &shown, reason].map(|text| text.replace('\n', " "));
    writeln!(f, "{title}'{dots}{shown}'")?;
    write!(f, "{:indent$}\\___ {reason}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str, position: Range<usize>) -> String {
        let fault = SelectorFault {
            position,
            reason: "no".to_owned(),
            hint: None,
        };
        ParseError {
            text: text.to_owned(),
            faults: vec![fault],
        }
        .to_string()
    }

    #[test]
    fn the_arrow_is_under_the_word() {
        assert_eq!(
            block("cs,nosuch", 3..9),
            "event syntax error: 'cs,nosuch'\n                        \\___ no"
        );
    }

    #[test]
    fn newlines_in_a_selector_become_blanks() {
        assert_eq!(
            block("cs\nx", 3..4),
            "event syntax error: 'cs x'\n                        \\___ no"
        );
    }

    #[test]
    fn long_lines_are_truncated_before_the_word() {
        let shown = block("cs,page-faults:z,cycles", 14..16);
        assert_eq!(
            shown,
            "event syntax error: '..page-faults:z,cycles'\n                                  \\___ no"
        );
    }

    #[test]
    fn several_faults_are_several_blocks() {
        let fault = |start: usize| SelectorFault {
            position: start..start,
            reason: "no".to_owned(),
            hint: None,
        };
        let error = ParseError {
            text: "é,x".to_owned(),
            faults: vec![fault(0), fault(3)],
        };
        assert_eq!(
            error
                .to_string()
                .matches("event syntax error: 'é,x'")
                .count(),
            2
        );
    }
}
