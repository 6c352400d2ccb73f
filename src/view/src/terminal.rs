//! Text for terminals: control characters in names are escaped.
//!
//! Names of threads, files, symbols and events are chosen by the recorded programs. A terminal
//! interprets control characters in them: it moves the cursor, sets its title, or sends replies as if
//! they were typed. These characters are escaped in text for terminals only; pipes and files get the
//! recorded bytes.
//!
//! | escaped | as |
//! | --- | --- |
//! | C0 (except newline and tab) and DEL | `\x1b`, `\x7f` |
//! | C1 as a character (U+0080 to U+009F) | `\u{9b}` |
//! | a byte 80 to 9F outside of UTF-8 (C1 of 8-bit terminals) | `\x9b` |
//! | characters that change the text direction (U+202A to U+202E, U+2066 to U+2069) | `\u{202e}` |
//!
//! Terminals are assumed to decode UTF-8. Backslashes are not escaped, so that text without control
//! characters is unchanged. A name with the four characters `\x1b` therefore looks like a name with ESC.
//!
//! If stdout is a terminal, its output passes through a [`TerminalFilter`] last. rperf's own control
//! sequences, such as colours, must pass it, but a name can contain the bytes of any sequence, so the
//! filter recognises rperf's sequences by a random mark, see [`Csi`]. [`escaped`] and [`escaped_line`]
//! return escaped text, to compute its width or to write it without a filter.

mod csi;
mod escape;
mod filter;

pub use csi::Csi;
pub(crate) use csi::Sgr;
pub use escape::{escaped, escaped_line, one_line};
pub use filter::TerminalFilter;
