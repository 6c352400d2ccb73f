//! Unwinding: any unwind information, registers and memory yield some frames in bounded time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_fuzz::{Disk, Extra, Parts, addresses};
use rperf_unwind::{
    AddressSpace, Arch, FrameInfo, ModuleId, ObjectOffset, Registers, Snapshot, StackBytes,
    TruncationCause, Unwinder,
};
use rperf_wire::{Endian, Regs, RegsAbi, U64s};

/// Maximum number of frames of a stack.
const LIMIT: usize = 200;

/// The number of registers in a dump: those of arm64, which has the most.
const REGISTERS: u64 = 33;

/// The address of one of the two mappings of the whole object; the other is at 0.
const BASE: u64 = 0x40_0000;

/// An object mapped at two addresses, so that a stack may lead from one mapping to the other.
struct Space<'o> {
    object: Result<&'o FrameInfo, TruncationCause>,
    size: u64,
}

impl AddressSpace for Space<'_> {
    fn epoch(&self) -> u64 {
        // The mappings never change.
        0
    }

    fn code_at(&self, address: u64) -> Option<ObjectOffset<'_>> {
        let offset = address.checked_sub(BASE).unwrap_or(address);
        (offset < self.size).then_some(ObjectOffset {
            module: ModuleId(0),
            offset,
            frame_info: self.object,
        })
    }
}

// The input is in the format of `Parts`. The registers are little-endian words of 8 bytes in the kernel's order.
fuzz_target!(|bytes: &[u8]| {
    let parts = Parts::of(bytes);
    let disk = Disk::of(&parts);
    // The object is its own separate debug file.
    let object = FrameInfo::parse(disk.object.clone(), Some(&disk.object));
    let Ok(object) = &object else {
        return;
    };
    let space = Space {
        object: Ok(object),
        size: disk.object.len() as u64,
    };
    let endian = match parts.layout().is_big() {
        true => Endian::Big,
        false => Endian::Little,
    };
    let registers = parts.extra(Extra::Registers);
    let arch = object.arch();
    let mut unwinder = Unwinder::new();
    for (number, (_address, offset)) in addresses(&disk.object).into_iter().enumerate() {
        let values = sampled(arch, registers, offset, endian);
        let abi = match arch {
            Arch::X86_64 | Arch::Aarch64 => RegsAbi::Bits64,
            Arch::X86 | Arch::Arm => RegsAbi::Bits32,
        };
        let dumped = Regs {
            abi,
            mask: (1_u64 << REGISTERS) - 1,
            values: U64s::new(&values, endian),
        };
        let Some(registers) = Registers::of_sample(arch, &dumped) else {
            return;
        };
        let snapshot = Snapshot {
            arch,
            registers,
            stack: StackBytes {
                start: registers.stack_pointer(arch) & !7,
                bytes: parts.extra(Extra::Stack),
                // Every second stack copy counts as one of the maximum size, beyond which the stack may continue.
                may_continue: number % 2 == 0,
                endian,
            },
        };
        let mut fresh = Vec::new();
        let outcome = Unwinder::new().unwind(&snapshot, &space, LIMIT, &mut fresh);
        let mut known = Vec::new();
        assert_eq!(
            unwinder.unwind(&snapshot, &space, LIMIT, &mut known),
            outcome
        );
        assert_eq!(fresh, known, "cached steps change nothing");
        assert!(fresh.len() <= LIMIT);
    }
});

/// Registers of a sample at `offset` of the object. The instruction pointer is in the mapping at [`BASE`]; the other
/// registers are the words of `registers`; missing words are replaced by addresses from 0x7fff0000 up.
fn sampled(arch: Arch, registers: &[u8], offset: u64, endian: Endian) -> Vec<u8> {
    let instruction_pointer = match arch {
        Arch::X86_64 | Arch::X86 => 8,
        Arch::Aarch64 => 32,
        Arch::Arm => 15,
    };
    let mut words = registers.chunks_exact(8);
    let mut out = Vec::new();
    for number in 0..REGISTERS {
        let given = words.next().and_then(|word| word.first_chunk::<8>());
        let word = match number == instruction_pointer {
            true => BASE + offset,
            false => given.map_or(0x7fff_0000 + number * 8, |word| u64::from_le_bytes(*word)),
        };
        match endian {
            Endian::Big => out.extend(word.to_be_bytes()),
            Endian::Little => out.extend(word.to_le_bytes()),
        }
    }
    out
}
