/* SPDX-License-Identifier: MIT */
/* The cuda engine inside its module: parts of it that the benchmarks use. */
#ifndef PNR_CUDA_ENGINE_CUDA_H
#define PNR_CUDA_ENGINE_CUDA_H

#include "cuda/base/slot.h"

/* Gives the slot of the next submit and the data that all slots share. Call it while no submit is
 * in flight. The engine owns both the slot and the data. */
pnr_cuda_slot *pnr_cuda_engine_slot(pnr_engine *engine, const pnr_cuda_common **common);

#endif
