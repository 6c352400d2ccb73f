//! `PERF_RECORD_SAMPLE`: the fields that the event's `sample_type` asks for, in the kernel's order.

mod fixed;

use crate::branch::encode_branches;
use crate::{
    Attr, BranchSampleType, BranchStack, Cursor, DecodeError, Encoder, Endian, ReadFormat,
    ReadValues, Regs, SampleType, U64s, UserStack,
};
use fixed::FixedFields;

/// One decoded sample; it borrows what is long from the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample<'a> {
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Process and thread id; -1 as `u32::MAX` for a dying task.
    pub pid_tid: Option<(u32, u32)>,
    /// Timestamp in nanoseconds of the event's clock.
    pub time: Option<u64>,
    /// Data address.
    pub addr: Option<u64>,
    /// Event id (from IDENTIFIER or ID).
    pub id: Option<u64>,
    /// Stream id.
    pub stream_id: Option<u64>,
    /// CPU number.
    pub cpu: Option<u32>,
    /// Events since the sample before; without the field, the attr's fixed period.
    pub period: Option<u64>,
    /// Counter values.
    pub read: Option<ReadValues<'a>>,
    /// Addresses and context markers, innermost first.
    pub callchain: Option<U64s<'a>>,
    /// Raw data, a tracepoint's fields.
    pub raw: Option<&'a [u8]>,
    /// Branch stack, newest first.
    pub branch_stack: Option<BranchStack<'a>>,
    /// User registers.
    pub regs_user: Option<Regs<'a>>,
    /// Copy of the user stack.
    pub stack_user: Option<UserStack<'a>>,
    /// Weight, or the three parts of `WEIGHT_STRUCT` in one word.
    pub weight: Option<u64>,
    /// `union perf_mem_data_src`.
    pub data_src: Option<u64>,
    /// Transaction flags.
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub regs_intr: Option<Regs<'a>>,
    /// Physical data address.
    pub phys_addr: Option<u64>,
    /// Cgroup id.
    pub cgroup: Option<u64>,
    /// Page size of the data address in bytes.
    pub data_page_size: Option<u64>,
    /// Page size of the instruction pointer in bytes.
    pub code_page_size: Option<u64>,
    /// AUX data.
    pub aux: Option<&'a [u8]>,
}

/// Where an event's samples keep their fields; made once for each event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleLayout {
    sample_type: SampleType,
    read_format: ReadFormat,
    branch: BranchSampleType,
    regs_user: u64,
    regs_intr: u64,
    fixed: FixedFields,
    /// Whether there are fields behind those of fixed length, and behind those that carry their own length.
    has_more: bool,
    has_tail: bool,
}

/// Fields of fixed length: IDENTIFIER to PERIOD.
const FIXED: u64 = SampleType::IDENTIFIER.0
    | SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::ADDR.0
    | SampleType::ID.0
    | SampleType::STREAM_ID.0
    | SampleType::CPU.0
    | SampleType::PERIOD.0;

/// Fields that carry their own length: READ to STACK_USER.
const VARIABLE: u64 = SampleType::READ.0
    | SampleType::CALLCHAIN.0
    | SampleType::RAW.0
    | SampleType::BRANCH_STACK.0
    | SampleType::REGS_USER.0
    | SampleType::STACK_USER.0;

impl SampleLayout {
    /// The layout of samples of an event with this attr.
    #[must_use]
    pub fn new(attr: &Attr) -> Self {
        Self {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            branch: attr.branch_sample_type,
            regs_user: attr.sample_regs_user,
            regs_intr: attr.sample_regs_intr,
            fixed: FixedFields::new(attr.sample_type),
            has_more: attr.sample_type.0 & !FIXED != 0,
            has_tail: attr.sample_type.0 & !(FIXED | VARIABLE) != 0,
        }
    }

    /// Fields of the sample.
    #[must_use]
    pub fn sample_type(&self) -> SampleType {
        self.sample_type
    }

    /// The timestamp alone, without decoding the rest.
    #[inline]
    #[must_use]
    pub fn time(&self, body: &[u8], endian: Endian) -> Option<u64> {
        endian.u64_at(body, self.fixed.time?)
    }

    /// The event id alone, without decoding the rest.
    #[inline]
    #[must_use]
    pub fn id(&self, body: &[u8], endian: Endian) -> Option<u64> {
        endian.u64_at(body, self.fixed.id?)
    }

    /// Decodes a sample's body.
    ///
    /// # Errors
    /// [`DecodeError`] when the body ends before the fields do.
    pub fn decode<'a>(&self, body: &'a [u8], endian: Endian) -> Result<Sample<'a>, DecodeError> {
        let mut sample = Sample::default();
        self.decode_into(body, endian, &mut sample)?;
        Ok(sample)
    }

    /// [`SampleLayout::decode`] into a sample that is empty, or was decoded by this layout before: fields that the layout
    /// lacks are left alone. For the walk over millions of samples, where clearing and moving them costs more than decoding.
    ///
    /// # Errors
    /// Those of [`SampleLayout::decode`]; some fields may be new then.
    #[inline]
    pub fn decode_into<'a>(
        &self,
        body: &'a [u8],
        endian: Endian,
        sample: &mut Sample<'a>,
    ) -> Result<(), DecodeError> {
        self.fixed
            .decode_into(self.sample_type, body, endian, sample)?;
        if self.has_more {
            let at = &mut Cursor::new(body, endian);
            at.take(self.fixed.size, "fixed fields")?;
            self.decode_variable(at, sample)?;
            if self.has_tail {
                self.decode_tail(at, sample)?;
            }
        }
        Ok(())
    }

    /// READ to STACK_USER: fields that carry their own length.
    fn decode_variable<'a>(
        &self,
        at: &mut Cursor<'a>,
        sample: &mut Sample<'a>,
    ) -> Result<(), DecodeError> {
        let has = |bit| self.sample_type.contains(bit);
        if has(SampleType::READ) {
            sample.read = Some(ReadValues::decode(at, self.read_format)?);
        }
        if has(SampleType::CALLCHAIN) {
            let count = at.u64("callchain nr")?;
            sample.callchain = Some(at.u64s(count, "callchain")?);
        }
        if has(SampleType::RAW) {
            let size = at.u32("raw size")?;
            sample.raw = Some(at.take(size as usize, "raw")?);
        }
        if has(SampleType::BRANCH_STACK) {
            sample.branch_stack = Some(BranchStack::decode(at, self.branch)?);
        }
        if has(SampleType::REGS_USER) {
            sample.regs_user = Some(Regs::decode(at, self.regs_user, "user registers")?);
        }
        if has(SampleType::STACK_USER) {
            sample.stack_user = Some(UserStack::decode(at)?);
        }
        Ok(())
    }

    /// WEIGHT to AUX.
    fn decode_tail<'a>(
        &self,
        at: &mut Cursor<'a>,
        sample: &mut Sample<'a>,
    ) -> Result<(), DecodeError> {
        let has = |bit| self.sample_type.contains(bit);
        if has(SampleType::WEIGHT) || has(SampleType::WEIGHT_STRUCT) {
            sample.weight = Some(at.u64("weight")?);
        }
        if has(SampleType::DATA_SRC) {
            sample.data_src = Some(at.u64("data_src")?);
        }
        if has(SampleType::TRANSACTION) {
            sample.transaction = Some(at.u64("transaction")?);
        }
        if has(SampleType::REGS_INTR) {
            sample.regs_intr = Some(Regs::decode(at, self.regs_intr, "interrupt registers")?);
        }
        if has(SampleType::PHYS_ADDR) {
            sample.phys_addr = Some(at.u64("phys_addr")?);
        }
        if has(SampleType::CGROUP) {
            sample.cgroup = Some(at.u64("cgroup")?);
        }
        if has(SampleType::DATA_PAGE_SIZE) {
            sample.data_page_size = Some(at.u64("data_page_size")?);
        }
        if has(SampleType::CODE_PAGE_SIZE) {
            sample.code_page_size = Some(at.u64("code_page_size")?);
        }
        if has(SampleType::AUX) {
            let size = at.u64("aux size")?;
            sample.aux = Some(at.take(usize::try_from(size).unwrap_or(usize::MAX), "aux")?);
        }
        Ok(())
    }

    /// Appends a sample's body. Fields that the layout has and the sample lacks become 0 or empty;
    /// fields that the layout lacks are left out.
    pub fn encode(&self, sample: &Sample<'_>, to: &mut Encoder<'_>) {
        self.encode_fixed(sample, to);
        let has = |bit| self.sample_type.contains(bit);
        if has(SampleType::READ) {
            ReadValues::encode(sample.read, self.read_format, to);
        }
        if has(SampleType::CALLCHAIN) {
            encode_counted(sample.callchain, to);
        }
        if has(SampleType::RAW) {
            let raw = sample.raw.unwrap_or_default();
            to.u32(u32::try_from(raw.len()).unwrap_or(u32::MAX));
            to.bytes(raw);
        }
        if has(SampleType::BRANCH_STACK) {
            encode_branches(sample.branch_stack, self.branch, to);
        }
        if has(SampleType::REGS_USER) {
            Regs::encode(sample.regs_user, to);
        }
        if has(SampleType::STACK_USER) {
            UserStack::encode(sample.stack_user, to);
        }
        self.encode_tail(sample, to);
    }

    fn encode_fixed(&self, sample: &Sample<'_>, to: &mut Encoder<'_>) {
        let (pid, tid) = sample.pid_tid.unwrap_or_default();
        for (bit, value) in [
            (SampleType::IDENTIFIER, sample.id),
            (SampleType::IP, sample.ip),
            (SampleType::TID, None),
            (SampleType::TIME, sample.time),
            (SampleType::ADDR, sample.addr),
            (SampleType::ID, sample.id),
            (SampleType::STREAM_ID, sample.stream_id),
            (SampleType::CPU, None),
            (SampleType::PERIOD, sample.period),
        ] {
            if !self.sample_type.contains(bit) {
                continue;
            }
            match bit {
                SampleType::TID => {
                    to.u32(pid);
                    to.u32(tid);
                }
                SampleType::CPU => {
                    to.u32(sample.cpu.unwrap_or_default());
                    to.u32(0);
                }
                _ => to.u64(value.unwrap_or_default()),
            }
        }
    }

    fn encode_tail(&self, sample: &Sample<'_>, to: &mut Encoder<'_>) {
        let has = |bit| self.sample_type.contains(bit);
        let word = |present: bool, value: Option<u64>, to: &mut Encoder<'_>| {
            if present {
                to.u64(value.unwrap_or_default());
            }
        };
        let weight = has(SampleType::WEIGHT) || has(SampleType::WEIGHT_STRUCT);
        word(weight, sample.weight, to);
        word(has(SampleType::DATA_SRC), sample.data_src, to);
        word(has(SampleType::TRANSACTION), sample.transaction, to);
        if has(SampleType::REGS_INTR) {
            Regs::encode(sample.regs_intr, to);
        }
        word(has(SampleType::PHYS_ADDR), sample.phys_addr, to);
        word(has(SampleType::CGROUP), sample.cgroup, to);
        word(has(SampleType::DATA_PAGE_SIZE), sample.data_page_size, to);
        word(has(SampleType::CODE_PAGE_SIZE), sample.code_page_size, to);
        if has(SampleType::AUX) {
            let aux = sample.aux.unwrap_or_default();
            to.u64(aux.len() as u64);
            to.bytes(aux);
        }
    }
}

fn encode_counted(words: Option<U64s<'_>>, to: &mut Encoder<'_>) {
    to.u64(words.map_or(0, |words| words.len() as u64));
    words
        .iter()
        .flat_map(U64s::iter)
        .for_each(|word| to.u64(word));
}
