//! `PERF_RECORD_SAMPLE`: the fields selected by the event's `sample_type`, in the kernel's order.

mod fixed;

use crate::branch::encode_branches;
use crate::{
    Attr, BranchSampleType, BranchStack, Cursor, DecodeError, Encoder, Endian, ReadFormat,
    ReadValues, Regs, SampleType, U64s, UserStack,
};
use fixed::FixedFields;

/// A decoded sample; variable-length fields are borrowed from the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleRecord<'a> {
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Process and thread id; `u32::MAX` (-1) for a dying task.
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
    /// Events since the previous sample; without the field, the attr's fixed period applies.
    pub period: Option<u64>,
    /// Counter values.
    pub read: Option<ReadValues<'a>>,
    /// Addresses and context markers, innermost first.
    pub callchain: Option<U64s<'a>>,
    /// Raw data, such as a tracepoint's fields.
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

/// The sample layout of an event, computed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleLayout {
    sample_type: SampleType,
    read_format: ReadFormat,
    branch: BranchSampleType,
    regs_user: u64,
    regs_intr: u64,
    /// The fields to decode; the others only have to fit into the sample.
    reads: SampleType,
    fixed: FixedFields,
    after_fixed: FieldsAfterFixed,
}

/// Which fields follow the fixed fields ([`FIXED`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldsAfterFixed {
    None,
    /// Only RAW: tracepoints.
    Raw,
    /// Only CALLCHAIN.
    Callchain,
    /// Any other combination.
    Any,
}

impl FieldsAfterFixed {
    fn new(sample_type: SampleType) -> Self {
        match SampleType(sample_type.0 & !FIXED) {
            SampleType(0) => Self::None,
            SampleType::RAW => Self::Raw,
            SampleType::CALLCHAIN => Self::Callchain,
            _ => Self::Any,
        }
    }
}

/// The fixed fields: the fields of eight bytes at the start of a sample, IDENTIFIER to PERIOD.
const FIXED: u64 = SampleType::IDENTIFIER.0
    | SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::ADDR.0
    | SampleType::ID.0
    | SampleType::STREAM_ID.0
    | SampleType::CPU.0
    | SampleType::PERIOD.0;

/// Pairs of `sample_type` bits that are decoded into one field of [`SampleRecord`].
const SHARED_FIELDS: [SampleType; 2] = [
    SampleType(SampleType::IDENTIFIER.0 | SampleType::ID.0),
    SampleType(SampleType::WEIGHT.0 | SampleType::WEIGHT_STRUCT.0),
];

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
            reads: SampleType::ALL,
            fixed: FixedFields::new(attr.sample_type, SampleType::ALL),
            after_fixed: FieldsAfterFixed::new(attr.sample_type),
        }
    }

    /// The same layout for a consumer that reads only `fields`: the others are not decoded and stay `None`, but a sample
    /// that is too short for all its fields is still an error.
    #[must_use]
    pub fn reading(&self, fields: SampleType) -> Self {
        // One bit of a pair also selects the other, because either bit adds the field to samples.
        let reads = SHARED_FIELDS
            .into_iter()
            .filter(|pair| fields.intersects(*pair))
            .fold(fields, |reads, pair| reads | pair);
        Self {
            reads,
            fixed: FixedFields::new(self.sample_type, reads),
            ..self.clone()
        }
    }

    /// The fields present in a sample.
    #[must_use]
    pub fn sample_type(&self) -> SampleType {
        self.sample_type
    }

    /// Returns the timestamp without decoding the rest; `None` if samples have none, or if `body` is too short.
    #[inline]
    #[must_use]
    pub fn time(&self, body: &[u8], endian: Endian) -> Option<u64> {
        FixedFields::word(body, self.fixed.time?, endian)
    }

    /// Returns the event id without decoding the rest; `None` if samples have none, or if `body` is too short.
    #[inline]
    #[must_use]
    pub fn id(&self, body: &[u8], endian: Endian) -> Option<u64> {
        FixedFields::word(body, self.fixed.id?, endian)
    }

    /// Index of the event id among the 8-byte fields at the start of a sample's body; `None` if samples have no id.
    #[must_use]
    pub fn id_index(&self) -> Option<usize> {
        self.fixed.id
    }

    /// Decodes a sample's body.
    ///
    /// # Errors
    /// [`DecodeError`] when the body ends before the fields do.
    pub fn decode<'a>(
        &self,
        body: &'a [u8],
        endian: Endian,
    ) -> Result<SampleRecord<'a>, DecodeError> {
        let mut sample = SampleRecord::default();
        self.decode_into(body, endian, &mut sample)?;
        Ok(sample)
    }

    /// Like [`SampleLayout::decode`], but reuses `sample`, which must be empty or decoded by this
    /// layout: fields that the layout lacks or does not read may keep their values. For loops over
    /// millions of samples, where resetting and moving cost more than decoding.
    ///
    /// # Errors
    /// Those of [`SampleLayout::decode`]; some fields may have been overwritten.
    #[inline]
    pub fn decode_into<'a>(
        &self,
        body: &'a [u8],
        endian: Endian,
        sample: &mut SampleRecord<'a>,
    ) -> Result<(), DecodeError> {
        match self.decode_simple(body, endian, sample) {
            true => Ok(()),
            false => self.decode_all(body, endian, sample),
        }
    }

    /// Decodes a sample that has only fields from IDENTIFIER to PERIOD, or after them one field: RAW or CALLCHAIN. Returns
    /// `false` for any other sample and for a truncated one; [`SampleLayout::decode_into`] then decodes it or returns the
    /// error. This function decodes most samples and is small enough to be inlined into a loop; for speed, `endian` should
    /// be a constant there.
    #[inline(always)]
    pub fn decode_simple<'a>(
        &self,
        body: &'a [u8],
        endian: Endian,
        sample: &mut SampleRecord<'a>,
    ) -> bool {
        if self.after_fixed == FieldsAfterFixed::Any {
            return false;
        }
        let Some(rest) = self.fixed.decode_into(body, endian, sample) else {
            return false;
        };
        match self.after_fixed {
            FieldsAfterFixed::None => true,
            FieldsAfterFixed::Raw => match raw_data(rest, endian) {
                Some(raw) if self.reads.contains(SampleType::RAW) => {
                    sample.raw = Some(raw);
                    true
                }
                // Not read, or truncated.
                raw => raw.is_some(),
            },
            FieldsAfterFixed::Callchain => match callchain(rest, endian) {
                Some(chain) if self.reads.contains(SampleType::CALLCHAIN) => {
                    sample.callchain = Some(U64s::new(chain, endian));
                    true
                }
                // Not read, or truncated.
                chain => chain.is_some(),
            },
            // Already returned above.
            FieldsAfterFixed::Any => false,
        }
    }

    /// Decodes any sample.
    #[inline(never)]
    fn decode_all<'a>(
        &self,
        body: &'a [u8],
        endian: Endian,
        sample: &mut SampleRecord<'a>,
    ) -> Result<(), DecodeError> {
        if self.fixed.decode_into(body, endian, sample).is_none() {
            return Err(fixed::short(self.sample_type, body.len()));
        }
        self.decode_rest(body, endian, sample)
    }

    /// Decodes the fields after the fixed fields.
    fn decode_rest<'a>(
        &self,
        body: &'a [u8],
        endian: Endian,
        sample: &mut SampleRecord<'a>,
    ) -> Result<(), DecodeError> {
        // Starts at the body, not at the first of these fields: the offset in an error counts from the start of the body.
        let at = &mut Cursor::new(body, endian);
        at.take(self.fixed.size, "fixed fields")?;
        self.decode_variable(at, sample)?;
        self.decode_tail(at, sample)
    }

    /// Decodes READ to STACK_USER.
    fn decode_variable<'a>(
        &self,
        at: &mut Cursor<'a>,
        sample: &mut SampleRecord<'a>,
    ) -> Result<(), DecodeError> {
        let has = |bit| self.sample_type.contains(bit);
        let reads = |bit| self.reads.contains(bit);
        if has(SampleType::READ) {
            let value = ReadValues::decode(at, self.read_format)?;
            sample.read = reads(SampleType::READ).then_some(value);
        }
        if has(SampleType::CALLCHAIN) {
            let count = at.u64("callchain nr")?;
            let value = at.u64s(count, "callchain")?;
            sample.callchain = reads(SampleType::CALLCHAIN).then_some(value);
        }
        if has(SampleType::RAW) {
            let size = at.u32("raw size")?;
            let value = at.take(size as usize, "raw")?;
            sample.raw = reads(SampleType::RAW).then_some(value);
        }
        if has(SampleType::BRANCH_STACK) {
            let value = BranchStack::decode(at, self.branch)?;
            sample.branch_stack = reads(SampleType::BRANCH_STACK).then_some(value);
        }
        if has(SampleType::REGS_USER) {
            let value = Regs::decode(at, self.regs_user, "user registers")?;
            sample.regs_user = reads(SampleType::REGS_USER).then_some(value);
        }
        if has(SampleType::STACK_USER) {
            let value = UserStack::decode(at)?;
            sample.stack_user = reads(SampleType::STACK_USER).then_some(value);
        }
        Ok(())
    }

    /// Decodes WEIGHT to AUX.
    fn decode_tail<'a>(
        &self,
        at: &mut Cursor<'a>,
        sample: &mut SampleRecord<'a>,
    ) -> Result<(), DecodeError> {
        let has = |bit| self.sample_type.contains(bit);
        let reads = |bit| self.reads.contains(bit);
        if has(SampleType::WEIGHT) || has(SampleType::WEIGHT_STRUCT) {
            let value = at.u64("weight")?;
            // `reads` has both weight bits or none (`SHARED_FIELDS`).
            sample.weight = reads(SampleType::WEIGHT).then_some(value);
        }
        if has(SampleType::DATA_SRC) {
            let value = at.u64("data_src")?;
            sample.data_src = reads(SampleType::DATA_SRC).then_some(value);
        }
        if has(SampleType::TRANSACTION) {
            let value = at.u64("transaction")?;
            sample.transaction = reads(SampleType::TRANSACTION).then_some(value);
        }
        if has(SampleType::REGS_INTR) {
            let value = Regs::decode(at, self.regs_intr, "interrupt registers")?;
            sample.regs_intr = reads(SampleType::REGS_INTR).then_some(value);
        }
        if has(SampleType::PHYS_ADDR) {
            let value = at.u64("phys_addr")?;
            sample.phys_addr = reads(SampleType::PHYS_ADDR).then_some(value);
        }
        if has(SampleType::CGROUP) {
            let value = at.u64("cgroup")?;
            sample.cgroup = reads(SampleType::CGROUP).then_some(value);
        }
        if has(SampleType::DATA_PAGE_SIZE) {
            let value = at.u64("data_page_size")?;
            sample.data_page_size = reads(SampleType::DATA_PAGE_SIZE).then_some(value);
        }
        if has(SampleType::CODE_PAGE_SIZE) {
            let value = at.u64("code_page_size")?;
            sample.code_page_size = reads(SampleType::CODE_PAGE_SIZE).then_some(value);
        }
        if has(SampleType::AUX) {
            let size = at.u64("aux size")?;
            let value = at.take(usize::try_from(size).unwrap_or(usize::MAX), "aux")?;
            sample.aux = reads(SampleType::AUX).then_some(value);
        }
        Ok(())
    }

    /// Appends a sample's body. Fields of the layout that `sample` lacks become 0 or empty; fields
    /// outside the layout are omitted.
    pub fn encode(&self, sample: &SampleRecord<'_>, to: &mut Encoder<'_>) {
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

    /// Appends IDENTIFIER to PERIOD.
    fn encode_fixed(&self, sample: &SampleRecord<'_>, to: &mut Encoder<'_>) {
        self.encode_word(SampleType::IDENTIFIER, sample.id, to);
        self.encode_word(SampleType::IP, sample.ip, to);
        if self.sample_type.contains(SampleType::TID) {
            let (pid, tid) = sample.pid_tid.unwrap_or_default();
            to.u32(pid);
            to.u32(tid);
        }
        self.encode_word(SampleType::TIME, sample.time, to);
        self.encode_word(SampleType::ADDR, sample.addr, to);
        self.encode_word(SampleType::ID, sample.id, to);
        self.encode_word(SampleType::STREAM_ID, sample.stream_id, to);
        if self.sample_type.contains(SampleType::CPU) {
            to.u32(sample.cpu.unwrap_or_default());
            to.u32(0);
        }
        self.encode_word(SampleType::PERIOD, sample.period, to);
    }

    /// Appends WEIGHT to AUX.
    fn encode_tail(&self, sample: &SampleRecord<'_>, to: &mut Encoder<'_>) {
        let weight = SampleType::WEIGHT | SampleType::WEIGHT_STRUCT;
        self.encode_word(weight, sample.weight, to);
        self.encode_word(SampleType::DATA_SRC, sample.data_src, to);
        self.encode_word(SampleType::TRANSACTION, sample.transaction, to);
        if self.sample_type.contains(SampleType::REGS_INTR) {
            Regs::encode(sample.regs_intr, to);
        }
        self.encode_word(SampleType::PHYS_ADDR, sample.phys_addr, to);
        self.encode_word(SampleType::CGROUP, sample.cgroup, to);
        self.encode_word(SampleType::DATA_PAGE_SIZE, sample.data_page_size, to);
        self.encode_word(SampleType::CODE_PAGE_SIZE, sample.code_page_size, to);
        if self.sample_type.contains(SampleType::AUX) {
            let aux = sample.aux.unwrap_or_default();
            to.u64(aux.len() as u64);
            to.bytes(aux);
        }
    }

    /// Appends a 64-bit field, 0 for `None`, if the layout has one of `fields`.
    fn encode_word(&self, fields: SampleType, value: Option<u64>, to: &mut Encoder<'_>) {
        if self.sample_type.intersects(fields) {
            to.u64(value.unwrap_or_default());
        }
    }
}

/// The data of the RAW field that `rest` starts with; `None` if the field is incomplete.
#[inline(always)]
fn raw_data(rest: &[u8], endian: Endian) -> Option<&[u8]> {
    let (size, data) = rest.split_first_chunk()?;
    data.get(..endian.u32(*size) as usize)
}

/// The entries of the CALLCHAIN field that `rest` starts with, undecoded; `None` if the field is incomplete.
#[inline(always)]
fn callchain(rest: &[u8], endian: Endian) -> Option<&[u8]> {
    let (count, words) = rest.split_first_chunk()?;
    let count = usize::try_from(endian.u64(*count)).ok()?;
    words.get(..count.checked_mul(size_of::<u64>())?)
}

fn encode_counted(words: Option<U64s<'_>>, to: &mut Encoder<'_>) {
    to.u64(words.map_or(0, |words| words.len() as u64));
    words
        .iter()
        .flat_map(U64s::iter)
        .for_each(|word| to.u64(word));
}
