/* SPDX-License-Identifier: MIT */
/* The transmitter: plays the waveform of the code on a sound card. */
#ifndef PNR_ALSA_PLAYER_H
#define PNR_ALSA_PLAYER_H

#include "config/config.h"
#include "source/alsa/device.h"

#include <stdint.h>

typedef struct pnr_alsa_player pnr_alsa_player;

/* Opens transmit.output and creates the waveform. is_complex: I and Q are two channels. Errors:
 * those of pnr_alsa_device_open and transmit/wave.h. The caller owns *out. */
int pnr_alsa_player_create(const pnr_config *config, bool is_complex, pnr_alsa_player **out,
                           pnr_error *error);
void pnr_alsa_player_destroy(pnr_alsa_player *player);

const pnr_alsa_device *pnr_alsa_player_device(const pnr_alsa_player *player);

/* Empties the buffer of the card and fills it again. The next frame that the card plays is frame 0;
 * it is sample `origin` of the stream. n_silent: number of silent frames at the start, at most the
 * length of the buffer. If n_silent > 0, writes only these frames; pnr_alsa_player_resume fills the
 * rest. Returns 0, or an error of ALSA. */
int pnr_alsa_player_fill(pnr_alsa_player *player, uint64_t origin, uint64_t n_silent);
/* Sets the origin again: the sample of the stream that is frame 0. Then fills the buffer. Returns
 * 0, or an error of ALSA. */
int pnr_alsa_player_resume(pnr_alsa_player *player, uint64_t origin);
/* Writes up to n_frames more frames, as many as the buffer of the card has space for. Returns 0, or
 * an error of ALSA: -EPIPE after an underrun. Allocates nothing, and never waits. */
int pnr_alsa_player_write(pnr_alsa_player *player, uint64_t n_frames);

#endif
