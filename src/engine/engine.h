/* SPDX-License-Identifier: MIT */
/* The contract that every engine keeps: one table of operations; samples in, candidates out. */
#ifndef PNR_ENGINE_H
#define PNR_ENGINE_H

#include "base/error.h"
#include "base/format.h"
#include "base/rational.h"
#include "engine/block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both sides of a loaded module must have been built for the same number. */
enum { PNR_ENGINE_ABI = 5 };

enum {
    PNR_NEIGHBOURS = 17,     /* complex values at lag -8 .. +8 around a candidate */
    PNR_MAX_CANDIDATES = 64, /* a dwell */
    PNR_MAX_DEPTH = 4,       /* submits in flight */
    PNR_MAX_SEARCHES = 3     /* of one profile, see plan.threshold */
};

typedef enum { PNR_REFERENCE_STORED, PNR_REFERENCE_CHANNEL } pnr_reference;
typedef enum {
    PNR_DWELL_SINGLE,
    PNR_DWELL_COHERENT,
    PNR_DWELL_INCOHERENT,
    PNR_DWELL_DOPPLER
} pnr_dwell_kind;
typedef enum { PNR_CFAR_OFF, PNR_CFAR_CA, PNR_CFAR_GO, PNR_CFAR_SO, PNR_CFAR_OS } pnr_cfar_kind;
typedef enum { PNR_CFAR_ALONG_LAGS, PNR_CFAR_ALONG_ROWS } pnr_cfar_axis;
typedef enum { PNR_WANT_NONE, PNR_WANT_POWER, PNR_WANT_COMPLEX } pnr_want;

/* The stages that bench `chain` names, in order. */
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

/*
 * Neighbouring Doppler rows of a map that share one rotation of the samples (and, before that, one
 * change of their time scale). Frequencies are in bins of 1/Tr, Tr = N samples.
 */
typedef struct pnr_hypothesis {
    int32_t quarters;  /* the rotation: f = quarters / 4 bins */
    int32_t first_bin; /* slow-time bins s = first_bin .. + n_rows - 1: the row of s is at */
    uint32_t n_rows;   /* F = f + s / K bins; one row, s = 0, where the dwell is not Doppler */
    double stretch;    /* b: the look is read at the time m + (n - m) (1 + b), m = (K N - 1) / 2 its
                          middle, see pnr_stretch_at; an echo of Doppler F and carrier c wants b = -F /
                          (Tr c). 0: as it is */
} pnr_hypothesis;

/* Of the floor: what a cell under CFAR must have in any case. */
#define PNR_CFAR_LEAST 1e-6

/*
 * Constant false alarm rate. A cell is above when P > factor Z and P > 1e-6 of the floor before
 * the search; the second condition rejects the rounding that a removed mean leaves.
 *
 * Z comes from training cells on both sides of the cell, either along the lags of its row (cyclic
 * when the correlation is) or along the rows at its lag (not cyclic). They lie at the distances
 *     guard + 1 + i stride,   i = 0 .. training - 1,
 * in lags (a half lag trains on half lags) or in rows. Cells beyond an end do not exist.
 *     CA      Z is the mean of all cells
 *     GO, SO  Z is the greater or the lesser of both sides' means; a side without cells does not
 *             count
 *     OS      Z is the ceil(3 m / 4)-th smallest of the m cells that exist
 * When no training cell exists, no cell is above.
 */
typedef struct pnr_cfar {
    pnr_cfar_kind kind;
    pnr_cfar_axis axis;
    size_t guard, training, stride; /* stride: cells whose noise is not correlated */
    /* [n_looks][training + 1][training + 1]: factor[looks used - 1][cells before][cells after] */
    const double *factor;
} pnr_cfar;

/*
 * What an engine is created for. All pointers are read during create only.
 *
 * Correlation of one window x (N samples, converted to full scale = 1, tuned, conjugated when
 * `conjugate`; lost and non-finite samples are 0) with code a:
 *     c[k] = sum_n x[(n + k) mod N] conj(a[n]),   k = 0..N-1.
 * With oversample 2 also at k + 1/2: the same sum with a[n - 1/2]
 * (references[1]). A cell g of the search grid is lag g / oversample.
 *
 * A window takes part in its dwell when lost + non-finite <= N/2; else it has weight 0.
 * Dwell of K windows: coherent: c is the sum of the windows' c (the engine adds the windows before
 * the transform); power P[g] = |c|^2. Incoherent: P[g] = sum over windows |c|^2. Single: K = 1.
 *
 * Noise: floor = sum|x|^2 * E_a / N over the windows used, E_a = sum|a|^2: the mean of P were all
 * of x noise. A cell is above when P > threshold[windows used - 1] * floor, and P > 0. A candidate
 * is a local maximum above, in lag order, inside the gate: P[g] > P[g-1] and P[g] >= P[g+1]
 * (cyclic; the lowest lag of a tie). Of more than max_candidates the strongest are kept (ties:
 * lowest lag), still in lag order. Search again: the echoes found are taken out of the floor: rest
 * = (noise_sum - sum of P over integer lags within +-8 of a kept candidate) / (lags left), each lag
 * taken out once; when none is kept, or fewer than N/2 lags are left, there is no second search.
 *     rest = max(rest, 1e-12 * sum|x|^2 * E_a * windows used): rounding is no echo.
 * If rest < 0.95 * floor, floor = rest, and while fewer than max_candidates are kept (a lower
 * threshold adds only weaker ones) the search is repeated, PNR_MAX_SEARCHES searches in all. So a
 * strong echo does not hide a weak one, while the code's own sidelobes stay in the floor and are
 * not taken for echoes.
 *
 * The centre lag of a candidate at cell g is floor(g / oversample). Its neighbours are at integer
 * lags centre-8..centre+8 (mod N): single, coherent: c itself; incoherent: sum over windows c[k +
 * j] conj(c[k]) / sqrt(P[k]), k the centre.
 *
 * That is a plain dwell. A dwell is a map (pnr_plan_is_map) when it has more than one code, row or
 * look, or is Doppler, linear, filtered, under CFAR, without its mean, or has an exclusion above 1;
 * it is SINGLE, COHERENT or DOPPLER then (incoherent: looks of one period). It has n_looks looks of
 * K = n_periods windows. Of a map:
 * - Linear: window p is the N + n_lags - 1 samples from its first one on, and the next begins N
 *   later; c[k] = sum_n x[n + k] conj(a[n]), k = 0 .. n_lags - 1. Lags are not cyclic. The gate
 *   lies 8 lags within both ends. Circular: n_lags = N.
 * - remove_mean: from each sample of a window the mean of the samples at its place (0 .. N - 1,
 *   linear: N + n_lags - 2) in the look's used windows is taken, lost and non-finite ones left
 *   out of the mean and left 0. A look of U = 1 used windows has nothing left: it counts as unused.
 * - The row at F = f + s/K of hypothesis h is, for each code a and look,
 *       c[k] = sum_p w_p exp(-2 pi i F p) sum_n x_p[i] exp(-2 pi i f i / N) conj(a[n]),
 *   i = (n + k) mod N, linear: n + k; w_p the taper, p = 0..K-1 over the look's used windows; x_p
 *   from the stretched look where h has a stretch: it is made of the samples of all windows, the
 *   unused ones' too (each with the mean of its place in the window whose own N it belongs to; of
 *   what is behind them all, in the last), and 0 beyond. Rows are numbered through all hypotheses
 *   in order, at ascending F.
 * - filter: c'[k] = sum_j filter[k][j] c[gate_first + j] replaces c[gate_first + k]; the rest is 0.
 * - P = sum over looks |c|^2; a look without a used window is not there.
 * - floor = sum over looks and used windows w_p^2 E_p E_a / N, E_p = sum |x_p|^2 over the window's
 *   own N samples (after the mean is removed, times U / (U - 1)); dwell.energy = sum E_p.
 * - Above: P > threshold floor, or as cfar says. A candidate is above, inside the gate, and P[g] >
 *   every cell before it, P[g] >= every cell behind it within +-exclusion_cells cells of the lag
 *   grid and +-exclusion_rows rows; before is a lower row, or the same row and a lower lag (by
 *   distance: across the cyclic end too). Candidates are in the order of code, row, cell; ties go
 *   to the first.
 * - noise_sum is over all codes, rows and integer lags. For the rest each (code, lag) column is
 *   taken out with all its rows; it is the mean of the cells left, when half of the columns are.
 *   With a filter only the gate's lags count. With CFAR there is one search; floor is that rest.
 * - The neighbours are c itself when there is one look, else sum over looks c[j] conj(c[0]) /
 *   sqrt(P[0]), 0 the centre's. With more than one row the rows around come too: patches.
 */
typedef struct pnr_plan {
    size_t n_samples;  /* N, 1 .. 2^24 */
    pnr_format format; /* of one sample of one channel */
    size_t n_channels; /* interleaved in memory: [n_samples][n_channels] */

    /* The axes. An engine that lacks one says so in words when it is created. */
    size_t first_channel, n_used_channels; /* correlated channels */
    size_t n_codes;                        /* 1 .. 65535, all of the energy of the first */
    size_t n_hypotheses;
    const pnr_hypothesis *hypotheses; /* [n_hypotheses]; NULL: one, at 0, with one row */
    size_t n_periods;                 /* K */
    size_t n_looks;                   /* windows a dwell: n_looks K */
    pnr_dwell_kind dwell;
    pnr_reference reference;
    bool linear;
    size_t n_lags; /* N, or of a linear correlation */
    bool remove_mean;
    const double *taper;       /* [n_periods]; NULL: 1 */
    const double (*filter)[2]; /* [gate_count][gate_count]; NULL: none */
    pnr_cfar cfar;
    size_t exclusion_cells, exclusion_rows; /* 1 and more */

    size_t oversample; /* 1 or 2 */
    /* [n_codes][oversample][n_samples][2]: a[n], and a[n - 1/2] */
    const double (*references)[2];
    /* When references[0] is an m-sequence, constant over the q samples of a chip, its degree, N =
     * q (2^degree - 1); else 0. a[n] = 1 - 2 bit[floor(n / q)], bit[i + degree] is the xor of bit[i
     * + degree - t] over the taps t (i mod 2^degree - 1). An engine refuses a plan whose reference
     * is not that sequence. */
    unsigned m_degree;
    uint64_t m_taps;  /* bit t-1 set for tap t; the largest is the degree */
    size_t m_samples; /* q, samples a chip: at least 1 where m_degree is not 0 */

    pnr_rational tune; /* cycles a sample, mixed down: x[n] exp(-2 pi i frac(tune n)), n the
                          absolute sample index; {0,0}: none */
    bool conjugate;    /* the recording is I - jQ: x is conjugated before the tune */

    size_t gate_first, gate_count; /* integer lags searched: gate_first .. + gate_count - 1 (mod N);
                                      with oversample 2 the half lags above each of them too */
    const double *threshold;       /* [n_looks n_periods]: times floor, by windows used - 1 */
    size_t max_candidates;         /* 1..PNR_MAX_CANDIDATES */

    size_t batch;          /* dwells a submit, at most */
    size_t depth;          /* submits in flight, 1..PNR_MAX_DEPTH */
    pnr_want want_profile; /* return every lag of every dwell too */
    bool measure;          /* fill stage_ns: may be slower */
    bool spin;             /* collect waits awake: it polls, and never sleeps */
    size_t device;         /* which GPU */
    size_t threads;        /* cpu: 0 = one a core */
    const char *method;    /* "auto" or one of the engine's */
    bool repeats;          /* again will be called: what it needs is made by create, else by the
                              first call */
} pnr_plan;

/* A local maximum above the threshold. */
typedef struct pnr_candidate {
    uint32_t cell; /* g: lag = g / oversample */
    uint16_t code;
    uint16_t channel;
    uint32_t row;                   /* of Doppler, through all hypotheses */
    float power;                    /* P[cell] */
    float value[PNR_NEIGHBOURS][2]; /* at lag centre-8 .. centre+8 */
} pnr_candidate;

/* One dwell's sums. */
typedef struct pnr_dwell {
    double energy;         /* sum |x|^2 of the windows used, full scale = 1 */
    double noise_sum;      /* sum of P over the integer lags (of a map: its codes and rows too) */
    double floor;          /* of the last search */
    uint64_t n_valid;      /* samples neither lost nor non-finite in the windows used */
    uint64_t n_clipped;    /* in all windows of the dwell */
    uint64_t n_nonfinite;  /* in all windows of the dwell */
    uint32_t n_periods;    /* windows used */
    uint32_t n_above;      /* cells above in the first search: what pfa_cell is about */
    uint32_t n_maxima;     /* local maxima above in the last search */
    uint32_t n_candidates; /* returned */
} pnr_dwell;

/* What collect gives; the engine's memory, valid until the next submit. */
typedef struct pnr_result {
    uint64_t tag; /* of the job */
    size_t n_dwells;
    const pnr_dwell *dwells; /* [n_dwells] */
    const pnr_candidate
        *candidates;           /* [n_dwells][max_candidates], the first n_candidates of each set */
    const uint32_t *nonfinite; /* [n_dwells][n_looks n_periods] */
    const float *profile;      /* want_profile: [n_dwells][n_codes][n_rows][n_lags * oversample]
                                  power, or [..][2] complex (of several looks: the last one; of an
                                  incoherent dwell: its last window); else NULL */
    /* With more than one row: [n_dwells][max_candidates][PNR_NEIGHBOURS rows][PNR_NEIGHBOURS
     * lags][2], rows -8 .. +8 around the candidate's, zeros where there is none; else NULL */
    const float *patches;
    uint64_t stage_ns[PNR_STAGE_COUNT]; /* plan.measure: of the whole submit */
} pnr_result;

/* One submit. The samples stay untouched until the job is collected. */
typedef struct pnr_job {
    const pnr_windows *windows; /* copied where needed during submit; n_dwells <= batch */
    uint64_t tag;
} pnr_job;

/* An echo to take out: from sample n of each look, counted from its first one, after conversion,
 * conjugation and tune, and where it is neither lost nor not finite:
 *     peak replica[n mod N] exp(2 pi i F n / N). */
typedef struct pnr_removal {
    const float (*replica)[2]; /* [n_samples] */
    double peak[2];
    double bins; /* F */
} pnr_removal;

/* What an engine would do with a plan. */
typedef struct pnr_engine_choice {
    char method[32];     /* "library" */
    char why[160];       /* one sentence */
    size_t n_transform;  /* length of the transforms; N, or an extension of it */
    uint64_t host_bytes; /* memory it will take */
    uint64_t device_bytes;
} pnr_engine_choice;

typedef struct pnr_engine pnr_engine; /* each engine's own */

typedef struct pnr_engine_ops {
    int abi;           /* PNR_ENGINE_ABI */
    const char *name;  /* "cuda" */
    const char *title; /* one phrase for --list-engines */
    /* PNR_OK: works here, text says what was found ("NVIDIA H200, 143771 MiB, driver 13.0"); else
     * PNR_EUNAVAILABLE and text is the reason, one line. */
    int (*probe)(size_t device, char *text, size_t text_size);
    /* Sample memory that the engine reads fastest (pinned); aligned to 64; zeroed. NULL: out of
     * memory. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *memory);
    /* PNR_OK, PNR_ECONFIG (unknown method), PNR_EUNSUPPORTED (an axis it lacks, in words). */
    int (*describe)(const pnr_plan *plan, pnr_engine_choice *choice, pnr_error *error);
    /* Slow; may fail with words. Afterwards nothing is allocated. */
    int (*create)(const pnr_plan *plan, pnr_engine **engine, pnr_error *error);
    void (*destroy)(pnr_engine *engine); /* waits for what is in flight */
    /* Never waits. PNR_OK; PNR_EAGAIN: depth submits are in flight; PNR_EENGINE: this job failed,
     * nothing is in flight for it; PNR_ELOST: the device is gone. */
    int (*submit)(pnr_engine *engine, const pnr_job *job);
    /* The oldest submit's result. PNR_OK; PNR_EAGAIN: not ready (only when !wait), or nothing in
     * flight; PNR_EENGINE: that job failed (it is no longer in flight; tag is set); PNR_ELOST. */
    int (*collect)(pnr_engine *engine, bool wait, pnr_result *result);
    /* NULL where an engine has no use for it. The samples that the next submit will begin with, as
     * far as they have come (n_dwells counts for nothing). They stay untouched until that submit is
     * collected, unless the next submit begins elsewhere: then what came ahead is void, and its
     * memory may change at any time. The engine may upload them now. Never waits. PNR_OK;
     * PNR_EAGAIN: depth submits are in flight; PNR_ELOST. */
    int (*advance)(pnr_engine *engine, const pnr_windows *windows);
    /* One dwell of the result that was collected last, once more, its echoes taken out of the
     * samples (of one look only): the same plan, the same search. windows: as submitted, still
     * untouched. Waits, and keeps what is in flight; *result (of one dwell) is valid until the next
     * submit, collect or again, and leaves the collected one as it is. PNR_OK, PNR_EENGINE,
     * PNR_ELOST. */
    int (*again)(pnr_engine *engine, const pnr_windows *windows, size_t dwell,
                 const pnr_removal *removals, size_t n_removals, pnr_result *result);
} pnr_engine_ops;

/* A module (cpu.so, cuda.so) exports this function by this name. */
#define PNR_ENGINE_SYMBOL "pnr_engine_module"
typedef const pnr_engine_ops *(*pnr_engine_module_fn)(void);

/*
 * Finds an engine. "reference" is built in; others are modules <name>.so in $PNR_ENGINE_PATH
 * (colon-separated), else beside the program (../lib/pnradar from its folder), else the installed
 * folder. PNR_OK, or PNR_EUNAVAILABLE with the reason (no such module, missing library, wrong ABI,
 * probe's reason). Modules stay loaded until exit.
 */
int pnr_engine_find(const char *name, size_t device, const pnr_engine_ops **ops, pnr_error *error);

/* name "auto": the first of cuda, cpu that works for this plan (describe succeeds); logs which, and
 * why not the others. Never reference. A named engine is never replaced. */
int pnr_engine_choose(const char *name, const pnr_plan *plan, const pnr_engine_ops **ops,
                      pnr_error *error);

/* The names that --list-engines shows, best first, ends with NULL. */
const char *const *pnr_engine_names(void);

/* Optional second table of a module for pnradar-bench and pnradar-plan. */
#define PNR_ENGINE_BENCH_SYMBOL "pnr_engine_bench"
typedef enum {
    PNR_MANNER_ANEW,     /* everything anew per call, double precision, pageable memory */
    PNR_MANNER_REUSED,   /* plan and memory reused, double, pageable */
    PNR_MANNER_PINNED,   /* single precision, pinned memory */
    PNR_MANNER_RESIDENT, /* single precision, samples already on the device */
    PNR_MANNER_COUNT
} pnr_manner;
/* A kernel that a method launches for one submit. */
typedef struct pnr_kernel_note {
    char name[120];
    size_t n_blocks, n_threads; /* of the launch; threads a block */
    size_t n_registers;         /* a thread */
    size_t local_bytes;         /* a thread: spills, and arrays that are no registers */
    size_t shared_bytes;        /* a block, static and dynamic */
    size_t blocks_a_processor;  /* that run at one time; 0: not known */
    double occupancy;           /* share of the threads that a processor can hold */
} pnr_kernel_note;

/*
 * One method of an engine, its samples already on the device in several sets, its results left
 * there: what `pnradar-bench methods` times. Functions return PNR_OK or as the engine's create and
 * submit do, in words.
 */
typedef struct pnr_resident pnr_resident; /* each engine's own */
typedef struct pnr_resident_ops {
    /* Bytes a second, read and written, of a copy within the device: median of >= 10; 0: failed. */
    double (*copy_rate)(size_t device, size_t bytes);
    /* One line: processors, clocks now (measured) and at most, cache. */
    int (*describe)(size_t device, char *text, size_t text_size);
    /* plan->batch dwells a submit; plan->depth and want_profile are of no matter. */
    int (*create)(const pnr_plan *plan, size_t n_sets, pnr_resident **out, pnr_error *error);
    void (*destroy)(pnr_resident *resident);
    /* Fills a set, on the device: noise of 0.2 of full scale (rms) and in every window of dwell d
     * the code, 0.2 of full scale, at lags[d] and a random phase, in a real format a random sign;
     * of a map as pnr_measure_scatter. The same samples for the same plan, seed and lags. */
    int (*fill)(pnr_resident *resident, size_t set, uint64_t seed, const uint32_t *lags,
                pnr_error *error);
    /* Poisons the results' memory, correlates one set, and brings the results to the host; they are
     * valid until the next call. Only dwells, candidates and nonfinite are given. */
    int (*run)(pnr_resident *resident, size_t set, pnr_result *result, pnr_error *error);
    /* ns: [n_sets]: everything between samples and results, once for each set, one after the
     * other. */
    int (*time)(pnr_resident *resident, double *ns, pnr_error *error);
    /* What one submit launches, in order; returns how many there are, at most `capacity` are
     * written. */
    size_t (*kernels)(const pnr_resident *resident, pnr_kernel_note *notes, size_t capacity);
    /* Bytes of the device's memory that are taken, by whomever; 0: not known. */
    uint64_t (*memory_used)(size_t device);
} pnr_resident_ops;

typedef struct pnr_engine_bench {
    int abi;
    /* Host to device with pinned memory, bytes a second, median of >= 10 copies of `bytes`; 0 on a
     * CPU. */
    double (*link_rate)(size_t device, size_t bytes);
    /* Median and 99th percentile ns of one whole correlation of n complex samples in one manner
     * (forward, product with a stored spectrum, inverse, |.|^2, maximum), `runs` counted after one
     * discarded; index must come out as `delay`. PNR_OK, PNR_EUNSUPPORTED, PNR_ENOMEMORY,
     * PNR_EENGINE. */
    int (*seed)(size_t device, size_t n, pnr_manner manner, int runs, double *median_ns,
                double *p99_ns, pnr_error *error);
    /* Of a device with memory of its own; all NULL on a CPU. */
    const pnr_resident_ops *resident;
} pnr_engine_bench;
/* NULL when the engine has none. ops must come from pnr_engine_find. */
const pnr_engine_bench *pnr_engine_get_bench(const char *name);

#endif
