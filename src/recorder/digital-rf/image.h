/* SPDX-License-Identifier: MIT */
/* HDF5 files in memory, which their owner writes to the disk. */
#ifndef PNR_DRF_IMAGE_H
#define PNR_DRF_IMAGE_H

#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>

/* Creates a file in memory, which grows in steps of `step` bytes. Returns a negative number if HDF5
 * fails. All other functions then fail too. */
hid_t pnr_image_create(size_t step);
/* Adds an attribute with one integer. type: its type in the file. */
void pnr_image_add_number(hid_t owner, const char *name, hid_t type, int64_t value);
void pnr_image_add_text(hid_t owner, const char *name, const char *text);
/* Adds a data set of values, [n_rows][n_columns]. type, memory: types of a value in the file and in
 * memory. Returns the data set, which the caller closes, or a negative number. */
hid_t pnr_image_add_data(hid_t file, const char *name, hid_t type, hid_t memory, size_t n_rows,
                         size_t n_columns, const void *values);
/* Copies the bytes of the file to `image` and closes the file. Returns the number of bytes. 0: HDF5
 * failed, or the file has more than `room` bytes. */
size_t pnr_image_take(hid_t file, void *image, size_t room);

#endif
