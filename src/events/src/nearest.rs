//! The name that was probably meant.
//!
//! Words are compared by optimal string alignment, which counts the swap of two neighbours, the
//! commonest slip of the hand, as one edit.

use strsim::osa_distance;

/// Of `names`, the one closest to `word`, if it is close enough to be worth naming.
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

/// All of `names`, those closest to `word` first.
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
    fn slips_are_found_and_strangers_are_not() {
        let names = ["record", "report", "script", "stat"];
        assert_eq!(nearest("recrod", names), Some("record"));
        assert_eq!(nearest("scirpt", names), Some("script"));
        assert_eq!(nearest("reprot", names), Some("report"));
        assert_eq!(nearest("zebra", names), None);
    }

    #[test]
    fn all_names_come_closest_first() {
        assert_eq!(
            by_distance("scirpt", ["stat", "script"]),
            ["script", "stat"]
        );
        assert_eq!(by_distance("x", []), [""; 0]);
    }
}
