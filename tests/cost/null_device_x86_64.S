// The exported functions of the null device: each goes to its entry of the table.

    .text

#define X(number, name)                                  \
    .globl name;                                         \
    .type  name, @function;                              \
name:                                                    \
    .cfi_startproc;                                      \
    endbr64;                                             \
    jmpq   *(null_device_table + 8 * number)(%rip);      \
    .cfi_endproc;                                        \
    .size  name, . - name;
#include "functions.h"
#undef X

    .section .note.GNU-stack,"",@progbits
