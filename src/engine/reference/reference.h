/* SPDX-License-Identifier: MIT */
/* The reference engine: the sum as in the book, double precision, O(N^2);
 * the judge of the others. */
#ifndef PNR_ENGINE_REFERENCE_H
#define PNR_ENGINE_REFERENCE_H

#include "engine/engine.h"

const pnr_engine_ops *pnr_engine_reference(void);

#endif
