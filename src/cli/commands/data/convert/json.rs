//! `--to-json`.

use std::io;
use std::path::Path;

use rperf_export::json::{Block, Captured, Text, write_end, write_start};
use rperf_replay::Flow;
use rperf_resolve::{Resolver, UserStacks};
use rperf_view::header::iso;

use super::Conversion;
use super::target::Target;
use crate::cli::error::CliError;
use crate::cli::jobs::jobs;
use crate::cli::product::write_to;

impl Conversion<'_> {
    /// Writes the samples in order of time; how many there are.
    pub(super) fn write_json(
        &self,
        target: &Target<'_>,
        resolver: &Resolver<'_>,
        stacks: &UserStacks<'_, '_>,
    ) -> Result<u64, CliError> {
        let data = self.data;
        let jobs = jobs(self.matches, self.context)?;
        let types = data.events().iter().map(|event| event.attr.sample_type);
        let text = Text::new(resolver, stacks, data.endian(), types);
        let time = format!("{}Z", iso(self.input.changed).replace(' ', "T"));
        let captured = Captured {
            time: &time,
            header: data.header(),
        };
        let mut samples = 0;
        write_to(Path::new(target.path), self.context, |out| {
            write_start(out, &captured, data.described())?;
            let mut written = Ok(());
            let take = &mut |block: &mut Block| {
                // The first of all has nothing before it.
                let comma = usize::from(samples == 0 && block.samples > 0);
                written = out.write_all(block.text.get(comma..).unwrap_or_default());
                samples += block.samples;
                match written {
                    Ok(()) => Flow::Continue,
                    Err(_) => Flow::Stop,
                }
            };
            let delivered = self.replay.ordered(jobs, &text, take);
            delivered.map_err(io::Error::other)?;
            written?;
            write_end(out)
        })?;
        Ok(samples)
    }
}
