package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

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

// TestBundles: bundles that were sent are listed to owners, who say which ones they checked.
func TestBundles(t *testing.T) {
	s := bundling(t)
	list := func(who string) (items []apijson.TakenBundle) {
		t.Helper()
		for next := Root + "/bundles?limit=1"; next != ""; {
			var page apijson.TakenBundlesPage
			s.ask(who, "GET", next, "").want(t, http.StatusOK).read(t, &page)
			items = append(items, page.Items...)
			if next = ""; page.Next != "" {
				next = Root + "/bundles?limit=1&cursor=" + page.Next
			}
		}
		return items
	}
	if got := list(theAdmin); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	a := s.ask(theOwner, "GET", Root+"/bundle?prefix=ark:12345&gzip=true", "").want(t, http.StatusOK)
	report, err := bundle.Read(t.Context(), strings.NewReader(a.body), bundle.Options{Schemes: s.schemes, Now: s.now()})
	if err != nil {
		t.Fatal(err)
	}
	manifest := hex.EncodeToString(report.Manifest[:])
	got := list(theOwner)
	if len(got) != 1 || got[0].Prefix != "ark:12345" || got[0].By != theOwner || got[0].Manifest != manifest || got[0].Records != report.Counts.Records || got[0].Records == 0 ||
		got[0].Change != report.Head.Changes || got[0].Wider || !got[0].Checked.IsZero() || s.now().Sub(got[0].Made) > time.Hour {
		t.Fatalf("%+v of %+v", got, report)
	}
	for _, who := range []string{theStranger, theEditor, theOutsider} {
		if got := list(who); len(got) != 0 {
			t.Errorf("%s gets %+v", who, got)
		}
		s.ask(who, "POST", Root+"/bundles", `{"manifest":"`+manifest+`"}`).want(t, http.StatusNotFound)
	}
	s.ask(theOwner, "POST", Root+"/bundles", `{"manifest":"`+strings.Repeat("0", 64)+`"}`).want(t, http.StatusNotFound)
	s.ask(theOwner, "POST", Root+"/bundles", `{"manifest":"`+manifest+`"}`).want(t, http.StatusNoContent)
	if got := list(theOwner); got[0].CheckedBy != theOwner || got[0].CheckedChange != got[0].Change || got[0].Checked.IsZero() {
		t.Errorf("%+v", got)
	}
	s.ask(theAdmin, "GET", Root+"/bundle", "").want(t, http.StatusOK)
	if all := list(theAdmin); len(all) < 3 || all[0].Prefix != "" || !all[0].Wider || len(list(theOwner)) != 1 {
		t.Errorf("%+v", all)
	}
	// One that was refused is not noted.
	s.ask(theStranger, "GET", Root+"/bundle?prefix=ark:12345", "").want(t, http.StatusForbidden)
	if got := list(theStranger); len(got) != 0 {
		t.Errorf("%+v", got)
	}
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

// Whether a caller may have a bundle is judged when it is its turn: for a sealed namespace, that reads all records.
func TestBundleTurns(t *testing.T) {
	s := bundling(t)
	for range cap(s.handler.bundles) {
		s.handler.bundles <- struct{}{}
	}
	for _, method := range []string{"GET", "HEAD"} {
		s.ask(theAdmin, method, Root+"/bundle?prefix=ark:12345", "").want(t, http.StatusTooManyRequests)
	}
	<-s.handler.bundles
	s.ask(theAdmin, "HEAD", Root+"/bundle?prefix=ark:12345", "").want(t, http.StatusOK)
	if len(s.handler.bundles) != cap(s.handler.bundles)-1 {
		t.Error("a turn is not given back")
	}
}
