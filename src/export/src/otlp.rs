//! OTLP profiles: the profiles signal of OpenTelemetry, for collectors and the databases behind them.
//!
//! Each event with samples is a profile. Samples with equal stacks in one thread on one CPU share an entry, which has their
//! times and periods. Threads, processes and CPUs are attributes of samples, named as in OpenTelemetry's semantic conventions.

mod proto;

use std::collections::BTreeMap;

use prost::Message;
use rustc_hash::FxHashMap;

use self::proto::{
    AnyValue, Attribute, AttributeValue, Dictionary, ExportResponse, Function, KeyValue, Line,
    Link, Location, Mapping, ProfileMessage, ProfilesData, Resource, ResourceProfiles, Sample,
    Scope, ScopeProfiles, Stack, ValueType,
};
use crate::intern::Interner;
use crate::locations::Locations;
use crate::pprof::hex;
use crate::profile::{CodeKind, PeriodUnit, Profile, ProfileEvent};

/// Path of the profiles service below a collector's address.
pub const SERVICE_PATH: &str = "/v1development/profiles";

/// Properties of a recording that are stored with the profiles made of it.
#[derive(Debug, Clone, Default)]
pub struct OtlpRecording<'r> {
    /// Identifies the recording; the id of a profile is a hash of this id and the event's index.
    pub id: &'r str,
    /// Time of the first sample, in nanoseconds since 1970.
    pub start: i64,
    /// Attributes of the machine, such as `host.name` and `os.type`.
    pub resource: Vec<(&'static str, String)>,
    /// Name and version of the program that writes the profile.
    pub exporter: (&'r str, &'r str),
}

/// Encodes a `ProfilesData` message. A collector's `ExportProfilesServiceRequest` has the same encoding.
#[must_use]
pub fn encode(profile: &Profile, recording: &OtlpRecording<'_>) -> Vec<u8> {
    let mut builder = Builder::new(profile, recording);
    let profiles = profile
        .sampled_events()
        .map(|(number, event)| builder.event(number, event))
        .collect();
    let attributes = recording.resource.iter().map(|(key, text)| KeyValue {
        key: (*key).to_owned(),
        value: Some(AnyValue {
            value: Some(AttributeValue::Text(text.clone())),
        }),
    });
    let (name, version) = recording.exporter;
    let data = ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: attributes.collect(),
            }),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(Scope {
                    name: name.to_owned(),
                    version: version.to_owned(),
                }),
                profiles,
            }],
        }],
        dictionary: Some(builder.dictionary()),
    };
    data.encode_to_vec()
}

/// Returns a text with the number of profiles that a collector rejected and the reason; `None` if no profile was rejected or the
/// response cannot be decoded.
#[must_use]
pub fn rejection(response: &[u8]) -> Option<String> {
    let partial = ExportResponse::decode(response).ok()?.partial_success?;
    let (count, message) = (partial.rejected_profiles, partial.error_message);
    (count != 0).then(|| format!("{count} profiles rejected: {message}"))
}

/// Returns the warning (`ExportProfilesPartialSuccess`) in the response of a collector that accepted all profiles; `None` if
/// there is no warning or the response cannot be decoded.
#[must_use]
pub fn warning(response: &[u8]) -> Option<String> {
    let partial = ExportResponse::decode(response).ok()?.partial_success?;
    let is_warning = partial.rejected_profiles == 0 && !partial.error_message.is_empty();
    is_warning.then_some(partial.error_message)
}

/// Key of a sample: thread, CPU and stack.
type SampleKey = (u32, u32, Option<u32>);
/// Times and values of the samples with one key.
type TimesAndValues = (Vec<u64>, Vec<i64>);

struct Builder<'p> {
    profile: &'p Profile,
    recording: &'p OtlpRecording<'p>,
    /// Time of the first sample, in nanoseconds of the recording's clock.
    first_time: u64,
    strings: Interner<String>,
    /// Key (an index in `strings`) and value of each attribute; `None` is the empty entry 0.
    attributes: Interner<Option<(i32, AttributeValue)>>,
    locations: Locations,
    stacks: Vec<Stack>,
    /// Index in `stacks`, by the stack's index in the profile.
    stack_numbers: FxHashMap<u32, i32>,
}

impl<'p> Builder<'p> {
    fn new(profile: &'p Profile, recording: &'p OtlpRecording<'p>) -> Self {
        // Entry 0 of each table is empty: an index of 0 means none.
        let mut strings = Interner::default();
        strings.number(String::new());
        let mut attributes = Interner::default();
        attributes.number(None);
        Self {
            profile,
            recording,
            first_time: profile.first_time(),
            strings,
            attributes,
            locations: Locations::default(),
            stacks: vec![Stack::default()],
            stack_numbers: FxHashMap::default(),
        }
    }

    fn string(&mut self, text: &str) -> i32 {
        index(self.strings.number(text.to_owned()))
    }

    fn attribute(&mut self, key: &str, value: AttributeValue) -> i32 {
        let key = self.string(key);
        index(self.attributes.number(Some((key, value))))
    }

    /// The profile of one event.
    fn event(&mut self, number: u32, event: &ProfileEvent) -> ProfileMessage {
        let unit = match event.unit {
            PeriodUnit::Nanoseconds => "nanoseconds",
            PeriodUnit::Cycles => "cycles",
            PeriodUnit::Count => "count",
        };
        let kind = ValueType {
            kind: self.string(&event.name),
            unit: self.string(unit),
        };
        // The first and the last time of the samples of all events: all profiles have the same span.
        let (first, last) = self.profile.span();
        let mut samples = Vec::new();
        for ((thread, cpu, stack), (times, values)) in self.grouped_samples(number) {
            samples.push(Sample {
                stack: self.stack(stack),
                attributes: self.sample_attributes(thread, cpu),
                values,
                times,
            });
        }
        ProfileMessage {
            sample_type: Some(kind),
            samples,
            time_unix_nano: self.wall_time(first),
            duration_nano: last - first,
            period_type: Some(kind),
            period: self.profile.mean_period(number),
            profile_id: profile_id(self.recording.id, number),
        }
    }

    /// The samples of an event by thread, CPU and stack.
    fn grouped_samples(&self, event: u32) -> BTreeMap<SampleKey, TimesAndValues> {
        let mut groups: BTreeMap<SampleKey, TimesAndValues> = BTreeMap::new();
        let tracks = self.profile.tracks.iter();
        for track in tracks.filter(|track| track.event == event) {
            for row in &track.samples {
                let key = (track.thread, row.cpu, row.stack);
                let (times, values) = groups.entry(key).or_default();
                times.push(self.wall_time(row.time));
                values.push(i64::try_from(row.period).unwrap_or(i64::MAX));
            }
        }
        groups
    }

    /// Converts a time of the recording to nanoseconds since 1970.
    fn wall_time(&self, time: u64) -> u64 {
        let since = i128::from(time) - i128::from(self.first_time);
        u64::try_from(i128::from(self.recording.start) + since).unwrap_or_default()
    }

    fn sample_attributes(&mut self, thread: u32, cpu: u32) -> Vec<i32> {
        let mut attributes = Vec::new();
        if let Some(thread) = self.profile.threads.get(thread as usize) {
            let process = self.profile.process_name(thread.pid);
            for (key, id) in [("process.pid", thread.pid), ("thread.id", thread.tid)] {
                // `u32::MAX`: the id was not recorded.
                if id != u32::MAX {
                    let id = AttributeValue::Number(id.into());
                    attributes.push(self.attribute(key, id));
                }
            }
            for (key, name) in [
                ("process.executable.name", process),
                ("thread.name", &thread.name),
            ] {
                if !name.is_empty() {
                    let name = AttributeValue::Text(name.to_owned());
                    attributes.push(self.attribute(key, name));
                }
            }
        }
        if cpu != u32::MAX {
            let cpu = AttributeValue::Number(cpu.into());
            attributes.push(self.attribute("cpu.logical_number", cpu));
        }
        attributes
    }

    /// Returns the index of a stack, which is added if it is new; 0 for a sample without a stack.
    fn stack(&mut self, stack: Option<u32>) -> i32 {
        let Some(number) = stack else {
            return 0;
        };
        if let Some(known) = self.stack_numbers.get(&number) {
            return *known;
        }
        let locations = self.locations.of_stack(self.profile, stack);
        let locations = locations.into_iter();
        self.stacks.push(Stack {
            locations: locations
                .map(|id| i32::try_from(id).unwrap_or(i32::MAX))
                .collect(),
        });
        let index = i32::try_from(self.stacks.len() - 1).unwrap_or(i32::MAX);
        self.stack_numbers.insert(number, index);
        index
    }

    /// Returns the tables. Call it after the last sample: samples add entries.
    fn dictionary(mut self) -> Dictionary {
        // Mappings, functions and locations add strings and attributes.
        let mappings = self.mappings();
        let functions = self.functions();
        let locations = self.location_table();
        let attributes = self.attributes.items().iter().map(|attribute| {
            let none = Attribute::default();
            attribute.as_ref().map_or(none, |(key, value)| Attribute {
                key: *key,
                value: Some(AnyValue {
                    value: Some(value.clone()),
                }),
            })
        });
        Dictionary {
            mappings,
            locations,
            functions,
            // Only the empty entry 0: no sample has a link.
            links: vec![Link {}],
            attributes: attributes.collect(),
            stacks: self.stacks,
            strings: self.strings.items().to_vec(),
        }
    }

    /// The empty entry 0, then a mapping for each object, from 0 to its highest frame address.
    fn mappings(&mut self) -> Vec<Mapping> {
        let profile = self.profile;
        let mut mappings = vec![Mapping::default()];
        for object in &profile.objects {
            let build_id = object.build_id.as_deref().map(|build_id| {
                let build_id = AttributeValue::Text(hex(build_id));
                self.attribute("process.executable.build_id.gnu", build_id)
            });
            mappings.push(Mapping {
                memory_limit: 0,
                filename: self.string(&object.path),
                attributes: build_id.into_iter().collect(),
            });
        }
        for frame in &profile.frames {
            let function = profile.functions.get(frame.function as usize);
            let object = function.and_then(|function| function.object);
            let mapping = object.and_then(|object| mappings.get_mut(object as usize + 1));
            if let Some(mapping) = mapping {
                let end = frame.address.saturating_add(1);
                mapping.memory_limit = end.max(mapping.memory_limit);
            }
        }
        mappings
    }

    /// The empty entry 0, then the functions of the profile in their order.
    fn functions(&mut self) -> Vec<Function> {
        let profile = self.profile;
        let mut functions = vec![Function::default()];
        for (function, file) in profile.functions.iter().zip(profile.function_files()) {
            functions.push(Function {
                name: self.string(&function.name),
                filename: file.map_or(0, |file| self.string(file)),
            });
        }
        functions
    }

    /// The empty entry 0, then the locations by their ids. A location is an address with the frames of the function there and of
    /// those inlined into it, innermost first.
    fn location_table(&mut self) -> Vec<Location> {
        let profile = self.profile;
        let locations = std::mem::take(&mut self.locations);
        let mut table = vec![Location::default()];
        for frames in locations.iter() {
            let frames = frames.iter();
            let frames = frames.filter_map(|frame| profile.frames.get(*frame as usize));
            let outermost = frames.clone().next_back();
            let function = outermost.and_then(|frame| {
                let functions = &profile.functions;
                functions.get(frame.function as usize)
            });
            let object = function.and_then(|function| function.object);
            let kind = match function.map(|function| function.kind) {
                Some(CodeKind::Kernel) => Some("kernel"),
                Some(CodeKind::User) => Some("native"),
                // The type of JIT code is its language, which is unknown.
                Some(CodeKind::Jit) | None => None,
            };
            let kind = kind.map(|kind| {
                let kind = AttributeValue::Text(kind.to_owned());
                self.attribute("profile.frame.type", kind)
            });
            let lines = frames.map(|frame| Line {
                function: index(frame.function.saturating_add(1)),
                line: frame.place.map_or(0, |place| i64::from(place.line)),
            });
            table.push(Location {
                mapping: object.map_or(0, |object| index(object.saturating_add(1))),
                address: outermost.map_or(0, |frame| frame.address),
                lines: lines.collect(),
                attributes: kind.into_iter().collect(),
            });
        }
        table
    }
}

/// Converts an index; tables are expected to have fewer than 2^31 entries.
fn index(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Returns an id that is the same whenever this recording is converted, so that receivers recognise a copy.
fn profile_id(recording: &str, event: u32) -> Vec<u8> {
    let half = |number: u64| {
        let seed = number << 32 | u64::from(event);
        rperf_replay::hash(seed, recording.as_bytes()).to_le_bytes()
    };
    let mut id = [half(1), half(2)].concat();
    // An id of zeros is invalid.
    if let Some(byte) = id.first_mut() {
        *byte |= 1;
    }
    id
}

#[cfg(test)]
mod tests;
