package hdl_test

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/hdl"
)

func TestDateNames(t *testing.T) {
	s := hdl.New(today)
	ns := &stele.Namespace{Scheme: "hdl", Prefix: "102.100.272/", Minter: stele.Minter{Kind: stele.MinterPILIN}}
	prefixes, at, err := s.DateNames(ns)
	if err != nil || len(prefixes) != 1 || prefixes[0] != ns.Prefix {
		t.Fatalf("%q, %v", prefixes, err)
	}
	date, err := mint.DateOf(time.Date(2007, 5, 25, 3, 49, 52, 865_000_000, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	ids, err := at(date)
	if err != nil || len(ids) != 1 || ids[0].String() != "102.100.272/Y35XYS0QH" {
		t.Errorf("%v, %v", ids, err)
	}
	if back, err := s.Parse(ids[0].String()); err != nil || back != ids[0] {
		t.Errorf("%v, %v", back, err)
	}
	far, err := mint.DateOf(time.Date(2421, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := at(far); err == nil {
		t.Errorf("a suffix of ten characters: %v", ids)
	}
	for _, bad := range []stele.Namespace{
		{Scheme: "hdl", Prefix: "102.100.272/"},
		{Scheme: "hdl", Prefix: "102.100.272/A", Minter: stele.Minter{Kind: stele.MinterPILIN}},
		{Scheme: "hdl", Minter: stele.Minter{Kind: stele.MinterPILIN}},
	} {
		if prefixes, _, err := s.DateNames(&bad); err == nil {
			t.Errorf("%+v makes names below %q", bad, prefixes)
		}
	}
}
