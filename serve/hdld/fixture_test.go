package hdld

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/wire/hdl"
)

// script is a source of random octets that gives what a recording has, where it has something.
type script struct {
	mu      sync.Mutex
	nonces  [][]byte
	numbers []uint32
}

func (s *script) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(b) == nonceSize && len(s.nonces) > 0:
		copy(b, s.nonces[0])
		s.nonces = s.nonces[1:]
	case len(b) == 4 && len(s.numbers) > 0:
		binary.BigEndian.PutUint32(b, s.numbers[0])
		s.numbers = s.numbers[1:]
	default:
		return rand.Read(b)
	}
	return len(b), nil
}

// fixture is a server over the records of the recordings.
type fixture struct {
	*Server
	t         testing.TB
	registrar *registrar.Registrar
	schemes   *stele.Schemes
	admin     context.Context
	script    *script
	uuid      string
	key       *hdl.PrivateKey
	public    hdl.PublicKey
	now       func() time.Time
}

func newFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, script: &script{}, admin: auth.With(t.Context(), auth.Local()), now: time.Now}
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	f.schemes = schemes
	store := mem.New(time.Now)
	r := resolver.New(store, schemes, resolver.Options{Now: time.Now})
	key, err := secret.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f.registrar = registrar.New(store, schemes, registrar.Options{Now: time.Now, OnCommit: r.Invalidate, OnNamespaces: r.InvalidateNamespaces,
		Secrets: secret.NewRing(secret.Text{Keep: key.Text(), Name: "the test's key"})})
	f.seed()
	service := handles.New(handles.Options{Registrar: f.registrar, Resolver: r, Schemes: schemes, Now: func() time.Time { return f.now() },
		Administrators: []handles.Identity{{Handle: "0.NA/20.500.99999", Index: 300}},
		UUID:           func() (string, error) { return f.uuid, nil }})
	keys := vectors(t, "keys.txt")
	private, err := hdl.ParseKeyFile(keys["srv_privkey_file"], nil)
	if err != nil {
		t.Fatal(err)
	}
	f.key = &private
	if f.public, err = hdl.ParsePublicKey(keys["srv_pubkey"]); err != nil {
		t.Fatal(err)
	}
	id, err := service.Parse("0.NA/20.500.99999")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := f.registrar.Get(f.admin, id)
	if err != nil {
		t.Fatal(err)
	}
	site := &Site{Octets: rec.Values[0].Data, Serial: 1, Primary: true, Key: f.key}
	o := Options{Handles: service, Now: func() time.Time { return f.now() }, Rand: f.script, Site: func() *Site { return site }}
	for _, c := range change {
		c(&o)
	}
	f.Server = New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return f
}

// seed registers the records of the recordings.
func (f *fixture) seed() {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "seed-records.json"))
	if err != nil {
		f.t.Fatal(err)
	}
	var seeds struct {
		Homed   []string                   `json:"homedPrefixes"`
		Records map[string]json.RawMessage `json:"handleRecords"`
	}
	if err := json.Unmarshal(data, &seeds); err != nil {
		f.t.Fatal(err)
	}
	for _, name := range seeds.Homed {
		if name == "0.NA/21.T14999" {
			continue // it came after these recordings
		}
		key, err := f.registrar.ParsePrefix("hdl:" + strings.TrimPrefix(name, "0.NA/") + "/")
		if err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.registrar.AddNamespace(f.admin, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}); err != nil {
			f.t.Fatal(err)
		}
	}
	for name, text := range seeds.Records {
		if strings.Contains(name, "21.T14999") {
			continue
		}
		_, values, err := handlejson.DecodeRecord(text)
		if err != nil {
			f.t.Fatal(name, err)
		}
		id, err := f.schemes.Parse("hdl:" + name)
		if err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.registrar.Register(f.admin, &stele.Record{ID: id, Values: values}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// lines yields the lines of a file of recordings.
func lines(t testing.TB, name string) []string {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []string
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		list = append(list, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// vectors reads a file of lines "name = hex".
func vectors(t testing.TB, name string) map[string][]byte {
	t.Helper()
	found := make(map[string][]byte)
	for _, line := range lines(t, name) {
		if key, value, ok := strings.Cut(line, " = "); ok {
			found[key] = unhex(t, value)
		}
	}
	return found
}

var _ io.Reader = (*script)(nil)

func handlesIdentity() handles.Identity {
	return handles.Identity{Handle: "0.NA/20.500.99999", Index: 300}
}
