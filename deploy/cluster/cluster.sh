#!/bin/bash
# Starts what docs/cluster.md describes on this one machine, from Debian's packages: three
# machines with etcd, PostgreSQL under Patroni and Stele each, and two secondaries, Knot and
# NSD. The files beside this script are used as they are but for addresses, folders and
# passwords. Everything listens on 127.0.0.1, on ports that are free.
#
#	cluster.sh start FOLDER           starts all of it; the folder is new, or was stopped
#	cluster.sh run FOLDER             the same, and kills all of it when its input ends
#	cluster.sh status FOLDER          what runs, and where
#	cluster.sh kill FOLDER NODE...    kills with -9, as a power cut would
#	cluster.sh revive FOLDER NODE...  starts again what was killed
#	cluster.sh stop FOLDER            stops all of it; data and logs stay in the folder
#
# A NODE is etcd1, patroni1, postgres1, db1 (both of these), stele1, or m1 (all of these); the
# same with 2 and 3; knot; nsd. STELE names the program, bin/stele of this clone if it is not
# set; "none" leaves out Stele, Knot and NSD.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
stele=${STELE:-$here/../../bin/stele}

fail() { echo "cluster.sh: $*" >&2; exit 1; }

# PostgreSQL refuses to be root's. So does what belongs to it.
unprivileged=()
if [ "$(id -u)" = 0 ]; then
	id postgres >/dev/null 2>&1 || fail "there is no user postgres; install the package postgresql"
	unprivileged=(setpriv --reuid postgres --regid postgres --init-groups)
fi

# --- Ports, passwords and configuration ------------------------------------------------

# free_ports prints so many ports that nobody listens on. They are none of those that the
# system gives to clients.
free_ports() {
	local taken count=$1 port
	taken=" $(ss -Htuln | awk '{ sub(/.*:/, "", $5); printf "%s ", $5 }')"
	while [ "$count" -gt 0 ]; do
		port=$((12000 + (RANDOM * 32768 + RANDOM) % 20000))
		case $taken in *" $port "*) continue ;; esac
		taken+="$port "
		count=$((count - 1))
		echo "$port"
	done
}

secret() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

# choose settles ports and passwords, once for a folder.
choose() {
	local ports i
	mapfile -t ports < <(free_ports 25)
	{
		for i in 1 2 3; do
			echo "peer$i=${ports[i]} client$i=${ports[i + 3]} rest$i=${ports[i + 6]} pg$i=${ports[i + 9]}"
			echo "http$i=${ports[i + 12]} dns$i=${ports[i + 15]} metrics$i=${ports[i + 18]}"
		done
		echo "knot=${ports[22]} nsd=${ports[23]}"
		echo "restpass=$(secret) superpass=$(secret) replpass=$(secret) stelepass=$(secret)"
	} >"$folder/settings.new"
	mv "$folder/settings.new" "$folder/settings"
}

# local_file makes this machine's version of a file: that of machine NUMBER, on 127.0.0.1.
local_file() { # NAME NUMBER TARGET [SED-EXPRESSION...]
	local name=$1 number=$2 target=$3 edits=() i
	shift 3
	edits+=(-e "/LISTEN_\|ADVERTISE_\|listen:\|connect_address:\|^http = \|^dns = /s/192\.0\.2\.11/192.0.2.1$number/"
		-e "s/^ETCD_NAME=m1/ETCD_NAME=m$number/" -e "s/^name: db1/name: db$number/")
	for i in 1 2 3; do
		local peer=peer$i client=client$i rest=rest$i pg=pg$i http=http$i dns=dns$i
		edits+=(-e "s/192\.0\.2\.1$i:2380/127.0.0.1:${!peer}/g" -e "s/192\.0\.2\.1$i:2379/127.0.0.1:${!client}/g"
			-e "s/192\.0\.2\.1$i:8008/127.0.0.1:${!rest}/g" -e "s/192\.0\.2\.1$i:5432/127.0.0.1:${!pg}/g"
			-e "s/192\.0\.2\.1$i:80\b/127.0.0.1:${!http}/g" -e "s/192\.0\.2\.1$i\([:@]\)53\b/127.0.0.1\1${!dns}/g")
	done
	edits+=(-e "s/192\.0\.2\.21@53/127.0.0.1@$knot/" -e "s/192\.0\.2\.22@53/127.0.0.1@$nsd/"
		-e "s/\[192\.0\.2\.11, .*\]/127.0.0.1/" -e "s/192\.0\.2\.1[123]/127.0.0.1/g" -e "s/192\.0\.2\.0\/24/127.0.0.0\/8/"
		-e "s/change-this-1/$restpass/" -e "s/change-this-2/$superpass/" -e "s/change-this-3/$replpass/")
	(umask 077 && sed "${edits[@]}" "$@" "$here/$name" >"$target")
	# Nothing of this machine is touched but the folder.
	if grep -v '^ *#' "$target" | grep '192\.0\.2\.\|change-this\|/var/\|/run/\|/etc/' | grep -v "$folder/"; then
		fail "$name has addresses, passwords or folders that this script does not know"
	fi
}

configure() {
	local i
	for i in 1 2 3; do
		local_file etcd.default $i "$folder/conf/etcd$i" -e "s|^ETCD_DATA_DIR=.*|ETCD_DATA_DIR=$folder/data/etcd$i|"
		# Small machines run this: little memory, and no device that restarts them.
		local_file patroni.yml $i "$folder/conf/db$i.yml" -e "s|data_dir: .*|data_dir: $folder/data/db$i|" \
			-e "s|bin_dir: .*|bin_dir: $bin|" -e "s|pgpass: .*|pgpass: $folder/data/db$i.pgpass|" \
			-e 's|unix_socket_directories: .*|unix_socket_directories: ""|' -e 's|shared_buffers: .*|shared_buffers: 32MB|' \
			-e 's|mode: automatic|mode: "off"|'
		local_file stele.toml $i "$folder/conf/stele$i.toml" -e "/^base = /d"
	done
	(umask 077 && for i in "$pg1" "$pg2" "$pg3"; do echo "127.0.0.1:$i:stele:stele:$stelepass"; done >"$folder/conf/pgpass")
	store=$(sed -n 's/^store = "\(.*\)"/\1/p' "$folder/conf/stele1.toml")
	if [ ${#unprivileged[@]} -gt 0 ]; then
		chown postgres "$folder"/conf/etcd? "$folder"/conf/db?.yml
	fi
}

# --- Processes ---------------------------------------------------------------------------

# spawn runs a command as a node, in a session of its own so that Ctrl-C is not for it.
spawn() { # NODE COMMAND...
	local node=$1
	shift
	setsid "$@" </dev/null >>"$folder/log/$node" 2>&1 &
	echo $! >"$folder/pid/$node"
}

start_etcd() {
	# The file has nothing but assignments.
	# shellcheck disable=SC2046
	spawn "etcd$1" "${unprivileged[@]}" env $(grep '^ETCD_' "$folder/conf/etcd$1") etcd --logger zap
}

start_patroni() { spawn "patroni$1" "${unprivileged[@]}" env -u PYTHONPATH LC_ALL=C.UTF-8 patroni "$folder/conf/db$1.yml"; }

start_stele() {
	local metrics=metrics$1
	spawn "stele$1" env PGPASSFILE="$folder/conf/pgpass" "$stele" serve --json --config "$folder/conf/stele$1.toml" \
		--secret-key-file "$folder/conf/secret.key" --metrics "127.0.0.1:${!metrics}" --api-rate 0 --dns-rate 0 --notify-allow 127.0.0.0/8 --transfer-allow 127.0.0.0/8
}

# Copies of the programs: some systems let those that are installed read their own folders
# only.
start_knot() {
	cp "$(command -v knotd)" "$folder/data/knot/"
	spawn knot "$folder/data/knot/knotd" -c "$folder/conf/knot"
}

start_nsd() {
	cp "$(command -v nsd)" "$folder/data/nsd/"
	spawn nsd "$folder/data/nsd/nsd" -d -c "$folder/conf/nsd"
}

# descendants prints the numbers of a process's children, and of theirs.
descendants() {
	local child
	for child in $(pgrep -P "$1"); do
		echo "$child"
		descendants "$child"
	done
}

# processes prints the numbers of a node's processes. What a file says is believed only if
# such a process is one of this folder's.
processes() {
	local node=$1 pid
	case $node in
	postgres?) # the server and each of its sessions stay in the folder of their data
		find /proc -maxdepth 2 -path '/proc/[0-9]*/cwd' -lname "$folder/data/db${node#postgres}" 2>/dev/null | cut -d / -f 3 || true
		return
		;;
	db?) # Patroni, and whoever it has sent to start PostgreSQL, also if that is on its way only
		pid=$(processes "patroni${node#db}")
		[ -z "$pid" ] || { echo "$pid"; descendants "$pid"; }
		processes "postgres${node#db}"
		grep -lsF -f <(printf '%s\n' "$folder/conf/$node.yml" "$folder/data/$node") /proc/[0-9]*/cmdline 2>/dev/null | cut -d / -f 3 || true
		return
		;;
	m?)
		processes "etcd${node#m}"
		processes "db${node#m}"
		processes "stele${node#m}"
		return
		;;
	esac
	pid=$(cat "$folder/pid/$node" 2>/dev/null) || return 0
	if grep -qsF "$folder/" "/proc/$pid/cmdline" "/proc/$pid/environ"; then
		echo "$pid"
		[ "$node" != nsd ] || pgrep -P "$pid" || true
	fi
}

signal() { # SIGNAL NODE...
	local signal=$1 list
	shift
	# All at once: Patroni must not see what happened to PostgreSQL.
	list=$(for node in "$@"; do processes "$node"; done)
	# shellcheck disable=SC2086
	[ -z "$list" ] || kill "-$signal" $list 2>/dev/null || true
}

alive() { [ "$(for node in "$@"; do processes "$node"; done)" ]; }

# end kills nodes, and returns when they are dead and have let go of their ports.
end() {
	local list pid
	signal STOP "$@" # nobody starts another process from here on
	list=$(for node in "$@"; do processes "$node"; done)
	signal KILL "$@"
	while alive "$@"; do
		sleep 0.05
		# What was just being started. (PostgreSQL alone comes back, if its Patroni lives.)
		[[ "$*" == *postgres* ]] || signal KILL "$@"
	done
	for pid in $list; do
		while [ -e "/proc/$pid" ] && ! grep -qs '^State:.Z' "/proc/$pid/status"; do sleep 0.05; done
	done
}

await() { # SECONDS WHAT COMMAND...
	local seconds=$1 what=$2 end
	shift 2
	end=$((SECONDS + seconds))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || fail "$what: not within $seconds seconds; look into $folder/log"
		sleep 0.2
	done
}

# --- The registry --------------------------------------------------------------------------

# leader prints the number of the machine whose PostgreSQL is the primary.
leader() {
	local i rest
	for i in 1 2 3; do
		rest=rest$i
		if curl -fs -m 2 -o /dev/null "http://127.0.0.1:${!rest}/primary"; then echo $i; return; fi
	done
	return 1
}

# streaming tells whether both standbys have all and follow, one of them synchronously.
streaming() {
	local rest
	rest=rest$(leader) || return 1
	[ "$(curl -fs -m 2 "http://127.0.0.1:${!rest}/cluster" | grep -o '"state": "\(streaming\|running\)"' | wc -l)" = 3 ] || return 1
	curl -fs -m 2 "http://127.0.0.1:${!rest}/cluster" | grep -q sync_standby
}

sql() { # PORT DATABASE SQL
	PGPASSWORD=$superpass "$bin/psql" -qXAt -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$1" -U postgres -d "$2" -c "$3"
}

on_store() { PGPASSFILE="$folder/conf/pgpass" "$stele" --store "$store" --secret-key-file "$folder/conf/secret.key" "$@"; }

# populate makes the database, and in it what secondaries and clients need.
populate() {
	local pg
	pg=pg$(leader)
	[ "$(sql "${!pg}" postgres "SELECT 1 FROM pg_roles WHERE rolname = 'stele'")" ] || sql "${!pg}" postgres "CREATE ROLE stele LOGIN PASSWORD '$stelepass'"
	[ "$(sql "${!pg}" postgres "SELECT 1 FROM pg_database WHERE datname = 'stele'")" ] || sql "${!pg}" postgres "CREATE DATABASE stele OWNER stele"
	# Who asks a standby that has not heard of it is told that there is no such database.
	for pg in "$pg1" "$pg2" "$pg3"; do await 30 "the database on every server" sql "$pg" stele "SELECT 1"; done
	[ "$stele" != none ] || return 0
	# All servers of a registry have the same key for what it keeps secret.
	[ -e "$folder/conf/secret.key" ] || "$stele" secret keygen "$folder/conf/secret.key"
	on_store store migrate
	[ ! -e "$folder/token" ] || return 0
	on_store ns add urn:example
	on_store zone add urn:example --zone names.example.org --parts 1 --ns ns1.names.example.org=127.0.0.1 --ns ns2.names.example.org=127.0.0.1 \
		--mailbox hostmaster@example.org --resolver "ns1.names.example.org:$http1"
	on_store zone tsig add secondaries.example.org --json >"$folder/conf/tsig"
	on_store zone secondary add names.example.org --network 127.0.0.0/8 --key secondaries.example.org --notify "127.0.0.1:$knot" --notify "127.0.0.1:$nsd"
	on_store user add admin --admin
	(umask 077 && on_store token create admin --label cluster.sh --json | sed -n 's/.*"credential": *"\([^"]*\)".*/\1/p' >"$folder/token.new")
	mv "$folder/token.new" "$folder/token"
}

start_secondaries() {
	local key
	key=$(sed -n 's/.*"secret": *"\([^"]*\)".*/\1/p' "$folder/conf/tsig")
	mkdir -p "$folder/data/knot" "$folder/data/nsd"
	local_file knot.conf 1 "$folder/conf/knot" -e "s|change-this-5|$key|" -e "s|rundir: .*|rundir: $folder/data/knot|" \
		-e "s|storage: .*|storage: $folder/data/knot|"
	local_file nsd.conf 1 "$folder/conf/nsd" -e "s|change-this-5|$key|" -e "s|/var/lib/nsd|$folder/data/nsd|" -e 's|username: .*|username: ""|'
	start_knot
	start_nsd
}

# --- Commands --------------------------------------------------------------------------------

start() {
	local i command
	for command in etcd patroni psql setpriv ss curl; do
		command -v $command >/dev/null || fail "there is no $command; install etcd-server, patroni, postgresql, iproute2 and curl"
	done
	mkdir -p "$folder"/{conf,data,log,pid}
	if [ ${#unprivileged[@]} -gt 0 ]; then
		chmod 755 "$folder" "$folder/conf" "$folder/data"
		chown postgres "$folder/data"
	fi
	[ -e "$folder/settings" ] || choose
	# shellcheck disable=SC1091
	. "$folder/settings"
	configure
	for i in 1 2 3; do start_etcd $i; done
	await 30 etcd curl -fs "http://127.0.0.1:$client1/health"
	for i in 1 2 3; do start_patroni $i; done
	await 120 "three PostgreSQL servers, one of them a synchronous standby" streaming
	populate
	[ "$stele" != none ] || return 0
	for i in 1 2 3; do start_stele $i; done
	for i in "$http1" "$http2" "$http3"; do await 60 "a Stele server" curl -fs "http://127.0.0.1:$i/readyz"; done
	start_secondaries
	status
}

status() {
	local i node list primary
	primary=$(leader || echo none)
	for i in 1 2 3; do
		local client=client$i pg=pg$i http=http$i dns=dns$i role=standby
		[ "$primary" != $i ] || role=primary
		for node in "etcd$i ${!client}" "db$i ${!pg} $role" "stele$i ${!http} dns=${!dns}"; do
			list=$(processes "${node%% *}")
			[ -n "$list" ] && echo "$node runs" || echo "$node stopped"
		done
	done
	for node in "knot $knot" "nsd $nsd"; do
		list=$(processes "${node%% *}")
		[ -n "$list" ] && echo "$node runs" || echo "$node stopped"
	done
}

all=(stele1 stele2 stele3 knot nsd db1 db2 db3 etcd1 etcd2 etcd3)

stop() {
	local i
	# PostgreSQL is stopped by Patroni, which needs etcd for it.
	signal TERM stele1 stele2 stele3 knot nsd patroni1 patroni2 patroni3
	for ((i = 0; i < 75; i++)); do
		alive "${all[@]:0:8}" || break
		sleep 0.2
	done
	end "${all[@]}"
}

revive() {
	local node i
	for node in "$@"; do
		i=${node: -1}
		case $node in
		etcd? | patroni? | stele?) "start_${node%?}" "$i" ;;
		db?) start_patroni "$i" ;;
		m?)
			start_etcd "$i"
			start_patroni "$i"
			start_stele "$i"
			;;
		knot | nsd) "start_$node" ;;
		*) fail "$node can't be started alone" ;;
		esac
	done
}

[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2; }
command=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd -P)
shift 2
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
[ -x "$bin/initdb" ] || fail "there is no PostgreSQL in /usr/lib/postgresql; install the package postgresql"
if [ "$command" != start ] && [ "$command" != run ]; then
	[ -e "$folder/settings" ] || fail "there is no cluster in $folder"
	# shellcheck disable=SC1091
	. "$folder/settings"
fi
case $command in
start) start ;;
run)
	trap 'end "${all[@]}"' EXIT
	start
	echo ready
	cat >/dev/null
	;;
status) status ;;
stop) stop ;;
kill) end "$@" ;;
revive) revive "$@" ;;
*) fail "there is no command $command" ;;
esac
