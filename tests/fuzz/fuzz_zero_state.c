/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as the state of the zero delay; what is used is plausible. The word CONFIG
 * becomes the hash of the configuration, and NOW the present time. */
#include "detector/zero_state.h"
#include "memory_file.h"
#include "require.h"
#include "setup/radar.h"

#include <math.h>
#include <string.h>

enum { STATE_LEN = PNR_ZERO_STATE_LEN + 64 };

/* The values of a state of this configuration and time. */
static char hash[64], now[64];

/* Copies the value of a member of a state. */
static void take_value(const char *state, const char *name, char *out)
{
    const char *value = strstr(state, name);

    require(value != NULL);
    value += strlen(name);
    memcpy(out, value, strcspn(value, "\""));
}

/* Writes a state, to learn its hash and its time. */
static void learn_values(const pnr_config *config)
{
    const pnr_zero_memory memory = {.delay_s = 1e-6, .sigma_s = 1e-8};
    char path[PNR_PATH_LEN + 8], text[PNR_ZERO_STATE_LEN] = "";
    pnr_config other = *config;
    FILE *file;

    snprintf(path, sizeof path, "%s.old", config->radar.zero_state_path);
    strcpy(other.radar.zero_state_path, path);
    require(pnr_zero_state_write(&other, PNR_FORMAT_CI16, &memory, false, NULL) == PNR_OK);
    require((file = fopen(path, "r")) != NULL && fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    take_value(text, "\"config\":\"", hash);
    take_value(text, "\"written\":\"", now);
}

/* Replaces a word in place; there is room. Returns the number of bytes. */
static size_t replace_word(uint8_t *data, size_t n_bytes, const char *word, const char *by)
{
    uint8_t *at = memmem(data, n_bytes, word, strlen(word));

    if (at == NULL)
        return n_bytes;
    memmove(at + strlen(by), at + strlen(word), (size_t)(data + n_bytes - at) - strlen(word));
    memcpy(at, by, strlen(by));
    return n_bytes - strlen(word) + strlen(by);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static uint8_t state[STATE_LEN];
    static pnr_config config;
    static int fd = -1;
    const pnr_radar radar = {.metres_per_second = 149896229,
                             .period_s = 1e-3,
                             .zero_search_s = 1e-4,
                             .rate_hz = {100000, 1}};
    pnr_zero_memory memory;

    if (fd < 0) {
        setenv("PNR_LOG", "quiet", 1);
        fd = memory_file_create();
        pnr_config_init(&config);
        strcpy(config.source.input, "leak.ci16");
        config.source.rate_hz = radar.rate_hz;
        memory_file_name(fd, ".json", config.radar.zero_state_path,
                         sizeof config.radar.zero_state_path);
        learn_values(&config);
    }
    n_bytes = n_bytes < PNR_ZERO_STATE_LEN ? n_bytes : PNR_ZERO_STATE_LEN;
    memcpy(state, data, n_bytes);
    n_bytes = replace_word(state, n_bytes, "CONFIG", hash);
    n_bytes = replace_word(state, n_bytes, "NOW", now);
    memory_file_fill(fd, state, n_bytes);
    if (!pnr_zero_state_read(&config, &radar, PNR_FORMAT_CI16, NULL, &memory))
        return 0;
    require(memory.sigma_s > 0 && memory.sigma_s <= radar.zero_search_s);
    require(fabs(pnr_zero_wrap(&radar, memory.delay_s)) <= radar.zero_search_s);
    require(fabs(memory.drift) <= 0.01 && memory.drift_sigma >= 0);
    return 0;
}
