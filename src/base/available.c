/* SPDX-License-Identifier: MIT */
/* Reads the available memory from files of the kernel. */
#include "base/available.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns the number that follows `name` at the beginning of a line of the file. Returns infinity
 * if no line begins with `name` and a number. */
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

/* Writes the path of this process's control group (version 2) to `path`, which has `size` bytes. If
 * the process has no such group, writes the path of the root group. */
static void find_group(char *path, size_t size)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];
    const char *name = "/";

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            name = line + 3;
            break;
        }
    snprintf(path, size, "/sys/fs/cgroup%s", name);
    if (file != NULL)
        fclose(file);
}

/* Returns the number after `name` in a file of a group. */
static double read_group(const char *group, const char *file, const char *name)
{
    char path[2 * PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", group, file);
    return read_number(path, name);
}

/* Returns the bytes that remain below the limits of the process's group and of the groups that
 * contain it. Without a limit memory.max contains "max", and the result is infinite. Inactive pages
 * of files count as free, because the system drops them when memory is short. */
static double group_available(void)
{
    char group[PATH_MAX + 64];
    double least = INFINITY;

    find_group(group, sizeof group);
    while (strlen(group) >= strlen("/sys/fs/cgroup")) {
        const double most = read_group(group, "memory.max", "");
        const double used = read_group(group, "memory.current", "");
        const double files = read_group(group, "memory.stat", "inactive_file ");

        if (isfinite(most) && isfinite(used))
            least = fmin(least, fmax(most - used + (isfinite(files) ? files : 0), 0));
        *strrchr(group, '/') = '\0';
    }
    return least;
}

double pnr_memory_available(void)
{
    return fmin(1024 * read_number("/proc/meminfo", "MemAvailable:"), group_available());
}
