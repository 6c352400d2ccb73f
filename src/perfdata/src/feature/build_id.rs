//! BUILD_ID: records with the build-ids of files.

use rperf_wire::{
    Cursor, DecodeError, Encoder, Endian, Misc, RawRecord, RecordHeader, RecordKind, name_bytes,
    name_text, until_nul,
};

use super::text;

/// One file's build-id (`struct perf_record_header_build_id`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildIdEntry {
    /// Machine: -1 for the host, otherwise the pid of a guest.
    pub pid: i32,
    /// CPU mode of the file: kernel, user or guest; and whether the record specifies [`BuildIdEntry::size`].
    pub misc: Misc,
    /// The build-id, padded with zeros.
    pub build_id: [u8; 20],
    /// Number of valid bytes of the build-id: 20 if the record doesn't specify it.
    pub size: u8,
    /// Path, or `[kernel.kallsyms]`, `[vdso]` and the like.
    pub filename: String,
}

/// Space for a build-id: 20 bytes, one for its size, three of padding.
const BUILD_ID_FIELD: usize = 24;

impl BuildIdEntry {
    /// The valid bytes of the build-id.
    #[must_use]
    pub fn id(&self) -> &[u8] {
        self.build_id
            .get(..usize::from(self.size))
            .unwrap_or(&self.build_id)
    }

    /// Creates the entry of a file of the host. Bytes of `id` beyond 20 are dropped.
    #[must_use]
    pub fn of_host(misc: Misc, id: &[u8], filename: String) -> Self {
        let mut build_id = [0; 20];
        let mut size = 0;
        for (to, from) in build_id.iter_mut().zip(id) {
            *to = *from;
            size += 1;
        }
        Self {
            pid: -1,
            misc,
            build_id,
            size,
            filename,
        }
    }

    /// Appends the entry as a HEADER_BUILD_ID record. Nothing is appended for a path too long for a record.
    pub fn encode_record(&self, endian: Endian, to: &mut Vec<u8>) {
        let misc = Misc(self.misc.0 | Misc::BUILD_ID_SIZE.0);
        RecordHeader::encode_record(RecordKind::HEADER_BUILD_ID, misc, to, endian, |to| {
            to.u32(self.pid.cast_unsigned());
            to.bytes(&self.build_id);
            to.bytes(&[self.size.min(20), 0, 0, 0]);
            // The size of the whole body is a multiple of eight: newer releases of perf refuse other sizes.
            let name = &*name_bytes(&self.filename);
            to.bytes(name);
            let fixed = size_of::<i32>() + BUILD_ID_FIELD;
            let end = (fixed + name.len() + 1).next_multiple_of(size_of::<u64>());
            to.zeros(end - fixed - name.len());
        });
    }

    /// Decodes a HEADER_BUILD_ID record. The old layout, without pid, is recognized only in the kernel's record, by its name;
    /// records of other files are decoded with the present layout.
    ///
    /// # Errors
    /// [`DecodeError`] if the body is too short.
    pub fn decode_record(raw: &RawRecord<'_>, endian: Endian) -> Result<Self, DecodeError> {
        let entry = Self::decode_fields(raw.body, raw.misc, endian)?;
        match entry.lacks_pid() {
            true => Self::decode_without_pid(raw, endian),
            false => Ok(entry),
        }
    }

    /// Decodes all entries of a section. If one reveals the old layout, all entries have it, as in perf.
    pub(crate) fn decode_list(mut bytes: &[u8], endian: Endian) -> Result<Vec<Self>, DecodeError> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let short = DecodeError::Short {
                field: "build-id record",
                offset: 0,
                need: RecordHeader::SIZE,
                have: bytes.len(),
            };
            let (raw, size) = RawRecord::split(bytes, endian).ok_or(short)?;
            records.push(raw);
            bytes = bytes.get(size..).unwrap_or_default();
        }
        let entries = records
            .iter()
            .map(|raw| Self::decode_fields(raw.body, raw.misc, endian))
            .collect::<Result<Vec<_>, _>>()?;
        if entries.iter().any(Self::lacks_pid) {
            return records
                .iter()
                .map(|raw| Self::decode_without_pid(raw, endian))
                .collect();
        }
        Ok(entries)
    }

    /// Appends the entries as records that specify the size of the build-id. Entries whose path is too long for a record are
    /// omitted.
    pub(crate) fn encode_list(entries: &[Self], to: &mut Encoder<'_>) {
        for entry in entries {
            let name = &*name_bytes(&entry.filename);
            let room = (name.len() + 1).next_multiple_of(text::ALIGN);
            let fixed = RecordHeader::SIZE + size_of::<i32>() + BUILD_ID_FIELD;
            let Ok(size) = u16::try_from(fixed + room) else {
                continue;
            };
            let header = RecordHeader {
                // As in perf, records in the section have no type.
                kind: RecordKind(0),
                misc: Misc(entry.misc.0 | Misc::BUILD_ID_SIZE.0),
                size,
            };
            header.encode(to);
            to.u32(entry.pid.cast_unsigned());
            to.bytes(&entry.build_id);
            to.bytes(&[entry.size.min(20), 0, 0, 0]);
            to.padded_str(name, text::ALIGN);
        }
    }

    /// Whether the entry has the old layout, by the kernel's name: recorders before 2.6.35 wrote no pid, so all fields are four
    /// bytes earlier, and a name decoded with the present layout loses its start.
    fn lacks_pid(&self) -> bool {
        self.filename.starts_with("nel.kallsyms]")
    }

    /// Decodes an entry of the old layout, with the pid of the host.
    fn decode_without_pid(raw: &RawRecord<'_>, endian: Endian) -> Result<Self, DecodeError> {
        // The missing pid: -1 is the same in both byte orders.
        let mut shifted = (-1_i32).to_le_bytes().to_vec();
        shifted.extend_from_slice(raw.body);
        Self::decode_fields(&shifted, raw.misc, endian)
    }

    fn decode_fields(body: &[u8], misc: Misc, endian: Endian) -> Result<Self, DecodeError> {
        let at = &mut Cursor::new(body, endian);
        let pid = at.u32("build-id pid")?.cast_signed();
        let field: [u8; BUILD_ID_FIELD] = at.array("build-id")?;
        let mut build_id = [0; 20];
        for (to, from) in build_id.iter_mut().zip(field) {
            *to = from;
        }
        let [.., stored_size, _, _, _] = field;
        let size = if misc.contains(Misc::BUILD_ID_SIZE) {
            stored_size.min(20)
        } else {
            20
        };
        Ok(Self {
            pid,
            misc,
            build_id,
            size,
            filename: name_text(until_nul(at.rest())).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_name_reveals_that_no_entry_has_a_pid() {
        let mut section = Vec::new();
        for (byte, name) in [(1, "[kernel.kallsyms]"), (2, "/usr/bin/true")] {
            let (kind, misc) = (RecordKind(0), Misc(1));
            RecordHeader::encode_record(kind, misc, &mut section, Endian::Little, |to| {
                to.bytes(&[byte; BUILD_ID_FIELD]);
                to.padded_str(name.as_bytes(), text::ALIGN);
            });
        }
        let entries = BuildIdEntry::decode_list(&section, Endian::Little).unwrap();
        let names: Vec<&str> = entries
            .iter()
            .map(|entry| entry.filename.as_str())
            .collect();
        assert_eq!(names, ["[kernel.kallsyms]", "/usr/bin/true"]);
        assert!(entries.iter().all(|entry| entry.pid == -1));
        assert_eq!(entries[1].id(), [2; 20]);
    }
}
