#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds and tests the project against the GStreamer of another Debian release, in a root folder made by
# debootstrap: trixie has 1.26, whose CUDA library has another interface than 1.22.  What happens in there is
# "tests/run.sh --quick", as a user runs it.  The last line printed is its "N passed, N failed, N skipped".
set -euo pipefail

usage()
{
  cat <<'USAGE'
usage: tests/matrix.sh [--suite SUITE] [--root DIR] [--cuda]

  --suite SUITE   the release of Debian, by its code name (default: trixie)
  --root DIR      the root folder: made when it is not there, kept, and used again
                  (default: /var/tmp/csf-matrix/SUITE)
  --cuda          with this machine's CUDA toolkit, so that the GPU kernels are compiled too
  -h, --help      this text

Needs root, debootstrap, and a network to make the folder (about 2 GB) and to install what is missing in it.
The mirror, the proxy and the certificates are those of this machine's apt, where it is a Debian.  All mounts
are made in a namespace of this script's own, which ends with it.  Media for the pipeline tests are read from
the folder that CSF_TEST_MEDIA names, otherwise from ../shared/media beside the project.

Exit status: 0 all is well; 1 a test or the build failed; 2 wrong use; 77 it cannot be done on this machine.
USAGE
}

say() { printf 'matrix: %s\n' "$*"; }
die() { printf 'matrix: error: %s\n' "$*" >&2; exit 1; }
skip() { printf 'matrix: skipped: %s\n' "$*" >&2; exit 77; }
misused() { usage >&2; printf 'matrix: error: %s\n' "$*" >&2; exit 2; }

arguments=("$@")
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=trixie
root=
with_cuda=no
while [ $# -gt 0 ]; do
  case $1 in
    --suite) [ $# -gt 1 ] || misused "--suite needs a code name"; suite=$2; shift 2 ;;
    --suite=*) suite=${1#*=}; shift ;;
    --root) [ $# -gt 1 ] || misused "--root needs a folder"; root=$2; shift 2 ;;
    --root=*) root=${1#*=}; shift ;;
    --cuda) with_cuda=yes; shift ;;
    -h | --help) usage; exit 0 ;;
    *) misused "unknown argument '$1'" ;;
  esac
done
[[ $suite =~ ^[a-z]+$ ]] || misused "--suite takes a code name, such as trixie, not '$suite'"
root=$(realpath -m "${root:-/var/tmp/csf-matrix/$suite}")
[ "$root" != / ] || misused "--root must not be the system itself"

if [ "$(id -u)" -ne 0 ]; then skip "this needs root: it makes a root folder and mounts into it"; fi

# From here on in a mount namespace: however this script ends, the kernel takes the mounts away.  The process
# stays the same one, so its number tells that it has been done.
if [ "${CSF_MATRIX_NAMESPACE:-}" != $$ ]; then
  unshare --mount --propagation private true || skip "no mount namespace can be made here (a container?)"
  CSF_MATRIX_NAMESPACE=$$ exec unshare --mount --propagation private \
    "$BASH" "${BASH_SOURCE[0]}" "${arguments[@]}"
fi

inside() # COMMAND ...: runs it in the root folder, with no more of the environment than it needs
{
  local name passed=()
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    if [ -n "${!name:-}" ]; then passed+=("$name=${!name}"); fi
  done
  chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LC_ALL=C.UTF-8 CSF_TEST_MEDIA=/src/media CSF_SETUP_CUDA_MAJOR=none "${passed[@]}" "$@"
}

# ---- the root folder --------------------------------------------------------------------------------

os_release() # ROOT FIELD
{
  sed -n "s/^$2=//p" "$1/etc/os-release" 2> /dev/null | tr -d \" || true
}

# Prints the mirror that this machine's apt uses; nothing when it has none, and debootstrap takes its own.
apt_mirror()
{
  [ "$(os_release / ID)" = debian ] || return 0
  apt-get indextargets --format "\$(RELEASE) \$(COMPONENT) \$(REPO_URI)" 'Created-By: Packages' 2> /dev/null \
    | awk -v "release=$(os_release / VERSION_CODENAME)" \
      '$1 == release && $2 == "main" && !found { print $3; found = 1 }'
}

# What fetches with wget, as debootstrap does, looks for apt's proxy in the environment.
export_proxy()
{
  local scheme proxy
  for scheme in http_proxy https_proxy; do
    proxy=$(apt-config dump --format '%v%n' "Acquire::${scheme%_proxy}::Proxy" 2> /dev/null || true)
    if [ -z "${!scheme:-}" ] && [ -n "$proxy" ] && [ "$proxy" != DIRECT ]; then export "$scheme=$proxy"; fi
  done
}

# Lets apt in the root folder reach what it reaches here: names, proxy, certificates.
share_network()
{
  local settings file
  if [ -e /etc/resolv.conf ]; then cp -L --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"; fi
  mkdir -p "$root/etc/apt/apt.conf.d" "$root/usr/local/share/ca-certificates"
  # Certificates that this machine's administrator has added.
  for file in /usr/local/share/ca-certificates/*.crt; do
    if [ -e "$file" ]; then cp -L "$file" "$root/usr/local/share/ca-certificates/"; fi
  done
  if [ -x "$root/usr/sbin/update-ca-certificates" ]; then inside update-ca-certificates > /dev/null 2>&1; fi
  settings=$(apt-config dump Acquire 2> /dev/null | grep -E '^Acquire::(https?::|Check-)' || true)
  # A proxy's address may hold a password.
  (umask 077 && printf '%s\n' "$settings" > "$root/etc/apt/apt.conf.d/90host")
  # The files that these settings name, at the same place.
  sed -nE 's/^Acquire::https?::.*(CaInfo|CaPath|SslCert|SslKey) "(\/.*)";$/\2/pI' <<< "$settings" \
    | while IFS= read -r file; do
      if [ -e "$file" ]; then
        mkdir -p "$root$(dirname "$file")"
        cp -RL --preserve=mode "$file" "$root$(dirname "$file")/"
      fi
    done
}

make_root()
{
  local mirror part=$root.part
  command -v debootstrap > /dev/null || skip "there is no debootstrap; it is the package debootstrap"
  mirror=$(apt_mirror)
  mkdir -p "$(dirname "$root")"
  # Nobody else may have prepared what root will run.
  [ -O "$(dirname "$root")" ] || die "$(dirname "$root") does not belong to root"
  rm -rf --one-file-system "$part"
  mkdir "$part"
  say "making a root folder of $suite in $root${mirror:+ from $mirror}"
  if ! debootstrap --variant=minbase --include=ca-certificates "$suite" "$part" ${mirror:+"$mirror"} \
      < /dev/null 2>&1 | tee "$part/output.log"; then
    if grep -qE "^E: (Failed getting release|Couldn't download)" "$part/output.log"; then
      skip "debootstrap could not fetch $suite, see above: is there a network?"
    fi
    die "debootstrap failed, see above; more may be in $part/debootstrap/debootstrap.log"
  fi
  # The name says that it is complete.
  rm "$part/output.log"
  mv -T "$part" "$root"
}

export_proxy
if [ -x "$root/usr/bin/apt-get" ]; then
  [ -O "$root" ] || die "$root does not belong to root"
  holds=$(os_release "$root" VERSION_CODENAME)
  [ "$holds" = "$suite" ] || die "$root holds '$holds', not $suite"
  say "using the root folder of $suite in $root"
elif [ -e "$root" ] && [ -n "$(ls -A "$root" 2> /dev/null || echo no folder)" ]; then
  die "$root is there and is no system; name another folder with --root, or remove it"
else
  make_root
fi

exec {lock}< "$root"
flock --nonblock "$lock" || die "another run is using $root"

# ---- the project in it ------------------------------------------------------------------------------

mount_read_only() # FOLDER WHERE
{
  mkdir -p "$2"
  mount --bind "$1" "$2"
  mount -o remount,bind,ro "$2"
}

# Prints the folder of this machine's CUDA toolkit.
cuda_toolkit()
{
  local folder nvcc
  nvcc=$(command -v nvcc || true)
  if [ -n "$nvcc" ]; then nvcc=$(dirname "$(dirname "$(realpath "$nvcc")")"); fi
  for folder in "${CUDA_HOME:-}" "$nvcc" /usr/local/cuda; do
    # A toolkit that is spread over /usr belongs to this system.
    if [ -n "$folder" ] && [ "$folder" != /usr ] && [ -x "$folder/bin/nvcc" ]; then
      realpath "$folder"
      return
    fi
  done
  die "--cuda needs a CUDA toolkit in a folder of its own: none in CUDA_HOME, on PATH or in /usr/local/cuda"
}

# Copies the work tree without what is built in it: what git knows or would add, or else everything.
copy_project() # FOLDER
{
  local builds=(--exclude='./build*' --exclude='./.*')
  rm -rf --one-file-system "$1"
  mkdir -p "$1"
  if git -C "$project" rev-parse --is-inside-work-tree > /dev/null 2>&1; then
    # A file that is deleted and not yet committed is still on git's list.
    (cd "$project" && git ls-files -z --cached --others --exclude-standard \
      | while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done \
      | tar --create --null --no-recursion --files-from=-) | tar -x -C "$1" --no-same-owner
  else
    tar --create -C "$project" "${builds[@]}" . | tar -x -C "$1" --no-same-owner
  fi
}

if [ $with_cuda = yes ]; then toolkit=$(cuda_toolkit); fi
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/src"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
if [ $with_cuda = yes ]; then mount_read_only "$toolkit" "$root/usr/local/cuda"; fi
media=${CSF_TEST_MEDIA:-$project/../shared/media}
if [ -d "$media" ]; then mount_read_only "$media" "$root/src/media"; fi
share_network
copy_project "$root/src/cudastreamfilter"

if ! inside /src/cudastreamfilter/tools/setup.sh --packages-only --with-tests < /dev/null; then
  inside apt-get -q update --error-on=any < /dev/null \
    || skip "packages are missing in $root and apt-get cannot fetch them: is there a network?"
  say "the packages could not be installed, see above"
  printf '0 passed, 1 failed, 0 skipped\n'
  exit 1
fi
say "GStreamer $(inside pkg-config --modversion gstreamer-1.0), $(inside cc --version | head -n 1)"
inside /src/cudastreamfilter/tests/run.sh --quick < /dev/null
