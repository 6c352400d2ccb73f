//! Writes perf.data files byte by byte.
//!
//! The layout is that of `tools/perf/Documentation/perf.data-file-format.txt`: header, ids, attrs, records, features. This
//! module does not use the crates under test, so that tests compare two independent implementations of the format.

use crate::Bytes;

/// Size of the header, and offset of the ids.
const HEADER_SIZE: usize = 104;
/// Size of an attr (`PERF_ATTR_SIZE_VER7`).
const ATTR_SIZE: usize = 128;
/// Size of an attr and the `perf_file_section` of its ids.
const ENTRY_SIZE: usize = ATTR_SIZE + 16;

/// The fields of `perf_event_attr` that tests set. The others are 0, except `size`.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileAttr {
    /// `type`.
    pub kind: u32,
    /// `config`.
    pub config: u64,
    /// `sample_period`.
    pub period: u64,
    /// `sample_type`.
    pub sample_type: u64,
    /// `read_format`.
    pub read_format: u64,
    /// The bit fields: bit 0 is the first one, `disabled`, in either byte order.
    pub flags: u64,
    /// `config1`; for breakpoints, the address.
    pub config1: u64,
    /// `branch_sample_type`.
    pub branches: u64,
    /// `sample_regs_user`.
    pub regs_user: u64,
    /// `sample_regs_intr`.
    pub regs_intr: u64,
}

impl FileAttr {
    /// `sample_id_all` in [`FileAttr::flags`]: records other than samples end with a `struct sample_id`.
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;

    fn encode(&self, is_big_endian: bool) -> Vec<u8> {
        // Bit fields begin at the highest bit of a big-endian word.
        let (bytes, flags) = match is_big_endian {
            true => (Bytes::big_endian(), self.flags.reverse_bits()),
            false => (Bytes::new(), self.flags),
        };
        // The zeros are the fields between those of `FileAttr`, and all fields after `sample_regs_intr`.
        let bytes = bytes.u32(self.kind).u32(ATTR_SIZE as u32);
        let bytes = bytes.u64(self.config).u64(self.period);
        let bytes = bytes.u64(self.sample_type).u64(self.read_format);
        let bytes = bytes.u64(flags).u64(0).u64(self.config1).u64(0);
        let bytes = bytes.u64(self.branches);
        let bytes = bytes.u64(self.regs_user).u64(0).u64(self.regs_intr);
        bytes.raw([0; 24]).done()
    }
}

/// Returns a record: a little-endian header and `body`.
///
/// # Panics
/// If it exceeds the maximum record size.
pub fn record(kind: u32, misc: u16, body: Bytes) -> Vec<u8> {
    encode_record(Bytes::new(), kind, misc, &body.done())
}

/// Returns a record whose header has the byte order of `empty`, a string without bytes.
fn encode_record(empty: Bytes, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("a short record");
    let header = empty.u32(kind).u16(misc).u16(size);
    header.raw(body).done()
}

/// A perf.data file under construction.
#[derive(Debug, Clone, Default)]
pub struct PerfFile {
    is_big_endian: bool,
    /// Attr and ids of each event.
    events: Vec<(Vec<u8>, Vec<u64>)>,
    records: Vec<u8>,
    /// Number and content of each feature, by increasing number.
    features: Vec<(u32, Vec<u8>)>,
}

impl PerfFile {
    /// `PERF_RECORD_MMAP`.
    pub const MMAP: u32 = 1;
    /// `PERF_RECORD_COMM`.
    pub const COMM: u32 = 3;
    /// `PERF_RECORD_SAMPLE`.
    pub const SAMPLE: u32 = 9;
    /// `PERF_RECORD_MMAP2`.
    pub const MMAP2: u32 = 10;
    /// `PERF_RECORD_FINISHED_ROUND` of Linux perf.
    pub const FINISHED_ROUND: u32 = 68;
    /// `PERF_RECORD_MISC_KERNEL`.
    pub const KERNEL: u16 = 1;
    /// `PERF_RECORD_MISC_USER`.
    pub const USER: u16 = 2;
    /// The feature with the tracepoint formats.
    pub const TRACING_DATA: u32 = 1;
    /// The feature with the names of events.
    const EVENT_DESC: u32 = 12;
    /// The feature with the machine's name (`uname -m`).
    pub const ARCH: u32 = 6;

    /// Creates a little-endian file without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a big-endian file without events.
    pub fn big_endian() -> Self {
        Self {
            is_big_endian: true,
            ..Self::default()
        }
    }

    /// Returns an empty byte string in the file's byte order.
    pub fn bytes(&self) -> Bytes {
        match self.is_big_endian {
            true => Bytes::big_endian(),
            false => Bytes::new(),
        }
    }

    /// Adds an event. All events must be added before the first record whose position is used.
    pub fn event(&mut self, attr: &FileAttr, ids: &[u64]) -> &mut Self {
        let attr = attr.encode(self.is_big_endian);
        self.encoded_event(attr, ids)
    }

    /// Adds an event from an encoded attr.
    ///
    /// # Panics
    /// If `attr` is not 128 bytes long.
    pub fn encoded_event(&mut self, attr: Vec<u8>, ids: &[u64]) -> &mut Self {
        assert_eq!(attr.len(), ATTR_SIZE, "the size of an attr");
        self.events.push((attr, ids.to_vec()));
        self
    }

    /// Appends a record, and returns its position in the file.
    ///
    /// # Panics
    /// If it exceeds the maximum record size.
    pub fn record(&mut self, kind: u32, misc: u16, body: impl AsRef<[u8]>) -> u64 {
        let body = body.as_ref();
        let position = self.data_offset() + self.records.len();
        self.records
            .extend(encode_record(self.bytes(), kind, misc, body));
        position as u64
    }

    /// Appends records with their headers.
    pub fn records(&mut self, records: &[u8]) -> &mut Self {
        self.records.extend(records);
        self
    }

    /// Adds a feature. Features must be added in the order of their numbers.
    pub fn feature(&mut self, number: u32, content: Vec<u8>) -> &mut Self {
        self.features.push((number, content));
        self
    }

    /// Adds the feature with the machine's name.
    ///
    /// # Panics
    /// If the name is longer than 64 bytes.
    pub fn machine(&mut self, name: &str) -> &mut Self {
        let content = self.bytes().u32(64).raw(name);
        let padding = vec![0; 64_usize.checked_sub(name.len()).expect("a short name")];
        let content = content.raw(padding).done();
        self.feature(Self::ARCH, content)
    }

    /// Adds the feature with the names of the events added so far, in the order of the events. A file without this feature has
    /// attrs of its events, but no names.
    pub fn event_names(&mut self, names: &[&str]) -> &mut Self {
        let to_u32 = |number: usize| u32::try_from(number).expect("a small number");
        let mut content = self.bytes().u32(to_u32(names.len()));
        content = content.u32(ATTR_SIZE as u32);
        for ((attr, ids), name) in self.events.iter().zip(names) {
            let padded_size = (name.len() + 1).next_multiple_of(64);
            content = content.raw(attr).u32(to_u32(ids.len()));
            content = content.u32(to_u32(padded_size)).raw(name);
            content = content.raw(vec![0; padded_size - name.len()]);
            content = ids.iter().fold(content, |content, id| content.u64(*id));
        }
        let content = content.done();
        self.feature(Self::EVENT_DESC, content)
    }

    /// Returns the offset of the records.
    fn data_offset(&self) -> usize {
        let ids: usize = self.events.iter().map(|(_, ids)| ids.len() * 8).sum();
        HEADER_SIZE + ids + self.events.len() * ENTRY_SIZE
    }

    /// Returns the file.
    pub fn finish(&self) -> Vec<u8> {
        let data = self.data_offset();
        let attrs_size = self.events.len() * ENTRY_SIZE;
        let magic = u64::from_le_bytes(*b"PERFILE2");
        // Sections are an offset and a size.
        let attrs = [data - attrs_size, attrs_size];
        let records = [data, self.records.len()];
        let event_types = [0, 0];
        let sizes = [HEADER_SIZE, ENTRY_SIZE];
        let header = [sizes, attrs, records, event_types].into_iter().flatten();
        let mut file = header.fold(self.bytes().u64(magic), |file, field| {
            file.u64(field as u64)
        });
        let features = self
            .features
            .iter()
            .fold(0, |bits, (number, _)| bits | 1 << number);
        // The bits of the features fill 32 bytes.
        file = file.u64(features).raw([0; 24]);
        for id in self.events.iter().flat_map(|(_, ids)| ids) {
            file = file.u64(*id);
        }
        let mut ids_offset = HEADER_SIZE as u64;
        for (attr, ids) in &self.events {
            let size = ids.len() as u64 * 8;
            file = file.raw(attr).u64(ids_offset).u64(size);
            ids_offset += size;
        }
        file = file.raw(&self.records);
        let mut offset = (file.len() + self.features.len() * 16) as u64;
        for (_, content) in &self.features {
            file = file.u64(offset).u64(content.len() as u64);
            offset += content.len() as u64;
        }
        let contents = self.features.iter();
        contents
            .fold(file, |file, (_, content)| file.raw(content))
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_match_the_header() {
        for mut file in [PerfFile::new(), PerfFile::big_endian()] {
            let attr = FileAttr {
                kind: 1,
                flags: 1,
                ..FileAttr::default()
            };
            file.event(&attr, &[7, 8])
                .event(&attr, &[9])
                .machine("x86_64");
            let position =
                usize::try_from(file.record(PerfFile::COMM, 0, [5; 8])).expect("an offset");
            let bytes = file.finish();
            let word = |at: usize| {
                let word = bytes[at..at + 8].try_into().expect("eight bytes");
                let word = if file.is_big_endian {
                    u64::from_be_bytes(word)
                } else {
                    u64::from_le_bytes(word)
                };
                usize::try_from(word).expect("a small number")
            };
            // Fields of the header by offset: 8 its size, 16 the size of an entry of attrs, 24 and 32 offset and size of attrs,
            // 40 and 48 those of the records, 72 the bits of the features.
            let (attrs, data, size) = (word(24), word(40), word(48));
            assert_eq!((word(8), word(16), word(32)), (104, 144, 288));
            // `disabled` is the lowest bit of the first byte, or in a big-endian file the highest one.
            let disabled = if file.is_big_endian { 0x80 } else { 1 };
            assert_eq!(bytes[attrs + 40], disabled);
            // The offset and the size of the ids follow each attr. The ids 7, 8 and 9 are at 104, 112 and 120: the second event's
            // offset is 120, and the word there is 9.
            assert_eq!(
                (word(attrs + 128), word(attrs + 136)),
                (104, 16),
                "ids of the first event"
            );
            assert_eq!(
                (word(attrs + 144 + 128), word(120)),
                (120, 9),
                "ids of the second event"
            );
            assert_eq!(
                (data, size, &bytes[data + 8..data + 16]),
                (position, 16, &[5; 8][..])
            );
            assert_eq!(
                (word(72), word(data + size)),
                (1 << 6, data + size + 16),
                "features"
            );
            // After the records: the feature's offset and size (16 bytes), then its content (the length 64 and the padded name).
            assert_eq!(bytes.len(), data + size + 16 + 68);
            assert_eq!(&bytes[data + size + 20..][..6], b"x86_64");
        }
    }
}
