//! The keys of annotated code.

/// Keys and their descriptions.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("h F1", "Show this window"),
    (
        "UP DOWN PGUP PGDN SPACE HOME END",
        "Navigate (also by the mouse wheel)",
    ),
    ("LEFT RIGHT", "Scroll sideways; LEFT at the edge leaves"),
    ("q ESC", "Leave, or back to the previous function"),
    (
        "ENTER, second click",
        "Go to the target of a jump or a call; leave at a return",
    ),
    ("H", "Hottest instruction"),
    ("TAB UNTAB", "Next or previous hottest instruction"),
    ("< >", "Function with the next higher or lower period"),
    ("j", "Show or hide the arrow of the jump at the cursor"),
    ("J", "Show or hide the number of jumps to each target"),
    ("o", "Show addresses, or short disassembly with offsets"),
    ("O", "Show offsets: of jump targets, also of calls, of all"),
    ("f", "Addresses in the object, or in memory"),
    ("s", "Show or hide source lines"),
    ("S v", "Show source and instructions side by side"),
    ("k", "Show or hide source line numbers"),
    ("l", "Show file and line of the instruction at the cursor"),
    ("t", "Show percentages, periods or sample counts"),
    ("p", "Percentages of the function, or of all functions"),
    ("b", "Percentages of periods, or of sample counts"),
    ("/ ?", "Search downwards, or upwards"),
    ("n N", "Next or previous match"),
    ("r", "List the samples of this function"),
    ("P", "Print all lines to FUNCTION.annotation"),
    ("^L", "Redraw"),
];
