//! `data convert --to-json`: writes the samples of a recording as JSON.

use std::io;
use std::path::Path;

use rperf_export::json::{CaptureInfo, JsonBlock, JsonText, write_end, write_start};
use rperf_perfdata::EventDesc;
use rperf_replay::FoldControl;
use rperf_resolve::{Resolver, UserStacks};
use rperf_view::header::iso;

use super::super::is_set;
use super::target::ConversionTarget;
use super::{DataConversion, wall_clock_offset};
use crate::cli::error::CliError;
use crate::cli::output_file::write_to;
use crate::cli::shared::analysis::Analysis;

impl DataConversion<'_> {
    /// Writes the samples ordered by time and, with `--all`, other records; returns the number of samples.
    pub(super) fn write_json(
        &self,
        target: &ConversionTarget<'_>,
        resolver: &Resolver<'_>,
        stacks: &UserStacks<'_, '_>,
    ) -> Result<u64, CliError> {
        let Analysis { context, input, .. } = *self.analysis;
        let data = self.analysis.data();
        let types = data.events().iter().map(|event| event.attr.sample_type);
        let formats = data.metadata().formats()?;
        let format = |event: &EventDesc| formats.of_event(&event.attr).ok().cloned();
        let tracepoint_formats = data.events().iter().map(format);
        let mut text =
            JsonText::new(resolver, stacks, data.endian(), types).with_fields(tracepoint_formats);
        if is_set(self.matches, "tod") {
            text = text.shifted_by(wall_clock_offset(data.metadata())?);
        }
        let all = is_set(self.matches, "all");
        if all {
            text = text.with_records(data.events().iter().map(|event| &*event.name));
        }
        let time = format!("{}Z", iso(input.mtime).replace(' ', "T"));
        let captured = CaptureInfo {
            time: &time,
            header: data.header(),
        };
        // The text of other records is kept until the end: it follows all samples.
        let (mut sample_count, mut records) = (0, Vec::new());
        write_to(Path::new(target.destination), context, |out| {
            write_start(out, &captured, data.metadata())?;
            let mut written = Ok(());
            let take = &mut |block: &mut JsonBlock| {
                // In a block, a comma precedes each sample. The comma before the first sample of the output is skipped.
                let skipped = usize::from(sample_count == 0 && block.samples > 0);
                written = out.write_all(block.text.get(skipped..).unwrap_or_default());
                sample_count += block.samples;
                records.append(&mut block.records);
                match written {
                    Ok(()) => FoldControl::Continue,
                    Err(_) => FoldControl::Stop,
                }
            };
            let delivered = self
                .analysis
                .replay
                .ordered(self.analysis.jobs, &text, take);
            delivered.map_err(io::Error::other)?;
            written?;
            write_end(out, all.then_some(&records))
        })?;
        Ok(sample_count)
    }
}
