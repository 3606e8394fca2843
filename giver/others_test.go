package giver

import (
	"context"
	"errors"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// Of two heirs one takes a namespace over: what the other one says decides, and an heir that can't be asked is a person's to ask.
func TestOthers(t *testing.T) {
	const first, second = "first.example.org/.log", "second.example.net/.log"
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}
	spaces := []registrar.AdoptedSpace{{Key: key, Others: []stele.Heir{{Registry: first, Address: "https://first.example.org/"}, {Registry: second, Address: "https://second.example.net/"}}}}
	adopted := func(a *apijson.HandOverAdoption) *apijson.NamespaceHandOver {
		return &apijson.NamespaceHandOver{Registry: second, Scheme: key.Scheme, Prefix: key.Prefix, Adoption: a}
	}
	elsewhere := adopted(&apijson.HandOverAdoption{From: giverName})
	elsewhere.Registry = "third.example.org/.log"
	for what, c := range map[string]struct {
		said         *apijson.NamespaceHandOver
		err          error
		code, surely string
	}{
		"nothing":                   {},
		"no adoption":               {said: adopted(nil)},
		"from another registry":     {said: adopted(&apijson.HandOverAdoption{From: "other.example.org/.log"})},
		"for reading":               {said: adopted(&apijson.HandOverAdoption{From: giverName, Reading: true})},
		"for reading, for another":  {said: adopted(&apijson.HandOverAdoption{From: giverName, Reading: true, To: first})},
		"taken over":                {said: adopted(&apijson.HandOverAdoption{From: giverName, Silent: true, To: second}), code: "adopt.heir-took-over", surely: "adopt.heir-took-over"},
		"taken over of an era":      {said: adopted(&apijson.HandOverAdoption{From: giverName + "/g2", Silent: true}), code: "adopt.heir-took-over", surely: "adopt.heir-took-over"},
		"sealed for it":             {said: adopted(&apijson.HandOverAdoption{From: giverName, To: second}), code: "adopt.heir-took-over", surely: "adopt.heir-took-over"},
		"about to be taken over":    {said: adopted(&apijson.HandOverAdoption{From: giverName, Reading: true, To: second}), code: "adopt.heir-takes-over"},
		"another registry is there": {said: elsewhere, code: "adopt.heir-unasked"},
		"it does not answer":        {err: errors.New("nothing answers"), code: "adopt.heir-unasked"},
	} {
		for _, sure := range []bool{false, true} {
			asked := 0
			o := &Others{Sure: sure, Ask: func(_ context.Context, address string, k stele.NamespaceKey) (map[stele.NamespaceKey]*apijson.NamespaceHandOver, error) {
				if asked++; k != key {
					t.Errorf("%s is asked for", k)
				}
				if address != "https://second.example.net/" {
					return nil, nil
				}
				if c.said == nil {
					return nil, c.err
				}
				return map[stele.NamespaceKey]*apijson.NamespaceHandOver{key: c.said}, c.err
			}}
			want := c.code
			if sure {
				want = c.surely
			}
			err := o.Confirm(t.Context(), giverName, spaces)
			if got, _ := stele.CodeOf(err); got != want || (err == nil) != (want == "") || asked != 2 {
				t.Errorf("%s, sure %t: %v (%s), want %s; %d heirs are asked", what, sure, err, got, want, asked)
			}
		}
	}
	err := (&Others{}).Confirm(t.Context(), giverName, spaces)
	if got, _ := stele.CodeOf(err); got != "adopt.heir-unasked" {
		t.Errorf("without a way to ask: %v", err)
	}
	if err := (&Others{}).Confirm(t.Context(), giverName, []registrar.AdoptedSpace{{Key: key}}); err != nil {
		t.Errorf("without another heir: %v", err)
	}
}
