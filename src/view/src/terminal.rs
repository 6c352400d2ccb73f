//! Text for terminals: control characters of names are shown, and never sent.
//!
//! Names of threads, files, symbols and events are chosen by the programs that were recorded. A terminal obeys control
//! characters in them: it moves the cursor, sets its title, sends answers as if they were typed. So they are escaped where
//! text goes to a terminal, and nowhere else: pipes and files get the bytes that were recorded.
//!
//! | escaped | as |
//! | --- | --- |
//! | C0 but newline and tab, DEL | `\x1b`, `\x7f` |
//! | C1 as a character (U+0080 to U+009F) | `\u{9b}` |
//! | a byte 80 to 9F that is no part of UTF-8 (C1 of terminals with 8 bits) | `\x9b` |
//! | what turns the direction of text (U+202A to U+202E, U+2066 to U+2069) | `\u{202e}` |
//!
//! Terminals are assumed to decode UTF-8. Backslashes are not escaped, so that text without control characters stays as it
//! is: a name that contains the four characters `\x1b` looks like one that contains ESC.
//!
//! All output for a terminal passes one [`Filter`] last, whichever view wrote it. Colours of our own have to get through, and
//! a name can contain the bytes of any colour: the filter recognises ours by a random mark in them instead, see [`Csi`].
//! [`escaped`] and [`escaped_line`] give the same text beforehand, where its width matters.

mod csi;
mod escape;
mod filter;

pub use csi::Csi;
pub(crate) use csi::Sgr;
pub use escape::{escaped, escaped_line, one_line};
pub use filter::Filter;
