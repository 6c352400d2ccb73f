//! The fields of a tracepoint, found in its texts: `comm=sh pid=7` has a text `comm` and a number `pid`.

use std::fmt::Write as _;

/// The states of a task in sched_switch, by their bit.
const STATES: [(u64, &str); 8] = [
    (0x1, "S"),
    (0x2, "D"),
    (0x4, "T"),
    (0x8, "t"),
    (0x10, "X"),
    (0x20, "Z"),
    (0x40, "P"),
    (0x80, "I"),
];
/// The bit that is printed as `+`: the task was preempted.
const PREEMPTED: u64 = 0x100;
/// Size in bytes of the fields that all events have: type, flags, preemption count, thread.
const COMMON: usize = 8;
/// Size of a comm in bytes.
const COMM: usize = 16;
/// Maximum length of a text in bytes. If its keys and values are short, the stored fields have about twice its size (`a=1` and a
/// blank become 8 bytes if another value of `a` needs 64 bits), and a record has at most 64 KiB.
const MAX_TEXT: usize = 32_000;

/// The common pattern of all texts of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldPattern<'t> {
    /// The field of each key, in the order of the keys in the texts; empty if `is_free` or `is_empty`.
    fields: Vec<FieldTexts<'t>>,
    /// Whether the keys, or the parts before the first key, differ between texts, or the texts have no keys, or one key twice:
    /// then each text is stored as a whole.
    is_free: bool,
    /// Whether no text was added yet.
    is_empty: bool,
    /// Length of the longest text in bytes.
    longest: usize,
    /// Whether the tracepoint is `sched:sched_switch`.
    is_switch: bool,
}

/// The common properties of all values of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldTexts<'t> {
    /// The text before the first key; empty for the other keys.
    before: &'t str,
    key: &'t str,
    /// Whether all values are decimal numbers up to their first blank.
    is_number: bool,
    /// Length of the first value up to its first blank, in bytes.
    width: usize,
    /// Whether any number has leading zeros.
    is_padded: bool,
    /// Whether all values have the length `width` up to their first blank.
    is_same_width: bool,
    /// Whether all numbers fit into 32 bits.
    is_short: bool,
    /// Whether all values are hexadecimal numbers with `0x` up to their first blank.
    is_hexadecimal: bool,
    /// Whether all values are states of tasks up to their first blank.
    is_state: bool,
    /// The part of the value from the first blank on; `None` if it is not the same in all values. [`FieldTexts::storage`] decides
    /// whether it becomes the [`StoredField::tail`] or is stored with each value.
    tail: Option<&'t str>,
    /// Length of the longest value in bytes, with its tail.
    longest: usize,
}

/// How a field is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// A number of `size` bytes, printed with leading zeros up to `width` characters; without if `width` is 0.
    Number {
        size: usize,
        width: usize,
    },
    Hexadecimal,
    State,
    /// At most 15 bytes and NUL.
    Comm,
    /// Offset and size; the text follows the fields.
    Text,
}

/// A field with its place in the data.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StoredField {
    storage: Storage,
    offset: usize,
    /// The text after each value, which is in the format instead of the data.
    tail: String,
}

/// A tracepoint's description, and how its texts are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextTracepoint {
    id: u16,
    fields: Vec<StoredField>,
    /// Whether the only field has the whole text.
    is_free: bool,
    /// Size of all fields in bytes, with the common ones.
    size: usize,
    /// The description as in tracefs.
    pub(super) format: String,
}

/// Splits `a=1 b=2` at its keys. Returns for each key the text before it (empty unless it is the first), the key and its value.
fn split_at_keys(text: &str) -> Vec<(&str, &str, &str)> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = text.as_bytes();
    // Start and end of each key: a word before '=', at the start of the text or after a blank.
    let mut keys: Vec<(usize, usize)> = Vec::new();
    for (end, _) in text.match_indices('=') {
        let word = bytes
            .iter()
            .take(end)
            .rev()
            .take_while(|byte| is_word(byte));
        let start = end - word.count();
        let starts_word = start == 0 || bytes.get(start - 1) == Some(&b' ');
        if start < end && starts_word {
            keys.push((start, end));
        }
    }
    let mut triples = Vec::new();
    for (number, (start, end)) in keys.iter().enumerate() {
        let next = keys.get(number + 1).map(|(next, _)| *next);
        let before = match number {
            0 => text.get(..*start),
            _ => Some(""),
        };
        // The blank before the next key belongs neither to the key nor to the value.
        let value_end = next.map_or(text.len(), |next| next - 1).max(end + 1);
        let value = text.get(end + 1..value_end);
        let key = text.get(*start..*end);
        if let (Some(before), Some(key), Some(value)) = (before, key, value) {
            triples.push((before, key, value));
        }
    }
    triples
}

/// The bits of a state such as `S`, `D|T` or `R+`.
fn state(text: &str) -> Option<u64> {
    let (letters, preempted) = match text.strip_suffix('+') {
        Some(letters) => (letters, PREEMPTED),
        None => (text, 0),
    };
    if letters == "R" {
        return Some(preempted);
    }
    letters.split('|').try_fold(preempted, |bits, letter| {
        let known = STATES.iter().find(|(_, known)| *known == letter);
        known.map(|(bit, _)| bits | bit)
    })
}

/// Parses `0x1f`; `None` for hexadecimal numbers that would be printed in another way.
fn prefixed(text: &str) -> Option<u64> {
    let number = super::frame::hexadecimal(text.strip_prefix("0x")?)?;
    (format!("{number:#x}") == text).then_some(number)
}

impl<'t> FieldTexts<'t> {
    fn new(before: &'t str, key: &'t str, value: &'t str) -> Self {
        let mut texts = Self {
            before,
            key,
            is_number: true,
            width: first_word(value).len(),
            is_padded: false,
            is_same_width: true,
            is_short: true,
            is_hexadecimal: true,
            is_state: true,
            tail: Some(tail(value)),
            longest: 0,
        };
        texts.add(value);
        texts
    }

    fn add(&mut self, value: &'t str) {
        let word = first_word(value);
        self.tail = self.tail.filter(|known| *known == tail(value));
        let number: Option<i64> = word.parse().ok();
        let digits = word.strip_prefix('-').unwrap_or(word);
        let is_padded = digits.len() > 1 && digits.starts_with('0');
        self.is_padded |= is_padded;
        self.is_same_width &= word.len() == self.width;
        // parse() accepts `+1` and `-0`, too, which would be printed in another way.
        self.is_number &= number.is_some() && !word.starts_with('+') && word != "-0";
        self.is_short &= number.is_some_and(|number| i32::try_from(number).is_ok());
        self.is_hexadecimal &= prefixed(word).is_some();
        self.is_state &= state(word).is_some();
        self.longest = self.longest.max(value.len());
    }

    /// The storage of the values, and the text after each value.
    fn storage(&self, is_switch: bool) -> (Storage, &'t str) {
        // A format can only reproduce leading zeros if all numbers have the same width.
        let is_number = self.is_number && (!self.is_padded || self.is_same_width);
        if let Some(tail) = self.tail {
            if is_switch && self.key == "prev_state" && self.is_state {
                return (Storage::State, tail);
            }
            if is_number {
                let width = if self.is_padded { self.width } else { 0 };
                let size = if self.is_short { 4 } else { 8 };
                return (Storage::Number { size, width }, tail);
            }
            if self.is_hexadecimal {
                return (Storage::Hexadecimal, tail);
            }
        }
        // A common tail without letters and digits is punctuation (` ==>`); any other tail is part of the values.
        let is_punctuation = |tail: &&str| !tail.bytes().any(|byte| byte.is_ascii_alphanumeric());
        let tail = self.tail.filter(is_punctuation).unwrap_or_default();
        let is_comm = self.key == "comm" || self.key.ends_with("_comm");
        match is_comm && self.longest - tail.len() < COMM {
            true => (Storage::Comm, tail),
            false => (Storage::Text, tail),
        }
    }
}

/// The text up to the first blank.
fn first_word(value: &str) -> &str {
    value.split(' ').next().unwrap_or_default()
}

/// The text from the first blank on; empty if there is none.
fn tail(value: &str) -> &str {
    value.get(first_word(value).len()..).unwrap_or_default()
}

impl<'t> FieldPattern<'t> {
    /// The pattern of a tracepoint without texts.
    pub(super) fn new(event: &str) -> Self {
        Self {
            fields: Vec::new(),
            is_free: false,
            is_empty: true,
            longest: 0,
            is_switch: event == "sched:sched_switch",
        }
    }

    /// Adds a text.
    pub(super) fn add(&mut self, text: &'t str) {
        self.longest = self.longest.max(text.len());
        if self.is_free {
            return;
        }
        let triples = split_at_keys(text);
        if std::mem::take(&mut self.is_empty) {
            let fields = triples.into_iter();
            self.fields = fields
                .map(|(before, key, value)| FieldTexts::new(before, key, value))
                .collect();
            let mut keys: Vec<&str> = self.fields.iter().map(|field| field.key).collect();
            keys.sort_unstable();
            keys.dedup();
            self.is_free = self.fields.is_empty() || keys.len() < self.fields.len();
        } else {
            let known = self.fields.iter();
            let is_same = known.len() == triples.len()
                && known
                    .zip(&triples)
                    .all(|(field, (before, key, _))| field.key == *key && field.before == *before);
            self.is_free = !is_same;
            let fields = self.fields.iter_mut().zip(triples);
            fields.for_each(|(field, (_, _, value))| field.add(value));
        }
        if self.is_free {
            self.fields.clear();
        }
    }

    /// The description of the tracepoint with this id.
    pub(super) fn tracepoint(&self, name: &str, id: u16) -> TextTracepoint {
        let mut layout = Layout::default();
        for texts in &self.fields {
            let (storage, tail) = texts.storage(self.is_switch);
            layout.add(texts.before, texts.key, storage, tail);
        }
        if self.fields.is_empty() {
            layout.add_free_text();
        }
        layout.finish(name, id)
    }

    /// Whether each text fits into a sample.
    pub(super) fn fits(&self) -> bool {
        self.longest <= MAX_TEXT
    }
}

/// A description while fields are added.
#[derive(Debug, Default)]
struct Layout {
    fields: Vec<StoredField>,
    is_free: bool,
    /// Size in bytes of the fields so far, without the common ones.
    size: usize,
    declarations: String,
    /// The format string of `print fmt`.
    print_format: String,
    /// The arguments of `print fmt`.
    arguments: String,
}

impl Layout {
    /// Adds a field, and the text around its value.
    fn add(&mut self, before: &str, key: &str, storage: Storage, tail: &str) {
        if !self.print_format.is_empty() {
            self.print_format.push(' ');
        }
        self.literal(before);
        self.literal(key);
        self.print_format.push('=');
        self.value(key, storage);
        self.literal(tail);
        self.declare(key, storage, tail);
    }

    /// Adds one field for the whole text, which is printed as it is.
    fn add_free_text(&mut self) {
        self.is_free = true;
        self.value("text", Storage::Text);
        self.declare("text", Storage::Text, "");
    }

    /// Adds text that is printed as it is.
    fn literal(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '%' => self.print_format.push_str("%%"),
                '"' | '\\' => {
                    self.print_format.push('\\');
                    self.print_format.push(letter);
                }
                _ => self.print_format.push(letter),
            }
        }
    }

    /// Adds a conversion and its arguments.
    fn value(&mut self, key: &str, storage: Storage) {
        let argument = match storage {
            Storage::Text => format!("__get_str({key})"),
            _ => format!("REC->{key}"),
        };
        let conversion = match storage {
            Storage::Number { size: 4, width: 0 } => "%d".to_owned(),
            Storage::Number { size: 4, width } => format!("%0{width}d"),
            Storage::Number { width: 0, .. } => "%lld".to_owned(),
            Storage::Number { width, .. } => format!("%0{width}lld"),
            Storage::Hexadecimal => "0x%llx".to_owned(),
            Storage::State => "%s%s".to_owned(),
            Storage::Comm | Storage::Text => "%s".to_owned(),
        };
        self.print_format.push_str(&conversion);
        if storage == Storage::State {
            let mask = PREEMPTED - 1;
            let states = STATES.map(|(bit, letter)| format!("{{ {bit:#x}, \"{letter}\" }}"));
            let _ = write!(
                self.arguments,
                ", ({argument} & {mask:#x}) ? __print_flags({argument} & {mask:#x}, \"|\", {}) : \"R\", {argument} & {PREEMPTED:#x} ? \"+\" : \"\"",
                states.join(", ")
            );
            return;
        }
        let _ = write!(self.arguments, ", {argument}");
    }

    /// Adds the field's declaration and its place in the data.
    fn declare(&mut self, key: &str, storage: Storage, tail: &str) {
        let (declaration, size, is_signed) = match storage {
            Storage::Number { size: 4, .. } => (format!("int {key}"), 4, 1),
            Storage::Number { .. } => (format!("s64 {key}"), 8, 1),
            Storage::Hexadecimal => (format!("u64 {key}"), 8, 0),
            Storage::State => (format!("long {key}"), 8, 1),
            Storage::Comm => (format!("char {key}[{COMM}]"), COMM, 0),
            Storage::Text => (format!("__data_loc char[] {key}"), 4, 0),
        };
        let align = size.min(8);
        let offset = (COMMON + self.size).next_multiple_of(align);
        let _ = writeln!(
            self.declarations,
            "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{is_signed};"
        );
        self.size = offset + size - COMMON;
        self.fields.push(StoredField {
            storage,
            offset,
            tail: tail.to_owned(),
        });
    }

    fn finish(self, name: &str, id: u16) -> TextTracepoint {
        let format = format!(
            "name: {name}\n\
             ID: {id}\n\
             format:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
             \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
             \n\
             {}\n\
             print fmt: \"{}\"{}\n",
            self.declarations, self.print_format, self.arguments
        );
        TextTracepoint {
            id,
            is_free: self.is_free,
            size: COMMON + self.size,
            fields: self.fields,
            format,
        }
    }
}

impl TextTracepoint {
    /// The tracepoint's id, `common_type`.
    pub(super) fn id(&self) -> u16 {
        self.id
    }

    /// The raw data of an event of thread `tid` with this text, little-endian. As in the kernel, its u32 size and the
    /// padded data together are a multiple of 8 bytes.
    pub(super) fn data(&self, tid: u32, text: &str) -> Vec<u8> {
        let mut data = vec![0; self.size];
        put(&mut data, 0, &self.id.to_le_bytes());
        put(&mut data, 4, &tid.to_le_bytes());
        let triples = split_at_keys(text);
        for (number, field) in self.fields.iter().enumerate() {
            let value = match triples.get(number) {
                Some((.., value)) if !self.is_free => *value,
                _ => text,
            };
            let value = value.strip_suffix(field.tail.as_str()).unwrap_or(value);
            field.store(value, &mut data);
        }
        data.resize((data.len() + 4).next_multiple_of(8) - 4, 0);
        data
    }
}

impl StoredField {
    fn store(&self, value: &str, data: &mut Vec<u8>) {
        let number = || value.parse::<i64>().unwrap_or_default();
        match self.storage {
            Storage::Number { size, .. } => {
                let bytes = number().to_le_bytes();
                put(data, self.offset, bytes.get(..size).unwrap_or_default());
            }
            Storage::Hexadecimal => {
                let number = prefixed(value).unwrap_or_default();
                put(data, self.offset, &number.to_le_bytes());
            }
            Storage::State => {
                let bits = state(value).unwrap_or_default();
                put(data, self.offset, &bits.to_le_bytes());
            }
            Storage::Comm => put(data, self.offset, value.as_bytes()),
            Storage::Text => {
                let place = (data.len() as u32) | ((value.len() as u32 + 1) << 16);
                put(data, self.offset, &place.to_le_bytes());
                data.extend_from_slice(value.as_bytes());
                data.push(0);
            }
        }
    }
}

/// Replaces the bytes at `offset`.
fn put(data: &mut [u8], offset: usize, bytes: &[u8]) {
    for (to, from) in data.iter_mut().skip(offset).zip(bytes) {
        *to = *from;
    }
}
