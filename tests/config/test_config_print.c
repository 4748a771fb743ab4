/* SPDX-License-Identifier: MIT */
/* The prints: the output can be read again, and the reference file and the manual agree with the
 * keys. */
#include "tests/fixture/config_fixture.h"

/* The print of a function that needs no configuration; the caller frees it. */
static char *text_of(void (*print)(FILE *stream))
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    print(stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

/* Prints, reads the print into a fresh configuration, prints that: the same. */
static void check_round_trip(const pnr_config *config)
{
    char *first = printed(config), *second;
    pnr_config c;

    accept_text(&c, first);
    second = printed(&c);
    assert_string_equal(first, second);
    pnr_config_clear(&c);
    free(first);
    free(second);
}

TEST(every_key_reads_back)
{
    pnr_config c;

    pnr_config_init(&c);
    check_round_trip(&c);
    accept_set(&c, "stream.name=x y");
    accept_set(&c, "source.input=\"  a # b ; \\\"c\\\" \\\\ \"");
    accept_set(&c, "source.format=sc16");
    accept_set(&c, "source.rate_hz=262143000/62");
    accept_set(&c, "source.tune_hz=-0.1");
    accept_set(&c, "source.start_time=2026-11-21T02:40:12.5Z");
    accept_set(&c, "source.lost=10000+500, 34000+2000");
    accept_set(&c, "code.epoch=2026-11-21T02:40:12.000041943Z");
    accept_set(&c, "code.chip_rate_hz=1.023e6");
    accept_set(&c, "code.type=zadoff-chu");
    accept_set(&c, "radar.zero_delay_s=0.30000000000000004");
    accept_set(&c, "ring.bytes=768M");
    accept_set(&c, "publisher.endpoint=");
    accept_set(&c, "publisher.expose=yes");
    accept_set(&c, "echo.seed=18446744073709551615");
    accept_set(&c, "target.2.snr_db=-20");
    accept_set(&c, "target.1.amplitude=0.1");
    check_round_trip(&c);

    char *text = printed(&c);
    assert_non_null(strstr(text, "input = \"  a # b ; \\\"c\\\" \\\\ \"\n"));
    assert_non_null(strstr(text, "rate_hz = 131071500/31\n"));
    assert_non_null(strstr(text, "endpoint =\n"));
    assert_non_null(strstr(text, "[target.1]\nrange_m = 0\n"));
    assert_non_null(strstr(text, "[target.2]\nrange_m = 0\n"));
    assert_null(strstr(text, " \n"));
    free(text);
    pnr_config_clear(&c);
}

/* Sets each key alone to a value that is not its default. This shows that no two keys share a
 * member, and that each is printed. */
TEST(keys_do_not_touch_each_other)
{
    for (size_t i = 0; i < pnr_config_n_keys; i++) {
        const pnr_key *key = &pnr_config_keys[i];
        char title[PNR_SECTION_LEN];
        const pnr_section *of = section_of(key, title);
        char assignment[128], value[40];
        pnr_config plain, changed;

        switch (key->type) {
        case PNR_KEY_TEXT:
            snprintf(value, sizeof value, "other");
            break;
        case PNR_KEY_TIME:
            snprintf(value, sizeof value, "2026-11-21T02:40:12Z");
            break;
        case PNR_KEY_CHOICE:
            if (!key->choices[1])
                continue; /* there is only one */
            snprintf(value, sizeof value, "%s", key->choices[1]);
            break;
        case PNR_KEY_YES_NO:
            snprintf(value, sizeof value, "yes");
            break;
        case PNR_KEY_FORMAT:
            snprintf(value, sizeof value, "f32");
            break;
        case PNR_KEY_RUNS:
            snprintf(value, sizeof value, "1+2");
            break;
        case PNR_KEY_NOTCHES:
            snprintf(value, sizeof value, "1000+-20");
            break;
        case PNR_KEY_DEVICES:
            snprintf(value, sizeof value, "0,3");
            break;
        case PNR_KEY_SIZE:
            snprintf(value, sizeof value, "%g", strtod(key->initial, NULL) == 2 ? 1.0 : 2.0);
            break;
        default: /* numbers: one within every range */
            snprintf(value, sizeof value, key->type == PNR_KEY_DOUBLE ? "0.75" : "77");
        }
        snprintf(assignment, sizeof assignment, "%s.%s=%s", title, key->name, value);
        pnr_config_init(&plain);
        pnr_config_init(&changed);
        if (of->item_bytes > 0) {
            char empty[128];

            snprintf(empty, sizeof empty, "%s.%s=%s", title, key->name, key->initial);
            accept_set(&plain, empty);
        }
        accept_set(&changed, assignment);

        /* The two prints differ in one line, that of the key. */
        char *a = printed(&plain), *b = printed(&changed), *save_a, *save_b;
        size_t n_different = 0;
        for (char *line_a = strtok_r(a, "\n", &save_a), *line_b = strtok_r(b, "\n", &save_b);
             line_a || line_b;
             line_a = strtok_r(NULL, "\n", &save_a), line_b = strtok_r(NULL, "\n", &save_b)) {
            assert_non_null(line_a);
            assert_non_null(line_b);
            if (strcmp(line_a, line_b) == 0)
                continue;
            char expected[80];
            snprintf(expected, sizeof expected, "%s = %s", key->name, value);
            assert_string_equal(line_b, expected);
            n_different++;
        }
        if (n_different != 1)
            fail_msg("%s changed %zu lines", assignment, n_different);
        free(a);
        free(b);
        check_round_trip(&changed);
        pnr_config_clear(&plain);
        pnr_config_clear(&changed);
    }
}

TEST(long_lists_still_fit_a_line)
{
    char text[PNR_VALUE_MAX + 64];
    size_t n = (size_t)snprintf(text, sizeof text, "source.lost=");
    pnr_config c;

    for (unsigned i = 0; n < PNR_VALUE_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%u+1", i ? "," : "", 2 * i + 10);
    pnr_config_init(&c);
    accept_set(&c, text);
    assert_true(c.source.n_lost > 500);
    check_round_trip(&c);
    pnr_config_clear(&c);
}

TEST(the_table_is_sound)
{
    size_t section = 0;

    for (size_t i = 0; i < pnr_config_n_keys; i++) {
        const pnr_key *key = &pnr_config_keys[i];
        pnr_config c;
        char why[PNR_WHY_LEN];
        size_t length = strlen(key->help);

        /* Sections in the order of their table, each in one piece. */
        if (strcmp(key->section, pnr_config_sections[section].name) != 0)
            section++;
        assert_string_equal(key->section, pnr_config_sections[section].name);
        for (size_t j = 0; j < i; j++)
            assert_false(strcmp(pnr_config_keys[j].section, key->section) == 0 &&
                         strcmp(pnr_config_keys[j].name, key->name) == 0);
        /* One sentence that fits a line. */
        assert_in_range(length, 10, 96);
        assert_int_equal(key->help[length - 1], '.');
        assert_true(key->help[0] >= 'A' && key->help[0] <= 'Z');
        assert_true((key->type == PNR_KEY_CHOICE) == (key->choices != NULL));

        /* The default is read, and prints as it is written. */
        pnr_config_init(&c);
        const pnr_section *of = &pnr_config_sections[section];
        void *base = of->item_bytes > 0 ? pnr_section_add(of, &c, 1) : (void *)&c;
        if (pnr_value_parse(key, key->initial, base, why) != PNR_OK)
            fail_msg("%s.%s = %s: %s", key->section, key->name, key->initial, why);
        char *text = printed(&c), expected[128];
        snprintf(expected, sizeof expected, "\n%s =%s%s\n", key->name, key->initial[0] ? " " : "",
                 key->initial);
        assert_non_null(strstr(text, expected));
        free(text);
        pnr_config_clear(&c);
    }
    assert_null(pnr_config_sections[section + 1].name);
}

TEST(reference_is_the_file)
{
    char *text = text_of(pnr_config_print_reference);
    char *file = file_text("config/pnradar.conf");
    pnr_config c, plain;

    assert_string_equal(text, file); /* pnradar.conf is exactly this text */
    accept_text(&c, file);
    pnr_config_init(&plain);
    char *a = printed(&c), *b = printed(&plain);
    assert_string_equal(a, b); /* and it reads as the defaults */
    free(a);
    free(b);
    pnr_config_clear(&c);
    pnr_config_clear(&plain);
    for (size_t i = 0; i < pnr_config_n_keys; i++) {
        const pnr_key *key = &pnr_config_keys[i];

        assert_non_null(strstr(text, key->help));
    }
    for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        assert_true(strlen(line) <= 110);
    free(text);
    free(file);
}

TEST(manual_is_in_step)
{
    static const char begin[] = ".\\\" keys: begin\n", end[] = ".\\\" keys: end\n";
    char *text = text_of(pnr_config_print_mdoc);
    char *manual = file_text("src/pnradar.conf.5");
    char *from = strstr(manual, begin), *to = strstr(manual, end);

    assert_non_null(from);
    assert_non_null(to);
    *to = '\0';
    assert_string_equal(from + sizeof begin - 1, text);
    for (size_t i = 0; i < pnr_config_n_keys; i++) {
        char item[64];

        snprintf(item, sizeof item, "\n.It Cm %s%s", pnr_config_keys[i].name,
                 pnr_config_keys[i].initial[0] ? " = Ar " : "\n");
        assert_non_null(strstr(text, item));
    }
    free(text);
    free(manual);
}
