//! The data that resolvers of a growing World (the processes, mappings and DSOs of a recording, by time) reuse: a live command
//! creates a new resolver when the World has grown.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rperf_replay::{DsoId, DsoKind, Machine, MappingId, World};
use rperf_symbol::{Budget, FileBytes, SearchPaths};
use rperf_unwind::{FrameInfo, TruncationCause};

use crate::code::CodeSource;
use crate::object::LoadedObject;

/// Loaded data of a resolver, which another resolver can reuse when the World has grown.
pub struct LoadedObjects {
    pub(crate) paths: SearchPaths,
    /// The image of the running kernel's 64-bit vdso, if given.
    pub(crate) vdso: Option<FileBytes>,
    /// Markers of truncated stacks, if enabled: an object that is not in the World, whose symbols are the causes of truncation.
    pub(crate) markers: Option<Box<LoadedObject>>,
    /// Memory limit of debug information.
    pub(crate) budget: Arc<Budget>,
    /// The mapping of the host kernel, the last one if there are several.
    pub(crate) kernel: Option<MappingId>,
    /// Number of mappings of the World among which `kernel` was searched; later ones are new.
    pub(crate) mapping_count: usize,
    /// By [`DsoId`]: an object is what was loaded for a DSO.
    pub(crate) objects: Vec<OnceLock<LoadedObject>>,
    /// By [`DsoId`]: frame information, or the reason why there is none.
    pub(crate) frame_info: Vec<OnceLock<Result<FrameInfo, TruncationCause>>>,
    /// By [`DsoId`]: source of the code; `None` in a slot if there is none.
    pub(crate) code: Vec<OnceLock<Option<CodeSource>>>,
    /// For each JIT function used so far, the object that it belongs to. In unwinding, the function at index N has the module id
    /// `FIRST_JIT | N`.
    pub(crate) jit: Mutex<Vec<DsoId>>,
}

impl LoadedObjects {
    /// No objects, to be loaded from `paths`.
    pub(crate) fn new(paths: SearchPaths) -> Self {
        Self {
            paths,
            vdso: None,
            markers: None,
            budget: Budget::new(Budget::DEFAULT_BYTES),
            kernel: None,
            mapping_count: 0,
            objects: Vec::new(),
            frame_info: Vec::new(),
            code: Vec::new(),
            jit: Mutex::default(),
        }
    }

    /// To be called after the World was pruned: discards the id of the kernel's mapping, the data of objects that were
    /// removed from the World, and all JIT functions. Each [`StackScratch`](crate::StackScratch) used so far must be replaced by
    /// the caller: its results are cached by the ids of objects, and new objects reuse the ids of removed ones.
    pub fn discard_after_prune(&mut self, world: &World) {
        (self.kernel, self.mapping_count) = (None, 0);
        for dso in world.removed_dsos() {
            let index = dso.0 as usize;
            self.objects.get_mut(index).map(OnceLock::take);
            self.frame_info.get_mut(index).map(OnceLock::take);
            self.code.get_mut(index).map(OnceLock::take);
        }
        // Objects contain the numbers of their JIT functions, which are reassigned from now on.
        for object in &mut self.objects {
            if object.get().is_some_and(|object| object.jit.is_some()) {
                object.take();
            }
        }
        let jit = self.jit.get_mut();
        jit.unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Discards the symbols of JIT-compiled code (from `perf-PID.map` or a JIT dump), so that they are loaded again: runtimes add
    /// functions over time. Symbol ids of JIT-compiled functions become invalid.
    pub fn discard_jit_code(&mut self, world: &World) {
        for (dso, object) in world.dsos().iter().zip(&mut self.objects) {
            if matches!(dso.kind, DsoKind::PerfMap(_)) {
                object.take();
            }
        }
    }

    /// Adds slots for all DSOs of `world`, and searches its new mappings for that of the host kernel; of several, the last is
    /// used.
    pub(crate) fn with_objects_of(mut self, world: &World) -> Self {
        let is_kernel = |dso: DsoId| {
            let dso = world.dso(dso);
            dso.kind == DsoKind::Kernel && dso.machine == Machine::Host
        };
        let mappings = world.mappings();
        let new = mappings.get(self.mapping_count..).unwrap_or_default();
        if let Some(index) = new.iter().rposition(|mapping| is_kernel(mapping.dso)) {
            let index = u32::try_from(self.mapping_count + index);
            self.kernel = index.ok().map(MappingId).or(self.kernel);
        }
        self.mapping_count = mappings.len();
        let dso_count = world.dsos().len();
        self.objects.resize_with(dso_count, OnceLock::new);
        self.frame_info.resize_with(dso_count, OnceLock::new);
        self.code.resize_with(dso_count, OnceLock::new);
        self
    }
}
