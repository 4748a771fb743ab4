/* SPDX-License-Identifier: MIT */
/* Hashes of SigMF recordings: data and metadata that are not those that were recorded. The judge is
 * sha512sum. */
#include "tests/fixture/source_fixture.h"

enum { HASH_LEN = 129, N_BYTES = 3 << 19 }; /* more than one read of the thread that hashes */

static unsigned char bytes[N_BYTES];

static char *hash_of(const char *name, char out[HASH_LEN])
{
    char command[512];

    snprintf(command, sizeof command, "sha512sum %s/%s", folder, name);

    FILE *pipe = popen(command, "r");

    assert_non_null(pipe);
    assert_int_equal(fread(out, 1, HASH_LEN - 1, pipe), HASH_LEN - 1);
    out[HASH_LEN - 1] = '\0';
    pclose(pipe);
    return out;
}

/* Writes x.sigmf-meta for data of this type; hash: the member core:sha512. */
static void write_meta(const char *datatype, const char *more, const char *hash)
{
    write_text("x.sigmf-meta",
               "{\"global\":{\"core:datatype\":\"%s\",\"core:version\":\"1.2.0\",%s"
               "\"core:sha512\":\"%s\"},\"captures\":[{\"core:sample_start\":0,"
               "\"core:header_bytes\":6}],\"annotations\":[]}",
               datatype, more, hash);
}

/* Reads the whole recording. Returns the code at its end. */
static int read_all(const pnr_config *config, uint64_t n_samples, pnr_error *error)
{
    static unsigned char landing[1 << 16];
    pnr_source *source = open_source(config);
    pnr_source_block block;
    uint64_t n = 0;
    int code;

    do {
        code = pnr_source_read(source, landing, sizeof landing / 4, &block, error);
        n += block.n_samples;
    } while (code == PNR_OK || code == PNR_EAGAIN);
    assert_int_equal(n, n_samples);
    if (code != PNR_EEND) /* it is reported once */
        assert_int_equal(pnr_source_read(source, landing, 1, &block, NULL), PNR_EEND);
    pnr_source_close(source);
    return code;
}

static int fill(void **state)
{
    fill_bytes(bytes, sizeof bytes);
    return make_folder(state);
}

TEST(data_that_match_their_hash_are_read_to_the_end)
{
    static const char *const types[] = {"ci16_le", "ci16_be"}; /* the file is hashed as it is */
    pnr_config config = source_config("x.sigmf-meta");
    char hash[HASH_LEN];
    pnr_error error;

    write_file("x.sigmf-data", bytes, sizeof bytes);
    (void)hash_of("x.sigmf-data", hash);
    for (size_t i = 0; i < COUNT(types); i++) {
        write_meta(types[i], "", hash);
        assert_int_equal(read_all(&config, (N_BYTES - 6) / 4, &error), PNR_EEND);
    }
    for (char *c = hash; *c != '\0'; c++) /* either case is one hash */
        *c = *c >= 'a' ? (char)(*c - 'a' + 'A') : *c;
    write_meta("ci16_le", "", hash);
    assert_int_equal(read_all(&config, (N_BYTES - 6) / 4, &error), PNR_EEND);
}

/* One bit in the header, the first sample, the last one, and the bytes after it. */
TEST(one_changed_bit_is_reported_after_the_last_sample)
{
    static const size_t places[] = {0, 6, N_BYTES - 9, N_BYTES - 1};
    pnr_config config = source_config("x.sigmf-meta");
    char hash[HASH_LEN];
    pnr_error error;

    write_file("raw.bin", bytes, sizeof bytes);
    (void)hash_of("raw.bin", hash);
    write_meta("ci16_le", "\"core:dataset\":\"raw.bin\",\"core:trailing_bytes\":6,", hash);
    for (size_t i = 0; i < COUNT(places); i++) {
        bytes[places[i]] ^= 0x10;
        write_file("raw.bin", bytes, sizeof bytes);
        bytes[places[i]] ^= 0x10;
        assert_int_equal(read_all(&config, (N_BYTES - 12) / 4, &error), PNR_EDATA);
        assert_non_null(strstr(error.text, "core:sha512"));
        assert_non_null(strstr(error.text, "x.sigmf-meta"));
        config.source.sha512 = PNR_SHA512_IGNORE;
        assert_int_equal(read_all(&config, (N_BYTES - 12) / 4, &error), PNR_EEND);
        config.source.sha512 = PNR_SHA512_CHECK;
    }
    remove_file("raw.bin");
}

TEST(an_archive_is_checked)
{
    pnr_config config = source_config("x.sigmf");
    char command[512], hash[HASH_LEN];
    pnr_error error;

    for (int is_changed = 0; is_changed < 2; is_changed++) {
        write_file("x.sigmf-data", bytes, sizeof bytes);
        (void)hash_of("x.sigmf-data", hash);
        write_meta("ci16_le", "", hash);
        write_file("x.sigmf-data", bytes, sizeof bytes - (size_t)is_changed);
        snprintf(command, sizeof command,
                 "tar -C %s -H ustar -cf %s/x.sigmf x.sigmf-meta x.sigmf-data", folder, folder);
        assert_int_equal(system(command), 0);
        assert_int_equal(read_all(&config, (N_BYTES - 6 - (size_t)is_changed) / 4, &error),
                         is_changed ? PNR_EDATA : PNR_EEND);
    }
    remove_file("x.sigmf");
}

TEST(a_part_of_a_recording_is_not_checked)
{
    pnr_config config = source_config("x.sigmf-meta");
    pnr_source_block block;
    unsigned char samples[40];
    pnr_source *source;
    pnr_error error;

    write_file("x.sigmf-data", bytes, sizeof bytes);
    write_meta("ci16_le", "",
               "00000000000000000000000000000000000000000000000000000000000000000000"
               "000000000000000000000000000000000000000000000000000000000000");
    source = open_source(&config);

    const uint64_t n = pnr_source_get_info(source)->n_samples;

    assert_int_equal(pnr_source_limit(source, n - 10, n, &error), PNR_OK);
    assert_int_equal(pnr_source_read(source, samples, 10, &block, &error), PNR_OK);
    assert_int_equal(block.n_samples, 10);
    assert_int_equal(pnr_source_read(source, samples, 10, &block, &error), PNR_EEND);
    pnr_source_close(source);
}

TEST(what_is_no_hash_is_refused)
{
    static const char *const wrong[] = {
        "f4984", "g0000000000000000000000000000000000000000000000000000000000000000000"
                 "000000000000000000000000000000000000000000000000000000000000"};
    pnr_config config = source_config("x.sigmf-meta");
    pnr_error error;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        write_meta("ci16_le", "", wrong[i]);
        expect_source_refused(&config, PNR_EDATA, "core:sha512", "128 hexadecimal digits",
                              "source.sha512", NULL);
        config.source.sha512 = PNR_SHA512_IGNORE;
        assert_int_equal(read_all(&config, (N_BYTES - 6) / 4, &error), PNR_EEND);
        config.source.sha512 = PNR_SHA512_CHECK;
    }
}

TEST(a_collection_states_the_hash_of_the_metadata)
{
    pnr_config config = source_config("all.sigmf-collection");
    char hash[HASH_LEN];
    pnr_error error;

    (void)hash_of("x.sigmf-data", hash);
    write_meta("ci16_le", "", hash);
    (void)hash_of("x.sigmf-meta", hash);
    for (int is_pair = 0; is_pair < 2; is_pair++) {
        write_text("all.sigmf-collection",
                   is_pair
                       ? "{\"collection\":{\"core:streams\":[[\"x\",\"%s\"]]}}"
                       : "{\"collection\":{\"core:streams\":[{\"name\":\"x\",\"hash\":\"%s\"}]}}",
                   hash);
        assert_int_equal(read_all(&config, (N_BYTES - 6) / 4, &error), PNR_EEND);
    }
    hash[77] = hash[77] == '1' ? '2' : '1';
    write_text("all.sigmf-collection",
               "{\"collection\":{\"core:streams\":[{\"name\":\"x\",\"hash\":\"%s\"}]}}", hash);
    expect_source_refused(&config, PNR_EDATA, "x.sigmf-meta", "the collection", NULL);
    config.source.sha512 = PNR_SHA512_IGNORE;
    assert_int_equal(read_all(&config, (N_BYTES - 6) / 4, &error), PNR_EEND);
    remove_file("all.sigmf-collection");
    remove_file("x.sigmf-meta");
    remove_file("x.sigmf-data");
}

TESTS_BETWEEN(fill, remove_folder)
