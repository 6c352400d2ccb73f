use proptest::prelude::*;

use super::*;

/// Prints the instruction `bytes` at address 0x1000.
fn text(isa: Isa, syntax: Syntax, bytes: &[u8]) -> (String, Printed) {
    let mut text = String::new();
    let printed = Printer::new(isa, syntax).print(0x1000, bytes, &mut text);
    (text, printed.expect("bytes"))
}

#[test]
fn x86_is_printed_as_by_objdump_in_both_syntaxes() {
    // The output of GNU objdump 2.40.
    for (bytes, att, intel) in [
        (&[0x55][..], "push   %rbp", "push   rbp"),
        (&[0x48, 0x89, 0xe5], "mov    %rsp,%rbp", "mov    rbp,rsp"),
        (
            &[0x48, 0xc7, 0x45, 0xf8, 0, 0, 0, 0],
            "movq   $0x0,-0x8(%rbp)",
            "mov    QWORD PTR [rbp-0x8],0x0",
        ),
        (
            &[0x48, 0x8b, 0x05, 0xf2, 0xff, 0xff, 0xff],
            "mov    -0xe(%rip),%rax",
            "mov    rax,QWORD PTR [rip+0xfffffffffffffff2]",
        ),
        (
            &[0x67, 0x8b, 0x05, 0xf0, 0xff, 0xff, 0xff],
            "mov    -0x10(%eip),%eax",
            "mov    eax,DWORD PTR [eip+0xfffffffffffffff0]",
        ),
        (
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0],
            "mov    %fs:0x28,%rax",
            "mov    rax,QWORD PTR fs:0x28",
        ),
        (&[0x48, 0xd1, 0xe8], "shr    %rax", "shr    rax,1"),
        (&[0x48, 0xc1, 0xe8, 1], "shr    $0x1,%rax", "shr    rax,0x1"),
        (
            &[0x48, 0x69, 0xff, 0xa8, 6, 0, 0],
            "imul   $0x6a8,%rdi,%rdi",
            "imul   rdi,rdi,0x6a8",
        ),
        (
            &[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            "data16 cs nopw 0x0(%rax,%rax,1)",
            "data16 cs nop WORD PTR [rax+rax*1+0x0]",
        ),
        (
            &[0xf3, 0x48, 0xa5],
            "rep movsq %ds:(%rsi),%es:(%rdi)",
            "rep movs QWORD PTR es:[rdi],QWORD PTR ds:[rsi]",
        ),
        (&[0xec], "in     (%dx),%al", "in     al,dx"),
        (&[0xde, 0xc9], "fmulp  %st,%st(1)", "fmulp  st(1),st"),
        (&[0xdd, 0xd8], "fstp   %st(0)", "fstp   st(0)"),
        (&[0xff, 0xd0], "call   *%rax", "call   rax"),
        (&[0xf3, 0xc3], "repz ret", "repz ret"),
        (
            &[0x49, 0xbb, 1, 0, 0, 0, 0, 0, 0, 0x80],
            "movabs $0x8000000000000001,%r11",
            "movabs r11,0x8000000000000001",
        ),
    ] {
        assert_eq!(text(Isa::X86_64, Syntax::Att, bytes).0, att);
        let (intel_text, printed) = text(Isa::X86_64, Syntax::Intel, bytes);
        assert_eq!(intel_text, intel);
        assert_eq!(printed.len, bytes.len(), "{att}");
    }
}

#[test]
fn targets_and_operand_addresses_are_computed() {
    let (jump_text, jump) = text(Isa::X86_64, Syntax::Att, &[0x7e, 0x10]);
    assert_eq!(
        (jump_text.as_str(), jump.flow, jump.target),
        ("jle    1012", InsnFlow::Jump, Some(0x1012))
    );
    let (_, call) = text(Isa::X86, Syntax::Att, &[0xe8, 0xfb, 0xff, 0xff, 0xff]);
    assert_eq!((call.flow, call.target), (InsnFlow::Call, Some(0x1000)));
    let (_, memory) = text(Isa::X86_64, Syntax::Att, &[0x8b, 0x05, 0, 1, 0, 0]);
    assert_eq!(
        (memory.flow, memory.referenced),
        (InsnFlow::Next, Some(0x1106))
    );
    assert_eq!(
        text(Isa::X86_64, Syntax::Att, &[0xc3]).1.flow,
        InsnFlow::Return
    );
    // The syntax only affects x86.
    let (page_text, page) = text(Isa::Arm64, Syntax::Att, &[0xc1, 0, 0, 0x90]);
    assert_eq!(
        (page_text.as_str(), page.referenced),
        ("adrp   x1, 19000", Some(0x19000))
    );
}

#[test]
fn arm64_is_printed_as_by_objdump() {
    for (word, expected) in [
        (0xd280_001d_u32, "mov    x29, #0x0"),
        (0xa9bf_7bfd, "stp    x29, x30, [sp, #-16]!"),
        (0xa8c1_7bfd, "ldp    x29, x30, [sp], #16"),
        (0xf943_f084, "ldr    x4, [x4, #2016]"),
        (0xeb08_001f, "cmp    x0, x8"),
        (0x9a8d_314a, "csel   x10, x10, x13, cc"),
        (0x5400_0042, "b.cs   1008"),
        (0x37c8_0528, "tbnz   w8, #25, 10a4"),
        (0x8b2d_4100, "add    x0, x8, w13, uxtw"),
        (0x8b24_5164, "add    x4, x11, w4, uxtw #4"),
        (0x2f08_a4c6, "uxtl   v6.8h, v6.8b"),
        (0x4c40_4100, "ld3    {v0.16b-v2.16b}, [x8]"),
        (0x3824_c840, "strb   w0, [x2, w4, sxtw]"),
        (0xd65f_03c0, "ret"),
        (0xffff_ffff, ".inst  0xffffffff ; undefined"),
    ] {
        let (arm_text, _) = text(Isa::Arm64, Syntax::Att, &word.to_le_bytes());
        assert_eq!(arm_text, expected);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_printed(bytes in prop::collection::vec(any::<u8>(), 0..24), address in any::<u64>()) {
        for isa in [Isa::X86, Isa::X86_64, Isa::Arm64] {
            for syntax in [Syntax::Att, Syntax::Intel] {
                let mut text = String::new();
                let printed = Printer::new(isa, syntax).print(address, &bytes, &mut text);
                prop_assert_eq!(printed.is_none(), bytes.is_empty());
                if let Some(printed) = printed {
                    prop_assert!((1..=bytes.len()).contains(&printed.len));
                    prop_assert!(!text.is_empty() && !text.ends_with(' '), "{:?}", text);
                }
            }
        }
    }
}
