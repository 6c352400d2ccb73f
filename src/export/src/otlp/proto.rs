//! The messages of OTLP profiles: `opentelemetry/proto/profiles/v1development/profiles.proto`, the parts of
//! `common/v1/common.proto` and `resource/v1/resource.proto` that they contain, and the response of
//! `collector/profiles/v1development/profiles_service.proto`.
//!
//! Messages refer to entries of the dictionary's tables by index. Entry 0 of each table is empty and means "none".

use prost::{Message, Oneof};

/// A complete file; a request to a collector has the same fields.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfilesData {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub(super) dictionary: Option<Dictionary>,
}

/// The tables that all profiles refer to.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Dictionary {
    #[prost(message, repeated, tag = "1")]
    pub(super) mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub(super) locations: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub(super) functions: Vec<Function>,
    #[prost(message, repeated, tag = "4")]
    pub(super) links: Vec<Link>,
    #[prost(string, repeated, tag = "5")]
    pub(super) strings: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(super) attributes: Vec<Attribute>,
    #[prost(message, repeated, tag = "7")]
    pub(super) stacks: Vec<Stack>,
}

/// Profiles of a machine.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_profiles: Vec<ScopeProfiles>,
}

/// The machine.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

/// Profiles written by one program, the exporter.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) profiles: Vec<ProfileMessage>,
}

/// `InstrumentationScope`: the program that wrote the profiles.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// `Profile`: the samples of one event.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfileMessage {
    #[prost(message, optional, tag = "1")]
    pub(super) sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<Sample>,
    #[prost(fixed64, tag = "3")]
    pub(super) time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub(super) duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    pub(super) period: i64,
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "7")]
    pub(super) profile_id: Vec<u8>,
}

/// Type and unit of values, as indices in the table of strings.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(int32, tag = "2")]
    pub(super) unit: i32,
}

/// The samples of a thread with one stack on one CPU.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(int32, tag = "1")]
    pub(super) stack: i32,
    #[prost(int32, repeated, tag = "2")]
    pub(super) attributes: Vec<i32>,
    /// The periods: one for each of `times`.
    #[prost(int64, repeated, tag = "4")]
    pub(super) values: Vec<i64>,
    /// Nanoseconds since 1970.
    #[prost(fixed64, repeated, tag = "5")]
    pub(super) times: Vec<u64>,
}

/// A file with code.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    /// The end of the addresses of its locations. They begin at 0: `memory_start` is not encoded.
    #[prost(uint64, tag = "2")]
    pub(super) memory_limit: u64,
    #[prost(int32, tag = "4")]
    pub(super) filename: i32,
    #[prost(int32, repeated, tag = "5")]
    pub(super) attributes: Vec<i32>,
}

/// Locations, innermost first.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Stack {
    #[prost(int32, repeated, tag = "1")]
    pub(super) locations: Vec<i32>,
}

/// A code location.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(int32, tag = "1")]
    pub(super) mapping: i32,
    #[prost(uint64, tag = "2")]
    pub(super) address: u64,
    /// Innermost first.
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) attributes: Vec<i32>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Line {
    #[prost(int32, tag = "1")]
    pub(super) function: i32,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Function {
    #[prost(int32, tag = "1")]
    pub(super) name: i32,
    #[prost(int32, tag = "3")]
    pub(super) filename: i32,
}

/// A span of a distributed trace; recordings have none.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Link {}

/// `KeyValueAndUnit`: an attribute of samples, mappings or locations.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(int32, tag = "1")]
    pub(super) key: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// An attribute of a resource.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "AttributeValue", tags = "1, 3")]
    pub(super) value: Option<AttributeValue>,
}

/// Text or a number.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub(super) enum AttributeValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// `ExportProfilesServiceResponse`: the response of a collector.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<PartialSuccess>,
}

/// `ExportProfilesPartialSuccess`: the profiles that a collector rejected, or a warning if it rejected none.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_profiles: i64,
    #[prost(string, tag = "2")]
    pub(super) error_message: String,
}
