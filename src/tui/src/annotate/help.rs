//! The keys of annotated code.

/// Keys and their descriptions.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("h F1", "Show this window"),
    (
        "UP DOWN PGUP PGDN SPACE HOME END",
        "Navigate; so does the wheel",
    ),
    ("LEFT RIGHT", "Scroll sideways; LEFT at the edge leaves"),
    ("q ESC", "Leave, or back to the caller"),
    (
        "ENTER, second click",
        "Go to the target of a jump or a call; leave at a return",
    ),
    ("H", "Hottest instruction"),
    ("TAB UNTAB", "Next hottest, or the one before"),
    ("< >", "The function with more samples, or fewer"),
    ("j", "Arrow of the jump at the cursor on or off"),
    ("J", "Numbers of jumps to each place on or off"),
    ("o", "Addresses instead of offsets, or few words"),
    ("O", "Offsets of jump targets, of calls too, of all"),
    ("f", "Addresses in the object or in memory"),
    ("s", "Lines of the source on or off"),
    ("S v", "Source and instructions side by side"),
    ("k", "Numbers of source lines on or off"),
    ("l", "File and line of the cursor's place"),
    ("t", "Shares, periods, numbers of samples"),
    ("p", "Shares of the function, or of all"),
    ("b", "Shares of periods, or of samples"),
    ("/ ?", "Search, downwards or upwards"),
    ("n N", "Next that fits, or the one before"),
    ("r", "List the samples of this function"),
    ("P", "Print all lines to FUNCTION.annotation"),
    ("^L", "Paint anew"),
];
