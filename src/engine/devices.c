/* SPDX-License-Identifier: MIT */
/* Functions for lists of devices: append a device, subtract a list, write a list as text. */
#include "engine/devices.h"

#include <stdio.h>

static bool has_device(const pnr_devices *devices, size_t index)
{
    for (size_t i = 0; i < devices->n; i++)
        if (devices->index[i] == index)
            return true;
    return false;
}

void pnr_devices_add(pnr_devices *devices, size_t index)
{
    if (devices->n < PNR_MAX_DEVICES && !has_device(devices, index))
        devices->index[devices->n++] = (uint8_t)index;
}

pnr_devices pnr_devices_without(const pnr_devices *devices, const pnr_devices *others)
{
    pnr_devices rest = {0};

    for (size_t i = 0; i < devices->n; i++)
        if (!has_device(others, devices->index[i]))
            pnr_devices_add(&rest, devices->index[i]);
    return rest;
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
