package hdld

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// TestShares: a client that floods the server with requests which it never answers for loses its own, and datagrams from
// addresses that may be forged do not push out requests that came by connections.
func TestShares(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Limits.Challenges = 160 })
	now := time.Now()
	add := func(from string, octets int, forgeable bool) uint32 {
		c := &challenge{ends: now.Add(challengeLife), octets: octets, from: netip.MustParseAddr(from), forgeable: forgeable}
		if err := f.challenges.add(c, f.number, now); err != nil {
			t.Fatal(err)
		}
		return c.id
	}
	first := add("192.0.2.1", 1000, false)
	for range 1000 {
		add("192.0.2.2", 1000, false)
	}
	if n := len(f.challenges.byID); n != 1+160/challengeShare {
		t.Errorf("%d requests wait", n)
	}
	for i := range 1000 {
		add(fmt.Sprintf("2001:db8:0:%x::1", i), 1000, true)
	}
	if n := len(f.challenges.byID); n != 160 {
		t.Errorf("%d requests wait", n)
	}
	for range 10 {
		add("192.0.2.3", challengeOctets/challengeShare-100, false)
	}
	if own := f.challenges.byClient["192.0.2.3"]; own.order.Len() != 1 {
		t.Errorf("%d large requests of one client wait", own.order.Len())
	}
	if f.challenges.take(first, now) == nil {
		t.Error("the first client's request was forgotten")
	}
	f.challenges.take(0, now.Add(challengeLife))
	if len(f.challenges.byID)+len(f.challenges.byClient)+f.challenges.octets+f.challenges.datagram.Len()+f.challenges.stream.Len() != 0 {
		t.Errorf("something is left of what has ended: %+v", f.challenges)
	}
}

// replacing is an operation in whose middle the key of the client is replaced.
type replacing struct {
	operation
	replace func()
}

func (r *replacing) claim(context.Context, handles.Identity) error { return nil }

func (r *replacing) authorise(context.Context, handles.Identity) error {
	r.replace()
	return nil
}

func (r *replacing) run(context.Context, *call, handles.Identity) error { return nil }

// TestKeyReplacedInProof: a key that is replaced right after it has proved who a client is does not let the session go on under the
// next key, whether the client named the value or not.
func TestKeyReplacedInProof(t *testing.T) {
	for _, index := range []uint32{300, 0} {
		f := newFixture(t)
		n := f.newSession(false)
		id, err := f.schemes.Parse("hdl:20.500.99999/USER01")
		if err != nil {
			t.Fatal(err)
		}
		put := func(secret string) {
			if _, err := f.registrar.Update(f.admin, id, 0, func(rec *stele.Record) error {
				rec.Values = []stele.HandleValue{{Index: 300, Type: "HS_SECKEY", Data: []byte(secret), Permissions: stele.AdminRead | stele.AdminWrite}}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		put("the first secret")
		q := &call{session: n, via: viaTCP, from: netip.MustParseAddrPort("192.0.2.1:1000")}
		q.m.Envelope.Version = hdl.Latest()
		digest := hdl.RequestDigest(hdl.DigestFor(hdl.Latest()), &q.m)
		c := &challenge{op: &replacing{replace: func() { put("the next secret") }}, what: hdl.DeleteHandle, nonce: make([]byte, nonceSize), digest: digest.Sum, ends: time.Now().Add(challengeLife)}
		if err := f.challenges.add(c, f.number, time.Now()); err != nil {
			t.Fatal(err)
		}
		n.wait(c.id)
		answer, err := hdl.AnswerBySecret(hdl.Latest(), []byte("the first secret"), c.nonce, digest, make([]byte, 16))
		if err != nil {
			t.Fatal(err)
		}
		q.m.Body = (&hdl.AnswerRequest{Type: []byte(hdl.TypeSecretKey), Identity: hdl.Reference{Handle: "20.500.99999/USER01", Index: index}, Answer: answer}).Append(nil, hdl.Latest())
		if err := f.answered(t.Context(), q); err != nil {
			t.Fatal(index, err)
		}
		who, ok := n.identity()
		if !ok || who.Index != 300 {
			t.Fatalf("the session is that of %v (%t)", who, ok)
		}
		if err := f.stillProves(t.Context(), n, who); handles.CodeOf(err) != hdl.SessionExpired {
			t.Errorf("index %d: the session goes on: %v", index, err)
		}
	}
}
