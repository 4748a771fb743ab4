/* SPDX-License-Identifier: MIT */
/* A polling thread pauses between two polls, so that the other hardware thread of its core can
 * run. */
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
