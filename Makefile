# SPDX-License-Identifier: MIT
# pnradar: `make help` lists what can be done.

VERSION := 0.1.0
PREFIX ?= /usr/local
# The library, and the modules below it, as Debian's lib/x86_64-linux-gnu.
LIBDIR ?= $(PREFIX)/lib
CC ?= gcc
NVCC ?= $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)

# One folder for each build variant: release in build/, the others below it.
VARIANT ?= release
VARIANT_DIR_release := build
B := $(or $(VARIANT_DIR_$(VARIANT)),build/$(VARIANT))
OPT_release := -O3 -g
OPT_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_tsan := -O1 -g -fsanitize=thread
OPT_coverage := -O0 -g --coverage
OPT_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined
OPT_fuzz-coverage := -O1 -g -fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping
OPT := $(OPT_$(VARIANT))

# Tests compile device code only for the GPU of this machine, and none where no GPU is.
ifneq ($(filter check build-tests gpu-test,$(MAKECMDGOALS)),)
GPUS := $(sort $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null)))
BUILT := $(shell cat $(B)/obj/cuda/archs 2>/dev/null)
NVCC := $(if $(GPUS),$(NVCC))
CUDA_ARCHS ?= $(if $(filter-out $(BUILT),$(GPUS)),$(GPUS),$(BUILT))
endif

have = $(shell pkg-config --exists $(1) 2>/dev/null && echo yes)
HAVE_FFTW := $(call have,fftw3f fftw3)
# Sanitizers and coverage do not work with device code: these variants leave the CUDA module out.
HAVE_CUDA := $(if $(filter release,$(VARIANT)),$(if $(NVCC),yes))

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
        -Wcast-qual -Wwrite-strings -Wvla -Wformat=2
PKGS := libzmq libsodium jansson sndfile
CPPFLAGS += -Isrc -I. -D_GNU_SOURCE -DPNR_VERSION='"$(VERSION)"' \
            -DPNR_MODULE_DIR='"$(LIBDIR)/pnradar"' $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
# A complex product is four multiplications and two additions. clang 14 does not know the option.
COMPLEX := $(shell $(CC) -fcx-limited-range -E -x c /dev/null >/dev/null 2>&1 && echo -fcx-limited-range)
CFLAGS += -std=c11 $(OPT) $(COMPLEX) $(WARN) -fPIC -fvisibility=hidden -pthread -MMD -MP
LDFLAGS += $(filter -fsanitize=% --coverage -fprofile%,$(OPT)) -pthread
LDLIBS += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -ldl -lm

# A folder in src/source/ or src/recorder/ is a module of an optional library: its name for pkg-config.
LIBRARY_alsa := alsa
LIBRARY_digital-rf := hdf5
LIBRARY_soapy := SoapySDR
LIBRARY_sqlite := sqlite3
LIBRARY_hdf5 := hdf5
OPTIONAL := $(patsubst src/%/,%,$(wildcard src/source/*/ src/recorder/*/))
FOUND := $(foreach m,$(OPTIONAL),$(if $(call have,$(LIBRARY_$(notdir $m))),$m))

# All rooms (folders) of src/ but the modules.
CORE := $(filter-out src/main.c src/engine/cpu/% $(OPTIONAL:%=src/%/%),$(shell find src -name '*.c'))
CORE_OBJ := $(CORE:%.c=$(B)/obj/%.o)
LIB := $(B)/libpnradar.a
# Shared by several tools.
COMMON := $(B)/libtools.a
# A manual lies next to what it describes.
MANUALS = $(filter-out $(if $(HAVE_VIEW),,%/pnradar-view.1),$(shell find src tools -name '*.[1-9]'))
# The page of pnradar-view has the charts of Chart.js.
CHART := $(firstword $(wildcard /usr/share/javascript/chart.js/chart.min.js))
HAVE_VIEW := $(if $(CHART),$(call have,libmicrohttpd))
TOOLS := echo listen plan bench keys $(if $(HAVE_VIEW),view)
PROGRAMS := $(B)/bin/pnradar $(TOOLS:%=$(B)/bin/pnradar-%) $(B)/bin/pnradar-archive
MODULES := $(if $(HAVE_FFTW),$(B)/lib/pnradar/cpu.so) $(if $(HAVE_CUDA),$(B)/lib/pnradar/cuda.so) $(foreach m,$(FOUND),$(B)/lib/pnradar/$(subst /,-,$m).so)
# The library for other programs. Its major number changes with the interface of pnradar.h.
SHARED := $(B)/lib/libpnradar.so.0
COMPLETIONS := $(B)/complete/bash $(B)/complete/zsh
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

all: detected $(PROGRAMS) $(MODULES) $(SHARED) $(COMPLETIONS) ## build the programs, the engine modules and the library into build/

detected:
	@echo "pnradar $(VERSION) ($(VARIANT)): cpu engine (FFTW) $(or $(HAVE_FFTW),left out), cuda engine $(if $(HAVE_CUDA),yes: $(NVCC),left out$(if $(NVCC), of this build,: no nvcc)), modules:$(foreach m,$(OPTIONAL), $(subst /,-,$m) $(if $(filter $m,$(FOUND)),yes,left out (no $(LIBRARY_$(notdir $m)))))"

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "cc $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(LIB): $(CORE_OBJ)
	@rm -f $@
	@ar rcs $@ $^

# The folder is newer when a file has left it.
$(COMMON): $(patsubst %.c,$(B)/obj/%.o,$(wildcard tools/common/*.c)) tools/common
	@rm -f $@
	@ar rcs $@ $(filter %.o,$^)

$(B)/bin/pnradar: $(B)/obj/src/main.o $(LIB)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Each tool is one file of its name, and a folder of its parts, as tools/listen/.
define tool_rule
$$(B)/bin/pnradar-$(1): $$(patsubst %.c,$$(B)/obj/%.o,tools/pnradar-$(1).c $$(wildcard tools/$(1)/*.c)) $$(COMMON) $$(LIB)
	@mkdir -p $$(@D)
	@echo "link $$@"
	@$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS)
endef
$(foreach tool,$(TOOLS),$(eval $(call tool_rule,$(tool))))

# The parts of the archive lie from the program as after the installation.
ARCHIVE := $(wildcard tools/archive/*.py)
$(B)/bin/pnradar-archive: tools/pnradar-archive $(ARCHIVE)
	@mkdir -p $(@D) $(B)/share/pnradar/archive
	@cp $(ARCHIVE) $(B)/share/pnradar/archive
	@sed 's|@VERSION@|$(VERSION)|' $< >$@ && chmod +x $@

PAGE := $(wildcard tools/view/page/*) $(CHART)
$(B)/assets.c: tools/view/embed $(PAGE) tools/view/page
	@mkdir -p $(@D)
	@tools/view/embed $(PAGE) >$@
$(B)/assets.o: $(B)/assets.c
	@echo "cc $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/bin/pnradar-view: $(B)/assets.o
$(B)/bin/pnradar-view: LDLIBS += $(shell pkg-config --libs libmicrohttpd 2>/dev/null)

$(SHARED): $(B)/obj/src/library/pnradar.o $(LIB)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) -shared $(LDFLAGS) -Wl,-soname,$(@F),--exclude-libs,ALL -o $@ $^ $(LDLIBS)
	@ln -sf $(@F) $(@:.0=)

# Prints the table of keys.
KEYS := $(B)/keys
$(KEYS): $(B)/obj/tools/keys.o $(LIB)
	@echo "link $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(COMPLETIONS): $(B)/complete/%: $(wildcard tools/complete/*) $(KEYS) $(PROGRAMS)
	@mkdir -p $(@D)
	@echo "complete $*"
	@tools/complete/complete $* $(KEYS) $(PROGRAMS) >$@

FFTW_LIBS := $(shell pkg-config --libs fftw3f fftw3 2>/dev/null)
$(B)/lib/pnradar/cpu.so: $(patsubst %.c,$(B)/obj/%.o,$(wildcard src/engine/cpu/*.c)) $(LIB)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) -shared $(LDFLAGS) -Wl,--exclude-libs,ALL -o $@ $^ $(FFTW_LIBS) -lm

define module_rule
$$(B)/obj/src/$(1)/%.o: CPPFLAGS += $$(shell pkg-config --cflags $$(LIBRARY_$(notdir $(1))))
$$(B)/lib/pnradar/$(subst /,-,$(1)).so: $$(patsubst %.c,$$(B)/obj/%.o,$$(wildcard src/$(1)/*.c)) $$(LIB)
	@mkdir -p $$(@D)
	@echo "link $$@"
	@$$(CC) -shared $$(LDFLAGS) -Wl,--exclude-libs,ALL -o $$@ $$^ $$(shell pkg-config --libs $$(LIBRARY_$(notdir $(1)))) $$(LDLIBS)
endef
$(foreach module,$(FOUND),$(eval $(call module_rule,$(module))))

-include cuda/module.mk

# --- tests ---

# Tests lie in folders as their rooms do. Their names are unique, and their programs lie in one folder.
TEST_SOURCES := $(shell find tests -name 'test_*.c')
TESTS := $(patsubst %.c,$(B)/tests/%,$(notdir $(TEST_SOURCES)))
FAULT := $(B)/tests/engines/fault.so
# What several tests share, main() among it.
FIXTURE := $(B)/libfixture.a
TEST_LDLIBS := $(shell pkg-config --libs cmocka 2>/dev/null || echo -lcmocka)

define test_rule
$(B)/tests/$(basename $(notdir $(1))): $(B)/obj/$(1:.c=.o) $(FIXTURE) $(COMMON) $(LIB)
	@mkdir -p $$(@D)
	@echo "link $$@"
	@$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(TEST_LDLIBS) $$(LDLIBS)
endef
$(foreach test,$(TEST_SOURCES),$(eval $(call test_rule,$(test))))

$(FIXTURE): $(patsubst %.c,$(B)/obj/%.o,$(filter-out %_fault.c,$(wildcard tests/fixture/*.c)))
	@rm -f $@
	@ar rcs $@ $^

$(FAULT): $(B)/obj/tests/fixture/engine_fault.o $(LIB)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) -shared $(LDFLAGS) -Wl,--exclude-libs,ALL -o $@ $^ -lm

# The source of sound cards, with a card that stops when a test asks for it.
ALSA_FAULT := $(if $(filter %/alsa,$(FOUND)),$(B)/tests/alsa/source-alsa.so)
ALSA_WRAPPED := open link start wait status readi writei status_get_state status_get_htstamp hw_params_set_format hw_params_set_rate
$(ALSA_FAULT): $(patsubst %.c,$(B)/obj/%.o,$(wildcard src/source/alsa/*.c) tests/fixture/alsa_fault.c) $(LIB)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) -shared $(LDFLAGS) -Wl,--exclude-libs,ALL $(ALSA_WRAPPED:%=-Wl,--wrap=snd_pcm_%) -o $@ $^ $(shell pkg-config --libs $(LIBRARY_alsa)) $(LDLIBS)

# A receiver for the tests of SoapySDR.
FAKE_RECEIVER := $(if $(filter %/soapy,$(FOUND)),$(B)/tests/soapy/fake.so)
$(B)/tests/soapy/fake.so: tests/fixture/soapy_fake.cpp
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) -std=c++14 -O1 -Wall -Wextra -fPIC -shared $(LDFLAGS) -o $@ $< $$(pkg-config --cflags --libs SoapySDR)

# What tests load: an engine that fails, a sound card that stops, a receiver.
FAKES := $(FAULT) $(ALSA_FAULT) $(FAKE_RECEIVER)

# PNR_ONLY names the tests to run; without it all run.
check: $(PROGRAMS) $(MODULES) $(SHARED) $(COMPLETIONS) $(if $(PNR_ONLY),$(filter $(addprefix $(B)/tests/,$(PNR_ONLY)),$(TESTS)),$(TESTS)) $(FAKES)
	@tests/run $(B)

setup:
	@tools/setup test

# All processors, unless -j says otherwise.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

test: setup ## install what is missing, build, run every test
	@$(MAKE) --no-print-directory $(JOBS) check

test-fresh: setup ## the tests of random inputs with other inputs; what fails is tried with two more
	@$(MAKE) --no-print-directory $(JOBS) build-tests
	@tests/fresh $(B)

build-tests: $(PROGRAMS) $(MODULES) $(TESTS) $(FAKES)

demo: ## install what is missing, build, find two synthetic targets and show them with the truth
	@tools/setup build
	@$(MAKE) --no-print-directory $(JOBS) HAVE_CUDA= all
	@tools/demo $(B)

view: ## install what is missing, build, and show a synthetic radar in the browser until Ctrl-C
	@tools/setup view
	@$(MAKE) --no-print-directory $(JOBS) HAVE_CUDA= all
	@tools/view/start $(B)

interop: all ## install GNU Radio and tshark where they are missing, and test against them
	@tools/setup interop
	@tests/run $(B) tests/interop

bench: all ## measure this machine, and the cpu engine against scipy
	$(B)/bin/pnradar-bench chain
	$(B)/bin/pnradar-bench stream
	python3=$$(command -v /usr/bin/python3 || command -v python3); $$python3 tests/tools/bench_numpy.py $(B)/bin

asan: ## build and run every test with the address and undefined-behaviour sanitizers
	@tools/setup test
	@ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS='suppressions=tests/lsan.supp print_suppressions=0' $(MAKE) --no-print-directory $(JOBS) VARIANT=asan check

tsan: ## build and run the tests of threads with the thread sanitizer
	@tools/setup test
	@TSAN_OPTIONS='suppressions=tests/tsan.supp' PNR_ONLY='$(TSAN_TESTS)' \
	    $(MAKE) --no-print-directory $(JOBS) VARIANT=tsan check
# Tests of threads: the hash of recordings, the ring, the recorders, the cpu engine's team, the pipeline, its subscribers and the library.
TSAN_TESTS := test_parallel test_team test_engine_start test_source_sigmf_hash test_ring test_ring_wait test_bell test_isolation test_reload test_recorder test_result_recorder test_queue test_acquisition test_engine_cpu test_engine_cpu_map test_engine_stream test_engine_again \
    $(filter-out test_pipeline_memory,$(notdir $(basename $(wildcard tests/pipeline/test_pipeline*.c)))) test_publisher test_guard test_event test_watchdog test_library
export PNR_ONLY

# Targets of pnradar-view, which may not be built here.
VIEW_FUZZERS := history http
FUZZERS := $(filter-out $(if $(HAVE_VIEW),,$(VIEW_FUZZERS)),$(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_SECONDS ?= 10
fuzz: ## run the libFuzzer targets (FUZZERS=NAME: this one), each for FUZZ_SECONDS (10), one on each processor
	@tools/setup lint
	@$(MAKE) --no-print-directory $(JOBS) VARIANT=fuzz CC=clang $(FUZZERS:%=build/fuzz/bin/fuzz_%)
	@tests/fuzz/run build/fuzz $(FUZZ_SECONDS) $(FUZZERS)

# Only a pattern leads to these objects: make would remove them. Without their names here, all files would be
# secondary: a program that is missing would not make the completion anew.
.SECONDARY: $(FUZZERS:%=$(B)/obj/tests/fuzz/fuzz_%.o)
# Some targets are parts of the listener.
$(B)/bin/fuzz_%: $(B)/obj/tests/fuzz/fuzz_%.o $(patsubst %.c,$(B)/obj/%.o,$(wildcard tools/listen/*.c)) $(COMMON) $(LIB)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

$(VIEW_FUZZERS:%=$(B)/bin/fuzz_%): $(patsubst %.c,$(B)/obj/%.o,$(wildcard tools/view/*.c)) $(B)/assets.o
$(VIEW_FUZZERS:%=$(B)/bin/fuzz_%): LDLIBS += $(shell pkg-config --libs libmicrohttpd 2>/dev/null)

fuzz-coverage: ## line coverage of each libFuzzer target over its corpus, of the files that tests/fuzz/README.md names
	@tools/setup lint
	@$(MAKE) --no-print-directory $(JOBS) VARIANT=fuzz-coverage CC=clang $(FUZZERS:%=build/fuzz-coverage/bin/fuzz_%)
	@tests/fuzz/coverage build

# Makes calls of the C library fail.
SHIM := $(B)/tests/faults/shim.so
$(SHIM): $(B)/obj/tests/faults/shim.o
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) -shared $(LDFLAGS) -o $@ $^ -ldl

MUTATIONS := $(B)/tests/faults/mutations
$(MUTATIONS): $(B)/obj/tests/faults/mutations.o $(LIB)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

faults: ## inject each fault of tests/faults/table.py, and judge what the programs report
	@tools/setup test
	@$(MAKE) --no-print-directory $(JOBS) build-tests $(SHIM) $(MUTATIONS)
	@tests/faults/run $(B) '$(FAULTS)'

coverage: ## run the tests and print line coverage by file
	@tools/setup test
	@$(MAKE) --no-print-directory $(JOBS) VARIANT=coverage check
	@gcov -n $$(find build/coverage/obj/src -name '*.gcda') 2>/dev/null | tests/coverage

docs: $(KEYS) ## print config/pnradar.conf and the keys in src/pnradar.conf.5 from the table
	@$(KEYS) reference >config/pnradar.conf
	@$(KEYS) mdoc >$(KEYS).mdoc
	@sed -i -e '/^\.\\" keys: begin$$/r $(KEYS).mdoc' \
	    -e '/^\.\\" keys: begin$$/,/^\.\\" keys: end$$/{/^\.\\" keys: /!d}' src/pnradar.conf.5

SHELL_FILES := tools/debian/build tools/debian/try tools/setup tools/demo tools/complete/complete tools/complete/completion.bash tools/clients/echoes.sh tests/run tests/fresh tests/coverage tests/fuzz/run tests/fuzz/coverage tests/layers tests/prose .ci/run $(shell find tests -name '*.sh')
C_FILES := $(shell find src cuda tools tests -name '*.[ch]' -o -name '*.cu')
lint: ## check includes, format, code, scripts and manuals
	@tools/setup lint
	tests/layers
	tests/prose
	clang-format --dry-run -Werror $(C_FILES)
	cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning \
	    --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches -Isrc -I. \
	    -D__GNUC__ -DPNR_VERSION='""' -DPNR_MODULE_DIR='""' src tools
	shellcheck $(wildcard $(SHELL_FILES))
	mandoc -T lint -W warning $(MANUALS)

fmt: ## format the code with clang-format
	clang-format -i $(C_FILES)

gpu-test: all $(TESTS) $(FAULT) ## run the engine tests on every engine that this machine has
	@$(B)/bin/pnradar --list-engines
	@PNR_ONLY='test_engine test_engine_map test_engine_map_cuda test_engine_again test_map_numpy test_engine_fused test_engine_long test_engine_walsh test_engine_outside test_engine_stream test_engine_cpu test_detection test_pipeline test_pipeline_bits test_pipeline_devices test_pipeline_live test_pipeline_memory test_isolation' \
	    tests/run $(B)

SHARE = $(DESTDIR)$(PREFIX)/share
ZSH_DIR ?= $(PREFIX)/share/zsh/site-functions
UNIT = $(DESTDIR)$(PREFIX)/lib/systemd/system/pnradar.service
COMPLETED := $(notdir $(PROGRAMS))

install: all ## copy programs, library, modules, manuals, completion, unit and configurations below PREFIX (/usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(LIBDIR)/pnradar \
	    $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(ZSH_DIR) $(SHARE)/pnradar $(SHARE)/bash-completion/completions $(dir $(UNIT))
	install $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(MODULES) $(DESTDIR)$(LIBDIR)/pnradar
	install -m 644 $(SHARED) $(DESTDIR)$(LIBDIR)
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(LIBDIR)/libpnradar.so
	install -m 644 src/library/pnradar.h $(DESTDIR)$(PREFIX)/include
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' src/library/libpnradar.pc \
	    >$(DESTDIR)$(LIBDIR)/pkgconfig/libpnradar.pc
	install -m 644 $(wildcard config/*.conf) tools/embed.c tools/clients/echoes.m $(SHARE)/pnradar
	install tools/clients/echoes.py tools/clients/echoes.sh $(SHARE)/pnradar
	install -d $(SHARE)/pnradar/archive
	install -m 644 $(ARCHIVE) $(SHARE)/pnradar/archive
	sed 's|/usr/local/|$(PREFIX)/|' config/pnradar.service >$(UNIT)
	install -m 644 $(B)/complete/zsh $(DESTDIR)$(ZSH_DIR)/_pnradar
	for program in $(COMPLETED); do \
	    install -m 644 $(B)/complete/bash $(SHARE)/bash-completion/completions/$$program; \
	done
	for page in $(MANUALS); do \
	    install -d $(SHARE)/man/man$${page##*.}; \
	    sed -E 's;/usr/local/lib/(pnradar|libpnradar|pkgconfig);$(LIBDIR)/\1;g' $$page | \
	        sed 's|/usr/local/share/zsh/[a-z-]*|$(ZSH_DIR)|; s|/usr/local/|$(PREFIX)/|g' \
	        >$(SHARE)/man/man$${page##*.}/$${page##*/}; \
	done

uninstall: ## remove what install copied
	rm -f $(PROGRAMS:$(B)/%=$(DESTDIR)$(PREFIX)/%) $(DESTDIR)$(LIBDIR)/$(notdir $(SHARED)) \
	    $(DESTDIR)$(LIBDIR)/libpnradar.so $(DESTDIR)$(LIBDIR)/pkgconfig/libpnradar.pc \
	    $(DESTDIR)$(PREFIX)/include/pnradar.h $(UNIT) $(DESTDIR)$(ZSH_DIR)/_pnradar \
	    $(COMPLETED:%=$(SHARE)/bash-completion/completions/%) \
	    $(foreach page,$(MANUALS),$(SHARE)/man/man$(subst .,,$(suffix $(page)))/$(notdir $(page)))
	rm -rf $(DESTDIR)$(LIBDIR)/pnradar $(SHARE)/pnradar

deb: ## build Debian packages in build/deb and check them with lintian
	@tools/setup deb
	@HAVE_CUDA='$(HAVE_CUDA)' tools/debian/build $(VERSION) build/deb

clean: ## remove build/
	rm -rf build

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | awk -F '\t' '{printf "  make %-13s %s\n", $$1, $$2}'

.PHONY: all detected check setup test test-fresh interop build-tests demo view bench asan tsan fuzz coverage fuzz-coverage faults docs lint fmt gpu-test install \
    uninstall deb clean help

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
