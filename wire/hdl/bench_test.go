package hdl_test

import (
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

// BenchmarkResolve reads a resolve request and writes its answer of four values, as a server does: into memory that it
// uses again.
func BenchmarkResolve(b *testing.B) {
	rec := find(b, "client 7.3.1: resolve")
	request := rec[0].octets
	recorded, err := hdl.Parse(rec[1].octets)
	if err != nil {
		b.Fatal(err)
	}
	var answer hdl.ValuesBody
	if err := answer.Decode(recorded.Body); err != nil {
		b.Fatal(err)
	}
	var q hdl.ResolveRequest
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		m, err := hdl.Parse(request)
		if err != nil {
			b.Fatal(err)
		}
		if err := q.Decode(m.Body); err != nil {
			b.Fatal(err)
		}
		e, h := m.Envelope, m.Header
		e.Version, e.Suggested = e.AnswerVersion(), hdl.Latest()
		h.Response, h.Flags = hdl.Success, h.Flags|hdl.Authoritative
		buf = hdl.BeginMessage(buf[:0], &e, &h)
		buf = hdl.AppendHandle(buf, q.Handle)
		buf = hdl.AppendValues(buf, answer.Values)
		buf = hdl.EndMessage(buf, 0)
	}
}

// BenchmarkSession computes both numbers of one session on the server's side.
func BenchmarkSession(b *testing.B) {
	v := vectors(b, "sessions.txt")
	client, err := hdl.ParsePublicKey(v["client_dh_pub_key"])
	if err != nil {
		b.Fatal(err)
	}
	random := make(pattern, 64)
	for b.Loop() {
		side, err := hdl.NewDH(client.DH.P, client.DH.G, random)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := side.Shared(client.DH); err != nil {
			b.Fatal(err)
		}
	}
}

// pattern is a source of octets that never ends.
type pattern []byte

func (pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i)*7 + 1
	}
	return len(b), nil
}

// TestResolveAllocates: a server that answers a request for all values of a handle allocates nothing for the message.
func TestResolveAllocates(t *testing.T) {
	request := find(t, "client 7.3.1: resolve")[0].octets
	var q hdl.ResolveRequest
	buf := make([]byte, 0, 1024)
	values := []hdl.Value{{Index: 1, Type: []byte("URL"), Data: []byte("https://example.org/1")}}
	n := testing.AllocsPerRun(100, func() {
		m, err := hdl.Parse(request)
		if err != nil || q.Decode(m.Body) != nil {
			t.Fatal(err)
		}
		buf = hdl.BeginMessage(buf[:0], &m.Envelope, &m.Header)
		buf = hdl.AppendValues(hdl.AppendHandle(buf, q.Handle), values)
		buf = hdl.EndMessage(buf, 0)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
