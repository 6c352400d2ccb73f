//! Instructions of `.ARM.exidx` and `.ARM.extab`, as printed by binutils' readelf and as executed by the unwinder.

use std::collections::HashMap;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rperf_symbol::FileBytes;
use rperf_testkit::{Scratch, skip};
use rperf_unwind::{Arch, FrameInfo, Registers, Snapshot, StackBytes, Unwinder};
use rperf_wire::{Endian, Regs, RegsAbi, U64s};

use super::elf::{self, BASE, CODE, Entry, Section};
use super::program::{Loaded, MAPPING_ADDRESS};

/// Bytes per function.
const SIZE: u64 = 0x20;
/// The number of generated functions in a file. One more follows, at [`LAST`].
const FUNCTIONS: usize = 0x40;
/// The file offset of the last function. All return addresses are in it. It pops its own return address ([`POP_LINK`]).
const LAST: u64 = CODE.start + SIZE * FUNCTIONS as u64;
/// The instruction `pop {r14}`.
const POP_LINK: [u8; 2] = [0x84, 0x00];

const STACK: u64 = 0x7000_0000;
/// The number of words on the stack.
const WORDS: u64 = 0x400;
const STACK_POINTER: u64 = STACK + 0x800;
/// The stack pointer after it was set from an unknown register: far below the stack.
const NOWHERE: u64 = STACK / 2;
/// The value of the link register; no word of the stack equals it.
const LINK: u64 = MAPPING_ADDRESS + LAST + 0x1000;

/// The word at `address`: a return address that no other word of the stack equals. `None` outside the stack.
fn word(address: u64) -> Option<u64> {
    let offset = address
        .checked_sub(STACK)
        .filter(|offset| *offset < WORDS * 4)?;
    Some(MAPPING_ADDRESS + LAST + 2 + offset / 2)
}

/// The value of one of the registers r4 to r11: the stack pointer plus 0x20 for r4, and 0x20 more for each further one, so that
/// each holds a different address in the stack. The other general registers are unknown.
fn register(number: u64) -> u64 {
    STACK_POINTER + number * 0x20 - 0x60
}

/// The state on which the printed instructions operate.
struct Machine {
    stack_pointer: u64,
    /// The popped registers, with their values if known.
    popped: HashMap<u64, Option<u64>>,
}

impl Machine {
    /// Executes the printed instruction `line`. `first` is the first byte of the instruction's encoding. `None` if the state
    /// becomes unknown.
    fn run(&mut self, first: u8, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["vsp", "=", "vsp", sign, bytes] => {
                let bytes: u64 = bytes.parse().ok()?;
                // The unwinder refuses larger increments: it reads at most 28 bits of the number in the instruction.
                if bytes > 0x204 + (0x0fff_ffff << 2) {
                    return None;
                }
                let bytes = if sign == "-" {
                    bytes.wrapping_neg()
                } else {
                    bytes
                };
                self.stack_pointer = self.stack_pointer.wrapping_add(bytes);
            }
            ["vsp", "=", name] => {
                let number = name.strip_prefix('r')?.parse().ok()?;
                // Using a register that was popped before, which no compiler does, is not supported.
                if self.popped.contains_key(&number) {
                    return None;
                }
                let is_known = (4..12).contains(&number);
                self.stack_pointer = if is_known { register(number) } else { NOWHERE };
            }
            ["vsp", "as", "modifier", ..] => {}
            ["pop", ..] => self.pop(first, line.strip_prefix("pop {")?.strip_suffix('}')?)?,
            _ => return None,
        }
        // Using the stack pointer after it was popped is not supported, either. `pop` checks this before it runs: afterwards, it
        // may have popped the stack pointer itself, which is supported.
        let state_is_known = !self.popped.contains_key(&13) || words[0] == "pop";
        state_is_known.then_some(())
    }

    /// Executes an instruction that pops the registers in `names`. `first` and the result are as in [`Self::run`].
    fn pop(&mut self, first: u8, names: &str) -> Option<()> {
        if self.popped.contains_key(&13) {
            return None;
        }
        if names == "ra_auth_code" {
            self.stack_pointer += 4;
            return Some(());
        }
        // Floating-point and vector registers are not tracked.
        if !names.starts_with('r') {
            let number = |name: &str| {
                let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
                digits.parse::<u64>().ok()
            };
            let count = match names.split_once('-') {
                Some((from, to)) => number(to)? + 1 - number(from)?,
                None => names.split(", ").count() as u64,
            };
            let size = if names.starts_with("wCGR") { 4 } else { 8 };
            // Registers saved by FSTMFDX are followed by an extra word.
            let has_extra_word = matches!(first, 0xb3 | 0xb8..=0xbf);
            self.stack_pointer += count * size + u64::from(has_extra_word) * 4;
            return Some(());
        }
        for name in names.split(", ") {
            let number = name.strip_prefix('r')?.parse().ok()?;
            self.popped.insert(number, word(self.stack_pointer));
            self.stack_pointer += 4;
        }
        Some(())
    }

    /// The frames that the unwinder should return: of the function, of its caller, and of the caller of that, as far as they are
    /// known.
    fn frames(&self, ip: u64) -> Vec<u64> {
        let popped = |number| self.popped.get(&number);
        let return_address = popped(15).or(popped(14)).map_or(Some(LINK), |value| *value);
        let stack_pointer = popped(13).map_or(Some(self.stack_pointer), |value| *value);
        let (Some(return_address), Some(stack_pointer)) = (return_address, stack_pointer) else {
            return vec![ip];
        };
        // Only the kernel saves both r13 and r15, in signal frames: the caller's address is exact, and it may have another stack.
        let is_signal = popped(13).is_some() && popped(15).is_some();
        // The unwinder rejects a caller whose stack pointer is below that of the function.
        if stack_pointer < STACK_POINTER && !is_signal {
            return vec![ip];
        }
        let caller = return_address - u64::from(!is_signal);
        let outer = word(stack_pointer).map(|word| word - 1);
        [ip, caller].into_iter().chain(outer).collect()
    }
}

/// The instructions of each function as printed by readelf, with the first byte of each; by the function's address.
type Printed = HashMap<u64, Vec<(u8, String)>>;

/// Prints the instructions of a file with readelf; `None` if they cannot be read.
fn printed(file: &[u8], scratch: &Scratch) -> Option<Printed> {
    let path = scratch.path().join("object");
    std::fs::write(&path, file).unwrap();
    let output = Command::new("readelf").arg("-u").arg(&path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut functions = Printed::new();
    let mut current = 0;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("0x") {
            let (address, _) = head.split_once(':')?;
            current = u64::from_str_radix(address, 16).ok()?;
        } else if let Some(first) = line.strip_prefix("  0x").and_then(|line| line.get(..2)) {
            let first = u8::from_str_radix(first, 16).ok()?;
            let is_byte = |word: &&str| word.len() == 4 && word.starts_with("0x");
            let instruction: Vec<&str> = line.split_whitespace().skip_while(is_byte).collect();
            functions
                .entry(current)
                .or_default()
                .push((first, instruction.join(" ")));
        }
    }
    Some(functions)
}

/// The frames of a function that is interrupted at `ip`, at most three.
fn unwound(file: &[u8], ip: u64) -> Vec<u64> {
    let numbers = (4..12).map(|number| (number, register(number)));
    let all = numbers.chain([(13, STACK_POINTER), (14, LINK), (15, ip)]);
    let mask = all.clone().fold(0, |mask, (number, _)| mask | 1 << number);
    let values: Vec<u8> = all.flat_map(|(_, value)| value.to_le_bytes()).collect();
    let dumped = Regs {
        abi: RegsAbi::Bits32,
        mask,
        values: U64s::new(&values, Endian::Little),
    };
    let words = (0..WORDS).filter_map(|index| word(STACK + index * 4));
    let stack: Vec<u8> = words.flat_map(|word| (word as u32).to_le_bytes()).collect();
    let snapshot = Snapshot {
        arch: Arch::Arm,
        registers: Registers::of_sample(Arch::Arm, &dumped).unwrap(),
        stack: StackBytes {
            start: STACK,
            bytes: &stack,
            // The copy of the stack counts as truncated at its end.
            may_continue: true,
            endian: Endian::Little,
        },
    };
    let object = FrameInfo::parse(FileBytes::from(file.to_vec()), None).unwrap();
    let mut frames = Vec::new();
    Unwinder::new().unwind(&snapshot, &Loaded::new(Ok(&object)), 3, &mut frames);
    frames
}

/// Instructions; compilers mostly use those of the first alternatives.
fn instruction() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..0x20_u8).prop_map(|skip| vec![skip]),
        (0xa0..=0xaf_u8).prop_map(|pop| vec![pop]),
        (
            0..=0xff_u8,
            prop_oneof![Just(0x80), Just(0x84), Just(0x88), 0x80..=0x8f_u8]
        )
            .prop_map(|(low, high)| vec![high, low]),
        (0x94..=0x9b_u8).prop_map(|register| vec![register]),
        (0x40..0x48_u8).prop_map(|back| vec![back]),
        (1..0x10_u8).prop_map(|mask| vec![0xb1, mask]),
        (0..=0xff_u8).prop_map(|mask| vec![0xb1, mask]),
        (0..0x80_u8).prop_map(|size| vec![0xb2, size]),
        any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

fn file(programs: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let functions = programs.iter().enumerate().map(|(index, program)| Entry {
        start: CODE.start + SIZE * index as u64,
        size: SIZE,
        instructions: program.concat(),
        is_signal: false,
    });
    let last = Entry {
        start: LAST,
        size: CODE.end - LAST,
        instructions: POP_LINK.to_vec(),
        is_signal: false,
    };
    let entries: Vec<Entry> = functions.chain([last]).collect();
    elf::build(Arch::Arm, Section::Exceptions, &entries)
}

#[test]
fn arm_unwind_instructions_match_readelf() {
    const NAME: &str = "arm_unwind_instructions_match_readelf";
    let scratch = Scratch::new();
    let readelf = Command::new("readelf").arg("--version").output();
    if readelf.is_err() {
        return skip(NAME, "there is no readelf");
    }
    let programs = prop::collection::vec(prop::collection::vec(instruction(), 1..6), FUNCTIONS);
    let mut runner = TestRunner::new(Config::with_cases(30));
    let callers_found = std::cell::Cell::new(0);
    let done = runner.run(&programs, |programs| {
        let file = file(&programs);
        let printed = printed(&file, &scratch).expect("readelf prints entries");
        for (index, program) in programs.iter().enumerate() {
            let start = CODE.start + SIZE * index as u64;
            // `elf::build` gives every fourth entry a custom personality routine, whose instructions readelf does not print.
            let Some(lines) = printed.get(&(BASE + start)) else {
                continue;
            };
            let mut machine = Machine {
                stack_pointer: STACK_POINTER,
                popped: HashMap::new(),
            };
            let ip = MAPPING_ADDRESS + start + 8;
            // readelf continues after `finish`.
            let mut lines_to_end = lines.iter().take_while(|(_, line)| line != "finish");
            let known = lines_to_end.try_for_each(|(first, line)| machine.run(*first, line));
            let expected = known.map_or_else(|| vec![ip], |()| machine.frames(ip));
            callers_found.set(callers_found.get() + u32::from(expected.len() == 3));
            prop_assert_eq!(unwound(&file, ip), expected, "{:x?} {:?}", program, lines);
        }
        Ok(())
    });
    if let Err(error) = done {
        panic!("{error}");
    }
    // In 30 files with `FUNCTIONS` functions each, more than 200 functions have known callers; fewer would test too little.
    assert!(
        callers_found.get() > 200,
        "{} had callers",
        callers_found.get()
    );
}
