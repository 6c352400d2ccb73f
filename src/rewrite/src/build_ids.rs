//! Adds build-ids of mapped files to a recording, as records or in its mappings.

use std::path::Path;

use rperf_perfdata::feature::BuildIdEntry;
use rperf_perfdata::{EventDesc, FeatureSet};
use rperf_replay::{
    Dso, DsoKind, DsoName, Epoch, EventTable, Fold, LiveWorld, Machine, RecordedName, Replay,
    Sample, World, kernel_object,
};
use rperf_symbol::BuildId;
use rperf_wire::{
    CpuMode, Endian, MAP_PRIVATE, Misc, Mmap, Mmap2, MmapId, PROT_EXEC, PROT_READ, RawRecord,
    Record, RecordHeader, RecordKind, name_text,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::context_mode::{chain_entries, mode_of_address};
use crate::pipeline::Transform;

/// An object of the host whose build-id is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectName<'a> {
    /// Its path, or a name such as `[kernel.kallsyms]`.
    pub name: &'a str,
    /// Its type.
    pub kind: DsoKind,
}

impl<'a> ObjectName<'a> {
    fn of(named: &'a DsoName) -> Self {
        Self {
            name: &named.name,
            kind: named.kind,
        }
    }

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

/// The objects whose build-ids are looked up, except those whose build-ids are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedObjects {
    /// Objects of the host that the instruction pointers and callchains of samples hit; the HEADER_BUILD_ID record of an object
    /// is inserted before the first sample that hits it.
    Hit,
    /// All mapped objects of the host; the HEADER_BUILD_ID record of an object is inserted before its first mapping.
    Mapped,
}

/// Inserts a HEADER_BUILD_ID record for each object whose build-id is found.
pub struct BuildIdInjector<S> {
    /// The World (the processes and mappings at a time) of the records passed to `note`; finds the mappings that samples hit.
    live: LiveWorld,
    endian: Endian,
    objects: InjectedObjects,
    source: S,
    /// Names of objects that need no further lookup.
    known: FxHashSet<String>,
    /// The build-ids in the inserted records.
    entries: Vec<BuildIdEntry>,
    /// For each page that was looked up: the state of the mappings ([`Epoch::of_mode`]) and the number of the page.
    pages: FxHashSet<(u64, u64)>,
    /// The number of bytes of records before the current one. Orders samples of the same time.
    position: u64,
}

/// An address of a sample, with the state of the mappings of the sample's process on the host.
#[derive(Clone, Copy)]
struct HitAddress {
    epoch: Epoch,
    mode: CpuMode,
    address: u64,
}

/// Maximum number of pages remembered.
const MAX_PAGES: usize = 1 << 16;

impl<S: BuildIdSource> BuildIdInjector<S> {
    /// Creates an injector for a recording with these events; `recorded` are the build-ids in the metadata of the recording.
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
            position: 0,
        }
    }

    /// Appends the HEADER_BUILD_ID records of the objects that a sample hits.
    fn add_sample(&mut self, raw: &RawRecord<'_>, position: u64, to: &mut Vec<u8>) {
        let Ok(Some(sample)) = self.live.sample(raw, position) else {
            return;
        };
        let mode = sample.cpu_mode();
        let world = self.live.world();
        // `add_address` ignores addresses of guests.
        let host = Machine::Host;
        let mut hit = HitAddress {
            epoch: world.epoch(host, sample.pid, sample.order),
            mode,
            // Replaced by each address.
            address: 0,
        };
        if let Some(address) = sample.wire.ip {
            self.add_address(&sample, HitAddress { address, ..hit }, to);
        }
        let chain = sample.wire.callchain.iter();
        for (address, mode) in chain.flat_map(chain_entries) {
            // Entries without a mode are no addresses, but context markers and cookies.
            if let Some(mode) = mode {
                (hit.mode, hit.address) = (mode, address);
                self.add_address(&sample, hit, to);
            }
        }
    }

    fn add_address(&mut self, sample: &Sample<'_>, hit: HitAddress, to: &mut Vec<u8>) {
        const PAGE_BITS: u32 = 12;
        let HitAddress {
            epoch,
            mode,
            address,
        } = hit;
        let machine = Machine::of(mode, sample.pid);
        if machine != Machine::Host {
            return;
        }
        if self.pages.len() >= MAX_PAGES {
            self.pages.clear();
        }
        if !self
            .pages
            .insert((epoch.of_mode(mode), address >> PAGE_BITS))
        {
            return;
        }
        let world = self.live.world();
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
            // Nothing to insert: the recording has the build-id, in the record of a mapping.
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

    /// Appends the HEADER_BUILD_ID record of a mapping's object, unless the mapping has a build-id or the object is known.
    fn add_mapping(&mut self, raw: &RawRecord<'_>, to: &mut Vec<u8>) {
        let mapping = RecordedMapping::decode(raw, self.endian).filter(|mapping| !mapping.has_id);
        let Some(named) = mapping.and_then(|mapping| mapping.object(raw.misc)) else {
            return;
        };
        let object = ObjectName::of(&named);
        if mode_of(object).is_none() || !self.known.insert(named.name.clone()) {
            return;
        }
        let entry = entry(&mut self.source, object);
        self.add(entry, to);
    }
}

/// The mode of the mappings of an object of the host, if the object can have a build-id; `None` for memory without a file, names
/// of files that are not a path, and BPF programs.
fn mode_of(object: ObjectName<'_>) -> Option<Misc> {
    match object.kind {
        DsoKind::Kernel | DsoKind::KernelModule => Some(Misc::KERNEL),
        DsoKind::User if object.name.starts_with('/') => Some(Misc::USER),
        DsoKind::Vdso | DsoKind::Vdso32 => Some(Misc::USER),
        _ => None,
    }
}

/// The build-id of an object of the host; `None` if it cannot have one, or it is not found.
fn entry(source: &mut impl BuildIdSource, object: ObjectName<'_>) -> Option<BuildIdEntry> {
    let misc = mode_of(object)?;
    let id = source.find(object)?;
    Some(BuildIdEntry::of_host(
        misc,
        id.as_bytes(),
        object.name.to_owned(),
    ))
}

/// A mapping, from an MMAP or MMAP2 record.
struct RecordedMapping<'a> {
    mmap: Mmap<'a>,
    prot: u32,
    flags: u32,
    /// Whether the record has a build-id.
    has_id: bool,
}

impl<'a> RecordedMapping<'a> {
    fn decode(raw: &RawRecord<'a>, endian: Endian) -> Option<Self> {
        match Record::decode(raw, endian).ok()? {
            // MMAP records have neither protection nor flags. The mapping is taken as private, and as executable unless the
            // record is marked as one of data.
            Record::Mmap(mmap) => Some(Self {
                mmap,
                prot: match raw.misc.contains(Misc::MMAP_DATA) {
                    true => PROT_READ,
                    false => PROT_READ | PROT_EXEC,
                },
                flags: MAP_PRIVATE,
                has_id: false,
            }),
            Record::Mmap2(mmap2) => Some(Self {
                mmap: mmap2.mmap,
                prot: mmap2.prot,
                flags: mmap2.flags,
                has_id: matches!(mmap2.id, MmapId::BuildId { .. }),
            }),
            _ => None,
        }
    }

    /// The object of the mapping, with the name that it has in the World; `None` if there is none, and for guests.
    fn object(&self, misc: Misc) -> Option<DsoName> {
        let filename = name_text(self.mmap.filename);
        let filename = &*filename;
        match misc.cpu_mode() {
            CpuMode::Kernel => kernel_object(filename),
            CpuMode::User => Some(
                RecordedName {
                    filename,
                    end: self.mmap.start.saturating_add(self.mmap.len),
                    prot: self.prot,
                    flags: self.flags,
                    pid: self.mmap.pid.cast_unsigned(),
                }
                .interpret(),
            ),
            _ => None,
        }
    }
}

impl<S: BuildIdSource> Transform for BuildIdInjector<S> {
    fn is_ordered(&self) -> bool {
        self.objects == InjectedObjects::Hit
    }

    // Only called if `is_ordered`: for `Hit`.
    fn note(&mut self, records: &[u8]) {
        self.live.add(records);
    }

    fn note_end(&mut self) {
        self.live.apply_all();
    }

    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        // Before the samples are looked up: adds the noted mappings that precede them to the World. `Mapped` looks up no samples.
        if self.objects == InjectedObjects::Hit {
            self.live.apply_complete();
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
        // The body without its `sample_id` trailer.
        let (fields, _) = self.events.split(raw);
        let Some(mapping) = RecordedMapping::decode(raw, self.endian) else {
            return to.extend_from_slice(record);
        };
        let Some(named) = mapping.object(raw.misc) else {
            return to.extend_from_slice(record);
        };
        // Memory without a file is dropped as well if no sample hit it.
        if self
            .used
            .as_ref()
            .is_some_and(|used| !used.contains(&named.name))
        {
            return;
        }
        let id = match mapping.has_id {
            true => None,
            false => self.id(ObjectName::of(&named)),
        };
        let Some(id) = id else {
            return to.extend_from_slice(record);
        };
        let trailer = raw.body.get(fields.len()..).unwrap_or_default();
        let new = Record::Mmap2(with_build_id(mapping, &id));
        let misc = Misc(raw.misc.0 | Misc::MMAP_BUILD_ID.0);
        RecordHeader::encode_record(RecordKind::MMAP2, misc, to, self.endian, |to| {
            new.encode_body(to);
            to.bytes(trailer);
        });
    }

    /// The build-id of an object of the host; `None` if it cannot have one, or it is not found.
    fn id(&mut self, object: ObjectName<'_>) -> Option<BuildId> {
        mode_of(object)?;
        if let Some(id) = self.ids.get(object.name) {
            return *id;
        }
        let id = self.source.find(object);
        self.ids.insert(object.name.to_owned(), id);
        id
    }
}

/// The mapping with a build-id.
fn with_build_id<'a>(mapping: RecordedMapping<'a>, id: &BuildId) -> Mmap2<'a> {
    // Only for the size and the padded bytes of the build-id; mode and name are not used.
    let entry = BuildIdEntry::of_host(Misc::USER, id.as_bytes(), String::new());
    Mmap2 {
        mmap: mapping.mmap,
        id: MmapId::BuildId {
            size: entry.size,
            bytes: entry.build_id,
        },
        prot: mapping.prot,
        flags: mapping.flags,
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
        if let Some(address) = sample.wire.ip {
            self.hit(world, sample, sample.cpu_mode(), address);
        }
        if let Some(address) = sample.wire.addr {
            let mode = mode_of_address(sample.cpu_mode(), address);
            self.hit(world, sample, mode, address);
        }
        let chain = sample.wire.callchain.iter();
        // As in `add_sample`: words without a mode are no addresses.
        for (word, mode) in chain.flat_map(chain_entries) {
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

#[cfg(test)]
mod tests;
