//! Lists of names in messages.

/// The first `number` names, separated by commas, and how many more there are: `a, b and 3 more`.
#[must_use]
pub fn first_names(names: &[impl AsRef<str>], number: usize) -> String {
    let first: Vec<&str> = names.iter().take(number).map(AsRef::as_ref).collect();
    let list = first.join(", ");
    match names.len().saturating_sub(number) {
        0 => list,
        more => format!("{list} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_end_with_a_number() {
        assert_eq!(first_names(&["a", "b"], 2), "a, b");
        assert_eq!(first_names(&["a", "b", "c", "d"], 2), "a, b and 2 more");
        assert_eq!(first_names(&[""; 0], 2), "");
    }
}
