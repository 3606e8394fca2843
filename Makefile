# Stele's chores. `make` alone lists them.
#
# What a build makes goes to bin/. Nothing here needs the network, but for
# modules that are not in the cache yet and packages that a test needs.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Developers' tools are pinned in a module of their own, so that a program which
# imports ours does not inherit them.
TOOL := go tool -modfile=tools/go.mod

# The version is that of the tag, or else of the source; so there is one outside a clone too (a
# tarball). Asking only where .git is keeps a surrounding repository out of it.
VERSION ?= $(or $(shell test -e .git && git describe --tags --match 'v*' --dirty 2>/dev/null),$(shell sed -n 's/^const release = "\(.*\)"/\1/p' cmd/stele/version.go))
COMMIT  ?= $(shell test -e .git && git describe --always --exclude '*' --abbrev=12 --dirty 2>/dev/null)

# How long `make fuzz` works on each target.
FUZZTIME ?= 30s

# Which targets: all.
FUZZ ?=

# Those that read what a client, or a server that we ask, sends over the network.
NETWORK_FUZZ := /(auth|client(/[a-z]+)?|document(/[a-z]+)?|giver|harvest|heir|internal/plainxml|links/ask|proof|resolver|scheme/[a-z]+|serve/[a-z/]+|trace|transparency(/witness)?|wire/hdl) Fuzz|/search FuzzQuery|/internal/backuptar Fuzz|/bulk/(bundle|deposit) Fuzz|/test FuzzSmuggling

# How often `make soak` kills.
SOAK ?= 1000

# What the tests need of the system: a command (or a file's absolute path), and
# the Debian package that brings it. The race detector needs a C compiler. Zone files
# are held against the checkers of BIND, Knot and NSD; these servers and PowerDNS answer
# from them, unbound asks us as resolvers do, and dig and kdig ask all of them. systemd
# judges our unit, nginx and HAProxy stand in front of us, and nginx and Apache httpd redirect by files that we write, logrotate moves our log away, and rsyslog takes
# the audit trail. fstrm_capture collects what it is told of questions, and BIND reads that.
# Signed zones are validated by unbound and delv, and their files by the verifiers of BIND and
# ldns. What names stand for is fetched from vsftpd and nginx, OpenSSL judges our signatures, and
# registries are kept in PostgreSQL, whose programs stand in a folder of its version; three of
# them make a cluster with Patroni and etcd, from which a network namespace cuts one of us off.
# Prometheus scrapes our metrics, and its promtool judges the alert rules. libhttp-oai-perl harvests us. groff reads our manual pages. pg_dump and MariaDB's dump write what a Handle server keeps in SQL. Exim takes our mail (OpenSMTPD of Debian 12 can't do TLS with its OpenSSL). OpenSSH keeps deposits. Chromium shows our pages. The pages for administrators are followed on an empty machine, a
# container of systemd's made by mmdebstrap.
NEEDS := gcc:build-essential curl:curl perl:perl /usr/share/perl5/HTTP/OAI.pm:libhttp-oai-perl db_load:db-util named-checkzone:bind9-utils kzonecheck:knot-dnssecutils nsd-checkzone:nsd \
	named:bind9 knotd:knot unbound:unbound dig:bind9-dnsutils kdig:knot-dnsutils pdns_server:pdns-server \
	delv:bind9-dnsutils dnssec-verify:bind9-utils ldns-verify-zone:ldnsutils \
	$(or $(firstword $(wildcard /usr/lib/*/pdns/libbindbackend.so)),/usr/lib/pdns/libbindbackend.so):pdns-backend-bind \
	systemd-analyze:systemd nginx:nginx haproxy:haproxy apache2:apache2-bin logrotate:logrotate vsftpd:vsftpd openssl:openssl rsyslogd:rsyslog \
	etcd:etcd-server patroni:patroni ip:iproute2 psql:postgresql-client mariadbd:mariadb-server mariadb-dump:mariadb-client chromium:chromium groff:groff-base exim4:exim4-daemon-light sshd:openssh-server \
	promtool:prometheus prometheus:prometheus fstrm_capture:fstrm-bin dnstap-read:bind9-dnsutils mmdebstrap:mmdebstrap systemd-nspawn:systemd-container nsenter:util-linux \
	$(or $(firstword $(wildcard /usr/lib/postgresql/*/bin/initdb)),/usr/lib/postgresql/bin/initdb):postgresql

# lintian judges our Debian package, rpm reads the other one, and skopeo our image.
NEEDS += lintian:lintian rpm:rpm skopeo:skopeo

# What `make bench` compares with. The server's programs stand in a folder of its
# version, and what PowerDNS loads in one of the machine's kind. CoreDNS is no package; it
# is built from its modules, and not measured where they are not to be had.
NEEDS_BENCH := $(or $(firstword $(wildcard /usr/lib/postgresql/*/bin/initdb)),/usr/lib/postgresql/bin/initdb):postgresql nginx:nginx wrk:wrk h2load:nghttp2-client \
	dnsperf:dnsperf dig:bind9-dnsutils /usr/sbin/named:bind9 /usr/sbin/knotd:knot /usr/sbin/pdns_server:pdns-server \
	$(or $(firstword $(wildcard /usr/lib/*/pdns/libbindbackend.so)),/usr/lib/pdns/libbindbackend.so):pdns-backend-bind

# How many records the registry has that `make bench` fills.
RECORDS ?= 1000000

# How many names the registry has for what is asked of a large one. Ten million take 15 GB in TMPDIR.
RECORDS_LARGE ?= 10000000

.PHONY: help build packages demo test quick lint vet bench pgo fuzz fuzz-network soak cover clean needs

help: ## lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

# The version is given, so git need not be asked again (-buildvcs): it refuses in
# folders of other owners, as on some build machines.
# Without cgo and symbols for debuggers the program is one static file, a third smaller
# (docs/decisions/0044-one-static-program.md).
build: ## builds bin/stele
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -pgo=cmd/stele/serve.pgo -ldflags '-s -w -X main.linkedVersion=$(VERSION) -X main.linkedCommit=$(COMMIT)' -o bin/stele ./cmd/stele

# The time of all files is that of the commit, so that two builds give the same octets. Outside a clone
# it has to be given: make packages SOURCE_DATE_EPOCH=seconds
SOURCE_DATE_EPOCH ?= $(shell test -e .git && git log -1 --format=%ct 2>/dev/null)
packages: ## builds dist/: programs for all systems, packages, images, bills of materials and checksums
	rm -rf dist
	go run -C tools ./packages -root '$(CURDIR)' -version '$(VERSION)' -commit '$(COMMIT)' -time '$(or $(SOURCE_DATE_EPOCH),0)'
	@cd dist && ls -l

# On a terminal the server stays until Ctrl-C, so that you can try what it prints.
# Elsewhere it tries all of that itself, shows the answers, and ends.
demo: build ## serves a small registry of examples, and shows what to try
	@if [ -t 0 ] && [ -t 1 ]; then exec bin/stele serve --demo; else exec bin/stele serve --demo --once; fi

# Whole programs are tested without the race detector, in a run of their own: the programs that these tests start don't have it
# (docs/decisions/0064-programs-of-tests-without-the-race-detector.md).
WHOLE := ./test ./cmd/stele

# The packages whose tests take longest are named first: go test starts packages in the order
# in which it gets them, so that none of these runs alone at the end.
LONGEST := ./store/pebble ./store/postgres ./transparency ./links ./serve/api
PACKAGES = $(LONGEST) $(shell go list ./... | grep -v -x -F $(WHOLE:./%=-e github.com/stele-id/stele/%))

# Two packages and two whole programs are tested at a time, on two processors too: whole programs wait for others most of the time.
# The empty Debian is made while go vet runs: it waits for packages to be fetched. So does staticcheck while tests wait for programs.
# The program is compiled as tests compile it, before they all wait for it beside each other.
# The totals come last, whatever happens. A skipped test is a defect: the tally
# fails on it as on a failed one.
TESTSUM = $(TOOL) gotestsum --format pkgname
TESTFLAGS := -p 2 -shuffle=on -vet=off -timeout 40m
test: needs ## checks everything: lint, and all tests, those of packages with the race detector
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line bin/debian.tar vet
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -o /dev/null ./cmd/stele
	@mkdir -p bin && rm -f bin/test-packages.json bin/test-whole.json
	@status=0; \
	$(STATICCHECK) ./... >bin/staticcheck.txt 2>&1 & checked=$$!; \
	CGO_ENABLED=0 $(TESTSUM) --jsonfile bin/test-whole.json -- -trimpath $(TESTFLAGS) $(WHOLE) & whole=$$!; \
	CGO_ENABLED=1 $(TESTSUM) --jsonfile bin/test-packages.json -- -race $(TESTFLAGS) $(PACKAGES) || status=$$?; \
	wait $$whole || status=$$?; \
	wait $$checked || { cat bin/staticcheck.txt; status=1; }; \
	go build -buildvcs=false -o bin/tally ./test/tally; \
	bin/tally bin/test-packages.json bin/test-whole.json || status=1; \
	exit $$status

# The daily loop: no race detector, no other servers, no program that is started whole.
QUICK = $(shell go list ./... | grep -v -E '/(test|bench|cmd/stele|store/postgres|store/postgres/.*)$$')
quick: ## checks the packages alone, in a few minutes
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then \
		printf 'not formatted; run gofmt -w on:\n%s\n' "$$unformatted" >&2; exit 1; \
	fi
	go test -timeout 10m $(QUICK)
	go test ./test -run '^(TestArrows|TestHouse)'

# What is checked is compiled as the tests are, with the race detector, so that it is compiled once. Staticcheck itself is not.
STATICCHECK = CGO_ENABLED=1 GOFLAGS=-race $$($(TOOL) -n staticcheck)

lint: vet ## gofmt, go vet, staticcheck, and types on the other systems
	$(STATICCHECK) ./...

vet: needs
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then \
		printf 'not formatted; run gofmt -w on:\n%s\n' "$$unformatted" >&2; exit 1; \
	fi
	CGO_ENABLED=1 go vet -race ./...
	go vet -C tools ./...
	go build -buildvcs=false -o bin/platforms ./test/platforms && bin/platforms

bench: needs ## measures, and prints ratios against peers
	@test/install-packages.sh $(NEEDS_BENCH)
	go run ./bench -records $(RECORDS)
	go run ./bench -records $(RECORDS_LARGE) http second
	go test ./store/pebble -run '^$$' -bench OldVersion

# What the server spends its time with tells the compiler where to take pains (see
# `go help build`). A profile is good for a long time: make it anew when the way of a
# request through the program has changed much. It is in no file default.pgo, since all
# tests that build the program would build everything twice.
pgo: needs ## measures what the server does, for later builds
	@test/install-packages.sh $(NEEDS_BENCH)
	go run ./bench -profile cmd/stele/serve.pgo http

# `go test -list` prints a package's targets, then a line "ok PACKAGE". FUZZ chooses among lines "PACKAGE TARGET". A target that
# fails does not stop the others; go test says where it keeps the input. By default go test works for up to a minute on a
# shorter form of each new input, longer than FUZZTIME.
fuzz: ## works on each fuzz target for FUZZTIME (30s); FUZZ=regexp chooses among "PACKAGE TARGET"
	@list=$$(go test -vet=off -list '^Fuzz' ./...); \
	targets=$$(awk '/^Fuzz/ { t[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, t[i]; n = 0 }' <<<"$$list" | grep -E -e '$(FUZZ)') || \
		{ echo 'no fuzz target matches FUZZ=$(FUZZ)' >&2; exit 1; }; \
	failed=; \
	while read -r package target; do \
		echo "$$package $$target"; \
		go test -vet=off -run '^$$' -fuzz "^$$target$$" -fuzzminimizetime 1s -fuzztime $(FUZZTIME) "$$package" </dev/null || failed="$$failed $$target"; \
	done <<<"$$targets"; \
	[ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

# Some of them start other servers.
fuzz-network: FUZZ = $(NETWORK_FUZZ)
fuzz-network: FUZZTIME = 20m
fuzz-network: needs fuzz ## works on each fuzz target that reads what comes from the network, for 20 minutes

# The growth with a hundred million records takes 50 GB in TMPDIR, and some hours.
soak: needs ## kills a busy process SOAK times (1000), and looks what is left; hands 30 namespaces over under load, and kills both sides; starts 20 large zones; checks links for 50 years; starts programs with the race detector; builds all packages; measures growth to 100 million records
	STELE_CRASH_ROUNDS=$(SOAK) go test ./test -run '^TestCrash$$' -count=1 -v -timeout 24h
	STELE_HANDOVER_ROUNDS=30 go test ./test -run '^TestHandOver$$' -count=1 -v -timeout 2h
	STELE_ZONE_NAMES=20000 go test ./serve/dnsd -run '^TestManyZonesStart$$' -count=1 -v -timeout 1h
	STELE_YEARS=50 go test ./links -run '^TestYear$$' -count=1 -v -timeout 2h
	STELE_RACE=1 CGO_ENABLED=1 go test -race ./cmd/stele -count=1 -timeout 3h
	$(MAKE) packages
	@test/install-packages.sh $(NEEDS_BENCH)
	go run ./bench -records 10000000 growth dns-growth
	go run ./bench -records 100000000 growth
	go run ./bench -records 100000000 dns-growth

cover: ## runs the tests with coverage: total, and bin/cover.html by line
	@mkdir -p bin
	go test -coverpkg=./... -coverprofile=bin/cover.out ./...
	go tool cover -html=bin/cover.out -o bin/cover.html
	@go tool cover -func=bin/cover.out | tail -n 1

clean: ## removes bin/ and dist/
	rm -rf bin dist

# Programs that tests build for themselves are modules of their own, so that their modules are fetched here: tests need no network.
needs:
	@command -v go >/dev/null || { echo 'there is no go command; install Go 1.26 or later from https://go.dev/dl/' >&2; exit 1; }
	@test/install-packages.sh $(NEEDS)
	@for module in $(wildcard test/*/go.mod); do go mod download -C "$$(dirname $$module)"; done

# An empty Debian with what the pages tell an administrator to have; see test/machine_test.go.
MACHINE := systemd-sysv,dbus,sudo,rsync,openssh-server,openssh-client,ca-certificates,openssl,curl,postgresql,bind9-dnsutils,bind9-utils,knot-dnssecutils
bin/debian.tar:
	@mkdir -p bin
	@echo 'making an empty Debian for the tests' >&2
	@as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	$$as_root mmdebstrap --quiet --format=tar --variant=minbase --include=$(MACHINE) bookworm $@.part && $$as_root mv $@.part $@
