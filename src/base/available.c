/* SPDX-License-Identifier: MIT */
/* Reads the memory that is available from the kernel's files. */
#include "base/available.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns the number after `name` in a line of the file; infinity: there is none. */
static double read_number(const char *path, const char *name)
{
    FILE *file = fopen(path, "re");
    char line[256];
    double number = INFINITY;
    const size_t length = strlen(name);

    if (file == NULL)
        return INFINITY;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, length) == 0 && sscanf(line + length, "%lf", &number) == 1)
            break;
    fclose(file);
    return number;
}

double pnr_memory_available(void)
{
    const double machine = 1024 * read_number("/proc/meminfo", "MemAvailable:");
    /* the control group of a container; "max": no limit */
    const double most = read_number("/sys/fs/cgroup/memory.max", "");
    const double used = read_number("/sys/fs/cgroup/memory.current", "");

    return isfinite(most) && isfinite(used) ? fmin(machine, fmax(most - used, 0)) : machine;
}
