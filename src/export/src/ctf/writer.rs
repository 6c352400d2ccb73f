//! Streams: the packets of each CPU.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::CtfBlock;
use super::render::CtfContent;

/// First word of each packet.
const MAGIC: u32 = 0xC1FC_1FC1;
/// Bytes before a packet's events: magic, stream, and six fields of the context.
const PACKET_HEADER_BYTES: usize = 52;
/// A packet ends with the event that brings its events to this size, in bytes.
const FULL_PACKET_BYTES: usize = 256 << 10;

/// Writes events to one stream for each CPU. `S` opens the output of a CPU's stream.
pub struct CtfWriter<S, W> {
    open: S,
    streams: BTreeMap<u32, Stream<W>>,
    /// Events from before the recording (their time is 0), which get the time of its first event; `None` once that is known.
    early: Option<EarlyEvents>,
    /// Bytes written so far.
    bytes: u64,
}

/// Class, CPU and payload of each event.
type EarlyEvents = Vec<(u32, u32, Vec<u8>)>;

struct Stream<W> {
    out: W,
    cpu: u32,
    /// Events of the current packet.
    events: Vec<u8>,
    /// Times at which the current packet begins and ends, in nanoseconds; `None` if no packet is begun.
    times: Option<(u64, u64)>,
    /// Time of the last event or loss of the stream.
    last: u64,
    /// Whether a packet was written.
    has_packets: bool,
    /// Records lost since the beginning of the stream.
    lost: u64,
}

impl<S, W> CtfWriter<S, W>
where
    S: FnMut(u32) -> io::Result<W>,
    W: Write,
{
    /// Creates a trace without streams.
    pub fn new(open: S) -> Self {
        Self {
            open,
            streams: BTreeMap::new(),
            early: Some(Vec::new()),
            bytes: 0,
        }
    }

    /// Adds the events of the next block (consecutive records that one thread encoded).
    ///
    /// # Errors
    /// A stream cannot be opened or written.
    pub fn add(&mut self, block: &CtfBlock) -> io::Result<()> {
        let mut start = 0;
        for event in &block.events {
            let payload = block.payloads.get(start..event.end).unwrap_or_default();
            start = event.end;
            match event.content {
                CtfContent::Lost(count) => {
                    let stream = self.stream(event.cpu)?;
                    let bytes = stream.add_loss(event.time, count)?;
                    self.bytes += bytes;
                }
                CtfContent::Event(class) => self.event(event.time, event.cpu, class, payload)?,
            }
            self.flush_full(event.cpu)?;
        }
        Ok(())
    }

    /// Ends all streams; returns their total size in bytes.
    ///
    /// # Errors
    /// A stream cannot be written.
    pub fn finish(mut self) -> io::Result<u64> {
        self.write_early(0)?;
        let mut bytes = self.bytes;
        for stream in self.streams.values_mut() {
            bytes += stream.flush()?;
            stream.out.flush()?;
        }
        Ok(bytes)
    }

    fn event(&mut self, time: u64, cpu: u32, class: u32, payload: &[u8]) -> io::Result<()> {
        match &mut self.early {
            Some(early) if time == 0 => {
                early.push((class, cpu, payload.to_vec()));
                return Ok(());
            }
            Some(_) => self.write_early(time)?,
            None => {}
        }
        self.stream(cpu)?.event(time, class, payload);
        Ok(())
    }

    /// Adds the events from before the recording, with this time.
    fn write_early(&mut self, time: u64) -> io::Result<()> {
        for (class, cpu, payload) in self.early.take().unwrap_or_default() {
            self.stream(cpu)?.event(time, class, &payload);
            self.flush_full(cpu)?;
        }
        Ok(())
    }

    fn flush_full(&mut self, cpu: u32) -> io::Result<()> {
        if let Some(stream) = self.streams.get_mut(&cpu)
            && stream.is_full()
        {
            self.bytes += stream.flush()?;
        }
        Ok(())
    }

    fn stream(&mut self, cpu: u32) -> io::Result<&mut Stream<W>> {
        use std::collections::btree_map::Entry;
        match self.streams.entry(cpu) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(Stream {
                out: (self.open)(cpu)?,
                cpu,
                events: Vec::new(),
                times: None,
                last: 0,
                has_packets: false,
                lost: 0,
            })),
        }
    }
}

impl<W: Write> Stream<W> {
    fn event(&mut self, time: u64, class: u32, payload: &[u8]) {
        let time = self.advance(time);
        self.events.extend(class.to_le_bytes());
        self.events.extend(time.to_le_bytes());
        self.events.extend_from_slice(payload);
    }

    /// Extends the packet to `time`, or to the last time of the stream if that is later: readers refuse times that
    /// decrease. Returns the event's time.
    fn advance(&mut self, time: u64) -> u64 {
        let time = time.max(self.last);
        let (begin, _) = self.times.unwrap_or((time, time));
        self.times = Some((begin, time));
        self.last = time;
        time
    }

    /// Counts lost records, in a packet without events: readers compare the counts of consecutive packets. Returns the
    /// bytes written.
    fn add_loss(&mut self, time: u64, count: u64) -> io::Result<u64> {
        let time = time.max(self.last);
        if !self.has_packets && self.times.is_none() {
            // A loss before any event needs a packet to compare with.
            self.times = Some((time, time));
        }
        let flushed = self.flush()?;
        self.lost = self.lost.saturating_add(count);
        self.times = Some((time, time));
        self.last = time;
        Ok(flushed + self.flush()?)
    }

    fn is_full(&self) -> bool {
        self.events.len() >= FULL_PACKET_BYTES
    }

    /// Writes and ends the current packet, if one is begun ([`Stream::times`]). Returns its size in bytes, otherwise 0.
    fn flush(&mut self) -> io::Result<u64> {
        let Some((begin, end)) = self.times.take() else {
            return Ok(0);
        };
        self.has_packets = true;
        let size = (PACKET_HEADER_BYTES + self.events.len()) as u64;
        let mut header = Vec::with_capacity(PACKET_HEADER_BYTES);
        header.extend(MAGIC.to_le_bytes());
        let stream_class = 0_u32;
        header.extend(stream_class.to_le_bytes());
        // The sizes of the content and of the packet are in bits, and equal: packets have no padding.
        let bits = 8 * size;
        for word in [begin, end, bits, bits, self.lost] {
            header.extend(word.to_le_bytes());
        }
        header.extend(self.cpu.to_le_bytes());
        self.out.write_all(&header)?;
        self.out.write_all(&self.events)?;
        self.events.clear();
        Ok(size)
    }
}
