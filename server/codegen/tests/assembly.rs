//! Compiled code as text and bytes: our own kernels' in excerpts, and anything at all.

use proptest::prelude::*;
use warplens_codegen::Class;
use warplens_codegen::assembly::{
    AssembledKernel, Name, amd_remarks, cubin, ptx, ptxas_verbose, sass,
};

fn count(kernel: &AssembledKernel, class: Class) -> u64 {
    kernel.instructions.get(&class).copied().unwrap_or(0)
}

/// `vector_add` of tests/kernels, shortened, as nvdisasm prints it.
const NVDISASM: &str = r#"
	.target	sm_80
	.section	.text._Z10vector_addPKfS0_Pfi,"ax",@progbits
	.sectioninfo	@"SHI_REGISTERS=12"
	.align	128
_Z10vector_addPKfS0_Pfi:
.text._Z10vector_addPKfS0_Pfi:
	//## File "/src/vector_add.cu", line 9
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   HFMA2.MMA R7, -RZ, RZ, 0, 2.384185791015625e-07 ;
        /*0020*/              @!P0 EXIT ;
	//## File "/src/half.h", line 3 inlined at "/src/vector_add.cu", line 11
	//## File "/src/vector_add.cu", line 11
        /*0030*/                   LDG.E.CONSTANT R4, [R4.64] ;
        /*0040*/                   FADD R9, R4, R3 ;
        /*0048*/             @!PT  LDS RZ, [RZ] ;
	//## File "/src/vector_add.cu", line 12
        /*0050*/                   STG.E [R6.64], R9 ;
        /*0060*/                   EXIT ;
.L_x_0:
        /*0070*/                   BRA `(.L_x_0);
        /*0080*/                   NOP;
.L_x_1:
	.section	.nv.shared._Z10vector_addPKfS0_Pfi,"aw",@nobits
	.zero		2048
"#;

#[test]
fn nvdisasm_gives_registers_shared_memory_and_lines() {
    let kernels = sass(NVDISASM);
    let [kernel] = &kernels[..] else {
        panic!("{kernels:?}")
    };
    assert_eq!(kernel.mangled, "_Z10vector_addPKfS0_Pfi");
    assert_eq!(kernel.architecture, "sm_80");
    assert_eq!((kernel.registers, kernel.allotted), (Some(12), true));
    assert_eq!(kernel.shared_bytes, Some(2048));
    // The branch behind the code and the padding do not count; two exits do.
    assert_eq!(kernel.total(), 7);
    assert_eq!(count(kernel, Class::Mov), 2);
    assert_eq!(count(kernel, Class::Bra), 0);
    let line = |file: &str, line: u32| {
        let found = kernel
            .lines
            .iter()
            .find(|((f, l), _)| &**f == file && *l == line);
        found.map_or(0, |(_, counts)| counts.values().sum())
    };
    // What is inlined counts at both of its places.
    assert_eq!(line("/src/half.h", 3), 2);
    assert_eq!(line("/src/vector_add.cu", 11), 2);
    assert_eq!(line("/src/vector_add.cu", 12), 2);
}

#[test]
fn cuobjdump_gives_several_kernels_without_lines() {
    let text = "\tcode for sm_75\n\
        \t\tFunction : first\n\
        /*0000*/   @!PT SHFL.IDX PT, RZ, RZ, RZ, RZ ;   /* 0x000000fffffff389 */\n\
        \t\t\t\t/* 0x000fe200000e00ff */\n\
        /*0010*/   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;\n\
        /*0020*/   RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64], R17 ;\n\
        /*0030*/   BRA 0x30;\n\
        \t\tFunction : second\n\
        REG:40 STACK:16 SHARED:132 LOCAL:0\n\
        /*0000*/   { FFMA R0, R1, R2, R3 ;\n\
        /*0008*/   BAR.SYNC 0x0 }  ;\n";
    let kernels = sass(text);
    assert_eq!(kernels.len(), 2);
    let [first, second] = &kernels[..] else {
        panic!()
    };
    assert_eq!((first.registers, first.allotted), (Some(18), false));
    assert_eq!(count(first, Class::Mov), 1);
    assert_eq!(count(first, Class::Red), 1);
    assert_eq!(count(first, Class::Bra), 0);
    assert_eq!((second.registers, second.allotted), (Some(40), true));
    assert_eq!(
        (second.stack_bytes, second.shared_bytes),
        (Some(16), Some(132))
    );
    assert_eq!(count(second, Class::Bar), 1);
    assert_eq!(count(second, Class::Ffma), 1);
}

#[test]
fn ptx_gives_counts_and_a_guess_of_registers() {
    let text = r#"
.version 8.0
.target sm_80
.address_size 64
.shared .align 4 .b8 table[64];
.file 1 "/src/k.cu"
.visible .entry _Z1kPfi(
    .param .u64 _Z1kPfi_param_0
)
{
    .reg .pred %p<2>;
    .reg .f32 %f<5>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 tile[1024]; // demoted
    .loc 1 8 0
    ld.param.u64 %rd1, [_Z1kPfi_param_0];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, table;
    mul.wide.s32 %rd3, %r1, 4;
$L__BB0_1:
    .loc 1 9 3
    ld.global.v2.f32 {%f1, %f2}, [%rd3];
    fma.rn.f32 %f3, %f1, %f2, %f1;
    setp.lt.s32 %p1, %r1, 3;
    @%p1 bra $L__BB0_1;
    st.shared.f32 [%r1], %f3;
    bar.sync 0;
    atom.global.add.f32 %f4, [%rd3], %f3;
    ret;
}
"#;
    let kernels = ptx(text);
    let [kernel] = &kernels[..] else {
        panic!("{kernels:?}")
    };
    assert_eq!(
        (kernel.mangled.as_str(), kernel.architecture.as_str()),
        ("_Z1kPfi", "sm_80")
    );
    assert_eq!(kernel.shared_bytes, Some(1024 + 64));
    for class in [
        Class::Ldg,
        Class::Ffma,
        Class::Sts,
        Class::Bar,
        Class::Atom,
        Class::Imad,
        Class::Bra,
        Class::Isetp,
    ] {
        assert_eq!(count(kernel, class), 1, "{class}");
    }
    assert!(!kernel.allotted && kernel.registers >= Some(8));
    assert!(
        kernel
            .lines
            .keys()
            .any(|(file, line)| &**file == "/src/k.cu" && *line == 9)
    );
}

#[test]
fn accounts_of_resources_are_read_between_warnings() {
    let text = "k.cu(3): warning #177-D: variable \"x\" was declared but never referenced\n\
        ptxas info    : Compiling entry function '_Z1kPf' for 'sm_80'\n\
        ptxas info    : Function properties for _Z1kPf\n\
        \x20   400 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads\n\
        ptxas info    : Used 32 registers, used 1 barriers, 2048 bytes smem, 380 bytes cmem[0]\n\
        ptxas info    : Function properties for helper\n\
        \x20   8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
    let [usage] = &ptxas_verbose(text)[..] else {
        panic!()
    };
    assert_eq!(
        (usage.registers, usage.shared_bytes, usage.stack_bytes),
        (32, 2048, 400)
    );
    assert_eq!((usage.spill_store_bytes, usage.spill_load_bytes), (24, 28));
    let remarks = "k.hip:1:1: remark: Function Name: _Z1kPf [-Rpass-analysis=kernel-resource-usage]\n\
        k.hip:1:1: remark:     TotalSGPRs: 16 [-R]\n\
        k.hip:1:1: remark:     VGPRs: 9 [-R]\n\
        k.hip:1:1: remark:     AGPRs: 4 [-R]\n\
        k.hip:1:1: remark:     ScratchSize [bytes/lane]: 8 [-R]\n\
        k.hip:1:1: remark:     VGPRs Spill: 2 [-R]\n\
        k.hip:1:1: remark:     LDS Size [bytes/block]: 132 [-R]\n";
    let [usage] = &amd_remarks(remarks)[..] else {
        panic!()
    };
    assert_eq!(
        (usage.registers, usage.shared_bytes, usage.stack_bytes),
        (9, 132, 8)
    );
    assert_eq!(usage.spill_store_bytes, 8);
}

#[test]
fn names_lose_namespaces_and_keep_template_arguments() {
    let name = |mangled: &str| {
        let Name {
            plain,
            template_arguments,
        } = Name::of_mangled(mangled);
        format!("{plain}<{}>", template_arguments.join(","))
    };
    assert_eq!(name("_Z2tkILi3EfEvPT0_"), "tk<3,float>");
    assert_eq!(name("_ZN2ns2k2EPf"), "k2<>");
    assert_eq!(name("_Z1kILb1ELin4E7FunctorEvv"), "k<true,-4,Functor>");
    assert_eq!(name("_Z8move_soa9Particlesif"), "move_soa<>");
    assert_eq!(name("plain"), "plain<>");
    assert_eq!(name("_Z99999999999999999999k"), "_Z99999999999999999999k<>");
}

proptest! {
    #[test]
    fn any_text_gives_an_answer(text in "\\PC*") {
        sass(&text);
        ptx(&text);
        ptxas_verbose(&text);
        amd_remarks(&text);
        Name::of_mangled(&format!("_Z{text}"));
    }

    #[test]
    fn a_text_cut_and_mixed_gives_an_answer(
        cuts in proptest::collection::vec((0..NVDISASM.len(), 0..60_usize), 0..20)
    ) {
        let mut mixed = String::from(".entry k {\n");
        for (from, length) in cuts {
            mixed.extend(NVDISASM.chars().skip(from).take(length));
            mixed.push_str(" ld.global.f32 %f1, [{ ;} .loc 1 ; .reg .b32 %r<9>;");
        }
        sass(&mixed);
        ptx(&mixed);
    }

    #[test]
    fn any_bytes_give_an_answer(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        cubin(&bytes);
        // With a head that fits: past the first checks.
        let mut head = b"\x7fELF\x02\x01\x01\x33\x08\0\0\0\0\0\0\0\x02\0\xbe\0".to_vec();
        if bytes.len() > 64 {
            head.extend(bytes.drain(20..));
            cubin(&head);
            head[40..48].copy_from_slice(&64_u64.to_le_bytes());
            head[58..60].copy_from_slice(&64_u16.to_le_bytes());
            head[60..64].copy_from_slice(&[2, 0, 0, 0]);
            cubin(&head);
        }
    }
}
