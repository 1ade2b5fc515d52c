// As dlsym_x86_64.S, for AArch64: the C library's dlsym looks at the link register.

    .text
    .globl  dlsym
    .type   dlsym, %function
dlsym:
    .cfi_startproc
    stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    bl      gpuslice_resolve
    mov     x9, x0
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    cbnz    x9, 1f
    adrp    x9, gpuslice_next_dlsym
    ldr     x9, [x9, #:lo12:gpuslice_next_dlsym]
    br      x9
1:  mov     x0, x9
    ret
    .cfi_endproc
    .size   dlsym, .-dlsym

    .globl  dlopen
    .type   dlopen, %function
dlopen:
    .cfi_startproc
    stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    bl      gpuslice_look_at_dlopen
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    adrp    x9, gpuslice_next_dlopen
    ldr     x9, [x9, #:lo12:gpuslice_next_dlopen]
    br      x9
    .cfi_endproc
    .size   dlopen, .-dlopen

    .section .note.GNU-stack,"",%progbits
