//! The arguments of `%s`.

use super::digits::{
    put_bytes, put_decimal, put_hex, put_hex_byte, put_prefixed_hex, put_signed, put_text,
};
use super::program::{
    ByteLocation, IndexRange, NumberSource, PrintContext, PrintFmt, TextSource, ValueTable,
};
use super::spec::TextSpec;
use crate::value::read_number;

/// Padding and truncation. As in perf, they are applied to each name of `__print_flags` by itself, but not to addresses (or the
/// kernel strings at them), the output of `__print_hex` and `__print_array`, or the hexadecimal number that is printed for a
/// value without a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextShape {
    pub(super) spec: TextSpec,
    /// The argument of a `*`.
    pub(super) star: Option<u64>,
}

impl PrintFmt {
    /// Appends the text of a source by its index. An address is that of a kernel string in tracefs `printk_formats`.
    pub(super) fn write_source(
        &self,
        source: usize,
        raw: &[u8],
        context: &PrintContext<'_>,
        shape: TextShape,
        out: &mut Vec<u8>,
    ) {
        let Some(source) = self.sources.get(source) else {
            return;
        };
        let endian = self.abi.endian;
        match source {
            TextSource::Nothing => {}
            TextSource::Literal(span) => put_text(out, self.literal(*span), shape.spec, shape.star),
            TextSource::Field(location) => {
                let (start, size) = location.resolve(raw, endian);
                put_c_string(out, raw.get(start..).unwrap_or_default(), size, shape);
            }
            TextSource::Dynamic(dynamic) => {
                let (start, _) = dynamic.locate(raw, endian);
                // As in perf, only a NUL ends the text, not the length in the field.
                put_c_string(out, raw.get(start..).unwrap_or_default(), usize::MAX, shape);
            }
            TextSource::Address(load) => {
                let address = self.load(*load, raw);
                match context.printk.get(address) {
                    Some(text) => out.extend_from_slice(text.as_bytes()),
                    None => put_hex(out, address),
                }
            }
            TextSource::Names { value, names } => {
                let value = self.number(*value, raw).cast_signed();
                self.write_names(value, *names, shape, out);
            }
            TextSource::Hex {
                location,
                count,
                is_spaced,
            } => self.write_hex(*location, *count, *is_spaced, raw, out),
            TextSource::Array {
                location,
                count,
                element_size,
            } => self.write_array(*location, *count, *element_size, raw, out),
            TextSource::Bitmask(dynamic) => {
                let (start, size) = dynamic.locate(raw, endian);
                let bytes = raw.get(start..).and_then(|bytes| bytes.get(..size));
                self.write_bitmask(bytes.unwrap_or_default(), shape, out);
            }
            TextSource::Choice { condition, yes, no } => {
                let chosen = match self.number(*condition, raw) {
                    0 => no,
                    _ => yes,
                };
                self.write_source(*chosen, raw, context, shape, out);
            }
        }
    }

    fn write_names(&self, value: i64, names: ValueTable, shape: TextShape, out: &mut Vec<u8>) {
        match names {
            ValueTable::OfBits { table, delimiter } => {
                self.write_flags(value, self.literal(delimiter), table, shape, out);
            }
            ValueTable::OfValues(table) => self.write_symbolic(value, table, shape, out),
        }
    }

    fn write_flags(
        &self,
        mut value: i64,
        delimiter: &[u8],
        table: IndexRange,
        shape: TextShape,
        out: &mut Vec<u8>,
    ) {
        let mut is_first = true;
        for entry in self.table(table) {
            // As in perf, the name of an entry with a negative value is printed if no bits remain, without delimiter.
            if value == 0 && entry.value < 0 {
                put_text(out, self.literal(entry.name), shape.spec, shape.star);
                break;
            }
            if entry.value > 0 && value & entry.value == entry.value {
                if !is_first {
                    out.extend_from_slice(delimiter);
                }
                put_text(out, self.literal(entry.name), shape.spec, shape.star);
                is_first = false;
                value &= !entry.value;
            }
        }
        if value != 0 {
            if !is_first {
                out.extend_from_slice(delimiter);
            }
            put_prefixed_hex(out, value.cast_unsigned());
        }
    }

    fn write_symbolic(&self, value: i64, table: IndexRange, shape: TextShape, out: &mut Vec<u8>) {
        let mut entries = self.table(table).iter();
        match entries.find(|entry| entry.value == value) {
            Some(entry) => put_text(out, self.literal(entry.name), shape.spec, shape.star),
            None => put_prefixed_hex(out, value.cast_unsigned()),
        }
    }

    fn write_hex(
        &self,
        location: ByteLocation,
        count: NumberSource,
        is_spaced: bool,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) {
        let (start, _) = location.resolve(raw, self.abi.endian);
        // An int, as in perf; a negative count prints nothing.
        let count = usize::try_from(self.number(count, raw) as i32).unwrap_or(0);
        let bytes = raw.get(start..).unwrap_or_default();
        for (index, byte) in bytes.iter().take(count).enumerate() {
            if index > 0 && is_spaced {
                out.push(b' ');
            }
            put_hex_byte(out, *byte);
        }
    }

    fn write_array(
        &self,
        location: ByteLocation,
        count: NumberSource,
        element_size: NumberSource,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) {
        let (mut at, _) = location.resolve(raw, self.abi.endian);
        // Count and size are ints, as in perf; a negative count prints nothing.
        let count = usize::try_from(self.number(count, raw) as i32).unwrap_or(0);
        let mut size = self.number(element_size, raw) as i32;
        for index in 0..count {
            // The output ends with the record. Perf would read beyond it, which gives meaningless numbers. An element of which
            // the record has only the first bytes is printed as 0.
            let Some(&first) = raw.get(at) else { return };
            if index > 0 {
                out.push(b' ');
            }
            if matches!(size, 1 | 2 | 4 | 8) {
                let number = read_number(raw, at, size as usize, self.abi.endian);
                put_decimal(out, number.unwrap_or(0));
            } else {
                // As in perf: the first byte, then all further elements as bytes.
                out.extend_from_slice(b"BAD SIZE:");
                put_signed(out, size.into());
                out.push(b' ');
                put_prefixed_hex(out, first.into());
                size = 1;
            }
            at += size as usize;
        }
    }

    /// Appends the bits in hexadecimal, most significant first, with commas between groups of 32.
    fn write_bitmask(&self, bytes: &[u8], shape: TextShape, out: &mut Vec<u8>) {
        let start = out.len();
        let is_little = self.abi.endian == rperf_wire::Endian::Little;
        for index in 0..bytes.len() {
            // Number of bytes that are less significant, and are printed later.
            let from_low = bytes.len() - 1 - index;
            let at = if is_little { from_low } else { index };
            put_hex_byte(out, bytes.get(at).copied().unwrap_or(0));
            if from_low.is_multiple_of(4) && from_low > 0 {
                out.push(b',');
            }
        }
        if shape.spec != TextSpec::default() {
            let text = out.split_off(start);
            put_text(out, &text, shape.spec, shape.star);
        }
    }
}

/// Appends the bytes up to the first NUL, at most `size`.
fn put_c_string(out: &mut Vec<u8>, bytes: &[u8], size: usize, shape: TextShape) {
    let field = bytes.get(..size).unwrap_or(bytes);
    let text = field.get(..nul_position(field)).unwrap_or(field);
    if shape.spec == TextSpec::default() {
        // `bytes` begins with `text`, and usually has further bytes: then a block of fixed size is copied, which is faster.
        put_bytes(out, text, bytes);
    } else {
        put_text(out, text, shape.spec, shape.star);
    }
}

/// Position of the first NUL, or the length if there is none; searches eight bytes at a time.
#[inline]
fn nul_position(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest set bit belongs to the first zero byte.
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return index * 8 + zeros.trailing_zeros() as usize / 8;
        }
    }
    let in_rest = rest.iter().position(|&byte| byte == 0);
    words.len() * 8 + in_rest.unwrap_or(rest.len())
}
