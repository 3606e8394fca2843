package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registry"
)

// Response codes of the DNS.
const (
	rcodeServerFailure = 2
	rcodeRefused       = 5
)

// fakeSecondary is a name server, over TCP, that answers questions for an SOA record as the
// test sets it.
type fakeSecondary struct {
	at     string
	serial atomic.Uint32
	rcode  atomic.Int32
}

func newFakeSecondary(t *testing.T, serial uint32) *fakeSecondary {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeSecondary{at: listener.Addr().String()}
	f.serial.Store(serial)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			f.answer(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return f
}

// answer answers one question. A client that gives up gets nothing.
func (f *fakeSecondary) answer(c net.Conn) {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return
	}
	q := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, q); err != nil || len(q) < 12 {
		return
	}
	end := 12 + bytes.IndexByte(q[12:], 0) + 5 // of the question: a name, its type and class
	m := append([]byte{q[0], q[1], 0x84, byte(f.rcode.Load()), 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
	if f.rcode.Load() == 0 {
		m[7] = 1
		// The name of the question, SOA, IN, a TTL; the root twice, the serial and four times.
		m = append(m, 0xC0, 12, 0, 6, 0, 1, 0, 0, 0, 60, 0, 22, 0, 0)
		m = append(binary.BigEndian.AppendUint32(m, f.serial.Load()), make([]byte, 16)...)
	}
	_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...))
}

// checkedLines runs 'zone check --json', and returns what it prints about secondaries and
// shut zones.
func checkedLines(t *testing.T, code int, args ...string) (list []transferProblem) {
	t.Helper()
	got, out, errs := runProgram(t, append([]string{"zone", "check", "--json"}, args...)...)
	if got != code {
		t.Fatalf("exit code %d, want %d\n%s%s", got, code, out, errs)
	}
	for line := range strings.Lines(out) {
		var p transferProblem
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if p.State != "" {
			list = append(list, p)
		}
	}
	return list
}

// 'zone check' compares a zone with its secondaries, in a folder and through a server.
func TestZoneCheckSecondaries(t *testing.T) {
	s := newStory(t)
	data := filepath.Join(t.TempDir(), "registry")
	backup := s.write(registry.Place{Folder: data})
	token := filepath.Join(t.TempDir(), "token")
	s.ok(os.WriteFile(token, []byte(s.credential), 0o600))
	var serial uint32
	s.in(registry.Place{Folder: data}, func(r *registry.Registry) {
		z, err := r.Store.ZoneState(s.admin, storyZone)
		s.ok(err)
		serial = z.Serial()
	})
	for _, far := range []bool{false, true} {
		where := []string{"--data", data, "--notify-allow", "127.0.0.1"}
		end := func() {}
		if far {
			p := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--notify-allow", "127.0.0.1")
			where = []string{"--server", p.http, "--token-file", token}
			end = func() { p.end(t, syscall.SIGTERM) }
		}
		for _, test := range []struct {
			serial uint32
			rcode  int32
			want   stele.SecondaryState
			code   int
			text   string
		}{
			{serial, 0, stele.SecondarySame, 0, ""},
			{serial - 1, 0, stele.SecondaryBehind, 0, "takes the zone when it asks next"},
			{serial + 3, 0, stele.SecondaryAhead, 1, "stele zone raise " + storyZone + " --above"},
			{serial + 1<<31, 0, stele.SecondaryFar, 1, "too far"},
			{0, rcodeRefused, stele.SecondaryRefuses, 1, "REFUSED"},
			{0, rcodeServerFailure, stele.SecondaryLame, 1, "SERVFAIL"},
		} {
			s.secondary.serial.Store(test.serial)
			s.secondary.rcode.Store(test.rcode)
			list := checkedLines(t, test.code, where...)
			if len(list) != 1 || list[0].State != test.want || list[0].Secondary != s.secondary.at || list[0].ZoneAt != serial || !strings.Contains(list[0].Text, test.text) || list[0].Serious != (test.code == 1) {
				t.Errorf("far %v: %+v, want %s", far, list, test.want)
			}
			if test.rcode == 0 && (list[0].Serial == nil || *list[0].Serial != test.serial) {
				t.Errorf("far %v: the secondary has %d: %+v", far, test.serial, list)
			}
		}
		if list := checkedLines(t, 0, append(where, "--local")...); len(list) != 0 {
			t.Errorf("with --local: %+v", list)
		}
		end()
	}
	s.secondary.rcode.Store(0)
	s.secondary.serial.Store(serial)
	if _, out, _ := runProgram(t, "zone", "check", "--data", data, "--notify-allow", "127.0.0.1"); !strings.Contains(out, "ok       "+storyZone+": the secondary "+s.secondary.at+" has serial") {
		t.Errorf("it prints %s", out)
	}
	// At an address that is not allowed it is not asked.
	if list := checkedLines(t, 0, "--data", data); len(list) != 1 || list[0].State != stele.SecondaryUnasked || !strings.Contains(list[0].Text, "notify-allow") {
		t.Errorf("a private address: %+v", list)
	}
	testShutZone(t, s, backup)
}

// testShutZone restores where the serial of the secondary is unknown: the restore, zone
// check, zone ls, zone show and the doctor say that the zone is shut, and what to do.
func testShutZone(t *testing.T, s *story, backup string) {
	t.Helper()
	raise := "stele zone raise " + storyZone + " --above SERIAL"
	nobody := writeConfig(t, `http = "127.0.0.1:1"`) // where none of the machine's servers answers
	for _, secondary := range []struct {
		serial uint32
		allow  string
	}{{7, ""}, {1<<31 + 3, "127.0.0.1"}} {
		s.secondary.serial.Store(secondary.serial)
		fresh := filepath.Join(t.TempDir(), "fresh")
		said := runStele(t, "restore", backup, "--data", fresh, "--notify-allow", secondary.allow)
		if !strings.Contains(said, storyZone+" is shut: ") || !strings.Contains(said, raise) || !strings.Contains(said, "the secondary "+s.secondary.at) {
			t.Errorf("the restore says %s", said)
		}
		if list := checkedLines(t, 1, "--data", fresh, "--local"); len(list) != 1 || list[0].State != zoneIsShut || !strings.Contains(list[0].Text, raise) {
			t.Errorf("zone check says %+v", list)
		}
		for _, verb := range [][]string{{"zone", "ls"}, {"zone", "show", storyZone}, {"doctor", "--dns", "127.0.0.1:1", "--config", nobody}} {
			_, out, _ := runProgram(t, append(verb, "--data", fresh)...)
			_, lines, _ := runProgram(t, append(verb, "--json", "--data", fresh)...)
			if !strings.Contains(out, "shut") || !strings.Contains(lines, "shut") {
				t.Errorf("%q says %s%s", verb, out, lines)
			}
			if verb[1] != "ls" && !strings.Contains(out, raise) {
				t.Errorf("%q does not say what to do: %s", verb, out)
			}
		}
		runStele(t, "zone", "raise", storyZone, "--above", "4000", "--data", fresh)
		if list := checkedLines(t, 0, "--data", fresh, "--local"); len(list) != 0 {
			t.Errorf("after the zone was raised: %+v", list)
		}
	}
}

// runProgram runs the program, whatever it exits with.
func runProgram(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := steleCommand(t, args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}
