/* SPDX-License-Identifier: MIT */
/* The devices of a run, such as GPUs. Each device has submits of its own in flight. */
#ifndef PNR_DEVICES_H
#define PNR_DEVICES_H

#include "engine/plan.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PNR_MAX_DEVICES = 16,
    PNR_MAX_IN_FLIGHT = PNR_MAX_DEVICES * PNR_MAX_DEPTH, /* most submits in flight on all devices */
    PNR_DEVICES_LEN = 4 * PNR_MAX_DEVICES + 4            /* bytes of a list as text */
};

typedef struct pnr_devices {
    size_t n;                       /* number of devices; 0 in a configuration: all devices of the
                                     * engine */
    uint8_t index[PNR_MAX_DEVICES]; /* [n] numbers of devices from 0, each number once */
} pnr_devices;

/* The devices in use and the lost devices. Both lists are empty if there is one device, or if the
 * engine ignores devices. */
typedef struct pnr_device_state {
    pnr_devices used, lost;
} pnr_device_state;

/* Appends a device, if there is space and the list does not have it. */
void pnr_devices_add(pnr_devices *devices, size_t index);
/* Returns the devices that are in `devices` but not in `others`. */
pnr_devices pnr_devices_without(const pnr_devices *devices, const pnr_devices *others);
/* Writes "0,2,3" for example, or "all" for an empty list. Returns `out`. */
char *pnr_devices_format(const pnr_devices *devices, char out[PNR_DEVICES_LEN]);

#endif
