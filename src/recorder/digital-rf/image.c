/* SPDX-License-Identifier: MIT */
/* Uses the core driver of HDF5 without a backing store. */
#include "recorder/digital-rf/image.h"

#include <stdbool.h>
#include <string.h>

hid_t pnr_image_create(size_t step)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file;

    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* stops HDF5 from printing errors */
    H5Pset_fapl_core(access, step, false);
    file = H5Fcreate("image", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    return file;
}

void pnr_image_add_number(hid_t owner, const char *name, hid_t type, int64_t value)
{
    const hsize_t one = 1;
    const hid_t space = H5Screate_simple(1, &one, NULL);
    const hid_t attribute = H5Acreate2(owner, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

    H5Awrite(attribute, H5T_NATIVE_INT64, &value);
    H5Aclose(attribute);
    H5Sclose(space);
}

void pnr_image_add_text(hid_t owner, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);

    H5Tset_size(type, strlen(text) + 1);

    const hid_t attribute = H5Acreate2(owner, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

    H5Awrite(attribute, type, text);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}

hid_t pnr_image_add_data(hid_t file, const char *name, hid_t type, hid_t memory, size_t n_rows,
                         size_t n_columns, const void *values)
{
    const hsize_t size[2] = {n_rows, n_columns};
    const hid_t space = H5Screate_simple(2, size, NULL), properties = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_obj_track_times(properties, false);

    const hid_t data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    const bool is_good = H5Dwrite(data, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;

    H5Pclose(properties);
    H5Sclose(space);
    if (is_good)
        return data;
    H5Dclose(data);
    return -1;
}

size_t pnr_image_take(hid_t file, void *image, size_t room)
{
    const ssize_t n = H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 ? H5Fget_file_image(file, NULL, 0) : -1;
    const bool is_good =
        n > 0 && (size_t)n <= room && H5Fget_file_image(file, image, (size_t)n) == n;

    H5Fclose(file);
    return is_good ? (size_t)n : 0;
}
