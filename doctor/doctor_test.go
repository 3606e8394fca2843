package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/store/pebble"
)

// newTestSubject is an installation of which only what a test sets is known, and what is
// found of it.
func newTestSubject(roots *x509.CertPool) (*subject, func() []Finding) {
	var found []Finding
	x := newSubject(Options{Config: &config.Config{}, Now: time.Now, Roots: roots, Version: "test", Token: func() (string, error) { return "", nil }}, func(f Finding) error {
		found = append(found, f)
		return nil
	})
	return x, func() []Finding { return found }
}

// has reports whether something of a kind was found.
func has(found []Finding, check string, g Grade, text string) bool {
	return slices.ContainsFunc(found, func(f Finding) bool {
		return f.Check == check && f.Grade == g && strings.Contains(f.What+"; "+f.Do, text)
	})
}

// TestCertificates shows doctor certificates of all kinds, over TLS.
func TestCertificates(t *testing.T) {
	a, other := certtest.New(t, time.Now), certtest.New(t, time.Now)
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name   string
		issuer *certtest.Authority
		ends   time.Duration
		host   string
		grade  Grade
		text   string
	}{
		{"good", a, 90*day + time.Hour, "localhost", OK, "localhost expires in 90 days"},
		{"soon", a, 10*day + time.Hour, "localhost", Warning, "localhost expires in 10 days"},
		{"very soon", a, 2*day + time.Hour, "localhost", Problem, "localhost expires in 2 days"},
		{"expired", a, -time.Minute, "localhost", Problem, "localhost expired on "},
		{"another name", a, 90 * day, "id.example.org", Problem, "is not good: x509: certificate is valid for id.example.org, not localhost"},
		{"another CA", other, 90 * day, "localhost", Problem, "has an unknown issuer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cert, key := tt.issuer.Issue(t, t.TempDir(), tt.ends, 1, tt.host)
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
			s.StartTLS()
			defer s.Close()
			_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
			x, found := newTestSubject(a.Pool)
			x.at, x.Config.Base = "certificate", "https://localhost:"+port
			examineCertificate(t.Context(), x)
			if got := found(); len(got) != 1 || !has(got, "certificate", tt.grade, tt.text) {
				t.Errorf("no %q:\n%v", tt.text, got)
			}
		})
	}
	x, found := newTestSubject(a.Pool)
	x.Config.HTTPS = ":443"
	examineCertificate(t.Context(), x)
	if got := found(); !has(got, "", Warning, "set base to https://HOST") {
		t.Errorf("without a base: %v", got)
	}
}

// TestRedirect asks servers that answer in clear.
func TestRedirect(t *testing.T) {
	for _, tt := range []struct {
		answer http.HandlerFunc
		grade  Grade
		text   string
	}{
		{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://localhost/", http.StatusPermanentRedirect)
		}, OK, "leads to https"},
		{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost/a", http.StatusPermanentRedirect)
		}, Warning, "is answered in clear (308"},
		{func(w http.ResponseWriter, r *http.Request) {}, Warning, "set redirect-https"},
	} {
		s := httptest.NewServer(tt.answer)
		defer s.Close()
		x, found := newTestSubject(nil)
		x.Config.HTTP, x.Config.Base = s.Listener.Addr().String(), "https://localhost:1"
		examineRedirect(t.Context(), x)
		if got := found(); !has(got, "", tt.grade, tt.text) {
			t.Errorf("no %q: %v", tt.text, got)
		}
	}
	x, found := newTestSubject(nil)
	x.Config.HTTP, x.Config.Base = "127.0.0.1:1", "https://localhost:1"
	examineRedirect(t.Context(), x)
	if got := found(); !has(got, "", Warning, "lead nowhere") {
		t.Errorf("no server: %v", got)
	}
}

// TestPasswords: passwords need https.
func TestPasswords(t *testing.T) {
	for base, text := range map[string]string{"": "does not know its public address", "http://id.example.org": "anyone between them", "https://id.example.org": "", "http://localhost:8080": ""} {
		x, found := newTestSubject(nil)
		x.Config.Base, x.Config.Passwords = base, true
		x.judgePasskeys(nil)
		if got := found(); text == "" && len(got) > 0 || text != "" && !has(got, "", Warning, text) {
			t.Errorf("%s: %v", base, got)
		}
	}
}

// TestPasskeys: passkeys need https, and are for one host.
func TestPasskeys(t *testing.T) {
	for _, tt := range []struct {
		base  string
		sites []string
		text  string
	}{
		{"", nil, ""},
		{"https://id.example.org", []string{"id.example.org"}, ""},
		{"http://localhost:8080", nil, ""},
		{"http://id.example.org", nil, "offers no passkeys"},
		{"https://new.example.org:8443", []string{"id.example.org", "new.example.org"}, "there are passkeys for id.example.org, and base has the host new.example.org"},
	} {
		x, found := newTestSubject(nil)
		x.Config.Base = tt.base
		x.judgePasskeys(tt.sites)
		if got := found(); tt.text == "" && len(got) > 0 || tt.text != "" && !has(got, "", Warning, tt.text) {
			t.Errorf("%s: %v", tt.base, got)
		}
	}
}

// TestRoom judges disks.
func TestRoom(t *testing.T) {
	const reserve = pebble.DefaultReserve
	for _, tt := range []struct {
		free, total, size uint64
		grade             Grade
		text              string
	}{
		{reserve - 1, 1 << 40, 0, Problem, "255 MiB of 1024 GiB are free, the registry has 0 KiB; nothing is written any more below 256 MiB"},
		{reserve, 1 << 40, 0, Warning, "nothing is written any more"},
		{50 << 30, 2 << 40, 1 << 30, Warning, "nothing is written any more"},
		{5 << 30, 50 << 30, 6 << 30, Warning, "may need as much again"},
		{20 << 30, 50 << 30, 6 << 30, OK, "20 GiB of 50 GiB are free"},
	} {
		x, found := newTestSubject(nil)
		x.judgeRoom(tt.free, tt.total, tt.size)
		if got := found(); !has(got, "", tt.grade, tt.text) {
			t.Errorf("no %q: %v", tt.text, got)
		}
	}
}

// TestClock sets clocks wrong.
func TestClock(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		last   time.Time
		server time.Time
		grade  Grade
		text   string
	}{
		{"well", now.Add(-time.Hour), now, OK, "agree"},
		{"a change of tomorrow", now.Add(24 * time.Hour), now, Problem, "2026-05-02T12:00:00Z, which is in the future"},
		{"a server that is late", now, now.Add(-10 * time.Second), Warning, "10s apart"},
		{"a server of next week", now, now.Add(7 * 24 * time.Hour), Problem, "168h0m0s apart"},
	} {
		x, found := newTestSubject(nil)
		x.Now, x.Away = func() time.Time { return now }, true
		x.registry = &findings{last: tt.last, status: &apijson.Status{Now: tt.server}}
		examineClock(t.Context(), x)
		if got := found(); !has(got, "", tt.grade, tt.text) || len(got) > 2 {
			t.Errorf("%s: no %q: %v", tt.name, tt.text, got)
		}
	}
	// Without a token only the header Date shows the time, in seconds.
	for ahead, want := range map[time.Duration]time.Duration{0: 0, -time.Second: 0, time.Hour: time.Hour, -time.Hour: -time.Hour + 2*time.Second} {
		x, _ := newTestSubject(nil)
		x.Now = func() time.Time { return now }
		x.noteClock(&http.Response{Header: http.Header{"Date": {now.Add(ahead).Format(http.TimeFormat)}}}, time.Second)
		if !x.known || x.skew != want {
			t.Errorf("%s ahead is noted as %s", ahead, x.skew)
		}
	}
}

// TestTokens judges tokens.
func TestTokens(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	users := map[string]auth.User{"root": {Name: "root", Admin: true}, "ann": {Name: "ann"}, "gone": {Name: "gone", Disabled: true}}
	used := func(t auth.Token) auth.Token { t.Created, t.LastUse = day(-300), day(-1); return t }
	fine := used(auth.Token{ID: "fine", User: "root", Expires: day(200)})
	for _, tt := range []struct {
		name  string
		token auth.Token
		text  string // of a warning; "" for none
	}{
		{"fine", used(auth.Token{ID: "t1", User: "ann", Expires: day(31)}), ""},
		{"for ever", used(auth.Token{ID: "t1", User: "ann"}), ""},
		{"expires", used(auth.Token{ID: "t1", User: "ann", Label: "nightly", Expires: day(12)}), `token t1 of ann ("nightly") expires in 12 days; make another in time, with a token that lasts longer or where the registry is: stele token create ann; then stele token revoke t1`},
		{"expired", used(auth.Token{ID: "t1", User: "ann", Expires: day(-1)}), ""},
		{"revoked", used(auth.Token{ID: "t1", User: "ann", Expires: day(1), Revoked: day(-1)}), ""},
		{"of a disabled user", used(auth.Token{ID: "t1", User: "gone", Expires: day(1)}), ""},
		{"never used", auth.Token{ID: "t1", User: "ann", Created: day(-100), Expires: day(200)}, "was made 100 days ago and never used"},
		{"new", auth.Token{ID: "t1", User: "ann", Created: day(-1), Expires: day(200)}, ""},
		{"an administrator for ever", used(auth.Token{ID: "t1", User: "root"}), "may do everything, and never expires"},
	} {
		x, found := newTestSubject(nil)
		x.Now = func() time.Time { return now }
		x.registry = &findings{users: users, tokens: []auth.Token{fine, tt.token}}
		examineTokens(t.Context(), x)
		got := found()
		if tt.text != "" && !has(got, "", Warning, tt.text) || tt.text == "" && !has(got, "", OK, "in use") || len(got) != 1 {
			t.Errorf("%s: no %q: %v", tt.name, tt.text, got)
		}
	}
	x, found := newTestSubject(nil)
	x.registry = &findings{users: users}
	examineTokens(t.Context(), x)
	if got := found(); !has(got, "", Warning, "no administrator has a token") {
		t.Errorf("without any: %v", got)
	}
}

// TestCopies holds that doctor reports secondaries that get a signed zone without signatures.
func TestCopies(t *testing.T) {
	for how, told := range map[stele.Signing]bool{stele.SigningOnline: true, stele.SigningTransfer: false, stele.NotSigned: false} {
		x, found := newTestSubject(nil)
		x.registry = &findings{namespaces: []*stele.Namespace{{Scheme: "urn", Prefix: "urn:a", Publication: stele.Publication{
			Zone: "a.example.", Signing: how, Secondaries: []stele.Secondary{{Network: "192.0.2.1"}}}}}}
		examineZones(t.Context(), x)
		if got := found(); has(got, "", Problem, "their copies have no signatures") != told {
			t.Errorf("%q: %v", how, got)
		}
	}
}

// TestStatus judges what servers say.
func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		status apijson.Status
		grade  Grade
		text   string
	}{
		{apijson.Status{Ready: true, Version: "test", Changes: 7}, OK, "has 7 changes"},
		{apijson.Status{Why: "the disk is full", Version: "test"}, Problem, "it can't be written: the disk is full"},
		{apijson.Status{Ready: true, Version: "v0"}, Warning, "systemctl restart stele"},
		{apijson.Status{Ready: true, Version: "test", Shut: []string{"ark:12345/x5"}}, Warning, "no names are made in ark:12345/x5"},
	} {
		x, found := newTestSubject(nil)
		x.judgeStatus(&tt.status)
		if got := found(); !has(got, "", tt.grade, tt.text) {
			t.Errorf("no %q: %v", tt.text, got)
		}
	}
}

// TestOtherOwner: a folder of another user is not opened.
func TestOtherOwner(t *testing.T) {
	data := t.TempDir()
	store, err := pebble.Open(t.Context(), data, pebble.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Log("only root can give a folder away; one of root is looked at instead")
		data = "/"
	} else if err := os.Chown(data, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	x, found := newTestSubject(nil)
	x.Place.Folder = data
	x.Open = func(context.Context, func(context.Context, *registry.Registry) error) error {
		t.Error("it is opened")
		return nil
	}
	examineRegistry(t.Context(), x)
	if got := found(); !has(got, "", Warning, "sudo -u stele stele doctor") || x.registry != nil {
		t.Errorf("found %v", got)
	}
}

// TestHolder: doctor ignores the mark that a killed server left in the folder.
func TestHolder(t *testing.T) {
	x, _ := newTestSubject(nil)
	x.Place.Folder = t.TempDir()
	for text, want := range map[string]int{"process 999999999 since then\n": 0, fmt.Sprintf("process %d since then\n", os.Getpid()): os.Getpid(), "": 0} {
		if err := os.WriteFile(filepath.Join(x.Place.Folder, "HOLDER"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if pid, _ := x.holder(); pid != want {
			t.Errorf("%q: process %d holds the folder", text, pid)
		}
	}
}

// TestWhereTheServerIs: doctor asks the server that has the folder open, where that server says it answers,
// and does not take the answer of another server for its own.
func TestWhereTheServerIs(t *testing.T) {
	alive := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/plain") }
	ours, other := httptest.NewServer(http.HandlerFunc(alive)), httptest.NewServer(http.HandlerFunc(alive))
	defer ours.Close()
	defer other.Close()
	running := fmt.Sprintf("process %d since then\n", os.Getpid())
	for _, tt := range []struct {
		name, remark, base string
		grade              Grade
		text               string
		answers            bool
	}{
		{"it wrote its address", running + "serving " + ours.URL + "\n", "", OK, ours.URL + " answers", true},
		{"it wrote its public address", running + "serving https://id.example.org\n", "https://id.example.org", OK, other.URL + " answers", true},
		{"it wrote no address", running, "", OK, other.URL + " answers", true},
		{"it was killed", "process 999999999 since then\nserving " + ours.URL + "\n", "", OK, other.URL + " answers", true},
		{"no process has the folder", "", "", Problem, "the server at " + other.URL + " has another registry", false},
	} {
		x, found := newTestSubject(nil)
		x.Place.Folder, x.Config.HTTP = t.TempDir(), other.Listener.Addr().String()
		if tt.base != "" { // it answers nothing here
			x.Config.Base = tt.base
			x.web.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				if address != other.Listener.Addr().String() {
					return nil, errors.New("asked " + address)
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			}
		}
		if tt.remark != "" {
			if err := os.WriteFile(filepath.Join(x.Place.Folder, pebble.HolderFile), []byte(tt.remark), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		examineServer(t.Context(), x)
		if got := found(); !has(got, "", tt.grade, tt.text) || x.answers != tt.answers {
			t.Errorf("%s: answers %t: %v", tt.name, x.answers, got)
		}
	}
}
