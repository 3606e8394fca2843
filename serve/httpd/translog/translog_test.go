package translog

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func TestParsePath(t *testing.T) {
	for path, want := range map[string]part{
		"checkpoint":                     {name: "checkpoint"},
		"generations":                    {name: "generations"},
		"key":                            {name: "key"},
		"g2-20310502T100000Z/checkpoint": {name: "checkpoint", era: "/g2-20310502T100000Z"},
		"tile/0/000":                     {name: "tile", width: 256},
		"tile/0/x001/x234/067":           {name: "tile", n: 1234067, width: 256},
		"tile/63/001.p/255":              {name: "tile", level: 63, n: 1, width: 255},
		"tile/entries/067.p/1":           {name: "entries", n: 67, width: 1},
		"g17-20310502T100000Z/tile/entries/x999/067.p/9": {name: "entries", era: "/g17-20310502T100000Z", n: 999067, width: 9},
	} {
		if got, ok := parsePath(path); !ok || got != want {
			t.Errorf("%s: %+v %v", path, got, ok)
		}
	}
	for _, path := range []string{
		"", "/", "checkpoint/", "Checkpoint", "g1/checkpoint", "g02/checkpoint", "g2/key", "g2", "g/checkpoint", "g2-/checkpoint", "g2-20310502T100000/checkpoint", "g2-20311502T100000Z/checkpoint", "g2-20310502T100000Z/key", "tile", "tile/", "tile/0", "tile/0/", "tile/0/0", "tile/0/00", "tile/0/0000",
		"tile/00/000", "tile/64/000", "tile/-1/000", "tile/+1/000", "tile/0/x000/001", "tile/0/001/001", "tile/0/x001", "tile/0/x001/", "tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/01", "tile/0/000.p/",
		"tile/0/000.p", "tile/0/000.p/1/", "tile/0/000/", "tile/0/x001/x001/x001/x001/001", "tile/data/000", "tile/0/%30%30%30", "tile/entries/000.p/1?x", "../checkpoint", "tile/0/\u0661\u0661\u0661",
	} {
		if got, ok := parsePath(path); ok {
			t.Errorf("%s is read as %+v", path, got)
		}
	}
}

// A tree of 70,000 leaves is the example of tlog-tiles, Partial Tiles.
func TestWithin(t *testing.T) {
	for path, want := range map[string]bool{
		"tile/0/272": true, "tile/0/273": false, "tile/0/273.p/112": true, "tile/0/273.p/113": false, "tile/1/000": true, "tile/1/001.p/17": true, "tile/1/001.p/18": false,
		"tile/1/001": false, "tile/2/000.p/1": true, "tile/2/000.p/2": false, "tile/3/000.p/1": false, "tile/63/000.p/1": false, "tile/0/x999/x999/x999/999": false, "tile/entries/273.p/112": true,
	} {
		if p, ok := parsePath(path); !ok || p.within(70_000) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// What is read is written in one way.
func FuzzParsePath(f *testing.F) {
	for _, path := range []string{"checkpoint", "g2/checkpoint", "g2-20310502T100000Z/checkpoint", "tile/0/x001/x234/067", "tile/63/001.p/255", "g3/tile/entries/067.p/1", "tile/0/x000/001", "tile/00/000"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		p, ok := parsePath(path)
		if !ok {
			return
		}
		if got := p.path(); got != path {
			t.Errorf("%q is read as %+v, which is %q", path, p, got)
		}
		p.within(70_000)
	})
}

func (p *part) path() string {
	text := ""
	if p.era != "" {
		text = p.era[1:] + "/"
	}
	switch p.name {
	case "tile":
		text += fmt.Sprintf("tile/%d/", p.level)
	case "entries":
		text += "tile/entries/"
	default:
		return text + p.name
	}
	number := fmt.Sprintf("%03d", p.n%1000)
	for n := p.n / 1000; n > 0; n /= 1000 {
		number = fmt.Sprintf("x%03d/", n%1000) + number
	}
	if text += number; p.width < fullWidth {
		text += fmt.Sprintf(".p/%d", p.width)
	}
	return text
}

func TestAcceptsGzip(t *testing.T) {
	for field, want := range map[string]bool{"": false, "gzip": true, "br, GZIP;q=0.5": true, "gzip; q=0": false, "identity": false, "deflate, gzip;q=x": false} {
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", field)
		if acceptsGzip(r) != want {
			t.Errorf("%q: %v", field, !want)
		}
	}
}

func TestWitnesses(t *testing.T) {
	a := About{Origin: "a.example/.log"}
	a.Published.Note = "a.example/.log\n1\nhash\n\n\u2014 a.example/.log AAAA\n\u2014 w.example BBBB\n"
	if got := strings.Join(a.Witnesses(), " "); got != "w.example" {
		t.Errorf("%q", got)
	}
}

// failed is a request whose answer is an error.
type failed struct{ err error }

func (f *failed) Send(string, []byte) {}
func (f *failed) Missing()            {}
func (f *failed) Fail(err error)      { f.err = err }
func (f *failed) Header() http.Header { return http.Header{} }

// What is wrong with the keys of the log is not told to all: of errors that are Unavailable the web server shows no text.
func TestGenerationsHideErrors(t *testing.T) {
	h := New(Options{Generations: func(context.Context) (string, error) {
		return "", stele.Errorf("decrypt secret", stele.ID{}, stele.Conflict, "registry.secret-key-not-at-hand", "it is not in {where}", "/etc/stele/secret.key")
	}})
	var f failed
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/.log/generations", nil)
	h.Serve(r, "generations", &f)
	if stele.KindOf(f.err) != stele.Unavailable {
		t.Errorf("the answer is %v", f.err)
	}
}
