package minting

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/all"
)

// What a minter can't make is told apart where that is certain, and nowhere else.
func TestMayMake(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ark := func(m stele.Minter) *stele.Namespace {
		return &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", Minter: m}
	}
	urn := &stele.Namespace{Scheme: "urn", Prefix: "urn:example", Minter: stele.Minter{Kind: stele.MinterUUID}}
	noid := func(template string) *stele.Namespace {
		return ark(stele.Minter{Kind: stele.MinterNOID, Template: template})
	}
	for _, c := range []struct {
		ns     *stele.Namespace
		states TemplateStates
		begin  string
		want   bool
	}{
		{noid(".reedeedk"), nil, "ark:12345/b", true},
		{noid(".reedeedk"), nil, "ark:12345/bc1", true},
		{noid(".reedeedk"), nil, "ark:12345/BC1", true},
		{noid(".reedeedk"), nil, "ark:12345/a", false}, // not betanumeric
		{noid(".reedeedk"), nil, "ark:12345/bcdfghjkm", false},
		{noid("x5.reedeedk"), nil, "ark:12345/x", true},
		{noid("x5.reedeedk"), nil, "ark:12345/x5", true},
		{noid("x5.reedeedk"), nil, "ark:12345/x6", false},
		{noid("x5.reedeedk"), nil, "ark:12345/x5b", true},
		{noid("x5.rddd"), nil, "ark:12345/x5b", false},
		{noid("x5.rddd"), nil, "ark:12345/x5123", true},
		{noid("x5.rddd"), nil, "ark:12345/x51234", false},
		{noid("x5.rdddk"), nil, "ark:12345/x5123b", true},
		{noid("x5.zddd"), nil, "ark:12345/x51234567", true},
		{ark(stele.Minter{Kind: stele.MinterNOID, Template: ".rdd", Order: stele.OrderNOID, Expand: 1}), nil, "ark:12345/1234", true},
		{noid("x5.rddd"), TemplateStates{{Template: "y6.rdd"}}, "ark:12345/y6", true},
		{ark(stele.Minter{}), TemplateStates{{Template: "y6.rdd"}}, "ark:12345/y61", true},
		{ark(stele.Minter{}), nil, "ark:12345/y61", false},
		{noid("wrong"), nil, "ark:12345/q", true},
		{ark(stele.Minter{Kind: "new"}), nil, "ark:12345/q", true},
		{urn, nil, "urn:example:0f", true},
		{urn, nil, "urn:example:q", false},
		{urn, nil, "urn:example:0123abcd-", true},
		{&stele.Namespace{Scheme: "hdl", Prefix: "102.100.272/", Minter: stele.Minter{Kind: stele.MinterPILIN}}, nil, "102.100.272/q", true},
	} {
		if got := MayMake(schemes, c.ns, c.states, c.begin); got != c.want {
			t.Errorf("%s with %+v %v makes %s: %v", c.ns.Prefix, c.ns.Minter, c.states, c.begin, got)
		}
	}
}
