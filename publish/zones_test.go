package publish_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
)

var update = flag.Bool("update", false, "write the golden files")

// golden holds a text against a file; -update writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestParadisec(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	golden(t, "paradisec.zone", p.Export("Paradisec.example"))
	golden(t, "urnroot.zone", p.Export("urn.example."))
	const name = "URN:Paradisec:AB1:001:a"
	site := "http://catalog.example.org/repository/AB1/001/A"
	for _, test := range []struct {
		service stele.Service
		accept  string
		want    string
	}{
		{stele.N2L, "", "RES:http " + site},
		{stele.N2L, "text/html", "RES:http " + site},
		{stele.N2L, "audio/wav", "RES:http " + site + ".wav"},
		{stele.N2L, "audio/mpeg", "RES:ftp ftp://ftp.example.org/AB1-001-A.mp3"},
		{stele.N2L, "audio/flac", "RES:http " + site + ".wav"},
		{stele.N2C, "", "RES:http " + site + ".json"},
		{stele.N2S, "", "RES:http " + site + ".sig"},
		{stele.N2P, "", "RES:http " + site + "/persistence"},
	} {
		var accept []string
		if test.accept != "" {
			accept = []string{test.accept}
		}
		for _, root := range []string{"urn.example.", "@paradisec.example."} {
			if got := p.Walk(root, name, test.service, accept...); got != test.want {
				t.Errorf("%s in %q from %s: %s, want %s", test.service, test.accept, root, got, test.want)
			}
		}
	}
}
