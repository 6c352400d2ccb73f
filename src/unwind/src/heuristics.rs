//! Unwinding without frame information: by frame pointers, or after a call to an invalid address.

use crate::Arch;
use crate::machine::FrameState;
use crate::registers::Registers;
use crate::space::AddressSpace;

/// The heuristics found no plausible frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoPlausibleFrame;

/// Returns the caller after a call to an invalid address: the return address is still at the stack pointer or in the link
/// register. The result is accepted if the return address follows code.
pub(crate) fn after_invalid_call(
    frame: &FrameState<'_>,
    space: &impl AddressSpace,
) -> Result<Registers, NoPlausibleFrame> {
    let arch = frame.arch;
    let sp = frame
        .registers
        .get(arch.stack_pointer())
        .ok_or(NoPlausibleFrame)?;
    let (return_address, caller_sp) = match arch.link_register() {
        Some(register) => (frame.registers.get(register), sp),
        None => {
            let size = u64::from(arch.address_size());
            (frame.word(sp).ok(), sp.wrapping_add(size))
        }
    };
    let ip = arch.code_address(return_address.ok_or(NoPlausibleFrame)?);
    if !follows_code(space, ip) {
        return Err(NoPlausibleFrame);
    }
    let mut caller = *frame.registers;
    caller.set(arch.stack_pointer(), caller_sp);
    caller.set_ip(arch, ip);
    Ok(caller)
}

/// Returns the caller by the frame pointer, which points to the saved frame pointer, followed by the return address. The
/// result is accepted if the frame pointer is aligned and not below the stack pointer, and the return address follows code.
/// `None` at the end of the chain: if the return address is 0, or if the register of [`Arch::outermost_marker`] (usually the
/// frame pointer) is 0 in a frame other than the innermost.
pub(crate) fn by_frame_pointer(
    frame: &FrameState<'_>,
    space: &impl AddressSpace,
    is_innermost: bool,
) -> Result<Option<Registers>, NoPlausibleFrame> {
    let arch = frame.arch;
    let size = u64::from(arch.address_size());
    if !is_innermost && is_marked_outermost(arch, frame.registers) {
        return Ok(None);
    }
    let Some(frame_register) = arch.frame_pointer() else {
        return Err(NoPlausibleFrame);
    };
    let (Some(frame_pointer), Some(sp)) = (
        frame.registers.get(frame_register),
        frame.registers.get(arch.stack_pointer()),
    ) else {
        return Err(NoPlausibleFrame);
    };
    let saved = (
        frame.word(frame_pointer),
        frame.word(frame_pointer.wrapping_add(size)),
    );
    let (Ok(saved_frame_pointer), Ok(return_address)) = saved else {
        return Err(NoPlausibleFrame);
    };
    // Clears the bits that are not part of the address: the pointer authentication code, or the Thumb bit.
    let ip = arch.code_address(return_address);
    if frame_pointer < sp || !frame_pointer.is_multiple_of(size) {
        return Err(NoPlausibleFrame);
    }
    if ip == 0 {
        return Ok(None);
    }
    // Only the return address is checked. The saved frame pointer may be anything: the caller may use its register for other
    // purposes.
    if !follows_code(space, ip) {
        return Err(NoPlausibleFrame);
    }
    // The other registers are unknown: the frame's function may have changed them.
    let mut caller = Registers::new(ip);
    caller.set(arch.stack_pointer(), frame_pointer.wrapping_add(2 * size));
    caller.set(frame_register, saved_frame_pointer);
    // Also sets the DWARF register of the instruction pointer, if there is one.
    caller.set_ip(arch, ip);
    Ok(Some(caller))
}

/// Whether the register that is cleared when a thread starts, [`Arch::outermost_marker`], is still 0.
pub(crate) fn is_marked_outermost(arch: Arch, registers: &Registers) -> bool {
    registers.get(arch.outermost_marker()) == Some(0)
}

/// Whether the byte before a return address is code.
fn follows_code(space: &impl AddressSpace, return_address: u64) -> bool {
    let before = return_address.checked_sub(1);
    before.is_some_and(|address| space.code_at(address).is_some())
}
