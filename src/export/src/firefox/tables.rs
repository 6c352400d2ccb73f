//! The tables of one thread: the entries of the profile's tables used by its samples, renumbered.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::meta::category;
use crate::intern::Interner;
use crate::profile::{CodeKind, Profile, ProfileFrame, ProfileFunction};

/// The tables of a thread, which are filled while its stacks are added.
pub(super) struct Tables<'p> {
    profile: &'p Profile,
    strings: Interner<&'p str>,
    /// This map and the following ones convert indices in the profile to indices in the thread's tables. Symbols are found by the
    /// index of their function, and resources by that of their object.
    stacks: FxHashMap<u32, usize>,
    frames: FxHashMap<u32, usize>,
    functions: FxHashMap<u32, usize>,
    symbols: FxHashMap<u32, usize>,
    resources: FxHashMap<u32, usize>,
    pub(super) stack_table: StackTable,
    pub(super) frame_table: FrameTable,
    pub(super) func_table: FuncTable,
    pub(super) native_symbols: NativeSymbols,
    pub(super) resource_table: ResourceTable,
}

#[derive(Default, Serialize)]
pub(super) struct StackTable {
    length: usize,
    frame: Vec<usize>,
    prefix: Vec<Option<usize>>,
    category: Vec<usize>,
    subcategory: Vec<u8>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameTable {
    length: usize,
    address: Vec<u64>,
    inline_depth: Vec<u32>,
    category: Vec<usize>,
    subcategory: Vec<u8>,
    func: Vec<usize>,
    native_symbol: Vec<Option<usize>>,
    #[serde(rename = "innerWindowID")]
    inner_window_id: Vec<u8>,
    implementation: Vec<Option<()>>,
    line: Vec<Option<u32>>,
    column: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FuncTable {
    length: usize,
    name: Vec<u32>,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: Vec<bool>,
    /// -1 for functions without a resource.
    resource: Vec<i64>,
    file_name: Vec<Option<u32>>,
    line_number: Vec<Option<u32>>,
    column_number: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NativeSymbols {
    length: usize,
    address: Vec<u64>,
    function_size: Vec<u64>,
    /// Indices of objects in the profile: the list of libraries belongs to the whole file, so they are not renumbered.
    lib_index: Vec<u32>,
    name: Vec<u32>,
}

#[derive(Default, Serialize)]
pub(super) struct ResourceTable {
    length: usize,
    /// As [`NativeSymbols::lib_index`].
    lib: Vec<u32>,
    name: Vec<u32>,
    host: Vec<Option<u32>>,
    /// 1 for libraries.
    #[serde(rename = "type")]
    kind: Vec<u8>,
}

impl<'p> Tables<'p> {
    pub(super) fn new(profile: &'p Profile) -> Self {
        Self {
            profile,
            strings: Interner::default(),
            stacks: FxHashMap::default(),
            frames: FxHashMap::default(),
            functions: FxHashMap::default(),
            symbols: FxHashMap::default(),
            resources: FxHashMap::default(),
            stack_table: StackTable::default(),
            frame_table: FrameTable::default(),
            func_table: FuncTable::default(),
            native_symbols: NativeSymbols::default(),
            resource_table: ResourceTable::default(),
        }
    }

    /// The strings by index.
    pub(super) fn strings(&self) -> &[&'p str] {
        self.strings.items()
    }

    /// The index of a string.
    pub(super) fn string(&mut self, text: &'p str) -> u32 {
        self.strings.number(text)
    }

    /// The index of a stack, which is added with its callers if necessary; `None` if the profile lacks the stack, or a
    /// stack, frame or function that it refers to.
    pub(super) fn stack(&mut self, stack: u32) -> Option<usize> {
        if let Some(known) = self.stacks.get(&stack) {
            return Some(*known);
        }
        // Collects the stack and those of its callers that are to be added, innermost first. A loop, not a recursion, since
        // stacks may be deep.
        let mut missing = Vec::new();
        let mut next = Some(stack);
        let mut prefix = None;
        while let Some(number) = next {
            prefix = self.stacks.get(&number).copied();
            if prefix.is_some() {
                break;
            }
            missing.push(number);
            next = self.profile.stacks.get(number as usize)?.caller;
        }
        for number in missing.into_iter().rev() {
            let frame = self.profile.stacks.get(number as usize)?.frame;
            prefix = Some(self.add_stack(number, frame, prefix)?);
        }
        prefix
    }

    fn add_stack(&mut self, number: u32, frame: u32, prefix: Option<usize>) -> Option<usize> {
        let outer = prefix.and_then(|prefix| self.stack_table.frame.get(prefix).copied());
        let frame = self.frame(frame, outer)?;
        let table = &mut self.stack_table;
        let at = table.length;
        table.length += 1;
        table.frame.push(frame);
        table.prefix.push(prefix);
        let category = self.frame_table.category.get(frame);
        table.category.push(category.copied().unwrap_or_default());
        table.subcategory.push(0);
        self.stacks.insert(number, at);
        Some(at)
    }

    /// The index of a frame, which is added if necessary. `outer` is the index of its caller's frame in the thread's table.
    fn frame(&mut self, number: u32, outer: Option<usize>) -> Option<usize> {
        if let Some(known) = self.frames.get(&number) {
            return Some(*known);
        }
        let profile = self.profile;
        let frame: &ProfileFrame = profile.frames.get(number as usize)?;
        let function = profile.functions.get(frame.function as usize)?;
        let func = self.function(frame, function);
        // Inlined functions belong to the enclosing symbol: that of the caller's frame, which is at the same address.
        let symbol = match frame.inline_depth {
            0 => self.symbol(frame.function, function),
            _ => outer.and_then(|outer| *self.frame_table.native_symbol.get(outer)?),
        };
        let table = &mut self.frame_table;
        let at = table.length;
        table.length += 1;
        table.address.push(frame.address);
        table.inline_depth.push(frame.inline_depth);
        table.category.push(category(function.kind));
        table.subcategory.push(0);
        table.func.push(func);
        table.native_symbol.push(symbol);
        table.inner_window_id.push(0);
        table.implementation.push(None);
        table.line.push(frame.place.map(|place| place.line));
        table.column.push(None);
        self.frames.insert(number, at);
        Some(at)
    }

    /// The index of the function of `frame`, which is added if necessary, with the source file of `frame`.
    fn function(&mut self, frame: &ProfileFrame, function: &'p ProfileFunction) -> usize {
        if let Some(known) = self.functions.get(&frame.function) {
            return *known;
        }
        let resource = function.object.and_then(|object| self.resource(object));
        let name = self.strings.number(&function.name);
        let file = frame
            .place
            .and_then(|place| self.profile.files.get(place.file as usize));
        let file = file.map(|path| self.strings.number(path));
        let table = &mut self.func_table;
        let at = table.length;
        table.length += 1;
        table.name.push(name);
        table.is_js.push(false);
        table.relevant_for_js.push(false);
        table
            .resource
            .push(resource.map_or(-1, |resource| resource as i64));
        table.file_name.push(file);
        table.line_number.push(None);
        table.column_number.push(None);
        self.functions.insert(frame.function, at);
        at
    }

    /// The index of the symbol of a function, which is added if necessary; `None` for JIT-compiled code, and for functions
    /// without a range or an object.
    fn symbol(&mut self, number: u32, function: &'p ProfileFunction) -> Option<usize> {
        if let Some(known) = self.symbols.get(&number) {
            return Some(*known);
        }
        let (start, size) = function.range?;
        let lib = function.object.filter(|_| function.kind != CodeKind::Jit)?;
        let name = self.strings.number(&function.name);
        let table = &mut self.native_symbols;
        let at = table.length;
        table.length += 1;
        table.address.push(start);
        table.function_size.push(size);
        table.lib_index.push(lib);
        table.name.push(name);
        self.symbols.insert(number, at);
        Some(at)
    }

    fn resource(&mut self, object: u32) -> Option<usize> {
        if let Some(known) = self.resources.get(&object) {
            return Some(*known);
        }
        let name = &self.profile.objects.get(object as usize)?.name;
        let name = self.strings.number(name);
        let table = &mut self.resource_table;
        let at = table.length;
        table.length += 1;
        table.lib.push(object);
        table.name.push(name);
        table.host.push(None);
        table.kind.push(1);
        self.resources.insert(object, at);
        Some(at)
    }
}
