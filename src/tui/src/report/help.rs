//! The keys of a report.

/// Keys and their descriptions.
const KEYS: &[(&str, &str)] = &[
    ("h ? F1", "Show this window"),
    (
        "UP DOWN PGUP PGDN SPACE HOME END",
        "Navigate (also by the mouse wheel)",
    ),
    ("LEFT RIGHT", "Scroll columns"),
    ("q ESC", "q: leave; ESC: zoom out, or leave"),
    ("ENTER m, second click", "Menu: zoom, annotate, unfold, ..."),
    ("TAB UNTAB", "Switch between events"),
    ("+", "Unfold or fold one level"),
    ("e c", "e: unfold or fold whole row; c: fold it"),
    ("E C", "E: unfold all rows; C: fold all rows"),
    ("a", "Annotate the function"),
    ("d", "Zoom into the row's DSO"),
    ("t", "Zoom into the row's thread"),
    ("S", "Zoom into the row's processor socket"),
    ("k", "Zoom into the kernel"),
    ("/", "Show functions whose name contains a text"),
    ("F", "Percentages of visible rows, or of all"),
    ("L", "Hide rows below a percentage"),
    ("o", "Sort by the next column"),
    ("0-9", "Sort by event N of a group (0: leader)"),
    ("g", "Flame view of the row"),
    ("H", "Show or hide column titles"),
    ("V", "Show or hide addresses and paths (-v)"),
    ("i", "Show the header of the recording"),
    ("P", "Print all rows to perf.hist.N"),
    ("r", "List the samples"),
    ("s", "Switch to another recording"),
    ("^L", "Redraw"),
];

/// Additional keys of `top`.
const LIVE: &[(&str, &str)] = &[
    ("z", "Reset or decay counts at each refresh"),
    ("f", "Disable or enable the events"),
];

/// Keys that are not available in `top`.
const RECORDING_ONLY: &[&str] = &["i", "r", "s", "V"];

/// Returns the keys of a recording's report, or of `top`.
pub(super) fn keys(is_live: bool) -> Vec<(&'static str, &'static str)> {
    if !is_live {
        return KEYS.to_vec();
    }
    let keys = KEYS.iter().filter(|(key, _)| !RECORDING_ONLY.contains(key));
    keys.chain(LIVE).copied().collect()
}
