package ibi

import (
	"slices"
	"testing"

	"github.com/stele-id/stele"
)

func TestDateNames(t *testing.T) {
	ns := func(m stele.Minter) *stele.Namespace { return &stele.Namespace{Scheme: Name, Minter: m} }
	both := stele.Minter{Kind: stele.MinterIBI, Host: "MTC-m21d.sid.inpe.br", IP: "150.163.34.239", IPPort: 808}
	for _, c := range []struct {
		minter          stele.Minter
		prefixes, names []string
	}{
		{both, []string{"sid.inpe.br/mtc-m21d", "8JMKD3MGP3W34T"}, []string{"sid.inpe.br/mtc-m21d/2022/07.20.15.45", "8JMKD3MGP3W34T/47AF772"}},
		{stele.Minter{Kind: stele.MinterIBI, Host: "a.br", Port: 8080}, []string{"br/a.8080"}, []string{"br/a.8080/2022/07.20.15.45"}},
		{stele.Minter{Kind: stele.MinterIBI, IP: "127.0.0.1", AllowPrivate: true}, []string{"LK47B6W"}, []string{"LK47B6W/47AF772"}},
	} {
		prefixes, at, err := New(testClock).DateNames(ns(c.minter))
		if err != nil || !slices.Equal(prefixes, c.prefixes) {
			t.Errorf("%+v: %q, %v", c.minter, prefixes, err)
			continue
		}
		ids, err := at(date(t, "1658331900"))
		var names []string
		for i, id := range ids {
			names = append(names, id.String())
			if !slices.Contains(texts(New(testClock).Parents(id)), prefixes[i]) {
				t.Errorf("%s is not a parent of %s", prefixes[i], id)
			}
		}
		if err != nil || !slices.Equal(names, c.names) {
			t.Errorf("%+v: %q, %v; want %q", c.minter, names, err, c.names)
		}
	}
	for _, bad := range []stele.Minter{
		{}, {Kind: stele.MinterPILIN}, {Kind: stele.MinterIBI}, {Kind: stele.MinterIBI, Host: "localhost"},
		{Kind: stele.MinterIBI, IP: "127.0.0.1"}, {Kind: stele.MinterIBI, IP: "1.2.3"}, {Kind: stele.MinterIBI, IP: "fe80::1%eth0", AllowPrivate: true},
	} {
		if prefixes, _, err := New(testClock).DateNames(ns(bad)); err == nil {
			t.Errorf("%+v makes names below %q", bad, prefixes)
		}
	}
	_, at, err := New(testClock).DateNames(ns(both))
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := at(date(t, "0")); err == nil {
		t.Errorf("an IBIp of 1970: %v", ids)
	}
}

func texts(seq func(func(stele.Prefix) bool)) (all []string) {
	for p := range seq {
		all = append(all, p.String())
	}
	return all
}
