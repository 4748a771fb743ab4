/* SPDX-License-Identifier: MIT */
/* The cuda engine from inside its module: what the measurements need of it. */
#ifndef PNR_CUDA_ENGINE_CUDA_H
#define PNR_CUDA_ENGINE_CUDA_H

#include "cuda/base/slot.h"

/* The slot of the next submit, with nothing in flight, and what all slots share: the engine's. */
pnr_cuda_slot *pnr_cuda_engine_slot(pnr_engine *engine, const pnr_cuda_common **common);

#endif
