/* SPDX-License-Identifier: MIT */
/* The pause between two looks of a thread that polls: leaves the core's units to its sibling. */
#ifndef PNR_PAUSE_H
#define PNR_PAUSE_H

static inline void pnr_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
