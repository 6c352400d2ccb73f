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
        let features = self.features_for(writer.data_offset());
        writer.finish(&features)
    }

    /// The feature sections for a file whose records begin at `data_offset`.
    fn features_for(&self, data_offset: u64) -> FeatureSet {
        let mut set = FeatureSet::new(self.endian());
        // Not what was found in records: it stays there.
        for feature in self.header().present() {
            let Some(section) = self.features().raw(feature) else {
                continue;
            };
            match feature {
                FeatureId::AUXTRACE | FeatureId::COMPRESSED | FeatureId::DIR_FORMAT
                    if self.unpacked => {}
                FeatureId::AUXTRACE => {
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

    /// The feature sections of the same recording without the traces of hardware.
    pub(crate) fn features_without_traces(&self) -> FeatureSet {
        let mut set = FeatureSet::new(self.endian());
        let packing = [FeatureId::COMPRESSED, FeatureId::DIR_FORMAT];
        for feature in self.header().present() {
            let stays = feature != FeatureId::AUXTRACE && !packing.contains(&feature);
            if let Some(section) = self.features().raw(feature).filter(|_| stays) {
                set.opaque(feature, section);
            }
        }
        set
    }
}
