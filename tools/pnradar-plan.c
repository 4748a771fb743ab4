/* SPDX-License-Identifier: MIT */
/* pnradar-plan: prints the radar budget of a configuration and the load of this machine. */
#include "base/format.h"
#include "base/log.h"
#include "cli.h"
#include "config/config.h"
#include "correlator/engines.h"
#include "setup/setup.h"
#include "source/source.h"
#include "tools/plan/sheet.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

static const char summary[] =
    "Prints what follows from a configuration before the first sample: period, processing gain, "
    "range and Doppler, accuracy, detection, load, memory, and which engine would run and why. "
    "With "
    "--budget it measures the longest code that this machine correlates within that time a period; "
    "with --measure-pulse it measures the pulse of a chip from a strong echo.";
static const char examples[] = "pnradar-plan -c config/demo.conf\n"
                               "pnradar-plan -c config/demo.conf --budget 62ms\n"
                               "pnradar-plan -s code.degree=13 -s source.rate_hz=1e6 --json\n"
                               "pnradar-plan -c radar.conf -s code.pulse_path=pulse.cf64 "
                               "--measure-pulse loop.cf32";

/* Returns the configured sample format; else the format of the file's extension; else ci16. */
static pnr_format format_of(const pnr_config *config)
{
    pnr_format format = config->source.format;

    if (format == PNR_FORMAT_NONE)
        format = pnr_format_of_path(config->source.input);
    if (format == PNR_FORMAT_NONE) {
        format = PNR_FORMAT_CI16;
        pnr_log(PNR_LOG_INFO,
                "source.format is not known before the input is open: ci16 is assumed");
    }
    return format;
}

/* Adds the length of the recording if the input is a recording. */
static int plan_recording(plan_sheet *sheet, const pnr_config *config, const pnr_setup *setup,
                          pnr_error *error)
{
    struct stat status;
    pnr_source *source;
    int rc;

    if (stat(config->source.input, &status) != 0 ||
        (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
        return PNR_OK;
    if ((rc = pnr_source_open(config, &source, error)) != PNR_OK)
        return rc;

    const pnr_source_info *info = pnr_source_get_info(source);

    plan_sheet_section(sheet, "recording", "recording");
    plan_sheet_count(sheet, "n_samples", "samples", info->n_samples);
    plan_sheet_count(sheet, "n_lost", "samples of them lost", info->n_lost);
    plan_sheet_number(sheet, "duration_s", "duration",
                      (double)info->n_samples / pnr_rational_double(setup->radar.rate_hz), "s");
    plan_sheet_count(sheet, "dwell_samples", "samples a dwell",
                     pnr_plan_dwell_samples(&setup->plan));
    plan_sheet_count(sheet, "first_window", "first sample of a dwell", setup->radar.first_window);
    pnr_source_close(source);
    return PNR_OK;
}

static int fill_sheet(plan_sheet *sheet, const pnr_config *config, double budget_s,
                      pnr_error *error)
{
    const pnr_engine_ops *ops = NULL;
    pnr_engine_choice choice = {0};
    pnr_setup *setup = NULL;
    int rc =
        pnr_setup_create(config, format_of(config),
                         config->source.channels > 0 ? config->source.channels : 1, &setup, error);

    if (rc != PNR_OK)
        return rc;
    plan_radar(sheet, config, setup);
    if ((rc = plan_recording(sheet, config, setup, error)) != PNR_OK) {
        pnr_setup_destroy(setup);
        return rc;
    }
    if (setup->devices.n != 1) { /* plan_engine reports why a device cannot be used */
        (void)pnr_engine_list_devices(config->engine.name, &setup->devices, NULL, NULL);
        setup->plan.device = setup->devices.index[0];
    }
    rc = plan_engine(sheet, config, setup, &ops, &choice, error);
    plan_load(sheet, config, setup, ops != NULL ? &choice : NULL);
    if (rc == PNR_OK && budget_s > 0)
        rc = plan_budget(sheet, config, setup, ops, budget_s, error);
    pnr_setup_destroy(setup);
    return rc;
}

static int set_recording(pnr_config *config, const char *recording, pnr_error *error)
{
    const size_t room = sizeof config->source.input;

    if ((size_t)snprintf(config->source.input, room, "%s", recording) >= room)
        return pnr_error_set(error, PNR_EUSAGE, "RECORDING is longer than %zu bytes", room - 1);
    return PNR_OK;
}

int main(int argc, char **argv)
{
    double budget_s = 0;          /* 0: --budget was not given */
    const char *recording = NULL; /* NULL: --measure-pulse was not given */
    plan_sheet sheet = {.root = json_object()};
    const pnr_cli_option options[] = {
        {"budget", "TIME", "Measure the longest code within TIME a period (62ms; ns, us, ms, s).",
         .seconds = &budget_s, .min = 1e-9, .max = 3600},
        {"measure-pulse", "RECORDING",
         "Measure the pulse from a strong echo; write it to code.pulse_path.", .value = &recording},
        {"json", NULL, "Print one JSON object instead of lines.", .flag = &sheet.json},
        {0},
    };
    pnr_cli cli = {
        .program = "pnradar-plan",
        .usage = "[OPTION]...",
        .summary = summary,
        .examples = examples,
        .options = options,
    };
    pnr_config config;
    pnr_error error = {0}, unprinted = {0};
    int rc = pnr_cli_parse(&cli, argc, argv, &config, &error);

    if (rc == PNR_OK && recording != NULL)
        rc = set_recording(&config, recording, &error);
    if (rc == PNR_OK)
        rc = pnr_source_complete(&config, &error);
    if (rc == PNR_OK)
        rc = pnr_config_check(&config, &error);
    if (rc == PNR_OK)
        rc = sheet.root != NULL ? PNR_OK
                                : pnr_error_set(&error, PNR_ENOMEMORY, "no memory for the results");
    if (rc == PNR_OK) {
        rc = recording != NULL ? plan_pulse(&sheet, &config, &error)
                               : fill_sheet(&sheet, &config, budget_s, &error);
        /* The results are printed even if no engine runs. */
        const int printed = plan_sheet_finish(&sheet, rc == PNR_OK ? &error : &unprinted);

        rc = rc == PNR_OK ? printed : rc;
    }
    json_decref(sheet.root);
    pnr_config_clear(&config);
    return rc == PNR_OK ? 0 : pnr_cli_fail(&error);
}
