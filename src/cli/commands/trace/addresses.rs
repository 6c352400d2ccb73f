//! Stacks and the addresses of page faults, as text.

use std::sync::{Mutex, PoisonError};

use rperf_analysis::trace::AddressNames;
use rperf_perfdata::Metadata;
use rperf_replay::{Sample, World};
use rperf_resolve::{
    AddressContext, CallFrame, Frame, Level, LoadedObjects, Resolver, StackOptions, StackScratch,
    UserStacks,
};
use rperf_symbol::SearchPaths;

use crate::cli::stack_folding::stack_options;
use crate::cli::symbols::own_vdso;
use rperf_input::DiskFiles;

/// Names addresses by the symbol tables of objects. An object is loaded when one of its addresses is to be named.
pub(super) struct AddressSymbolizer {
    /// Objects loaded so far; `None` while a resolver uses them, and from then on if it panics.
    loaded: Mutex<Option<LoadedObjects>>,
    stacks: StackOptions,
    max_stack: usize,
}

impl AddressSymbolizer {
    /// Creates a symbolizer for samples of `recording`, whose stacks are limited to `max_stack` frames.
    pub(super) fn new(
        world: &World,
        recording: Metadata<'_>,
        paths: SearchPaths,
        max_stack: usize,
    ) -> Self {
        let resolver = Resolver::new(world, &DiskFiles, paths).with_vdso(own_vdso());
        Self {
            loaded: Mutex::new(Some(resolver.into_loaded())),
            stacks: stack_options(recording, Some(max_stack)),
            max_stack,
        }
    }

    /// Calls `read` with a resolver and returns its result; `None` if an earlier use of the resolver panicked.
    fn with_resolver<R>(&self, world: &World, read: impl FnOnce(&Resolver<'_>) -> R) -> Option<R> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let resolver = Resolver::resume(world, &DiskFiles, loaded.take()?);
        let result = read(&resolver);
        *loaded = Some(resolver.into_loaded());
        Some(result)
    }
}

impl AddressNames for AddressSymbolizer {
    fn stack(&self, world: &World, sample: &Sample<'_>) -> Option<Vec<String>> {
        let recorded = sample.wire.callchain?;
        // The user frames are unwound from the copy of the user stack, if the sample has one.
        let has_stack_copy = sample.wire.stack_user.is_some();
        self.with_resolver(world, |resolver| {
            let stacks = UserStacks::new(resolver, self.stacks.clone());
            let mut scratch = StackScratch::default();
            let chain = stacks.chain(sample, &mut scratch).unwrap_or(recorded);
            let mut frames = Vec::new();
            let at = AddressContext::of(sample);
            resolver.callchain(at, chain, self.max_stack, &mut frames);
            let mut calls = Vec::new();
            for frame in &frames {
                // As in perf, only unwound stacks have inlined functions.
                match has_stack_copy {
                    true => resolver.expand(frame, &mut calls),
                    false => calls.push(CallFrame {
                        frame: *frame,
                        source_line: None,
                    }),
                }
            }
            let texts = calls.iter().map(|call| frame_text(resolver, &call.frame));
            texts.collect()
        })
    }

    fn fault(&self, world: &World, sample: &Sample<'_>) -> String {
        let text = self.with_resolver(world, |resolver| fault_text(resolver, sample));
        text.unwrap_or_default()
    }

    // Called after `world` was pruned: it no longer has the ended processes and the objects that only they mapped.
    fn forget_mappings(&self, world: &World) {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = loaded.as_mut() {
            loaded.discard_after_prune(world);
        }
    }
}

/// Returns `function (object)`, `function (inlined)`, or `[0x1] (object)` for an address without symbol. The name of an
/// unknown object is `[unknown]`.
fn frame_text(resolver: &Resolver<'_>, frame: &Frame) -> String {
    let object = frame.dso.map(|dso| &*resolver.world().dso(dso).name);
    let object = object.unwrap_or("[unknown]");
    match frame.symbol {
        Some(symbol) if resolver.is_inlined(symbol) => {
            format!("{} (inlined)", resolver.symbol_name(symbol))
        }
        Some(symbol) => format!("{} ({object})", resolver.symbol_name(symbol)),
        // As C's `%#lx`, which has no prefix for 0.
        None if frame.address == 0 => format!("[0] ({object})"),
        None => format!("[{:#x}] ({object})", frame.address),
    }
}

/// Returns `[function+0x1] => object@0x23 (d.)`: the code, the memory (`?` if its address is not recorded), `d` if the memory is
/// mapped, otherwise `?` and no `object@`, and the letter of the code's level as in `report` (`.` is user).
fn fault_text(resolver: &Resolver<'_>, sample: &Sample<'_>) -> String {
    let mode = sample.misc.cpu_mode();
    let at = AddressContext::of(sample);
    let code = resolver.locate(at, mode, sample.wire.ip.unwrap_or_default());
    let code = match code.symbol {
        Some(symbol) => {
            let start = resolver.symbol(symbol).map_or(0, |symbol| symbol.start);
            let offset = code.address.wrapping_sub(start);
            format!("{}+{offset:#x}", resolver.symbol_name(symbol))
        }
        None => format!("{:#x}", code.address),
    };
    let level = Level::from(mode).letter();
    // The recording has no data addresses.
    let Some(data) = sample.wire.addr else {
        return format!("[{code}] => ? (?{level})");
    };
    let data = resolver.locate(at, mode, data);
    let (object, kind) = match data.dso.filter(|_| data.mapping.is_some()) {
        Some(dso) => (format!("{}@", resolver.world().dso(dso).name), 'd'),
        None => (String::new(), '?'),
    };
    format!("[{code}] => {object}{:#x} ({kind}{level})", data.address)
}
