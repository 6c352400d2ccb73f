//! The keys of a report.

/// Keys and what they do.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("h ? F1", "Show this window"),
    (
        "UP DOWN PGUP PGDN SPACE HOME END",
        "Navigate; so does the wheel",
    ),
    ("LEFT RIGHT", "Scroll columns"),
    ("q ESC", "Leave, or zoom out"),
    ("ENTER m, second click", "Menu: zoom, annotate, unfold, ..."),
    ("TAB UNTAB", "Switch between events"),
    ("+", "Unfold or fold one level"),
    ("e c", "Unfold or fold the row; fold it"),
    ("E C", "Unfold all rows; fold all"),
    ("a", "Annotate the function"),
    ("d", "Zoom into its DSO"),
    ("t", "Zoom into its thread"),
    ("S", "Zoom into its processor socket"),
    ("k", "Zoom into the kernel"),
    ("/", "Show functions whose name contains a text"),
    ("F", "Shares of what is seen, or of all"),
    ("L", "Hide rows below a share"),
    ("0-9", "Order by the n-th event of a group"),
    ("g", "Flame view of the row or branch"),
    ("H", "Titles of columns on or off"),
    ("V", "Addresses and paths on or off (-v)"),
    ("i", "Header of the recording"),
    ("P", "Print all rows to perf.hist.N"),
    ("r", "List the samples"),
    ("s", "Switch to another recording"),
    (
        "z",
        "Of what runs now: forget older samples at once, or not",
    ),
    ("f", "Of what runs now: stop the events, or start them"),
    ("^L", "Paint anew"),
];
