//! Writing a recording anew, as a base for commands that change some of its records.

use crate::feature::AuxIndexEntry;
use crate::writer::Front;
use crate::{FeatureId, FeatureSet, FileHeader, Finished, Output, PerfData, WriteError, Writer};

impl PerfData<'_> {
    /// Writes the same recording: events with all that their attrs hold, names, records as they stand, and
    /// every feature section that is in the file, known or not. A stream in pipe mode becomes one again.
    ///
    /// What differs: old layouts of header and attr become those of today, and offsets into the file move along.
    /// After [`PerfData::with_records`] the sections that tell how the records were packed are left out.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn rewrite<W: Output>(&self, mut output: W) -> Result<(Finished, W), WriteError> {
        if self.header().is_pipe() {
            let head = FileHeader::encode_pipe(self.endian());
            let written = output.write_all(&head);
            let written = written.and_then(|()| output.write_all(self.data));
            written.map_err(WriteError::Header)?;
            let data_bytes = self.data.len() as u64;
            let finished = Finished {
                data_bytes,
                file_bytes: FileHeader::PIPE_SIZE + data_bytes,
                features_lost: None,
            };
            return Ok((finished, output));
        }
        let front = Front {
            events: self.events(),
            event_types: self.event_types,
            endian: self.endian(),
        };
        let mut writer = Writer::with_front(output, &front)?;
        writer.write_data(self.data)?;
        let is_same = !self.unpacked;
        let features = self.features_for(is_same.then(|| writer.data_offset()));
        writer.finish(&features)
    }

    /// The feature sections for a file whose records are the same and begin at `data_offset`; where they are others, `None`, those
    /// that tell how records are packed and where traces are have no place.
    pub(crate) fn features_for(&self, data_offset: Option<u64>) -> FeatureSet {
        let mut set = FeatureSet::new(self.endian());
        // Not what was found in records: it stays there.
        for feature in self.header().present() {
            let Some(section) = self.features().raw(feature) else {
                continue;
            };
            match (feature, data_offset) {
                (FeatureId::AUXTRACE | FeatureId::COMPRESSED | FeatureId::DIR_FORMAT, None) => {}
                (FeatureId::AUXTRACE, Some(data_offset)) => {
                    let distance = data_offset.wrapping_sub(self.data_offset());
                    let moved = AuxIndexEntry::moved(section, distance, self.endian());
                    set.opaque(feature, &moved);
                }
                _ => {
                    set.opaque(feature, section);
                }
            }
        }
        set
    }
}
