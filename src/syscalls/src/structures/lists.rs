//! Numbers, lists of numbers, and bit masks.

use super::{int, long};

/// Returns signed numbers of 4 bytes as `[1, 2]`.
pub(super) fn numbers(bytes: &[u8], is_truncated: bool) -> Option<String> {
    let (numbers, _) = bytes.as_chunks::<4>();
    let texts: Option<Vec<String>> = numbers
        .iter()
        .map(|number| Some(int(number, 0)?.to_string()))
        .collect();
    Some(list(&texts?, is_truncated))
}

/// Returns `[a, b]`, or `[a, b, ...]` for the beginning of a list.
fn list(texts: &[String], is_truncated: bool) -> String {
    let more = match (is_truncated, texts.is_empty()) {
        (false, _) => "",
        (true, false) => ", ...",
        (true, true) => "...",
    };
    format!("[{}{more}]", texts.join(", "))
}

/// Returns a mask of CPUs as `[0, 1]`; runs of more than two as `0-3`.
pub(super) fn cpus(bytes: &[u8], is_truncated: bool) -> String {
    let cpus = bytes.iter().enumerate().flat_map(|(at, byte)| {
        let set = (0..8).filter(move |bit| byte >> bit & 1 == 1);
        set.map(move |bit| 8 * at + bit)
    });
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let texts = runs.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    let texts: Vec<String> = texts.collect();
    list(&texts, is_truncated)
}

/// Returns the first 64 bits of a mask of memory nodes as `[0x1]`; `...` follows if the mask is longer. As in the kernel, the
/// mask has `max_node` - 1 bits.
pub(super) fn nodes(bytes: &[u8], max_node: u64) -> Option<String> {
    let more = if max_node > 65 { ", ..." } else { "" };
    Some(format!("[{:#x}{more}]", long(bytes, 0)?))
}

/// Returns a signed number of 8 bytes as `[5]`.
pub(super) fn offset(bytes: &[u8]) -> Option<String> {
    Some(format!("[{}]", long(bytes, 0)?.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_lists_of_numbers_end_in_dots() {
        let shown = |bytes: &[u8]| numbers(bytes, true);
        assert_eq!(shown(&[1, 0, 0, 0, 2]).as_deref(), Some("[1, ...]"));
        assert_eq!(shown(&[1, 0]).as_deref(), Some("[...]"));
    }

    #[test]
    fn masks_of_cpus_are_ranges_and_masks_of_nodes_are_numbers() {
        assert_eq!(cpus(&[3, 0], false), "[0, 1]");
        assert_eq!(cpus(&[0xfe, 1, 4], false), "[1-8, 18]");
        assert_eq!(cpus(&[1], true), "[0, ...]");
        assert_eq!(cpus(&[0], true), "[...]");
        assert_eq!(
            nodes(&[1, 0, 0, 0, 0, 0, 0, 0], 66).as_deref(),
            Some("[0x1, ...]")
        );
    }
}
