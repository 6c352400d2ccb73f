//! The pprof format: `profile.proto` of github.com/google/pprof, compressed with gzip.
//!
//! Samples with equal stacks in one thread become one sample, which has two values for each event with samples: the number of
//! the samples, and the sum of their periods.

mod proto;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;

use self::proto::{Function, Label, Line, Location, Mapping, Sample, ValueType, tag};
use crate::intern::Interner;
use crate::locations::Locations;
use crate::profile::{PeriodUnit, Profile, Thread};

/// Writes `profile`. `start` is the time of the first sample in nanoseconds since 1970, if known.
///
/// # Errors
///
/// Errors of `out`.
pub fn write(profile: &Profile, start: Option<i64>, out: impl Write) -> io::Result<()> {
    let mut writer = Writer::new(profile, out);
    writer.write_types()?;
    writer.write_samples()?;
    writer.write_mappings()?;
    writer.write_functions()?;
    // The locations are those of the samples above.
    writer.write_locations()?;
    writer.write_times(start)?;
    // Everything above adds strings.
    writer.write_strings()?;
    writer.out.finish()?.flush()
}

/// Bytes of a thread's name that the kernel keeps.
const COMM_LENGTH: usize = 15;

/// The values of samples, summed by thread and stack (indices in the profile).
type StackSums = FxHashMap<(u32, Option<u32>), Box<[i64]>>;

struct Writer<'p, W: Write> {
    profile: &'p Profile,
    out: GzEncoder<W>,
    buffer: Vec<u8>,
    strings: Interner<Cow<'p, str>>,
    locations: Locations,
}

impl<'p, W: Write> Writer<'p, W> {
    fn new(profile: &'p Profile, out: W) -> Self {
        let mut strings = Interner::default();
        // The format requires an empty first string.
        strings.number(Cow::Borrowed(""));
        Self {
            profile,
            out: GzEncoder::new(out, Compression::fast()),
            buffer: Vec::new(),
            strings,
            locations: Locations::default(),
        }
    }

    fn string(&mut self, text: impl Into<Cow<'p, str>>) -> i64 {
        i64::from(self.strings.number(text.into()))
    }

    /// Writes a message that is a field of the profile.
    fn put(&mut self, tag: u32, message: &impl Message) -> io::Result<()> {
        self.buffer.clear();
        prost::encoding::message::encode(tag, message, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    fn put_number(&mut self, tag: u32, number: i64) -> io::Result<()> {
        self.buffer.clear();
        prost::encoding::int64::encode(tag, &number, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    /// Writes the types of the values, and the default type: the periods of the first event with samples. The period of the
    /// profile is the mean of these periods.
    fn write_types(&mut self) -> io::Result<()> {
        let events: Vec<_> = self.profile.sampled_events().collect();
        let single = events.len() == 1;
        let mut default_kind = None;
        for (event_index, event) in events {
            let samples = match single {
                true => Cow::Borrowed("samples"),
                false => Cow::Owned(format!("{}_samples", event.name)),
            };
            let unit = match event.unit {
                PeriodUnit::Nanoseconds => "nanoseconds",
                PeriodUnit::Cycles | PeriodUnit::Count => "count",
            };
            let samples = self.value_type(samples, "count");
            self.put(tag::SAMPLE_TYPE, &samples)?;
            let periods = self.value_type(event.name.as_str(), unit);
            self.put(tag::SAMPLE_TYPE, &periods)?;
            if default_kind.is_none() {
                default_kind = Some(periods.kind);
                self.put(tag::PERIOD_TYPE, &periods)?;
                self.put_number(tag::PERIOD, self.profile.mean_period(event_index))?;
            }
        }
        self.put_number(tag::DEFAULT_SAMPLE_TYPE, default_kind.unwrap_or_default())
    }

    fn value_type(&mut self, kind: impl Into<Cow<'p, str>>, unit: &'p str) -> ValueType {
        ValueType {
            kind: self.string(kind),
            unit: self.string(unit),
        }
    }

    fn write_samples(&mut self) -> io::Result<()> {
        let mut sums: Vec<_> = self.sums().into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        let [comm_key, pid_key, tid_key] = ["comm", "pid", "tid"].map(|key| self.string(key));
        for ((thread, stack), values) in sums {
            let mut labels = Vec::with_capacity(3);
            if let Some(Thread { pid, tid, name }) = self.profile.threads.get(thread as usize) {
                labels.push(Label::text(comm_key, self.string(name.as_str())));
                labels.push(Label::number(pid_key, *pid));
                labels.push(Label::number(tid_key, *tid));
            }
            let sample = Sample {
                location_id: self.locations.of_stack(self.profile, stack),
                value: values.into_vec(),
                label: labels,
            };
            self.put(tag::SAMPLE, &sample)?;
        }
        Ok(())
    }

    /// Returns the sums, with the two values of each event in the order of [`Profile::sampled_events`].
    fn sums(&self) -> StackSums {
        let events: Vec<u32> = self
            .profile
            .sampled_events()
            .map(|(event, _)| event)
            .collect();
        let mut sums = StackSums::default();
        for track in &self.profile.tracks {
            let Some(index) = events.iter().position(|event| *event == track.event) else {
                continue;
            };
            for row in &track.samples {
                let key = (track.thread, row.stack);
                let zeros = || vec![0; 2 * events.len()].into_boxed_slice();
                let values = sums.entry(key).or_insert_with(zeros);
                if let Some([samples, periods]) = values.get_mut(2 * index..2 * index + 2) {
                    *samples += 1;
                    *periods = periods.saturating_add_unsigned(row.period);
                }
            }
        }
        sums
    }

    /// Writes a mapping for each object, from 0 to its highest frame address (`ProfileFrame::address`). The first
    /// mapping is that of the program or, if the program is unknown, one without a file.
    fn write_mappings(&mut self) -> io::Result<()> {
        let mut contents = vec![ObjectFrames::default(); self.profile.objects.len()];
        for frame in &self.profile.frames {
            let function = self.profile.functions.get(frame.function as usize);
            let object = function.and_then(|function| function.object);
            if let Some(content) = object.and_then(|object| contents.get_mut(object as usize)) {
                content.limit = frame.address.saturating_add(1).max(content.limit);
                content.has_lines |= frame.place.is_some();
                content.has_inlined |= frame.inline_depth > 0;
            }
        }
        let main = self.main_object();
        if main.is_none() {
            self.write_mapping_without_file()?;
        }
        let objects = (1..).zip(&self.profile.objects).zip(contents);
        let mut objects: Vec<_> = objects.collect();
        // Readers treat the first mapping as the mapping of the program.
        objects.sort_by_key(|((id, _), _)| Some(*id) != main);
        for ((id, object), content) in objects {
            let build_id = object.build_id.as_deref().map(hex).unwrap_or_default();
            let mapping = Mapping {
                id,
                memory_limit: content.limit,
                filename: self.string(object.path.as_str()),
                build_id: self.string(build_id),
                // All symbols are resolved.
                has_functions: true,
                has_filenames: content.has_lines,
                has_line_numbers: content.has_lines,
                has_inline_frames: content.has_inlined,
            };
            self.put(tag::MAPPING, &mapping)?;
        }
        Ok(())
    }

    /// Writes a mapping without a file, since readers show the file of the first mapping as the name of the profile.
    fn write_mapping_without_file(&mut self) -> io::Result<()> {
        let id = self.profile.objects.len() as u64 + 1;
        let mapping = Mapping {
            id,
            has_functions: true,
            ..Mapping::default()
        };
        self.put(tag::MAPPING, &mapping)
    }

    /// Returns the id of the program's object, if more than half of the samples are from threads of one name, and an object has
    /// this name. If the kernel may have truncated the name, the object's name need only begin with it.
    fn main_object(&self) -> Option<u64> {
        let mut samples: FxHashMap<&str, usize> = FxHashMap::default();
        for track in &self.profile.tracks {
            let thread = self.profile.threads.get(track.thread as usize)?;
            *samples.entry(&thread.name).or_default() += track.samples.len();
        }
        let all: usize = samples.values().sum();
        let (program, most) = samples
            .into_iter()
            .max_by_key(|(name, samples)| (*samples, Reverse(*name)))?;
        let is_program = |name: &str| match program.len() < COMM_LENGTH {
            true => name == program,
            false => name.starts_with(program),
        };
        let mut objects = (1..).zip(&self.profile.objects);
        let object = objects.find(|(_, object)| is_program(&object.name));
        object.map(|(id, _)| id).filter(|_| 2 * most > all)
    }

    fn write_functions(&mut self) -> io::Result<()> {
        let files = self.profile.function_files();
        for ((id, function), file) in (1..).zip(&self.profile.functions).zip(files) {
            let name = self.string(function.name.as_str());
            let function = Function {
                id,
                name,
                // Readers shorten a name that is equal to its system name, since they assume that it is mangled.
                system_name: 0,
                filename: file.map_or(0, |file| self.string(file)),
            };
            self.put(tag::FUNCTION, &function)?;
        }
        Ok(())
    }

    fn write_locations(&mut self) -> io::Result<()> {
        let locations = std::mem::take(&mut self.locations);
        for (id, frames) in (1..).zip(locations.iter()) {
            let frames = frames.iter();
            let frames = frames.filter_map(|frame| self.profile.frames.get(*frame as usize));
            // The frames of a location are the functions inlined there, innermost first, and the function that contains them.
            let outermost = frames.clone().next_back();
            let function = outermost.and_then(|frame| {
                let functions = &self.profile.functions;
                functions.get(frame.function as usize)
            });
            let object = function.and_then(|function| function.object);
            let lines = frames.map(|frame| Line {
                function_id: u64::from(frame.function) + 1,
                line: frame.place.map_or(0, |place| i64::from(place.line)),
            });
            let location = Location {
                id,
                mapping_id: object.map_or(0, |object| u64::from(object) + 1),
                address: outermost.map_or(0, |frame| frame.address),
                line: lines.collect(),
            };
            self.put(tag::LOCATION, &location)?;
        }
        Ok(())
    }

    fn write_times(&mut self, start: Option<i64>) -> io::Result<()> {
        let (first, last) = self.profile.span();
        if let Some(start) = start {
            self.put_number(tag::TIME_NANOS, start)?;
        }
        let duration = i64::try_from(last - first).unwrap_or(i64::MAX);
        self.put_number(tag::DURATION_NANOS, duration)
    }

    fn write_strings(&mut self) -> io::Result<()> {
        let strings = std::mem::take(&mut self.strings);
        for text in strings.items() {
            self.buffer.clear();
            prost::encoding::string::encode(
                tag::STRING_TABLE,
                &text.clone().into_owned(),
                &mut self.buffer,
            );
            self.out.write_all(&self.buffer)?;
        }
        Ok(())
    }
}

/// Properties of the frames of one object.
#[derive(Debug, Clone, Copy, Default)]
struct ObjectFrames {
    /// The highest address, plus one.
    limit: u64,
    /// Whether the source location of at least one frame is known.
    has_lines: bool,
    /// Whether there are inlined functions.
    has_inlined: bool,
}

/// A build-id in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{ProfileObject, ProfileSample, Track};

    /// The id of the main object of a profile in which threads have these names and numbers of samples.
    fn main_object(threads: &[(&str, usize)]) -> Option<u64> {
        let object = |name: &str| ProfileObject {
            name: name.to_owned(),
            path: format!("/usr/bin/{name}"),
            build_id: None,
        };
        let row = ProfileSample {
            time: 1,
            period: 1,
            stack: None,
            cpu: 0,
        };
        let thread = |(name, _): &(&str, usize)| Thread {
            pid: 1,
            tid: 1,
            name: (*name).to_owned(),
        };
        let track = |(thread, (_, samples)): (u32, &(&str, usize))| Track {
            thread,
            event: 0,
            samples: vec![row; *samples],
        };
        let profile = Profile {
            objects: ["libc.so.6", "sh", "shapes", "gnome-terminal-server"]
                .map(object)
                .to_vec(),
            threads: threads.iter().map(thread).collect(),
            tracks: (0..).zip(threads).map(track).collect(),
            ..Profile::default()
        };
        Writer::new(&profile, io::sink()).main_object()
    }

    /// "Most" means more than half.
    #[test]
    fn only_a_program_with_most_samples_gives_the_profile_its_name() {
        assert_eq!(main_object(&[("sh", 3), ("shapes", 2)]), Some(2));
        assert_eq!(main_object(&[("sh", 2), ("shapes", 2), ("sh", 1)]), Some(2));
        assert_eq!(main_object(&[("gnome-terminal-", 9)]), Some(4));
        assert_eq!(main_object(&[("swapper", 9), ("sh", 2)]), None);
        assert_eq!(main_object(&[("sh", 2), ("shapes", 2), ("cat", 1)]), None);
        // Too short to be truncated, so it must be the whole name of an object.
        assert_eq!(main_object(&[("lib", 9)]), None);
        assert_eq!(main_object(&[]), None);
    }
}
