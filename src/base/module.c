/* SPDX-License-Identifier: MIT */
/* Finds modules in the folders of the program, and loads them. */
#include "base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the folder of modules next to the program: <folder of the program>/../lib/pnradar. */
static int folder_beside_program(char *folder, size_t size)
{
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    if (length <= 0)
        return PNR_EUNAVAILABLE;
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    return (size_t)snprintf(folder, size, "%s/../lib/pnradar", program) < size ? PNR_OK
                                                                               : PNR_EUNAVAILABLE;
}

/* Searches the folders, which are separated by colons, for a readable <name>.so. Writes the path of
 * the first such file to `path`. */
static int find_in_folders(const char *folders, const char *name, char *path, size_t size)
{
    while (*folders != '\0') {
        const size_t length = strcspn(folders, ":");

        if (length > 0 &&
            (size_t)snprintf(path, size, "%.*s/%s.so", (int)length, folders, name) < size &&
            access(path, R_OK) == 0)
            return PNR_OK;
        folders += length + (folders[length] == ':');
    }
    return PNR_EUNAVAILABLE;
}

static int find_module(const char *name, char *path, size_t size)
{
    const char *chosen = getenv("PNR_MODULE_PATH");
    char beside[PATH_MAX];

    if (strchr(name, '/') != NULL)
        return PNR_EUNAVAILABLE;
    if (chosen != NULL && find_in_folders(chosen, name, path, size) == PNR_OK)
        return PNR_OK;
    if (folder_beside_program(beside, sizeof beside) == PNR_OK &&
        find_in_folders(beside, name, path, size) == PNR_OK)
        return PNR_OK;
    return find_in_folders(PNR_MODULE_DIR, name, path, size);
}

bool pnr_module_is_there(const char *name)
{
    char path[PATH_MAX];

    return find_module(name, path, sizeof path) == PNR_OK;
}

void *pnr_module_load(const char *name, pnr_error *error)
{
    char path[PATH_MAX];

    if (find_module(name, path, sizeof path) != PNR_OK) {
        pnr_error_set(error, PNR_EUNAVAILABLE, "no module %s.so was built or installed", name);
        return NULL;
    }

    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (module == NULL)
        pnr_error_set(error, PNR_EUNAVAILABLE, "%s", dlerror());
    return module;
}
