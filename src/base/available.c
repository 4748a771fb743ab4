/* SPDX-License-Identifier: MIT */
/* Reads from files of the kernel how much memory is available. */
#include "base/available.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns the number after `name` in a line of the file, or infinity if no line has one. */
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
    /* memory limit of a container's control group; the file says "max" if there is no limit */
    const double most = read_number("/sys/fs/cgroup/memory.max", "");
    const double used = read_number("/sys/fs/cgroup/memory.current", "");

    return isfinite(most) && isfinite(used) ? fmin(machine, fmax(most - used, 0)) : machine;
}
