//! Waits for futexes, as the BPF program of `lock record --user` writes them: each with the memory around the futex, from which
//! the thread that holds it is determined.

use super::futex_holder::{FutexCall, FutexHolder, FutexMemory};

/// The name of the event in a recording.
pub const FUTEX_WAITS: &str = "futex-waits";

// Offsets in bytes, as in `rperf_bpf`. The header: number of waits, process.
const COUNT: usize = 0;
const PROCESS: usize = 4;
/// The size of the header, which the waits follow.
const HEADER_SIZE: usize = 8;
// Offsets in a wait: thread, its id in its PID namespace, address, operation, value, the memory around the futex, and 24 bytes
// that begin `THREAD_ID` bytes before the futex: if the futex is the id in a thread descriptor of glibc (`struct pthread`), the
// start of this descriptor. The kernel clears the id when the thread ends, and pthread_join waits for that.
const THREAD: usize = 0;
const OWN_THREAD: usize = 4;
const ADDRESS: usize = 8;
const OPERATION: usize = 16;
const VALUE: usize = 20;
const MEMORY: usize = 24;
const DESCRIPTOR: usize = 88;
/// The size of a wait.
const WAIT_SIZE: usize = 112;
/// The offset of the id in the thread descriptor on x86-64. The descriptor begins with a pointer to itself, and has another one
/// at offset 16.
const THREAD_ID: u64 = 0x2d0;

/// A new wait for a futex, and the chain of waits behind it: that of the holder, that of the holder's holder, and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedWaits {
    /// The process.
    pub pid: u32,
    /// The first is the new wait. Each of the others is the wait of the thread that holds the futex of the wait before it, at the
    /// same time.
    pub waits: Vec<CapturedWait>,
}

/// A wait for a futex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedWait {
    /// The waiting thread.
    pub tid: u32,
    /// Its id in its own PID namespace, which user programs store in mutexes.
    pub own_tid: u32,
    /// The address of the futex.
    pub address: u64,
    /// The call.
    pub call: FutexCall,
    /// The holder, with its id in the PID namespace of the waiting thread.
    pub holder: Option<FutexHolder>,
}

impl CapturedWaits {
    /// Decodes the raw data of a sample in this machine's byte order. `None` if they are truncated or have no waits.
    #[must_use]
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let count = usize::try_from(word(raw, COUNT)?).ok()?;
        let (waits, _) = raw.get(HEADER_SIZE..)?.as_chunks::<WAIT_SIZE>();
        let waits = waits.get(..count).filter(|waits| !waits.is_empty())?;
        let waits = waits.iter().map(|wait| CapturedWait::decode(wait));
        Some(Self {
            pid: word(raw, PROCESS)?,
            waits: waits.collect::<Option<_>>()?,
        })
    }
}

impl CapturedWait {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let address = double_word(bytes, ADDRESS)?;
        let call = FutexCall {
            operation: word(bytes, OPERATION)?,
            value: word(bytes, VALUE)?,
        };
        let memory = FutexMemory::around(bytes.get(MEMORY..DESCRIPTOR)?);
        // If the futex is the id in a thread descriptor, the descriptor begins at this address, and both pointers equal it.
        let descriptor_address = address.checked_sub(THREAD_ID);
        let pointers = [DESCRIPTOR, DESCRIPTOR + 16].map(|at| double_word(bytes, at));
        let mut pointers = pointers.iter();
        let is_thread_id =
            descriptor_address.is_some() && pointers.all(|pointer| *pointer == descriptor_address);
        Some(Self {
            tid: word(bytes, THREAD)?,
            own_tid: word(bytes, OWN_THREAD)?,
            address,
            call,
            holder: call.holder(&memory, is_thread_id),
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn double_word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lock::FutexObject;

    /// Returns the bytes of a wait: `call` is the operation and the value, `words` the memory from the futex on, and `descriptor`
    /// the value of both pointers in the thread descriptor.
    fn wait(tid: u32, address: u64, call: [u32; 2], words: [u32; 6], descriptor: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut add =
            |words: &[u32]| bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        add(&[tid, tid]);
        add(&[address as u32, (address >> 32) as u32]);
        add(&call);
        // The memory around the futex: 16 bytes before it, then `words` and zeros.
        add(&[0; 4]);
        add(&words);
        add(&[0; 6]);
        let pointer = [descriptor as u32, (descriptor >> 32) as u32];
        add(&[pointer, [0; 2], pointer].concat());
        bytes
    }

    #[test]
    fn waits_are_decoded_with_their_holders() {
        // FUTEX_WAIT (private) for a mutex with waiters: lock 2, count 0, owner 7, one user.
        let mutex = wait(5, 0x7000_0000_1000, [0x80, 2], [2, 0, 7, 1, 0, 0], 0);
        // FUTEX_WAIT_BITSET with FUTEX_CLOCK_REALTIME for the end of thread 8: the futex is the id in its descriptor.
        let joined = wait(
            7,
            0x7000_0000_22d0,
            [0x109, 8],
            [8, 0, 0, 0, 0, 0],
            0x7000_0000_2000,
        );
        let header: Vec<u8> = [2_u32, 5]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        // With padding at the end, as the raw data of samples have.
        let raw = [header, mutex, joined, vec![0; 4]].concat();
        let decoded = CapturedWaits::decode(&raw).unwrap();
        let holders: Vec<_> = decoded
            .waits
            .iter()
            .map(|wait| wait.holder.map(|holder| (holder.tid, holder.object)))
            .collect();
        let expected = [(7, FutexObject::Mutex), (8, FutexObject::Thread)];
        assert_eq!(holders, expected.map(Some));
        assert_eq!(
            (decoded.pid, decoded.waits[1].address),
            (5, 0x7000_0000_22d0)
        );
        // Truncated within the second wait.
        assert_eq!(CapturedWaits::decode(&raw[..200]), None);
    }

    proptest! {
        #[test]
        fn decoding_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            drop(CapturedWaits::decode(&bytes));
        }
    }
}
