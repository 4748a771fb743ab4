/* SPDX-License-Identifier: MIT */
/* Tests engine_start.h. The engine of the tests is the module cuda here. */
#include "correlator/engines.h"
#include "pipeline/engine_start.h"
#include "tests/fixture/pipeline_fixture.h"

#include <dlfcn.h>
#include <unistd.h>

/* Makes a folder with cuda.so, in which modules are searched. */
static void open_folder(char *folder, char *module, size_t size)
{
    char target[512];

    snprintf(target, sizeof target, "%s/fault.so", getenv("PNR_MODULE_PATH"));
    strcpy(folder, "/tmp/pnr.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(module, size, "%s/cuda.so", folder);
    assert_int_equal(symlink(target, module), 0);
    setenv("PNR_MODULE_PATH", folder, 1);
}

static bool is_loaded(const char *module)
{
    void *handle = dlopen(module, RTLD_NOLOAD | RTLD_NOW);

    if (handle != NULL)
        dlclose(handle);
    return handle != NULL;
}

/* The engine is found when the start ends, and pnr_engine_find says the same as without. An engine
 * without a driver is not started. */
TEST(test_start)
{
    static const char *const others[] = {"cpu", "reference", "fault"};
    char folder[32], module[64];
    stage s;
    pnr_engine_start start;
    const pnr_engine_ops *ops;
    pnr_error error = {0};
    volatile int stop = 0;

    open_stage(&s, 0, NULL);
    open_folder(folder, module, sizeof module);
    for (size_t i = 0; i < COUNT(others); i++) {
        strcpy(s.config.engine.name, others[i]);
        pnr_engine_start_begin(&start, &s.config);
        assert_false(start.is_started);
        pnr_engine_start_end(&start, &stop);
    }
    assert_false(is_loaded(module));
    for (int k = 0; k < 2; k++) {
        strcpy(s.config.engine.name, k == 0 ? "auto" : "cuda");
        pnr_engine_start_begin(&start, &s.config);
        assert_true(start.is_started);
        pnr_engine_start_end(&start, k == 0 ? NULL : &stop);
        assert_false(start.is_started);
        assert_true(is_loaded(module));
    }
    assert_int_equal(pnr_engine_find("cuda", 0, &ops, &error), PNR_OK);
    assert_string_equal(ops->name, "fault");

    setenv("PNR_FAULT", "probe=ELOST", 1);
    pnr_engine_start_begin(&start, &s.config);
    pnr_engine_start_end(&start, &stop);
    assert_int_equal(pnr_engine_find("cuda", 0, &ops, &error), PNR_EUNAVAILABLE);
    assert_non_null(strstr(error.text, "engine cuda: "));
    unsetenv("PNR_FAULT");
    close_stage(&s);
    unlink(module);
    rmdir(folder);
}
