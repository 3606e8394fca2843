package api

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

func TestStatus(t *testing.T) {
	s := newSite(t, func(o *Options) {
		o.Upkeep = Upkeep{
			Version:      "v9",
			Disk:         func() (uint64, uint64, error) { return 5, 7, nil },
			Certificates: func() []Certificate { return []Certificate{{"id.example.org", time.Unix(2e9, 0)}} },
			Zones:        func(context.Context) ([]string, error) { return []string{"example.org."}, nil },
		}
	})
	s.token(theReader, s.now().Add(40*24*time.Hour))
	var got apijson.Status
	s.ask(theAdmin, "GET", Root+"/status", "").want(t, 200).read(t, &got)
	last, err := s.store.LastChange(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != "v9" || !got.Ready || got.Changes != last || got.LastChange == nil || got.Namespaces != 3 || got.Disk.Free != 5 || got.Disk.Total != 7 ||
		len(got.Certificates) != 1 || got.Certificates[0].NotAfter.Unix() != 2e9 || got.Zones[0] != "example.org." || len(got.Tokens) != len(s.tokens) || got.Shut != nil {
		t.Errorf("got %+v", got)
	}
	if d := got.Now.Sub(s.now()); d > time.Second || d < -time.Minute {
		t.Errorf("the clock is off by %v", d)
	}
	if err := s.registry.AfterRestore(s.admin); err != nil {
		t.Fatal(err)
	}
	s.ask(theAdmin, "GET", Root+"/status", "").want(t, 200).read(t, &got)
	if len(got.Shut) != 1 || got.Shut[0] != "ark:12345/x5" {
		t.Errorf("got %+v", got.Shut)
	}
	s.ask(theOwner, "GET", Root+"/status", "").want(t, 403)
	s.ask("", "GET", Root+"/status", "").want(t, 401)

	// A figure that can't be read is left out, and the others are there.
	s.handler.o.Upkeep = Upkeep{Disk: func() (uint64, uint64, error) { return 0, 0, errors.New("no disk") }}
	got = apijson.Status{}
	s.ask(theAdmin, "GET", Root+"/status", "").want(t, 200).read(t, &got)
	if got.Disk != nil || !got.Ready {
		t.Errorf("got %+v", got)
	}
}

func TestChanges(t *testing.T) {
	s := newSite(t)
	last, err := s.store.LastChange(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	seen, after := 0, "0"
	for {
		var page apijson.ChangePage
		s.ask(theAdmin, "GET", Root+"/changes?limit=4&after="+after, "").want(t, 200).read(t, &page)
		if page.Last != last || len(page.Items) > 4 {
			t.Fatalf("got %+v", page)
		}
		if len(page.Items) == 0 {
			break
		}
		for _, c := range page.Items {
			if seen++; c.Seq != uint64(seen) || (c.ID == "") == (c.Namespace == "") || c.Version == 0 || c.At.IsZero() {
				t.Errorf("got %+v", c)
			}
		}
		text, err := json.Marshal(page.Items[len(page.Items)-1].Seq)
		if err != nil {
			t.Fatal(err)
		}
		after = string(text)
	}
	if uint64(seen) != last {
		t.Errorf("%d changes of %d", seen, last)
	}
	s.ask(theAdmin, "GET", Root+"/changes?after=-1", "").want(t, 400)
	s.ask(theOwner, "GET", Root+"/changes", "").want(t, 403)
}

func TestVerify(t *testing.T) {
	s := newSite(t)
	read := func(who string, status int) (lines []apijson.Verified) {
		t.Helper()
		a := s.ask(who, "POST", Root+"/verify", "").want(t, status)
		for text := range strings.Lines(a.body) {
			var l apijson.Verified
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, l)
		}
		return lines
	}
	if got := read(theAdmin, 200); len(got) != 1 || !got[0].Done || *got[0].Wrong != 0 || *got[0].Changes == 0 {
		t.Errorf("got %+v", got)
	}
	// A record that no registrar would have written.
	bad, err := stele.NewID("ark", "ark:12345/NOT CANONICAL")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.Apply(s.admin, &stele.Commit{Records: []*stele.Record{{ID: bad, State: stele.Active, Version: 1}}}); err != nil {
		t.Fatal(err)
	}
	got := read(theAdmin, 200)
	if n := len(got); n != 2 || got[0].Note == "" || !got[1].Done || *got[1].Wrong != 0 {
		t.Errorf("a name that would not be accepted today: got %+v", got)
	}
	// A record that breaks a rule that holds for every record.
	bad, err = stele.NewID("ark", "ark:12345/x9")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.Apply(s.admin, &stele.Commit{Records: []*stele.Record{{ID: bad, State: "unheard of", Version: 1}}}); err != nil {
		t.Fatal(err)
	}
	got = read(theAdmin, 200)
	if n := len(got); n != 3 || got[0].Problem+got[1].Problem == "" || !got[2].Done || *got[2].Wrong != 1 {
		t.Errorf("a record that is not valid: got %+v", got)
	}
	s.handler.duties.verify.Lock()
	s.ask(theAdmin, "POST", Root+"/verify", "").want(t, 429)
	s.handler.duties.verify.Unlock()
	s.ask(theOwner, "POST", Root+"/verify", "").want(t, 403)
}
