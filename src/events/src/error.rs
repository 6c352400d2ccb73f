//! What is wrong with a selector, and where.

use std::fmt;
use std::ops::Range;

/// A selector that cannot be used. Prints one caret block for each fault, without a final newline:
///
/// ```text
/// event syntax error: 'cs,page-fualts'
///                         \___ unknown event `page-fualts', did you mean `page-faults'?
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The whole text of the selector.
    pub text: String,
    /// All its faults, in text order; at least one.
    pub faults: Vec<Fault>,
}

/// One fault of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Bytes of the text that are wrong; empty at the end of the text.
    pub position: Range<usize>,
    /// What is wrong, in one line.
    pub reason: String,
    /// What to do about it, if that is known.
    pub hint: Option<String>,
}

const TITLE: &str = "event syntax error: ";
/// A fault farther in than this many characters is shown with the text cut at the front, as perf does.
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

/// Writes the text behind its title and an arrow under the start of `position`, in two lines without a final newline: those
/// within texts become blanks.
pub(crate) fn write_block(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    text: &str,
    position: &Range<usize>,
    reason: &str,
) -> fmt::Result {
    let before = text.get(..position.start).unwrap_or(text);
    let column = before.chars().count();
    let cut = column.saturating_sub(MAX_INDENT);
    let dots = if cut > 0 { ".." } else { "" };
    let shown: String = text.chars().skip(cut + dots.len()).collect();
    let indent = title.len() + 1 + column - cut;
    let [title, shown, reason] = [title, &shown, reason].map(|text| text.replace('\n', " "));
    writeln!(f, "{title}'{dots}{shown}'")?;
    write!(f, "{:indent$}\\___ {reason}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str, position: Range<usize>) -> String {
        let fault = Fault {
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
    fn the_caret_stands_under_the_word() {
        assert_eq!(
            block("cs,nosuch", 3..9),
            "event syntax error: 'cs,nosuch'\n                        \\___ no"
        );
    }

    #[test]
    fn a_selector_begins_no_line() {
        assert_eq!(
            block("cs\nx", 3..4),
            "event syntax error: 'cs x'\n                        \\___ no"
        );
    }

    #[test]
    fn a_far_word_cuts_the_front() {
        let shown = block("cs,page-faults:z,cycles", 14..16);
        assert_eq!(
            shown,
            "event syntax error: '..page-faults:z,cycles'\n                                  \\___ no"
        );
    }

    #[test]
    fn several_faults_are_several_blocks() {
        let fault = |start: usize| Fault {
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
