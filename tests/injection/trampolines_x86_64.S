// The exported functions of the proxy. Each asks injection_decide() with its number and its return address, and then
// jumps to the function of the real driver with arguments and stack as they were, or returns an error.

    .text

#define X(number, name)              \
    .globl name;                     \
    .type  name, @function;          \
name:                                \
    .cfi_startproc;                  \
    endbr64;                         \
    pushq  $number;                  \
    .cfi_adjust_cfa_offset 8;        \
    jmp    decide;                   \
    .cfi_endproc;                    \
    .size  name, . - name;
#include "functions.h"
#undef X

    .type  decide, @function
decide:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    pushq  %rdi
    .cfi_adjust_cfa_offset 8
    pushq  %rsi
    .cfi_adjust_cfa_offset 8
    pushq  %rdx
    .cfi_adjust_cfa_offset 8
    pushq  %rcx
    .cfi_adjust_cfa_offset 8
    pushq  %r8
    .cfi_adjust_cfa_offset 8
    pushq  %r9
    .cfi_adjust_cfa_offset 8
    subq   $128, %rsp
    .cfi_adjust_cfa_offset 128
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movq   176(%rsp), %rdi
    movq   184(%rsp), %rsi
    call   injection_decide
    movq   %rax, %r11
    movq   %rdx, %r10
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq   $128, %rsp
    .cfi_adjust_cfa_offset -128
    popq   %r9
    .cfi_adjust_cfa_offset -8
    popq   %r8
    .cfi_adjust_cfa_offset -8
    popq   %rcx
    .cfi_adjust_cfa_offset -8
    popq   %rdx
    .cfi_adjust_cfa_offset -8
    popq   %rsi
    .cfi_adjust_cfa_offset -8
    popq   %rdi
    .cfi_adjust_cfa_offset -8
    addq   $8, %rsp
    .cfi_adjust_cfa_offset -8
    testq  %r11, %r11
    je     1f
    jmpq   *%r11
1:  movl   %r10d, %eax
    ret
    .cfi_endproc
    .size  decide, . - decide

    .section .note.GNU-stack,"",@progbits
