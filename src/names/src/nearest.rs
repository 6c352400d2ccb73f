//! Suggestions for misspelled names.
//!
//! Words are compared by optimal string alignment, which counts the transposition of adjacent
//! letters, a common typing mistake, as one edit.

use strsim::osa_distance;

/// The name with the fewest edits from `word`; of several such names, the first. `None` if all names need more edits than the
/// limit: a third of the number of characters in `word`, rounded up, and at least 1.
#[must_use]
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count().div_ceil(3).max(1);
    names
        .into_iter()
        .map(|name| (osa_distance(word, name), name))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// All `names`, sorted by distance from `word`.
#[must_use]
pub fn by_distance<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|name| osa_distance(word, name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_names_are_found() {
        let names = ["record", "report", "script", "stat"];
        assert_eq!(nearest("recrod", names), Some("record"));
        assert_eq!(nearest("scirpt", names), Some("script"));
        assert_eq!(nearest("reprot", names), Some("report"));
        assert_eq!(nearest("zebra", names), None);
    }

    #[test]
    fn names_are_sorted_by_distance() {
        assert_eq!(
            by_distance("scirpt", ["stat", "script"]),
            ["script", "stat"]
        );
        assert_eq!(by_distance("x", []), [""; 0]);
    }
}
