/* SPDX-License-Identifier: MIT */
/* Joins the echoes of a target to a track, so that a picture has one mark for each target. */
#include "picture/state.h"

#include <math.h>
#include <stdlib.h>

/* Gains of the alpha-beta filter. new_gate: factor for the range gate of a track with one echo,
 * because its rate is unknown. */
static const double alpha = 0.5, beta = 0.2, new_gate = 4;

static int compare_spots(const void *a, const void *b)
{
    const spot *left = a, *right = b;

    if (left->sample != right->sample)
        return left->sample < right->sample ? -1 : 1;
    return (left->snr_db < right->snr_db) - (left->snr_db > right->snr_db);
}

static double expected_m(const track *t, uint64_t sample)
{
    return t->range_m + t->rate * (double)(sample - t->last_sample);
}

/* Returns the difference between the range of an echo and the predicted range of a track, divided
 * by the greatest permitted difference. INFINITY: the echo is outside the gate, or the track
 * already has an echo of this dwell. */
static double distance_of(const track *t, const spot *s, const track_gate *gate)
{
    const double wide = t->n_echoes > 1 ? 1 : new_gate;
    const double range = fabs(s->range_m - expected_m(t, s->sample)) / (wide * gate->range_m);
    const double doppler = fabs(s->doppler_hz - t->doppler_hz) / gate->doppler_hz;

    if (s->sample == t->last_sample || s->sample - t->last_sample > gate->samples || range > 1 ||
        doppler > 1)
        return INFINITY;
    return range;
}

static void add_echo(track *t, const spot *s)
{
    const double elapsed = (double)(s->sample - t->last_sample);
    const double expected = expected_m(t, s->sample), error = s->range_m - expected;

    t->range_m = expected + alpha * error;
    t->rate += (t->n_echoes > 1 ? beta : 1) * error / elapsed;
    t->doppler_hz = s->doppler_hz;
    t->last_sample = s->sample;
    t->n_echoes++;
    if (s->snr_db > t->strongest.snr_db)
        t->strongest = *s;
}

/* Adds an echo to the nearest track, or begins a track with it. Returns the number of tracks. The
 * tracks before *first_open have ended. */
static size_t take_spot(const spot *s, const track_gate *gate, track *tracks, size_t n,
                        size_t *first_open)
{
    double least = INFINITY;
    track *nearest = NULL;

    while (*first_open < n && s->sample - tracks[*first_open].last_sample > gate->samples)
        ++*first_open;
    for (track *t = tracks + *first_open; t < tracks + n; t++) {
        const double distance = distance_of(t, s, gate);

        if (distance < least) {
            least = distance;
            nearest = t;
        }
    }
    if (nearest != NULL)
        add_echo(nearest, s);
    else if (n < PNR_MAX_TRACKS)
        tracks[n++] = (track){*s, s->sample, s->range_m, s->doppler_hz, 0, 1};
    return n;
}

size_t pnr_tracks_find(const pnr_picture *p, const track_gate *gate, uint64_t first_sample,
                       track tracks[PNR_MAX_TRACKS])
{
    size_t n = 0, first_open = 0;

    for (size_t c = 0; c < p->run.echo_time.n; c++) {
        column sorted = p->columns[c];

        qsort(sorted.spots, sorted.n, sizeof sorted.spots[0], compare_spots);
        for (size_t i = 0; i < sorted.n; i++)
            if (sorted.spots[i].sample >= first_sample)
                n = take_spot(&sorted.spots[i], gate, tracks, n, &first_open);
    }
    return n;
}
