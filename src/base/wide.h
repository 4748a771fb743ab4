/* SPDX-License-Identifier: MIT */
/* One loop in several vector widths, chosen when the program or module is loaded. */
#ifndef PNR_WIDE_H
#define PNR_WIDE_H

/* The sanitizers run before the choice could be made, and clang 14 does not know the attribute in
 * C: they take the plain code. Sums in such loops keep an order of their own, so that all widths
 * give the same bits. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PNR_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PNR_WIDE
#endif

#endif
