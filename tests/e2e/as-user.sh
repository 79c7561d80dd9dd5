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
# Where udev does not, users may open the device in a mount namespace of the tests.
# shellcheck disable=SC2016
opened='mount -t tmpfs dev "$1" && mknod -m 666 "$1/fuse" c 10 229 && mount --bind "$1/fuse" /dev/fuse && shift && exec "$@"'
mkdir "$dir/dev"
for test in "$@"; do
	(cd "$dir" && exec unshare --mount sh -c "$opened" sh "$dir/dev" setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps=-all \
		env HOME="$dir/home" RSB_TEST_BIN="$dir/prefix/bin" RSB_TEST_BUILD="$dir/build" RSB_TEST_QUICK=1 \
		PYTHONDONTWRITEBYTECODE=1 "$python" "$test")
done
