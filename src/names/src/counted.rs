//! Numbers with their nouns in messages.

/// A number with its noun, in the plural unless the number is 1: `1 record`, `2 records`. Only the regular forms are known.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        return format!("1 {noun}");
    }
    let ends_in = |letters: &[&str]| letters.iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        Some(stem) if !ends_in(&["ay", "ey", "oy", "uy"]) => format!("{count} {stem}ies"),
        _ if ends_in(&["s", "x", "ch", "sh"]) => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

/// The verb after [`counted`]: `was` or `were`.
#[must_use]
pub fn was_or_were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// The verb after [`counted`]: `is` or `are`.
#[must_use]
pub fn is_or_are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_and_verbs_agree_with_the_number() {
        let texts = |noun| [0, 1, 2].map(|count| counted(count, noun));
        assert_eq!(texts("record"), ["0 records", "1 record", "2 records"]);
        assert_eq!(texts("stretch")[1..], ["1 stretch", "2 stretches"]);
        assert_eq!(texts("entry")[1..], ["1 entry", "2 entries"]);
        assert_eq!(counted(2, "key"), "2 keys");
        assert_eq!([0, 1, 2].map(was_or_were), ["were", "was", "were"]);
        assert_eq!([0, 1, 2].map(is_or_are), ["are", "is", "are"]);
    }
}
