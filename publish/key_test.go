package publish

import "testing"

func TestKey(t *testing.T) {
	for prefix, want := range map[string]string{
		"urn:paradisec":             "urn paradisec",
		"urn:paradisec:ab1":         "urn paradisec",
		"urn:lsid:example.org:x":    "urn lsid",
		"ark:12345/x5":              "ark 12345",
		"20.500.99999/":             " ",
		"10.5072/":                  " ",
		"https://purl.example.org/": " ",
		"sid.inpe.br/mtc-m18":       " ",
		"":                          " ",
	} {
		scheme, label, ok := Key(prefix)
		if !ok {
			scheme, label = "", ""
		}
		if got := scheme + " " + label; got != want {
			t.Errorf("the key of %q is %q, not %q", prefix, got, want)
		}
	}
}
