/* SPDX-License-Identifier: MIT */
/* The table of configuration keys. */
#include "config/keys.h"

#include <math.h>
#include <string.h>

/* The names of the code types, in the order of pnr_code_type. */
static const char *const code_types[] = {
    "m-sequence", "gold",    "gps-l1ca", "gps-l2c", "gps-l5",   "glonass",
    "bds-b1i",    "bds-b3i", "kasami",   "barker",  "legendre", "zadoff-chu",
    "frank",      "p4",      "random",   "file",    NULL};
static const char *const code_components[] = {"data", "pilot", NULL};

#define NUMBERED(name_, item, array)                                                               \
    .name = #name_ ".n", .item_bytes = sizeof(item), .items = offsetof(pnr_config, array),         \
    .n_items = offsetof(pnr_config, n_##array), .number = offsetof(item, number), .help
const pnr_section pnr_config_sections[] = {
    {.name = "stream", .help = "The name of the results."},
    {.name = "source", .help = "The input and the form of its samples."},
    {.name = "transmit", .help = "The code that a sound card plays while it records."},
    {.name = "code",
     .help = "The pseudo-random code that the transmitter repeats; each type has its own keys."},
    {NUMBERED(code, pnr_code_section, codes) = "Several codes in one stream: [code.1], [code.2], "
                                               "... without a gap; an empty key is as in [code]."},
    {.name = "window", .help = "The correlation of one period with the code."},
    {.name = "radar", .help = "The conversion from delay to range."},
    {.name = "dwell", .help = "The combination of periods into one result."},
    {.name = "doppler",
     .help = "The Doppler shifts that are searched, relative to the tuned frequency."},
    {.name = "detector", .help = "The rules for an echo."},
    {.name = "engine", .help = "The engine that computes the correlation."},
    {.name = "ring",
     .help = "The memory between the source and the engine; give seconds or bytes, not both."},
    {.name = "realtime",
     .help = "Requests to the operating system; every status reports a refused one."},
    {.name = "publisher", .help = "The publication of results over ZeroMQ."},
    {.name = "recorder", .help = "Files with the samples and the results of a run."},
    {.name = "echo", .help = "The synthetic scene of pnradar-echo; pnradar itself ignores it."},
    {NUMBERED(target, pnr_target, targets) =
         "The points of the synthetic scene: [target.1], [target.2], ... without a gap."},
    {0},
};

#define AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define KEY(section_, member, type_, initial_, help_)                                              \
    .section = #section_, .name = #member, .type = PNR_KEY_##type_,                                \
    AT(pnr_config, section_.member), .initial = initial_, .help = help_
#define TARGET(member, type_, initial_, help_)                                                     \
    .section = "target.n", .name = #member, .type = PNR_KEY_##type_, AT(pnr_target, member),       \
    .initial = initial_, .help = help_
#define CODE(member, type_, help_)                                                                 \
    .section = "code.n", .name = #member, .type = PNR_KEY_##type_, AT(pnr_code_section, member),   \
    .given = offsetof(pnr_code_section, has_##member), .initial = "", .help = help_
/* The words of a choice, in the order of its enum in config.h or plan.h. */
#define WORDS(...)                                                                                 \
    .choices = (const char *const[])                                                               \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define RANGE(from, to) .min = (from), .max = (to)
#define ABOVE(from) .min = (from), .max = INFINITY, .open = PNR_OPEN_MIN
#define FROM(from) .min = (from), .max = INFINITY

/* The keys, in the order of the sections above. All printed lists have this order. */
const pnr_key pnr_config_keys[] = {
    {KEY(stream, name, TEXT, "pnradar",
         "Name of this stream in every topic and message: printable, without spaces or slashes.")},

    {KEY(source, input, TEXT, "",
         "File, FIFO, folder, - for stdin, or the address of a live source: see pnradar(1).")},
    {KEY(source, format, FORMAT, "auto",
         "Sample format of raw input; auto takes the file name's extension.")},
    {KEY(source, rate_hz, RATIONAL, "",
         "Sampling rate as a number or a quotient p/q; empty: that of the input."),
     .unit = "Hz", ABOVE(0)},
    {KEY(source, tune_hz, RATIONAL, "0",
         "Carrier offset in the recording, mixed to zero before correlation."),
     .unit = "Hz"},
    {KEY(source, spectrum, CHOICE, "normal", "Inverted conjugates a recording of I - jQ."),
     WORDS("normal", "inverted")},
    {KEY(source, layout, CHOICE, "iq",
         "Two sound channels are I and Q, or every channel is a real signal of its own."),
     WORDS("iq", "channels")},
    {KEY(source, channels, SIZE, "1", "Interleaved channels in a raw file."), RANGE(1, 256)},
    {KEY(source, channel, SIZE, "0", "The channel that is correlated, counted from 0."),
     RANGE(0, 255)},
    {KEY(source, centre_hz, DOUBLE, "0",
         "For rtl_tcp and soapy: the frequency to receive; for vrt: that of the context, 0 is "
         "any."),
     .unit = "Hz", RANGE(0, 4294967295.0)},
    {KEY(source, gain_db, DOUBLE, "", "For rtl_tcp and soapy: the gain; empty is automatic."),
     .given = offsetof(pnr_config, source.has_gain_db), .unit = "dB", RANGE(-10, 100)},
    {KEY(source, gains, TEXT, "", "For soapy: gains of its stages, as LNA=20,VGA=10.")},
    {KEY(source, antenna, TEXT, "", "For soapy: name of the antenna; empty leaves it as it is.")},
    {KEY(source, bandwidth_hz, DOUBLE, "0",
         "For soapy: width of the filter; 0 leaves it as it is."),
     .unit = "Hz", FROM(0)},
    {KEY(source, device_channel, SIZE, "0", "For soapy: channel of the receiver, from 0."),
     RANGE(0, 63)},
    {KEY(source, clock_source, TEXT, "", "For soapy: source of its clock, as external.")},
    {KEY(source, time_source, TEXT, "",
         "For soapy: source of its time, as gpsdo; empty sets it to this machine's.")},
    {KEY(
        source, zmq_tags, YES_NO, "no",
        "For zmq-sub and zmq-pull: yes if GNU Radio's sink has pass_tags; losses are exact then.")},
    {KEY(source, zmq_key, TEXT, "",
         "For zmq-sub and zmq-pull: the key of GNU Radio's sink; empty takes any.")},
    {KEY(source, udp_count, CHOICE, "samples",
         "For udp: the number before the samples of a datagram counts samples or datagrams."),
     WORDS("samples", "packets")},
    {KEY(source, udp_buffer, BYTES, "32M",
         "For udp and vrt: datagrams that the kernel keeps until they are read."),
     .unit = "bytes", RANGE(1, 1073741824.0)},
    {KEY(source, udp_reorder, SIZE, "16",
         "For udp and vrt: datagrams after a missing one, before it counts as lost."),
     .unit = "datagrams", RANGE(0, 1024)},
    {KEY(source, vrt_stream, TEXT, "",
         "For vrt: the stream id, as 0x1f; empty takes that of the first packet.")},
    {KEY(source, vrt_place, CHOICE, "time",
         "For vrt: packets are placed by time stamps, exactly, or by their count modulo 16 alone."),
     WORDS("time", "count")},
    {KEY(source, start_time, TIME, "",
         "UTC of sample 0, as 2026-11-21T02:40:12.5Z; empty when not known.")},
    {KEY(source, pace, CHOICE, "fast", "Play a recording as fast as possible, or at its own rate."),
     WORDS("fast", "real-time")},
    {KEY(source, recording, TEXT, "",
         "For a SigMF collection: the name of the recording; empty takes the only one.")},
    {KEY(source, follow, YES_NO, "no",
         "For Digital RF: wait at the end of a recording that still grows.")},
    {KEY(source, chunk, SIZE, "0", "Samples a read; 0 lets the program choose."), .unit = "samples",
     RANGE(0, 67108864)},
    {KEY(source, lost, RUNS, "",
         "Sample positions that the recorder lost and did not write, as 10000+500, 34000+2000."),
     .also = offsetof(pnr_config, source.n_lost), .unit = "first+count"},

    {KEY(transmit, output, TEXT, "",
         "Loudspeaker, alsa:DEVICE on the card of source.input; empty transmits nothing.")},
    {KEY(transmit, amplitude, DOUBLE, "0.5", "Largest amplitude of the waveform, full scale = 1."),
     .min = 0, .max = 1, .open = PNR_OPEN_MIN},
    {KEY(transmit, channel, INT, "0",
         "The channel, or pair of I and Q, that plays the code, counted from 0; -1 is all."),
     RANGE(-1, 255)},

    {KEY(code, type, CHOICE, "m-sequence", "Family of the code."), .choices = code_types},
    {KEY(code, degree, SIZE, "10",
         "For m-sequence, gold and kasami: the length is 2^degree - 1 chips."),
     RANGE(2, 24)},
    {KEY(code, taps, TEXT, "",
         "For m-sequence: its taps, as 10,3; empty takes the fewest of a primitive one.")},
    {KEY(code, state, TEXT, "",
         "For m-sequence: its first bits, one for each stage, as 0001; empty is all ones.")},
    {KEY(code, length, SIZE, "0",
         "For barker, legendre, zadoff-chu, frank, p4 and random: the number of chips."),
     .unit = "chips", RANGE(0, 16777216)},
    {KEY(code, root, SIZE, "1", "For zadoff-chu: its root, coprime to the length."),
     RANGE(1, 16777215)},
    {KEY(code, prn, SIZE, "1", "For codes of gps and bds: the number of the satellite."),
     RANGE(1, 210)},
    {KEY(code, component, CHOICE, "data",
         "For gps-l5 and gps-l2c: I5 and CM carry data, Q5 and CL are the pilot."),
     .choices = code_components},
    {KEY(code, index, SIZE, "0", "For gold and kasami: the code of the set, counted from 0."),
     RANGE(0, 16777216)},
    {KEY(code, seed, SIZE, "0", "For random: the seed, as for RandomState of numpy."),
     RANGE(0, 4294967295.0)},
    {KEY(code, path, TEXT, "",
         "For file: the file with the chips, as .txt, .csv, .npy or raw samples.")},
    {KEY(code, invert, YES_NO, "no", "Yes changes the sign of every chip.")},
    {KEY(code, bits, SIZE, "",
         "Periods of a bit of data or secondary code, 0 is none; empty is as the type has it."),
     .given = offsetof(pnr_config, code.has_bits), .unit = "periods", RANGE(0, 16777216)},
    {KEY(code, tune_hz, RATIONAL, "0",
         "Carrier of the code relative to source.tune_hz, a multiple of the repetition rate."),
     .unit = "Hz"},
    {KEY(code, pulse, CHOICE, "band-limited",
         "The waveform of a chip: interpolated, ideal, root-raised-cosine, low-pass, or measured."),
     WORDS("band-limited", "rectangular", "rrc", "filtered", "file")},
    {KEY(code, rolloff, DOUBLE, "0.35", "For pulse = rrc: its excess bandwidth, in chip rates."),
     RANGE(0, 1)},
    {KEY(code, cutoff_hz, DOUBLE, "0",
         "For pulse = filtered: a rectangular chip keeps what lies below this frequency."),
     .unit = "Hz", FROM(0)},
    {KEY(code, pulse_path, TEXT, "",
         "For pulse = file: the file with the pulse of one chip, in a form of path.")},
    {KEY(code, chip_rate_hz, RATIONAL, "",
         "Chips a second, as a number or a quotient p/q; empty makes every sample a chip."),
     .unit = "Hz", ABOVE(0)},
    {KEY(code, epoch, EPOCH, "0",
         "Where the code starts: a sample index, or UTC (which needs source.start_time)."),
     .unit = "samples"},

    {CODE(type, CHOICE, "Family of this code."), .choices = code_types},
    {CODE(degree, SIZE, "For m-sequence, gold and kasami: the length is 2^degree - 1 chips."),
     RANGE(2, 24)},
    {CODE(taps, TEXT, "For m-sequence: its taps.")},
    {CODE(state, TEXT, "For m-sequence: its first bits.")},
    {CODE(length, SIZE, "The number of chips, as in [code]."), .unit = "chips", RANGE(0, 16777216)},
    {CODE(root, SIZE, "For zadoff-chu: its root."), RANGE(1, 16777215)},
    {CODE(prn, SIZE, "For codes of gps and bds: the number of the satellite."), RANGE(1, 210)},
    {CODE(component, CHOICE, "For gps-l5 and gps-l2c: data or pilot."), .choices = code_components},
    {CODE(index, SIZE, "For gold and kasami: the code of the set."), RANGE(0, 16777216)},
    {CODE(seed, SIZE, "For random: the seed."), RANGE(0, 4294967295.0)},
    {CODE(path, TEXT, "For file: the file with the chips, as .txt, .csv, .npy or raw samples.")},
    {CODE(invert, YES_NO, "Yes changes the sign of every chip.")},
    {CODE(bits, SIZE, "Periods of a bit of data or secondary code."), .unit = "periods",
     RANGE(0, 16777216)},
    {CODE(tune_hz, RATIONAL, "Carrier of this code relative to source.tune_hz."), .unit = "Hz"},

    {KEY(window, correlation, CHOICE, "circular",
         "Circular for a code that repeats without pause; linear for pulses and for few range "
         "gates."),
     WORDS("circular", "linear")},
    {KEY(window, filter, CHOICE, "matched",
         "Least-squares solves for the echoes of the range gates, without sidelobes of the code."),
     WORDS("matched", "least-squares")},
    {KEY(window, dc, CHOICE, "keep",
         "Remove takes the constant part of the samples out of the correlation."),
     WORDS("keep", "remove")},
    {KEY(window, notch, TEXT, "",
         "Frequencies of the recording that the correlation excludes, as 50e3+-200,-125e3+-1e3."),
     .unit = "Hz"},

    {KEY(radar, speed_mps, DOUBLE, "299792458", "Speed of the wave: of light, or of sound."),
     .unit = "m/s", .min = 0, .max = 1e9, .open = PNR_OPEN_MIN},
    {KEY(radar, path, CHOICE, "two-way",
         "There and back (radar, sonar), or one way from transmitter to receiver."),
     WORDS("two-way", "one-way")},
    {KEY(radar, carrier_hz, DOUBLE, "0",
         "Carrier frequency, for Doppler and velocity; 0 when there is none."),
     .unit = "Hz", FROM(0)},
    {KEY(radar, zero_delay_s, DOUBLE, "0", "Delay of an echo at range 0: cables and filters."),
     .unit = "s", RANGE(-1e6, 1e6)},
    {KEY(radar, zero, CHOICE, "fixed",
         "Direct-path measures the zero delay in every result, from the direct path of the "
         "transmitter."),
     WORDS("fixed", "direct-path")},
    {KEY(radar, zero_search_m, DOUBLE, "0",
         "Half width of the search around the last direct path, as a range; 0 is ten samples."),
     .unit = "m", FROM(0)},
    {KEY(radar, zero_alarm_m, DOUBLE, "0",
         "A movement of the direct path that raises an alarm, as a range; 0 is never."),
     .unit = "m", FROM(0)},
    {KEY(radar, zero_state_path, TEXT, "",
         "File that keeps the last zero delay for the next start; empty keeps none.")},
    {KEY(radar, min_range_m, DOUBLE, "0", "The nearest range that is searched."), .unit = "m",
     RANGE(-1e15, 1e15)},
    {KEY(radar, max_range_m, DOUBLE, "0",
         "The farthest range that is searched; 0 goes one unambiguous range beyond the nearest."),
     .unit = "m", RANGE(-1e15, 1e15)},

    {KEY(dwell, periods, SIZE, "1", "Periods of the code that are combined into one result."),
     .unit = "periods", RANGE(1, 65535)},
    {KEY(dwell, combine, CHOICE, "none",
         "Add amplitudes (coherent), add powers (incoherent), or separate velocities (doppler)."),
     WORDS("none", "coherent", "incoherent", "doppler")},
    {KEY(dwell, looks, SIZE, "1", "Looks whose powers are added into one result."),
     RANGE(1, 65535)},
    {KEY(dwell, taper, CHOICE, "rectangular",
         "For doppler: weights of the periods; strong echoes leak less, at some loss of SNR."),
     WORDS("rectangular", "hann", "blackman-harris", "dolph-chebyshev")},
    {KEY(dwell, taper_sidelobe_db, DOUBLE, "60",
         "For dolph-chebyshev: the level of its sidelobes below the main lobe."),
     .unit = "dB", ABOVE(0)},
    {KEY(dwell, clutter, CHOICE, "keep",
         "Remove subtracts what stands still, the mean over the periods of the dwell."),
     WORDS("keep", "remove")},

    {KEY(doppler, min_hz, DOUBLE, "0",
         "Lowest Doppler shift; both 0 is no search, or in doppler dwells +-1 / (2 Tr)."),
     .unit = "Hz", RANGE(-1e12, 1e12)},
    {KEY(doppler, max_hz, DOUBLE, "0", "Highest Doppler shift searched."), .unit = "Hz",
     RANGE(-1e12, 1e12)},
    {KEY(doppler, step, CHOICE, "quarter",
         "Step of the rotations, in repetition rates: half-way an echo loses 3.9, 0.91 or 0.22 "
         "dB."),
     WORDS("whole", "half", "quarter")},

    {KEY(detector, pfa, DOUBLE, "0.0001",
         "False alarms a search, over all lags of one result together."),
     .min = 0, .max = 1, .open = PNR_OPEN_MIN | PNR_OPEN_MAX},
    {KEY(detector, max_echoes, SIZE, "8", "The strongest echoes that one result may hold."),
     RANGE(1, 64)},
    {KEY(detector, oversample, SIZE, "1",
         "Cells a lag: 2 loses less of an echo that lies between two lags."),
     RANGE(1, 2)},
    {KEY(detector, cfar, CHOICE, "off",
         "Threshold from the mean around (ca), its greater or lesser side (go, so), or a rank "
         "(os)."),
     WORDS("off", "ca", "go", "so", "os")},
    {KEY(detector, cfar_axis, CHOICE, "range", "The axis along which those cells lie."),
     WORDS("range", "doppler")},
    {KEY(detector, cfar_guard, SIZE, "2",
         "Chips of range, or Doppler rows, without use on either side of the tested cell."),
     .unit = "cells", RANGE(0, 1024)},
    {KEY(detector, cfar_training, SIZE, "16",
         "Chips or rows on either side that measure the noise."),
     .unit = "cells", RANGE(1, 256)},
    {KEY(detector, exclusion_cells, SIZE, "1",
         "Weaker echoes within so many cells of range do not count."),
     .unit = "cells", RANGE(1, 1024)},
    {KEY(detector, exclusion_rows, SIZE, "1",
         "Weaker echoes within so many rows of Doppler do not count."),
     .unit = "rows", RANGE(1, 1024)},
    {KEY(detector, subtract, SIZE, "0",
         "More searches, each without the echoes found so far; 0 is none."),
     RANGE(0, 16)},
    {KEY(detector, threads, SIZE, "0",
         "Threads that detect the dwells of a result; 0 is one for each core, at most 16."),
     RANGE(0, 256)},

    {KEY(engine, name, TEXT, "auto",
         "Auto takes the best that works here, but never reference; see pnradar --list-engines.")},
    {KEY(engine, method, TEXT, "auto",
         "Method of the engine: walsh, fused (GPU) or library; auto chooses by length and code.")},
    {KEY(engine, device, SIZE, "0", "The GPU, counted from 0."), RANGE(0, 255)},
    {KEY(engine, depth, SIZE, "4", "Submits in flight at one time."), RANGE(1, 4)},
    {KEY(engine, batch, SIZE, "0", "Results a submit, at most; 0 lets the program choose."),
     RANGE(0, 1048576)},
    {KEY(engine, threads, SIZE, "0", "Threads of the cpu engine; 0 is one for each core."),
     RANGE(0, 1024)},
    {KEY(engine, wait, CHOICE, "sleep",
         "Sleep until samples or a result arrive, or spin: poll all the time, on a core of its "
         "own."),
     WORDS("sleep", "spin")},
    {KEY(engine, deadline, DOUBLE, "0",
         "Age at which a result is late; 0 is one dwell for a live stream, else no deadline."),
     .unit = "s", RANGE(0, 3600)},
    {KEY(engine, isolate, CHOICE, "auto",
         "Run the engine in a process of its own, which may die; auto: for cuda on live sources."),
     WORDS("auto", "yes", "no")},
    {KEY(engine, deadline_hang, DOUBLE, "5",
         "Time without progress after which that process is killed and started again."),
     .unit = "s", RANGE(0.01, 3600)},

    {KEY(ring, seconds, DOUBLE, "0", "Its length in time; 0 lets the program choose."), .unit = "s",
     RANGE(0, 86400)},
    {KEY(ring, bytes, BYTES, "0",
         "Its length in memory, with K, M or G for 2^10, 2^20, 2^30; 0 follows the seconds."),
     .unit = "bytes", RANGE(0, 1099511627776.0)},

    {KEY(realtime, lock_memory, YES_NO, "no",
         "Keep all memory of the program from being paged out.")},
    {KEY(realtime, acquisition_cpu, INT, "-1",
         "The processor of the thread that reads the samples; -1 is any."),
     RANGE(-1, 1023)},
    {KEY(realtime, processing_cpu, INT, "-1",
         "The processor of the thread that feeds the engine; -1 is any."),
     RANGE(-1, 1023)},
    {KEY(realtime, priority, SIZE, "0",
         "SCHED_FIFO priority of reading the samples, less for processing and publishing; 0 is "
         "none."),
     RANGE(0, 99)},

    {KEY(publisher, endpoint, TEXT, "tcp://127.0.0.1:5555",
         "ZeroMQ address to bind; empty publishes nothing.")},
    {KEY(publisher, expose, YES_NO, "no",
         "Yes allows an address beyond this machine to any subscriber, without keys.")},
    {KEY(publisher, curve_secret_path, TEXT, "",
         "File with the CURVE secret key; empty is no encryption.")},
    {KEY(publisher, curve_clients, TEXT, "",
         "Folder with a file for each CURVE public key that may subscribe; empty allows all.")},
    {KEY(publisher, max_subscribers, SIZE, "100", "Most connections at a time."),
     .unit = "connections", RANGE(1, 4096)},
    {KEY(publisher, pack, SIZE, "1",
         "Results a message: more than one are sent as an array of records."),
     .unit = "results", RANGE(1, 4096)},
    {KEY(publisher, profile, CHOICE, "off",
         "Publish every lag of every result too, as power or as complex values."),
     WORDS("off", "power", "complex")},
    {KEY(publisher, gnuradio, TEXT, "",
         "ZeroMQ address to bind for GNU Radio's ZMQ SUB source: the profiles as tagged vectors.")},
    {KEY(publisher, high_water, SIZE, "1000",
         "Messages kept for a slow subscriber; of profiles and maps 8 MiB, at least two."),
     .unit = "messages", RANGE(1, 1000000)},
    {KEY(publisher, wait_s, DOUBLE, "0",
         "Longest wait for a first subscriber of results or events, before the first sample."),
     .unit = "s", RANGE(0, 86400)},
    {KEY(publisher, linger_s, DOUBLE, "1",
         "Longest wait for the last messages at the end, and of a recording for a map's "
         "subscriber."),
     .unit = "s", RANGE(0, 3600)},

    {KEY(recorder, samples, TEXT, "",
         "Folder for SigMF recordings of the samples, or the name of one; empty records none.")},
    {KEY(recorder, results, TEXT, "",
         "File for the results: .jsonl, .csv, .sqlite or .h5; empty records none.")},
    {KEY(recorder, buffer_s, DOUBLE, "1",
         "Longest pause of the disk that the recording of samples survives."),
     .unit = "s", RANGE(0.01, 3600)},
    {KEY(recorder, rotate_s, DOUBLE, "0", "Longest recording before a new one begins; 0 is any."),
     .unit = "s", FROM(0)},
    {KEY(recorder, rotate_bytes, BYTES, "0",
         "Most bytes of samples of a recording, with K, M or G; 0 is any."),
     .unit = "bytes", RANGE(0, 1125899906842624.0)},
    {KEY(recorder, pre_trigger_s, DOUBLE, "0",
         "Record only around events, from this long before them; 0 records everything."),
     .unit = "s", RANGE(0, 3600)},
    {KEY(recorder, post_trigger_s, DOUBLE, "1", "With pre_trigger_s: so long after an event."),
     .unit = "s", RANGE(0, 86400)},
    {KEY(recorder, trigger_snr_db, DOUBLE, "",
         "With pre_trigger_s: an echo of this SNR is an event; empty: no echo is."),
     .given = offsetof(pnr_config, recorder.has_trigger_snr_db), .unit = "dB", RANGE(-100, 300)},
    {KEY(recorder, trigger_loss, YES_NO, "no",
         "With pre_trigger_s: a loss of samples is an event, as the signal USR1 always is.")},

    {KEY(echo, seed, SIZE, "1", "Seed of the noise: the same seed gives the same bits.")},
    {KEY(echo, periods, SIZE, "0", "Periods to write; 0 goes on until stopped."), .unit = "periods",
     RANGE(0, 1e15)},
    {KEY(echo, noise_rms, DOUBLE, "0.1", "Root mean square of the complex noise, full scale = 1."),
     FROM(0)},
    {KEY(echo, noise_bandwidth_hz, DOUBLE, "0",
         "Width of the filter that the noise passes, around the tuned frequency; 0 is white "
         "noise."),
     .unit = "Hz", FROM(0)},
    {KEY(echo, leak_amplitude, DOUBLE, "0",
         "Amplitude of the direct path at range 0, full scale = 1."),
     FROM(0)},
    {KEY(echo, cw_hz, DOUBLE, "0",
         "Frequency of an interfering carrier, relative to the tuned frequency."),
     .unit = "Hz"},
    {KEY(echo, cw_amplitude, DOUBLE, "0", "Amplitude of the interfering carrier, full scale = 1."),
     FROM(0)},
    {KEY(echo, clock_ppm, DOUBLE, "0",
         "Error of the sampling clock of the receiver, relative to the transmitter."),
     .unit = "ppm", RANGE(-10000, 10000)},
    {KEY(echo, phase_noise_rad, DOUBLE, "0",
         "Root mean square by which the phase of the receiver's oscillator wanders in one second."),
     .unit = "rad", FROM(0)},
    {KEY(echo, iq_gain_db, DOUBLE, "0", "Gain of Q relative to I in the receiver."), .unit = "dB",
     RANGE(-40, 40)},
    {KEY(echo, iq_phase_rad, DOUBLE, "0", "Error of the right angle between I and Q."),
     .unit = "rad", RANGE(-3.2, 3.2)},
    {KEY(echo, dc_amplitude, DOUBLE, "0", "Amplitude of a constant offset, full scale = 1."),
     FROM(0)},
    {KEY(echo, dc_phase_rad, DOUBLE, "0", "Phase of the constant offset: 0 is I, pi / 2 is Q."),
     .unit = "rad"},
    {KEY(echo, slips, RUNS, "",
         "Samples that the receiver loses unseen; unlike source.lost, they shift all later ones."),
     .also = offsetof(pnr_config, echo.n_slips), .unit = "first+count"},
    {KEY(echo, bits, SIZE, "0", "Bits of the ADC; 0 is those of the format."), .unit = "bits",
     RANGE(0, 16)},

    {TARGET(range_m, DOUBLE, "0", "Range at sample 0."), .unit = "m", RANGE(-1e15, 1e15)},
    {TARGET(velocity_mps, DOUBLE, "0", "Radial velocity, positive towards the radar."),
     .unit = "m/s", RANGE(-1e9, 1e9)},
    {TARGET(amplitude, DOUBLE, "0", "Amplitude of the echo, full scale = 1; 0 needs snr_db."),
     FROM(0)},
    {TARGET(
         snr_db, DOUBLE, "",
         "Power of the echo relative to echo.noise_rms, before correlation; replaces amplitude."),
     .given = offsetof(pnr_target, has_snr), .unit = "dB", RANGE(-300, 300)},
    {TARGET(code, SIZE, "1", "The code that it reflects: n of [code.n]."), RANGE(1, 65535)},
    {TARGET(phase_rad, DOUBLE, "0", "Phase of the echo at sample 0."), .unit = "rad"},
    {TARGET(data_bit_periods, SIZE, "0",
            "Periods of the code in one data bit, a random sign; 0 is no data."),
     .unit = "periods", RANGE(0, 1000000)},
};

const size_t pnr_config_n_keys = sizeof pnr_config_keys / sizeof pnr_config_keys[0];

const pnr_key *pnr_key_find(const char *section, const char *name)
{
    for (size_t i = 0; i < pnr_config_n_keys; i++)
        if (strcmp(pnr_config_keys[i].name, name) == 0 &&
            (!section || strcmp(pnr_config_keys[i].section, section) == 0))
            return &pnr_config_keys[i];
    return NULL;
}

const pnr_key *pnr_key_next(const char *section, const pnr_key *key)
{
    for (key = key ? key + 1 : pnr_config_keys; key < pnr_config_keys + pnr_config_n_keys; key++)
        if (strcmp(key->section, section) == 0)
            return key;
    return NULL;
}

const char *pnr_config_word(const pnr_config *config, const char *section, const char *name)
{
    const pnr_key *key = pnr_key_find(section, name);

    return key->choices[*(const int *)((const char *)config + key->offset)];
}
