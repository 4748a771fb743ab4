/* SPDX-License-Identifier: MIT */
/* The C headers of pnradar for C++ files. */
#ifndef PNR_CUDA_PNR_H
#define PNR_CUDA_PNR_H

extern "C" {
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/log.h"
#include "base/rational.h"
#include "base/transform.h"
#include "engine/engine.h"
#include "engine/plan.h"
}

#endif
