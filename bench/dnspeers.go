package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// dnsPeer is a name server of others, how it is run, and what we ask of ourselves beside
// it. In its texts, {folder}, {port} and {zone} are its own.
type dnsPeer struct {
	name   string
	args   []string          // after the program
	files  map[string]string // in the folder
	get    func(ctx context.Context, folder string) (program string, err error)
	ask    []string // arguments that make it tell its version
	wanted string

	wantedFirst  string // of answers that no client asked for before
	wantedMemory string
}

const (
	forInformation = "(for information)"
	wantedMemory   = "at most 0.7 with a million names, 1 with 100,000"
)

// peers are the other name servers. Each has one thread for questions, answers with what
// was asked for alone, and logs no questions. PowerDNS keeps answers for as long as it
// takes: after its 20 seconds it would have forgotten the first ones of a million.
var peers = []dnsPeer{
	{
		name: "Knot", args: []string{"-c", "{folder}/conf"}, get: installed("knotd"), ask: []string{"--version"},
		wanted: "at most 1.25; better below 1", wantedFirst: "at most 2", wantedMemory: forInformation,
		files: map[string]string{"conf": `server:
  rundir: "{folder}"
  listen: 127.0.0.1@{port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
control:
  listen: "{folder}/control"
database:
  storage: "{folder}"
log:
  - target: stderr
    any: warning
zone:
  - domain: ` + benchZone + `
    file: "{zone}"
    zonefile-sync: -1
    journal-content: none
`},
	},
	{
		name: "BIND", args: []string{"-g", "-n", "1", "-c", "{folder}/conf"}, get: installed("named"), ask: []string{"-v"},
		wanted: "below 1", wantedFirst: forInformation, wantedMemory: wantedMemory,
		files: map[string]string{"conf": `options {
	directory "{folder}"; pid-file none; session-keyfile none; lock-file none; managed-keys-directory "{folder}";
	listen-on port {port} { 127.0.0.1; }; listen-on-v6 { none; };
	recursion no; dnssec-validation no; notify no; empty-zones-enable no; minimal-responses yes;
};
controls { };
zone "` + benchZone + `" { type primary; file "{zone}"; };
`},
	},
	{
		name: "PowerDNS", args: []string{"--config-dir={folder}"}, get: installed("pdns_server"), ask: []string{"--version"},
		wanted: "below 1", wantedFirst: forInformation, wantedMemory: forInformation,
		files: map[string]string{"pdns.conf": `launch=bind
bind-config={folder}/zones
local-address=127.0.0.1
local-port={port}
socket-dir={folder}
daemon=no
guardian=no
receiver-threads=1
distributor-threads=1
cache-ttl=3600
query-cache-ttl=3600
disable-syslog=yes
loglevel=3
security-poll-suffix=
`, "zones": `zone "` + benchZone + `" { type native; file "{zone}"; };
`},
	},
	{
		name: "CoreDNS", args: []string{"-conf", "{folder}/conf", "-quiet"}, get: buildCoreDNS, ask: []string{"-version"},
		wanted: "below 1", wantedFirst: forInformation, wantedMemory: forInformation,
		files: map[string]string{"conf": benchZone + `:{port} {
	bind 127.0.0.1
	file {zone}
}
`},
	},
}

// errNoPeer says that the program of a peer is not available.
var errNoPeer = errors.New("it is not to be had")

// installed returns how to get a program that is installed. It is copied: some systems
// (AppArmor) forbid it to read anything but its own folders.
func installed(name string) func(ctx context.Context, folder string) (string, error) {
	return func(_ context.Context, folder string) (string, error) {
		text, err := os.ReadFile(findServer(name))
		if err != nil {
			return "", fmt.Errorf("%w; 'make bench' installs it", err)
		}
		path := filepath.Join(folder, name)
		return path, os.WriteFile(path, text, 0o700)
	}
}

// coreDNS is what Debian does not have. Its files are those of a program with the file
// plugin alone, which has few modules to load.
var coreDNS = map[string]string{
	"go.mod": "module coredns\n\ngo 1.26\n\nrequire github.com/coredns/coredns v1.14.7\n",
	"main.go": `package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/file"
)

func main() { coremain.Run() }
`,
}

// buildCoreDNS builds it, if its modules are available.
func buildCoreDNS(ctx context.Context, folder string) (string, error) {
	for name, text := range coreDNS {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", "coredns", ".")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: go build: %w: %s", errNoPeer, err, lastLine(out))
	}
	return filepath.Join(folder, "coredns"), nil
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// startPeer starts a name server with the zone from the file.
func (d *dnsBench) startPeer(ctx context.Context, p dnsPeer, core int) (*contender, error) {
	return d.startPeerOn(ctx, p, strconv.Itoa(core))
}

// startPeerOn is the same for some cores, in the form of taskset's list.
func (d *dnsBench) startPeerOn(ctx context.Context, p dnsPeer, cores string) (*contender, error) {
	progress("%s loads the zone", p.name)
	folder := filepath.Join(d.work, strings.ToLower(p.name)+d.label)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	program, err := p.get(ctx, folder)
	if err != nil {
		return nil, err
	}
	at, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(at, ":")
	fill := strings.NewReplacer("{folder}", folder, "{port}", port, "{zone}", d.zone).Replace
	for name, text := range p.files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(fill(text)), 0o644); err != nil {
			return nil, err
		}
	}
	var args []string
	for _, arg := range p.args {
		args = append(args, fill(arg))
	}
	s, began, err := startNameServer(ctx, cores, p.name+p.version(ctx, program), at, program, args...)
	if err != nil {
		return nil, err
	}
	return &contender{server: s, began: began}, nil
}

var versionNumber = regexp.MustCompile(`\d+\.\d+\.\d+`)

// version returns a space and the version of a program; nothing if it does not tell.
func (p dnsPeer) version(ctx context.Context, program string) string {
	out, _ := exec.CommandContext(ctx, program, p.ask...).CombinedOutput() // PowerDNS fails then
	if v := versionNumber.Find(out); v != nil {
		return " " + string(v)
	}
	return ""
}
