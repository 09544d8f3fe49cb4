# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the scripts for a host with a GPU share, to be sourced: the driver's libraries, a GStreamer that was
# brought along, a build made elsewhere, and the names of GPU and driver.  Expects $root and $name.

: "${root:?}" "${name:?}"

say() { printf '%s: %s\n' "$name" "$*"; }
die() { printf '%s: error: %s\n' "$name" "$*" >&2; exit 1; }

absolute() { (cd "$1" 2> /dev/null && pwd) || die "there is no folder '$1'"; }

# Makes libcuda.so.1 loadable where the system's linker does not know its folder.
find_driver()
{
  local folder folders
  IFS=: read -r -a folders <<< "${LD_LIBRARY_PATH:-}"
  for folder in "${folders[@]}"; do
    if [ -e "$folder/libcuda.so.1" ]; then return 0; fi
  done
  if { ldconfig -p || /sbin/ldconfig -p; } 2> /dev/null | grep -q 'libcuda\.so\.1'; then return 0; fi
  for folder in /usr/local/nvidia/lib64 /usr/lib/wsl/lib /usr/lib64-nvidia /usr/lib/*/nvidia/current; do
    if [ -e "$folder/libcuda.so.1" ]; then
      export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
      return 0
    fi
  done
  say "no libcuda.so.1 in the usual folders; LD_LIBRARY_PATH must name the driver's"
}

# BUNDLE: a folder with a GStreamer and an env.sh, or nothing for the system's.  WORK: for caches.
use_gstreamer() # BUNDLE WORK
{
  if [ -n "$1" ]; then
    [ -r "$1/env.sh" ] || die "there is no env.sh in '$1'"
    # shellcheck disable=SC1091
    . "$1/env.sh"
  fi
  if [ -z "${XDG_RUNTIME_DIR:-}" ]; then export XDG_RUNTIME_DIR=$2; fi
  export GST_REGISTRY_1_0=$2/registry.bin
  if ! command -v gst-inspect-1.0 > /dev/null; then
    die "there is no GStreamer here; --bundle names a folder that has one"
  fi
}

# BUILD: a build folder, or nothing to make one with tools/setup.sh.  Sets $build.
use_build() # BUILD
{
  if [ -z "$1" ]; then
    build=$root/build
    "$root/tools/setup.sh" --with-tests --build-dir "$build" || die "the build failed, see above"
  else
    build=$(absolute "$1")
  fi
  [ -e "$build/gst/libgstcudastream.so" ] || die "there is no plugin in $build/gst"
  export GST_PLUGIN_PATH=$build/gst
  unset GST_PLUGIN_PATH_1_0
}

# Looks at all plugins once, so that no later program has to.
scan_plugins()
{
  gst-inspect-1.0 cudastreamfilter > /dev/null 2>&1 \
    || die "GStreamer does not load the plugin in $GST_PLUGIN_PATH; gst-inspect-1.0 tells why"
}

find_nvidia_smi()
{
  local candidate
  for candidate in "$(command -v nvidia-smi || true)" /usr/local/nvidia/bin/nvidia-smi; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then printf '%s\n' "$candidate"; return 0; fi
  done
  return 1
}

# Prints a property of the first GPU: name, driver_version, pcie.link.gen.current.
gpu_property() # PROPERTY
{
  local smi text
  if smi=$(find_nvidia_smi) && text=$("$smi" -i 0 "--query-gpu=$1" --format=csv,noheader 2> /dev/null); then
    printf '%s\n' "$text"
  else
    printf 'unknown\n'
  fi
}

current_commit() { git -C "$root" rev-parse --short HEAD 2> /dev/null || printf 'unknown\n'; }
