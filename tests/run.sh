#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sets the project up with what its tests need and runs the whole suite: the plain build, the address and
# undefined-behaviour sanitizers, the thread sanitizer on the parts without GLib, and a clang build.  The
# last line printed is "N passed, N failed, N skipped"; the exit status is 0 when none failed and some ran.
set -euo pipefail

usage()
{
  cat <<'USAGE'
usage: tests/run.sh [--quick] [-h|--help]

  --quick   the plain build and its tests only

The builds are made in build-tests/ in the project.  Media for the pipeline tests are read from the folder
that CSF_TEST_MEDIA names, otherwise from ../shared/media beside the project; those tests skip without.
USAGE
}

quick=no
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=yes; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; printf "tests: error: unknown argument '%s'\n" "$1" >&2; exit 2 ;;
  esac
done

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
builds=$root/build-tests
broken=()       # builds that failed: each counts as one failed test
tested=()       # build folders whose tests ran
export LC_ALL=C.UTF-8
cd "$root"

headline() { printf '\n== %s\n' "$*"; }

# Configures and compiles one build.
build() # NAME [SETUP ARGUMENT ...]
{
  local name=$1
  shift
  headline "build '$name'"
  if ! "$root/tools/setup.sh" --with-tests --build-dir "$builds/$name" -Dwerror=true "$@" < /dev/null; then
    printf "tests: error: the build '%s' failed, see above\n" "$name" >&2
    broken+=("$name")
    return 1
  fi
}

# Runs the tests of one build.  Meson's own status is not looked at: the counts come from its log.
run_tests() # NAME [COMMAND PREFIX ... --] [MESON TEST ARGUMENT ...]
{
  local name=$1 prefix=()
  shift
  if [[ " $* " == *' -- '* ]]; then
    while [ "$1" != -- ]; do prefix+=("$1"); shift; done
    shift
  fi
  headline "tests of '$name'"
  rm -f "$builds/$name/meson-logs/testlog.json"
  "${prefix[@]}" meson test -C "$builds/$name" --print-errorlogs "$@" < /dev/null || true
  tested+=("$name")
}

# Prints "N passed, N failed, N skipped" over all test logs; its status says whether all is well.
count()
{
  python3 - "$builds" "${#broken[@]}" "${tested[@]}" <<'PYTHON'
import json, os, sys

builds, broken, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
passed = failed = skipped = 0
failed += broken
for name in names:
    ran = 0
    try:
        with open(os.path.join(builds, name, "meson-logs", "testlog.json"), encoding="utf-8") as log:
            for line in log:
                test = json.loads(line)
                ran += 1
                if test["result"] in ("OK", "EXPECTEDFAIL"):
                    passed += 1
                elif test["result"] == "SKIP":
                    skipped += 1
                    print("skipped in '%s': %s" % (name, test["name"]))
                else:
                    failed += 1
                    print("failed in '%s': %s (%s)" % (name, test["name"], test["result"]))
    except OSError:
        pass
    if ran == 0:
        failed += 1
        print("failed in '%s': no test ran" % name)
print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
sys.exit(failed > 0 or passed == 0)
PYTHON
}

finish()
{
  headline "all together"
  if [ ${#broken[@]} -gt 0 ]; then printf "failed to build: %s\n" "${broken[*]}"; fi
  if ! command -v python3 > /dev/null; then
    printf '0 passed, %d failed, 0 skipped\n' "${#broken[@]}"
    exit 1
  fi
  if count; then exit 0; fi
  exit 1
}

if build plain; then
  run_tests plain
else
  finish
fi
if [ $quick = yes ]; then finish; fi

# The sanitizers' builds are without device code: it runs on no CPU.
if build asan -Dcuda=disabled -Dbenchmarks=disabled -Db_sanitize=address,undefined; then
  export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
  run_tests asan --timeout-multiplier 3
fi

# GLib's locks look like races to the thread sanitizer, so only what is free of GLib runs under it.  Its
# memory layout needs addresses that are not randomised, where the system allows switching that off.
if build tsan -Dcuda=disabled -Dbenchmarks=disabled -Db_sanitize=thread -Db_lundef=false; then
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
  fixed_addresses=()
  if setarch "$(uname -m)" -R true 2> /dev/null; then fixed_addresses=(setarch "$(uname -m)" -R); fi
  run_tests tsan "${fixed_addresses[@]}" -- --timeout-multiplier 5 --suite engine --suite fault
fi

# A second compiler, and a release build: what only they warn about.
if command -v clang > /dev/null; then
  export CC=clang
  build clang -Dcuda=disabled -Dbuildtype=release || true
else
  headline "no clang in this environment: its build is left out"
fi

finish
