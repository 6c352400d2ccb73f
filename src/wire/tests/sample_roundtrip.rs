//! Samples of random layouts, built field by field from the kernel's description: decoding finds the fields, encoding
//! returns the bytes, and a truncated sample is an error.

use proptest::prelude::*;
use rperf_wire::{
    Attr, BranchSampleType, Encoder, Endian, ReadFormat, SampleLayout, SampleRecord, SampleType,
};

/// The value of a counter that is read alone.
const SINGLE_COUNT: u64 = 77;

/// Values for the fields of a sample; each layout uses the values of its own fields.
#[derive(Debug, Clone)]
struct Content {
    words: [u64; 12],
    /// Values of the members of a group.
    counters: Vec<u64>,
    chain: Vec<u64>,
    raw: Vec<u8>,
    /// Source, target, flags and counters of each branch.
    branches: Vec<[u64; 4]>,
    /// The bytes reserved for the user stack.
    stack: Vec<u8>,
    /// How many of these bytes were copied from the stack.
    stack_copied: usize,
    /// `PERF_SAMPLE_REGS_ABI_*` of both register dumps.
    abi: u64,
}

fn contents() -> impl Strategy<Value = Content> {
    let lists = (
        prop::collection::vec(any::<u64>(), 0..5),
        prop::collection::vec(any::<u64>(), 0..20),
        prop::collection::vec(any::<u8>(), 0..30),
        prop::collection::vec(prop::array::uniform4(any::<u64>()), 0..5),
        prop::collection::vec(any::<u8>(), 0..6),
    );
    let words = prop::array::uniform12(any::<u64>());
    (words, lists, any::<prop::sample::Index>(), 0_u64..3).prop_map(
        |(words, lists, copied, abi)| {
            let (counters, chain, raw, branches, stack) = lists;
            // Stack sizes are multiples of eight; bytes that were not copied are zero.
            let mut stack: Vec<u8> = stack.repeat(8);
            let stack_copied = copied.index(stack.len() + 1);
            stack[stack_copied..].fill(0);
            Content {
                words,
                counters,
                chain,
                raw,
                branches,
                stack,
                stack_copied,
                abi,
            }
        },
    )
}

fn attrs() -> impl Strategy<Value = Attr> {
    // `0_u64..32` is for `read_format`, which has five flags.
    let selections = (any::<u64>(), 0_u64..32, any::<bool>(), any::<bool>());
    (selections, any::<u64>(), any::<u64>()).prop_map(
        |(selections, sample_regs_user, sample_regs_intr)| {
            let (sample_type, read_format, has_hw_index, has_counters) = selections;
            Attr {
                // Only known fields: the body of a sample with others cannot be built.
                sample_type: SampleType(sample_type & !SampleType::ALL.unnamed()),
                read_format: ReadFormat(read_format),
                branch_sample_type: BranchSampleType::default()
                    .with(BranchSampleType::HW_INDEX, has_hw_index)
                    .with(BranchSampleType::COUNTERS, has_counters),
                sample_regs_user,
                sample_regs_intr,
                ..Attr::default()
            }
        },
    )
}

/// The body, laid out as in perf_event_open(2).
fn body(attr: &Attr, content: &Content, endian: Endian) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut to = Encoder::new(&mut bytes, endian);
    let has = |bit| attr.sample_type.contains(bit);
    let [
        id,
        ip,
        time,
        addr,
        stream,
        period,
        weight,
        source,
        transaction,
        phys,
        cgroup,
        page,
    ] = content.words;
    for (bit, word) in [
        (SampleType::IDENTIFIER, id),
        (SampleType::IP, ip),
        (SampleType::TID, pack(endian, 41, 42)),
        (SampleType::TIME, time),
        (SampleType::ADDR, addr),
        (SampleType::ID, id),
        (SampleType::STREAM_ID, stream),
        (SampleType::CPU, pack(endian, 3, 0)),
        (SampleType::PERIOD, period),
    ] {
        if has(bit) {
            to.u64(word);
        }
    }
    if has(SampleType::READ) {
        put_read(attr.read_format, content, &mut to);
    }
    if has(SampleType::CALLCHAIN) {
        to.u64(content.chain.len() as u64);
        content.chain.iter().for_each(|word| to.u64(*word));
    }
    if has(SampleType::RAW) {
        to.u32(u32::try_from(content.raw.len()).unwrap());
        to.bytes(&content.raw);
    }
    if has(SampleType::BRANCH_STACK) {
        put_branches(attr.branch_sample_type, content, &mut to);
    }
    if has(SampleType::REGS_USER) {
        put_registers(attr.sample_regs_user, content.abi, &mut to);
    }
    if has(SampleType::STACK_USER) {
        to.u64(content.stack.len() as u64);
        if !content.stack.is_empty() {
            to.bytes(&content.stack);
            to.u64(content.stack_copied as u64);
        }
    }
    if has(SampleType::WEIGHT) || has(SampleType::WEIGHT_STRUCT) {
        to.u64(weight);
    }
    if has(SampleType::DATA_SRC) {
        to.u64(source);
    }
    if has(SampleType::TRANSACTION) {
        to.u64(transaction);
    }
    if has(SampleType::REGS_INTR) {
        put_registers(attr.sample_regs_intr, content.abi, &mut to);
    }
    for (bit, word) in [
        (SampleType::PHYS_ADDR, phys),
        (SampleType::CGROUP, cgroup),
        (SampleType::DATA_PAGE_SIZE, page),
        // Different from the field before.
        (SampleType::CODE_PAGE_SIZE, page ^ 1),
    ] {
        if has(bit) {
            to.u64(word);
        }
    }
    if has(SampleType::AUX) {
        to.u64(content.raw.len() as u64);
        to.bytes(&content.raw);
    }
    bytes
}

/// Packs two 32-bit fields into one word of this byte order.
fn pack(endian: Endian, first: u64, second: u64) -> u64 {
    match endian {
        Endian::Little => first | second << 32,
        Endian::Big => first << 32 | second,
    }
}

fn put_read(format: ReadFormat, content: &Content, to: &mut Encoder<'_>) {
    let put_selected = |words: [(ReadFormat, u64); 2], to: &mut Encoder<'_>| {
        for (bit, word) in words {
            if format.contains(bit) {
                to.u64(word);
            }
        }
    };
    let times = [
        (ReadFormat::TOTAL_TIME_ENABLED, 1000),
        (ReadFormat::TOTAL_TIME_RUNNING, 900),
    ];
    let after_value = [(ReadFormat::ID, 5), (ReadFormat::LOST, 6)];
    if format.contains(ReadFormat::GROUP) {
        to.u64(content.counters.len() as u64);
        put_selected(times, to);
        for counter in &content.counters {
            to.u64(*counter);
            put_selected(after_value, to);
        }
    } else {
        to.u64(SINGLE_COUNT);
        put_selected(times, to);
        put_selected(after_value, to);
    }
}

fn put_branches(kinds: BranchSampleType, content: &Content, to: &mut Encoder<'_>) {
    to.u64(content.branches.len() as u64);
    if kinds.contains(BranchSampleType::HW_INDEX) {
        let hw_index = 12;
        to.u64(hw_index);
    }
    for [from, target, flags, _] in &content.branches {
        [from, target, flags]
            .into_iter()
            .for_each(|word| to.u64(*word));
    }
    if kinds.contains(BranchSampleType::COUNTERS) {
        content
            .branches
            .iter()
            .for_each(|[.., counter]| to.u64(*counter));
    }
}

fn put_registers(mask: u64, abi: u64, to: &mut Encoder<'_>) {
    to.u64(abi);
    if abi != 0 {
        (0..mask.count_ones()).for_each(|register| to.u64(u64::from(register)));
    }
}

/// Compares some fields of a decoded sample with the values that were written.
fn check_fields(
    attr: &Attr,
    content: &Content,
    sample: &SampleRecord<'_>,
) -> Result<(), TestCaseError> {
    let has = |bit| attr.sample_type.contains(bit);
    let [id, ip, time, ..] = content.words;
    let has_id = has(SampleType::ID) || has(SampleType::IDENTIFIER);
    prop_assert_eq!(sample.id, has_id.then_some(id));
    prop_assert_eq!(sample.ip, has(SampleType::IP).then_some(ip));
    prop_assert_eq!(sample.time, has(SampleType::TIME).then_some(time));
    prop_assert_eq!(sample.pid_tid, has(SampleType::TID).then_some((41, 42)));
    prop_assert_eq!(sample.cpu, has(SampleType::CPU).then_some(3));
    let chain: Option<Vec<u64>> = sample.callchain.map(|chain| chain.iter().collect());
    prop_assert_eq!(
        chain.as_deref(),
        has(SampleType::CALLCHAIN).then_some(content.chain.as_slice())
    );
    prop_assert_eq!(
        sample.raw,
        has(SampleType::RAW).then_some(content.raw.as_slice())
    );
    let stack = sample.stack_user.map(|stack| stack.bytes);
    let copied = &content.stack[..content.stack_copied];
    prop_assert_eq!(stack, has(SampleType::STACK_USER).then_some(copied));
    if let Some(read) = sample.read {
        let values: Vec<u64> = read.values().iter().map(|value| value.value).collect();
        let group = attr.read_format.contains(ReadFormat::GROUP);
        prop_assert_eq!(
            values,
            if group {
                content.counters.clone()
            } else {
                vec![SINGLE_COUNT]
            }
        );
    }
    Ok(())
}

/// A copy of the sample with only those of its fields that are in `fields`.
fn only<'a>(sample: &SampleRecord<'a>, fields: SampleType) -> SampleRecord<'a> {
    let is_read = |bits: SampleType| fields.intersects(bits);
    let s = sample.clone();
    SampleRecord {
        ip: s.ip.filter(|_| is_read(SampleType::IP)),
        pid_tid: s.pid_tid.filter(|_| is_read(SampleType::TID)),
        time: s.time.filter(|_| is_read(SampleType::TIME)),
        addr: s.addr.filter(|_| is_read(SampleType::ADDR)),
        id: s
            .id
            .filter(|_| is_read(SampleType::ID | SampleType::IDENTIFIER)),
        stream_id: s.stream_id.filter(|_| is_read(SampleType::STREAM_ID)),
        cpu: s.cpu.filter(|_| is_read(SampleType::CPU)),
        period: s.period.filter(|_| is_read(SampleType::PERIOD)),
        read: s.read.filter(|_| is_read(SampleType::READ)),
        callchain: s.callchain.filter(|_| is_read(SampleType::CALLCHAIN)),
        raw: s.raw.filter(|_| is_read(SampleType::RAW)),
        branch_stack: s.branch_stack.filter(|_| is_read(SampleType::BRANCH_STACK)),
        regs_user: s.regs_user.filter(|_| is_read(SampleType::REGS_USER)),
        stack_user: s.stack_user.filter(|_| is_read(SampleType::STACK_USER)),
        weight: s
            .weight
            .filter(|_| is_read(SampleType::WEIGHT | SampleType::WEIGHT_STRUCT)),
        data_src: s.data_src.filter(|_| is_read(SampleType::DATA_SRC)),
        transaction: s.transaction.filter(|_| is_read(SampleType::TRANSACTION)),
        regs_intr: s.regs_intr.filter(|_| is_read(SampleType::REGS_INTR)),
        phys_addr: s.phys_addr.filter(|_| is_read(SampleType::PHYS_ADDR)),
        cgroup: s.cgroup.filter(|_| is_read(SampleType::CGROUP)),
        data_page_size: s
            .data_page_size
            .filter(|_| is_read(SampleType::DATA_PAGE_SIZE)),
        code_page_size: s
            .code_page_size
            .filter(|_| is_read(SampleType::CODE_PAGE_SIZE)),
        aux: s.aux.filter(|_| is_read(SampleType::AUX)),
    }
}

/// Attrs of samples with fields from IDENTIFIER to PERIOD, then RAW, CALLCHAIN or nothing. Separate code decodes such samples.
fn short_attrs() -> impl Strategy<Value = Attr> {
    let last_field = prop::sample::select(vec![0, SampleType::RAW.0, SampleType::CALLCHAIN.0]);
    (any::<u64>(), last_field).prop_map(|(selection, last_field)| {
        let fixed = [
            SampleType::IDENTIFIER,
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::ADDR,
            SampleType::ID,
            SampleType::STREAM_ID,
            SampleType::CPU,
            SampleType::PERIOD,
        ]
        .into_iter()
        .fold(0, |bits, field| bits | field.0 & selection);
        Attr {
            sample_type: SampleType(fixed | last_field),
            ..Attr::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn fields_that_are_not_read_change_neither_others_nor_errors(
        attr in prop_oneof![attrs(), short_attrs()],
        content in contents(),
        fields in any::<u64>(),
        big in any::<bool>(),
    ) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let bytes = body(&attr, &content, endian);
        let layout = SampleLayout::new(&attr);
        let reading = layout.reading(SampleType(fields));
        let expected = only(&layout.decode(&bytes, endian).unwrap(), SampleType(fields));
        prop_assert_eq!(reading.decode(&bytes, endian).unwrap(), expected);
        prop_assert_eq!(reading.time(&bytes, endian), layout.time(&bytes, endian));
        prop_assert_eq!(reading.id(&bytes, endian), layout.id(&bytes, endian));
        for end in 0..bytes.len() {
            let truncated = &bytes[..end];
            prop_assert_eq!(
                reading.decode(truncated, endian).err(),
                layout.decode(truncated, endian).err()
            );
        }
    }

    #[test]
    fn samples_round_trip(attr in attrs(), content in contents(), big in any::<bool>()) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let bytes = body(&attr, &content, endian);
        let layout = SampleLayout::new(&attr);
        let sample = layout.decode(&bytes, endian).unwrap();
        check_fields(&attr, &content, &sample)?;
        prop_assert_eq!(layout.time(&bytes, endian), sample.time);
        prop_assert_eq!(layout.id(&bytes, endian), sample.id);
        let mut encoded = Vec::new();
        layout.encode(&sample, &mut Encoder::new(&mut encoded, endian));
        prop_assert_eq!(&encoded, &bytes);
        for end in 0..bytes.len() {
            prop_assert!(layout.decode(&bytes[..end], endian).is_err(), "truncated at {}", end);
        }
    }

    #[test]
    fn any_bytes_decode_or_err(attr in attrs(), bytes in prop::collection::vec(any::<u8>(), 0..300), big in any::<bool>()) {
        let endian = if big { Endian::Big } else { Endian::Little };
        // Only panics fail here: any bytes may happen to be a sample.
        if let Ok(sample) = SampleLayout::new(&attr).decode(&bytes, endian) {
            drop(sample.read.map(|read| read.values()));
        }
    }
}
