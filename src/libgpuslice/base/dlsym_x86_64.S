// dlsym as programs see it. Not C: the C library's dlsym looks at its return address to give RTLD_NEXT and
// RTLD_DEFAULT their meaning, so for every name that is not ours it must be entered by a jump, with the program's
// return address on the stack.
//
//   void* dlsym(void* handle, const char* name)
//     = gpuslice_resolve(handle, name), unless that is null: then the C library's own answer

    .text
    .globl  dlsym
    .type   dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    gpuslice_resolve
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    testq   %rax, %rax
    jne     1f
    jmpq    *gpuslice_next_dlsym(%rip)
1:  ret
    .cfi_endproc
    .size   dlsym, .-dlsym

// dlopen as programs see it. Not C for the same reason: the C library's looks from where it is called.
//
//   void* dlopen(const char* path, int mode)
//     = gpuslice_look_at_dlopen(path, mode), then the C library's

    .globl  dlopen
    .type   dlopen, @function
dlopen:
    .cfi_startproc
    endbr64
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    gpuslice_look_at_dlopen
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    jmpq    *gpuslice_next_dlopen(%rip)
    .cfi_endproc
    .size   dlopen, .-dlopen

    .section .note.GNU-stack,"",@progbits
