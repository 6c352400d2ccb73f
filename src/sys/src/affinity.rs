//! CPU affinity of the calling thread.

use std::io;
use std::ptr;

use crate::CpuList;

/// The size of the mask for sched_getaffinity(2) in 64-bit words, enough for 65536 CPUs: with a mask smaller than the kernel's,
/// the call fails with `EINVAL`.
const WORDS: usize = 1024;

/// Restricts the thread that creates it to certain CPUs until it is dropped, which restores the thread's former affinity.
/// Must be dropped by the same thread.
#[derive(Debug)]
pub struct AffinityGuard {
    before: Vec<u64>,
}

impl AffinityGuard {
    /// Restricts the calling thread to `cpus`.
    ///
    /// # Errors
    /// What sched_getaffinity(2) and sched_setaffinity(2) report: `EINVAL` if none of the CPUs is online and allowed.
    pub fn to(cpus: &CpuList) -> io::Result<Self> {
        let before = thread_mask()?;
        set_thread_mask(&words(cpus))?;
        Ok(Self { before })
    }

    /// Sets the affinity of the calling thread to other CPUs.
    ///
    /// # Errors
    /// What sched_setaffinity(2) reports.
    pub fn move_to(&mut self, cpus: &CpuList) -> io::Result<()> {
        set_thread_mask(&words(cpus))
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        // If these CPUs cannot be used any more, there is nothing to restore.
        let _ = set_thread_mask(&self.before);
    }
}

/// Returns the CPUs that the calling thread may run on.
///
/// # Errors
/// What sched_getaffinity(2) reports.
pub fn allowed_cpus() -> io::Result<CpuList> {
    let words = thread_mask()?;
    let cpus = (0_u32..).zip(words).flat_map(|(index, word)| {
        let bits = (0..u64::BITS).filter(move |bit| word >> bit & 1 != 0);
        bits.map(move |bit| index * u64::BITS + bit)
    });
    Ok(cpus.collect())
}

/// Returns the words of the CPUs' mask, which has one bit for each CPU.
fn words(cpus: &CpuList) -> Vec<u64> {
    let last = cpus.numbers().last().copied().unwrap_or_default();
    let mut words = vec![0; last as usize / 64 + 1];
    for cpu in cpus.numbers() {
        if let Some(word) = words.get_mut(*cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    words
}

fn thread_mask() -> io::Result<Vec<u64>> {
    let mut words = vec![0_u64; WORDS];
    let mask: *mut libc::cpu_set_t = words.as_mut_ptr().cast();
    // SAFETY: the kernel writes no more bytes than the size passed; 0 is the calling thread.
    match unsafe { libc::sched_getaffinity(0, size_of_val(words.as_slice()), mask) } {
        0 => Ok(words),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_thread_mask(words: &[u64]) -> io::Result<()> {
    let mask: *const libc::cpu_set_t = ptr::from_ref(words).cast();
    // SAFETY: the kernel reads no more bytes than the size passed; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(words), mask) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_until_the_guard_is_dropped() {
        let before = thread_mask().unwrap();
        let index = before.iter().position(|word| *word != 0).unwrap();
        let cpu = u32::try_from(index * 64).unwrap() + before[index].trailing_zeros();
        assert_eq!(allowed_cpus().unwrap().numbers().first(), Some(&cpu));
        let one: CpuList = std::iter::once(cpu).collect();
        let mut bound = AffinityGuard::to(&one).unwrap();
        assert_eq!(thread_mask().unwrap()[index], 1 << (cpu % 64));
        bound.move_to(&one).unwrap();
        drop(bound);
        assert_eq!(thread_mask().unwrap(), before);
        let none: CpuList = std::iter::once(65_535).collect();
        assert_eq!(
            AffinityGuard::to(&none).unwrap_err().raw_os_error(),
            Some(libc::EINVAL)
        );
        assert_eq!(thread_mask().unwrap(), before);
    }
}
