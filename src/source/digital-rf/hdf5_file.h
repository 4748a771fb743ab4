/* SPDX-License-Identifier: MIT */
/* Reads the HDF5 files of a Digital RF recording: properties, index and samples. Checks all
 * properties and the index. */
#ifndef PNR_DRF_HDF5_FILE_H
#define PNR_DRF_HDF5_FILE_H

#include "source/drf_layout.h"

#include <hdf5.h>

/* Reads the attributes of drf_properties.h5, or of metadata.h5 from older writers. PNR_OK, or
 * PNR_EDATA: the file is no HDF5, or an attribute is missing or wrong; error has the path and the
 * value. */
int pnr_drf_properties_read(const char *path, pnr_drf_layout *out, pnr_error *error);

/* A file of samples. The owner zeroes it before the first open. */
typedef struct pnr_drf_file {
    hid_t file, data;
    hid_t type;                  /* HDF5 type of one sample of one channel in memory */
    const pnr_number_form *form; /* type of the numbers of a sample */
    uint64_t n_data;             /* number of samples */
    pnr_drf_row *rows;           /* [n_rows], checked by pnr_drf_index_check */
    size_t n_rows;
} pnr_drf_file;

/* Opens a file of samples. ms: the time in its name. Allocates memory. PNR_OK; PNR_EDATA: the file
 * contradicts the layout or itself; PNR_ENOMEMORY. After an error the file is closed. */
int pnr_drf_file_open(const char *path, const pnr_drf_layout *layout, int64_t ms, pnr_drf_file *out,
                      pnr_error *error);
/* Reads n samples, from row `first` of rf_data on, as numbers of file->form: [n][n_channels], pairs
 * if the samples are complex. first + n is at most n_data. PNR_OK, or PNR_EDATA. */
int pnr_drf_file_read(const pnr_drf_file *file, const pnr_drf_layout *layout, uint64_t first,
                      size_t n, void *data, pnr_error *error);
void pnr_drf_file_close(pnr_drf_file *file); /* a second call does nothing */

#endif
