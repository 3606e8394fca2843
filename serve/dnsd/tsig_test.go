package dnsd

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
)

// signedBy has the library of others sign a question, at a time.
func signedBy(t testing.TB, m *dns.Msg, name, algorithm string, secret []byte, at time.Time) []byte {
	t.Helper()
	m.SetTsig(name, algorithm, 300, at.Unix())
	wire, _, err := dns.TsigGenerate(m, base64.StdEncoding.EncodeToString(secret), "", false)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// TestWrongSignatures checks that wrong keys, signatures and times are told apart (RFC
// 8945, section 5.2), and that a question with one is not answered.
func TestWrongSignatures(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	k := p.AddTSIGKey("one.example.org", zonekey.TSIGSHA256)
	other := p.AddTSIGKey("two.example.org", zonekey.TSIGSHA256)
	p.SetSecondaries("urn:paradisec", stele.Secondary{Key: k.Name})
	s := serve(p, Options{})
	now := time.Now()
	ask := func(qtype uint16, from peer, wire []byte) *dns.Msg {
		t.Helper()
		w := s.newWorker(t.Context(), s.tcp)
		answer := w.respond(make([]byte, 0, maxMessage), wire, from, now)
		r := new(dns.Msg)
		if err := r.Unpack(answer); err != nil {
			t.Fatal(err)
		}
		return r
	}
	const sha256 = dns.HmacSHA256
	for _, test := range []struct {
		about, name, algorithm string
		secret                 []byte
		at                     time.Time
		rcode                  int
		code                   uint16
	}{
		{"good", k.Name, sha256, k.Secret, now, dns.RcodeSuccess, 0},
		{"good, in another case", "ONE.example.ORG.", sha256, k.Secret, now, dns.RcodeSuccess, 0},
		{"the clock is a little behind", k.Name, sha256, k.Secret, now.Add(-299 * time.Second), dns.RcodeSuccess, 0},
		{"the clock is a little ahead", k.Name, sha256, k.Secret, now.Add(299 * time.Second), dns.RcodeSuccess, 0},
		{"sent again later", k.Name, sha256, k.Secret, now.Add(-302 * time.Second), dns.RcodeNotAuth, dns.RcodeBadTime},
		{"from the future", k.Name, sha256, k.Secret, now.Add(302 * time.Second), dns.RcodeNotAuth, dns.RcodeBadTime},
		{"the secret of another key", k.Name, sha256, other.Secret, now, dns.RcodeNotAuth, dns.RcodeBadSig},
		{"no such key", "none.example.org.", sha256, k.Secret, now, dns.RcodeNotAuth, dns.RcodeBadKey},
		{"another algorithm", k.Name, dns.HmacSHA512, k.Secret, now, dns.RcodeNotAuth, dns.RcodeBadKey},
		{"SHA-1", k.Name, dns.HmacSHA1, k.Secret, now, dns.RcodeNotAuth, dns.RcodeBadKey},
	} {
		for _, from := range []peer{someone, caller} {
			m := question("paradisec.example.", dns.TypeSOA)
			wire := signedBy(t, m, test.name, test.algorithm, test.secret, test.at)
			r := ask(dns.TypeSOA, from, wire)
			sig := r.IsTsig()
			if r.Rcode != test.rcode || sig == nil || sig.Error != test.code || len(r.Answer) > 0 != (test.rcode == dns.RcodeSuccess) {
				t.Errorf("%s: %v", test.about, r)
				continue
			}
			signed := test.code == 0 || test.code == dns.RcodeBadTime
			if signed != (sig.MACSize > 0) {
				t.Errorf("%s: a signature of %d bytes", test.about, sig.MACSize)
			}
			if test.code == dns.RcodeBadTime && (sig.OtherLen != 6 || sig.TimeSigned != uint64(test.at.Unix())) {
				t.Errorf("%s: it does not tell the time: %v", test.about, sig)
			}
		}
	}
	// One bit of the question is enough.
	wire := signedBy(t, question("paradisec.example.", dns.TypeSOA), k.Name, sha256, k.Secret, now)
	wire[13] ^= 0x20
	if r := ask(dns.TypeSOA, someone, wire); r.IsTsig() == nil || r.IsTsig().Error != dns.RcodeBadSig {
		t.Errorf("a changed question: %v", r)
	}
	if n := s.Stats().Signatures; n != 2*6+1 {
		t.Errorf("%d wrong signatures were counted", n)
	}
}

// TestReplayedTransfer checks that a replayed request for a transfer is refused after the
// time for which its signature is good.
func TestReplayedTransfer(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	k := p.AddTSIGKey("one.example.org", zonekey.TSIGSHA256)
	p.SetSecondaries("urn:paradisec", stele.Secondary{Key: k.Name})
	s := serve(p, Options{})
	for _, test := range []struct {
		ago  time.Duration
		want int
	}{{0, dns.RcodeSuccess}, {10 * time.Minute, dns.RcodeNotAuth}} {
		wire := signedBy(t, new(dns.Msg).SetAxfr("paradisec.example."), k.Name, dns.HmacSHA256, k.Secret, time.Now().Add(-test.ago))
		c := dial(t, s)
		conn := &dns.Conn{Conn: c}
		if _, err := conn.Write(wire); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, maxMessage)
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		var r dns.Msg
		if err := r.Unpack(buf[:n]); err != nil || r.Rcode != test.want || len(r.Answer) > 0 != (test.want == 0) {
			t.Errorf("%v ago: %v, %v", test.ago, err, &r)
		}
	}
}

func TestTSIGKeys(t *testing.T) {
	p := publishtest.New(t)
	keys := &zonekey.TSIGManager{Store: p.Registrar, Now: time.Now, Random: strings.NewReader(strings.Repeat("0123456789", 100))}
	a, err := keys.Add(p.Ctx, "A.example.org", zonekey.TSIGSHA512)
	if err != nil || a.Name != "a.example.org." || len(a.Secret) != 64 {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := keys.Add(p.Ctx, "b.example.org.", zonekey.TSIGSHA256); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, algorithm string
		want            stele.Kind
	}{
		{"a.example.org.", zonekey.TSIGSHA256, stele.Conflict},
		{"c.example.org", "hmac-md5", stele.Invalid},
		{"c.example.org", "hmac-sha1", stele.Invalid},
		{"", zonekey.TSIGSHA256, stele.Invalid},
		{"c d", zonekey.TSIGSHA256, stele.Invalid},
		{"a..b", zonekey.TSIGSHA256, stele.Invalid},
		{strings.Repeat("a.", 200), zonekey.TSIGSHA256, stele.Invalid},
	} {
		if _, err := keys.Add(p.Ctx, test.name, test.algorithm); !errors.Is(err, test.want) {
			t.Errorf("%q, %s: %v", test.name, test.algorithm, err)
		}
	}
	if _, err := keys.Retire(p.Ctx, "c.example.org"); !errors.Is(err, stele.NotFound) {
		t.Error(err)
	}
	if _, err := keys.Retire(p.Ctx, "a.example.org"); err != nil {
		t.Error(err)
	}
	if _, err := keys.Add(p.Ctx, "a.example.org", zonekey.TSIGSHA256); !errors.Is(err, stele.Conflict) {
		t.Error("the name of a retired key was given again:", err)
	}
	list, err := keys.List(p.Ctx)
	if err != nil || len(list) != 2 || list[0].Retired.IsZero() || !list[1].Retired.IsZero() || list[1].Secret != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if k, err := p.Zones.TSIGKey(p.Ctx, "a.example.org."); k != nil || err != nil {
		t.Errorf("%v, %v", k, err)
	}
	if k, err := p.Zones.TSIGKey(p.Ctx, "b.example.org."); k == nil || err != nil {
		t.Errorf("%v, %v", k, err)
	}
}
