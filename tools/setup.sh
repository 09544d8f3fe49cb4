#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Installs what is missing to build and run cudastreamfilter, then builds it with meson.  Looks for the
# things themselves (commands, pkg-config modules, GStreamer elements), so it installs nothing, and needs
# neither network nor root, where everything is there.  Safe to run again at any time.
set -euo pipefail

usage()
{
  cat <<'USAGE'
usage: tools/setup.sh [OPTION ...] [-DNAME=VALUE ...]

Installs the missing packages (Debian and Ubuntu: apt-get, as root or through sudo), then configures and
builds with meson.  Inside a conda environment that has GStreamer only that environment is used and nothing
is installed.  On other systems it says what is missing and stops.

  --build-dir DIR    build here (default: the folder build in the project)
  --with-tests       also what the tests need, and build them
  --no-install       install and fetch nothing; stop when something is missing
  --packages-only    install what is missing, build nothing
  --configure-only   configure, do not compile
  -DNAME=VALUE       handed to meson, for example -Dcuda=disabled or -Dbuildtype=debug
  -h, --help         this text

A machine with an NVIDIA driver and no CUDA compiler gets NVIDIA's compiler wheels from PyPI, of the CUDA
version that the driver runs, in build/cuda-wheels.  When that fails the CPU path is built all the same.

Environment:
  CC                    the C compiler (default: cc)
  CUDA_HOME             a CUDA toolkit; also looked for on PATH and in /usr/local/cuda
  CSF_SETUP_CUDA_MAJOR  12 or 13 (or with the minor version, 12.4): fetch that compiler although no driver
                        is seen here, to build for another machine; "none": never fetch one
USAGE
}

say() { printf 'setup: %s\n' "$*"; }
warn() { printf 'setup: warning: %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_dir=$root/build
wheels=$root/build/cuda-wheels
with_tests=no
install=yes
packages_only=no
configure_only=no
meson_args=()

while [ $# -gt 0 ]; do
  case $1 in
    --build-dir) [ $# -gt 1 ] || die "--build-dir needs a folder"; build_dir=$2; shift 2 ;;
    --build-dir=*) build_dir=${1#*=}; shift ;;
    --with-tests) with_tests=yes; shift ;;
    --no-install) install=no; shift ;;
    --packages-only) packages_only=yes; shift ;;
    --configure-only) configure_only=yes; shift ;;
    -D?*) meson_args+=("$1"); shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; die "unknown argument '$1'" ;;
  esac
done
case $build_dir in /*) ;; *) build_dir=$PWD/$build_dir ;; esac

has_option() # NAME: was -DNAME=... given?
{
  local arg
  for arg in "${meson_args[@]}"; do
    case $arg in "-D$1="*) return 0 ;; esac
  done
  return 1
}

cuda_disabled() { case " ${meson_args[*]} " in *' -Dcuda=disabled '*) return 0 ;; *) return 1 ;; esac; }

# ---------------------------------------------------------------------------------------------------
# What is needed.  A row: package on Debian and Ubuntu | package on conda-forge | when | test
# when: always, for the tests, or where there is a display
# ---------------------------------------------------------------------------------------------------

version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

can_compile() { printf '#include <stdlib.h>\nint main (void) { return 0; }\n' |
  "$1" -x "$2" - -o /dev/null > /dev/null 2>&1; }

has_meson() { local v; v=$(meson --version 2> /dev/null) && version_at_least "$v" 0.61; }
has_command() { command -v "$1" > /dev/null 2>&1; }
# The system's packages are for the python3 in /usr/bin, whichever is first on PATH.
python_has() { python3 -c "$1" 2> /dev/null || { ! in_conda && /usr/bin/python3 -c "$1" 2> /dev/null; }; }
has_python_gst() { python_has 'import gi; gi.require_version("Gst", "1.0"); from gi.repository import Gst'; }
has_ninja() { has_command ninja || has_command ninja-build; }
has_module() { pkg-config --exists "$1-1.0 >= 1.20" 2> /dev/null; }
has_tools() { has_command gst-launch-1.0 && has_command gst-inspect-1.0; }
has_element()
{
  local name
  for name; do
    if gst-inspect-1.0 "$name" > /dev/null 2>&1; then return 0; fi
  done
  return 1
}

has_window_sink()
{
  if [ -n "${WAYLAND_DISPLAY:-}" ] && has_element waylandsink; then return 0; fi
  has_element xvimagesink ximagesink glimagesink
}

needs()
{
  cat <<'NEEDS'
gcc libc6-dev                   | c-compiler       | always | can_compile "${CC:-cc}" c
meson                           | meson            | always | has_meson
ninja-build                     | ninja            | always | has_ninja
pkg-config                      | pkg-config       | always | has_command pkg-config
python3                         | python           | always | has_command python3
libgstreamer1.0-dev             | gstreamer        | always | has_module gstreamer
libgstreamer1.0-dev             | gstreamer        | always | has_module gstreamer-base
libgstreamer-plugins-base1.0-dev| gst-plugins-base | always | has_module gstreamer-video
gstreamer1.0-tools              | gstreamer        | always | has_tools
gstreamer1.0-plugins-base       | gst-plugins-base | always | has_element videoconvert
gstreamer1.0-plugins-base       | gst-plugins-base | always | has_element videotestsrc
gstreamer1.0-plugins-base       | gst-plugins-base | always | has_element decodebin
gstreamer1.0-plugins-good       | gst-plugins-good | always | has_element qtdemux
gstreamer1.0-plugins-good       | gst-plugins-good | always | has_element matroskamux
gstreamer1.0-plugins-good       | gst-plugins-good | always | has_element jpegenc
gstreamer1.0-plugins-good       | gst-plugins-good | always | has_element autovideosink
gstreamer1.0-x                  | gst-plugins-base | window | has_window_sink
gstreamer1.0-plugins-bad        | gst-plugins-bad  | always | has_element h264parse
gstreamer1.0-libav              | gst-libav        | always | has_element avdec_h264 nvh264dec openh264dec
libgstreamer1.0-dev             | gstreamer        | tests  | has_module gstreamer-check
libgstreamer-plugins-base1.0-dev| gst-plugins-base | tests  | has_module gstreamer-app
python3-gi                      | pygobject        | tests  | python_has 'import gi'
python3-rich                    | rich             | tests  | python_has 'import rich'
gir1.2-gstreamer-1.0            | gstreamer        | tests  | in_conda || has_python_gst
python3-prometheus-client       | prometheus_client | tests | python_has 'import prometheus_client'
python3-matplotlib              | matplotlib       | tests  | python_has 'import matplotlib'
python3-nbformat                | nbformat         | tests  | python_has 'import nbformat'
python3-nbclient                | nbclient         | tests  | python_has 'import nbclient'
python3-ipykernel               | ipykernel        | tests  | python_has 'import ipykernel'
g++                             | cxx-compiler     | tests  | can_compile "${CXX:-c++}" c++
clang                           | clang            | tests  | in_conda || can_compile clang c
NEEDS
}

# Sets missing_deb and missing_conda to the packages whose test fails.
find_missing()
{
  local deb conda when check
  missing_deb=()
  missing_conda=()
  while IFS='|' read -r deb conda when check; do
    when=${when// /}
    case $when in
      tests) [ $with_tests = yes ] || continue ;;
      window) [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] || continue ;;
    esac
    if eval "$check"; then continue; fi
    case " ${missing_deb[*]} " in
      *" ${deb%"${deb##*[! ]}"} "*) continue ;;
    esac
    read -r -a words <<< "$deb"
    missing_deb+=("${words[@]}")
    conda=${conda// /}
    case " ${missing_conda[*]} " in
      *" $conda "*) ;;
      *) missing_conda+=("$conda") ;;
    esac
  done < <(needs)
}

in_conda() { [ -n "${CONDA_PREFIX:-}" ] && [ -e "$CONDA_PREFIX/lib/pkgconfig/gstreamer-1.0.pc" ]; }

has_apt()
{
  has_command apt-get || return 1
  # shellcheck disable=SC1091
  (. /etc/os-release 2> /dev/null; case " ${ID:-} ${ID_LIKE:-} " in
    *' debian '* | *' ubuntu '*) ;; *) exit 1 ;; esac)
}

as_root()
{
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

apt_install()
{
  local command="apt-get update && apt-get install --no-install-recommends $*"
  if [ "$(id -u)" -ne 0 ]; then
    has_command sudo || die "installing needs root and there is no sudo; as root, run: $command"
    # Without a terminal sudo cannot ask for a password.
    if ! [ -t 0 ] && ! sudo -n true 2> /dev/null; then
      die "installing needs root and sudo asks for a password; run this first: sudo sh -c '$command'"
    fi
  fi
  as_root apt-get -q update || warn "apt-get update failed; trying with the package lists that are there"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "$@" \
    || die "apt-get could not install: $*.  On Ubuntu the 'universe' component must be enabled."
}

install_missing()
{
  if in_conda; then
    die "the conda environment at $CONDA_PREFIX lacks: ${missing_conda[*]}.
Create it from this project's file (conda env create -f environment.yml) or add them:
  conda install -c conda-forge ${missing_conda[*]}"
  fi
  if ! has_apt; then
    die "not a Debian or Ubuntu system, so nothing is installed here.  Please install what these Debian
packages hold, under the names that they have on your system, and run this again:
  ${missing_deb[*]}
GStreamer must be 1.20 or newer, meson 0.61 or newer."
  fi
  [ $install = yes ] || die "missing and not installed because of --no-install: ${missing_deb[*]}"

  say "will install with apt-get: ${missing_deb[*]}"
  apt_install "${missing_deb[@]}"
  hash -r
  find_missing
  if [ ${#missing_deb[@]} -gt 0 ]; then
    die "installed, but still not usable: ${missing_deb[*]}.
GStreamer must be 1.20 or newer and meson 0.61 or newer (Debian 12, Ubuntu 22.04 or newer have them)."
  fi
}

# ---------------------------------------------------------------------------------------------------
# The CUDA compiler
# ---------------------------------------------------------------------------------------------------

# Prints the path of the toolkit's nvcc.
find_nvcc()
{
  local candidate
  for candidate in ${CUDA_HOME:+"$CUDA_HOME/bin/nvcc"} "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

# Prints the CUDA major version of an nvcc; 0 when it does not run.
nvcc_major()
{
  local major
  major=$("$1" --version 2> /dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p') || true
  printf '%s\n' "${major:-0}"
}

driver_present()
{
  local path
  if [ -e /proc/driver/nvidia/version ] || has_command nvidia-smi; then return 0; fi
  if { ldconfig -p || /sbin/ldconfig -p; } 2> /dev/null | grep -q 'libcuda\.so\.1'; then return 0; fi
  for path in /usr/lib/wsl/lib /usr/local/nvidia/lib64 /usr/lib64 /usr/lib/*/nvidia/current /usr/lib/*/tegra; do
    if [ -e "$path/libcuda.so.1" ]; then return 0; fi
  done
  return 1
}

# Prints MAJOR.MINOR of the newest CUDA that the driver runs: asks the driver, then nvidia-smi, then
# goes by the driver's own version.
driver_cuda_version()
{
  local version
  version=$(python3 - 2> /dev/null <<'PYTHON'
import ctypes, glob
folders = ["/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/lib64"]
folders += glob.glob("/usr/lib/*/nvidia/current") + glob.glob("/usr/lib/*/tegra")
for path in ["libcuda.so.1"] + [folder + "/libcuda.so.1" for folder in folders]:
    try:
        version = ctypes.c_int()
        if ctypes.CDLL(path).cuDriverGetVersion(ctypes.byref(version)) == 0:
            print("%d.%d" % (version.value // 1000, version.value % 1000 // 10))
            break
    except OSError:
        pass
PYTHON
  ) || true
  if [ -z "$version" ] && has_command nvidia-smi; then
    version=$(nvidia-smi 2> /dev/null | sed -n 's/.*CUDA[A-Za-z ]*Version: *\([0-9]*\.[0-9]*\).*/\1/p' | head -n 1) || true
  fi
  if [ -z "$version" ] && [ -r /proc/driver/nvidia/version ]; then
    version=$(sed -n 's/.*Kernel Module[^0-9]*\([0-9]*\)\..*/\1/p' /proc/driver/nvidia/version | head -n 1)
    if [ "${version:-0}" -ge 580 ]; then version=13
    elif [ "${version:-0}" -ge 525 ]; then version=12
    elif [ -n "$version" ]; then version=11
    fi
  fi
  [ -n "$version" ] && printf '%s\n' "$version"
}

pip_fetch() # FOLDER WHEEL ...
{
  local folder=$1
  shift
  # --target leaves the system's Python alone, so this is allowed where it is externally managed.
  python3 -m pip --disable-pip-version-check install --quiet --no-deps --only-binary=:all: \
    --no-warn-script-location --root-user-action=ignore --target "$folder" "$@"
}

put_stand_in() # FOLDER
{
  cp "$root/tools/nvrtc-nvcc" "$1/bin/nvcc"
  chmod +x "$1/bin/nvcc"
}

# Puts an nvcc of CUDA MAJOR[.MINOR] into the folder given.
fetch_compiler() # FOLDER MAJOR[.MINOR]
{
  local folder=$1 major=${2%%.*} minor range
  # The compiler of the driver's own minor version: a driver cannot read PTX from a newer one.
  case $2 in
    *.*) minor=${2#*.}; range=">=$major,<$major.$((minor + 1))" ;;
    *) range=">=$major,<$((major + 1))" ;;
  esac
  mkdir -p "$folder"
  if [ "$major" -eq 12 ]; then
    # The wheels of CUDA 12 hold no nvcc, only its parts.  NVRTC is the same compiler as a library;
    # fatbinary, from the wheel of CUDA 13, only packs what NVRTC made.
    pip_fetch "$folder" "nvidia-cuda-nvrtc-cu12$range" "nvidia-cuda-runtime-cu12$range" || return 1
    pip_fetch "$folder/packer" 'nvidia-cuda-nvcc>=13,<13.1' || return 1
    mkdir -p "$folder/bin"
    mv "$folder/packer/nvidia/cu13/bin/fatbinary" "$folder/bin/" || return 1
    rm -rf "$folder/packer"
    put_stand_in "$folder"
    chmod +x "$folder/bin/fatbinary"
  else
    pip_fetch "$folder" "nvidia-cuda-nvcc$range" "nvidia-nvvm$range" "nvidia-cuda-crt$range" \
      "nvidia-cuda-runtime$range" || return 1
    ln -s "nvidia/cu$major/bin" "$folder/bin"
    ln -s "nvidia/cu$major/include" "$folder/include"
  fi
}

compiles() # NVCC: does it make a fatbin of a small kernel?
{
  local folder status=0
  folder=$(mktemp -d)
  printf 'extern "C" __global__ void\nadd (int *p)\n{\n  p[threadIdx.x] += 1;\n}\n' > "$folder/try.cu"
  "$1" -fatbin -gencode arch=compute_75,code=sm_75 -gencode arch=compute_75,code=compute_75 \
    -o "$folder/try.fatbin" "$folder/try.cu" > "$folder/log" 2>&1 && [ -s "$folder/try.fatbin" ] || status=1
  if [ $status -ne 0 ]; then head -n 5 "$folder/log" >&2; fi
  rm -rf "$folder"
  return $status
}

# Installs one package if its test fails; returns whether the test passes in the end.  Unlike what is in
# the table above, setting up goes on without it.
get() # PACKAGE TEST
{
  if eval "$2" > /dev/null 2>&1; then return 0; fi
  if [ $install = no ] || in_conda || ! has_apt; then return 1; fi
  say "will install with apt-get: $1"
  (apt_install "$1") || return 1
  hash -r
  eval "$2" > /dev/null 2>&1
}

# Sets nvcc to the compiler fetched earlier or now; leaves it empty, with a warning, when that fails.
use_wheels() # MAJOR[.MINOR]
{
  local version=$1 folder
  folder=$wheels/$version
  # The stand-in may have changed since.
  if [ -e "$folder/complete" ] && [ "${version%%.*}" -eq 12 ]; then put_stand_in "$folder"; fi
  if [ -e "$folder/complete" ] && compiles "$folder/bin/nvcc"; then
    nvcc=$folder/bin/nvcc
    return
  fi
  if [ $install = no ]; then
    warn "no CUDA compiler, and none is fetched because of --no-install: building the CPU path only"
    return
  fi
  say "will fetch NVIDIA's compiler for CUDA $version from PyPI (about 200 MB, under NVIDIA's licence) into $folder"
  if ! get python3-pip 'python3 -m pip --version'; then
    warn "python3 has no pip, so NVIDIA's compiler cannot be fetched: building the CPU path only"
    return
  fi
  if [ "${version%%.*}" -ge 13 ] && ! get g++ 'can_compile g++ c++'; then
    warn "NVIDIA's compiler needs g++: building the CPU path only"
    return
  fi
  rm -rf "$folder"
  if fetch_compiler "$folder" "$version" && compiles "$folder/bin/nvcc"; then
    touch "$folder/complete"
    nvcc=$folder/bin/nvcc
    say "NVIDIA's compiler is ready: $nvcc"
  else
    rm -rf "$folder"
    warn "could not fetch a working compiler for CUDA $version: building the CPU path only.
       Install a CUDA toolkit (12 or 13), or run this again with a network."
  fi
}

# CUDA memory on the pads is built where there is a toolkit: it needs libgstcuda and OpenGL's headers too.
# Without them all else is built.
get_cuda_memory()
{
  if in_conda || ! pkg-config --exists 'gstreamer-1.0 >= 1.22'; then return 0; fi
  # shellcheck disable=SC2016
  if ! get libgstreamer-plugins-bad1.0-dev 'pkg-config --exists "gstreamer-cuda-1.0 >= 1.22"' \
    || ! get libgl-dev 'echo "#include <GL/gl.h>" | "${CC:-cc}" -E -'; then
    warn "libgstcuda is not complete: building without CUDA memory on the pads"
  fi
}

# Sets nvcc to a compiler that meson would not find by itself, or leaves it empty.
choose_compiler()
{
  local toolkit='' major='' wanted=''
  nvcc=
  if cuda_disabled; then return; fi

  if toolkit=$(find_nvcc); then major=$(nvcc_major "$toolkit"); fi
  case ${CSF_SETUP_CUDA_MAJOR:-} in
    none) if [ -n "$toolkit" ]; then nvcc=$toolkit; fi; return ;;
    12 | 13 | 12.[0-9] | 13.[0-9]) wanted=$CSF_SETUP_CUDA_MAJOR ;;
    '') if driver_present; then wanted=$(driver_cuda_version) || true; fi ;;
    *) die "CSF_SETUP_CUDA_MAJOR is '$CSF_SETUP_CUDA_MAJOR'; expected 12, 13, 12.x, 13.x or none" ;;
  esac

  if [ -n "$major" ] && [ "$major" -ge 12 ] && { [ -z "$wanted" ] || [ "${wanted%%.*}" -ge "$major" ]; }; then
    say "CUDA compiler: $toolkit (CUDA $major)"
    if in_conda || get g++ 'can_compile g++ c++'; then
      nvcc=$toolkit
    else
      warn "the CUDA compiler needs g++: building the CPU path only"
    fi
    return
  fi
  if [ -n "$major" ] && [ "$major" -lt 12 ]; then
    say "$toolkit is of CUDA $major (0: it does not run); 12 or 13 is needed, so it is not used"
  elif [ -n "$major" ]; then
    say "$toolkit is of CUDA $major; the driver, or CSF_SETUP_CUDA_MAJOR, wants CUDA $wanted: it is not used"
  fi
  if [ -z "$wanted" ]; then
    if driver_present; then
      warn "an NVIDIA driver is here but does not tell its version: building the CPU path only.
       Name it to get GPU kernels, for example CSF_SETUP_CUDA_MAJOR=12 tools/setup.sh"
    else
      say "no NVIDIA driver and no CUDA compiler: building the CPU path"
    fi
    return
  fi
  if [ "${wanted%%.*}" -lt 12 ]; then
    warn "the NVIDIA driver runs CUDA $wanted; 12 is needed (driver 525 or newer): building the CPU path only"
    return
  fi
  if in_conda; then
    warn "no compiler for CUDA ${wanted%%.*} in this environment: building the CPU path only.  For GPU kernels:
       conda install -c conda-forge cuda-nvcc cuda-cudart-dev cuda-nvrtc-dev cuda-version=${wanted%%.*}"
    return
  fi
  case $(uname -m) in
    x86_64 | aarch64) ;;
    *) warn "NVIDIA has no compiler wheels for $(uname -m): building the CPU path only"; return ;;
  esac
  if [ "${wanted%%.*}" -gt 13 ]; then wanted=13; fi
  use_wheels "$wanted"
}

# ---------------------------------------------------------------------------------------------------
# The build
# ---------------------------------------------------------------------------------------------------

# Empties the build folder but for the fetched compiler; touches nothing that meson did not make.
clear_build()
{
  if [ -d "$build_dir/meson-private" ]; then
    find "$build_dir" -mindepth 1 -maxdepth 1 ! -name cuda-wheels -exec rm -rf {} +
  elif [ -d "$build_dir" ] && [ -n "$(find "$build_dir" -mindepth 1 -maxdepth 1 ! -name cuda-wheels)" ]; then
    die "$build_dir is not empty and not a build folder of meson; name another with --build-dir"
  fi
}

configure()
{
  local args=() signature native=$build_dir/csf-native.ini stamp=$build_dir/csf-setup.args
  if ! has_option buildtype; then
    if [ $with_tests = yes ]; then args+=(-Dbuildtype=debugoptimized); else args+=(-Dbuildtype=release); fi
  fi
  has_option tests || { if [ $with_tests = yes ]; then args+=(-Dtests=enabled); else args+=(-Dtests=disabled); fi; }
  has_option benchmarks || { if [ $with_tests = no ]; then args+=(-Dbenchmarks=disabled); fi; }
  # Said outright, so that meson does not pick up a compiler that was found unfit here.
  has_option cuda || { if [ -z "$nvcc" ]; then args+=(-Dcuda=disabled); fi; }
  args+=("${meson_args[@]}")

  signature=$(printf '%s\n' "$root" "${CC:-}" "${CFLAGS:-}" "${CONDA_PREFIX:-}" "$nvcc" "${args[@]}")
  if [ -e "$build_dir/build.ninja" ] && [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$signature" ]; then
    return
  fi
  say "will configure $build_dir (${args[*]})"
  clear_build
  mkdir -p "$build_dir"
  # A native file, not PATH, so that the compiler is found again when meson reconfigures by itself.
  if [ -n "$nvcc" ]; then
    printf "[binaries]\nnvcc = '%s'\n" "$nvcc" > "$native"
    args+=(--native-file "$native")
  fi
  (cd "$root" && meson setup "${args[@]}" "$build_dir") \
    || die "meson could not configure; its full log: $build_dir/meson-logs/meson-log.txt"
  printf '%s\n' "$signature" > "$stamp"
}

find_missing
if in_conda; then
  say "using the conda environment at $CONDA_PREFIX"
elif [ -n "${CONDA_PREFIX:-}" ]; then
  say "the active conda environment has no GStreamer; using the system's"
fi
if [ ${#missing_deb[@]} -gt 0 ]; then
  install_missing
else
  say "everything needed is installed"
fi
if [ $packages_only = yes ]; then exit 0; fi
choose_compiler
if [ -n "$nvcc" ]; then get_cuda_memory; fi
configure
if [ $configure_only = yes ]; then exit 0; fi

say "will build in $build_dir"
if has_command ninja; then ninja=(ninja); else ninja=(ninja-build); fi
if ! "${ninja[@]}" -C "$build_dir"; then
  # What was fetched on the user's behalf must not keep the user from a build.
  case $nvcc in
    "$wheels"/*) ;;
    *) die "the build failed; the first error is above" ;;
  esac
  warn "the build failed; trying once more without the compiler that was fetched: the CPU path only"
  nvcc=
  configure
  "${ninja[@]}" -C "$build_dir" || die "the build failed; the first error is above"
fi

say "done.  To use the plugin in this shell:"
printf '  export GST_PLUGIN_PATH=%q\n' "$build_dir/gst"
