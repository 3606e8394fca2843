package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// testDNS: all servers have the same serials, and answer what was written last.
func (c *cluster) testDNS(t *testing.T) {
	c.namespace("urn:zoned", stele.Minter{}, stele.Publication{
		Zone: "zoned.example.", Layout: stele.LayoutNames, Separator: ":", Parts: 1,
		Servers: []stele.NameServer{{Name: "ns.zoned.example.", Addresses: []string{"192.0.2.1"}}},
	})
	const naptr = 35
	for round := range 5 {
		match := ""
		if round > 0 {
			match = fmt.Sprintf(`"v%d"`, round)
		}
		url := fmt.Sprintf("https://example.org/round%d", round)
		c.put(c.servers[round%3], "urn:zoned:x1", url, match)
		for i, s := range c.servers {
			eventually(t, fmt.Sprintf("server %d answers %s", i, url), func() bool {
				return bytes.Contains(askDNS(t, s.dns, "x1.zoned.example.", naptr), []byte(url))
			})
		}
		eventually(t, "all serials agree", func() bool {
			first := serialOf(t, c.servers[0].dns, "zoned.example.")
			return first == serialOf(t, c.servers[1].dns, "zoned.example.") && first == serialOf(t, c.servers[2].dns, "zoned.example.")
		})
	}
	last, err := c.servers[0].Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := serialOf(t, c.servers[2].dns, "zoned.example."); uint64(got) != last.Changes {
		t.Errorf("the serial is %d after %d changes", got, last.Changes)
	}
	askDNS(t, c.servers[0].dns, "x1.zoned.example.", naptr) // so that it is known: the server may have heard of the last change again meanwhile
	resume := c.database.Pause(t)
	defer resume()
	if got := firstAnswered(t, c.servers[0].dns, naptr, "x2.zoned.example.", "x3.zoned.example.", "x1.zoned.example."); got != "x1.zoned.example." {
		t.Errorf("%s is answered first: what is known waits for a database that hangs", got)
	}
}

// firstAnswered asks a name server for several names from one socket, and returns the one that is answered first.
func firstAnswered(t *testing.T, server string, kind uint16, names ...string) string {
	t.Helper()
	conn, err := net.Dial("udp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i, name := range names {
		if _, err := conn.Write(dnsQuestion(uint16(i), name, kind)); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil || n < 12 || int(binary.BigEndian.Uint16(buf)) >= len(names) {
		t.Fatalf("%x, %v", buf[:n], err)
	}
	return names[binary.BigEndian.Uint16(buf)]
}

// serialOf asks a name server for the serial of a zone.
func serialOf(t *testing.T, server, zone string) uint32 {
	t.Helper()
	answer := askDNS(t, server, zone, 6)
	if len(answer) < 32 || answer[7] != 1 {
		t.Fatalf("%x", answer)
	}
	// The SOA record stands first in the answer: its name is a pointer to the question.
	at := 12 + len(zone) + 1 + 4
	end := at + 12 + int(binary.BigEndian.Uint16(answer[at+10:]))
	return binary.BigEndian.Uint32(answer[end-20:])
}

// dnsQuestion is a message that asks for a name.
func dnsQuestion(number uint16, name string, kind uint16) []byte {
	q := append(binary.BigEndian.AppendUint16(nil, number), 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	q = binary.BigEndian.AppendUint16(append(q, 0), kind)
	return binary.BigEndian.AppendUint16(q, 1)
}

// askDNS asks a name server a question, and returns its message.
func askDNS(t *testing.T, server, name string, kind uint16) []byte {
	t.Helper()
	q := dnsQuestion(1, name, kind)
	conn, err := net.Dial("udp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	buf := make([]byte, 4096)
	for range 5 { // a datagram may get lost
		if _, err := conn.Write(q); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
		if n, err := conn.Read(buf); err == nil {
			return buf[:n]
		}
	}
	t.Fatalf("%s does not answer", server)
	return nil
}
