#!/bin/sh
# Installs the Debian packages that the tests need and this machine lacks.
#
#	install-packages.sh NEED:PACKAGE...
#
# NEED is a command, or the absolute path of a file, that PACKAGE brings. Where
# all are there it does nothing, so it can run before every test. It says what to
# do where it can't install.
set -eu

# Servers stand in sbin, which is not on everybody's path.
PATH=$PATH:/usr/sbin:/sbin
missing=
for pair in "$@"; do
	need=${pair%%:*}
	package=${pair#*:}
	case $need in
	/*) [ -e "$need" ] && continue ;;
	*) command -v "$need" >/dev/null && continue ;;
	esac
	echo "missing: $need (package $package)" >&2
	missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "there is no apt-get here; install what your system calls:$missing" >&2
	exit 1
fi
if [ "$(id -u)" = 0 ]; then
	as_root=
elif command -v sudo >/dev/null; then
	as_root=sudo
else
	echo "only root can install packages, and there is no sudo; run as root: apt-get install$missing" >&2
	exit 1
fi

# Name servers come with services that would start at once. Nobody asked for them:
# the tests start what they need, on ports of their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
	$as_root chmod 755 "$policy"
	trap '$as_root rm -f "$policy"' EXIT
fi

# $as_root and $missing are lists of words.
# shellcheck disable=SC2086
{
	$as_root apt-get -q update
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing
} >&2
