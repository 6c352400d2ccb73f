//! Packets that are received in interrupts and softirqs, and packets that are sent.
//!
//! A received packet is followed from the network interrupt through the softirq NET_RX, which polls the device, to the
//! process that copies the data, or to where the packet is freed. A sent packet is followed from the queue of the device
//! through the driver to where it is freed.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use super::{EventFields, ScriptSample};

/// The number of the softirq NET_RX.
const NET_RX: i64 = 3;
/// Maximum number of packets of each kind (queued, passed to the driver, received) that are followed at a time, as in perf. If
/// there are more, the oldest one is forgotten.
const MAX_FOLLOWED: usize = 65_536;

/// A hardware interrupt. Each one in a [`Reception`] raised NET_RX or received a packet, or its end was not seen.
#[derive(Debug, Clone)]
pub struct Interrupt {
    /// Its number.
    pub number: i64,
    /// The name of its handler.
    pub name: String,
    /// The CPU.
    pub cpu: u32,
    /// Time of its entry in nanoseconds.
    pub entered: u64,
    /// Packets passed to the network stack by the handler: time in nanoseconds, and address of the packet.
    pub received: Vec<(u64, i64)>,
    /// Whether it raised NET_RX or received a packet.
    is_of_network: bool,
}

/// An event in a softirq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SoftirqEvent {
    /// A poll of a device has ended.
    Poll {
        /// Time in nanoseconds.
        time: u64,
        /// The name of the device.
        device: String,
    },
    /// A packet is passed to the network stack: its index for [`PacketTimes::packet_at`].
    Received(usize),
}

/// A packet that is received in a softirq.
#[derive(Debug, Clone)]
pub struct ReceivedPacket {
    /// Time in nanoseconds.
    pub time: u64,
    /// Its address.
    pub address: i64,
    /// Its length in bytes.
    pub length: i64,
    /// Its end, if it was seen.
    pub end: Option<PacketEnd>,
}

/// The end of a received packet in the network stack.
#[derive(Debug, Clone)]
pub struct PacketEnd {
    /// Time in nanoseconds.
    pub time: u64,
    /// The thread in which it ends.
    pub tid: i64,
    /// The thread's name.
    pub comm: String,
    /// The cause of the end.
    pub kind: PacketEndKind,
}

/// The cause of the end of a received packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketEndKind {
    /// The packet's data are copied for a program.
    Copied,
    /// Kernel code at this address frees the packet, which is dropped.
    Freed(i64),
}

/// A softirq NET_RX with the interrupts on its CPU since the previous one.
#[derive(Debug, Clone)]
pub struct Reception {
    /// The interrupts, in order; at least one.
    pub interrupts: Vec<Interrupt>,
    /// Time in nanoseconds at which the softirq began.
    pub entered: u64,
    /// The events in the softirq.
    pub events: Vec<SoftirqEvent>,
}

/// A packet that was sent and freed.
#[derive(Debug, Clone)]
pub struct SentPacket {
    /// The name of the device.
    pub device: String,
    /// Its length in bytes.
    pub length: i64,
    /// Times in nanoseconds at which it was queued, passed to the driver, and freed.
    pub times: [u64; 3],
}

/// At most [`MAX_FOLLOWED`] packets by address. Of several packets at an address, the latest is taken first.
#[derive(Debug)]
struct FollowedPackets<T> {
    /// By sequence number, in order of their arrival: the address and the packet.
    packets: BTreeMap<u64, (i64, T)>,
    /// By address: the sequence numbers of the packets there, ascending.
    numbers: FxHashMap<i64, VecDeque<u64>>,
    /// The sequence number of the packet that was added last.
    last: u64,
    /// The number of packets that were removed because there were too many.
    forgotten: u64,
}

impl<T> Default for FollowedPackets<T> {
    fn default() -> Self {
        Self {
            packets: BTreeMap::new(),
            numbers: FxHashMap::default(),
            last: 0,
            forgotten: 0,
        }
    }
}

impl<T> FollowedPackets<T> {
    fn add(&mut self, address: i64, packet: T) {
        self.last += 1;
        self.packets.insert(self.last, (address, packet));
        self.numbers
            .entry(address)
            .or_default()
            .push_back(self.last);
        if self.packets.len() > MAX_FOLLOWED
            && let Some((_, (oldest_address, _))) = self.packets.pop_first()
        {
            self.forgotten += 1;
            if let Some(numbers) = self.numbers.get_mut(&oldest_address) {
                numbers.pop_front();
                if numbers.is_empty() {
                    self.numbers.remove(&oldest_address);
                }
            }
        }
    }

    /// Removes the latest packet at an address, and returns it.
    fn take(&mut self, address: i64) -> Option<T> {
        let numbers = self.numbers.get_mut(&address)?;
        let number = numbers.pop_back();
        if numbers.is_empty() {
            self.numbers.remove(&address);
        }
        let (_, packet) = self.packets.remove(&number?)?;
        Some(packet)
    }
}

/// A packet in the queue of a device, or one that was passed to the driver and is not freed yet.
#[derive(Debug)]
struct QueuedPacket {
    device: String,
    length: i64,
    queued: u64,
    /// When it was passed to the driver; 0 before.
    passed: u64,
}

/// Numbers of packets that are still followed, and of those that were forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedCounts {
    /// Packets that are still followed.
    pub remaining: usize,
    /// Packets that were forgotten, since too many were followed.
    pub forgotten: u64,
}

/// Received packets in the order in which their softirqs ended, and sent packets in the order in which they were freed.
#[derive(Debug, Default)]
pub struct PacketTimes {
    /// By CPU: the interrupts since the end of the last softirq NET_RX.
    interrupts: FxHashMap<u32, Vec<Interrupt>>,
    /// By CPU: the start of the running softirq, and the events in it.
    softirqs: FxHashMap<u32, (u64, Vec<SoftirqEvent>)>,
    receptions: Vec<Reception>,
    /// All packets received in softirqs.
    packets: Vec<ReceivedPacket>,
    /// Those whose end was not seen yet: indices in `packets`.
    received: FollowedPackets<usize>,
    /// Packets to send that are in the queue of a device.
    queued: FollowedPackets<QueuedPacket>,
    /// Packets that were passed to the driver and are not freed yet.
    passed: FollowedPackets<QueuedPacket>,
    sent: Vec<SentPacket>,
}

/// Values of [`ScriptSample::kind`]: the position of each tracepoint in [`PacketTimes::EVENTS`].
mod kind {
    pub(super) const IRQ_ENTRY: usize = 0;
    pub(super) const IRQ_EXIT: usize = 1;
    pub(super) const SOFTIRQ_ENTRY: usize = 2;
    pub(super) const SOFTIRQ_EXIT: usize = 3;
    pub(super) const SOFTIRQ_RAISE: usize = 4;
    pub(super) const POLL: usize = 5;
    pub(super) const NETIF_RECEIVE: usize = 6;
    pub(super) const NETIF_RX: usize = 7;
    pub(super) const QUEUE: usize = 8;
    pub(super) const XMIT: usize = 9;
    pub(super) const KFREE: usize = 10;
    pub(super) const CONSUME: usize = 11;
    pub(super) const COPY: usize = 12;
}

impl PacketTimes {
    /// The tracepoints whose samples are needed. `number(0)`, `number(1)` and `text` of a sample are the fields named here.
    pub const EVENTS: &'static [EventFields] = &[
        event("irq:irq_handler_entry", &["irq"], Some("name")),
        event("irq:irq_handler_exit", &["irq"], None),
        event("irq:softirq_entry", &["vec"], None),
        event("irq:softirq_exit", &["vec"], None),
        event("irq:softirq_raise", &["vec"], None),
        event("napi:napi_poll", &[], Some("dev_name")),
        event("net:netif_receive_skb", &["skbaddr", "len"], None),
        event("net:netif_rx", &["skbaddr"], None),
        event("net:net_dev_queue", &["skbaddr", "len"], Some("name")),
        event("net:net_dev_xmit", &["skbaddr", "rc"], None),
        event("skb:kfree_skb", &["skbaddr", "location"], None),
        event("skb:consume_skb", &["skbaddr"], None),
        event("skb:skb_copy_datagram_iovec", &["skbaddr"], None),
    ];

    /// Adds a sample.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        let Some(kind) = sample.kind else {
            return;
        };
        let is_softirq = matches!(
            kind,
            kind::SOFTIRQ_ENTRY | kind::SOFTIRQ_EXIT | kind::SOFTIRQ_RAISE
        );
        if is_softirq && sample.number(0) != NET_RX {
            return;
        }
        match kind {
            kind::IRQ_ENTRY => self
                .interrupts
                .entry(sample.cpu)
                .or_default()
                .push(Interrupt {
                    number: sample.number(0),
                    name: sample.text.to_owned(),
                    cpu: sample.cpu,
                    entered: sample.time,
                    received: Vec::new(),
                    is_of_network: false,
                }),
            kind::IRQ_EXIT => self.leave_interrupt(sample),
            kind::SOFTIRQ_ENTRY => {
                let begun = (sample.time, Vec::new());
                self.softirqs.insert(sample.cpu, begun);
            }
            kind::SOFTIRQ_EXIT => self.leave_softirq(sample.cpu),
            kind::SOFTIRQ_RAISE | kind::NETIF_RX => {
                if let Some(interrupt) = self
                    .interrupts
                    .get_mut(&sample.cpu)
                    .and_then(|interrupts| interrupts.last_mut())
                {
                    interrupt.is_of_network = true;
                    if kind == kind::NETIF_RX {
                        interrupt.received.push((sample.time, sample.number(0)));
                    }
                }
            }
            kind::POLL => {
                if let Some((_, events)) = self.softirqs.get_mut(&sample.cpu) {
                    events.push(SoftirqEvent::Poll {
                        time: sample.time,
                        device: sample.text.to_owned(),
                    });
                }
            }
            kind::NETIF_RECEIVE => self.receive(sample),
            _ => self.packet(kind, sample),
        }
    }

    /// Handles the end of an interrupt. Discards the CPU's latest interrupt if it neither raised NET_RX nor received a packet,
    /// or if it is not the one that ends.
    fn leave_interrupt(&mut self, sample: &ScriptSample<'_>) {
        let Some(interrupts) = self.interrupts.get_mut(&sample.cpu) else {
            return;
        };
        let is_kept = |last: &Interrupt| last.number == sample.number(0) && last.is_of_network;
        if !interrupts.last().is_some_and(is_kept) {
            interrupts.pop();
        }
    }

    /// Ends the CPU's softirq NET_RX. It is kept if its start was seen and the CPU has kept interrupts.
    fn leave_softirq(&mut self, cpu: u32) {
        let interrupts = self.interrupts.remove(&cpu).unwrap_or_default();
        let softirq = self.softirqs.remove(&cpu);
        if let Some((entered, events)) = softirq.filter(|_| !interrupts.is_empty()) {
            self.receptions.push(Reception {
                interrupts,
                entered,
                events,
            });
        }
    }

    /// Follows a packet that is received in a softirq.
    fn receive(&mut self, sample: &ScriptSample<'_>) {
        let Some((_, events)) = self.softirqs.get_mut(&sample.cpu) else {
            return;
        };
        let (address, index) = (sample.number(0), self.packets.len());
        events.push(SoftirqEvent::Received(index));
        self.packets.push(ReceivedPacket {
            time: sample.time,
            address,
            length: sample.number(1),
            end: None,
        });
        self.received.add(address, index);
    }

    /// Handles an event of a packet to send, or the end of a received packet.
    fn packet(&mut self, kind: usize, sample: &ScriptSample<'_>) {
        let address = sample.number(0);
        match kind {
            kind::QUEUE => self.queued.add(
                address,
                QueuedPacket {
                    device: sample.text.to_owned(),
                    length: sample.number(1),
                    queued: sample.time,
                    passed: 0,
                },
            ),
            kind::XMIT => {
                // Values of `rc` other than 0 are failures, after which the packet stays in the queue.
                if sample.number(1) == 0
                    && let Some(packet) = self.queued.take(address)
                {
                    let passed = sample.time;
                    self.passed.add(address, QueuedPacket { passed, ..packet });
                }
            }
            kind::CONSUME => {
                self.free_sent(address, sample.time);
            }
            kind::KFREE => {
                // A packet that is freed in the queue of the device was not sent, and is not followed any more.
                let is_outgoing =
                    self.queued.take(address).is_some() || self.free_sent(address, sample.time);
                if !is_outgoing {
                    self.end_received(PacketEndKind::Freed(sample.number(1)), sample);
                }
            }
            kind::COPY => self.end_received(PacketEndKind::Copied, sample),
            _ => {}
        }
    }

    /// Keeps a freed packet as sent if it was passed to a driver; returns whether it was.
    fn free_sent(&mut self, address: i64, time: u64) -> bool {
        let Some(packet) = self.passed.take(address) else {
            return false;
        };
        self.sent.push(SentPacket {
            device: packet.device,
            length: packet.length,
            times: [packet.queued, packet.passed, time],
        });
        true
    }

    /// Sets the end of the latest received packet at the sample's address.
    fn end_received(&mut self, kind: PacketEndKind, sample: &ScriptSample<'_>) {
        let index = self.received.take(sample.number(0));
        if let Some(packet) = index.and_then(|index| self.packets.get_mut(index)) {
            packet.end = Some(PacketEnd {
                time: sample.time,
                tid: sample.tid,
                comm: sample.comm.to_owned(),
                kind,
            });
        }
    }

    /// The softirqs NET_RX that followed interrupts, in the order in which the softirqs ended.
    #[must_use]
    pub fn receptions(&self) -> &[Reception] {
        &self.receptions
    }

    /// The received packet with this index, the one in [`SoftirqEvent::Received`].
    #[must_use]
    pub fn packet_at(&self, index: usize) -> Option<&ReceivedPacket> {
        self.packets.get(index)
    }

    /// The packets that were sent and freed.
    #[must_use]
    pub fn sent(&self) -> &[SentPacket] {
        &self.sent
    }

    /// Returns the counts of the packets that are queued, of those that were passed to a driver, and of those that were received.
    #[must_use]
    pub fn followed(&self) -> [FollowedCounts; 3] {
        fn counts<T>(packets: &FollowedPackets<T>) -> FollowedCounts {
            FollowedCounts {
                remaining: packets.packets.len(),
                forgotten: packets.forgotten,
            }
        }
        [
            counts(&self.queued),
            counts(&self.passed),
            counts(&self.received),
        ]
    }
}

const fn event(
    tracepoint: &'static str,
    numbers: &'static [&'static str],
    text: Option<&'static str>,
) -> EventFields {
    EventFields {
        tracepoint,
        numbers,
        text,
    }
}
