#!/usr/bin/env bash
# as-user.sh PREFIX BUILD TEST...: runs end-to-end tests of installed programs as an ordinary user without a range of ids, from a
# copy that such a user can read wherever the tree is. Must be run as root.
set -eu
prefix=$1
build=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d /var/tmp/rsb-user.XXXXXX)
trap 'rm -rf --one-file-system "$dir"' EXIT
cp -r "$prefix" "$dir/prefix"
cp "$here"/*.py "$dir/"
mkdir -p "$dir/home" "$dir/build/tests/tools"
cp "$build/tests/tools/delay-proxy" "$dir/build/tests/tools/"
chmod -R a+rX "$dir"
chown nobody "$dir/home"
python=$(readlink -f /usr/bin/python3)
for test in "$@"; do
	(cd "$dir" && exec setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps=-all \
		env HOME="$dir/home" RSB_TEST_BIN="$dir/prefix/bin" RSB_TEST_BUILD="$dir/build" RSB_TEST_QUICK=1 \
		PYTHONDONTWRITEBYTECODE=1 "$python" "$test")
done
