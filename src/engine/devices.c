/* SPDX-License-Identifier: MIT */
/* Lists of devices. */
#include "engine/devices.h"

#include <stdio.h>

void pnr_devices_add(pnr_devices *devices, size_t index)
{
    for (size_t i = 0; i < devices->n; i++)
        if (devices->index[i] == index)
            return;
    if (devices->n < PNR_MAX_DEVICES)
        devices->index[devices->n++] = (uint8_t)index;
}

char *pnr_devices_format(const pnr_devices *devices, char out[PNR_DEVICES_LEN])
{
    size_t used = 0;

    snprintf(out, PNR_DEVICES_LEN, "all");
    for (size_t i = 0; i < devices->n; i++)
        used += (size_t)snprintf(out + used, PNR_DEVICES_LEN - used, "%s%u", i > 0 ? "," : "",
                                 devices->index[i]);
    return out;
}
