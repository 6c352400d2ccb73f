//! 64-bit Arm: callchains by frame pointers miss the caller of a function without a frame. Where the link register was
//! recorded beside them, it is put in.

use rperf_replay::{Machine, Sample};
use rperf_unwind::{Arch, Leaf, Unwinder};
use rperf_wire::{Endian, PERF_CONTEXT_MAX, PERF_CONTEXT_USER, RegsAbi, U64s};

use crate::chain;
use crate::resolver::Resolver;
use crate::user_stacks::{Space, StackScratch, UserStacks};

/// `PERF_REG_ARM64_LR`: what perf asks the kernel for with `-g`, and nothing else.
const LINK_REGISTER: u32 = 30;

/// The `sample_regs_user` of recordings that tell it.
pub const LEAF_REGISTERS: u64 = 1 << LINK_REGISTER;

/// 64-bit x86: tells whether callchains by frame pointers miss a caller, where nothing was recorded that would tell which.
#[derive(Default)]
pub struct HiddenCallers {
    unwinder: Unwinder,
}

impl HiddenCallers {
    /// Whether the caller of the innermost frame of user space, at `ip`, is missing; `None` where nothing says so. `machine`
    /// is the architecture of the recording, as uname(2) says it.
    pub fn are_missing(
        &mut self,
        (resolver, machine): (&Resolver<'_>, &str),
        sample: &Sample<'_>,
        ip: u64,
    ) -> Option<bool> {
        if sample.machine() != Machine::Host {
            return None;
        }
        let arch = Arch::of_task(machine, RegsAbi::Bits64)?;
        let space = Space::new(resolver, sample);
        self.unwinder.hides_caller(arch, ip, &space)
    }
}

impl UserStacks<'_, '_> {
    /// The callchain of a sample without a copy of the stack, cut to `limit` frames; `None` where it is right as it stands.
    pub(crate) fn without_copy<'s>(
        &self,
        sample: &Sample<'_>,
        limit: usize,
        scratch: &'s mut StackScratch,
    ) -> Option<U64s<'s>> {
        let recorded = sample.wire.callchain?;
        let missing = self.missing(sample, recorded, scratch);
        if missing.is_none() && recorded.len() <= limit {
            return None;
        }
        let endian = self.endian();
        let bytes = recorded.as_bytes();
        let kept = chain::bytes_within(recorded, limit).unwrap_or_default();
        let kept = bytes.get(..kept).unwrap_or_default();
        let into = scratch.empty_chain();
        match missing {
            // Of a chain that ends before it, no frame is missing.
            Some((at, caller)) if at < kept.len() => {
                let (inner, outer) = kept.split_at(at);
                into.extend_from_slice(inner);
                into.extend_from_slice(&match endian {
                    Endian::Little => caller.to_le_bytes(),
                    Endian::Big => caller.to_be_bytes(),
                });
                into.extend_from_slice(outer);
            }
            _ => into.extend_from_slice(kept),
        }
        Some(U64s::new(into, endian))
    }

    /// Where in the bytes of the callchain a frame is missing, and its address. As in perf, a chain that has no caller at
    /// all isn't looked at.
    fn missing(
        &self,
        sample: &Sample<'_>,
        recorded: U64s<'_>,
        scratch: &mut StackScratch,
    ) -> Option<(usize, u64)> {
        let registers = sample.wire.regs_user.as_ref()?;
        if registers.mask != LEAF_REGISTERS || sample.machine() != Machine::Host {
            return None;
        }
        let arch = self
            .arch_of(registers.abi)
            .filter(|arch| *arch == Arch::Aarch64)?;
        let marker = recorded.iter().position(|word| word == PERF_CONTEXT_USER)?;
        let mut user = recorded.iter().skip(marker + 1);
        let (ip, next) = (user.next()?, user.next()?);
        if ip.max(next) >= PERF_CONTEXT_MAX {
            return None;
        }
        let link = registers.get(LINK_REGISTER)?;
        let leaf = Leaf { arch, ip, link };
        let space = Space::new(self.resolver(), sample);
        let caller = scratch.unwinder().caller_of_leaf(leaf, &space)?;
        (caller != next).then_some(((marker + 2) * 8, caller))
    }
}
