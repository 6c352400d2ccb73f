//! Relocation of debug sections in relocatable files such as kernel modules.

use object::read::{File, Relocation, RelocationTarget};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationKind, SectionKind};

/// A relocatable file. `.text` gets the address 0, as addresses of a module are relative to its
/// load address. All other code sections get one distant address, so that their code is not taken for that of `.text`.
/// Sections without code get the address 0.
pub(super) struct Relocatable<'a>(File<'a>);

impl<'a> Relocatable<'a> {
    /// `None` for a file that can't be read.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        File::parse(bytes).ok().map(Self)
    }

    /// Applies relocations to `bytes`, the decompressed content of the section `name`. Unsupported
    /// ones are skipped.
    pub(super) fn relocate(&self, name: &str, bytes: &mut [u8]) {
        let Some(section) = self.0.section_by_name(name) else {
            return;
        };
        for (offset, relocation) in section.relocations() {
            _ = self.apply(offset, &relocation, bytes);
        }
    }

    fn apply(&self, offset: u64, relocation: &Relocation, bytes: &mut [u8]) -> Option<()> {
        if relocation.kind() != RelocationKind::Absolute {
            return None;
        }
        let field = bytes.get_mut(usize::try_from(offset).ok()?..)?;
        let field = field.get_mut(..usize::from(relocation.size() / 8))?;
        let target = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = self.0.symbol_by_index(index).ok()?;
                let section = symbol.section_index();
                let base = section.map_or(0, |section| self.base(section));
                base.wrapping_add(symbol.address())
            }
            RelocationTarget::Section(index) => self.base(index),
            _ => return None,
        };
        let little = self.0.is_little_endian();
        let addend = if relocation.has_implicit_addend() {
            number(field, little)?
        } else {
            0
        };
        let value = target
            .wrapping_add(addend)
            .wrapping_add(relocation.addend().cast_unsigned());
        put(field, value, little)
    }

    /// The address assigned to a section. References to debug sections become offsets, as debug sections have address 0.
    fn base(&self, index: object::SectionIndex) -> u64 {
        let section = self.0.section_by_index(index).ok();
        let is_far = section.is_some_and(|section| {
            let is_code = section.kind() == SectionKind::Text;
            is_code && section.name_bytes() != Ok(b".text")
        });
        let far = if self.0.is_64() { 1 << 40 } else { 1 << 28 };
        if is_far { far } else { 0 }
    }
}

fn number(bytes: &[u8], little: bool) -> Option<u64> {
    Some(match *bytes {
        [a, b, c, d] if little => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
        _ => {
            let bytes = bytes.try_into().ok()?;
            match little {
                true => u64::from_le_bytes(bytes),
                false => u64::from_be_bytes(bytes),
            }
        }
    })
}

/// Writes the low bytes of `value` that fit.
fn put(bytes: &mut [u8], value: u64, little: bool) -> Option<()> {
    let len = bytes.len();
    let part = match little {
        true => value.to_le_bytes().get(..len)?.to_vec(),
        false => value
            .to_be_bytes()
            .get(8usize.checked_sub(len)?..)?
            .to_vec(),
    };
    bytes.copy_from_slice(&part);
    Some(())
}
