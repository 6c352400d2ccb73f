//! The header at the start of a file: 104 bytes, in very old files 72, in pipe mode 16.

use rperf_wire::{Cursor, DecodeError, Encoder, Endian};

use crate::{Error, FeatureId};

/// `PERFILE2` in a little-endian file.
const MAGIC: &[u8; 8] = b"PERFILE2";
/// `PERFILE2` in a big-endian file, which stores the number byte-swapped.
const MAGIC_BIG: &[u8; 8] = b"2ELIFREP";
/// The magic number of perf's first versions, the same on little-endian and big-endian machines.
const MAGIC_VERSION_1: &[u8; 8] = b"PERFFILE";

/// A range of the file (`struct perf_file_section`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Section {
    /// Offset from the start of the file.
    pub offset: u64,
    /// Length in bytes.
    pub size: u64,
}

impl Section {
    /// Size of the structure in the file, in bytes.
    pub const SIZE: usize = 16;

    pub(crate) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            offset: at.u64("section offset")?,
            size: at.u64("section size")?,
        })
    }

    pub(crate) fn encode(self, to: &mut Encoder<'_>) {
        to.u64(self.offset);
        to.u64(self.size);
    }

    /// The bytes of the section, if it lies within the file.
    #[must_use]
    pub fn of(self, file: &[u8]) -> Option<&[u8]> {
        let start = usize::try_from(self.offset).ok()?;
        let size = usize::try_from(self.size).ok()?;
        file.get(start..)?.get(..size)
    }

    /// Offset of the end of the section.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// `struct perf_file_header`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHeader {
    /// Byte order of the whole file.
    pub endian: Endian,
    /// Size of this header in bytes.
    pub size: u64,
    /// Size of one event description: the attr, then the offset and size of the event's ids (16 bytes).
    pub attr_size: u64,
    /// Event descriptions.
    pub attrs: Section,
    /// Records; the size may be 0 if the recorder was killed.
    pub data: Section,
    /// Names of tracepoints in very old files; not decoded.
    pub event_types: Section,
    /// Bitmap of the features in the file.
    pub features: [u64; 4],
}

impl FileHeader {
    /// Size of the structure in the file, in bytes.
    pub const SIZE: usize = 104;

    /// Offset of the field `data.size` in the structure, in bytes.
    pub const DATA_SIZE_OFFSET: u64 = 48;
    /// Size of the header of pipe mode, in bytes.
    pub const PIPE_SIZE: u64 = 16;
    /// Size of the header of perf's first versions, which had no feature bitmap, in bytes.
    pub const SIZE_WITHOUT_FEATURES: u64 = 72;

    /// Decodes the header at the start of `file`.
    ///
    /// # Errors
    /// [`Error`] for an unknown magic number or layout, or too few bytes.
    pub fn decode(file: &[u8]) -> Result<Self, Error> {
        let endian = byte_order(file)?;
        let truncated = |_| Error::HeaderTruncated { have: file.len() };
        let at = &mut Cursor::new(file, endian);
        at.u64("magic").map_err(truncated)?;
        let size = at.u64("size").map_err(truncated)?;
        if size == Self::PIPE_SIZE {
            return Ok(Self::pipe(endian, file.len() as u64));
        }
        if size != Self::SIZE as u64 && size != Self::SIZE_WITHOUT_FEATURES {
            return Err(Error::HeaderSize { size });
        }
        let mut header = Self {
            endian,
            size,
            attr_size: at.u64("attr_size").map_err(truncated)?,
            attrs: Section::decode(at).map_err(truncated)?,
            data: Section::decode(at).map_err(truncated)?,
            event_types: Section::decode(at).map_err(truncated)?,
            features: [0; 4],
        };
        if size == Self::SIZE as u64 {
            let bitmap: [u8; 32] = at.array("features").map_err(truncated)?;
            header.features = features(&bitmap, endian);
        }
        Ok(header)
    }

    /// The header of a recording in pipe mode, in which only records follow the first 16 bytes.
    fn pipe(endian: Endian, file_size: u64) -> Self {
        Self {
            endian,
            size: Self::PIPE_SIZE,
            attr_size: 0,
            attrs: Section::default(),
            data: Section {
                offset: Self::PIPE_SIZE,
                size: file_size.saturating_sub(Self::PIPE_SIZE),
            },
            event_types: Section::default(),
            features: [0; 4],
        }
    }

    /// Whether the recording is in pipe mode, in which metadata are records.
    #[must_use]
    pub fn is_pipe(&self) -> bool {
        self.size == Self::PIPE_SIZE
    }

    /// Encodes the 16-byte header of pipe mode.
    pub(crate) fn encode_pipe(endian: Endian) -> Vec<u8> {
        let mut bytes = magic_of(endian).to_vec();
        Encoder::new(&mut bytes, endian).u64(Self::PIPE_SIZE);
        bytes
    }

    /// Encodes the 104-byte header.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = magic_of(self.endian).to_vec();
        let mut to = Encoder::new(&mut bytes, self.endian);
        to.u64(self.size);
        to.u64(self.attr_size);
        for section in [self.attrs, self.data, self.event_types] {
            section.encode(&mut to);
        }
        self.features.iter().for_each(|word| to.u64(*word));
        bytes
    }

    /// Whether the bit of this feature is set.
    #[must_use]
    pub fn has(&self, feature: FeatureId) -> bool {
        has(&self.features, feature)
    }

    /// The features whose bits are set, in the order of their sections.
    pub fn present(&self) -> impl Iterator<Item = FeatureId> + '_ {
        (0..=u8::MAX).map(FeatureId).filter(|id| self.has(*id))
    }
}

/// Size of the magic number at the start of a file, in bytes.
pub const MAGIC_SIZE: usize = MAGIC.len();

/// Whether these are the first bytes of a perf.data: one of its magic numbers.
#[must_use]
pub fn is_perf_data(start: &[u8]) -> bool {
    let magics = [MAGIC, MAGIC_BIG, MAGIC_VERSION_1];
    magics.into_iter().any(|magic| start.starts_with(magic))
}

fn magic_of(endian: Endian) -> &'static [u8; 8] {
    match endian {
        Endian::Little => MAGIC,
        Endian::Big => MAGIC_BIG,
    }
}

fn has(bitmap: &[u64; 4], feature: FeatureId) -> bool {
    let word = bitmap.get(usize::from(feature.0 / 64));
    word.is_some_and(|word| word >> (feature.0 % 64) & 1 == 1)
}

/// Returns the byte order of `file`, by its magic number and for version 1 by its header size.
fn byte_order(file: &[u8]) -> Result<Endian, Error> {
    if file.is_empty() {
        return Err(Error::Empty);
    }
    let start = file.get(..MAGIC.len()).unwrap_or(file);
    match start {
        start if start == MAGIC => Ok(Endian::Little),
        start if start == MAGIC_BIG => Ok(Endian::Big),
        start if start == MAGIC_VERSION_1 => byte_order_of_version_1(file),
        start
            if [MAGIC, MAGIC_BIG, MAGIC_VERSION_1]
                .iter()
                .any(|magic| magic.starts_with(start)) =>
        {
            Err(Error::HeaderTruncated { have: file.len() })
        }
        // No magic number, nor the first bytes of one.
        start => Err(Error::Magic {
            magic: start.to_vec(),
        }),
    }
}

/// Detects the byte order of a file of version 1 by its header size, since the magic number doesn't depend on the
/// byte order.
fn byte_order_of_version_1(file: &[u8]) -> Result<Endian, Error> {
    let sizes = [
        FileHeader::SIZE as u64,
        FileHeader::SIZE_WITHOUT_FEATURES,
        FileHeader::PIPE_SIZE,
    ];
    let at = MAGIC_VERSION_1.len();
    let Some(size) = Endian::Little.u64_at(file, at) else {
        return Err(Error::HeaderTruncated { have: file.len() });
    };
    let endian = if sizes.contains(&size) {
        Endian::Little
    } else if sizes.contains(&size.swap_bytes()) {
        Endian::Big
    } else {
        return Err(Error::HeaderSize { size });
    };
    Ok(endian)
}

/// Decodes the bitmap, an array of the recording machine's `unsigned long`. On a 32-bit big-endian machine, the halves of each
/// `u64` are swapped. All but the oldest recorders write HOSTNAME, so its bit shows the word size. Without it, 64-bit words are
/// assumed if they give only known features, otherwise 32-bit words if these do. If neither does, only the bit of BUILD_ID is
/// set, as in perf.
fn features(bitmap: &[u8; 32], endian: Endian) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bitmap.as_chunks().0) {
        *word = endian.u64(*bytes);
    }
    if endian == Endian::Big && !has(&words, FeatureId::HOSTNAME) {
        let swapped = words.map(|word| word.rotate_left(32));
        if has(&swapped, FeatureId::HOSTNAME) {
            return swapped;
        }
        let known = |words: &[u64; 4]| {
            let mut bits = (0..=u8::MAX).map(FeatureId);
            bits.all(|id| !has(words, id) || id.name().is_some())
        };
        if !known(&words) {
            let build_ids = [1 << FeatureId::BUILD_ID.0, 0, 0, 0];
            return if known(&swapped) { swapped } else { build_ids };
        }
    }
    words
}
