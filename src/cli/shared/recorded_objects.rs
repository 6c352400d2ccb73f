//! The objects of a recording.

use std::num::NonZeroUsize;

use rperf_perfdata::PerfData;
use rperf_replay::{Dso, DsoId, DsoKind, Fold, Machine, Replay, Sample, World};
use rperf_symbol::BuildId;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::findings::conclude;
use crate::cli::input::Input;

/// An object of a recording.
pub(crate) struct RecordedObject {
    pub(crate) machine: Machine,
    /// The path, or a name such as `[kernel.kallsyms]`.
    pub(crate) name: String,
    /// Its build-id, if recorded.
    pub(crate) id: Option<BuildId>,
}

/// The objects of a recording.
pub(crate) struct Objects {
    pub(crate) rows: Vec<RecordedObject>,
    /// The error if not all records could be read, reported after the objects are used.
    pub(crate) damage: Result<(), CliError>,
}

/// Returns the objects that samples hit.
pub(crate) fn hit_objects(
    input: &Input,
    data: &PerfData<'_>,
    context: &Context,
) -> Result<Objects, CliError> {
    let hits_only = true;
    objects(input, data, hits_only, context)
}

/// Returns the mapped objects, or only those that samples hit if `hits_only` is set. Objects without a file, such as JIT code
/// and BPF programs, are omitted.
///
/// # Errors
///
/// The recording cannot be replayed.
pub(crate) fn objects(
    input: &Input,
    data: &PerfData<'_>,
    hits_only: bool,
    context: &Context,
) -> Result<Objects, CliError> {
    let replay = Replay::open(data)?;
    let hits = match hits_only {
        true => Some(hits(&replay)),
        false => None,
    };
    let is_listed = |(id, dso): &(DsoId, &Dso)| {
        let is_selected = hits.as_ref().is_none_or(|hits| hits.has(*id));
        let is_fileless = matches!(
            dso.kind,
            DsoKind::Memory | DsoKind::PerfMap(_) | DsoKind::Bpf
        );
        is_selected && !is_fileless && &*dso.long_name != UPROBES
    };
    let objects = (0..)
        .map(DsoId)
        .zip(replay.world().dsos())
        .filter(is_listed);
    let mut rows: Vec<RecordedObject> = objects
        .map(|(_, dso)| RecordedObject {
            machine: dso.machine,
            name: dso.long_name.clone(),
            id: dso.build_id.as_deref().and_then(BuildId::from_bytes),
        })
        .collect();
    rows.sort_by_key(|row| row.machine);
    Ok(Objects {
        rows,
        damage: conclude(
            &input.path,
            data.is_truncated(),
            &replay.diagnostics(),
            context,
        ),
    })
}

/// The page in which the kernel executes copies of instructions that uprobes replaced (`xol_add_vma`, kernel/events/uprobes.c).
const UPROBES: &str = "[uprobes]";

/// For each object, by [`DsoId`], whether it contains the address of a sample; callchains are ignored.
#[derive(Default)]
struct SampledObjects(Vec<bool>);

impl SampledObjects {
    fn has(&self, dso: DsoId) -> bool {
        self.0.get(dso.0 as usize) == Some(&true)
    }
}

impl Fold for SampledObjects {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let address = sample.wire.ip.unwrap_or_default();
        let (machine, mode) = (sample.machine(), sample.cpu_mode());
        let Some(mapping) = world.lookup(machine, mode, sample.pid, sample.order, address) else {
            return;
        };
        // The World (the processes and mappings by time) has all objects before the first sample, so only the first hit resizes.
        self.0.resize(world.dsos().len(), false);
        if let Some(hit) = self.0.get_mut(world.mapping(mapping).dso.0 as usize) {
            *hit = true;
        }
    }

    fn merge(&mut self, later: Self) {
        // The list of a part of the recording without hits is empty.
        self.0.resize(self.0.len().max(later.0.len()), false);
        for (hit, other) in self.0.iter_mut().zip(later.0) {
            *hit |= other;
        }
    }
}

fn hits(replay: &Replay<'_>) -> SampledObjects {
    let threads = NonZeroUsize::new(rperf_sys::parallelism()).unwrap_or(NonZeroUsize::MIN);
    replay.fold(threads, SampledObjects::default)
}
