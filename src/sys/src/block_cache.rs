//! Keeps freed blocks of memory for the next request of their size, for builds with musl.
//!
//! The allocator of musl takes one lock for each request, and maps and unmaps each block of about 128 KiB or more, whose
//! memory the kernel fills with zeros each time. Here, blocks up to 32 KiB are kept by the thread that freed them, without a
//! lock. Lists shared by all threads keep larger blocks up to 1 MiB, and blocks above 4 KiB that a thread has too many
//! of: if one thread allocates the blocks of a file and others free them, the first thread gets them back.
//!
//! Sizes are rounded up to [size classes](class), so that a block serves all requests of its class. Blocks have no
//! header: a request to free a block contains the block's size ([`Layout`]).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Largest alignment of blocks that are kept, in bytes: that of malloc(3).
const ALIGNMENT: usize = 16;
/// Number of classes up to 128 bytes: one for each multiple of 16.
const FINE: usize = 8;
/// Number of classes between two powers of two, above 128 bytes.
const STEPS: usize = 4;
/// Number of classes whose blocks are kept by threads, but not shared: up to 4 KiB.
const UNSHARED: usize = FINE + 5 * STEPS;
/// Number of classes whose blocks are kept by threads: up to 32 KiB.
const SMALL: usize = UNSHARED + 3 * STEPS;
/// Number of classes: up to 1 MiB.
const CLASSES: usize = SMALL + 5 * STEPS;
/// Maximum number of bytes of each class that a thread keeps.
const KEPT_BY_THREAD: usize = 64 << 10;
/// Maximum number of bytes of shared blocks that are kept.
const KEPT_BY_ALL: usize = 8 << 20;

/// An allocator that reuses freed blocks, and requests others from `System`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockCache;

/// The first bytes of a block that is kept.
struct Kept {
    next: *mut Kept,
}

/// A list of kept blocks of one class.
#[derive(Clone, Copy)]
struct Blocks {
    first: *mut Kept,
    count: usize,
}

/// Blocks kept for all threads, of the classes from `UNSHARED` on.
struct SharedBlocks {
    classes: [Blocks; CLASSES - UNSHARED],
    /// The sum of the sizes of all blocks in `classes`.
    bytes: usize,
}

// SAFETY: no thread uses a block while it is kept; afterwards, any thread may use it.
unsafe impl Send for SharedBlocks {}

/// Whether a thread keeps blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has not requested or freed a block yet.
    New,
    /// It keeps blocks.
    Keeps,
    /// It keeps none: it is ending, or the destructor that frees the blocks at its end is not registered.
    KeepsNone,
}

/// Blocks kept by a thread. The type has no destructor, because registering one would allocate memory.
struct ThreadBlocks {
    state: Cell<State>,
    classes: [Cell<Blocks>; SMALL],
}

/// An empty list.
const NONE: Blocks = Blocks {
    first: ptr::null_mut(),
    count: 0,
};

static SHARED: Mutex<SharedBlocks> = Mutex::new(SharedBlocks {
    classes: [NONE; CLASSES - UNSHARED],
    bytes: 0,
});

thread_local! {
    static BLOCKS: ThreadBlocks = const { ThreadBlocks {
        state: Cell::new(State::New),
        classes: [const { Cell::new(NONE) }; SMALL],
    } };
}

/// The class of the smallest blocks that fit `layout`; `None` for blocks that are not kept.
#[inline]
fn class(layout: Layout) -> Option<usize> {
    let size = layout.size();
    if layout.align() > ALIGNMENT || size == 0 {
        None
    } else if size <= FINE * 16 {
        Some((size - 1) / 16)
    } else {
        // The range above 2^log up to 2^(log + 1) has `STEPS` classes of equal width. The first such range is above 2^7 = 128.
        let last = size - 1;
        let log = last.ilog2() as usize;
        let class = FINE + (log - 7) * STEPS + (last >> (log - 2) & (STEPS - 1));
        (class < CLASSES).then_some(class)
    }
}

/// The size of blocks of a class, in bytes.
#[inline]
const fn class_size(class: usize) -> usize {
    match class.checked_sub(FINE) {
        None => (class + 1) * 16,
        // 5, 6, 7 or 8 quarters of a power of two. The lowest power is 128; a quarter of it is 32 = 2^5 bytes.
        Some(above) => (STEPS + 1 + above % STEPS) << (above / STEPS + 5),
    }
}

/// The layout with which blocks of a class are requested from `System`.
#[inline]
fn class_layout(class: usize) -> Layout {
    // SAFETY: 16 is a power of two, and the size is far below the limit.
    unsafe { Layout::from_size_align_unchecked(class_size(class), ALIGNMENT) }
}

impl Blocks {
    /// Takes a block; null if there is none.
    ///
    /// # Safety
    /// All blocks in the list are unused.
    #[inline]
    unsafe fn take(&mut self) -> *mut u8 {
        let block = self.first;
        if !block.is_null() {
            // SAFETY: `put` wrote the link, and the block has not been used since.
            self.first = unsafe { (*block).next };
            self.count -= 1;
        }
        block.cast()
    }

    /// Keeps a block.
    ///
    /// # Safety
    /// It has the size and the alignment of the list's class, and is unused.
    #[inline]
    unsafe fn put(&mut self, block: *mut u8) {
        let block = block.cast::<Kept>();
        // SAFETY: a block of any class has room for the link.
        unsafe { block.write(Kept { next: self.first }) };
        self.first = block;
        self.count += 1;
    }
}

// SAFETY: a block given out is either one of `System` with at least the requested size, or was freed before and taken out of the
// only list that had it. Blocks of a class are requested from `System` with the layout of that class, and are returned to it with
// the same layout. The exceptions are blocks that `realloc` shrinks from a size above all classes to that of a class, or grows
// the other way: such a block is returned with another alignment than it was requested with, up to `ALIGNMENT`, to which
// malloc(3) aligns all blocks.
unsafe impl GlobalAlloc for BlockCache {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class(layout) else {
            // SAFETY: passed on unchanged.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: lists have unused blocks only.
        let block = unsafe { take(class) };
        if block.is_null() {
            // SAFETY: the size is not zero.
            return unsafe { System.alloc(class_layout(class)) };
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match class(layout) {
            // Kept blocks from `SMALL` on would need a lock, like `System`, and would have to be cleared. `System` need not clear
            // blocks that it maps (from about 128 KiB).
            Some(class) if class >= SMALL => {
                // SAFETY: the size is not zero.
                unsafe { System.alloc_zeroed(class_layout(class)) }
            }
            Some(_) => {
                // SAFETY: the block has at least the size of the layout.
                unsafe {
                    let block = self.alloc(layout);
                    if !block.is_null() {
                        block.write_bytes(0, layout.size());
                    }
                    block
                }
            }
            // SAFETY: passed on unchanged.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match class(layout) {
            // SAFETY: the caller gives up the block, which has the size of its class.
            Some(class) => unsafe { put(class, block) },
            // SAFETY: passed on unchanged.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises a valid size.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let (old, new) = (class(layout), class(new_layout));
        match (old, new) {
            (Some(old), Some(new)) if old == new => block,
            (Some(old), Some(new)) if old.min(new) < SMALL => {
                // SAFETY: both blocks have at least the number of bytes copied, and are different.
                unsafe {
                    let moved = self.alloc(new_layout);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(new_size));
                        put(old, block);
                    }
                    moved
                }
            }
            // `System` can resize a large block without copying it.
            _ => {
                let old_layout = old.map_or(layout, class_layout);
                // SAFETY: `System` returned the block for that layout.
                unsafe { System.realloc(block, old_layout, new.map_or(new_size, class_size)) }
            }
        }
    }
}

/// Takes a block of a class; null if none is kept.
///
/// # Safety
/// Lists have unused blocks only.
#[inline]
unsafe fn take(class: usize) -> *mut u8 {
    let own = with_thread(|blocks| {
        let cell = blocks.classes.get(class)?;
        let mut list = cell.get();
        // SAFETY: that of this function.
        let block = unsafe { list.take() };
        cell.set(list);
        Some(block).filter(|block| !block.is_null())
    });
    match own {
        Some(block) => block,
        // SAFETY: that of this function.
        None => unsafe { take_shared(class) },
    }
}

/// Takes a block from the shared lists; null if there is none, or if another thread holds the lock.
///
/// # Safety
/// That of [`take`].
unsafe fn take_shared(class: usize) -> *mut u8 {
    let Some(index) = class.checked_sub(UNSHARED) else {
        return ptr::null_mut();
    };
    // Waiting would never end in a child after fork(2) if another thread, which the child does not have, held the lock.
    let Ok(mut shared) = SHARED.try_lock() else {
        return ptr::null_mut();
    };
    let list = shared.classes.get_mut(index);
    // SAFETY: that of this function.
    let block = list.map_or(ptr::null_mut(), |list| unsafe { list.take() });
    if !block.is_null() {
        shared.bytes -= class_size(class);
    }
    block
}

/// Keeps a block of a class, or returns it to `System`.
///
/// # Safety
/// It has the size of the class, and is unused.
#[inline]
unsafe fn put(class: usize, block: *mut u8) {
    let kept = with_thread(|blocks| {
        let cell = blocks.classes.get(class)?;
        let mut list = cell.get();
        if list.count >= KEPT_BY_THREAD / class_size(class) {
            return None;
        }
        // SAFETY: that of this function.
        unsafe { list.put(block) };
        cell.set(list);
        Some(())
    });
    let kept = kept.or_else(|| {
        // SAFETY: that of this function.
        unsafe { put_shared(class, block) }
    });
    if kept.is_none() {
        // SAFETY: `System` gave out the block with this layout.
        unsafe { System.dealloc(block, class_layout(class)) };
    }
}

/// Keeps a block for all threads; `None` if it is not kept, since its class is not shared, the lists are full, or another
/// thread holds the lock.
///
/// # Safety
/// That of [`put`].
unsafe fn put_shared(class: usize, block: *mut u8) -> Option<()> {
    let index = class.checked_sub(UNSHARED)?;
    let mut shared = SHARED.try_lock().ok()?;
    let bytes = shared.bytes + class_size(class);
    if bytes > KEPT_BY_ALL {
        return None;
    }
    // SAFETY: that of this function.
    unsafe { shared.classes.get_mut(index)?.put(block) };
    shared.bytes = bytes;
    Some(())
}

/// Calls `use_blocks` with the blocks of this thread, if it keeps blocks; otherwise returns `None`. The first call by a
/// thread returns `None`, and only makes the thread keep blocks from then on.
#[inline]
fn with_thread<R>(use_blocks: impl FnOnce(&ThreadBlocks) -> Option<R>) -> Option<R> {
    BLOCKS
        .try_with(|blocks| match blocks.state.get() {
            State::Keeps => use_blocks(blocks),
            State::New => {
                blocks.begin();
                None
            }
            State::KeepsNone => None,
        })
        .ok()
        .flatten()
}

impl ThreadBlocks {
    /// Makes the thread keep blocks, if a destructor that frees them when the thread ends can be registered.
    #[cold]
    fn begin(&self) {
        // This must not allocate. pthread_setspecific(3) does not for the first keys of a process.
        self.state.set(State::KeepsNone);
        let mark = ptr::from_ref(self).cast();
        let Some(key) = key() else {
            return;
        };
        // SAFETY: the key is valid. The value is never used: it is not null, so that `end_thread` is called.
        if unsafe { libc::pthread_setspecific(key, mark) } == 0 {
            self.state.set(State::Keeps);
        }
    }
}

/// The key whose destructor frees the blocks of a thread.
fn key() -> Option<libc::pthread_key_t> {
    /// The key plus one; 0 before the key is created.
    static KEY: AtomicU32 = AtomicU32::new(0);
    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        return Some(key);
    }
    let mut key = 0;
    // SAFETY: the destructor accepts any value.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(end_thread)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(key),
        Err(key_plus_one) => {
            // Another thread has created a key meanwhile.
            // SAFETY: this thread created `key`, and no other thread knows it.
            unsafe { libc::pthread_key_delete(key) };
            key_plus_one.checked_sub(1)
        }
    }
}

/// Frees the blocks that the ending thread keeps.
extern "C" fn end_thread(_mark: *mut libc::c_void) {
    let _ = BLOCKS.try_with(|blocks| {
        blocks.state.set(State::KeepsNone);
        for (class, list) in blocks.classes.iter().enumerate() {
            let mut list = list.replace(NONE);
            loop {
                // SAFETY: lists have unused blocks only.
                let block = unsafe { list.take() };
                if block.is_null() {
                    break;
                }
                // SAFETY: `System` gave out the block with this layout.
                unsafe { System.dealloc(block, class_layout(class)) };
            }
        }
    });
}

#[cfg(test)]
mod tests;
