//! Where the calling thread runs.

use std::io;
use std::ptr;

use crate::CpuList;

/// Words of the widest mask that is asked for: as many CPUs as a [`CpuList`] may name.
const WORDS: usize = 1024;

/// The calling thread runs on these CPUs alone, until dropped; to be dropped by the same thread.
#[derive(Debug)]
pub struct Bound {
    before: Vec<u64>,
}

impl Bound {
    /// Binds the calling thread.
    ///
    /// # Errors
    /// What sched_setaffinity(2) reports: `EINVAL` where none of the CPUs is online and allowed.
    pub fn to(cpus: &CpuList) -> io::Result<Self> {
        let before = mask()?;
        set(&words(cpus))?;
        Ok(Self { before })
    }

    /// Binds it to others.
    ///
    /// # Errors
    /// As [`Bound::to`].
    pub fn move_to(&mut self, cpus: &CpuList) -> io::Result<()> {
        set(&words(cpus))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // It was in force before; only a CPU that went away since can be in the way.
        let _ = set(&self.before);
    }
}

/// One bit for each CPU.
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

fn mask() -> io::Result<Vec<u64>> {
    let mut words = vec![0_u64; WORDS];
    let place: *mut libc::cpu_set_t = words.as_mut_ptr().cast();
    // SAFETY: the kernel writes no more bytes than it is told there are; 0 is the calling thread.
    match unsafe { libc::sched_getaffinity(0, size_of_val(words.as_slice()), place) } {
        0 => Ok(words),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set(words: &[u64]) -> io::Result<()> {
    let place: *const libc::cpu_set_t = ptr::from_ref(words).cast();
    // SAFETY: the kernel reads no more bytes than it is told there are; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(words), place) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_until_the_guard_goes() {
        let before = mask().unwrap();
        let allowed = before.iter().position(|word| *word != 0).unwrap();
        let cpu = u32::try_from(allowed * 64).unwrap() + before[allowed].trailing_zeros();
        let one: CpuList = std::iter::once(cpu).collect();
        let mut bound = Bound::to(&one).unwrap();
        assert_eq!(mask().unwrap()[allowed], 1 << (cpu % 64));
        bound.move_to(&one).unwrap();
        drop(bound);
        assert_eq!(mask().unwrap(), before);
        let none: CpuList = std::iter::once(65_535).collect();
        assert_eq!(
            Bound::to(&none).unwrap_err().raw_os_error(),
            Some(libc::EINVAL)
        );
        assert_eq!(mask().unwrap(), before);
    }
}
