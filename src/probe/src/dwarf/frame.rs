//! Canonical frame addresses (CFA) from call frame information.

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EndianSlice, Register, RunTimeEndian,
    UnwindContext, UnwindSection,
};
use object::{Object as _, ObjectSection as _};

type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;

/// The call frame information of one object.
#[derive(Debug)]
pub(crate) struct Frames<'a> {
    eh_frame: EhFrame<Bytes<'a>>,
    debug_frame: DebugFrame<Bytes<'a>>,
    bases: BaseAddresses,
}

impl<'a> Frames<'a> {
    /// Reads the tables of `file`, which is the executed file: those of a separate debug file are not used.
    pub(crate) fn new(file: &object::File<'a>) -> Self {
        let endian = match file.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let bytes = |name: &str| {
            let section = file.section_by_name(name);
            let bytes = section.and_then(|section| section.data().ok());
            bytes.unwrap_or_default()
        };
        let address = |name: &str| {
            let section = file.section_by_name(name);
            section.map_or(0, |section| section.address())
        };
        let mut eh_frame = EhFrame::new(bytes(".eh_frame"), endian);
        let mut debug_frame = DebugFrame::new(bytes(".debug_frame"), endian);
        let size = if file.is_64() { 8 } else { 4 };
        eh_frame.set_address_size(size);
        debug_frame.set_address_size(size);
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        Self {
            eh_frame,
            debug_frame,
            bases,
        }
    }

    /// Returns the canonical frame address (CFA) at `address` as a register and an offset in bytes; `None` if no table
    /// covers `address` or if the CFA has another form.
    pub(crate) fn cfa(&self, address: u64) -> Option<(Register, i64)> {
        self.in_table(&self.eh_frame, address)
            .or_else(|| self.in_table(&self.debug_frame, address))
    }

    fn in_table<T: UnwindSection<Bytes<'a>>>(
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
