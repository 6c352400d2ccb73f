//! The name that was probably meant.

/// Of `names`, the one closest to `word`, if it is close enough to be worth naming.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.chars().count().div_ceil(3).max(1);
    names
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// All of `names`, those closest to `word` first.
pub(crate) fn by_distance<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|name| distance(word, name));
    names
}

/// Edits between two words: insertion, removal, replacement, and the swap of two neighbours, which is the commonest
/// slip of the hand (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let width = right.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut above: Vec<usize> = (0..width).collect();
    for (row, &l) in left.iter().enumerate() {
        let mut current = Vec::with_capacity(width);
        current.push(row + 1);
        for (column, &r) in right.iter().enumerate() {
            let replaced = above[column] + usize::from(l != r);
            let mut best = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && l == right[column - 1] && left[row - 1] == r;
            if swapped {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or_default()
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
    fn a_swap_is_one_edit() {
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
