package api

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// bundling lets a site make bundles.
func bundling(t *testing.T) *site {
	s := newSite(t)
	s.signLog()
	s.handler.o.Upkeep.Bundle = func(ctx context.Context, from *registrar.Bundling) (*bundle.Job, error) {
		keys, err := s.whole.LogKeys(ctx)
		return &bundle.Job{From: from, Log: s.whole.Log, Keys: keys, Now: s.now()}, err
	}
	return s
}

// TestBundle: a bundle is whole, and its rest is that of the same bundle.
func TestBundle(t *testing.T) {
	s := bundling(t)
	a := s.ask(theAdmin, "GET", Root+"/bundle", "").want(t, http.StatusOK)
	report, err := bundle.Read(t.Context(), strings.NewReader(a.body), bundle.Options{Schemes: s.schemes, Now: s.now()})
	if err != nil || report.Counts.Records == 0 || a.get("Content-Type") != apijson.Tar {
		t.Fatalf("%v: %+v", err, report)
	}
	state := a.get(apijson.BundleState)
	s.ask(theAdmin, "PUT", Root+"/records/ark:12345/later", `{"url":"https://example.org/later"}`).want(t, http.StatusCreated)
	for _, offset := range []int{0, 1, 511, len(a.body) / 2, len(a.body) - 1, len(a.body), len(a.body) + 5} {
		rest := s.ask(theAdmin, "GET", Root+"/bundle?state="+state+"&offset="+strconv.Itoa(offset), "").want(t, http.StatusOK)
		if want := a.body[min(offset, len(a.body)):]; rest.body != want {
			t.Errorf("from %d on: %d bytes of %d", offset, len(rest.body), len(want))
		}
	}
	part := s.ask(theOwner, "GET", Root+"/bundle?prefix=ark:12345&gzip=true", "").want(t, http.StatusOK)
	if report, err := bundle.Read(t.Context(), strings.NewReader(part.body), bundle.Options{Schemes: s.schemes, Now: s.now()}); err != nil || len(report.Head.Prefixes) != 1 {
		t.Errorf("a part: %v", err)
	}
	// A state is of one bundle, and is what this server gave.
	changed := []byte(state)
	changed[len(changed)/2] ^= 1
	for path, status := range map[string]int{
		"?prefix=ark:12345&state=" + state:            http.StatusConflict,
		"?gzip=true&state=" + state:                   http.StatusConflict,
		"?state=" + string(changed):                   http.StatusConflict,
		"?state=" + newSite(t).handler.sealState(nil): http.StatusConflict,
		"?offset=5":                        http.StatusBadRequest,
		"?prefix=ark:12345+nothing:at-all": http.StatusBadRequest,
	} {
		s.ask(theAdmin, "GET", Root+"/bundle"+path, "").want(t, status)
	}
	// The state of another caller's bundle does not give its content.
	s.ask(theOwner, "GET", Root+"/bundle?state="+state, "").want(t, http.StatusForbidden)
	s.ask(theOwner, "GET", Root+"/bundle?prefix=ark:12345&state="+state, "").want(t, http.StatusConflict)
	for _, who := range []string{theOwner, theEditor, theReader} {
		s.ask(who, "GET", Root+"/bundle", "").want(t, http.StatusForbidden)
	}
	s.ask(theEditor, "GET", Root+"/bundle?prefix=ark:12345", "").want(t, http.StatusForbidden)
	s.ask("", "GET", Root+"/bundle?prefix=ark:12345", "").want(t, http.StatusUnauthorized)
	// They are bounded.
	for range bundlesAtOnce {
		s.handler.bundles <- struct{}{}
	}
	s.ask(theAdmin, "GET", Root+"/bundle", "").want(t, http.StatusTooManyRequests)
}

func TestSkipping(t *testing.T) {
	var b bytes.Buffer
	began := 0
	s := skipping{out: &b, left: 7, first: func() { began++ }}
	for _, text := range []string{"abc", "", "defghij", "kl"} {
		if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if b.String() != "hijkl" || began != 1 {
		t.Errorf("%q, begun %d times", b.String(), began)
	}
}
