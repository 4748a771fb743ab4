/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as the metadata of a SigMF recording or collection; what is accepted is
 * consistent. */
#include "require.h"
#include "source/sigmf_meta.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    pnr_sigmf_meta meta;
    pnr_error error = {0};
    unsigned char samples[64] = {0};
    char name[PNR_SIGMF_NAME_LEN], hash[PNR_SIGMF_HASH_LEN];

    if (pnr_sigmf_collection_find((const char *)data, n_bytes, "", name, hash, &error) == PNR_OK)
        require(strlen(hash) < sizeof hash && name[0] != '\0' && strchr(name, '/') == NULL &&
                strcmp(name, "..") != 0);

    const int code = pnr_sigmf_meta_read((const char *)data, n_bytes, &meta, &error);

    require(code == PNR_OK || (code == PNR_EDATA && error.text[0] != '\0'));
    if (code != PNR_OK) {
        require(meta.captures == NULL);
        return 0;
    }
    require(meta.n_channels >= 1 && meta.n_channels <= PNR_SIGMF_MAX_CHANNELS);
    require(meta.rate_hz.den == 0 || (meta.rate_hz.num > 0 && meta.rate_hz.den > 0));
    require(strchr(meta.dataset, '/') == NULL && strcmp(meta.dataset, "..") != 0);
    require(pnr_format_get(meta.format)->bytes % meta.number.bytes == 0);
    for (size_t i = 1; i < meta.n_captures; i++) {
        const pnr_sigmf_capture *c = &meta.captures[i];

        require(c->first >= c[-1].first);
        require(!c->has_global_index || !c[-1].has_global_index ||
                c->global_index - c[-1].global_index >= c->first - c[-1].first);
    }
    pnr_number_convert(&meta.number, samples, sizeof samples / meta.number.bytes);
    pnr_sigmf_meta_clear(&meta);
    return 0;
}
