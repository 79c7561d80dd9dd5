#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Branches of common/proto that unit tests, properties and the fuzz corpora reach together; fails below
# 95 %. Branches of assert(3) are left out: they say that we are wrong, and no input may reach them.
#
#	tests/coverage.sh [BUILD-DIRECTORY]	gcovr and a gcc build of its own, build-coverage by default
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build-coverage}
least=95

if ! command -v gcovr >/dev/null; then
	echo "gcovr is not installed: apt-get install gcovr" >&2
	exit 77
fi
if [ ! -e "$build/build.ninja" ]; then
	CC=gcc meson setup "$build" "$root" -Db_coverage=true -Doptimization=0 -Dstrip=false
fi
find "$build" -name '*.gcda' -delete
# Tests of this floor alone: those of the floors above would reach it by the way.
units=$(sed -n "s/^  '\([a-z-]*\)': \[proto_dep.*/\1/p" "$root/tests/unit/meson.build")
# shellcheck disable=SC2086 # one word for each test
meson test -C "$build" --suite unit $units
meson test -C "$build" --suite prop --suite fuzz
gcovr --root "$root" --object-directory "$build" --filter "$root/common/proto/" \
	--exclude-branches-by-pattern '^\s*assert\(.*' --exclude-unreachable-branches \
	--branches --print-summary --fail-under-branch "$least" "$build"
