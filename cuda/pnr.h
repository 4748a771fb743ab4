/* SPDX-License-Identifier: MIT */
/* The C headers of pnradar for C++ files. */
#ifndef PNR_CUDA_PNR_H
#define PNR_CUDA_PNR_H

extern "C" {
#include "clock.h"
#include "engine.h"
#include "error.h"
#include "format.h"
#include "log.h"
#include "plan.h"
#include "rational.h"
#include "transform.h"
}

#endif
