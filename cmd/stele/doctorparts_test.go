package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/store/pebble"
)

// strangeServer is a web server that is none of ours. It returns its address.
func strangeServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// newTestPatient is an installation of which only what a test sets is known, and what
// is found of it.
func newTestPatient(t *testing.T, roots *x509.CertPool) (*patient, func() []finding) {
	t.Helper()
	var out bytes.Buffer
	p := &program{stdout: &out, stderr: &out, json: true, now: time.Now}
	x := &patient{program: p, config: &config.Config{}, web: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	return x, func() (found []finding) {
		for line := range strings.Lines(out.String()) {
			var f finding
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			found = append(found, f)
		}
		return found
	}
}

// TestDoctorCertificates shows doctor certificates of all kinds, over TLS.
func TestDoctorCertificates(t *testing.T) {
	a, other := certtest.New(t, time.Now), certtest.New(t, time.Now)
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name   string
		issuer *certtest.Authority
		ends   time.Duration
		host   string
		grade  grade
		text   string
	}{
		{"good", a, 90*day + time.Hour, "localhost", gradeOK, "localhost expires in 90 days"},
		{"soon", a, 10*day + time.Hour, "localhost", gradeWarning, "localhost expires in 10 days"},
		{"very soon", a, 2*day + time.Hour, "localhost", gradeProblem, "localhost expires in 2 days"},
		{"expired", a, -time.Minute, "localhost", gradeProblem, "localhost expired on "},
		{"another name", a, 90 * day, "id.example.org", gradeProblem, "is not good: x509: certificate is valid for id.example.org, not localhost"},
		{"another CA", other, 90 * day, "localhost", gradeProblem, "has an unknown issuer"},
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
			x, found := newTestPatient(t, a.Pool)
			x.at, x.config.Base = "certificate", "https://localhost:"+port
			examineCertificate(t.Context(), x)
			if got := found(); len(got) != 1 || !has(got, "certificate", tt.grade, tt.text) {
				t.Errorf("no %q:\n%s", tt.text, show(got))
			}
		})
	}
	x, found := newTestPatient(t, a.Pool)
	x.config.HTTPS = ":443"
	examineCertificate(t.Context(), x)
	if got := found(); !has(got, "", gradeWarning, "set base to https://HOST") {
		t.Errorf("without a base: %s", show(got))
	}
}

// TestDoctorRedirect asks servers that answer in clear.
func TestDoctorRedirect(t *testing.T) {
	for _, tt := range []struct {
		answer http.HandlerFunc
		grade  grade
		text   string
	}{
		{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://localhost/", http.StatusPermanentRedirect)
		}, gradeOK, "leads to https"},
		{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost/a", http.StatusPermanentRedirect)
		}, gradeWarning, "is answered in clear (308"},
		{func(w http.ResponseWriter, r *http.Request) {}, gradeWarning, "set redirect-https"},
	} {
		s := httptest.NewServer(tt.answer)
		defer s.Close()
		x, found := newTestPatient(t, nil)
		x.config.HTTP, x.config.Base = s.Listener.Addr().String(), "https://localhost:1"
		examineRedirect(t.Context(), x)
		if got := found(); !has(got, "", tt.grade, tt.text) {
			t.Errorf("no %q: %s", tt.text, show(got))
		}
	}
	x, found := newTestPatient(t, nil)
	x.config.HTTP, x.config.Base = freeAddress(t), "https://localhost:1"
	examineRedirect(t.Context(), x)
	if got := found(); !has(got, "", gradeWarning, "lead nowhere") {
		t.Errorf("nobody: %s", show(got))
	}
}

// TestDoctorRoom judges disks.
func TestDoctorRoom(t *testing.T) {
	const reserve = pebble.DefaultReserve
	for _, tt := range []struct {
		free, total, size uint64
		grade             grade
		text              string
	}{
		{reserve - 1, 1 << 40, 0, gradeProblem, "255 MiB of 1024 GiB are free, the registry has 0 KiB; nothing is written any more below 256 MiB"},
		{reserve, 1 << 40, 0, gradeWarning, "nothing is written any more"},
		{50 << 30, 2 << 40, 1 << 30, gradeWarning, "nothing is written any more"},
		{5 << 30, 50 << 30, 6 << 30, gradeWarning, "may need as much again"},
		{20 << 30, 50 << 30, 6 << 30, gradeOK, "20 GiB of 50 GiB are free"},
	} {
		x, found := newTestPatient(t, nil)
		x.judgeRoom(tt.free, tt.total, tt.size)
		if got := found(); !has(got, "", tt.grade, tt.text) {
			t.Errorf("no %q: %s", tt.text, show(got))
		}
	}
}

// TestDoctorClock sets clocks wrong.
func TestDoctorClock(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		last   time.Time
		server time.Time
		grade  grade
		text   string
	}{
		{"well", now.Add(-time.Hour), now, gradeOK, "agree"},
		{"a change of tomorrow", now.Add(24 * time.Hour), now, gradeProblem, "2026-05-02T12:00:00Z, which is in the future"},
		{"a server that is late", now, now.Add(-10 * time.Second), gradeWarning, "10s apart"},
		{"a server of next week", now, now.Add(7 * 24 * time.Hour), gradeProblem, "168h0m0s apart"},
	} {
		x, found := newTestPatient(t, nil)
		x.program.now, x.away = func() time.Time { return now }, true
		x.registry = &findings{last: tt.last, status: &remote.Status{Now: tt.server}}
		examineClock(t.Context(), x)
		if got := found(); !has(got, "", tt.grade, tt.text) || len(got) > 2 {
			t.Errorf("%s: no %q: %s", tt.name, tt.text, show(got))
		}
	}
	// Without a token only Date tells, which has seconds.
	for ahead, want := range map[time.Duration]time.Duration{0: 0, -time.Second: 0, time.Hour: time.Hour, -time.Hour: -time.Hour + 2*time.Second} {
		x, _ := newTestPatient(t, nil)
		x.program.now = func() time.Time { return now }
		x.noteClock(&http.Response{Header: http.Header{"Date": {now.Add(ahead).Format(http.TimeFormat)}}}, time.Second)
		if !x.known || x.skew != want {
			t.Errorf("%s ahead is noted as %s", ahead, x.skew)
		}
	}
}

// TestDoctorTokens judges tokens.
func TestDoctorTokens(t *testing.T) {
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
		{"of nobody", used(auth.Token{ID: "t1", User: "gone", Expires: day(1)}), ""},
		{"never used", auth.Token{ID: "t1", User: "ann", Created: day(-100), Expires: day(200)}, "was made 100 days ago and never used"},
		{"new", auth.Token{ID: "t1", User: "ann", Created: day(-1), Expires: day(200)}, ""},
		{"an administrator for ever", used(auth.Token{ID: "t1", User: "root"}), "may do everything, and never expires"},
	} {
		x, found := newTestPatient(t, nil)
		x.program.now = func() time.Time { return now }
		x.registry = &findings{users: users, tokens: []auth.Token{fine, tt.token}}
		examineTokens(t.Context(), x)
		got := found()
		if tt.text != "" && !has(got, "", gradeWarning, tt.text) || tt.text == "" && !has(got, "", gradeOK, "in use") || len(got) != 1 {
			t.Errorf("%s: no %q: %s", tt.name, tt.text, show(got))
		}
	}
	x, found := newTestPatient(t, nil)
	x.registry = &findings{users: users}
	examineTokens(t.Context(), x)
	if got := found(); !has(got, "", gradeWarning, "no administrator has a token") {
		t.Errorf("without any: %s", show(got))
	}
}

// TestDoctorCopies tells of secondaries that get a signed zone without signatures.
func TestDoctorCopies(t *testing.T) {
	for how, told := range map[stele.Signing]bool{stele.SigningOnline: true, stele.SigningTransfer: false, stele.NotSigned: false} {
		x, found := newTestPatient(t, nil)
		x.registry = &findings{namespaces: []*stele.Namespace{{Scheme: "urn", Prefix: "urn:a", Publication: stele.Publication{
			Zone: "a.example.", Signing: how, Secondaries: []stele.Secondary{{Network: "192.0.2.1"}}}}}}
		examineZones(t.Context(), x)
		if got := found(); has(got, "", gradeProblem, "their copies have no signatures") != told {
			t.Errorf("%q: %s", how, show(got))
		}
	}
}

// TestDoctorStatus judges what servers say.
func TestDoctorStatus(t *testing.T) {
	for _, tt := range []struct {
		status remote.Status
		grade  grade
		text   string
	}{
		{remote.Status{Ready: true, Version: version, Changes: 7}, gradeOK, "has 7 changes"},
		{remote.Status{Why: "the disk is full", Version: version}, gradeProblem, "it can't be written: the disk is full"},
		{remote.Status{Ready: true, Version: "v0"}, gradeWarning, "systemctl restart stele"},
		{remote.Status{Ready: true, Version: version, Shut: []string{"ark:12345/x5"}}, gradeWarning, "no names are made in ark:12345/x5"},
	} {
		x, found := newTestPatient(t, nil)
		x.judgeStatus(&tt.status)
		if got := found(); !has(got, "", tt.grade, tt.text) {
			t.Errorf("no %q: %s", tt.text, show(got))
		}
	}
}

// TestDoctorDescriptors: a server that may open few files is told of.
func TestDoctorDescriptors(t *testing.T) {
	data := newRegistry(t)
	cmd := steleCommand(t)
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `ulimit -n 512; exec stele serve --json --http 127.0.0.1:0 --data "$1"`, "sh", data}
	p := startCommand(t, cmd)
	x, found := newTestPatient(t, nil)
	x.program.data, x.config.MaxConnections = data, 10_000
	examineDescriptors(t.Context(), x)
	if got := found(); !has(got, "", gradeWarning, "may have 512 files open, and max-connections is 10000; set LimitNOFILE=12048") {
		t.Errorf("it is not told:\n%s", show(got))
	}
	p.end(t, syscall.SIGTERM)
	if pid, _ := x.holder(); pid != 0 {
		t.Errorf("process %d holds the folder", pid)
	}
	// What a server left that was killed counts for nothing.
	if err := os.WriteFile(filepath.Join(data, "HOLDER"), []byte("process 999999999 since then\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid, _ := x.holder(); pid != 0 {
		t.Errorf("process %d holds the folder", pid)
	}
}

// TestDoctorOthers: a folder of somebody else is not opened.
func TestDoctorOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can give a folder away; one of root is looked at instead")
	}
	data := newRegistry(t)
	if os.Geteuid() == 0 {
		if err := os.Chown(data, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	} else {
		data = "/"
	}
	x, found := newTestPatient(t, nil)
	x.program.data = data
	examineRegistry(context.Background(), x)
	if got := found(); !has(got, "", gradeWarning, "sudo -u stele stele doctor") || x.registry != nil {
		t.Errorf("it is opened:\n%s", show(got))
	}
}
