//! Records of changes to kernel code, of deferred callchains and of counter values.

use crate::{Cursor, DecodeError, Encoder, U64s};

/// `PERF_RECORD_TEXT_POKE`: the kernel modified its own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPoke<'a> {
    /// Address of the code.
    pub addr: u64,
    /// The code before the change; empty if code was added.
    pub old: &'a [u8],
    /// The code after the change; empty if code was removed.
    pub new: &'a [u8],
}

/// `PERF_RECORD_CALLCHAIN_DEFERRED`: the user part of callchains with this cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallchainDeferred<'a> {
    /// Identifies the callchains.
    pub cookie: u64,
    /// Addresses and context markers, innermost first.
    pub ips: U64s<'a>,
}

/// `PERF_RECORD_READ`: the value of an inherited counter when its task exited (`inherit_stat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The result of reading the counter, laid out by the event's `read_format`. Ends with the sample id trailer if it was
    /// not split off before decoding.
    pub words: U64s<'a>,
}

impl<'a> TextPoke<'a> {
    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let addr = at.u64("addr")?;
        let (old, new) = (at.u16("old_len")?, at.u16("new_len")?);
        Ok(Self {
            addr,
            old: at.take(usize::from(old), "old bytes")?,
            new: at.take(usize::from(new), "new bytes")?,
        })
    }

    /// Appends the body; `old` and `new` are truncated to 65535 bytes each, the maximum of their length fields.
    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        let max_len = usize::from(u16::MAX);
        let truncated = |code: &'a [u8]| code.get(..max_len).unwrap_or(code);
        let (old, new) = (truncated(self.old), truncated(self.new));
        to.u64(self.addr);
        for code in [old, new] {
            to.u16(u16::try_from(code.len()).unwrap_or(u16::MAX));
        }
        to.bytes(old);
        to.bytes(new);
        // The body is padded to a multiple of eight bytes. `size` omits the address, which has eight bytes.
        let size = 2 * size_of::<u16>() + old.len() + new.len();
        to.zeros(size.next_multiple_of(8) - size);
    }
}

impl<'a> CallchainDeferred<'a> {
    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let (cookie, count) = (at.u64("cookie")?, at.u64("callchain nr")?);
        let ips = at.u64s(count, "callchain")?;
        Ok(Self { cookie, ips })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u64(self.cookie);
        to.u64(self.ips.len() as u64);
        self.ips.iter().for_each(|ip| to.u64(ip));
    }
}

impl<'a> Read<'a> {
    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let (pid, tid) = (at.u32("pid")?, at.u32("tid")?);
        let count = at.rest().len() / 8;
        let words = at.u64s(count as u64, "read")?;
        Ok(Self { pid, tid, words })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u32(self.pid);
        to.u32(self.tid);
        self.words.iter().for_each(|word| to.u64(word));
    }
}
