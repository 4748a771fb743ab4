/* SPDX-License-Identifier: MIT */
/* Walsh-Hadamard transform of a block: 32 values per thread, exchanged through shared memory. */
#ifndef PNR_CUDA_WALSH_TRANSFORM_H
#define PNR_CUDA_WALSH_TRANSFORM_H

#include "cuda/base/sample.h"
#include "cuda/walsh/walsh.h"

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

/* Returns the index in shared memory of value e of a block. One unused value follows every 32
 * values. So no access in this file has bank conflicts. */
static __device__ __forceinline__ uint32_t pnr_walsh_at(uint32_t e)
{
    return e + (e >> 5);
}

/* In layout SHIFT, the register number of a value is bits SHIFT .. SHIFT + 4 of its index.
 * pnr_walsh_first returns the index of the thread's first value. pnr_walsh_step returns the
 * distance in shared memory from this value to the thread's value r. */
template <int SHIFT> static __device__ __forceinline__ uint32_t pnr_walsh_first()
{
    return threadIdx.x >> SHIFT << (SHIFT + 5) | (threadIdx.x & ((1u << SHIFT) - 1));
}
template <int SHIFT> static __device__ __forceinline__ constexpr uint32_t pnr_walsh_step(uint32_t r)
{
    return (r << SHIFT) + (r << SHIFT >> 5);
}

template <int SHIFT>
static __device__ __forceinline__ void pnr_walsh_store(float2 *shared,
                                                       const float2 (&v)[PNR_WALSH_EACH])
{
    float2 *at = shared + pnr_walsh_at(pnr_walsh_first<SHIFT>());

#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
        at[pnr_walsh_step<SHIFT>(r)] = v[r];
}

template <int SHIFT>
static __device__ __forceinline__ void pnr_walsh_load(const float2 *shared,
                                                      float2 (&v)[PNR_WALSH_EACH])
{
    const float2 *at = shared + pnr_walsh_at(pnr_walsh_first<SHIFT>());

#pragma unroll
    for (uint32_t r = 0; r < PNR_WALSH_EACH; r++)
        v[r] = at[pnr_walsh_step<SHIFT>(r)];
}

/* Computes sums and differences over bits FROM .. TO - 1 of the register number. */
template <int FROM, int TO>
static __device__ __forceinline__ void pnr_walsh_butterflies(float2 (&v)[PNR_WALSH_EACH])
{
    if constexpr (FROM < TO) {
#pragma unroll
        for (int i = 0; i < PNR_WALSH_EACH; i++) {
            if ((i >> FROM & 1) == 0) {
                const float2 a = v[i], b = v[i + (1 << FROM)];

                v[i] = make_float2(a.x + b.x, a.y + b.y);
                v[i + (1 << FROM)] = make_float2(a.x - b.x, a.y - b.y);
            }
        }
        pnr_walsh_butterflies<FROM + 1, TO>(v);
    }
}

/* Waits for the block, which is one warp up to degree 10. */
template <int BITS> static __device__ __forceinline__ void pnr_walsh_barrier()
{
    if constexpr (BITS > 10)
        __syncthreads();
    else
        __syncwarp();
}

/* Changes layout FROM to layout TO. A second exchange needs no barrier before it: a thread
 * stores only to the places from which it has loaded in the first exchange. */
template <int BITS, int FROM, int TO>
static __device__ __forceinline__ void pnr_walsh_exchange(float2 *shared,
                                                          float2 (&v)[PNR_WALSH_EACH])
{
    pnr_walsh_store<FROM>(shared, v);
    pnr_walsh_barrier<BITS>();
    pnr_walsh_load<TO>(shared, v);
}

/* Transforms over the low BITS bits of the index, 5 <= BITS <= 13. The input is in layout 0, the
 * output in layout BITS - 5. The threads pass a barrier, then call meanwhile(), and only then write
 * to shared memory. */
template <int BITS, typename MEANWHILE>
static __device__ __forceinline__ void
pnr_walsh_transform(float2 *shared, float2 (&v)[PNR_WALSH_EACH], MEANWHILE meanwhile)
{
    pnr_walsh_butterflies<0, 5>(v);
    pnr_walsh_barrier<BITS>();
    meanwhile();
    if constexpr (BITS > 5 && BITS <= 10) {
        pnr_walsh_exchange<BITS, 0, BITS - 5>(shared, v);
        pnr_walsh_butterflies<10 - BITS, 5>(v);
    }
    if constexpr (BITS > 10) {
        pnr_walsh_exchange<BITS, 0, 5>(shared, v);
        pnr_walsh_butterflies<0, 5>(v);
        pnr_walsh_exchange<BITS, 5, BITS - 5>(shared, v);
        pnr_walsh_butterflies<15 - BITS, 5>(v);
    }
}

/* --- samples and their measurement --- */

/* Measures at most 64 samples. The energy of integer samples is exact. is_odd() returns true if a
 * sample may be clipped or non-finite. */
template <typename T> struct pnr_walsh_measure;

template <> struct pnr_walsh_measure<int16_t> {
    int32_t low = 0, high = 0;
    uint32_t nearest = UINT32_MAX; /* smallest (x - INT16_MAX) mod 2^16: I in the low half, Q in the
                                    * high half */

    /* Measures a sample. Returns the sample, or 0 if it is not finite. */
    __device__ __forceinline__ pnr_cuda_pair<int16_t> take(pnr_cuda_pair<int16_t> x)
    {
        const uint32_t word = (uint32_t)(uint16_t)x.q << 16 | (uint16_t)x.i;
        const uint32_t bytes = __byte_perm(word, 0, 0x3120);

        /* i^2 + q^2 = i low(i) + q low(q) + 256 (i high(i) + q high(q)); high: a signed byte */
        asm("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(low) : "r"(word), "r"(bytes));
        asm("dp2a.hi.s32.s32 %0, %1, %2, %0;" : "+r"(high) : "r"(word), "r"(bytes));
        /* INT16_MAX gives 0, INT16_MIN gives 1 */
        nearest = __viaddmin_u16x2(word, 0x80018001u, nearest);
        return x;
    }
    __device__ __forceinline__ long long energy() const
    {
        return (long long)high * 256 + low;
    }
    __device__ __forceinline__ bool is_odd() const
    {
        return (nearest & 0xffff) <= 1 || nearest >> 16 <= 1;
    }
    /* Returns 1 for a clipped sample, 0x10000 for a non-finite sample, else 0. */
    static __device__ __forceinline__ uint32_t odd(pnr_cuda_pair<int16_t> x)
    {
        return pnr_cuda_is_end(x.i) || pnr_cuda_is_end(x.q);
    }
};

template <> struct pnr_walsh_measure<int8_t> {
    int32_t sum = 0;
    float greatest = 0;

    __device__ __forceinline__ pnr_cuda_pair<int8_t> take(pnr_cuda_pair<int8_t> x)
    {
        const int32_t i = x.i, q = x.q;

        sum += i * i + q * q;
        greatest = fmaxf(greatest, fmaxf(fabsf((float)i), fabsf((float)q)));
        return x;
    }
    __device__ __forceinline__ long long energy() const
    {
        return sum;
    }
    __device__ __forceinline__ bool is_odd() const
    {
        return greatest >= (float)INT8_MAX;
    }
    static __device__ __forceinline__ uint32_t odd(pnr_cuda_pair<int8_t> x)
    {
        return pnr_cuda_is_end(x.i) || pnr_cuda_is_end(x.q);
    }
};

template <> struct pnr_walsh_measure<float> {
    double sum = 0;
    bool has_nonfinite = false;

    __device__ __forceinline__ pnr_cuda_pair<float> take(pnr_cuda_pair<float> x)
    {
        if (!isfinite(x.i) || !isfinite(x.q)) {
            has_nonfinite = true;
            x.i = x.q = 0;
        }
        sum += (double)fmaf(x.i, x.i, x.q * x.q);
        return x;
    }
    __device__ __forceinline__ double energy() const
    {
        return sum;
    }
    __device__ __forceinline__ bool is_odd() const
    {
        return has_nonfinite;
    }
    static __device__ __forceinline__ uint32_t odd(pnr_cuda_pair<float> x)
    {
        return !isfinite(x.i) || !isfinite(x.q) ? 0x10000 : 0;
    }
};

/* Begins to copy `bytes` bytes. The addresses and `bytes` are multiples of PIECE, which is at most
 * 16. The copies of a thread are complete when its __pipeline_wait_prior(0) returns. */
template <uint32_t THREADS, uint32_t PIECE = 16>
static __device__ __forceinline__ void pnr_walsh_fetch(void *to, const void *from, uint32_t bytes)
{
    for (uint32_t i = threadIdx.x * PIECE; i < bytes; i += THREADS * PIECE)
        __pipeline_memcpy_async((char *)to + i, (const char *)from + i, PIECE);
    __pipeline_commit();
}

/* Calls take(r, sample) for each of the thread's 32 samples, which belong to states 32 t .. 32 t +
 * 31. x: shared memory. places(q) returns the indices in x of samples r = 8 q .. 8 q + 7, 16 bits
 * each. */
template <typename T, typename PLACES, typename TAKE>
static __device__ __forceinline__ void pnr_walsh_gather(const pnr_cuda_pair<T> *x, PLACES places,
                                                        TAKE take)
{
#pragma unroll
    for (uint32_t q = 0; q < PNR_WALSH_EACH / 8; q++) {
        const uint4 eight = places(q);
        const uint32_t two[4] = {eight.x, eight.y, eight.z, eight.w};

#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            take(8 * q + 2 * i, x[two[i] & 0xffff]);
            take(8 * q + 2 * i + 1, x[two[i] >> 16]);
        }
    }
}

/* Returns the sum over the TEAM threads of a window to each of these threads. If a window has more
 * than 32 threads, this is the sum over the warp. The order of the sum is fixed. */
template <int TEAM, typename T> static __device__ __forceinline__ T pnr_walsh_warp_sum(T x)
{
#pragma unroll
    for (int lane = (TEAM < 32 ? TEAM : 32) / 2; lane > 0; lane /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

/* Returns the sum over TEAM threads, a power of two. All threads of the block call this. scratch:
 * shared memory, a value for each warp of the block. */
template <int TEAM, typename T> static __device__ __forceinline__ T pnr_walsh_sum(T x, T *scratch)
{
    x = pnr_walsh_warp_sum<TEAM>(x);
    if constexpr (TEAM > 32) {
        T total = 0;

        __syncthreads(); /* all threads have read the previous sum */
        if (threadIdx.x % 32 == 0)
            scratch[threadIdx.x / 32] = x;
        __syncthreads();
        for (int warp = 0; warp < TEAM / 32; warp++)
            total += scratch[warp];
        x = total;
    }
    return x;
}

static __device__ __forceinline__ float pnr_walsh_power(float2 c)
{
    return fmaf(c.x, c.x, c.y * c.y);
}

#endif
