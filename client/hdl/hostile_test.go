package hdlclient

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// impostor answers over UDP and TCP with what answer makes of a request; nil: nothing.
func impostor(t *testing.T, answer func(q *hdl.Message) [][]byte) netip.AddrPort {
	t.Helper()
	var tcp net.Listener
	var udp net.PacketConn
	for {
		var err error
		if tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if udp, err = net.ListenPacket("udp", tcp.Addr().String()); err == nil {
			break
		}
		tcp.Close()
	}
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		buffer := make([]byte, 1024)
		for {
			n, from, err := udp.ReadFrom(buffer)
			if err != nil {
				return
			}
			if q, err := hdl.Parse(bytes.Clone(buffer[:n])); err == nil {
				for _, b := range answer(&q) {
					_, _ = udp.WriteTo(b, from)
				}
			}
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			if raw, err := hdl.ReadMessage(c); err == nil {
				if q, err := hdl.Parse(raw); err == nil {
					for _, b := range answer(&q) {
						_, _ = c.Write(b)
					}
				}
			}
			c.Close()
		}
	}()
	t.Cleanup(func() { tcp.Close(); udp.Close(); <-done; <-done })
	return tcp.Addr().(*net.TCPAddr).AddrPort()
}

// fake makes an answer to a request, with its digest.
func fake(q *hdl.Message, code hdl.ResponseCode, body []byte) hdl.Message {
	m := hdl.Message{Envelope: q.Envelope, Header: q.Header, Body: append(hdl.RequestDigest(hdl.SHA256, q).Append(nil), body...)}
	m.Envelope.Version = hdl.Latest()
	m.Header.Response, m.Header.Flags = code, hdl.ReturnDigest
	return m
}

func values(handle string) []byte {
	b := hdl.ValuesBody{Handle: []byte(handle), Values: []hdl.Value{value(1, "URL", "https://forged.example/")}}
	return b.Append(nil, hdl.Latest())
}

// What a malicious server answers is refused, and asking ends in time.
func TestHostile(t *testing.T) {
	one := func(m hdl.Message) [][]byte { return [][]byte{m.Append(nil)} }
	for name, tt := range map[string]struct {
		answer func(q *hdl.Message) [][]byte
		kind   stele.Kind
		want   string
	}{
		"silence": {func(*hdl.Message) [][]byte { return nil }, stele.Unavailable, ""},
		"noise":   {func(*hdl.Message) [][]byte { return [][]byte{bytes.Repeat([]byte{7}, 40)} }, stele.Unavailable, ""},
		"a huge length": {func(q *hdl.Message) [][]byte {
			m := fake(q, hdl.Success, values(prefix+"/X"))
			b := m.Append(nil)
			binary.BigEndian.PutUint32(b[16:], 1<<31)
			return [][]byte{b}
		}, stele.Unavailable, ""},
		"a length that never comes": {func(q *hdl.Message) [][]byte {
			m := fake(q, hdl.Success, values(prefix+"/X"))
			b := m.Append(nil)
			binary.BigEndian.PutUint32(b[16:], hdl.MaxMessage)
			return [][]byte{b}
		}, stele.Unavailable, ""},
		"another request": {func(q *hdl.Message) [][]byte {
			m := fake(q, hdl.Success, values(prefix+"/X"))
			m.Envelope.Request++
			return one(m)
		}, stele.Unavailable, ""},
		"another operation": {func(q *hdl.Message) [][]byte {
			m := fake(q, hdl.Success, nil)
			m.Header.Operation = hdl.DeleteHandle
			return one(m)
		}, stele.Unavailable, "another operation"},
		"another handle": {func(q *hdl.Message) [][]byte { return one(fake(q, hdl.Success, values(prefix+"/Y"))) }, stele.Conflict, "another handle"},
		"no digest": {func(q *hdl.Message) [][]byte {
			m := fake(q, hdl.Success, nil)
			m.Header.Flags, m.Body = 0, values(prefix+"/X")
			return one(m)
		}, stele.Conflict, "digest"},
		"the digest of another request": {func(q *hdl.Message) [][]byte {
			other := *q
			other.Header.Expiration++
			m := fake(&other, hdl.Success, values(prefix+"/X"))
			return one(m)
		}, stele.Conflict, "digest"},
		"a later version": {func(q *hdl.Message) [][]byte {
			m := fake(q, hdl.Success, values(prefix+"/X"))
			m.Envelope.Version = hdl.Version{Major: 3}
			return one(m)
		}, stele.Unavailable, "version 3.0"},
		"an empty referral": {func(q *hdl.Message) [][]byte { return one(fake(q, hdl.ServiceReferral, make([]byte, 4))) }, stele.Unavailable, "does not say to which one"},
		"a referral to itself": {func(q *hdl.Message) [][]byte {
			b := hdl.ReferralBody{Handle: []byte("0.SITE/x")}
			return one(fake(q, hdl.ServiceReferral, b.Append(nil, hdl.Latest())))
		}, stele.Unavailable, "circle"},
		"a challenge": {func(q *hdl.Message) [][]byte {
			b := hdl.ChallengeBody{Nonce: make([]byte, 16)}
			return one(fake(q, hdl.Challenged, b.Append(nil, hdl.Latest())))
		}, stele.Unauthenticated, "prove who they are"},
		"a text for terminals": {func(q *hdl.Message) [][]byte {
			b := hdl.ErrorBody{Text: []byte("\x1b[31m" + strings.Repeat("x", 1000))}
			return one(fake(q, hdl.NotPermitted, b.Append(nil, hdl.Latest())))
		}, stele.Forbidden, `\x1b[31mxxx`},
		"always busy": {func(q *hdl.Message) [][]byte { return one(fake(q, hdl.ServerBusy, nil)) }, stele.Unavailable, "busy"},
		"always 2":    {func(q *hdl.Message) [][]byte { return one(fake(q, hdl.ServerError, nil)) }, stele.Unavailable, "response code 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := impostor(t, tt.answer)
			o := Options{Server: &Place{Host: at.Addr().String(), Port: at.Port()}, Now: time.Now, Rand: rand.Reader, Timeout: time.Minute,
				Resends: []time.Duration{50 * time.Millisecond, 50 * time.Millisecond}}
			if tt.want == "" { // the client waits for a better answer
				o.Timeout = 300 * time.Millisecond
			}
			c, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Resolve(t.Context(), Query{Handle: prefix + "/X"})
			if err == nil || stele.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%+v, %v; want %v, %s", got, err, tt.kind, tt.want)
			}
		})
	}
}

// An answer that is not signed is refused where the key of the site is known, and does not make the client answer a challenge.
func TestForged(t *testing.T) {
	w := newWorld(t)
	at := impostor(t, func(q *hdl.Message) [][]byte {
		m := fake(q, hdl.Success, values(prefix+"/X"))
		if q.Header.Operation != hdl.Resolve {
			b := hdl.ChallengeBody{Nonce: make([]byte, 16)}
			m = fake(q, hdl.Challenged, b.Append(nil, hdl.Latest()))
		}
		return [][]byte{m.Append(nil)}
	})
	site := w.site
	site.Servers = []hdl.Server{{Key: w.keys["srv_pubkey"], Interfaces: []hdl.Interface{{Type: 3, Protocol: hdl.UDP, Port: uint32(at.Port())}, {Type: 3, Protocol: hdl.TCP, Port: uint32(at.Port())}}}}
	site.Servers[0].SetAddr(at.Addr())
	c := w.client(func(o *Options) { o.Sites = []hdl.Site{site} })
	if got, err := c.Resolve(t.Context(), Query{Handle: prefix + "/X"}); stele.KindOf(err) != stele.Conflict {
		t.Errorf("%+v, %v", got, err)
	}
	for _, without := range []bool{false, true} {
		if err := w.administrator(c, AdministratorOptions{NoSession: without}).Delete(t.Context(), prefix+"/X"); stele.KindOf(err) != stele.Conflict {
			t.Errorf("without session %v: %v", without, err)
		}
	}
}

// A certified answer in a lower version than that of the site is refused: it may be an old one that was sent again, since 2.0 has no
// digest of the request. If the user's site file says that version, it is accepted.
func TestDowngraded(t *testing.T) {
	w := newWorld(t)
	key := w.key("srv_privkey_file")
	for _, tt := range []struct {
		site, answer hdl.Version
		named        bool // the server is known by its address only
		want         string
	}{
		{hdl.Latest(), hdl.Latest(), false, ""},
		{hdl.Latest(), hdl.Version{Major: 2, Minor: 0}, false, "version 2.0, and 2.11 was asked for"},
		{hdl.Latest(), hdl.Version{Major: 2, Minor: 5}, false, "version 2.5, and 2.11 was asked for"},
		{hdl.Version{Major: 2, Minor: 5}, hdl.Version{Major: 2, Minor: 0}, false, "version 2.0, and 2.5 was asked for"},
		{hdl.Version{Major: 2, Minor: 5}, hdl.Version{Major: 2, Minor: 5}, false, ""},
		{hdl.Version{Major: 2, Minor: 0}, hdl.Version{Major: 2, Minor: 0}, false, ""},
		{hdl.Latest(), hdl.Version{Major: 2, Minor: 0}, true, "version 2.0, and 2.3 was asked for"},
	} {
		name := fmt.Sprintf("site %s, answer %s, named %v", version(tt.site), version(tt.answer), tt.named)
		at := impostor(t, func(q *hdl.Message) [][]byte {
			m := fake(q, hdl.Success, values(prefix+"/X"))
			m.Envelope.Version = tt.answer
			if tt.answer.Before(1) {
				m.Header.Flags, m.Body = 0, values(prefix+"/X")
			}
			if err := m.Sign(key, 0, nil); err != nil {
				t.Error(err)
			}
			return [][]byte{m.Append(nil)}
		})
		site := w.site
		site.Version = tt.site
		site.Servers = []hdl.Server{{Key: w.keys["srv_pubkey"], Interfaces: []hdl.Interface{{Type: 3, Protocol: hdl.UDP, Port: uint32(at.Port())}}}}
		site.Servers[0].SetAddr(at.Addr())
		c := w.client(func(o *Options) {
			if o.Sites = []hdl.Site{site}; tt.named {
				o.Sites, o.Server = nil, &Place{Host: at.Addr().String(), Port: at.Port()}
			}
		})
		got, err := c.Resolve(t.Context(), Query{Handle: prefix + "/X"})
		switch {
		case tt.want == "" && (err != nil || !got.Certified):
			t.Errorf("%s: %+v, %v", name, got, err)
		case tt.want != "" && (stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %+v, %v; want %s", name, got, err, tt.want)
		}
	}
	// A site that the user did not give does not make the client ask without a digest.
	for _, given := range []bool{false, true} {
		m, err := w.client().message(&server{given: given, version: hdl.Version{Major: 2}}, &request{operation: hdl.Resolve, body: &hdl.ResolveRequest{Handle: []byte("1/x")}})
		if err != nil || (m.Header.Flags&hdl.ReturnDigest == 0) != given {
			t.Errorf("given %v: the flags are %x, %v", given, m.Header.Flags, err)
		}
	}
}

// The client does not answer a challenge whose answer could be a proof for something else: by the size of the nonce, or by that of the
// digest, which is the size of nonces with MD5.
func TestOddChallenge(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		nonce  int
		digest hdl.DigestCode
		want   string
	}{
		{0, hdl.SHA256, "a nonce of 0 octets"},
		{12, hdl.SHA1, "a nonce of 12 octets"},
		{32, hdl.SHA256, "a nonce of 32 octets"},
		{16, hdl.MD5, "by MD5"},
		{16, hdl.SHA256, ""},
	} {
		var answered atomic.Int32
		at := impostor(t, func(q *hdl.Message) [][]byte {
			if q.Header.Operation == hdl.AnswerChallenge {
				answered.Add(1)
				m := fake(q, hdl.NotAuthenticated, nil)
				return [][]byte{m.Append(nil)}
			}
			b := hdl.ChallengeBody{Nonce: make([]byte, tt.nonce)}
			m := fake(q, hdl.Challenged, nil)
			m.Body = append(hdl.RequestDigest(tt.digest, q).Append(nil), b.Append(nil, hdl.Latest())...)
			return [][]byte{m.Append(nil)}
		})
		site := w.site
		site.Servers = []hdl.Server{{Interfaces: []hdl.Interface{{Type: 3, Protocol: hdl.TCP, Port: uint32(at.Port())}}}}
		site.Servers[0].SetAddr(at.Addr())
		c := w.client(func(o *Options) { o.Sites = []hdl.Site{site} })
		err := w.administrator(c, AdministratorOptions{NoSession: true}).Delete(t.Context(), prefix+"/X")
		switch {
		case tt.want == "" && answered.Load() != 1:
			t.Errorf("an ordinary challenge was answered %d times: %v", answered.Load(), err)
		case tt.want != "" && (stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), tt.want) || answered.Load() != 0):
			t.Errorf("%d octets, digest %d: answered %d times: %v", tt.nonce, tt.digest, answered.Load(), err)
		}
	}
}

// A change to which no answer comes is not sent again.
func TestMaybeDone(t *testing.T) {
	w := newWorld(t)
	var asked atomic.Int32
	at := impostor(t, func(q *hdl.Message) [][]byte {
		if q.Header.Operation == hdl.DeleteHandle {
			asked.Add(1)
		}
		return nil
	})
	site := w.site
	site.Servers = []hdl.Server{{Interfaces: []hdl.Interface{{Type: 3, Protocol: hdl.TCP, Port: uint32(at.Port())}, {Type: 3, Protocol: hdl.UDP, Port: uint32(at.Port())}}}}
	site.Servers[0].SetAddr(at.Addr())
	c := w.client(func(o *Options) { o.Sites = []hdl.Site{site} })
	err := w.administrator(c, AdministratorOptions{NoSession: true}).Delete(t.Context(), prefix+"/X")
	if stele.KindOf(err) != stele.Unavailable || !errors.Is(err, errMaybeDone) || asked.Load() != 1 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// A change is not sent again after a failure that the server did not certify for this request, nor after an answer that cannot be
// read: an attacker on the way may have made it. After one that it certified, it is.
func TestForgedFailure(t *testing.T) {
	w := newWorld(t)
	key := w.key("srv_privkey_file")
	signed := func(m hdl.Message) [][]byte {
		if err := m.Sign(key, 0, nil); err != nil {
			t.Error(err)
		}
		return [][]byte{m.Append(nil)}
	}
	for name, tt := range map[string]struct {
		answer func(q *hdl.Message) [][]byte
		maybe  bool
	}{
		"not signed": {func(q *hdl.Message) [][]byte {
			m := fake(q, hdl.ServerError, nil)
			return [][]byte{m.Append(nil)}
		}, true},
		"not readable": {func(*hdl.Message) [][]byte {
			m := hdl.Unparsable(hdl.ServerError, "no", uint32(time.Now().Add(time.Hour).Unix()))
			return [][]byte{m.Append(nil)}
		}, true},
		"another operation": {func(q *hdl.Message) [][]byte {
			m := fake(q, hdl.Success, nil)
			m.Header.Operation = hdl.EndSession
			return signed(m)
		}, true},
		"signed for another request": {func(q *hdl.Message) [][]byte {
			other := *q
			other.Header.Expiration++
			return signed(fake(&other, hdl.ServerError, nil))
		}, true},
		"signed": {func(q *hdl.Message) [][]byte { return signed(fake(q, hdl.ServerError, nil)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			at := impostor(t, func(q *hdl.Message) [][]byte {
				asked.Add(1)
				return tt.answer(q)
			})
			site := w.site
			site.Servers = []hdl.Server{{Key: w.keys["srv_pubkey"], Interfaces: []hdl.Interface{{Type: 3, Protocol: hdl.TCP, Port: uint32(at.Port())}, {Type: 3, Protocol: hdl.UDP, Port: uint32(at.Port())}}}}
			site.Servers[0].SetAddr(at.Addr())
			c := w.client(func(o *Options) { o.Sites = []hdl.Site{site, site} })
			err := w.administrator(c, AdministratorOptions{NoSession: true}).Delete(t.Context(), prefix+"/X")
			if stele.KindOf(err) != stele.Unavailable || errors.Is(err, errMaybeDone) != tt.maybe || (asked.Load() == 1) != tt.maybe {
				t.Errorf("asked %d times: %v", asked.Load(), err)
			}
		})
	}
}

// A forged answer that a session has ended does not make the client send a change again in another one.
func TestForgedSessionEnd(t *testing.T) {
	w := newWorld(t)
	a := w.administrator(w.client(), AdministratorOptions{})
	if _, err := a.Create(t.Context(), prefix+"/ENDED", []hdl.Value{value(1, "URL", "https://e.example/"), admins()}, CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	at := impostor(t, func(q *hdl.Message) [][]byte {
		asked.Add(1)
		m := fake(q, hdl.SessionExpired, nil)
		return [][]byte{m.Append(nil)}
	})
	for _, o := range a.sessions {
		s := *o.server
		s.doors = []hdl.Interface{{Type: 3, Protocol: hdl.TCP, Port: uint32(at.Port())}}
		o.server = &s
		_, err := a.at(t.Context(), a.walk(nil), &s, &request{operation: hdl.DeleteHandle, handle: prefix + "/ENDED", write: true, admin: true, body: &hdl.HandleBody{Handle: []byte(prefix + "/ENDED")}})
		if !errors.Is(err, errMaybeDone) || codeOf(err) != hdl.SessionExpired || asked.Load() != 1 {
			t.Errorf("asked %d times: %v", asked.Load(), err)
		}
	}
}

// A context that ends, ends the request at once.
func TestCanceled(t *testing.T) {
	at := impostor(t, func(*hdl.Message) [][]byte { return nil })
	c, err := New(Options{Server: &Place{Host: at.Addr().String(), Port: at.Port()}, Now: time.Now, Rand: rand.Reader, Resends: []time.Duration{time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Resolve(ctx, Query{Handle: prefix + "/X"}); stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "no answer in time") {
		t.Error(err)
	}
}

// FuzzRead reads any octets as the answer to a request.
func FuzzRead(f *testing.F) {
	c, err := New(Options{Server: &Place{Host: "127.0.0.1", Port: 1}, Now: func() time.Time { return time.Unix(0, 0) }, Rand: bytes.NewReader(make([]byte, 1<<20))})
	if err != nil {
		f.Fatal(err)
	}
	s := &server{version: hdl.Latest()}
	r := &request{operation: hdl.Resolve, handle: "1/x", body: &hdl.ResolveRequest{Handle: []byte("1/x")}}
	sent, err := c.message(s, r)
	if err != nil {
		f.Fatal(err)
	}
	good := fake(sent, hdl.Success, values("1/x"))
	f.Add(good.Append(nil))
	refusal := fake(sent, hdl.HandleNotFound, make([]byte, 4))
	f.Add(refusal.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if raw, err := hdl.ReadMessage(bytes.NewReader(data)); err == nil && !bytes.HasPrefix(data, raw) {
			t.Error("another message was read than the one that came")
		} else if err != nil && len(raw) > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d octets with an error: %v", len(raw), err)
		}
		got, err := c.read(s, r, sent, data, netip.AddrPort{})
		if err == nil && (got == nil || got.body == nil) {
			t.Error("an answer without a body")
		}
	})
}
