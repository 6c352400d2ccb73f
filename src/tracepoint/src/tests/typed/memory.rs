//! Memory, locks, block devices.
//!
//! `variants` are the formats of a tracepoint in several synthetic kernels, and in the running one. `resolve` fails if a format
//! lacks a required field, and returns `None` for a tracepoint with another name.

use super::kernels::{
    Content, NO_PRINT_FMT, assert_truncation_is_detected, raw, variants, variants_with,
    variants_without,
};
use crate::typed::{
    BlockRqCompleteLayout, BlockRqIssueLayout, ContentionBeginLayout, ContentionEndLayout,
    KfreeLayout, KmallocLayout, KmemCacheAllocLayout, KmemCacheFreeLayout, LockAcquireLayout,
    LockAcquiredLayout, LockContendedLayout, LockReleaseLayout, MmPageAllocExtfragLayout,
    MmPageAllocLayout, MmPageFreeLayout,
};

use Content::{Number, Text};

/// The fields of events that allocate or free memory.
const ALLOCATION: [(&str, Content<'static>); 7] = [
    ("call_site", Number(0x8123_4567)),
    ("ptr", Number(0x7000_0000)),
    ("name", Text("dentry")),
    ("bytes_req", Number(100)),
    ("bytes_alloc", Number(128)),
    ("gfp_flags", Number(0x40)),
    ("node", Number(-1)),
];

#[test]
fn allocation_events_of_old_and_new_kernels_are_read() {
    for name in KmallocLayout::TRACEPOINTS {
        let current = variants(name).into_iter();
        for tracepoint in current.chain(variants_without(name, &["node"])) {
            let raw = raw(&tracepoint, &ALLOCATION);
            let layout = KmallocLayout::resolve(&tracepoint);
            let layout = layout.expect("its fields").expect("its name");
            let got = layout.read(&raw).expect("complete");
            assert_eq!((got.call_site(), got.ptr()), (0x8123_4567, 0x7000_0000));
            assert_eq!((got.bytes_req(), got.bytes_alloc()), (100, 128));
            assert_eq!(got.gfp_flags().to_string(), "__GFP_IO");
            let has_node = tracepoint.format.field("node").is_some();
            assert_eq!(got.node(), has_node.then_some(-1));
            // The last required field: `node` is optional.
            assert_truncation_is_detected(&raw, "gfp_flags", &tracepoint, |raw| {
                layout.read(raw).is_some()
            });
        }
    }
    for name in KmemCacheAllocLayout::TRACEPOINTS {
        let current = variants(name).into_iter();
        for tracepoint in current.chain(variants_without(name, &["name", "node"])) {
            let raw = raw(&tracepoint, &ALLOCATION);
            let layout = KmemCacheAllocLayout::resolve(&tracepoint);
            let layout = layout.expect("its fields").expect("its name");
            let got = layout.read(&raw).expect("complete");
            assert_eq!((got.call_site(), got.ptr()), (0x8123_4567, 0x7000_0000));
            assert_eq!((got.bytes_req(), got.bytes_alloc()), (100, 128));
            assert_eq!(got.gfp_flags().value, 0x40);
            let has_name = tracepoint.format.field("name").is_some();
            assert_eq!(got.name(), has_name.then_some(&b"dentry"[..]));
            let has_node = tracepoint.format.field("node").is_some();
            assert_eq!(got.node(), has_node.then_some(-1));
        }
    }
}

#[test]
fn free_events_are_read() {
    for tracepoint in variants("kmem:kfree") {
        let raw = raw(&tracepoint, &ALLOCATION);
        let layout = KfreeLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let freed = layout.read(&raw).expect("complete");
        assert_eq!((freed.call_site(), freed.ptr()), (0x8123_4567, 0x7000_0000));
    }
    let name = "kmem:kmem_cache_free";
    for tracepoint in variants(name)
        .into_iter()
        .chain(variants_without(name, &["name"]))
    {
        let raw = raw(&tracepoint, &ALLOCATION);
        let layout = KmemCacheFreeLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let freed = layout.read(&raw).expect("complete");
        assert_eq!((freed.call_site(), freed.ptr()), (0x8123_4567, 0x7000_0000));
        let has_name = tracepoint.format.field("name").is_some();
        assert_eq!(freed.name(), has_name.then_some(&b"dentry"[..]));
    }
}

#[test]
fn page_events_have_a_pfn_or_an_address() {
    let values = [
        ("pfn", Number(0x1_0000)),
        ("page", Number(0x7777_0000)),
        ("order", Number(3)),
        ("gfp_flags", Number(0x40)),
        ("migratetype", Number(1)),
    ];
    let replaced = [("unsigned long pfn", "struct page * page")];
    let formats_of = |name: &str| {
        let old = variants_with(name, &replaced, NO_PRINT_FMT);
        variants(name).into_iter().chain(old)
    };
    for tracepoint in formats_of("kmem:mm_page_alloc") {
        let raw = raw(&tracepoint, &values);
        let layout = MmPageAllocLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let got = layout.read(&raw).expect("complete");
        let is_old = tracepoint.format.field("page").is_some();
        assert_eq!(got.pfn(), (!is_old).then_some(0x1_0000));
        assert_eq!(got.page(), is_old.then_some(0x7777_0000));
        assert_eq!((got.order(), got.migratetype()), (3, 1));
        // The names of the flags are available although another argument of the `print fmt` is not supported; old formats have
        // no `print fmt` here.
        let flags = if is_old { "0x40" } else { "__GFP_IO" };
        assert_eq!(got.gfp_flags().to_string(), flags);
    }
    for name in MmPageFreeLayout::TRACEPOINTS {
        for tracepoint in formats_of(name) {
            let raw = raw(&tracepoint, &values);
            let layout = MmPageFreeLayout::resolve(&tracepoint);
            let layout = layout.expect("its fields").expect("its name");
            let freed = layout.read(&raw).expect("complete");
            let is_old = tracepoint.format.field("page").is_some();
            assert_eq!(freed.pfn(), (!is_old).then_some(0x1_0000));
            assert_eq!(freed.page(), is_old.then_some(0x7777_0000));
            assert_eq!(freed.order(), 3);
        }
    }
}

#[test]
fn events_of_external_fragmentation_are_read() {
    let values = [
        ("pfn", Number(0x1_0000)),
        ("alloc_order", Number(3)),
        ("fallback_order", Number(9)),
        ("alloc_migratetype", Number(0)),
        ("fallback_migratetype", Number(1)),
        ("change_ownership", Number(1)),
    ];
    let name = "kmem:mm_page_alloc_extfrag";
    let old = variants_without(name, &["change_ownership"]);
    for tracepoint in variants(name).into_iter().chain(old) {
        let raw = raw(&tracepoint, &values);
        let layout = MmPageAllocExtfragLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let got = layout.read(&raw).expect("complete");
        assert_eq!((got.pfn(), got.page()), (Some(0x1_0000), None));
        assert_eq!((got.alloc_order(), got.fallback_order()), (3, 9));
        assert_eq!(
            (got.alloc_migratetype(), got.fallback_migratetype()),
            (0, 1)
        );
        let has_ownership = tracepoint.format.field("change_ownership").is_some();
        assert_eq!(got.change_ownership(), has_ownership.then_some(1));
    }
}

#[test]
fn lock_contention_events_are_read() {
    for tracepoint in variants("lock:contention_begin") {
        let values = [("lock_addr", Number(0x7654_3210)), ("flags", Number(3))];
        let raw = raw(&tracepoint, &values);
        let layout = ContentionBeginLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let begin = layout.read(&raw).expect("complete");
        assert_eq!(begin.lock_addr(), 0x7654_3210);
        assert_eq!(
            (begin.flags().value, begin.flags().to_string().as_str()),
            (3, "SPIN|READ")
        );
    }
    for tracepoint in variants("lock:contention_end") {
        let values = [("lock_addr", Number(0x7654_3210)), ("ret", Number(-4))];
        let raw = raw(&tracepoint, &values);
        let layout = ContentionEndLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let end = layout.read(&raw).expect("complete");
        assert_eq!((end.lock_addr(), end.ret()), (0x7654_3210, -4));
        assert_truncation_is_detected(&raw, "ret", &tracepoint, |raw| layout.read(raw).is_some());
    }
}

#[test]
fn lockdep_events_are_read() {
    const ADDRESS: u64 = 0x7654_3210;
    let values = [
        ("flags", Number(3)),
        ("name", Text("&lock->lock")),
        ("lockdep_addr", Number(ADDRESS.cast_signed())),
    ];
    for tracepoint in variants("lock:lock_acquire") {
        let raw = raw(&tracepoint, &values);
        let layout = LockAcquireLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let event = layout.read(&raw).expect("complete");
        let found = (event.flags(), event.name(), event.lockdep_addr());
        assert_eq!(found, (3, &b"&lock->lock"[..], ADDRESS));
    }
    macro_rules! check {
        ($($layout:ident),+) => {$(
            for tracepoint in variants($layout::TRACEPOINTS[0]) {
                let raw = raw(&tracepoint, &values);
                let layout = $layout::resolve(&tracepoint);
                let layout = layout.expect("its fields").expect("its name");
                let event = layout.read(&raw).expect("complete");
                assert_eq!((event.name(), event.lockdep_addr()), (&b"&lock->lock"[..], ADDRESS));
            }
        )+};
    }
    check!(LockAcquiredLayout, LockContendedLayout, LockReleaseLayout);
}

/// The fields of block requests, except `cmd`. `errors` is the old name of `error`.
const REQUEST: [(&str, Content<'static>); 8] = [
    ("dev", Number(8 << 20 | 1)),
    ("sector", Number(0x1_2345_6789)),
    ("nr_sector", Number(8)),
    ("bytes", Number(4096)),
    ("rwbs", Text("WSM")),
    ("comm", Text("kworker/0:1H")),
    ("error", Number(-5)),
    ("errors", Number(-5)),
];

#[test]
fn block_request_events_are_read() {
    let name = "block:block_rq_issue";
    let without_optional = variants_without(name, &["bytes", "comm", "cmd"]);
    for tracepoint in variants(name).into_iter().chain(without_optional) {
        let mut values = REQUEST.to_vec();
        values.push(("cmd", Text("")));
        let raw = raw(&tracepoint, &values);
        let layout = BlockRqIssueLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let issued = layout.read(&raw).expect("complete");
        assert_eq!(
            (issued.dev(), issued.sector()),
            (8 << 20 | 1, 0x1_2345_6789)
        );
        assert_eq!((issued.nr_sector(), issued.rwbs()), (8, &b"WSM"[..]));
        let has_optional = tracepoint.format.field("bytes").is_some();
        assert_eq!(issued.bytes(), has_optional.then_some(4096));
        assert_eq!(issued.comm(), has_optional.then_some(&b"kworker/0:1H"[..]));
        assert_eq!(issued.cmd(), has_optional.then_some(&b""[..]));
    }
    let name = "block:block_rq_complete";
    let replaced = [("int error", "int errors")];
    let old = variants_with(name, &replaced, NO_PRINT_FMT);
    for tracepoint in variants(name).into_iter().chain(old) {
        let mut values = REQUEST.to_vec();
        values.push(("cmd", Text("2a 00")));
        let raw = raw(&tracepoint, &values);
        let layout = BlockRqCompleteLayout::resolve(&tracepoint);
        let layout = layout.expect("its fields").expect("its name");
        let completion = layout.read(&raw).expect("complete");
        assert_eq!(
            (completion.dev(), completion.sector()),
            (8 << 20 | 1, 0x1_2345_6789)
        );
        assert_eq!((completion.nr_sector(), completion.error()), (8, Some(-5)));
        assert_eq!(
            (completion.rwbs(), completion.cmd()),
            (&b"WSM"[..], Some(&b"2a 00"[..]))
        );
    }
}
