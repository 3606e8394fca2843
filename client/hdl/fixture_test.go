package hdlclient

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	"github.com/stele-id/stele/serve/hdld"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/wire/hdl"
)

// recorded is where the records of the recordings are.
var recorded = filepath.Join("..", "..", "serve", "hdld", "testdata")

// prefix is that of the recordings.
const prefix = "20.500.99999"

// world is a server of the Handle protocol on this machine, over the records of the recordings.
type world struct {
	t         testing.TB
	registrar *registrar.Registrar
	schemes   *stele.Schemes
	service   *handles.Service
	server    *hdld.Server
	at        netip.AddrPort
	web       *httptest.Server
	keys      map[string][]byte
	site      hdl.Site // with all interfaces of the server
	local     context.Context
}

func newWorld(t testing.TB, change ...func(*hdld.Options)) *world {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, schemes: schemes, local: auth.With(t.Context(), auth.Local()), keys: keys(t)}
	store := mem.New(time.Now)
	r := resolver.New(store, schemes, resolver.Options{Now: time.Now})
	key, err := secret.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w.registrar = registrar.New(store, schemes, registrar.Options{Now: time.Now, OnCommit: r.Invalidate, OnNamespaces: r.InvalidateNamespaces,
		Secrets: secret.NewRing(secret.Text{Keep: key.Text(), Name: "the test's key"})})
	w.seed()
	w.service = handles.New(handles.Options{Registrar: w.registrar, Resolver: r, Schemes: schemes, Now: time.Now,
		Administrators: []handles.Identity{{Handle: "0.NA/" + prefix, Index: 300}}, UUID: func() (string, error) { return "6ba7b810-9dad-11d1-80b4-00c04fd430c8", nil }})
	private := w.key("srv_privkey_file")
	var served atomic.Pointer[hdld.Site] // the port is known after the server listens
	served.Store(&hdld.Site{Serial: 1, Primary: true, Key: private})
	o := hdld.Options{Handles: w.service, Now: time.Now, Rand: rand.Reader, Site: served.Load, AdminUDP: true}
	for _, c := range change {
		c(&o)
	}
	w.server = hdld.New(o)
	if err := w.server.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	w.at = w.server.Addrs()[0]
	w.web = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !hdld.IsTunnel(r) {
			http.NotFound(rw, r)
			return
		}
		w.server.ServeTunnel(rw, r, netip.MustParseAddrPort(r.RemoteAddr).Addr())
	}))
	t.Cleanup(func() {
		w.web.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	tunnel := netip.MustParseAddrPort(w.web.Listener.Addr().String())
	one := hdl.Server{ID: 1, Key: w.keys["srv_pubkey"], Interfaces: []hdl.Interface{
		{Type: hdl.InterfaceBoth, Protocol: hdl.UDP, Port: uint32(w.at.Port())}, {Type: hdl.InterfaceBoth, Protocol: hdl.TCP, Port: uint32(w.at.Port())},
		{Type: hdl.InterfaceBoth, Protocol: hdl.HTTP, Port: uint32(tunnel.Port())}}}
	one.SetAddr(w.at.Addr())
	w.site = hdl.Site{Version: hdl.Latest(), Serial: 1, Flags: hdl.SitePrimary, HashOption: hdl.HashAll, Servers: []hdl.Server{one}}
	served.Store(&hdld.Site{Octets: w.site.Append(nil), Serial: 1, Primary: true, Key: private})
	return w
}

// seed registers the records of the recordings.
func (w *world) seed() {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(recorded, "seed-records.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	var seeds struct {
		Homed   []string                   `json:"homedPrefixes"`
		Records map[string]json.RawMessage `json:"handleRecords"`
	}
	if err := json.Unmarshal(data, &seeds); err != nil {
		w.t.Fatal(err)
	}
	for _, name := range seeds.Homed {
		w.home(strings.TrimPrefix(name, "0.NA/"))
	}
	for name, text := range seeds.Records {
		_, values, err := handlejson.DecodeRecord(text)
		if err != nil {
			w.t.Fatal(name, err)
		}
		w.put(name, values...)
	}
}

func (w *world) home(prefix string) {
	w.t.Helper()
	key, err := w.registrar.ParsePrefix("hdl:" + prefix + "/")
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.registrar.AddNamespace(w.local, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(name string, values ...stele.HandleValue) {
	w.t.Helper()
	id, err := w.schemes.Parse("hdl:" + name)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.registrar.Register(w.local, &stele.Record{ID: id, Values: values}); err != nil {
		w.t.Fatal(err)
	}
}

// set replaces the values of a record.
func (w *world) set(name string, change func([]stele.HandleValue) []stele.HandleValue) {
	w.t.Helper()
	id, err := w.schemes.Parse("hdl:" + name)
	if err != nil {
		w.t.Fatal(err)
	}
	rec, err := w.registrar.Get(w.local, id)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.registrar.Update(w.local, id, rec.Version, func(next *stele.Record) error {
		next.Values = change(next.Values)
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// key returns a private key of the recordings.
func (w *world) key(name string) *hdl.PrivateKey {
	w.t.Helper()
	k, err := hdl.ParseKeyFile(w.keys[name], nil)
	if err != nil {
		w.t.Fatal(name, err)
	}
	return &k
}

// client returns a client that begins at the site of the server.
func (w *world) client(change ...func(*Options)) *Client {
	w.t.Helper()
	o := Options{Sites: []hdl.Site{w.site}, Now: time.Now, Rand: rand.Reader}
	for _, c := range change {
		c(&o)
	}
	c, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// administrator returns the administrator of the prefix.
func (w *world) administrator(c *Client, o AdministratorOptions) *Administrator {
	w.t.Helper()
	return w.as(c, Identity{Reference: hdl.Reference{Handle: "0.NA/" + prefix, Index: 300}, Key: w.key("privkey_file_rsa")}, o)
}

func (w *world) as(c *Client, who Identity, o AdministratorOptions) *Administrator {
	w.t.Helper()
	a, err := c.As(who, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// keys reads a file of lines "name = hex".
func keys(t testing.TB) map[string][]byte {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "wire", "hdl", "testdata", "encodings.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found := make(map[string][]byte)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), " = "); ok {
			if octets, err := hex.DecodeString(value); err == nil { // others are words
				found[key] = octets
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
