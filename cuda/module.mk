# SPDX-License-Identifier: MIT
# The cuda engine: one module of kernels and host code, for every GPU architecture named here.

# The newest comes last: it is also stored as PTX, for newer GPUs. Code for 80 also runs on 86 and 89.
# `make CUDA_ARCHS=90` builds for one only; tests build for the GPU of the machine.
CUDA_ARCHS ?= 75 80 90 100
CUDA_NEWEST := $(lastword $(CUDA_ARCHS))
CUDA_CODE := $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
             -gencode arch=compute_$(CUDA_NEWEST),code=compute_$(CUDA_NEWEST)
CUDA_HOME := $(abspath $(dir $(NVCC))/..)
NVCCFLAGS += -O3 -std=c++17 $(CUDA_CODE) -Xcompiler -fPIC,-fvisibility=hidden,-pthread,-Wall,-Wextra
CUDA_OBJ := $(patsubst %.cu,$(B)/obj/%.o,$(shell find cuda -name '*.cu'))

# The architectures of the objects that lie there. Objects for others are compiled again.
CUDA_BUILT := $(B)/obj/cuda/archs
ifneq ($(HAVE_CUDA),)
$(shell mkdir -p $(dir $(CUDA_BUILT)) && echo '$(CUDA_ARCHS)' | cmp -s - $(CUDA_BUILT) || \
    echo '$(CUDA_ARCHS)' >$(CUDA_BUILT))
endif

$(B)/obj/cuda/%.o: cuda/%.cu cuda/module.mk $(CUDA_BUILT)
	@mkdir -p $(@D)
	$(NVCC) -Isrc -I. -D_GNU_SOURCE $(NVCCFLAGS) -MMD -MP -c -o $@ $<

# The CUDA runtime is linked in, so that the module loads wherever the libraries are, and reports in
# words that there is no driver.
$(B)/lib/pnradar/cuda.so: $(CUDA_OBJ) $(LIB)
	@mkdir -p $(@D)
	$(NVCC) -shared -cudart static $(CUDA_CODE) -Xcompiler -pthread -o $@ $^ \
	    -lcufft -ldl -lm -Xlinker --exclude-libs,ALL -Xlinker -z,now,-rpath,$(CUDA_HOME)/lib64
