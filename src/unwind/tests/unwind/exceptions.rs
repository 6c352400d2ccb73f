//! Writes the index `.ARM.exidx` and the table `.ARM.extab` of a test file, with entries in each of their formats.

use super::elf::{
    ARM_EXIDX_NAME, ARM_EXTAB_NAME, Entry, File, PT_ARM_EXIDX, Part, Parts, SHT_ARM_EXIDX,
    SHT_PROGBITS,
};

/// The `finish` unwind instruction.
const FINISH: u8 = 0xb0;
/// The second word of the index entry of a function without unwind information.
const CANT_UNWIND: u32 = 1;

/// The location of an entry's instructions.
#[derive(Debug, Clone, Copy)]
enum Placement {
    /// In the index; at most three bytes.
    Inline,
    /// In the table, short form; at most three bytes.
    Short,
    /// In the table, long form, with the number of further words.
    Long,
    /// In the table, after the address of a custom personality routine.
    CustomRoutine,
}

impl Placement {
    /// The placement of entry `number` with instructions of `length` bytes. It depends on the number, so that a file with several
    /// entries has each placement that the lengths permit.
    fn of(number: usize, length: usize) -> Self {
        match number % 4 {
            0 if length <= 3 => Self::Inline,
            1 if length <= 3 => Self::Short,
            2 => Self::CustomRoutine,
            _ => Self::Long,
        }
    }
}

/// Writes the table (`.ARM.extab`) and the index (`.ARM.exidx`); `entries` are sorted by `start`, the offset of their code in
/// the file.
pub(crate) fn put(file: &mut File, entries: &[Entry]) -> Parts {
    let table = file.next_offset();
    let mut index_entries = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let placement = Placement::of(number, entry.instructions.len());
        index_entries.push((entry.start, put_instructions(file, entry, placement)));
        let end = entry.start + entry.size;
        // An index entry applies up to the next one: a gap after the code needs an entry, too.
        if entries.get(number + 1).is_none_or(|next| next.start != end) {
            index_entries.push((end, EncodedEntry::Word(CANT_UNWIND)));
        }
    }
    let index = file.next_offset();
    for (start, encoded) in index_entries {
        put_offset(file, start);
        match encoded {
            EncodedEntry::Word(word) => file.put(word.into(), 4),
            EncodedEntry::At(place) => put_offset(file, place),
        }
    }
    let part = |name, kind, range| Part { name, kind, range };
    Parts {
        sections: vec![
            part(ARM_EXTAB_NAME, SHT_PROGBITS, table..index),
            part(ARM_EXIDX_NAME, SHT_ARM_EXIDX, index..file.next_offset()),
        ],
        segment: Some((PT_ARM_EXIDX, index..file.next_offset())),
    }
}

/// The second word of an index entry.
enum EncodedEntry {
    Word(u32),
    /// The offset in the file to which the word refers.
    At(u64),
}

/// Writes the instructions of `entry` into the table, unless there are none or they are inline; returns the second word of its
/// index entry.
fn put_instructions(file: &mut File, entry: &Entry, placement: Placement) -> EncodedEntry {
    let code = &entry.instructions[..];
    if code.is_empty() {
        return EncodedEntry::Word(CANT_UNWIND);
    }
    let place = file.next_offset();
    // 0x80 and 0x81 select the predefined personality routines of the short and the long form.
    match placement {
        Placement::Inline => return EncodedEntry::Word(words(&[&[0x80], code].concat())[0]),
        Placement::Short => put_words(file, &[&[0x80], code].concat()),
        Placement::Long => put_counted(file, &[0x81], code),
        Placement::CustomRoutine => {
            // The address of the routine: that of any code, here of the function itself, since the unwinder does not call it.
            put_offset(file, entry.start);
            put_counted(file, &[], code);
        }
    }
    EncodedEntry::At(place)
}

/// Writes `head`, the number of further words, and `code`.
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

/// Packs bytes into words, most significant byte first; the last word is filled with [`FINISH`].
fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8]| {
        let mut word = [FINISH; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_be_bytes(word)
    };
    bytes.chunks(4).map(word).collect()
}

/// Writes the distance from here to `place`, an offset in the file, in 31 bits.
fn put_offset(file: &mut File, place: u64) {
    let distance = place.wrapping_sub(file.next_offset()) & 0x7fff_ffff;
    file.put(distance, 4);
}
