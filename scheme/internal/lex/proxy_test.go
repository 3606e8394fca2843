package lex

import "testing"

func TestHandleProxy(t *testing.T) {
	for host, want := range map[string][2]bool{
		"doi.org": {true, true}, "DX.DOI.org": {true, true}, "hdl.handle.net": {false, true},
		"": {}, "doi.org.": {}, "xdoi.org": {}, "handle.net": {},
	} {
		if doi, ok := HandleProxy(host); doi != want[0] || ok != want[1] {
			t.Errorf("%q: %v, %v", host, doi, ok)
		}
	}
}
