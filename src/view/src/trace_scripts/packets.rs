//! Received and sent packets, as perf's script `netdev-times` shows them.

use std::io::{self, Write};

use rperf_analysis::trace_scripts::{
    PacketEndKind, PacketTimes, ReceivedPacket, Reception, SoftirqEvent,
};

/// The packets and numbers to print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketLayout {
    /// Whether received packets are shown.
    pub received: bool,
    /// Whether sent packets are shown.
    pub sent: bool,
    /// Only softirqs after an interrupt whose handler's name contains this text are shown, and only packets sent by a device
    /// whose name contains it. If it is empty, all are.
    pub device: String,
    /// Whether the numbers of packets that were not followed to their end are shown.
    pub unfinished_counts: bool,
}

/// Writes the softirqs with the packets that they receive, the sent packets, and the numbers of packets that were not followed
/// to their end, as selected by `layout`.
///
/// # Errors
/// Those of `out`.
pub fn write_packets(
    out: &mut dyn Write,
    times: &PacketTimes,
    layout: &PacketLayout,
) -> io::Result<()> {
    if layout.received {
        write_receptions(out, times, &layout.device)?;
    }
    if layout.sent {
        write_sent(out, times, &layout.device)?;
    }
    if layout.unfinished_counts {
        writeln!(out, "debug buffer status")?;
        writeln!(out, "----------------------------")?;
        let names = ["xmit Qdisc", "xmit netdevice", "receive"];
        for (name, counts) in names.iter().zip(times.followed()) {
            let (remaining, forgotten) = (counts.remaining, counts.forgotten);
            writeln!(out, "{name}:remain:{remaining} overflow:{forgotten}")?;
        }
    }
    Ok(())
}

fn write_receptions(out: &mut dyn Write, times: &PacketTimes, device: &str) -> io::Result<()> {
    for reception in times.receptions() {
        let mut interrupts = reception.interrupts.iter();
        if interrupts.any(|interrupt| interrupt.name.contains(device)) {
            write_reception(out, times, reception)?;
        }
    }
    Ok(())
}

fn write_sent(out: &mut dyn Write, times: &PacketTimes, device: &str) -> io::Result<()> {
    writeln!(
        out,
        "   dev    len      Qdisc               netdevice             free"
    )?;
    for packet in times
        .sent()
        .iter()
        .filter(|packet| packet.device.contains(device))
    {
        let [queued, passed, freed] = packet.times;
        let (seconds, micros) = seconds_and_micros(queued);
        writeln!(
            out,
            "{:>7} {:>5} {seconds:>6}.{micros:06}sec {:>12.3}msec      {:>12.3}msec",
            packet.device,
            packet.length,
            milliseconds(queued, passed),
            milliseconds(passed, freed)
        )?;
    }
    Ok(())
}

/// The vertical line between two events.
const JOINT: &str = "         |";

/// Writes a reception: a softirq with the interrupts before it and the packets that it receives.
fn write_reception(
    out: &mut dyn Write,
    times: &PacketTimes,
    reception: &Reception,
) -> io::Result<()> {
    let Some(first) = reception.interrupts.first() else {
        return Ok(());
    };
    let start = first.entered;
    let (seconds, micros) = seconds_and_micros(start);
    writeln!(out, "{seconds}.{micros:06}sec cpu={}", first.cpu)?;
    let since = |time| milliseconds(start, time);
    for interrupt in &reception.interrupts {
        let (number, name) = (interrupt.number, &interrupt.name);
        let entered = since(interrupt.entered);
        writeln!(
            out,
            "  irq_entry(+{entered:.3}msec irq={number}:{name})\n{JOINT}"
        )?;
        for (time, address) in &interrupt.received {
            let time = since(*time);
            writeln!(
                out,
                "{JOINT}---netif_rx(+{time:.3}msec skb={address:x})\n{JOINT}"
            )?;
        }
    }
    let entered = since(reception.entered);
    writeln!(out, "  softirq_entry(+{entered:.3}msec)\n{JOINT}")?;
    let last = reception.events.len().saturating_sub(1);
    for (index, event) in reception.events.iter().enumerate() {
        match event {
            SoftirqEvent::Poll { time, device } => {
                let time = since(*time);
                writeln!(out, "  napi_poll_exit(+{time:.3}msec {device})")?;
                writeln!(out, "{}", if index == last { "" } else { JOINT })?;
            }
            SoftirqEvent::Received(packet_index) => {
                if let Some(packet) = times.packet_at(*packet_index) {
                    write_received(out, packet, start)?;
                }
            }
        }
    }
    Ok(())
}

fn write_received(out: &mut dyn Write, packet: &ReceivedPacket, start: u64) -> io::Result<()> {
    let (time, address) = (milliseconds(start, packet.time), packet.address);
    let length = packet.length;
    writeln!(
        out,
        "{JOINT}---netif_receive_skb(+{time:.3}msec skb={address:x} len={length})"
    )?;
    if let Some(end) = &packet.end {
        let time = milliseconds(start, end.time);
        writeln!(out, "{JOINT}            |")?;
        match end.kind {
            PacketEndKind::Copied => {
                let (tid, comm) = (end.tid, &end.comm);
                writeln!(
                    out,
                    "{JOINT}      skb_copy_datagram_iovec(+{time:.3}msec {tid}:{comm})"
                )?;
            }
            PacketEndKind::Freed(location) => {
                writeln!(
                    out,
                    "{JOINT}      kfree_skb(+{time:.3}msec location={location:x})"
                )?;
            }
        }
    }
    writeln!(out, "{JOINT}")
}

/// The whole seconds and remaining microseconds of a time in nanoseconds.
fn seconds_and_micros(time: u64) -> (u64, u64) {
    (time / 1_000_000_000, time % 1_000_000_000 / 1000)
}

/// The milliseconds from `start` to `end`, which are in nanoseconds; negative if `end` is earlier.
fn milliseconds(start: u64, end: u64) -> f64 {
    end.wrapping_sub(start).cast_signed() as f64 / 1_000_000.0
}
