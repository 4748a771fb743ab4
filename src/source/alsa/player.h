/* SPDX-License-Identifier: MIT */
/* The transmitter: plays the waveform of the code on a sound card. */
#ifndef PNR_ALSA_PLAYER_H
#define PNR_ALSA_PLAYER_H

#include "config/config.h"
#include "source/alsa/device.h"

#include <stdint.h>

typedef struct pnr_alsa_player pnr_alsa_player;

/* Opens transmit.output and makes the waveform. is_complex: I and Q are two channels. Errors: those
 * of pnr_alsa_device_open and wave.h. The caller owns *out. */
int pnr_alsa_player_create(const pnr_config *config, bool is_complex, pnr_alsa_player **out,
                           pnr_error *error);
void pnr_alsa_player_destroy(pnr_alsa_player *player);

const pnr_alsa_device *pnr_alsa_player_device(const pnr_alsa_player *player);

/* Empties the card's buffer and fills it again. The next frame that the card plays has number 0 and
 * is sample `origin` of the stream. If n_silent > 0, at most the length of the buffer, writes only
 * this number of silent frames; pnr_alsa_player_resume then fills the rest. Returns 0, or an error
 * of ALSA. */
int pnr_alsa_player_fill(pnr_alsa_player *player, uint64_t origin, uint64_t n_silent);
/* Sets the sample of the stream that frame 0 was, and fills the buffer. Returns 0, or an error of
 * ALSA. */
int pnr_alsa_player_resume(pnr_alsa_player *player, uint64_t origin);
/* Writes up to n_frames more, as many as the card takes now. 0, or an error of ALSA: -EPIPE after
 * an underrun. Allocates nothing, and never waits. */
int pnr_alsa_player_write(pnr_alsa_player *player, uint64_t n_frames);

#endif
