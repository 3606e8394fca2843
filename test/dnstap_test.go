package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestDNSTap has fstrm_capture collect what the server reports of questions, and BIND's
// dnstap-read decode it. The server runs before the collector does.
func TestDNSTap(t *testing.T) {
	a := newArchive(t)
	folder := t.TempDir()
	socket, file := filepath.Join(folder, "tap.sock"), filepath.Join(folder, "tap")
	s := a.serve("--dns-tap", socket, "--dns-identity", "ns1.example.org")
	dig := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "dig", append([]string{"+norec", "@127.0.0.1", "-p", strconv.Itoa(s.port)}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	dig(archiveZone, "SOA") // the server answers without a collector
	capture := exec.Command("fstrm_capture", "-t", "protobuf:dnstap.Dnstap", "-u", socket, "-w", file)
	said := new(strings.Builder)
	capture.Stdout, capture.Stderr = said, said
	if err := capture.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = capture.Process.Kill()
			_ = capture.Wait()
		}
	})
	// Reports from before the server has found the collector wait for it.
	dig("none."+archiveZone, "NAPTR")
	dig("+tcp", archiveZone, "NS")
	dig(archiveZone, "AXFR")
	question, err := new(dns.Msg).SetQuestion(archiveZone, dns.TypeAXFR).Pack()
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		_ = capture.Process.Signal(syscall.SIGHUP) // to write what it has
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, question[12:]) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it was not collected\n%s", said)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := capture.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err = capture.Wait()
	ended = true
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	out, err := exec.CommandContext(t.Context(), "dnstap-read", "-y", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"type: AUTH_RESPONSE", "type: AUTH_QUERY", "identity: ns1.example.org", "socket_family: INET", "socket_protocol: UDP", "socket_protocol: TCP",
		"query_address: \"127.0.0.1\"", "status: NXDOMAIN", archiveZone + " IN AXFR", archiveZone + " IN NS",
	} {
		if !strings.Contains(strings.ReplaceAll(string(out), "\t", " "), want) {
			t.Errorf("there is no %s in\n%s", want, out)
		}
	}
}
