# SPDX-License-Identifier: MIT
# pnradar: `make help` lists what can be done.

VERSION := 0.1.0
PREFIX ?= /usr/local
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
OPT := $(OPT_$(VARIANT))

have = $(shell pkg-config --exists $(1) 2>/dev/null && echo yes)
HAVE_FFTW := $(call have,fftw3f fftw3)
# Sanitizers and coverage do not go with device code: those variants are built without the module.
HAVE_CUDA := $(if $(filter release,$(VARIANT)),$(if $(NVCC),yes))

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
        -Wcast-qual -Wwrite-strings -Wvla -Wformat=2
PKGS := libzmq jansson sndfile
CPPFLAGS += -Isrc -D_GNU_SOURCE -DPNR_VERSION='"$(VERSION)"' \
            -DPNR_MODULE_DIR='"$(PREFIX)/lib/pnradar"' $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
CFLAGS += -std=c11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -pthread -MMD -MP
LDFLAGS += $(filter -fsanitize=% --coverage,$(OPT)) -pthread
LDLIBS += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -ldl -lm

CORE := $(filter-out src/main.c src/engine_cpu%.c,$(wildcard src/*.c))
CORE_OBJ := $(CORE:%.c=$(B)/obj/%.o)
LIB := $(B)/libpnradar.a
TOOLS := echo listen plan bench
PROGRAMS := $(B)/bin/pnradar $(TOOLS:%=$(B)/bin/pnradar-%)
MODULES := $(if $(HAVE_FFTW),$(B)/lib/pnradar/cpu.so) $(if $(HAVE_CUDA),$(B)/lib/pnradar/cuda.so)
TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/test_*.c))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

all: detected $(PROGRAMS) $(MODULES) ## build the programs and the engine modules into build/

detected:
	@echo "pnradar $(VERSION) ($(VARIANT)): cpu engine (FFTW) $(or $(HAVE_FFTW),left out), cuda engine $(if $(HAVE_CUDA),yes: $(NVCC),left out: no nvcc)"

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(LIB): $(CORE_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(B)/bin/pnradar: $(B)/obj/src/main.o $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Each tool is one file of its own name, and the parts that belong to it alone: tools/listen_*.c.
define tool_rule
$$(B)/bin/pnradar-$(1): $$(patsubst %.c,$$(B)/obj/%.o,tools/pnradar-$(1).c $$(wildcard tools/$(1)_*.c)) $$(LIB)
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS)
endef
$(foreach tool,$(TOOLS),$(eval $(call tool_rule,$(tool))))

FFTW_LIBS := $(shell pkg-config --libs fftw3f fftw3 2>/dev/null)
$(B)/lib/pnradar/cpu.so: $(patsubst %.c,$(B)/obj/%.o,$(wildcard src/engine_cpu*.c)) $(LIB)
	@mkdir -p $(@D)
	$(CC) -shared $(LDFLAGS) -Wl,--exclude-libs,ALL -o $@ $^ $(FFTW_LIBS) -lm

-include cuda/module.mk

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
