use super::*;

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

#[test]
fn every_size_has_the_smallest_class_that_is_large_enough() {
    let sizes: Vec<usize> = (0..CLASSES).map(class_size).collect();
    assert!(sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
    // Up to the first size, freed blocks are kept by the thread that freed them; up to the second, they are also shared by all
    // threads if that thread has too many; up to the third, they are only shared.
    assert_eq!(sizes[UNSHARED - 1], 4 << 10);
    assert_eq!(sizes[SMALL - 1], 32 << 10);
    assert_eq!(sizes[CLASSES - 1], 1 << 20);
    for size in (1..5000).chain((5000..=1 << 20).step_by(97)) {
        let expected = sizes.iter().position(|capacity| *capacity >= size);
        assert_eq!(class(layout(size)), expected, "{size} bytes");
    }
    // Blocks that are not kept: too large, empty, or aligned to more than 16 bytes.
    assert_eq!(class(layout((1 << 20) + 1)), None);
    assert_eq!(class(layout(0)), None);
    assert_eq!(class(Layout::from_size_align(64, 32).unwrap()), None);
}

#[test]
fn a_freed_block_serves_the_next_request_of_its_class() {
    // Classes are multiples of 16 up to 128 bytes (40), and quarters of a power of two above (1000). Blocks above 4 KiB (20,000)
    // may be passed on to other threads.
    for size in [40, 1000, 20_000] {
        // SAFETY: sizes are not zero, and blocks are freed once, with their layouts.
        unsafe {
            let first = BlockCache.alloc(layout(size));
            BlockCache.dealloc(first, layout(size));
            let second = BlockCache.alloc(layout(size - 1));
            assert_eq!(second, first, "{size} bytes");
            second.write_bytes(0xff, size - 1);
            BlockCache.dealloc(second, layout(size - 1));
            let zeroed = BlockCache.alloc_zeroed(layout(size));
            assert!((0..size).all(|at| *zeroed.add(at) == 0));
            BlockCache.dealloc(zeroed, layout(size));
        }
    }
}

#[test]
fn what_a_thread_keeps_is_limited() {
    const COUNT: usize = 10_000;
    // SAFETY: the size is not zero, and blocks are freed once, with their layout.
    unsafe {
        let blocks: Vec<_> = (0..COUNT).map(|_| BlockCache.alloc(layout(100))).collect();
        for block in blocks {
            BlockCache.dealloc(block, layout(100));
        }
    }
    let class = class(layout(100)).unwrap();
    let kept = super::BLOCKS.with(|blocks| blocks.classes[class].get().count);
    assert_eq!(kept, KEPT_BY_THREAD / class_size(class));
}

/// A block whose bytes all have one value.
struct Filled {
    block: *mut u8,
    layout: Layout,
    value: u8,
}

// SAFETY: each block has one owner, and moves to the other thread with it.
unsafe impl Send for Filled {}

impl Filled {
    fn new(layout: Layout, value: u8) -> Self {
        // SAFETY: the size is not zero.
        let block = unsafe { BlockCache.alloc(layout) };
        assert_eq!(block as usize % layout.align(), 0);
        // SAFETY: the block is as large as its layout.
        unsafe { block.write_bytes(value, layout.size()) };
        Self {
            block,
            layout,
            value,
        }
    }

    fn resize(&mut self, size: usize) {
        // SAFETY: the block has this layout, and the new size is not zero. The block keeps its first bytes.
        unsafe {
            self.block = BlockCache.realloc(self.block, self.layout, size);
            let kept = self.layout.size().min(size);
            self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
            self.check(kept);
            self.block.write_bytes(self.value, size);
        }
    }

    fn check(&self, size: usize) {
        // SAFETY: the block has at least `size` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(self.block, size) };
        assert!(bytes.iter().all(|byte| *byte == self.value), "{size} bytes");
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        self.check(self.layout.size());
        // SAFETY: freed once.
        unsafe { BlockCache.dealloc(self.block, self.layout) };
    }
}

/// Threads allocate, resize, pass on and free blocks; no block may be given out while it is in use.
#[test]
fn blocks_of_several_threads_keep_their_bytes() {
    let (sender, receiver) = std::sync::mpsc::channel::<Filled>();
    let receiver = std::sync::Mutex::new(receiver);
    std::thread::scope(|scope| {
        for seed in 1..=4_u64 {
            let (sender, receiver) = (sender.clone(), &receiver);
            scope.spawn(move || {
                let mut state = seed;
                let mut random = |below: u64| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state % below) as usize
                };
                let mut own: Vec<Filled> = Vec::new();
                for _ in 0..4000 {
                    // Most blocks are small.
                    let limit = [64, 2000, 40_000, 1_500_000][random(20).saturating_sub(16)];
                    let size = 1 + random(limit);
                    match random(5) {
                        0 | 1 => {
                            let align = [1, 8, 16, 64][random(4)];
                            let layout = Layout::from_size_align(size, align).unwrap();
                            own.push(Filled::new(layout, random(256) as u8));
                        }
                        2 if !own.is_empty() => {
                            let at = random(own.len() as u64);
                            own[at].resize(size);
                        }
                        3 if !own.is_empty() => {
                            let at = random(own.len() as u64);
                            sender.send(own.swap_remove(at)).unwrap();
                        }
                        _ => drop(receiver.lock().unwrap().try_recv()),
                    }
                    if own.len() > 200 {
                        own.truncate(100);
                    }
                }
            });
        }
    });
}
