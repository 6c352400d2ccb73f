//! BPF_PROG_INFO and BPF_BTF: loaded BPF programs, and their type information.

use std::fmt::Write as _;

use rperf_wire::{Cursor, DecodeError, Encoder, Endian, until_nul};

use super::text;

/// A program of BPF_PROG_INFO: the kernel's `struct bpf_prog_info` (linux/bpf.h) followed by the
/// arrays it points to, with pointers converted to offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfProgram {
    /// The arrays that are present, one bit for each (`enum perf_bpil_array_types`).
    pub array_mask: u64,
    /// The structure, in the size that it has in the kernel of the recording's machine.
    pub info: Vec<u8>,
    /// The arrays.
    pub data: Vec<u8>,
}

/// A function in a program's JIT-compiled machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfFunction {
    /// Address in the kernel.
    pub address: u64,
    /// Size in bytes.
    pub size: u32,
    /// Hash of the function's BPF instructions.
    pub tag: [u8; 8],
    /// Its type id in the program's [`BpfBtf`], 0 for none.
    pub type_id: u32,
}

/// A function of a program with its name in symbol tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfSymbol {
    /// `bpf_prog_TAG_NAME`, as in /proc/kallsyms. TAG is [`BpfFunction::tag`] in hexadecimal. NAME is the function's name in the
    /// BTF. Without BTF it is the program's name if the program has a single function, otherwise `F`. If there is no such name,
    /// `_NAME` is omitted.
    pub name: String,
    /// The function.
    pub function: BpfFunction,
}

/// Offsets of the fields in `struct bpf_prog_info`.
mod field {
    pub(super) const KIND: usize = 0;
    pub(super) const ID: usize = 4;
    pub(super) const TAG: usize = 8;
    pub(super) const NAME: usize = 64;
    pub(super) const KSYM_COUNT: usize = 104;
    pub(super) const LENGTH_COUNT: usize = 108;
    pub(super) const KSYMS: usize = 112;
    pub(super) const LENGTHS: usize = 120;
    pub(super) const BTF_ID: usize = 128;
    pub(super) const FUNC_INFO_SIZE: usize = 132;
    pub(super) const FUNC_INFO: usize = 136;
    pub(super) const TAG_COUNT: usize = 180;
    pub(super) const TAGS: usize = 184;
}

/// Size of a program's name in bytes, including at least one NUL.
const NAME_SIZE: usize = 16;

impl BpfProgram {
    /// Id of the program.
    #[must_use]
    pub fn id(&self, endian: Endian) -> u32 {
        self.number(field::ID, endian)
    }

    /// Its type (`enum bpf_prog_type`).
    #[must_use]
    pub fn kind(&self, endian: Endian) -> u32 {
        self.number(field::KIND, endian)
    }

    /// Hash of its BPF instructions.
    #[must_use]
    pub fn tag(&self) -> [u8; 8] {
        let tag = self
            .info
            .get(field::TAG..)
            .and_then(|tag| tag.first_chunk());
        tag.copied().unwrap_or_default()
    }

    /// The name of the program, at most 15 bytes.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.info.get(field::NAME..field::NAME + NAME_SIZE);
        String::from_utf8_lossy(until_nul(name.unwrap_or_default())).into_owned()
    }

    /// Id of its type information, 0 for none.
    #[must_use]
    pub fn btf_id(&self, endian: Endian) -> u32 {
        self.number(field::BTF_ID, endian)
    }

    /// The functions of the machine code, up to the first whose address, size or tag is missing in the arrays; `None` if the
    /// numbers of addresses, sizes and tags differ: kernels before 5.0 report no tags.
    #[must_use]
    pub fn functions(&self, endian: Endian) -> Option<Vec<BpfFunction>> {
        let count = self.number(field::KSYM_COUNT, endian);
        let counts =
            [field::LENGTH_COUNT, field::TAG_COUNT].map(|field| self.number(field, endian));
        if counts != [count; 2] {
            return None;
        }
        // Size of a `struct bpf_func_info`, whose `type_id` is at offset 4; 0 if the program has no type information. Other sizes
        // below 8 are invalid and taken as 8.
        let func_info_size = self.number(field::FUNC_INFO_SIZE, endian) as usize;
        let functions = (0..count as usize).map_while(|index| {
            let type_id = self.element(field::FUNC_INFO, index * func_info_size.max(8) + 4, endian);
            Some(BpfFunction {
                address: endian.u64(*self.element(field::KSYMS, index * 8, endian)?),
                size: endian.u32(*self.element(field::LENGTHS, index * 4, endian)?),
                tag: *self.element(field::TAGS, index * 8, endian)?,
                type_id: type_id
                    .filter(|_| func_info_size > 0)
                    .map_or(0, |id| endian.u32(*id)),
            })
        });
        Some(functions.collect())
    }

    /// Returns the functions with their names; `types` are those of [`BpfProgram::btf_id`]. `None` as for
    /// [`BpfProgram::functions`].
    #[must_use]
    pub fn symbols(&self, types: Option<&BpfBtf>, endian: Endian) -> Option<Vec<BpfSymbol>> {
        let functions = self.functions(endian)?;
        let is_single = functions.len() == 1;
        let symbols = functions.into_iter().map(|function| {
            let mut name = "bpf_prog_".to_owned();
            for byte in function.tag {
                let _cannot_fail = write!(name, "{byte:02x}");
            }
            let program_name = self.name();
            let short = match types {
                Some(types) => types.type_name(function.type_id, endian),
                None if is_single => Some(program_name.as_str()).filter(|name| !name.is_empty()),
                None => Some("F"),
            };
            if let Some(short) = short {
                name.push('_');
                name.push_str(short);
            }
            BpfSymbol { name, function }
        });
        Some(symbols.collect())
    }

    fn number(&self, field: usize, endian: Endian) -> u32 {
        endian.u32_at(&self.info, field).unwrap_or_default()
    }

    /// The bytes at `offset` of an array; `pointer` is the offset of the structure's field that locates the array.
    fn element<const N: usize>(
        &self,
        pointer: usize,
        offset: usize,
        endian: Endian,
    ) -> Option<&[u8; N]> {
        let start = usize::try_from(endian.u64_at(&self.info, pointer)?).ok()?;
        self.data.get(start.checked_add(offset)?..)?.first_chunk()
    }

    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        let count = at.u32("bpf program count")?;
        (0..count)
            .map(|_| {
                let info_size = at.u32("bpf info length")?;
                let data_size = at.u32("bpf data length")?;
                let array_mask = at.u64("bpf arrays")?;
                Ok(Self {
                    array_mask,
                    info: at.take(info_size as usize, "bpf info")?.to_vec(),
                    data: at.take(data_size as usize, "bpf data")?.to_vec(),
                })
            })
            .collect()
    }

    pub(crate) fn encode_list(programs: &[Self], to: &mut Encoder<'_>) {
        text::put_count(to, programs.len());
        for program in programs {
            text::put_count(to, program.info.len());
            text::put_count(to, program.data.len());
            to.u64(program.array_mask);
            to.bytes(&program.info);
            to.bytes(&program.data);
        }
    }
}

/// A type information object of BPF_BTF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfBtf {
    /// Id that programs refer to.
    pub id: u32,
    /// Header, types and strings (linux/btf.h), in the recorder's byte order.
    pub data: Vec<u8>,
}

impl BpfBtf {
    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        let count = at.u32("btf count")?;
        (0..count)
            .map(|_| {
                let id = at.u32("btf id")?;
                let size = at.u32("btf size")?;
                let data = at.take(size as usize, "btf")?.to_vec();
                Ok(Self { id, data })
            })
            .collect()
    }

    pub(crate) fn encode_list(objects: &[Self], to: &mut Encoder<'_>) {
        text::put_count(to, objects.len());
        for object in objects {
            to.u32(object.id);
            text::put_count(to, object.data.len());
            to.bytes(&object.data);
        }
    }

    /// The name of a type, empty if it is anonymous. Type ids start at 1: `None` for 0, unknown ids, and damaged type
    /// information.
    #[must_use]
    pub fn type_name(&self, type_id: u32, endian: Endian) -> Option<&str> {
        // `struct btf_header`: `hdr_len` at 4, `type_off` at 8, `type_len` at 12, `str_off` at 16, `str_len` at 20.
        let header_size = endian.u32_at(&self.data, 4)? as usize;
        let section = |offset_field: usize, size_field: usize| {
            let offset = endian.u32_at(&self.data, offset_field)? as usize;
            let start = header_size.checked_add(offset)?;
            let size = endian.u32_at(&self.data, size_field)? as usize;
            self.data.get(start..start.checked_add(size)?)
        };
        let (mut types, strings) = (section(8, 12)?, section(16, 20)?);
        for _ in 0..type_id.checked_sub(1)? {
            types = types.get(type_size(types, endian)?..)?;
        }
        let name = strings.get(endian.u32_at(types, 0)? as usize..)?;
        std::str::from_utf8(until_nul(name)).ok()
    }
}

/// Size of the first type: `struct btf_type` and the data that depend on its kind.
fn type_size(types: &[u8], endian: Endian) -> Option<usize> {
    let info = endian.u32_at(types, 4)?;
    let members = (info & 0xffff) as usize;
    let after = match info >> 24 & 0x1f {
        // INT, VAR, DECL_TAG.
        1 | 14 | 17 => 4,
        // ARRAY.
        3 => 12,
        // STRUCT, UNION, DATASEC, ENUM64.
        4 | 5 | 15 | 19 => 12 * members,
        // ENUM, FUNC_PROTO.
        6 | 13 => 8 * members,
        _ => 0,
    };
    Some(12 + after)
}
