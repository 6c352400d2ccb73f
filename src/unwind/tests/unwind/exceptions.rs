//! `.ARM.exidx` and `.ARM.extab`, in each of their forms.

use super::elf::{Entry, File, Part, Parts};

/// Nothing is to be done any more.
const FINISH: u8 = 0xb0;

/// Where the instructions of an entry are.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// In the index itself; at most three.
    Inline,
    /// In the list; at most three.
    Short,
    /// In the list, with the number of words.
    Long,
    /// There, behind the address of an own personality routine.
    Own,
}

impl Form {
    fn of(index: usize, length: usize) -> Self {
        match index % 4 {
            0 if length <= 3 => Self::Inline,
            1 if length <= 3 => Self::Short,
            2 => Self::Own,
            _ => Self::Long,
        }
    }
}

/// Writes the list and the index; `entries` are by rising address.
pub(crate) fn put(file: &mut File, entries: &[Entry]) -> Parts {
    let list = file.at();
    let mut pairs = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let form = Form::of(index, entry.instructions.len());
        pairs.push((entry.start, said(file, entry, form)));
        let end = entry.start + entry.size;
        if entries.get(index + 1).is_none_or(|next| next.start != end) {
            pairs.push((end, Said::Word(1)));
        }
    }
    let index = file.at();
    for (start, said) in pairs {
        put_offset(file, start);
        match said {
            Said::Word(word) => file.put(word.into(), 4),
            Said::At(place) => put_offset(file, place),
        }
    }
    let part = |name, kind, range| Part { name, kind, range };
    Parts {
        sections: vec![
            part(24, 1, list..index),
            part(35, 0x7000_0001, index..file.at()),
        ],
        segment: Some((0x7000_0001, index..file.at())),
    }
}

/// What stands in the index.
enum Said {
    Word(u32),
    At(u64),
}

fn said(file: &mut File, entry: &Entry, form: Form) -> Said {
    let code = &entry.instructions[..];
    if code.is_empty() {
        return Said::Word(1);
    }
    let place = file.at();
    match form {
        Form::Inline => return Said::Word(words(&[&[0x80], code].concat())[0]),
        Form::Short => put_words(file, &[&[0x80], code].concat()),
        Form::Long => put_counted(file, &[0x81], code),
        Form::Own => {
            put_offset(file, entry.start);
            put_counted(file, &[], code);
        }
    }
    Said::At(place)
}

/// `head`, the number of further words, and `code`.
fn put_counted(file: &mut File, head: &[u8], code: &[u8]) {
    let size = head.len() + 1 + code.len();
    let more = u8::try_from(size.div_ceil(4) - 1).unwrap();
    put_words(file, &[head, &[more], code].concat());
}

fn put_words(file: &mut File, bytes: &[u8]) {
    for word in words(bytes) {
        file.put(word.into(), 4);
    }
}

/// Bytes as words, high ones first.
fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8]| {
        let mut word = [FINISH; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_be_bytes(word)
    };
    bytes.chunks(4).map(word).collect()
}

/// The distance from here to `place`, in 31 bits.
fn put_offset(file: &mut File, place: u64) {
    let distance = place.wrapping_sub(file.at()) & 0x7fff_ffff;
    file.put(distance, 4);
}
