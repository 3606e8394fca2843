package desk

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

// TestBundle: administrators download all names, owners theirs, and others none.
func TestBundle(t *testing.T) {
	s := newSite(t)
	_, private := must2(ed25519.GenerateKey(rand.Reader))(t)
	keys := &transparency.Keys{Origin: "names.example.org/.log", List: []transparency.SigningKey{{Private: private, Created: s.now}}}
	log := transparency.New(transparency.Options{Source: s.store, Cells: s.r, Random: rand.Reader, Now: s.handler.o.Now, Log: slog.New(slog.DiscardHandler),
		Listed: func(ctx context.Context) (transparency.Listed, error) { return s.r.Public(ctx) }})
	s.handler.o.Bundle = func(_ context.Context, from *registrar.Bundling) (*bundle.Job, error) {
		return &bundle.Job{From: from, Log: log, Keys: keys, Now: s.now}, nil
	}
	for _, test := range []struct {
		who, query string
		status     int
	}{
		{"admin", "", 200}, {"admin", "?prefix=ark:12345/x5", 200}, {"olga", "?prefix=ark:12345/x5", 200},
		{"olga", "", 403}, {"ed", "?prefix=ark:12345/x5", 403}, {"sam", "?prefix=ark:12345/x5", 403},
	} {
		p := s.as(test.who).get("/.desk/bundle.tgz" + test.query).has(test.status)
		if test.status != 200 {
			continue
		}
		report, err := bundle.Read(t.Context(), strings.NewReader(p.text), bundle.Options{Schemes: s.names, Keys: keys.Public(), Now: s.now})
		if err != nil || report.Counts.Namespaces != 1 {
			t.Errorf("%s %s: %v", test.who, test.query, err)
		}
	}
	// The page of a namespace says which bundle was the last one, and when one was checked.
	const page = "/.desk/keeping?namespace=ark%3A12345%2Fx5"
	s.as("olga").get(page).has(200, "The last bundle was made", "<bdi>olga</bdi>: 0 records, up to change", "No check of a bundle was noted.")
	olga := auth.With(t.Context(), auth.Principal{Name: "olga"})
	last := must(s.r.TakenOf(olga, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}))(t)
	if err := s.r.NoteChecked(olga, last.Manifest); err != nil {
		t.Fatal(err)
	}
	if p := s.as("olga").get(page).has(200, "A bundle was last checked", "by <bdi>olga</bdi>, up to change"); strings.Contains(p.text, "other namespaces") {
		t.Error("a bundle of the namespace is said to have others")
	}
	s.now = s.now.Add(time.Minute)
	s.as("admin").get("/.desk/bundle.tgz").has(200)
	s.as("olga").get(page).has(200, "<bdi>admin</bdi>: 0 records", "It has the names of other namespaces, too.", "by <bdi>olga</bdi>, up to change")
	if p := s.as("ed").get(page).has(200); strings.Contains(p.text, "undle was") {
		t.Error("an editor sees what an owner may see")
	}
	// A user who reads slowly holds only themselves up.
	if !s.handler.bundles.take("olga") {
		t.Fatal("a bundle that was sent is still counted")
	}
	s.as("olga").get("/.desk/bundle.tgz?prefix=ark:12345/x5").has(429)
	s.as("admin").get("/.desk/bundle.tgz").has(200)
	s.handler.bundles.free("olga")
	s.as("olga").get("/.desk/bundle.tgz?prefix=ark:12345/x5").has(200)
	for n := range bundlesAtOnce {
		s.handler.bundles.take(strconv.Itoa(n))
	}
	s.as("admin").get("/.desk/bundle.tgz").has(429)
}

// TestBundleHead: HEAD says what the user may have, and makes no bundle.
func TestBundleHead(t *testing.T) {
	s := newSite(t)
	s.handler.o.Bundle = func(context.Context, *registrar.Bundling) (*bundle.Job, error) {
		t.Error("a bundle was made")
		return nil, errors.New("there is none")
	}
	for user, status := range map[string]int{"admin": 200, "olga": 403} {
		b := s.as(user)
		p := b.do(must(http.NewRequest(http.MethodHead, b.url+"/.desk/bundle.tgz", nil))(t))
		if p.StatusCode != status || status == 200 && p.Header.Get("Content-Type") != "application/gzip" {
			t.Errorf("%s got %s %v", user, p.Status, p.Header)
		}
	}
}

// TestBundleTime: a bundle is not sent for ever, however slowly the client reads.
func TestBundleTime(t *testing.T) {
	s := newSite(t)
	w := httptest.NewRecorder()
	out := &patientWriter{&call{h: s.handler, w: w}, http.NewResponseController(w), s.now.Add(bundleTime)}
	if _, err := out.Write([]byte("a")); err != nil {
		t.Error(err)
	}
	s.now = s.now.Add(bundleTime)
	if _, err := out.Write([]byte("b")); !errors.Is(err, os.ErrDeadlineExceeded) || w.Body.String() != "a" {
		t.Errorf("got %v and %q", err, w.Body)
	}
}

func must2[A, B any](a A, b B, err error) func(testing.TB) (A, B) {
	return func(t testing.TB) (A, B) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a, b
	}
}
