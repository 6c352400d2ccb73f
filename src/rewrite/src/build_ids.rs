//! Adds build-ids of mapped files to a recording, as records or in its mappings.

use std::path::Path;

use rperf_perfdata::feature::BuildIdEntry;
use rperf_perfdata::{EventDesc, FeatureSet};
use rperf_replay::{
    Dso, DsoKind, EventTable, Fold, LiveWorld, Machine, Replay, Sample, World, perf_map_name,
};
use rperf_symbol::BuildId;
use rperf_wire::{
    CpuMode, Endian, MAP_PRIVATE, Misc, Mmap, Mmap2, MmapId, PROT_EXEC, PROT_READ, RawRecord,
    Record, RecordHeader, RecordKind, name_text,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::context_mode::chain_entries;
use crate::pipeline::Transform;

/// `PERF_RECORD_MISC_KERNEL` and `_USER`.
const KERNEL: Misc = Misc(1);
const USER: Misc = Misc(2);

/// An object of the host whose build-id is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectName<'a> {
    /// Its path, or a name such as `[kernel.kallsyms]`.
    pub name: &'a str,
    /// Its type.
    pub kind: DsoKind,
}

impl ObjectName<'_> {
    /// The path as recorded.
    #[must_use]
    pub fn path(&self) -> std::borrow::Cow<'_, Path> {
        rperf_wire::name_path(self.name)
    }
}

/// Finds build-ids of objects.
pub trait BuildIdSource {
    /// The build-id of an object; `None` if it has none or can't be read.
    fn find(&mut self, object: ObjectName<'_>) -> Option<BuildId>;
}

/// The objects whose build-ids are looked up, unless they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedObjects {
    /// Objects of the host that samples and their callchains hit; each has its record before the first sample that hits it.
    Hit,
    /// All mapped objects of the host; each has its record before its first mapping.
    Mapped,
}

/// Inserts a HEADER_BUILD_ID record for each object whose build-id is found.
pub struct BuildIdInjector<S> {
    live: LiveWorld,
    endian: Endian,
    objects: InjectedObjects,
    source: S,
    /// Names of objects that need no further lookup.
    known: FxHashSet<String>,
    /// The build-ids in the inserted records.
    entries: Vec<BuildIdEntry>,
    /// Processes and pages that were looked up in the World of this `version`; the process of kernel addresses is `u32::MAX`.
    pages: FxHashSet<(u32, u64)>,
    version: u64,
    position: u64,
}

/// Maximum number of pages remembered.
const MAX_PAGES: usize = 1 << 16;

impl<S: BuildIdSource> BuildIdInjector<S> {
    /// Creates an injector for a recording with these events, whose metadata contain the build-ids `recorded`.
    pub fn new(
        endian: Endian,
        events: &[EventDesc],
        recorded: &[BuildIdEntry],
        objects: InjectedObjects,
        source: S,
    ) -> Self {
        Self {
            live: LiveWorld::new(endian, events),
            endian,
            objects,
            source,
            known: recorded
                .iter()
                .map(|entry| entry.filename.clone())
                .collect(),
            entries: Vec::new(),
            pages: FxHashSet::default(),
            version: 0,
            position: 0,
        }
    }

    /// Appends the records of the objects that a sample hits.
    fn add_sample(&mut self, raw: &RawRecord<'_>, position: u64, to: &mut Vec<u8>) {
        let Ok(Some(sample)) = self.live.sample(raw, position) else {
            return;
        };
        let mode = sample.cpu_mode();
        if let Some(ip) = sample.wire.ip {
            self.add_address(&sample, mode, ip, to);
        }
        let chain = sample.wire.callchain.iter();
        for (word, mode) in chain.flat_map(|chain| chain_entries(mode, chain)) {
            if let Some(mode) = mode {
                self.add_address(&sample, mode, word, to);
            }
        }
    }

    fn add_address(&mut self, sample: &Sample<'_>, mode: CpuMode, address: u64, to: &mut Vec<u8>) {
        const PAGE_BITS: u32 = 12;
        let machine = Machine::of(mode, sample.pid);
        if machine != Machine::Host {
            return;
        }
        let process = if mode == CpuMode::Kernel {
            u32::MAX
        } else {
            sample.pid
        };
        let world = self.live.world();
        if self.version != world.version() || self.pages.len() >= MAX_PAGES {
            self.pages.clear();
            self.version = world.version();
        }
        if !self.pages.insert((process, address >> PAGE_BITS)) {
            return;
        }
        let Some(mapping) = world.lookup(machine, mode, sample.pid, sample.order, address) else {
            return;
        };
        let dso = world.dso(world.mapping(mapping).dso);
        if self.known.contains(&dso.long_name) {
            return;
        }
        let object = ObjectName {
            name: &dso.long_name,
            kind: dso.kind,
        };
        let entry = match dso.build_id {
            None => entry(&mut self.source, object),
            // The mapping already has it.
            Some(_) => None,
        };
        self.known.insert(dso.long_name.clone());
        self.add(entry, to);
    }

    fn add(&mut self, entry: Option<BuildIdEntry>, to: &mut Vec<u8>) {
        if let Some(entry) = entry {
            entry.encode_record(self.endian, to);
            self.entries.push(entry);
        }
    }

    /// Appends the record of a mapping's object.
    fn add_mapping(&mut self, raw: &RawRecord<'_>, to: &mut Vec<u8>) {
        let Some((mmap, has_id)) = mapping(raw, self.endian) else {
            return;
        };
        let Some((name, kind)) = named_object(raw.misc, &mmap) else {
            return;
        };
        if has_id || !self.known.insert(name.clone()) {
            return;
        }
        let object = ObjectName { name: &name, kind };
        let entry = entry(&mut self.source, object);
        self.add(entry, to);
    }
}

/// The build-id of an object of the host; `None` if it is not found, and for memory without a file and BPF programs.
fn entry(source: &mut impl BuildIdSource, object: ObjectName<'_>) -> Option<BuildIdEntry> {
    let misc = match object.kind {
        DsoKind::Kernel | DsoKind::KernelModule => KERNEL,
        DsoKind::User | DsoKind::Vdso | DsoKind::Vdso32 => USER,
        _ => return None,
    };
    let id = source.find(object)?;
    Some(BuildIdEntry::of_host(
        misc,
        id.as_bytes(),
        object.name.to_owned(),
    ))
}

/// The mapping in a record, and whether it has a build-id.
fn mapping<'a>(raw: &RawRecord<'a>, endian: Endian) -> Option<(Mmap<'a>, bool)> {
    match Record::decode(raw, endian).ok()? {
        Record::Mmap(mmap) => Some((mmap, false)),
        Record::Mmap2(mmap2) => {
            let has_id = matches!(mmap2.id, MmapId::BuildId { .. });
            Some((mmap2.mmap, has_id))
        }
        _ => None,
    }
}

/// Name and type of the object that a mapping of the host names; `None` for memory without a file, and for guests.
fn named_object(misc: Misc, mmap: &Mmap<'_>) -> Option<(String, DsoKind)> {
    const KERNEL_NAME: &str = "[kernel.kallsyms]";
    let name = name_text(mmap.filename);
    match misc.cpu_mode() {
        CpuMode::Kernel if name.starts_with(KERNEL_NAME) => {
            Some((KERNEL_NAME.to_owned(), DsoKind::Kernel))
        }
        CpuMode::Kernel => Some((name.into_owned(), DsoKind::KernelModule)),
        CpuMode::User if &*name == "[vdso]" => Some((name.into_owned(), DsoKind::Vdso)),
        CpuMode::User if name.starts_with('/') && !is_memory(&name) => {
            Some((name.into_owned(), DsoKind::User))
        }
        _ => None,
    }
}

/// Whether a name that looks like a path is that of memory without a file.
fn is_memory(name: &str) -> bool {
    const PREFIXES: [&str; 5] = ["//anon", "/dev/zero", "/anon_hugepage", "/SYSV", "/memfd:"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

impl<S: BuildIdSource> Transform for BuildIdInjector<S> {
    fn is_ordered(&self) -> bool {
        self.objects == InjectedObjects::Hit
    }

    fn note(&mut self, records: &[u8]) {
        self.live.add(records);
    }

    fn note_end(&mut self) {
        self.live.complete_all();
    }

    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        if self.objects == InjectedObjects::Hit {
            self.live.complete();
        }
        for (raw, record) in RawRecord::all(records, self.endian) {
            match (self.objects, raw.kind) {
                (InjectedObjects::Hit, RecordKind::SAMPLE) => {
                    self.add_sample(&raw, self.position, to);
                }
                (InjectedObjects::Mapped, RecordKind::MMAP | RecordKind::MMAP2) => {
                    self.add_mapping(&raw, to);
                }
                _ => {}
            }
            to.extend_from_slice(record);
            self.position += record.len() as u64;
        }
    }

    fn special(&mut self, record: &[u8], to: &mut Vec<u8>) {
        if let Some((raw, _)) = RawRecord::split(record, self.endian)
            && raw.kind == RecordKind::HEADER_BUILD_ID
            && let Ok(entry) = BuildIdEntry::decode_record(&raw, self.endian)
        {
            self.known.insert(entry.filename);
        }
        to.extend_from_slice(record);
    }

    fn features(&mut self, features: &mut FeatureSet) {
        features.add_build_ids(&self.entries);
    }
}

/// Replaces mappings of files of the host by MMAP2 records with build-ids, if these are found.
pub struct MappedBuildIds<S> {
    events: EventTable,
    endian: Endian,
    source: S,
    /// Names of the objects of the host whose mappings are kept; `None` for all.
    used: Option<FxHashSet<String>>,
    /// The results of lookups, by name.
    ids: FxHashMap<String, Option<BuildId>>,
}

impl<S: BuildIdSource> MappedBuildIds<S> {
    /// Creates the transform for a recording with these events. If `used` is given, the host's mappings of other
    /// objects are dropped.
    pub fn new(
        endian: Endian,
        events: &[EventDesc],
        used: Option<FxHashSet<String>>,
        source: S,
    ) -> Self {
        Self {
            events: EventTable::new(endian, events),
            endian,
            source,
            used,
            ids: FxHashMap::default(),
        }
    }

    /// Appends the mapping, with its build-id if one is found; drops it if its object is not used.
    fn rewrite_mapping(&mut self, raw: &RawRecord<'_>, record: &[u8], to: &mut Vec<u8>) {
        let (fields, _) = self.events.split(raw);
        let Some((mmap, has_id)) = mapping(raw, self.endian) else {
            return to.extend_from_slice(record);
        };
        let Some((name, kind)) = named_object(raw.misc, &mmap) else {
            // Memory without a file is dropped as well if no sample hit it; mappings of guests are kept.
            if raw.misc.cpu_mode() != CpuMode::User || self.is_used_memory(&mmap) {
                to.extend_from_slice(record);
            }
            return;
        };
        if !self.is_used_object(&name) {
            return;
        }
        let id = match has_id {
            true => None,
            false => self.id(&name, kind),
        };
        let Some(id) = id else {
            return to.extend_from_slice(record);
        };
        let trailer = raw.body.get(fields.len()..).unwrap_or_default();
        let new = Record::Mmap2(with_build_id(raw, mmap, &id, self.endian));
        let misc = Misc(raw.misc.0 | Misc::MMAP_BUILD_ID.0);
        RecordHeader::encode_record(RecordKind::MMAP2, misc, to, self.endian, |to| {
            new.encode_body(to);
            to.bytes(trailer);
        });
    }

    /// Whether the object of this name is used.
    fn is_used_object(&self, name: &str) -> bool {
        let Some(used) = &self.used else {
            return true;
        };
        // Both vdsos have the same name in mappings.
        used.contains(name) || name == "[vdso]" && used.contains("[vdso32]")
    }

    /// Whether memory without a file is used. The object of its code is the perf map of the process.
    fn is_used_memory(&self, mmap: &Mmap<'_>) -> bool {
        let Some(used) = &self.used else {
            return true;
        };
        let perf_map = perf_map_name(mmap.pid.cast_unsigned());
        used.contains(&*name_text(mmap.filename)) || used.contains(&perf_map)
    }

    fn id(&mut self, name: &str, kind: DsoKind) -> Option<BuildId> {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.source.find(ObjectName { name, kind });
        self.ids.insert(name.to_owned(), id);
        id
    }
}

/// The mapping with a build-id. An MMAP record has no protection and flags: they follow from whether it maps data.
fn with_build_id<'a>(
    raw: &RawRecord<'_>,
    mmap: Mmap<'a>,
    id: &BuildId,
    endian: Endian,
) -> Mmap2<'a> {
    let (prot, flags) = match Record::decode(raw, endian) {
        Ok(Record::Mmap2(mmap2)) => (mmap2.prot, mmap2.flags),
        _ if raw.misc.contains(Misc::MMAP_DATA) => (PROT_READ, MAP_PRIVATE),
        _ => (PROT_READ | PROT_EXEC, MAP_PRIVATE),
    };
    let entry = BuildIdEntry::of_host(USER, id.as_bytes(), String::new());
    Mmap2 {
        mmap,
        id: MmapId::BuildId {
            size: entry.size,
            bytes: entry.build_id,
        },
        prot,
        flags,
    }
}

impl<S: BuildIdSource> Transform for MappedBuildIds<S> {
    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, self.endian) {
            match raw.kind {
                RecordKind::MMAP | RecordKind::MMAP2 => self.rewrite_mapping(&raw, record, to),
                _ => to.extend_from_slice(record),
            }
        }
    }
}

/// The names of the objects that the instruction, data and callchain addresses of samples hit.
#[must_use]
pub fn used_objects(replay: &Replay<'_>, threads: std::num::NonZeroUsize) -> FxHashSet<String> {
    let used = replay.fold(threads, UsedObjects::default);
    let dsos = replay.world().dsos().iter().zip(&used.0);
    dsos.filter(|(_, is_used)| **is_used)
        .map(|(dso, _): (&Dso, _)| dso.long_name.clone())
        .collect()
}

/// Whether each object was hit, by [`DsoId`](rperf_replay::DsoId).
#[derive(Default)]
struct UsedObjects(Vec<bool>);

impl UsedObjects {
    fn hit(&mut self, world: &World, sample: &Sample<'_>, mode: CpuMode, address: u64) {
        let machine = Machine::of(mode, sample.pid);
        if let Some(mapping) = world.lookup(machine, mode, sample.pid, sample.order, address) {
            self.0.resize(world.dsos().len(), false);
            let dso = world.mapping(mapping).dso.0 as usize;
            if let Some(is_used) = self.0.get_mut(dso) {
                *is_used = true;
            }
        }
    }
}

impl Fold for UsedObjects {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let mode = sample.cpu_mode();
        for address in sample.wire.ip.into_iter().chain(sample.wire.addr) {
            self.hit(world, sample, mode, address);
        }
        let chain = sample.wire.callchain.iter();
        for (word, mode) in chain.flat_map(|chain| chain_entries(mode, chain)) {
            if let Some(mode) = mode {
                self.hit(world, sample, mode, word);
            }
        }
    }

    fn merge(&mut self, later: Self) {
        self.0.resize(self.0.len().max(later.0.len()), false);
        for (hit, other) in self.0.iter_mut().zip(later.0) {
            *hit |= other;
        }
    }
}
