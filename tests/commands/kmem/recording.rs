//! A generated recording of allocations of objects and pages, with stacks.

use rperf_testkit::{Bytes, FileAttr, PerfFile};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::Endian;

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `sample_type`: IDENTIFIER, TID, TIME, CALLCHAIN, CPU and RAW.
const FIELDS: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7 | 1 << 10;
/// `sample_type`: CGROUP.
const CGROUP: u64 = 1 << 21;
/// `PERF_RECORD_CGROUP`.
const CGROUP_RECORD: u32 = 19;
/// `PERF_RECORD_LOST`.
const LOST_RECORD: u32 = 2;
/// `PERF_CONTEXT_KERNEL`, the marker in callchains; `PerfFile::KERNEL` is the CPU mode of a record.
const KERNEL: u64 = -128_i64 as u64;

/// Ids of the events, in the file and in the kernel.
const KMALLOC: u64 = 801;
const KFREE: u64 = 802;
const PAGE_ALLOC: u64 = 803;
const PAGE_FREE: u64 = 804;
const FALLBACK: u64 = 805;
const CACHE_ALLOC: u64 = 806;

/// Id, name and fields of each tracepoint.
const FORMATS: [(u64, &str, &str); 6] = [
    (
        KMALLOC,
        "kmalloc",
        "\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:size_t bytes_alloc;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long gfp_flags;\toffset:40;\tsize:8;\tsigned:0;\n\
        \tfield:int node;\toffset:48;\tsize:4;\tsigned:1;\n",
    ),
    (
        KFREE,
        "kfree",
        "\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n",
    ),
    (
        PAGE_ALLOC,
        "mm_page_alloc",
        "\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int order;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long gfp_flags;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:int migratetype;\toffset:32;\tsize:4;\tsigned:1;\n",
    ),
    (
        PAGE_FREE,
        "mm_page_free",
        "\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int order;\toffset:16;\tsize:4;\tsigned:0;\n",
    ),
    (
        FALLBACK,
        "mm_page_alloc_extfrag",
        "\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:int alloc_order;\toffset:16;\tsize:4;\tsigned:1;\n\
        \tfield:int fallback_order;\toffset:20;\tsize:4;\tsigned:1;\n\
        \tfield:int alloc_migratetype;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int fallback_migratetype;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:int change_ownership;\toffset:32;\tsize:4;\tsigned:1;\n",
    ),
    (
        CACHE_ALLOC,
        "kmem_cache_alloc",
        "\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:size_t bytes_req;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:size_t bytes_alloc;\toffset:40;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long gfp_flags;\toffset:48;\tsize:8;\tsigned:0;\n\
        \tfield:int node;\toffset:56;\tsize:4;\tsigned:1;\n",
    ),
];

/// The page size of most recordings, in bytes.
pub(super) const PAGE_SIZE: u32 = 4096;
/// The order of pageblocks, as [`FALLBACK_PRINT_FMT`] computes it.
const PAGEBLOCK_ORDER: u32 = 9;
/// The print format of `mm_page_alloc_extfrag`.
const FALLBACK_PRINT_FMT: &str = "\"page=%p pfn=0x%lx alloc_order=%d pageblock_order=%d\", \
    (((struct page *)vmemmap_base) + (REC->pfn)), REC->pfn, REC->alloc_order, \
    (((unsigned int)((21 - 12))) < ((unsigned int)(10)) ? ((unsigned int)((21 - 12))) : \
    ((unsigned int)(10)))";

/// An allocation of pages, with the values of its event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    /// The caller.
    pub(super) function: &'static str,
    /// The page frame number of the first page; `u64::MAX` if the allocation fails.
    pub(super) frame: u64,
    pub(super) order: u32,
    pub(super) migrate_type: u32,
}

/// The address of the first function of the kernel; each of the others is 0x1000 bytes after the previous one.
const TEXT: u64 = 0xffff_ffff_8100_0000;
/// The innermost frame of allocations of objects, and of all frees. The address is in `_text`, which takes the place of the
/// allocator's functions.
const ALLOCATOR: u64 = TEXT + 0x10;
const FUNCTIONS: [&str; 9] = [
    "_text",
    "__alloc_pages",
    "leaking_driver",
    "busy_path",
    "cache_fill",
    "late_burst",
    "leaking_pages",
    "ioctl_entry",
    "allocate_slab",
];

/// Returns the text of `/proc/kallsyms` of the recording's kernel, whose functions are [`FUNCTIONS`].
pub(super) fn kallsyms() -> String {
    let lines = FUNCTIONS.iter().enumerate().map(|(number, name)| {
        let address = TEXT + 0x1000 * number as u64;
        format!("{address:016x} T {name}\n")
    });
    lines
        .chain([format!("{:016x} T _etext\n", TEXT + 0x10000)])
        .collect()
}

/// Returns an address in a function.
fn within(function: &str) -> u64 {
    let number = FUNCTIONS.iter().position(|name| *name == function);
    TEXT + 0x1000 * number.expect("a function") as u64 + 0x10
}

/// Returns the timestamp of an event, in nanoseconds; `time` is in milliseconds after the start of the recording, which is at
/// 1 s.
fn nanos(time: u64) -> u64 {
    1_000_000_000 + time * 1_000_000
}

/// A recording under construction. The times of its events are in milliseconds after its start.
pub(super) struct KmemFile {
    file: PerfFile,
    /// Time and content of each sample.
    samples: Vec<(u64, Vec<u8>)>,
    /// The cgroup of the following samples, if cgroups are recorded.
    cgroup: Option<u64>,
}

impl KmemFile {
    pub(super) fn new(page_size: u32) -> Self {
        Self::with_fields(page_size, FIELDS)
    }

    /// Begins a recording whose samples have cgroups; `paths` are those of the cgroups 1, 2 and so on. Samples are in cgroup 1
    /// until [`Self::enter_cgroup`].
    pub(super) fn with_cgroups(paths: &[&str]) -> Self {
        let mut recording = Self::with_fields(PAGE_SIZE, FIELDS | CGROUP);
        for (id, path) in (1..).zip(paths) {
            let record = recording.bytes().u64(id).text(path, 8);
            let record = recording.trailer(record, 0, 0);
            recording.file.record(CGROUP_RECORD, 0, record);
        }
        recording.cgroup = Some(1);
        recording
    }

    /// Sets the cgroup of the following samples.
    pub(super) fn enter_cgroup(&mut self, id: u64) {
        self.cgroup = Some(id);
    }

    fn with_fields(page_size: u32, fields_of_samples: u64) -> Self {
        let mut file = PerfFile::new();
        let long_size = 8;
        let mut tracing = TracingDataBuilder::new(Endian::Little, long_size, page_size);
        for (id, name, fields) in FORMATS {
            let attr = FileAttr {
                kind: TRACEPOINT,
                config: id,
                period: 1,
                sample_type: fields_of_samples,
                flags: FileAttr::SAMPLE_ID_ALL,
                ..FileAttr::default()
            };
            file.event(&attr, &[id]);
            let print_fmt = match id {
                FALLBACK => FALLBACK_PRINT_FMT,
                // Not evaluated: `kmem` reads only the fields of these events. Those of pages have no `call_site`.
                _ => "\"%lx\", REC->call_site",
            };
            let text = format!(
                "name: {name}\nID: {id}\nformat:\n\
                \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n{fields}\n\
                print fmt: {print_fmt}\n"
            );
            tracing.event("kmem", text.as_bytes());
        }
        file.feature(PerfFile::TRACING_DATA, tracing.encode());
        let mut recording = Self {
            file,
            samples: Vec::new(),
            cgroup: None,
        };
        let map = recording
            .bytes()
            .u32(u32::MAX)
            .u32(0)
            .u64(TEXT)
            .u64(0x10000);
        let map = map.u64(TEXT).text("[kernel.kallsyms]_text", 8);
        let map = recording.trailer(map, 0, 0);
        recording.file.record(PerfFile::MMAP, PerfFile::KERNEL, map);
        for (pid, name) in [(70, "leaker"), (71, "worker")] {
            let comm = recording.bytes().u32(pid).u32(pid).text(name, 8);
            let comm = recording.trailer(comm, pid, 0);
            recording.file.record(PerfFile::COMM, 0, comm);
        }
        recording
    }

    fn bytes(&self) -> Bytes {
        self.file.bytes()
    }

    /// Adds the fields of `sample_id_all`.
    fn trailer(&self, body: Bytes, pid: u32, nanos: u64) -> Vec<u8> {
        let body = body.u32(pid).u32(pid).u64(nanos).u32(0).u32(0);
        body.u64(KMALLOC).done()
    }

    fn sample(&mut self, time: u64, event: u64, pid: u32, chain: &[u64], raw: Bytes) {
        // The kernel pads the size field (4 bytes) and the data together to a multiple of 8.
        let mut raw = raw.done();
        raw.resize((4 + raw.len()).next_multiple_of(8) - 4, 0);
        let size = u32::try_from(raw.len()).expect("a short event");
        let body = self.bytes().u64(event).u32(pid).u32(pid);
        let body = body.u64(nanos(time)).u32(0).u32(0);
        let body = body.u64(chain.len() as u64 + 1).u64(KERNEL);
        let body = chain.iter().fold(body, |body, ip| body.u64(*ip));
        let body = body.u32(size).raw(raw);
        let body = match self.cgroup {
            Some(id) => body.u64(id).done(),
            None => body.done(),
        };
        self.samples.push((time, body));
    }

    /// Adds an allocation of `bytes` bytes by kmalloc(), of which 8 are not requested.
    pub(super) fn object(&mut self, time: u64, pid: u32, function: &str, pointer: u64, bytes: u64) {
        let site = within(function);
        let raw = self.bytes().raw([0; 8]).u64(site).u64(pointer);
        let raw = raw.u64(bytes - 8).u64(bytes).u64(0).u32(u32::MAX).u32(0);
        let chain = [ALLOCATOR, site, within("ioctl_entry")];
        self.sample(time, KMALLOC, pid, &chain, raw);
    }

    /// Adds the free of an object, whether or not it was allocated.
    pub(super) fn free(&mut self, time: u64, pointer: u64) {
        let raw = self.bytes().raw([0; 8]).u64(within("busy_path"));
        let raw = raw.u64(pointer);
        self.sample(time, KFREE, 71, &[ALLOCATOR], raw);
    }

    /// Adds an allocation of unmovable pages (migrate type 0).
    pub(super) fn pages(&mut self, time: u64, function: &'static str, frame: u64, order: u32) {
        let pages = Pages {
            function,
            frame,
            order,
            migrate_type: 0,
        };
        self.pages_of(time, pages);
    }

    /// Adds an allocation of pages of any migrate type; its `gfp_flags` are those of `GFP_KERNEL` (0xcc0).
    pub(super) fn pages_of(&mut self, time: u64, pages: Pages) {
        let Pages {
            function,
            frame,
            order,
            migrate_type,
        } = pages;
        let raw = self.bytes().raw([0; 8]).u64(frame).u32(order).u32(0);
        let raw = raw.u64(0xcc0).u32(migrate_type).u32(0);
        let chain = [within("__alloc_pages"), within(function)];
        self.sample(time, PAGE_ALLOC, 71, &chain, raw);
    }

    /// Adds a page that the slab allocator allocates for an object of `function`.
    pub(super) fn slab_page(&mut self, time: u64, function: &str, frame: u64) {
        let raw = self.bytes().raw([0; 8]).u64(frame).u32(0).u32(0);
        let raw = raw.u64(0xcc0).u32(0).u32(0);
        let chain = ["__alloc_pages", "allocate_slab", function, "ioctl_entry"].map(within);
        self.sample(time, PAGE_ALLOC, 70, &chain, raw);
    }

    /// Adds the event of an allocation that finds no free block of its migrate type, and takes a block of movable pages of order
    /// `from_order`. Its `mm_page_alloc` is not added.
    pub(super) fn fallback(&mut self, time: u64, pages: Pages, from_order: u32) {
        let raw = self.bytes().raw([0; 8]).u64(pages.frame).u32(pages.order);
        let raw = raw.u32(from_order).u32(pages.migrate_type).u32(1);
        let raw = raw.u32(u32::from(from_order >= PAGEBLOCK_ORDER)).u32(0);
        let chain = [within("__alloc_pages"), within(pages.function)];
        self.sample(time, FALLBACK, 71, &chain, raw);
    }

    /// Adds an object of a cache, with the bytes requested and allocated.
    pub(super) fn cache_object(&mut self, time: u64, cache: &str, pointer: u64, bytes: [u64; 2]) {
        let [requested, allocated] = bytes;
        let site = within("cache_fill");
        let name_size = u32::try_from(cache.len() + 1).expect("a short name");
        let raw = self.bytes().raw([0; 8]).u64(site).u64(pointer);
        // The `__data_loc` of `name`: its size in the upper 16 bits, and its offset, 60, where the last field ends.
        let raw = raw
            .u32(name_size << 16 | 60)
            .u32(0)
            .u64(requested)
            .u64(allocated);
        let raw = raw.u64(0xcc0).u32(u32::MAX).text(cache, 4);
        self.sample(time, CACHE_ALLOC, 71, &[ALLOCATOR, site], raw);
    }

    pub(super) fn free_pages(&mut self, time: u64, frame: u64, order: u32) {
        let raw = self.bytes().raw([0; 8]).u64(frame).u32(order).u32(0);
        self.sample(time, PAGE_FREE, 71, &[ALLOCATOR], raw);
    }

    /// Returns the recording. It ends with a LOST record at `time`, for `lost_records` records.
    pub(super) fn finish_after_loss(mut self, time: u64, lost_records: u64) -> Vec<u8> {
        self.put_samples();
        let lost = self.bytes().u64(KMALLOC).u64(lost_records);
        let lost = self.trailer(lost, 0, nanos(time));
        self.file.record(LOST_RECORD, 0, lost);
        self.file.finish()
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.put_samples();
        self.file.finish()
    }

    /// Writes the samples in order of time.
    fn put_samples(&mut self) {
        self.samples.sort_by_key(|(time, _)| *time);
        for (_, body) in &self.samples {
            self.file.record(PerfFile::SAMPLE, PerfFile::KERNEL, body);
        }
    }
}

/// Returns a recording of ten seconds with two leaks: 64 bytes every 100 ms by process 70 in `leaking_driver`, and two pages of
/// `page_size` bytes each second in `leaking_pages`.
///
/// Other functions allocate memory and free it soon, or keep it from the beginning on, or from near the end on. One object and
/// one page are freed whose allocations are not recorded.
pub(super) fn planted_leaks(page_size: u32) -> Vec<u8> {
    let mut file = KmemFile::new(page_size);
    let slot = |kind: u64, number: u64| 0xffff_8880_0000_0000 + kind * 0x1000_0000 + number * 0x100;
    for number in 0..100 {
        file.object(number * 100, 70, "leaking_driver", slot(1, number), 64);
        // Freed after 5 ms, and its address used again.
        let pointer = slot(2, number % 3);
        file.object(number * 100 + 10, 71, "busy_path", pointer, 128);
        file.free(number * 100 + 15, pointer);
    }
    for number in 0..200 {
        file.object(number, 71, "cache_fill", slot(3, number), 256);
    }
    for number in 0..20 {
        file.object(9980 + number, 71, "late_burst", slot(4, number), 512);
    }
    for number in 0..10 {
        file.pages(number * 1000 + 500, "leaking_pages", 1000 + 2 * number, 1);
        file.pages(number * 1000 + 501, "busy_path", 2000, 0);
        file.free_pages(number * 1000 + 502, 2000, 0);
    }
    file.free(20, slot(9, 0));
    file.free_pages(9999, 9000, 0);
    file.finish()
}
