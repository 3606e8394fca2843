package main

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServeDNSTwice: a second SIGTERM does no harm if no client waits for an answer.
func TestServeDNSTwice(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.Addr().String()
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	// It answers at a second address, too.
	p := startServe(t, "--data", newRegistry(t), "--http", "127.0.0.1:0", "--dns", address+",127.0.0.2:0", "--notify-source", "127.0.0.3")
	_, second, _ := strings.Cut(p.dns, ",")
	for i := range 8 {
		at := address
		if i%2 == 1 {
			at = second
		}
		conn, err := net.DialTimeout("tcp", at, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if code := p.end(t, syscall.SIGTERM, syscall.SIGTERM); code != exitOK {
		t.Errorf("it exits with %d\n%s", code, p.stderr)
	}
}
