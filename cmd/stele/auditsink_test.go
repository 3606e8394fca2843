package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/resolver"
)

// rsyslog is a syslog daemon with settings of its own, which writes what it reads from a
// message to a file, a JSON object a line.
type rsyslog struct {
	t      *testing.T
	folder string
	input  string // what it listens to, in its language
	cmd    *exec.Cmd
}

// syslogged is a message as rsyslog reads it.
type syslogged struct {
	Facility, Severity, Time, Host, App, Process, ID, Version, Message string
}

// newRsyslog returns a daemon that will listen on a network, and the place as audit-syslog
// names it.
func newRsyslog(t *testing.T, network string) (*rsyslog, string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "syslog") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	d := &rsyslog{t: t, folder: folder}
	place := filepath.Join(folder, "log")
	switch network {
	case "unix":
		d.input = fmt.Sprintf("module(load=\"imuxsock\" SysSock.Use=\"off\")\ninput(type=\"imuxsock\" Socket=%q UseSpecialParser=\"off\" ParseHostname=\"on\" IgnoreTimestamp=\"off\" RateLimit.Interval=\"0\")\n", place)
	case "udp", "tcp":
		port := strconv.Itoa(freeSyslogPort(t, network))
		d.input = fmt.Sprintf("module(load=\"im%s\")\ninput(type=\"im%s\" address=\"127.0.0.1\" port=%q)\n", network, network, port)
		place = network + "://127.0.0.1:" + port
	}
	t.Cleanup(d.stop)
	return d, place
}

// freeSyslogPort returns a port that nothing uses at the moment.
func freeSyslogPort(t *testing.T, network string) int {
	t.Helper()
	if network == "udp" {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.LocalAddr().(*net.UDPAddr).Port
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts the daemon, and waits until it listens.
func (d *rsyslog) start() {
	d.t.Helper()
	config := "global(workDirectory=\"" + d.folder + "\" maxMessageSize=\"64k\")\n" + d.input + `
template(name="fields" type="list" option.jsonf="on") {
	property(outname="Facility" name="syslogfacility-text" format="jsonf")
	property(outname="Severity" name="syslogseverity-text" format="jsonf")
	property(outname="Time" name="timereported" dateFormat="rfc3339" format="jsonf")
	property(outname="Host" name="hostname" format="jsonf")
	property(outname="App" name="app-name" format="jsonf")
	property(outname="Process" name="procid" format="jsonf")
	property(outname="ID" name="msgid" format="jsonf")
	property(outname="Version" name="protocol-version" format="jsonf")
	property(outname="Message" name="msg" format="jsonf")
}
if $app-name == "stele" then { action(type="omfile" file="` + filepath.Join(d.folder, "out") + `" template="fields") }
`
	if err := os.WriteFile(filepath.Join(d.folder, "conf"), []byte(config), 0o600); err != nil {
		d.t.Fatal(err)
	}
	program, err := exec.LookPath("rsyslogd")
	if err != nil {
		program = "/usr/sbin/rsyslogd"
	}
	d.cmd = exec.Command(program, "-n", "-f", filepath.Join(d.folder, "conf"), "-i", filepath.Join(d.folder, "pid"))
	said := &lockedBuffer{}
	d.cmd.Stdout, d.cmd.Stderr = said, said
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	await(d.t, "rsyslog to start: "+said.String(), func() bool { _, err := os.Stat(filepath.Join(d.folder, "pid")); return err == nil })
}

// stop kills the daemon.
func (d *rsyslog) stop() {
	if d.cmd != nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		d.cmd = nil
		_ = os.Remove(filepath.Join(d.folder, "pid"))
	}
}

// messages returns what the daemon has written.
func (d *rsyslog) messages() (list []syslogged) {
	text, _ := os.ReadFile(filepath.Join(d.folder, "out")) // it is not there before the first
	for line := range bytes.Lines(text) {
		var m syslogged
		if json.Unmarshal(line, &m) == nil {
			list = append(list, m)
		}
	}
	return list
}

// numbers returns the numbers of the entries that the daemon has, without repetitions.
func (d *rsyslog) numbers() (list []uint64) {
	for _, m := range d.messages() {
		var e audit.Document
		if json.Unmarshal([]byte(strings.TrimSpace(m.Message)), &e) == nil {
			list = append(list, e.Number)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// await waits until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 6000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

// trail returns the whole audit trail, asked from the server.
func (o *apiUser) trail() (list []audit.Document) {
	o.t.Helper()
	for after := uint64(0); ; {
		var page struct {
			Items []audit.Document
			After uint64
			Last  bool
		}
		if err := json.Unmarshal(o.ask("GET", fmt.Sprintf("audit?limit=1000&after=%d", after), "", http.StatusOK), &page); err != nil {
			o.t.Fatal(err)
		}
		list = append(list, page.Items...)
		if page.Last {
			return list
		}
		after = page.After
	}
}

// register registers a record.
func (o *apiUser) register(name string) {
	o.t.Helper()
	o.ask("PUT", "records/"+name, `{"metadata":{"what":"Rivers\n<13>1 of Pará"}}`, http.StatusCreated)
}

// TestAuditSyslog: rsyslog reads every entry of the trail as RFC 5424 says, over each
// transport, and what it reads is the entry.
func TestAuditSyslog(t *testing.T) {
	for _, network := range []string{"udp", "tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			d, place := newRsyslog(t, network)
			d.start()
			p, o := startAPIUser(t, filepath.Join(t.TempDir(), "data"), "--audit-syslog", place)
			for i := range 5 {
				o.register(fmt.Sprintf("urn:x1:%d", i))
			}
			o.ask("POST", "users", `{"name":"ann"}`, http.StatusCreated)
			o.ask("POST", "secrets/nonsense", `{}`, http.StatusNotFound)
			want := o.trail()
			await(t, "all entries", func() bool { return len(d.numbers()) >= len(want) })
			host, _ := os.Hostname()
			for _, m := range d.messages() {
				var got audit.Document
				if err := json.Unmarshal([]byte(strings.TrimSpace(m.Message)), &got); err != nil || got.Number == 0 || got.Number > uint64(len(want)) {
					t.Fatalf("the message %q is not an entry: %v", m.Message, err)
				}
				e := want[got.Number-1]
				if got != e {
					t.Errorf("entry %d is sent as\n%+v, want\n%+v", got.Number, got, e)
				}
				severity := "notice"
				if e.Outcome != "done" {
					severity = "warning"
				}
				if m.App != "stele" || m.ID != "audit" || m.Version != "1" || m.Host != host || m.Severity != severity || m.Process != strconv.Itoa(p.cmd.Process.Pid) {
					t.Errorf("the head of the message: %+v", m)
				}
				at, err := time.Parse(time.RFC3339, m.Time)
				if err != nil || !at.Equal(e.At.Truncate(time.Microsecond)) {
					t.Errorf("the time is %s, want %s: %v", m.Time, e.At, err)
				}
				if !strings.Contains(m.Facility, "audit") && m.Facility != "13" {
					t.Errorf("the facility is %q", m.Facility)
				}
			}
		})
	}
}

// TestAuditSinkAway: entries that come while the daemon is away are sent when it is back,
// and those that it may not have read before it ended are sent again; none is missing.
func TestAuditSinkAway(t *testing.T) {
	d, place := newRsyslog(t, "tcp")
	data := filepath.Join(t.TempDir(), "data")
	p, o := startAPIUser(t, data, "--audit-syslog", place)
	o.register("urn:x1:a")
	await(t, "a word about the daemon", func() bool { return strings.Contains(p.stderr.String(), "audit entries can't be sent") })
	d.start()
	all := func() bool { return slices.Equal(d.numbers(), upTo(len(o.trail()))) }
	await(t, "what came while it was away", all)
	if !strings.Contains(p.stderr.String(), "audit entries are sent again") {
		t.Errorf("the log does not say that it is back: %s", p.stderr)
	}
	for i := range 3 { // it is killed while entries come
		o.register(fmt.Sprintf("urn:x1:b%d", i))
		d.stop()
		o.register(fmt.Sprintf("urn:x1:c%d", i))
		d.start()
		o.register(fmt.Sprintf("urn:x1:d%d", i))
	}
	await(t, "all after it was killed", all)
	// A server that starts again goes on, and does not send the whole trail again.
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("the server ended with %d", code)
	}
	d.stop()
	if err := os.Remove(filepath.Join(d.folder, "out")); err != nil {
		t.Fatal(err)
	}
	d.start()
	p = startServe(t, "--data", data, "--http", "127.0.0.1:0", "--audit-syslog", place)
	o.at = p.http + "/api/v1/"
	o.register("urn:x1:e")
	last := uint64(len(o.trail()))
	await(t, "the last one", func() bool { n := d.numbers(); return len(n) > 0 && n[len(n)-1] == last })
	if first := d.numbers()[0]; first < last-2 {
		t.Errorf("after a restart entry %d is sent again; there are %d", first, last)
	}
}

// upTo returns the numbers from 1 to n.
func upTo(n int) (list []uint64) {
	for i := range n {
		list = append(list, uint64(i)+1)
	}
	return list
}

// TestAuditFileRotated: after a signal the server goes on in a new file, as logrotate wants
// it. No entry is in both files or in none, also if the server starts again while the new
// file is empty.
func TestAuditFileRotated(t *testing.T) {
	folder := t.TempDir()
	data, file := filepath.Join(folder, "data"), filepath.Join(folder, "audit.jsonl")
	p, o := startAPIUser(t, data, "--audit-file", file)
	o.register("urn:x1:a")
	await(t, "the first entries", func() bool { return len(fileNumbers(t, file)) == len(o.trail()) })
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await(t, "the new file", func() bool { _, err := os.Stat(file); return err == nil })
	o.register("urn:x1:b")
	both := func() []uint64 { return append(fileNumbers(t, file+".1"), fileNumbers(t, file)...) }
	await(t, "the second entries", func() bool { return slices.Equal(both(), upTo(len(o.trail()))) })
	if len(fileNumbers(t, file)) != 1 {
		t.Errorf("the new file has %d entries", len(fileNumbers(t, file)))
	}
	// It is moved away again, and the server starts anew before it writes.
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("the server ended with %d", code)
	}
	if err := os.Rename(file, file+".2"); err != nil {
		t.Fatal(err)
	}
	p = startServe(t, "--data", data, "--http", "127.0.0.1:0", "--audit-file", file)
	o.at = p.http + "/api/v1/"
	o.register("urn:x1:c")
	await(t, "the third entries", func() bool { return len(fileNumbers(t, file)) > 0 })
	want := upTo(len(o.trail()))
	if got := append(append(fileNumbers(t, file+".1"), fileNumbers(t, file+".2")...), fileNumbers(t, file)...); !slices.Equal(got, want) {
		t.Errorf("the files have the entries %d, want %d", got, want)
	}
}

// fileNumbers returns the numbers of the entries in a file.
func fileNumbers(t *testing.T, file string) (list []uint64) {
	t.Helper()
	text, _ := os.ReadFile(file)
	for line := range bytes.Lines(text) {
		var d audit.Document
		if err := json.Unmarshal(line, &d); err != nil {
			return nil // it is being written
		}
		list = append(list, d.Number)
	}
	return list
}

// TestAuditFollow: 'stele audit --follow' prints entries as they come, through a server and
// from a database that other processes write to.
func TestAuditFollow(t *testing.T) {
	server := lazyPostgres(t)
	for _, kind := range []string{"server", "PostgreSQL"} {
		t.Run(kind, func(t *testing.T) {
			var where []string
			if kind == "server" {
				where = serverFlags(t, filepath.Join(t.TempDir(), "data"))
			} else {
				where = []string{"--store", server().Database(t)}
				runStele(t, append([]string{"store", "migrate"}, where...)...)
			}
			runStele(t, append([]string{"register", "urn:x1:a", "--reserve"}, where...)...)
			cmd := steleCommand(t, append([]string{"audit", "--follow", "--operation", "register"}, where...)...)
			out := &lockedBuffer{}
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Wait() }()
			defer func() { _ = cmd.Process.Signal(os.Interrupt) }()
			await(t, "what is there", func() bool { return strings.Contains(out.String(), "urn:x1:a") })
			runStele(t, append([]string{"register", "urn:x1:b", "--reserve"}, where...)...)
			await(t, "what comes", func() bool { return strings.Contains(out.String(), "urn:x1:b") })
			runStele(t, append([]string{"audit", "--json", "--since", "1d"}, where...)...)
			if n := strings.Count(out.String(), "done  register"); n != 2 {
				t.Errorf("%d entries:\n%s", n, out)
			}
		})
	}
}

// TestAuditKeep: a server removes entries that are older than audit-keep, and leaves one
// that says so; the rest keeps its numbers.
func TestAuditKeep(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	story := newStory(t)
	old := 0
	before := &program{stderr: io.Discard, now: func() time.Time { return time.Now().Add(-72 * time.Hour) }, data: data, brief: true, create: true}
	r, err := before.openRegistry(t.Context(), story.schemes, slog.New(slog.DiscardHandler), resolver.Options{})
	story.ok(err)
	for _, name := range []string{"ann", "bob"} {
		_, err := r.Registrar.AddUser(story.admin, auth.User{Name: name, Admin: true})
		story.ok(err)
		old++
	}
	story.ok(r.Close())
	runStele(t, "register", "ark:12345/x2", "--reserve", "--data", data)
	p := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--audit-keep", "24h")
	await(t, "the trimming", func() bool { return strings.Contains(p.stderr.String(), "the audit trail was trimmed") })
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("the server ended with %d", code)
	}
	lines := strings.Split(strings.TrimSpace(runStele(t, "audit", "--json", "--data", data)), "\n")
	var first, trim audit.Document
	for _, line := range lines {
		var d audit.Document
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		if first.Number == 0 {
			first = d
		}
		if d.Trimmed > 0 {
			trim = d
		}
	}
	if trim.Trimmed != uint64(old) || first.Number != trim.Trimmed+1 {
		t.Errorf("of %d entries those up to %d are gone, and the first is %d:\n%s", old, trim.Trimmed, first.Number, strings.Join(lines, "\n"))
	}
	if out := runStele(t, "verify", "--data", data); !strings.Contains(out, "all is well") {
		t.Error(out)
	}
}

// TestAuditSurvivesRestore: what was done after the backup stays in the trail when the
// backup is restored, by a server in its place or into a database, and the restore itself
// is in it, with the user who did it.
func TestAuditSurvivesRestore(t *testing.T) {
	server := lazyPostgres(t)
	for _, kind := range []string{"server", "PostgreSQL"} {
		t.Run(kind, func(t *testing.T) {
			home := t.TempDir()
			data, saved := filepath.Join(home, "data"), filepath.Join(home, "saved")
			var where, restore []string
			if kind == "server" {
				where = serverFlags(t, data)
				restore = append([]string{"restore", saved, "--confirm", "data"}, where...)
			} else {
				where = []string{"--store", server().Database(t)}
				runStele(t, append([]string{"store", "migrate"}, where...)...)
				runStele(t, append([]string{"user", "add", "root", "--admin"}, where...)...)
			}
			runStele(t, append([]string{"register", "urn:x1:a", "--reserve"}, where...)...)
			runStele(t, append([]string{"backup", saved}, where...)...)
			runStele(t, append([]string{"user", "add", "bob"}, where...)...)
			if kind == "PostgreSQL" {
				empty := []string{"--store", server().Database(t)}
				runStele(t, append([]string{"store", "migrate"}, empty...)...)
				restore = append([]string{"restore", saved, "--present", where[1]}, empty...)
				where = empty
			}
			runStele(t, restore...)
			out := runStele(t, append([]string{"audit", "--json"}, where...)...)
			var operations []string
			for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
				var d audit.Document
				if err := json.Unmarshal([]byte(line), &d); err != nil || d.Number != uint64(i)+1 {
					t.Fatalf("line %d is entry %d, %v:\n%s", i+1, d.Number, err, out)
				}
				operations = append(operations, d.Operation+" "+d.Object)
				if d.Operation == "restore" && d.By == "" && d.System == "" {
					t.Errorf("the restore has no user: %+v", d)
				}
			}
			last := -1
			for _, want := range []string{"register urn:x1:a", "add user user:bob", "restore"} {
				at := slices.IndexFunc(operations, func(o string) bool { return strings.HasPrefix(o, want) })
				if at <= last {
					t.Errorf("%q is entry %d, after %d: %q", want, at+1, last+1, operations)
				}
				last = at
			}
		})
	}
}
