/* SPDX-License-Identifier: MIT */
/* The configuration. One table of keys defines parsing, checking, --print-config, --help and the
 * manual. */
#ifndef PNR_CONFIG_H
#define PNR_CONFIG_H

#include "base/error.h"
#include "base/format.h"
#include "base/rational.h"
#include "engine/devices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { PNR_TEXT_LEN = 128, PNR_PATH_LEN = 1024 };

typedef enum {
    PNR_CODE_M_SEQUENCE,
    PNR_CODE_GOLD,
    PNR_CODE_GPS_L1CA,
    PNR_CODE_GPS_L2C,
    PNR_CODE_GPS_L5,
    PNR_CODE_GLONASS,
    PNR_CODE_BDS_B1I,
    PNR_CODE_BDS_B3I,
    PNR_CODE_KASAMI,
    PNR_CODE_BARKER,
    PNR_CODE_LEGENDRE,
    PNR_CODE_ZADOFF_CHU,
    PNR_CODE_FRANK,
    PNR_CODE_P4,
    PNR_CODE_RANDOM,
    PNR_CODE_FILE
} pnr_code_type;

typedef enum { PNR_COMPONENT_DATA, PNR_COMPONENT_PILOT } pnr_component;
typedef enum {
    PNR_PULSE_BAND_LIMITED,
    PNR_PULSE_RECTANGULAR,
    PNR_PULSE_RRC,
    PNR_PULSE_FILTERED,
    PNR_PULSE_FILE
} pnr_pulse;
typedef enum { PNR_SPECTRUM_NORMAL, PNR_SPECTRUM_INVERTED } pnr_spectrum;
typedef enum { PNR_LAYOUT_IQ, PNR_LAYOUT_CHANNELS } pnr_layout;
typedef enum { PNR_UDP_BY_PORT, PNR_UDP_BY_ADDRESS } pnr_udp_identity;
typedef enum { PNR_UDP_SAMPLES, PNR_UDP_PACKETS } pnr_udp_count;
typedef enum { PNR_VRT_BY_TIME, PNR_VRT_BY_COUNT } pnr_vrt_place;
typedef enum { PNR_SHA512_CHECK, PNR_SHA512_IGNORE } pnr_sha512_use;
typedef enum { PNR_RECORD_SIGMF, PNR_RECORD_DIGITAL_RF } pnr_record_format;
typedef enum { PNR_PACE_FAST, PNR_PACE_REAL_TIME } pnr_pace;
typedef enum { PNR_PATH_TWO_WAY, PNR_PATH_ONE_WAY } pnr_path;
typedef enum { PNR_CORRELATION_CIRCULAR, PNR_CORRELATION_LINEAR } pnr_correlation_kind;
typedef enum { PNR_DC_KEEP, PNR_DC_REMOVE } pnr_dc;
typedef enum { PNR_FILTER_MATCHED, PNR_FILTER_LEAST_SQUARES } pnr_filter;
typedef enum {
    PNR_COMBINE_NONE,
    PNR_COMBINE_COHERENT,
    PNR_COMBINE_INCOHERENT,
    PNR_COMBINE_DOPPLER
} pnr_combine;
typedef enum {
    PNR_TAPER_RECTANGULAR,
    PNR_TAPER_HANN,
    PNR_TAPER_BLACKMAN_HARRIS,
    PNR_TAPER_DOLPH_CHEBYSHEV
} pnr_taper;
typedef enum { PNR_CLUTTER_KEEP, PNR_CLUTTER_REMOVE } pnr_clutter;
typedef enum { PNR_STEP_WHOLE, PNR_STEP_HALF, PNR_STEP_QUARTER } pnr_step;
typedef enum { PNR_ZERO_FIXED, PNR_ZERO_DIRECT_PATH } pnr_zero_kind;
typedef enum { PNR_WAIT_SLEEP, PNR_WAIT_SPIN } pnr_wait;
typedef enum { PNR_ISOLATE_AUTO, PNR_ISOLATE_YES, PNR_ISOLATE_NO } pnr_isolate;
typedef enum { PNR_PROFILE_OFF, PNR_PROFILE_POWER, PNR_PROFILE_COMPLEX } pnr_profile;

/* The samples with the indices first .. first + count - 1. */
typedef struct pnr_run {
    uint64_t first;
    uint64_t count;
} pnr_run;

enum { PNR_CONFIG_NOTCHES = 25 };

/* Frequencies that the correlation excludes: centre_hz - width_hz .. centre_hz + width_hz. */
typedef struct pnr_notches {
    size_t n;
    struct {
        double centre_hz, width_hz; /* width_hz is 0 or more */
    } at[PNR_CONFIG_NOTCHES];
} pnr_notches;

/* A point in time: a sample index or UTC. */
typedef struct pnr_epoch {
    bool is_utc;
    int64_t sample; /* valid if !is_utc; may be negative */
    int64_t utc_ns; /* valid if is_utc */
} pnr_epoch;

/* One point target of the synthetic scene, section [target.<n>]. */
typedef struct pnr_target {
    double range_m;      /* range at sample 0 */
    double velocity_mps; /* radial velocity, positive towards the radar */
    double amplitude;    /* amplitude of the echo, full scale = 1; 0: computed from snr_db */
    double snr_db;       /* SNR of one sample in noise of echo.noise_rms; used if amplitude is 0 */
    double phase_rad;    /* phase at sample 0 */
    size_t code; /* n of [code.<n>], the code that the target reflects; 1 if there is only [code] */
    size_t data_bit_periods; /* periods of the code in one data bit; 0: no data */
    bool has_snr;
    size_t number; /* n of [target.<n>]; the array is sorted by n */
} pnr_target;

/* One of several codes in the stream, section [code.<n>]. If has_<member> is false, the member has
 * the value of [code]. */
typedef struct pnr_code_section {
    int type;      /* pnr_code_type */
    int component; /* pnr_component */
    bool invert;
    pnr_rational tune_hz;
    size_t degree, length, root, prn, index, seed, bits;
    char taps[PNR_TEXT_LEN], state[PNR_TEXT_LEN], path[PNR_PATH_LEN];
    bool has_type, has_degree, has_length, has_root, has_prn, has_index, has_seed, has_taps,
        has_state, has_component, has_invert, has_bits, has_tune_hz, has_path;
    size_t number; /* n of [code.<n>]; the array is sorted by n */
} pnr_code_section;

/* One member for each key. The struct owns the arrays. */
typedef struct pnr_config {
    struct {
        char name[PNR_TEXT_LEN];
    } stream;
    struct {
        char input[PNR_PATH_LEN]; /* "-": stdin; "": no input; else a path or an address */
        pnr_format format;        /* PNR_FORMAT_NONE: given by the extension of the file */
        pnr_rational rate_hz;
        pnr_rational tune_hz; /* frequency that is mixed to zero before the correlation */
        int spectrum;         /* pnr_spectrum */
        int layout;           /* pnr_layout */
        size_t channels;      /* interleaved channels in a raw file */
        size_t channel;       /* the correlated channel, counted from 0 */
        double centre_hz;     /* frequency to which a receiver is tuned; 0: not given */
        double gain_db;       /* gain of a receiver; automatic if has_gain_db is false */
        bool has_gain_db;
        char gains[PNR_TEXT_LEN];   /* gains of stages, "LNA=20,VGA=10"; "": not set */
        char antenna[PNR_TEXT_LEN]; /* name of the antenna; "": not changed */
        double bandwidth_hz;        /* width of the receiver's filter; 0: not changed */
        size_t device_channel;      /* channel of the receiver, from 0 */
        char clock_source[PNR_TEXT_LEN], time_source[PNR_TEXT_LEN];
        bool zmq_tags;                  /* messages of GNU Radio have stream tags */
        char zmq_key[PNR_TEXT_LEN];     /* key, the first part of a message; "": any key or none */
        int udp_count;                  /* pnr_udp_count: unit of the counter in a datagram */
        size_t udp_buffer;              /* bytes of the kernel's buffer for datagrams */
        int udp_sender;                 /* pnr_udp_identity: port or address identifies a sender */
        size_t udp_reorder;             /* greatest number of later datagrams that wait for a
                                         * missing one */
        char vrt_stream[PNR_TEXT_LEN];  /* stream id of VITA-49; "": the id of the first packet */
        int vrt_place;                  /* pnr_vrt_place: the sample index follows from the time
                                         * stamps or the packet counts */
        char start_time[PNR_TEXT_LEN];  /* UTC of sample 0; "": not known */
        int pace;                       /* pnr_pace */
        char recording[PNR_TEXT_LEN];   /* recording of a SigMF collection; "": the only one */
        int sha512;                     /* pnr_sha512_use: check the hash of SigMF or ignore it */
        bool follow;                    /* wait for more files at the end of a recording */
        size_t chunk;                   /* samples per read; 0: chosen by the program */
        size_t first_sample, n_samples; /* the part of a recording in which dwells begin; n_samples
                                         * 0: to the end */
        pnr_run *lost; /* [n_lost] runs of samples that the recorder lost and did not write. No run
                        * is empty. The runs ascend, with other samples between two runs. */
        size_t n_lost;
    } source;
    struct {
        char output[PNR_PATH_LEN]; /* alsa:DEVICE; "": nothing is transmitted */
        double amplitude;          /* largest amplitude of the waveform, full scale = 1 */
        int channel;               /* channel that plays the waveform, counted from 0; -1: all */
    } transmit;
    struct {
        int type; /* pnr_code_type */
        size_t degree;
        char taps[PNR_TEXT_LEN];  /* "10,3"; "": a primitive polynomial with the fewest taps */
        char state[PNR_TEXT_LEN]; /* "0000000001": the first bits; "": all ones */
        size_t length;
        size_t root;
        size_t prn;
        int component; /* pnr_component */
        size_t index;
        size_t seed;
        bool invert;          /* changes the sign of every chip */
        size_t bits;          /* periods of the code in a data bit; 0: no data */
        bool has_bits;        /* false: the type of the code gives the value of `bits` */
        pnr_rational tune_hz; /* carrier of this code relative to source.tune_hz */
        char path[PNR_PATH_LEN];
        int pulse;        /* pnr_pulse */
        double rolloff;   /* excess bandwidth of the rrc pulse, in chip rates */
        double cutoff_hz; /* cutoff frequency of the filtered pulse */
        char pulse_path[PNR_PATH_LEN];
        pnr_rational chip_rate_hz; /* {0,0}: a chip is one sample */
        pnr_epoch epoch;
    } code;
    struct {
        int correlation; /* pnr_correlation_kind */
        int filter;      /* pnr_filter */
        int dc;          /* pnr_dc */
        pnr_notches notch;
    } window;
    struct {
        double speed_mps;
        int path; /* pnr_path */
        double carrier_hz;
        double zero_delay_s;
        int zero;                           /* pnr_zero_kind */
        double zero_search_m;               /* half width of the search for the direct path */
        double zero_alarm_m;                /* drift of the direct path that raises an alarm; 0: no
                                             * alarm */
        char zero_state_path[PNR_PATH_LEN]; /* "": no file */
        double min_range_m;
        double max_range_m; /* 0: min_range_m plus the unambiguous range */
    } radar;
    struct {
        size_t periods;
        int combine; /* pnr_combine */
        size_t looks;
        int taper;                /* pnr_taper over the periods of a look */
        double taper_sidelobe_db; /* level of the sidelobes of dolph-chebyshev, dB below the main
                                   * lobe */
        int clutter;              /* pnr_clutter */
    } dwell;
    struct {
        double min_hz, max_hz; /* both 0: +-1 / (2 Tr) in Doppler dwells, else no search */
        int step; /* pnr_step: the rotations of the samples differ by 1, 1/2 or 1/4 of 1 / Tr */
    } doppler;
    struct {
        double pfa; /* false-alarm probability of a search */
        size_t max_echoes;
        size_t oversample;
        int cfar;                               /* pnr_cfar_kind of plan.h */
        int cfar_axis;                          /* pnr_cfar_axis of plan.h */
        size_t cfar_guard, cfar_training;       /* chips or rows on each side of the tested cell */
        size_t exclusion_cells, exclusion_rows; /* a weaker cell within this distance is no echo */
        size_t subtract; /* further searches, each without the echoes found so far */
        size_t threads;  /* threads that detect echoes; 0: one for each core */
    } detector;
    struct {
        char name[PNR_TEXT_LEN];
        char method[PNR_TEXT_LEN];
        pnr_devices device;   /* GPUs; n = 0: all */
        size_t depth;         /* greatest number of submits in flight on each GPU */
        size_t batch;         /* greatest number of dwells in a submit; 0: chosen by the program */
        size_t threads;       /* threads of the cpu engine; 0: one for each core */
        int wait;             /* pnr_wait */
        double deadline;      /* age at which a result is late, s; 0: one dwell for a live stream,
                               * else no deadline */
        int isolate;          /* pnr_isolate */
        double deadline_hang; /* time without progress after which a worker is killed, s */
    } engine;
    struct {
        double seconds; /* length in time; 0: chosen by the program */
        size_t bytes;   /* length in memory; 0: follows from seconds */
    } ring;
    struct {
        bool lock_memory;
        int acquisition_cpu; /* -1: any processor */
        int processing_cpu;  /* -1: any processor */
        size_t priority;     /* SCHED_FIFO priority of acquisition; processing has one less; 0:
                              * neither thread has such a priority */
    } realtime;
    struct {
        char endpoint[PNR_TEXT_LEN]; /* "" : no publisher */
        bool expose;                 /* true: other machines may connect without CURVE */
        char curve_secret_path[PNR_PATH_LEN];
        char curve_clients[PNR_PATH_LEN]; /* folder of public keys; "": any key may subscribe */
        size_t max_subscribers;           /* greatest number of connections at a time */
        size_t pack;
        int profile;                 /* pnr_profile */
        char gnuradio[PNR_TEXT_LEN]; /* endpoint of profiles and maps for GNU Radio; "": none */
        size_t high_water;           /* messages kept for a slow subscriber */
        double wait_s;               /* longest wait for a first subscriber */
        double linger_s;             /* longest wait at the end until the last messages are sent */
    } publisher;
    struct {
        char samples[PNR_PATH_LEN]; /* "": none; a folder, or the name of a recording */
        int format;                 /* pnr_record_format, of the samples */
        char results[PNR_PATH_LEN]; /* "": none */
        double buffer_s;            /* longest pause of the disk without a loss of samples */
        double rotate_s;            /* greatest length of a recording, s; 0: no limit */
        size_t rotate_bytes;        /* greatest number of bytes of samples in a recording; 0: no
                                     * limit */
        double pre_trigger_s;       /* time recorded before an event; 0: records everything */
        double post_trigger_s;      /* time recorded after an event */
        double trigger_snr_db; /* least SNR of an echo that is an event, if has_trigger_snr_db */
        bool has_trigger_snr_db;
        bool trigger_loss; /* true: a loss is an event */
    } recorder;
    struct {
        size_t seed;
        size_t periods; /* periods to write; 0: until stopped */
        double noise_rms;
        double noise_bandwidth_hz; /* 0: white noise */
        double leak_amplitude;     /* amplitude of the direct path at range 0 */
        double cw_hz;
        double cw_amplitude;
        double clock_ppm;       /* error of the sampling clock against the transmitter's clock */
        double phase_noise_rad; /* rms of the oscillator's random walk in one second */
        double iq_gain_db, iq_phase_rad;
        double dc_amplitude, dc_phase_rad;
        pnr_run *slips; /* [n_slips] runs of samples that the receiver loses without a report */
        size_t n_slips;
        size_t bits; /* bits of the ADC; 0: the bits of the format */
    } echo;
    pnr_code_section *codes; /* [n_codes]; n_codes = 0: [code] is the only code */
    size_t n_codes;
    pnr_target *targets; /* [n_targets] */
    size_t n_targets;
} pnr_config;

/* Sets every key to its default. The caller ends with pnr_config_clear, which frees the arrays. */
void pnr_config_init(pnr_config *config);
void pnr_config_clear(pnr_config *config);

/* Reads an INI file; its values replace the present values. Returns PNR_OK; PNR_ENOINPUT: the file
 * cannot be opened; PNR_ECONFIG: an unknown or repeated key or section, text after a value, a value
 * out of range, a NUL byte, a line over 4096 bytes, a file over 16 MiB, or a directory; PNR_EIO;
 * PNR_ENOMEMORY. The message is "file:line: ..." with the value and the nearest known name. */
int pnr_config_read(pnr_config *config, const char *path, pnr_error *error);
/* Reads the text of an INI file from memory. name: stands for the path in error messages. */
int pnr_config_parse(pnr_config *config, const char *text, size_t length, const char *name,
                     pnr_error *error);
/* Sets one key. assignment: "section.key=value", as after the option -s. */
int pnr_config_set(pnr_config *config, const char *assignment, pnr_error *error);

/* Returns the number of codes in the stream: n_codes, or 1 if there are no [code.<n>] sections. */
size_t pnr_config_codes(const pnr_config *config);
/* Copies config to *out with only one code, code c, counted from 0. The arrays of *out still belong
 * to config. */
void pnr_config_code(const pnr_config *config, size_t c, pnr_config *out);
/* Renames the keys in an error message about code c, counted from 0: a key that its section sets is
 * "code.2.path" in place of "code.path". error: may be NULL. */
void pnr_config_rename_keys(const pnr_config *config, size_t c, pnr_error *error);

/* Checks the rules between keys. Each program calls it once, after all keys are read. Returns
 * PNR_OK or PNR_ECONFIG. */
int pnr_config_check(const pnr_config *config, pnr_error *error);

/* A part of the configuration: one key of a section, or all its keys if `key` is NULL. Section
 * "code.n" means [code.1], [code.2] and so on. The section must exist. */
typedef struct pnr_config_part {
    const char *section, *key;
} pnr_config_part;
/* Returns a hash of the values of these parts: FNV-1a of 64 bits over their names and texts.
 * Another version of the program may return another hash. */
uint64_t pnr_config_hash(const pnr_config *config, const pnr_config_part *parts, size_t n_parts);

/* Prints every key with its present value, as an INI file. pnr_config_read reads the same
 * configuration from this file. */
void pnr_config_print(const pnr_config *config, FILE *stream);
/* Prints every key with default, unit, range and one sentence: the text of config/pnradar.conf. */
void pnr_config_print_reference(FILE *stream);
/* Prints the reference as a list in mdoc, for pnradar.conf(5). */
void pnr_config_print_mdoc(FILE *stream);

#endif
