# Per-instruction-set compile flags for the sources of common/cpu/kernels.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(WEFT_KERNELS_X86 ON)
  set(WEFT_AVX2_FLAGS -mavx2 -mfma -mf16c -mbmi2)
  set(WEFT_AVX512_FLAGS -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx2 -mfma -mf16c -mbmi2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(WEFT_KERNELS_NEON ON)
endif()
