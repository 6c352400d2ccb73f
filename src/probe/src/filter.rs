//! Name filters: patterns combined with `&`, `|`, `!` and parentheses.

use rperf_names::matches_pattern;

use crate::definition::SyntaxError;

/// Maximum nesting of parentheses and `!`.
const MAX_DEPTH: usize = 64;

/// Maximum number of `&` and `|`, each of which may nest the expression one level deeper.
const MAX_OPERATORS: usize = 1000;

/// A condition on names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameFilter(PatternNode);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternNode {
    Pattern(String),
    Not(Box<PatternNode>),
    And(Box<PatternNode>, Box<PatternNode>),
    Or(Box<PatternNode>, Box<PatternNode>),
}

impl NameFilter {
    /// Parses a condition such as `!__k* & *`. `|` has lower precedence than `&`.
    ///
    /// # Errors
    ///
    /// The cause and its position.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut reader = PatternParser {
            text,
            at: 0,
            operators: 0,
        };
        let node = reader.alternatives(0)?;
        match reader.peek() {
            None => Ok(Self(node)),
            Some(_) => Err(SyntaxError::new(reader.at, "expected '&' or '|'")),
        }
    }

    /// Whether a name matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }

    /// Whether names with the prefix `start` may match.
    pub(crate) fn may_match(&self, start: &str) -> bool {
        self.0.result_for_prefix(start) != Some(false)
    }
}

impl PatternNode {
    /// Returns the result for all names with the prefix `start`; `None` if it may differ between them.
    fn result_for_prefix(&self, start: &str) -> Option<bool> {
        match self {
            Self::Pattern(pattern) => {
                let literal_prefix = pattern.split(['*', '?', '[', '\\']).next();
                let literal_prefix = literal_prefix.unwrap_or_default();
                let may_match =
                    literal_prefix.starts_with(start) || start.starts_with(literal_prefix);
                (!may_match).then_some(false)
            }
            Self::Not(inner) => inner.result_for_prefix(start).map(|result| !result),
            Self::And(first, second) => match (
                first.result_for_prefix(start),
                second.result_for_prefix(start),
            ) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (first, second) => Some(first? && second?),
            },
            Self::Or(first, second) => match (
                first.result_for_prefix(start),
                second.result_for_prefix(start),
            ) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (first, second) => Some(first? || second?),
            },
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Pattern(pattern) => matches_pattern(pattern, name),
            Self::Not(inner) => !inner.matches(name),
            Self::And(first, second) => first.matches(name) && second.matches(name),
            Self::Or(first, second) => first.matches(name) || second.matches(name),
        }
    }
}

struct PatternParser<'t> {
    text: &'t str,
    /// The position in `text` in bytes.
    at: usize,
    /// The number of `&` and `|` so far.
    operators: usize,
}

impl PatternParser<'_> {
    /// Skips blanks and returns the next character.
    fn peek(&mut self) -> Option<char> {
        let rest = self.text.get(self.at..)?;
        let bare = rest.trim_start();
        self.at += rest.len() - bare.len();
        bare.chars().next()
    }

    /// Skips blanks, and `expected_char` if it is next; returns whether it was.
    fn take(&mut self, expected_char: char) -> bool {
        let is_next = self.peek() == Some(expected_char);
        if is_next {
            self.at += expected_char.len_utf8();
        }
        is_next
    }

    fn alternatives(&mut self, depth: usize) -> Result<PatternNode, SyntaxError> {
        let mut node = self.conjunction(depth)?;
        while self.take_operator('|')? {
            node = PatternNode::Or(Box::new(node), Box::new(self.conjunction(depth)?));
        }
        Ok(node)
    }

    fn conjunction(&mut self, depth: usize) -> Result<PatternNode, SyntaxError> {
        let mut node = self.operand(depth)?;
        while self.take_operator('&')? {
            node = PatternNode::And(Box::new(node), Box::new(self.operand(depth)?));
        }
        Ok(node)
    }

    /// Skips `operator` if it is next; returns whether it was, or an error if there are too many.
    fn take_operator(&mut self, operator: char) -> Result<bool, SyntaxError> {
        if !self.take(operator) {
            return Ok(false);
        }
        self.operators += 1;
        match self.operators > MAX_OPERATORS {
            true => Err(SyntaxError::new(
                self.at,
                format!("more than {MAX_OPERATORS} '&' and '|' are too many"),
            )),
            false => Ok(true),
        }
    }

    fn operand(&mut self, depth: usize) -> Result<PatternNode, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(SyntaxError::new(self.at, "the filter is nested too deeply"));
        }
        if self.take('!') {
            return Ok(PatternNode::Not(Box::new(self.operand(depth + 1)?)));
        }
        if self.take('(') {
            let node = self.alternatives(depth + 1)?;
            return match self.take(')') {
                true => Ok(node),
                false => Err(SyntaxError::new(self.at, "')' is missing")),
            };
        }
        // Skips blanks.
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let pattern = rest.get(..pattern_len(rest)).unwrap_or_default();
        if pattern.is_empty() {
            return Err(SyntaxError::new(self.at, "a pattern is missing"));
        }
        self.at += pattern.len();
        Ok(PatternNode::Pattern(pattern.to_owned()))
    }
}

/// The length in bytes of the pattern at the start of `text`. A blank, a parenthesis or an operator ends it, but not if escaped
/// (`\!`), and not the `!` of a negated set (`[!a-c]`).
fn pattern_len(text: &str) -> usize {
    let mut previous = None;
    for (at, letter) in text.char_indices() {
        let is_literal = previous == Some('\\') || (previous == Some('[') && letter == '!');
        let is_end = letter.is_whitespace() || matches!(letter, '&' | '|' | '!' | '(' | ')');
        if is_end && !is_literal {
            return at;
        }
        // A backslash that is itself escaped escapes nothing.
        previous = (!(is_literal && letter == '\\')).then_some(letter);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn conditions() {
        for (filter, name, expected) in [
            ("m*", "main", true),
            ("m* & !main", "main", false),
            ("a|b&c", "a", true),
            ("(a|b)&c*", "a", false),
            ("!__k* & *", "main", true),
            ("!__k*&*", "__ksym", false),
            ("[!_]*", "main", true),
            ("[!_]*&!m*", "_start", false),
            ("a\\!|b", "a!", true),
            ("a\\\\&b", "b", false),
        ] {
            let filter = NameFilter::parse(filter).unwrap();
            assert_eq!(filter.matches(name), expected, "{filter:?} {name}");
        }
        for wrong in ["", "a b", "(a", "a|", "&a", "a)"] {
            assert!(NameFilter::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_number_of_operators_is_limited() {
        for operator in ["|", "&"] {
            let many = vec!["*"; MAX_OPERATORS + 1].join(operator);
            assert!(NameFilter::parse(&many).is_ok_and(|filter| filter.matches("main")));
            // So many nested nodes would overflow the stack without the limit.
            let more = vec!["*"; 200_000].join(operator);
            let fault = NameFilter::parse(&more).unwrap_err();
            assert!(fault.to_string().contains("more than 1000"), "{fault}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a*!&|() é]{0,40}") {
            let _either = NameFilter::parse(&text).map(|filter| filter.matches("a"));
        }

        #[test]
        fn prefix_tests_never_reject_a_match(text in "[ab*!&|()?]{1,12}", name in "[ab]{0,6}", len in 0usize..7) {
            let start = name.get(..len).unwrap_or(&name);
            if let Ok(filter) = NameFilter::parse(&text) {
                prop_assert!(filter.may_match(start) || !filter.matches(&name), "{filter:?} {name} {start}");
            }
        }
    }
}
