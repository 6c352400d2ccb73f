//! Canonical frame addresses (CFA) from call frame information.

use std::borrow::Cow;
use std::cell::OnceCell;

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EndianSlice, Register, RunTimeEndian,
    UnwindContext, UnwindSection,
};
use object::{Object as _, ObjectKind, ObjectSection as _};
use rperf_symbol::dwarf::section_content;

type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;

/// The call frame information of one object.
#[derive(Debug)]
pub(crate) struct Frames<'a> {
    /// The content of the object file.
    content: &'a [u8],
    endian: RunTimeEndian,
    /// The size of an address in bytes.
    address_size: u8,
    /// The content of `.eh_frame`; empty if the object has none or is not linked.
    eh_frame: &'a [u8],
    /// The content of `.debug_frame`, read on demand, since it may have to be decompressed.
    debug_frame: OnceCell<Vec<u8>>,
    bases: BaseAddresses,
}

impl<'a> Frames<'a> {
    /// Finds the tables of `file`, parsed from `bytes`. `file` is the executed file: a separate debug file is not used.
    pub(crate) fn new(file: &object::File<'a>, bytes: &'a [u8]) -> Self {
        let endian = match file.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let address = |name: &str| {
            let section = file.section_by_name(name);
            section.map_or(0, |section| section.address())
        };
        // Before linking, the addresses in `.eh_frame` still need relocation, which only `.debug_frame` gets (`section_content`).
        let is_linked = file.kind() != ObjectKind::Relocatable;
        let eh_frame = file.section_by_name(".eh_frame").filter(|_| is_linked);
        let eh_frame = eh_frame.and_then(|section| section.data().ok());
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        Self {
            content: bytes,
            endian,
            address_size: if file.is_64() { 8 } else { 4 },
            eh_frame: eh_frame.unwrap_or_default(),
            debug_frame: OnceCell::new(),
            bases,
        }
    }

    /// Returns the canonical frame address (CFA) at `address` as a register and an offset in bytes; `None` if no table
    /// covers `address` or if the CFA has another form.
    pub(crate) fn cfa(&self, address: u64) -> Option<(Register, i64)> {
        let mut eh_frame = EhFrame::new(self.eh_frame, self.endian);
        eh_frame.set_address_size(self.address_size);
        self.in_table(&eh_frame, address).or_else(|| {
            let mut debug_frame = DebugFrame::new(self.debug_frame(), self.endian);
            debug_frame.set_address_size(self.address_size);
            self.in_table(&debug_frame, address)
        })
    }

    fn debug_frame(&self) -> &[u8] {
        self.debug_frame.get_or_init(|| {
            let content = section_content(self.content, ".debug_frame");
            content.map(Cow::into_owned).unwrap_or_default()
        })
    }

    fn in_table<'t, T: UnwindSection<Bytes<'t>>>(
        &self,
        table: &T,
        address: u64,
    ) -> Option<(Register, i64)> {
        let entry = table
            .fde_for_address(&self.bases, address, T::cie_from_offset)
            .ok()?;
        let mut context = UnwindContext::new();
        let row = entry
            .unwind_info_for_address(table, &self.bases, &mut context, address)
            .ok()?;
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Some((*register, *offset)),
            CfaRule::Expression(_) => None,
        }
    }
}
