/* SPDX-License-Identifier: MIT */
/* The reference engine: the sum as in the book, in double precision. It judges the others. */
#ifndef PNR_ENGINE_REFERENCE_H
#define PNR_ENGINE_REFERENCE_H

#include "engine/engine.h"

const pnr_engine_ops *pnr_engine_reference(void);

#endif
