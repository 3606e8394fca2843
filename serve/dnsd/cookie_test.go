package dnsd

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSipHash uses the example of the paper's appendix A, and neighbours of it from
// the reference implementation.
func TestSipHash(t *testing.T) {
	var key [16]byte
	msg := make([]byte, 15)
	for i := range key {
		key[i] = byte(i)
	}
	for i := range msg {
		msg[i] = byte(i)
	}
	if got := sipHash(newSipKey(key), msg); got != 0xa129ca6149be45e5 {
		t.Errorf("%x", got)
	}
	if got := sipHash(newSipKey(key), nil); got != 0x726fdb47dd0e0e31 {
		t.Errorf("of nothing: %x", got)
	}
}

// TestCookieVectors are those of RFC 9018, appendix A. The cookie of A.3 is genuine,
// reserved bytes and all, but older than an hour.
func TestCookieVectors(t *testing.T) {
	const first, second, third = "e5e973e5a6b2a43f48e7dc849e37bfcf", "dd3bdf9344b678b185a6f5cb60fca715", "445536bcd2513298075a5d379663c962"
	tests := []struct {
		section    string
		secrets    []string
		from       string
		now        int64
		sent, want string
		good       bool
	}{
		{"A.1", []string{first}, "198.51.100.100", 1559731985, "2464c4abcf10c957", "2464c4abcf10c957010000005cf79f111f8130c3eee29480", false},
		{"A.2", []string{first}, "198.51.100.100", 1559734385, "2464c4abcf10c957010000005cf79f111f8130c3eee29480", "2464c4abcf10c957010000005cf7a871d4a564a1442aca77", true},
		{"A.3", []string{first}, "203.0.113.203", 1559734700, "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5", "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e", false},
		{"A.4", []string{third, second}, "2001:db8:220:1:59de:d0f4:8769:82b8", 1559741961, "22681ab97d52c298010000005cf7c57926556bd0934c72f8", "22681ab97d52c298010000005cf7c609a6bb79d16625507a", true},
	}
	for _, test := range tests {
		var secrets []CookieSecret
		for _, s := range test.secrets {
			secrets = append(secrets, CookieSecret(unhex(t, s)))
		}
		if sent := unhex(t, test.sent); len(sent) == cookieSize && !genuine(newSipKey(secrets[len(secrets)-1]), sent, netip.MustParseAddr(test.from)) {
			t.Errorf("%s: the cookie that was sent is not genuine", test.section)
		}
		now := time.Unix(test.now, 0)
		got, good := newJar(secrets, now).answer(nil, unhex(t, test.sent), netip.MustParseAddr(test.from), now)
		if test.section == "A.4" {
			// There the old secret has just been replaced, and the RFC's server renews at
			// once; ours believes the cookie until it is half an hour old.
			if hex.EncodeToString(got) != test.sent || !good {
				t.Errorf("A.4: %x %v", got, good)
			}
			got, good = newJar(secrets, now).answer(nil, unhex(t, test.sent[:16]), netip.MustParseAddr(test.from), now)
			good = !good
		}
		if hex.EncodeToString(got) != test.want || good != test.good {
			t.Errorf("%s: %x %v, want %s %v", test.section, got, good, test.want, test.good)
		}
	}
}

func TestCookieJudgement(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	me, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	j := newJar(nil, at)
	made, good := j.answer(nil, []byte("12345678"), me, at)
	if good || len(made) != cookieSize {
		t.Fatalf("%x %v", made, good)
	}
	change := func(i int) []byte {
		b := append([]byte(nil), made...)
		b[i] ^= 1
		return b
	}
	tests := []struct {
		what string
		sent []byte
		from netip.Addr
		now  time.Time
		good bool
		same bool
	}{
		{"as it was", made, me, at, true, true},
		{"29 minutes later", made, me, at.Add(29 * time.Minute), true, true},
		{"half an hour later", made, me, at.Add(30 * time.Minute), true, false},
		{"an hour later", made, me, at.Add(time.Hour), true, false},
		{"more than an hour later", made, me, at.Add(time.Hour + time.Second), false, false},
		{"5 minutes before", made, me, at.Add(-5 * time.Minute), true, true},
		{"more than 5 minutes before", made, me, at.Add(-5*time.Minute - time.Second), false, false},
		{"from elsewhere", made, other, at, false, false},
		{"another client cookie", change(0), me, at, false, false},
		{"another version", change(8), me, at, false, false},
		{"another reserved byte", change(9), me, at, false, false},
		{"another time", change(15), me, at, false, false},
		{"another hash", change(23), me, at, false, false},
		{"client cookie alone", made[:8], me, at, false, false},
		{"shorter", made[:16], me, at, false, false},
		{"longer", append(change(23), 1), me, at, false, false},
	}
	for _, test := range tests {
		got, good := j.answer(nil, test.sent, test.from, test.now)
		if good != test.good || (string(got) == string(test.sent)) != test.same {
			t.Errorf("%s: good %v, want %v; %x", test.what, good, test.good, got)
		}
		if again, _ := newJar(nil, at).answer(nil, test.sent, test.from, test.now); string(again[8:]) == string(got[8:]) {
			t.Errorf("%s: two servers make the same cookie", test.what)
		}
	}
}

func TestCookieSecretsChange(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	me := netip.MustParseAddr("192.0.2.1")
	j := newJar(nil, at)
	evening := at.Add(cookieSecret - time.Minute)
	made, _ := j.answer(nil, []byte("12345678"), me, evening)
	if _, good := j.answer(nil, made, me, at.Add(cookieSecret+time.Minute)); !good {
		t.Error("a cookie of the secret before is not believed")
	}
	fresh, _ := j.answer(nil, []byte("12345678"), me, evening)
	if string(fresh) == string(made) {
		t.Error("the secret did not change")
	}
	j.current(at.Add(2*cookieSecret + time.Hour))
	if _, good := j.answer(nil, made, me, evening); good {
		t.Error("a cookie of the last but one secret is believed")
	}
}

// withCookie asks with a cookie in hexadecimal.
func withCookie(m *dns.Msg, cookie string) *dns.Msg {
	m.SetEdns0(1232, false)
	o := m.IsEdns0()
	o.Option = append(o.Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie})
	return m
}

// cookieIn returns the cookie in an answer.
func cookieIn(m *dns.Msg) string {
	if o := m.IsEdns0(); o != nil {
		for _, option := range o.Option {
			if c, ok := option.(*dns.EDNS0_COOKIE); ok {
				return c.Cookie
			}
		}
	}
	return ""
}

func TestCookiesInMessages(t *testing.T) {
	d := newOfflineServer(t, Options{})
	const client = "2464c4abcf10c957"
	r := d.ask(withCookie(question("paradisec.example.", dns.TypeSOA), client), someone)
	cookie := cookieIn(r)
	if len(cookie) != 2*cookieSize || cookie[:16] != client || brief(r) != "NOERROR aa answer:SOA additional:OPT" {
		t.Fatalf("%s: %v", cookie, r)
	}
	if n := d.s.Stats().Cookies; n != 0 {
		t.Errorf("%d good cookies before there was one", n)
	}
	if r = d.ask(withCookie(question("paradisec.example.", dns.TypeSOA), cookie), someone); cookieIn(r) != cookie {
		t.Errorf("a good cookie is answered with %s", cookieIn(r))
	}
	if r = d.ask(withCookie(question("paradisec.example.", dns.TypeSOA), cookie), neighbor); cookieIn(r) == cookie {
		t.Error("a cookie of another client is accepted")
	}
	if n := d.s.Stats().Cookies; n != 1 {
		t.Errorf("%d good cookies, want 1", n)
	}
	// Of two the first counts.
	m := withCookie(question("paradisec.example.", dns.TypeSOA), client)
	m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "ffffffffffffffff"})
	if r = d.ask(m, someone); cookieIn(r)[:16] != client {
		t.Errorf("of two cookies %s was answered", cookieIn(r))
	}
}

// TestCookieAlone asks for a cookie without a question (RFC 7873, section 5.4).
func TestCookieAlone(t *testing.T) {
	d := newOfflineServer(t, Options{})
	m := withCookie(new(dns.Msg), "2464c4abcf10c957")
	r := d.ask(m, someone)
	if got := brief(r); got != "NOERROR additional:OPT" || len(cookieIn(r)) != 2*cookieSize || len(r.Question) != 0 {
		t.Errorf("%s\n%v", got, r)
	}
	m = new(dns.Msg)
	m.SetEdns0(1232, false)
	if got := brief(d.ask(m, someone)); got != "FORMERR additional:OPT" {
		t.Errorf("without a cookie: %s", got)
	}
}

// TestKeepalive is for TCP only (RFC 7828, section 3.2.1).
func TestKeepalive(t *testing.T) {
	d := newOfflineServer(t, Options{})
	m := question("paradisec.example.", dns.TypeSOA)
	m.SetEdns0(1232, false)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}}
	told := func(from peer) (n int) {
		for _, o := range d.ask(m, from).IsEdns0().Option {
			if k, ok := o.(*dns.EDNS0_TCP_KEEPALIVE); ok {
				n = int(k.Timeout)
			}
		}
		return n
	}
	if n := told(caller); n != 100 {
		t.Errorf("told %d tenths of a second, want 100", n)
	}
	if n := told(someone); n != 0 {
		t.Errorf("told %d over UDP", n)
	}
}

func FuzzCookie(f *testing.F) {
	f.Add([]byte("12345678"), []byte{192, 0, 2, 1}, uint32(1_700_000_000))
	f.Add(unhex(f, "2464c4abcf10c957010000005cf79f111f8130c3eee29480"), []byte{198, 51, 100, 100}, uint32(1559731985))
	j := newJar([]CookieSecret{CookieSecret(unhex(f, "e5e973e5a6b2a43f48e7dc849e37bfcf"))}, time.Unix(0, 0))
	f.Fuzz(func(t *testing.T, sent, addr []byte, at uint32) {
		if len(sent) < clientCookieSize || len(sent) > 40 {
			return
		}
		from, _ := netip.AddrFromSlice(addr)
		now := time.Unix(int64(at), 0)
		got, good := j.answer(nil, sent, from, now)
		if len(got) != cookieSize || string(got[:8]) != string(sent[:8]) {
			t.Fatalf("%x for %x", got, sent)
		}
		if _, again := j.answer(nil, got, from, now); !again {
			t.Fatalf("%x is not believed at once", got)
		}
		if made := binary.BigEndian.Uint32(got[12:]); good && int32(at-made) < -300 {
			t.Fatalf("%x from the future", got)
		}
	})
}
