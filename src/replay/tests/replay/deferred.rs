//! Deferred user callchains, compared with a linear search.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_replay::{Render, Sample, World};
use rperf_wire::{
    AttrFlags, CallchainDeferred, Encoder, Endian, PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER,
    PERF_CONTEXT_USER_DEFERRED, Record, SampleId, SampleType, U64s,
};

use crate::file::{FileBuilder, attr};
use crate::stream::{piped, stream, streamed, whole};
use crate::{KERNEL, USER};

const FIELDS: SampleType = SampleType::TID
    .with(SampleType::TIME, true)
    .with(SampleType::CALLCHAIN, true);
const THREADS: u32 = 3;
/// The address of the kernel frame in each callchain.
const KERNEL_IP: u64 = !0xfff;

/// A step of a thread on a CPU.
#[derive(Debug, Clone)]
enum Step {
    /// A sample in the kernel. Its user callchain is deferred if `deferred`; otherwise, it has none.
    Sample { deferred: bool },
    /// The thread returns to user space.
    Return { frames: Vec<u64> },
    /// The round ends; the thread and CPU of this step are ignored.
    Round,
}

/// Thread, CPU and step.
type ThreadStep = (u32, usize, Step);

fn steps() -> impl Strategy<Value = Vec<ThreadStep>> {
    let step = prop_oneof![
        6 => any::<bool>().prop_map(|deferred| Step::Sample { deferred }),
        3 => prop::collection::vec(1_u64..1000, 0..4).prop_map(|frames| Step::Return { frames }),
        1 => Just(Step::Round),
    ];
    prop::collection::vec((0..THREADS, 0_usize..2, step), 0..60)
}

/// A sample's recorded time, the time in [`Sample::order`] (of the record with its user frames, if there is one), and its
/// callchain.
type RenderedSample = (u64, u64, Vec<u64>);

/// The cookie of a thread after `steps`, until its next return to user space. Threads may have equal cookies, so the
/// thread must match, too.
fn cookie(steps: &[ThreadStep], tid: u32) -> u64 {
    let returns = steps
        .iter()
        .filter(|(other, _, step)| *other == tid && matches!(step, Step::Return { .. }));
    5 + returns.count() as u64
}

fn recording(steps: &[ThreadStep], endian: Endian) -> Vec<u8> {
    let mut event = attr(FIELDS);
    event.flags = event.flags.with(AttrFlags::DEFER_CALLCHAIN, true);
    let mut file = FileBuilder::new(endian, &[(event, vec![1])]);
    let steps_at: Vec<(usize, &ThreadStep)> = steps.iter().enumerate().collect();
    for round in steps_at.split(|(_, (.., step))| matches!(step, Step::Round)) {
        // Each round drains the ring of CPU 0 before that of CPU 1.
        for cpu in 0..2 {
            for (index, (tid, _, step)) in round.iter().filter(|(_, (_, on, _))| *on == cpu) {
                let pid_tid = Some((*tid, *tid));
                let time = Some(*index as u64 + 1);
                let cookie = cookie(&steps[..*index], *tid);
                match step {
                    Step::Sample { deferred } => {
                        let mut entries = vec![PERF_CONTEXT_KERNEL, KERNEL_IP];
                        if *deferred {
                            entries.extend([PERF_CONTEXT_USER_DEFERRED, cookie]);
                        }
                        let chain = encoded(&entries, endian);
                        let sample = rperf_wire::SampleRecord {
                            pid_tid,
                            time,
                            callchain: Some(U64s::new(&chain, endian)),
                            ..rperf_wire::SampleRecord::default()
                        };
                        file.sample(0, KERNEL, &sample);
                    }
                    Step::Return { frames } => {
                        let ips = encoded(frames, endian);
                        let ips = U64s::new(&ips, endian);
                        let record = Record::CallchainDeferred(CallchainDeferred { cookie, ips });
                        let id = SampleId {
                            pid_tid,
                            time,
                            ..SampleId::default()
                        };
                        file.record(0, USER, &record, &id);
                    }
                    Step::Round => unreachable!("rounds are split"),
                }
            }
        }
        file.round();
    }
    file.finish()
}

fn encoded(words: &[u64], endian: Endian) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut to = Encoder::new(&mut bytes, endian);
    words.iter().for_each(|word| to.u64(*word));
    bytes
}

/// The expected samples, each with whether its deferred callchain is missing, in the order of a file: by recorded time. (A stream
/// delivers a sample when the record with its user frames arrives.)
fn expected(steps: &[ThreadStep]) -> Vec<(bool, RenderedSample)> {
    let mut expected = Vec::new();
    for (index, (tid, _, step)) in steps.iter().enumerate() {
        let Step::Sample { deferred } = step else {
            continue;
        };
        let mut chain = vec![PERF_CONTEXT_KERNEL, KERNEL_IP];
        // The index of the step whose time is in `Sample::order`.
        let mut order_index = index;
        let until_return = steps[index..]
            .iter()
            .position(|(other, _, step)| other == tid && matches!(step, Step::Return { .. }));
        if let Some(distance) = until_return.filter(|_| *deferred)
            && let Step::Return { frames } = &steps[index + distance].2
        {
            chain.push(PERF_CONTEXT_USER);
            chain.extend(frames);
            order_index += distance;
        }
        let is_missing = *deferred && until_return.is_none();
        expected.push((
            is_missing,
            (index as u64 + 1, order_index as u64 + 1, chain),
        ));
    }
    expected
}

struct Chains;

impl Render for Chains {
    type Out = Vec<RenderedSample>;
    type Scratch = ();

    fn render(&self, _: &World, sample: &Sample<'_>, (): &mut (), out: &mut Vec<RenderedSample>) {
        let chain = sample.wire.callchain.expect("one").iter().collect();
        out.push((sample.wire.time.expect("one"), sample.order.time, chain));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // `threads` are those of the reader, not the recorded ones ([`THREADS`]).
    #[test]
    fn samples_get_the_next_deferred_callchain_of_their_thread(steps in steps(), big in any::<bool>(), threads in 1_usize..3) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let expected: Vec<RenderedSample> = expected(&steps).into_iter().map(|(_, sample)| sample).collect();
        let threads = NonZeroUsize::new(threads).expect("some");
        prop_assert_eq!(whole(&recording(&steps, endian), &Chains, threads).0, expected);
    }

    #[test]
    fn samples_of_a_pipe_wait_for_deferred_callchains(steps in steps(), size in 1_usize..3000) {
        let mut expected = expected(&steps);
        // Samples whose deferred callchain is missing wait until the end of the stream.
        expected.sort_by_key(|(is_missing, (time, order_time, _))| (*is_missing, *order_time, *time));
        let expected: Vec<RenderedSample> = expected.into_iter().map(|(_, sample)| sample).collect();
        let bytes = piped(&recording(&steps, Endian::Little)).0;
        let fails = false;
        let mut stream = stream(&bytes, size, fails);
        let workers = 1;
        prop_assert_eq!(streamed(&mut stream, &Chains, workers).0, expected);
    }
}
