/* SPDX-License-Identifier: MIT */
/* Compiles one loop for several vector widths. The loader chooses the width. */
#ifndef PNR_MULTIVERSION_H
#define PNR_MULTIVERSION_H

/* The choice at load time does not work with a sanitizer, and clang 14 does not know the attribute
 * in C. In both cases only the default version is compiled. The order of every sum in these loops
 * is fixed, so all versions give the same bits. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PNR_MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PNR_MULTIVERSION
#endif

#endif
