/* SPDX-License-Identifier: MIT */
/* The contract of every engine: one table of operations. The caller submits samples and collects
 * candidates. */
#ifndef PNR_ENGINE_H
#define PNR_ENGINE_H

#include "engine/plan.h"

/* A program and the modules that it loads must be built with the same number. */
enum { PNR_ENGINE_ABI = 9 };

/* The stages of a submit, in the order in which `pnradar-bench chain` names them. */
enum {
    PNR_STAGE_UPLOAD,
    PNR_STAGE_CONVERT,
    PNR_STAGE_FORWARD,
    PNR_STAGE_PRODUCT,
    PNR_STAGE_INVERSE,
    PNR_STAGE_PEAK,
    PNR_STAGE_RETURN,
    PNR_STAGE_COUNT
};

/* A local maximum above the threshold. */
typedef struct pnr_candidate {
    uint32_t cell; /* index g of the cell; its lag is g / oversample */
    uint16_t code;
    uint16_t channel;
    uint32_t row;                   /* Doppler row, counted through all hypotheses */
    float power;                    /* power P of the cell */
    float value[PNR_NEIGHBOURS][2]; /* values at lags centre-8 .. centre+8, see pnr_plan */
} pnr_candidate;

/* The sums of one dwell. */
typedef struct pnr_dwell {
    double energy;        /* sum of E_p of the used windows, see pnr_plan; full scale = 1 */
    double noise_sum;     /* sum of P over all codes, rows and integer lags */
    double floor;         /* mean noise power of a cell, after the last search */
    uint64_t n_valid;     /* samples of the used windows that are neither lost nor non-finite */
    uint64_t n_clipped;   /* clipped samples in all windows of the dwell */
    uint64_t n_nonfinite; /* non-finite samples in all windows of the dwell */
    uint32_t n_periods;   /* number of used windows */
    /* number of cells in the gate that exceed the threshold or the CFAR level, in the first search.
     * In noise alone the mean of n_above is Pfa of a cell times the number of cells in the gate */
    uint32_t n_above;
    uint32_t n_maxima;     /* local maxima above the threshold in the gate, in the last search */
    uint32_t n_candidates; /* number of returned candidates, including the one outside of the
                            * gate */
} pnr_dwell;

/* The result of a submit. The engine owns the memory of the result. The memory is valid until the
 * next submit. */
typedef struct pnr_result {
    uint64_t tag; /* the tag of the job */
    size_t n_dwells;
    const pnr_dwell *dwells; /* [n_dwells] */
    const pnr_candidate
        *candidates;           /* [n_dwells][max_candidates]; only the first n_candidates of each
                                * dwell are set */
    const uint32_t *nonfinite; /* [n_dwells][n_looks n_periods] non-finite samples of each window */
    const float *profile;      /* NULL unless plan.want_profile. [n_dwells][n_codes][n_rows]
                                * [n_lags * oversample] powers, or [..][2] for the complex values
                                * of the last used look */
    /* NULL for a plan of one row. [n_dwells][max_candidates][PNR_NEIGHBOURS rows][PNR_NEIGHBOURS
     * lags][2]: values in rows -8 .. +8 around the candidate's row. Rows that do not exist have
     * zeros */
    const float *patches;
    uint64_t stage_ns[PNR_STAGE_COUNT]; /* times of the stages in the whole submit; set if
                                         * plan.measure */
} pnr_result;

/* One submit. The caller changes neither the samples nor the arrays of the windows until the job is
 * collected. */
typedef struct pnr_job {
    const pnr_windows *windows; /* copied during submit; n_dwells <= batch */
    uint64_t tag;
} pnr_job;

/* An echo to subtract. n is the index of a sample in its look. After the samples are converted,
 * conjugated and tuned, the product of `peak`, replica[n mod N] and exp(2 pi i F n / N) is
 * subtracted from each sample that is neither lost nor non-finite. */
typedef struct pnr_removal {
    const float (*replica)[2]; /* [n_samples] */
    double peak[2];
    double bins; /* F, the Doppler in bins */
} pnr_removal;

/* How an engine will carry out a plan. */
typedef struct pnr_engine_choice {
    char method[32];     /* such as "library" */
    char why[160];       /* reason for the choice, one sentence */
    size_t n_transform;  /* length of the transforms: N or greater */
    uint64_t host_bytes; /* memory that the engine will allocate */
    uint64_t device_bytes;
} pnr_engine_choice;

typedef struct pnr_engine pnr_engine; /* defined by each engine */

typedef struct pnr_engine_ops {
    int abi;           /* PNR_ENGINE_ABI */
    const char *name;  /* such as "cuda" */
    const char *title; /* one phrase for --list-engines */
    /* Returns the number of devices of this machine, whether they work or not. NULL in an engine
     * that ignores plan.device. */
    size_t (*count)(void);
    /* PNR_OK: the engine works here, and `text` describes the device, such as "NVIDIA H200, 143771
     * MiB, driver 13.0". The model is before the first comma: devices of one model give the same
     * bits. PNR_EUNAVAILABLE: `text` gives the reason in one line. */
    int (*probe)(size_t device, char *text, size_t text_size);
    /* Returns sample memory that the engine reads fastest (pinned for all devices), aligned to 64
     * bytes and zeroed. NULL: out of memory. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *memory);
    /* Prepares sample memory that another process shares, so that the engine reads it as fast as
     * memory from alloc. The memory stays prepared until the calling process ends. NULL in an
     * engine that reads all memory equally fast. Errors: those of create. */
    int (*pin)(void *memory, size_t bytes, pnr_error *error);
    /* PNR_OK; PNR_ECONFIG: unknown method; PNR_EUNSUPPORTED: error names the unsupported part. */
    int (*describe)(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error);
    /* Creates an engine. This may take long. On failure the error has the reason. After create the
     * engine allocates nothing, except as plan.will_subtract says. */
    int (*create)(const pnr_plan *plan, pnr_engine **engine, pnr_error *error);
    void (*destroy)(pnr_engine *engine); /* waits for the submits in flight */
    /* Never waits. PNR_OK; PNR_EAGAIN: plan.depth submits are in flight already; PNR_EENGINE: this
     * job failed and is not in flight; PNR_ELOST: the device is lost. */
    int (*submit)(pnr_engine *engine, const pnr_job *job);
    /* Returns the result of the oldest submit. PNR_OK; PNR_EAGAIN: not ready (only when !wait), or
     * nothing in flight; PNR_EENGINE: that job failed (it is no longer in flight; tag is set);
     * PNR_ELOST. */
    int (*collect)(pnr_engine *engine, bool wait, pnr_result *result);
    /* Uploads the part of the next submit's samples that has already arrived. NULL in an engine
     * that does not upload ahead. windows->n_dwells is ignored. The samples must not change
     * until that submit is collected. If the next submit begins at another sample, the uploaded
     * part is void and its memory may change at any time. Never waits. PNR_OK; PNR_EAGAIN: depth
     * submits are in flight; PNR_ELOST. */
    int (*upload_ahead)(pnr_engine *engine, const pnr_windows *windows);
    /* Subtracts the echoes from the samples of one dwell of the last collected result, and searches
     * this dwell again; n_looks must be 1. windows: as submitted, with unchanged samples.
     * Waits for the result, and does not disturb submits in flight. *result has one dwell and is
     * valid until the next submit, collect or search_without; the collected result stays unchanged.
     * PNR_OK, PNR_EENGINE, PNR_ELOST. */
    int (*search_without)(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                          const pnr_removal *removals, size_t n_removals, pnr_result *result);
} pnr_engine_ops;

/* A module (cpu.so, cuda.so) exports this function by this name. */
#define PNR_ENGINE_SYMBOL "pnr_engine_module"
typedef const pnr_engine_ops *(*pnr_engine_module_fn)(void);

#endif
