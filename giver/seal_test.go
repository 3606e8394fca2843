package giver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// A bundle opens a namespace as long as the giver says that it is sealed for this registry, by the same seal.
func TestSeals(t *testing.T) {
	const own = "heir.example.org/.log"
	since := time.Date(2031, 5, 2, 10, 0, 0, 123456789, time.UTC)
	one, two := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	spaces := func(state stele.HandOverState) (list []registrar.AdoptedSpace) {
		for _, key := range []stele.NamespaceKey{one, two} {
			list = append(list, registrar.AdoptedSpace{Key: key, HandOver: stele.HandOver{State: state, Heir: own, Address: "https://heir.example.org/", Since: since}})
		}
		return list
	}
	says := func(change ...func(d *apijson.NamespaceHandOver)) map[stele.NamespaceKey]*apijson.NamespaceHandOver {
		list := make(map[stele.NamespaceKey]*apijson.NamespaceHandOver)
		for _, key := range []stele.NamespaceKey{one, two} {
			at := since
			d := &apijson.NamespaceHandOver{Registry: giverName, Scheme: key.Scheme, Prefix: key.Prefix, State: "sealed", Heir: own, Since: &at}
			for _, c := range change {
				c(d)
			}
			list[key] = d
		}
		return list
	}
	later := since.Add(time.Millisecond)
	again := func(d *apijson.NamespaceHandOver) { d.Since = &later }
	forwarded := func(d *apijson.NamespaceHandOver) { d.State = "forwarded" }
	down := errors.New("nothing answers")
	half := says()
	delete(half, two)
	for what, c := range map[string]struct {
		state stele.HandOverState
		said  map[stele.NamespaceKey]*apijson.NamespaceHandOver
		err   error
		sure  bool
		code  string
	}{
		"the seal":                    {said: says()},
		"the seal in an era":          {said: says(func(d *apijson.NamespaceHandOver) { d.Registry = giverName + "/g2" })},
		"forwarded since":             {said: says(forwarded, again)},
		"forwarded as in the bundle":  {state: stele.Forwarded, said: says(forwarded)},
		"sealed again":                {said: says(again), code: "adopt.sealed-again"},
		"sealed again, surely":        {said: says(again), sure: true, code: "adopt.sealed-again"},
		"sealed after a forward":      {state: stele.Forwarded, said: says(again), code: "adopt.sealed-again"},
		"forwarded again":             {state: stele.Forwarded, said: says(forwarded, again), code: "adopt.sealed-again"},
		"forwarded before":            {said: says(forwarded, func(d *apijson.NamespaceHandOver) { at := since.Add(-time.Second); d.Since = &at }), code: "adopt.sealed-again"},
		"nothing is said":             {code: "adopt.seal-cancelled"},
		"nothing is said of one":      {said: half, code: "adopt.seal-cancelled"},
		"offered":                     {said: says(func(d *apijson.NamespaceHandOver) { d.State = "offered" }), code: "adopt.seal-cancelled"},
		"sealed for another registry": {said: says(func(d *apijson.NamespaceHandOver) { d.Heir = "third.example.org/.log" }), sure: true, code: "adopt.seal-cancelled"},
		"another registry":            {said: says(func(d *apijson.NamespaceHandOver) { d.Registry = "third.example.org/.log" }), code: "adopt.seal-unasked"},
		"no answer":                   {err: down, code: "adopt.seal-unasked"},
		"no answer, surely":           {err: down, sure: true},
	} {
		if c.state == "" {
			c.state = stele.Sealed
		}
		s := &Seals{At: "https://giver.example.org", Sure: c.sure, Ask: func(context.Context, string, stele.NamespaceKey) (map[stele.NamespaceKey]*apijson.NamespaceHandOver, error) {
			return c.said, c.err
		}}
		list, err := s.Confirm(t.Context(), giverName, spaces(c.state))
		if got, _ := stele.CodeOf(err); got != c.code || (err == nil) != (c.code == "") {
			t.Errorf("%s: %v (%s), want %s", what, err, got, c.code)
		}
		if redirects := err == nil && c.said[one] != nil && c.said[one].State == "forwarded"; redirects != (len(list) == 2) {
			t.Errorf("%s: the giver redirects requests for %v", what, list)
		}
	}
}

// The giver is asked where its operator says, where it is watched, or where the name of its log is.
func TestSealAddress(t *testing.T) {
	h := newHeir(t)
	asked := ""
	s := &Seals{Watches: h.Registrar, Ask: func(_ context.Context, address string, _ stele.NamespaceKey) (map[stele.NamespaceKey]*apijson.NamespaceHandOver, error) {
		asked = address
		return nil, nil
	}}
	spaces := []registrar.AdoptedSpace{{Key: stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}}}
	for _, c := range []struct{ from, at, want string }{
		{"names.example.net/.log", "", "https://names.example.net"},
		{giverName, "", "https://giver.example.org"},
		{giverName, "http://127.0.0.1:8080/", "http://127.0.0.1:8080"},
		{giverName, "https://other.example.org/.log", "https://other.example.org"},
	} {
		s.At = c.at
		if _, err := s.Confirm(h.admin, c.from, spaces); err == nil || asked != c.want {
			t.Errorf("%+v: asked at %q, %v", c, asked, err)
		}
	}
	s.At, asked = "", ""
	if _, err := s.Confirm(h.admin, giverName, nil); err != nil || asked != "" {
		t.Errorf("of nothing it is asked at %q, %v", asked, err)
	}
	s.At = "giver.example.org"
	if _, err := s.Confirm(h.admin, giverName, spaces); stele.KindOf(err) != stele.Invalid {
		t.Errorf("what is not an address: %v", err)
	}
}
