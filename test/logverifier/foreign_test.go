package logverifier

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stele-id/stele/transparency"
)

var tilePath = regexp.MustCompile(`^/\.log/tile/(entries|[0-9]+)/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([0-9]+))?$`)

// ServeHTTP serves the log as tlog-tiles has it.
func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/.log/checkpoint" {
		p, err := g.log.Published(g.ctx)
		g.answer(w, []byte(p.Note), err)
		return
	}
	m := tilePath.FindStringSubmatch(r.URL.Path)
	if m == nil {
		http.NotFound(w, r)
		return
	}
	n, _ := strconv.ParseUint(strings.NewReplacer("x", "", "/", "").Replace(m[2]), 10, 64)
	width := 256
	if m[3] != "" {
		width, _ = strconv.Atoi(m[3])
	}
	if m[1] == "entries" {
		data, err := g.log.Entries(g.ctx, n, width)
		g.answer(w, data, err)
		return
	}
	level, _ := strconv.Atoi(m[1])
	data, err := g.log.Tile(g.ctx, level, n, width)
	g.answer(w, data, err)
}

func (g *registry) answer(w http.ResponseWriter, data []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = w.Write(data)
}

// buildForeign builds test/tileclient. Its source is kept as a text, since it belongs to another module than the rest: tools that go through the
// folders of this one do not trip over it.
func buildForeign(t *testing.T, folder string) (program string) {
	t.Helper()
	source := filepath.Join(folder, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, as := range map[string]string{"go.mod": "go.mod", "go.sum": "go.sum", "main.go.txt": "main.go"} {
		text, err := os.ReadFile(filepath.Join("..", "tileclient", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(source, as), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(folder, "tileclient")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("'make needs' fetches its modules: %v\n%s", err, out)
	}
	return program
}

// The modules of transparency-dev, which are not ours, read and check the log as it is, with a co-signature of a witness.
func TestForeignClient(t *testing.T) {
	folder := t.TempDir()
	program := buildForeign(t, folder)
	g := newRegistry(t, 7)
	s := httptest.NewServer(g)
	defer s.Close()
	g.signed()
	p, err := g.log.Published(g.ctx)
	g.must(err)
	old := filepath.Join(folder, "old")
	for _, changes := range []int{1, 60, 260, 300} {
		g.must(os.WriteFile(old, []byte(p.Note), 0o600))
		for range changes {
			g.live()
		}
		c := g.signed()
		p, err = g.log.Published(g.ctx)
		g.must(err)
		witness := transparency.WitnessKey{Name: "witness.example.net", Private: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
		line, err := witness.Cosign(strings.SplitAfter(p.Note, "\n\n")[0][:strings.Index(p.Note, "\n\n")+1], g.clock())
		g.must(err)
		g.must(g.log.AddCosignature(g.ctx, p, witness.Public(), line))
		run := func(key string) ([]byte, error) {
			return exec.CommandContext(t.Context(), program, "-url", s.URL+"/.log", "-key", key, "-old", old, "-witness", witness.Public().String()).Output()
		}
		out, err := run(g.keys.Public()[0].String())
		var got struct {
			Origin string
			Size   uint64
			Root   string
		}
		if err != nil || json.Unmarshal(out, &got) != nil || got.Size != c.Size || got.Root != base64.StdEncoding.EncodeToString(c.Root[:]) {
			t.Fatalf("%v\n%s", err, out)
		}
		// It would notice.
		other := transparency.Keys{Origin: g.keys.Origin, List: []transparency.SigningKey{{Private: witness.Private}}}
		if out, err := run(other.Public()[0].String()); err == nil {
			t.Errorf("another key is accepted: %s", out)
		}
	}
}
