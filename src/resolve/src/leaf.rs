//! Frame-pointer callchains lack the caller of a function without a frame. On 64-bit Arm that caller is inserted, if the
//! link register was recorded; on 64-bit x86, only its absence is detected.

use rperf_replay::{Machine, Sample};
use rperf_unwind::{Arch, LeafSample, Unwinder};
use rperf_wire::{Endian, PERF_CONTEXT_MAX, PERF_CONTEXT_USER, RegsAbi, U64s};

use crate::AddressContext;
use crate::chain;
use crate::resolver::Resolver;
use crate::user_stacks::{StackScratch, UserSpace, UserStacks};

/// `PERF_REG_ARM64_LR`: the only register that perf requests for `-g`.
const LINK_REGISTER: u32 = 30;

/// The `sample_regs_user` of recordings with the link register only.
pub const LEAF_REGISTERS: u64 = 1 << LINK_REGISTER;

/// 64-bit x86: detects whether frame-pointer callchains lack a caller, which can't be recovered.
#[derive(Default)]
pub struct LeafCallerCheck {
    unwinder: Unwinder,
}

impl LeafCallerCheck {
    /// Whether the caller of the innermost user frame at `ip` is missing; `None` if unknown.
    /// `uname_machine` is the architecture of the recording from uname(2).
    pub fn is_caller_missing(
        &mut self,
        resolver: &Resolver<'_>,
        uname_machine: &str,
        sample: &Sample<'_>,
        ip: u64,
    ) -> Option<bool> {
        if sample.machine() != Machine::Host {
            return None;
        }
        let arch = Arch::of_task(uname_machine, RegsAbi::Bits64)?;
        let space = UserSpace::new(resolver, AddressContext::of(sample));
        self.unwinder.is_caller_missing(arch, ip, &space)
    }
}

impl UserStacks<'_, '_> {
    /// The callchain of a sample without a stack copy, truncated to `limit` recorded frames, and with the missing caller
    /// inserted, which does not count towards `limit`; `None` if the recorded chain needs no change.
    pub(crate) fn chain_without_stack_copy<'s>(
        &self,
        sample: &Sample<'_>,
        limit: usize,
        scratch: &'s mut StackScratch,
    ) -> Option<U64s<'s>> {
        let recorded = sample.wire.callchain?;
        let missing = self.missing_caller(sample, recorded, scratch);
        if missing.is_none() && recorded.len() <= limit {
            return None;
        }
        let endian = self.endian();
        let bytes = recorded.as_bytes();
        // Empty if the chain is corrupted.
        let size = chain::bytes_within(recorded, limit).unwrap_or_default();
        let within_limit = bytes.get(..size).unwrap_or_default();
        let chain = scratch.empty_chain();
        match missing {
            // If the limit ends the chain before the missing frame, nothing is inserted.
            Some((at, caller)) if at < within_limit.len() => {
                let (inner, outer) = within_limit.split_at(at);
                chain.extend_from_slice(inner);
                chain.extend_from_slice(&match endian {
                    Endian::Little => caller.to_le_bytes(),
                    Endian::Big => caller.to_be_bytes(),
                });
                chain.extend_from_slice(outer);
            }
            _ => chain.extend_from_slice(within_limit),
        }
        Some(U64s::new(chain, endian))
    }

    /// Offset in the callchain, in bytes, at which a frame is missing, and the address of that frame. As in perf, a
    /// chain without callers isn't examined.
    fn missing_caller(
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
        // If one of them is a marker, the chain has no user address with a caller.
        if ip.max(next) >= PERF_CONTEXT_MAX {
            return None;
        }
        let link = registers.get(LINK_REGISTER)?;
        let leaf = LeafSample { arch, ip, link };
        let space = UserSpace::new(self.resolver(), AddressContext::of(sample));
        let caller = scratch.unwinder().caller_of_leaf(leaf, &space)?;
        // As in perf, a caller that the chain already has isn't inserted again.
        (caller != next).then_some(((marker + 2) * chain::ENTRY_SIZE, caller))
    }
}
