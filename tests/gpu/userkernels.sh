#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Users' kernels on a real GPU: device code of every kind runs, and what cannot run says why.  Needs nvcc and
# gst-launch-1.0.  usage: userkernels.sh BUILD
set -uo pipefail

build=$(cd "${1:?usage: userkernels.sh BUILD}" && pwd)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || { echo 'skipped: no nvcc'; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export GST_PLUGIN_PATH=$build/gst XDG_CACHE_HOME=$scratch/cache
failed=0

cat > invert.cu <<'CU'
#include <cudastreamfilter/kernel.h>

extern "C" __global__ void
invert (csfk_frame frame)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const csfk_plane &in = frame.in.plane[0], &out = frame.out.plane[0];

  if (x < in.row_bytes && y < in.rows)
    out.data[y * out.stride + x] = ~in.data[y * in.stride + x];
}
CU
cat > wild.cu <<'CU'
#include <cudastreamfilter/kernel.h>

extern "C" __global__ void
wild (csfk_frame frame)
{
  frame.out.plane[0].data[1ull << 45] = 1;
}
CU
cat > average.cu <<'CU'
#include <cudastreamfilter/kernel.h>

extern "C" __global__ void
average (csfk_frame frame)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int *sum = (int *) frame.state + y * frame.in.width + x;

  if (x >= frame.in.width || y >= frame.in.height)
    return;
  *sum += frame.in.plane[0].data[y * frame.in.plane[0].stride + x];
  frame.out.plane[0].data[y * frame.out.plane[0].stride + x] = *sum / (frame.state_frames + 1);
}

extern "C" __device__ csfk_desc csfk_desc_average = {
  .abi = CSFK_ABI, .description = "Mean of all frames", .formats = { CSFK_FORMAT_GRAY8 },
  .state_bytes_per_pixel = 4
};
CU
sed 's/in.data/in.date/' invert.cu > bad.cu

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -n 1 | tr -d .)
if [ -z "$capability" ]; then capability=90; fi
other=80
if [ "$capability" = 80 ]; then other=90; fi
compile() { "$nvcc" -std=c++20 -I "$build/include" "$@" || { echo "nvcc $* failed"; exit 1; }; }
compile -ptx -arch=compute_75 -o invert.ptx invert.cu
compile -cubin "-arch=sm_$capability" -o invert.cubin invert.cu
compile -fatbin "-arch=sm_$capability" -o invert.fatbin invert.cu
compile -ptx -arch=compute_121 -o newer.ptx invert.cu
compile -cubin "-arch=sm_$other" -o other.cubin invert.cu
for kind in cubin fatbin ptx; do head -c $(($(stat -c %s invert.$kind) * 2 / 3)) invert.$kind > short.$kind; done

launch() # FILE
{
  timeout 60 gst-launch-1.0 videotestsrc pattern=gradient num-buffers=20 \
    ! video/x-raw,format=GRAY8,width=160,height=120 \
    ! cudastreamfilter name=x backend=cuda num-streams=3 "kernel-file=$1" ! filesink location=out > log 2>&1
}

runs() # FILE EXPRESSION: each grey level becomes that of b
{
  if ! launch "$1"; then echo "FAILED $1 does not run"; cat log; failed=1; return; fi
  if ! python3 - "$2" <<'PY'
import sys
before, after = open('plain', 'rb').read(), open('out', 'rb').read()
table = bytes(eval(sys.argv[1], {'b': b}) & 255 for b in range(256))
sys.exit(after != before.translate(table))
PY
  then echo "FAILED $1: other pixels than expected"; failed=1; return; fi
  echo "ok $1 runs"
}

refused() # FILE WORDS ...
{
  local file=$1 word
  shift
  if launch "$file"; then echo "FAILED $file ran"; failed=1; return; fi
  # One error of ours; the source says once more that its data is not taken.
  if [ "$(grep -c '^ERROR: from element .*GstCudaStreamFilter' log)" -ne 1 ]; then
    echo "FAILED $file: not one error"; cat log; failed=1; return
  fi
  for word in "$@"; do
    grep -q -- "$word" log || { echo "FAILED $file: no '$word' in:"; cat log; failed=1; return; }
  done
  echo "ok $file is refused: $(grep -m 1 GstCudaStreamFilter log | cut -d: -f4-)"
}

gst-launch-1.0 -q videotestsrc pattern=gradient num-buffers=20 \
  ! video/x-raw,format=GRAY8,width=160,height=120 ! filesink location=plain || exit 1
runs invert.cu '~b'
runs invert.cu '~b'             # from the cache
runs invert.ptx '~b'
runs invert.cubin '~b'
runs invert.fatbin '~b'
runs average.cu b               # of frames that are all the same
refused bad.cu 'bad.cu(10): error' date
refused newer.ptx 'compute capability 12.1' '-arch=compute_'
refused other.cubin 'no code for compute capability'
refused short.cubin 'cut short'
refused short.fatbin 'cut short'
refused short.ptx 'not PTX'
refused wild.cu 'kernel "wild", frame 0' 'process must be restarted'
exit $failed
