//! The last resort where nothing is known of a frame's code: the chain of frame pointers.

use crate::Arch;
use crate::machine::Machine;
use crate::registers::Registers;
use crate::space::AddressSpace;

/// Nothing that can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoGuess;

/// What is no code was called: the caller's return address is still where the call left it.
pub(crate) fn after_wild_call(
    machine: &Machine<'_>,
    space: &impl AddressSpace,
) -> Result<Registers, NoGuess> {
    let arch = machine.arch;
    let sp = machine.registers.get(arch.stack_pointer()).ok_or(NoGuess)?;
    let (returns_to, above) = match arch.link_register() {
        Some(register) => (machine.registers.get(register), sp),
        None => {
            let size = u64::from(arch.address_size());
            (machine.word(sp).ok(), sp.wrapping_add(size))
        }
    };
    let ip = arch.code_address(returns_to.ok_or(NoGuess)?);
    if !leads_to_code(space, ip) {
        return Err(NoGuess);
    }
    let mut caller = *machine.registers;
    caller.set(arch.stack_pointer(), above);
    Ok(moved(machine, caller, ip))
}

/// The frame that the frame pointer points to holds the caller's frame pointer, and behind it the return address. It is
/// believed if it lies on the stack, above this frame, and leads to code. `None` where the chain ends
/// as the conventions of all architectures have it.
pub(crate) fn by_frame_pointer(
    machine: &Machine<'_>,
    space: &impl AddressSpace,
    is_innermost: bool,
) -> Result<Option<Registers>, NoGuess> {
    let arch = machine.arch;
    let size = u64::from(arch.address_size());
    if !is_innermost && is_marked_outermost(arch, machine.registers) {
        return Ok(None);
    }
    let Some(frame_pointer) = arch.frame_pointer() else {
        return Err(NoGuess);
    };
    let (Some(frame), Some(sp)) = (
        machine.registers.get(frame_pointer),
        machine.registers.get(arch.stack_pointer()),
    ) else {
        return Err(NoGuess);
    };
    let saved = (machine.word(frame), machine.word(frame.wrapping_add(size)));
    let (Ok(next_frame), Ok(ip)) = saved else {
        return Err(NoGuess);
    };
    let ip = arch.code_address(ip);
    if frame < sp || !frame.is_multiple_of(size) {
        return Err(NoGuess);
    }
    if ip == 0 {
        return Ok(None);
    }
    // The frame pointer that is saved there may be anything: the caller need not use it as one.
    if !leads_to_code(space, ip) {
        return Err(NoGuess);
    }
    // Nothing is known of the registers that the frame's function may have used.
    let mut caller = Registers::new(ip);
    caller.set(arch.stack_pointer(), frame.wrapping_add(2 * size));
    caller.set(frame_pointer, next_frame);
    Ok(Some(moved(machine, caller, ip)))
}

/// Whether the register that is cleared where threads start is still 0.
pub(crate) fn is_marked_outermost(arch: Arch, frame: &Registers) -> bool {
    frame.get(arch.outermost_marker()) == Some(0)
}

fn moved(machine: &Machine<'_>, mut caller: Registers, ip: u64) -> Registers {
    caller.ip = ip;
    if let Some(register) = machine.arch.instruction_pointer() {
        caller.set(register, ip);
    }
    caller
}

fn leads_to_code(space: &impl AddressSpace, return_address: u64) -> bool {
    let before = return_address.checked_sub(1);
    before.is_some_and(|address| space.code_at(address).is_some())
}
