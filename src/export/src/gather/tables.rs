//! Creates a [`Profile`] from gathered samples: resolves ids to names.

use rperf_replay::{Dso, DsoId, DsoKind, Order, World};
use rperf_resolve::{Level, Resolver};
use rustc_hash::FxHashMap;

use super::code::FrameKey;
use super::{GatheredProfile, TrackKey};
use crate::profile::{
    CodeKind, Process, Profile, ProfileFrame, ProfileFunction, ProfileLocation, ProfileObject,
    ProfileSample, Thread, Track,
};

/// Creates the profile with the names of the gathered ids.
pub(super) fn finish(gathered: GatheredProfile<'_, '_>) -> Profile {
    let resolver = gathered.code.resolver;
    let mut tables = Tables {
        resolver,
        world: resolver.world(),
        objects: FxHashMap::default(),
        functions: FxHashMap::default(),
        profile: Profile::default(),
    };
    let events = gathered.conversion.events.iter();
    tables.profile.events = events.map(|known| known.event.clone()).collect();
    let files = gathered.code.files.items().iter();
    tables.profile.files = files.map(|path| (*path).to_owned()).collect();
    for frame in gathered.code.frames.items() {
        let frame = tables.frame(frame);
        tables.profile.frames.push(frame);
    }
    tables.profile.stacks = gathered.stacks.items().to_vec();
    tables.add_tracks(gathered.rows);
    tables.profile
}

/// A profile being created.
struct Tables<'r, 'w> {
    resolver: &'r Resolver<'w>,
    /// The DSOs, and the names of threads.
    world: &'w World,
    /// Indices in [`Profile::objects`].
    objects: FxHashMap<DsoId, u32>,
    /// Indices in [`Profile::functions`], by object, type of code and name.
    functions: FxHashMap<(Option<u32>, CodeKind, String), u32>,
    profile: Profile,
}

impl Tables<'_, '_> {
    fn frame(&mut self, key: &FrameKey) -> ProfileFrame {
        ProfileFrame {
            function: self.function(key),
            address: key.address,
            inline_depth: key.inline_depth,
            place: key
                .location
                .map(|(file, line)| ProfileLocation { file, line }),
        }
    }

    /// Returns the index of the function of a frame; adds the function if it is new.
    fn function(&mut self, key: &FrameKey) -> u32 {
        let dso = key.dso.map(|id| self.world.dso(id));
        let object = key.dso.map(|id| self.object(id));
        let kind = kind(key.level, dso);
        let name = match (key.symbol, dso) {
            (Some(symbol), _) => self.resolver.symbol_name(symbol).to_owned(),
            // The short names of the kernel, its modules and most DSOs without a file are already in brackets.
            (None, Some(dso)) if dso.short_name.starts_with('[') => dso.short_name.clone(),
            (None, Some(dso)) => format!("[{}]", dso.short_name),
            (None, None) => "[unknown]".to_owned(),
        };
        let functions = &mut self.profile.functions;
        let index = u32::try_from(functions.len()).unwrap_or(u32::MAX);
        *self
            .functions
            .entry((object, kind, name))
            .or_insert_with_key(|(object, kind, name)| {
                // The symbol of an inlined function has the range of the enclosing function.
                let symbol = key
                    .symbol
                    .filter(|symbol| !self.resolver.is_inlined(*symbol));
                let symbol = symbol.and_then(|symbol| self.resolver.symbol(symbol));
                functions.push(ProfileFunction {
                    name: name.clone(),
                    object: *object,
                    kind: *kind,
                    range: symbol
                        .map(|symbol| (symbol.start, symbol.end.saturating_sub(symbol.start))),
                });
                index
            })
    }

    /// Returns the index of an object; adds the object if it is new.
    fn object(&mut self, id: DsoId) -> u32 {
        let dso = self.world.dso(id);
        let objects = &mut self.profile.objects;
        *self.objects.entry(id).or_insert_with(|| {
            objects.push(ProfileObject {
                name: dso.short_name.clone(),
                path: dso.long_name.clone(),
                build_id: dso.build_id.clone(),
            });
            u32::try_from(objects.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Adds processes, threads and tracks, sorted by process id, thread id, name of the thread, and event. `rows` has the samples
    /// of each track, which are sorted by time here.
    fn add_tracks(&mut self, rows: Vec<(TrackKey, Vec<ProfileSample>)>) {
        let tracks = rows.into_iter().map(|(key, mut samples)| {
            // Stable: samples with equal times stay in file order.
            samples.sort_by_key(|sample| sample.time);
            let thread = Thread {
                pid: key.pid,
                tid: key.tid,
                name: self.world.comm(key.comm).to_owned(),
            };
            (thread, key.event.0, samples)
        });
        let mut tracks: Vec<(Thread, u32, Vec<ProfileSample>)> = tracks.collect();
        tracks.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        for (thread, event, samples) in tracks {
            let processes = &mut self.profile.processes;
            if processes.last().map(|process| process.pid) != Some(thread.pid) {
                // The last name of the process in the whole recording.
                let name = self.world.comm_last(thread.pid, Order::MAX);
                processes.push(Process {
                    pid: thread.pid,
                    name: self.world.comm(name).to_owned(),
                });
            }
            let threads = &mut self.profile.threads;
            if threads.last() != Some(&thread) {
                threads.push(thread);
            }
            self.profile.tracks.push(Track {
                thread: u32::try_from(threads.len() - 1).unwrap_or(u32::MAX),
                event,
                samples,
            });
        }
    }
}

fn kind(level: Level, dso: Option<&Dso>) -> CodeKind {
    match (level, dso.map(|dso| dso.kind)) {
        // `CodeKind::User` also means unknown code, even at a kernel address.
        (_, None) => CodeKind::User,
        (Level::Kernel | Level::GuestKernel, _) => CodeKind::Kernel,
        (_, Some(DsoKind::PerfMap(_))) => CodeKind::Jit,
        _ => CodeKind::User,
    }
}
