/* SPDX-License-Identifier: MIT */
/* Prints all keys for `make docs`, as config/pnradar.conf or as the list of the manual. */
#include "config/config.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(FILE *stream);
    } texts[] = {{"reference", pnr_config_print_reference}, {"mdoc", pnr_config_print_mdoc}};

    for (size_t i = 0; argc == 2 && i < sizeof texts / sizeof *texts; i++)
        if (strcmp(argv[1], texts[i].name) == 0) {
            texts[i].print(stdout);
            return fflush(stdout) != 0;
        }
    fprintf(stderr, "usage: keys reference | mdoc\n");
    return 64;
}
