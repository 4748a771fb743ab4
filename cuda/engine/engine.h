/* SPDX-License-Identifier: MIT */
/* Parts of the cuda engine that other files of its module use. */
#ifndef PNR_CUDA_ENGINE_CUDA_H
#define PNR_CUDA_ENGINE_CUDA_H

#include "cuda/base/slot.h"

/* Returns the slot of the next submit, and sets *common to the data that all slots share. Call it
 * while no submit is in flight. The engine owns both the slot and the data. */
pnr_cuda_slot *pnr_cuda_engine_slot(pnr_engine *engine, const pnr_cuda_common **common);

#endif
