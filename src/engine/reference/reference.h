/* SPDX-License-Identifier: MIT */
/* The reference engine: the sum by its definition, in double precision. The other engines are
 * tested against it. */
#ifndef PNR_ENGINE_REFERENCE_H
#define PNR_ENGINE_REFERENCE_H

#include "engine/engine.h"

const pnr_engine_ops *pnr_engine_reference(void);

#endif
