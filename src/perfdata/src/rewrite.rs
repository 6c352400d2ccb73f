//! Copying a recording, as a base for commands that change some of its records.

use crate::feature::AuxIndexEntry;
use crate::writer::Preamble;
use crate::{
    EventDesc, FeatureId, FeatureSet, FinishedFile, Output, PerfData, PipeWriter, WriteError,
    Writer,
};

impl PerfData<'_> {
    /// Writes a copy of the recording: the events (also unknown fields of their attrs), the records as they are, and all feature
    /// sections, known or not. The copy of a recording in pipe mode is in pipe mode, too.
    ///
    /// Old layouts of header and attr are converted to the current ones, and file offsets are
    /// adjusted. If the records were unpacked ([`PerfData::with_records`]), the sections that describe how records are packed
    /// and where AUX traces are located are omitted. In pipe mode, where features are records, nothing is omitted.
    ///
    /// # Errors
    /// [`WriteError::Header`] and [`WriteError::Data`].
    pub fn rewrite<W: Output>(&self, mut output: W) -> Result<(FinishedFile, W), WriteError> {
        if self.header().is_pipe() {
            let mut writer = PipeWriter::without_metadata(&mut output, self.endian())?;
            writer.write_data(self.data)?;
            writer.flush().map_err(WriteError::Header)?;
            let finished = FinishedFile {
                data_bytes: self.data.len() as u64,
                file_bytes: writer.bytes(),
                // There are no feature sections that could fail to be written.
                features_lost: None,
            };
            return Ok((finished, output));
        }
        let mut writer = self.begin_copy(output, self.events())?;
        writer.write_data(self.data)?;
        let has_original_records = self.unpacked.is_none();
        let data_offset = has_original_records.then(|| writer.data_offset());
        let features = self.features_for(data_offset);
        writer.finish(&features)
    }

    /// Starts a copy with these events: writes the header, ids and attrs. The caller writes records and features.
    ///
    /// # Errors
    /// [`WriteError::Header`].
    pub fn begin_copy<W: Output>(
        &self,
        output: W,
        events: &[EventDesc],
    ) -> Result<Writer<W>, WriteError> {
        let preamble = Preamble {
            events,
            event_types: self.event_types,
            endian: self.endian(),
        };
        Writer::with_preamble(output, &preamble)
    }

    /// The feature sections for a file with the same records starting at `data_offset`. `None` means that the file has
    /// other records: then the sections that describe how records are packed and where AUX traces are located are omitted.
    #[must_use]
    pub fn features_for(&self, data_offset: Option<u64>) -> FeatureSet {
        let mut set = FeatureSet::new(self.endian());
        // Only sections listed in the header are copied: features in records (pipe mode) are copied as records.
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
