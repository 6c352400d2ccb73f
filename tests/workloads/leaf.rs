//! A leaf function without a frame, and its callers. The program is never run: rperf reads its unwind information to find the
//! caller of the leaf function.
#![no_std]
#![no_main]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn leaf(n: u64) -> u64 {
    let mut sum = n;
    for step in 0..n {
        sum = sum.rotate_left(7) ^ core::hint::black_box(step);
    }
    sum
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn caller(n: u64) -> u64 {
    leaf(n) + leaf(n + 1)
}

#[unsafe(no_mangle)]
pub extern "C" fn _start() -> u64 {
    caller(core::hint::black_box(1)) + 1
}
