package test

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	vocabulary "github.com/stele-id/stele"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/wire/hdl"
)

// handlePrefix is a prefix that the program is set up to serve.
const handlePrefix = "20.500.12345"

// handleServer is the program, with a prefix set up for the Handle protocol.
type handleServer struct {
	t      *testing.T
	folder string
	web    string // URL
	hdl    string // address
	admin  *hdlclient.Administrator
	client *hdlclient.Client
}

// newHandleServer sets up a prefix as the manual says, and starts the program. Before that it runs the
// commands that are given.
func newHandleServer(t *testing.T, commands ...[]string) *handleServer {
	t.Helper()
	s := &handleServer{t: t, folder: t.TempDir()}
	s.stele("ns", "add", handlePrefix+"/", "--handle-server", "--handle-address", "127.0.0.1", "--handle-out", filepath.Join(s.folder, "handle"))
	for _, args := range commands {
		s.stele(args...)
	}
	cmd := exec.CommandContext(t.Context(), stele(t), "serve", "--json", "--data", filepath.Join(s.folder, "data"), "--http", "127.0.0.1:0", "--dns", "", "--hdl", "127.0.0.1:0")
	cmd.Env = environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	var at struct{ HTTP, HDL string }
	if err := json.NewDecoder(out).Decode(&at); err != nil || at.HDL == "" {
		t.Fatalf("the server says %+v, %v\n%s", at, err, said.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	s.web, s.hdl = at.HTTP, at.HDL
	s.connect()
	return s
}

// stele runs the program on the folder.
func (s *handleServer) stele(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), stele(s.t), append(args, "--data", filepath.Join(s.folder, "data"))...)
	cmd.Env = environ()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("stele %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

// connect makes the client, and the administrator whose key the set-up wrote.
func (s *handleServer) connect() {
	s.t.Helper()
	place, err := hdlclient.ParsePlace(s.hdl)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.client, err = hdlclient.New(hdlclient.Options{Server: &place, Now: time.Now, Rand: rand.Reader}); err != nil {
		s.t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(s.folder, "handle", "admpriv.bin"))
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := hdl.ParseKeyFile(data, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	who := hdlclient.Identity{Reference: hdl.Reference{Handle: "0.NA/" + handlePrefix, Index: 300}, Key: &key}
	if s.admin, err = s.client.As(who, hdlclient.AdministratorOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// values returns the values of a handle with one location, as a client writes them.
func (s *handleServer) values(url string) []hdl.Value {
	admin := hdl.Admin{Permissions: 0xfff, Identity: hdl.Reference{Handle: "0.NA/" + handlePrefix, Index: 300}}
	open := uint8(hdl.AdminRead | hdl.AdminWrite | hdl.PublicRead)
	return []hdl.Value{{Index: 1, TTL: 86400, Permissions: open, Type: []byte("URL"), Data: []byte(url)},
		{Index: 2, TTL: 86400, Permissions: hdl.AdminRead | hdl.AdminWrite, Type: []byte("NOTE"), Data: []byte("for us only")},
		{Index: 100, TTL: 86400, Permissions: open, Type: []byte("HS_ADMIN"), Data: admin.Append(nil)}}
}

// get asks the web without following redirects.
func (s *handleServer) get(path string) (status int, location, body string) {
	s.t.Helper()
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: 20 * time.Second}
	resp, err := c.Get(s.web + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Location"), string(text)
}

// leads makes sure that all ways in lead from a handle to a location.
func (s *handleServer) leads(handle, url string) {
	s.t.Helper()
	if status, location, body := s.get("/" + handle); status/100 != 3 || location != url {
		s.t.Errorf("the web answers %d, %s, want %s\n%.300s", status, location, url, body)
	}
	if status, _, body := s.get("/api/handles/" + handle); status != http.StatusOK || !strings.Contains(body, url) || strings.Contains(body, "for us only") {
		s.t.Errorf("the REST interface answers %d, %s", status, body)
	}
	if status, _, body := s.get("/api/v1/records/hdl:" + handle); status != http.StatusOK || !strings.Contains(body, url) || strings.Contains(body, "Zm9yIHVzIG9ubHk") {
		s.t.Errorf("the API answers %d, %s", status, body)
	}
	got, err := s.client.Resolve(s.t.Context(), hdlclient.Query{Handle: handle, Types: []string{"URL"}})
	if err != nil || len(got.Values) != 1 || string(got.Values[0].Data) != url {
		s.t.Errorf("the protocol answers %+v, %v; want %s", got, err, url)
	}
	for _, where := range []string{s.hdl, s.web} {
		if out := s.stele("resolve", "hdl:"+handle, "--via", "hdl", "--hdl", where); strings.TrimSpace(out) != url {
			s.t.Errorf("stele resolve --hdl %s prints %s, want %s", where, out, url)
		}
	}
}

// A handle that a client of the protocol writes is the record that the web and the API show. After its end the protocol does not
// know it and the web shows the tombstone, and a client that creates it again brings it back.
func TestHandleProtocol(t *testing.T) {
	s := newHandleServer(t)
	ctx, handle := t.Context(), handlePrefix+"/thing-1"
	if name, err := s.admin.Create(ctx, handle, s.values("https://a.example/1"), hdlclient.CreateOptions{}); err != nil || name != handle {
		t.Fatal(name, err)
	}
	s.leads(handle, "https://a.example/1")
	if err := s.admin.Modify(ctx, handle, s.values("https://b.example/2")[:1]); err != nil {
		t.Fatal(err)
	}
	s.leads(handle, "https://b.example/2")
	got, err := s.admin.Resolve(ctx, hdlclient.Query{Handle: handle, Indexes: []uint32{2}})
	if err != nil || len(got.Values) != 1 || string(got.Values[0].Data) != "for us only" {
		t.Errorf("the administrator reads %+v, %v", got, err)
	}
	listed := false
	for name, err := range s.admin.List(ctx, handlePrefix) {
		if err != nil {
			t.Fatal(err)
		}
		listed = listed || strings.EqualFold(name, handle)
	}
	if !listed {
		t.Error("the handle is not in the list")
	}

	if err := s.admin.Delete(ctx, handle); err != nil {
		t.Fatal(err)
	}
	_, err = s.client.Resolve(ctx, hdlclient.Query{Handle: handle})
	if f, ok := errors.AsType[*hdlclient.Failure](err); !ok || f.Code != hdl.HandleNotFound || vocabulary.KindOf(err) != vocabulary.NotFound {
		t.Errorf("the protocol answers %v", err)
	}
	if status, _, body := s.get("/" + handle); status != http.StatusGone {
		t.Errorf("the web answers %d, %.300s", status, body)
	}
	if status, _, body := s.get("/api/handles/" + handle); status/100 != 4 || !strings.Contains(body, `"responseCode":100`) {
		t.Errorf("the REST interface answers %d, %s", status, body)
	}

	if _, err := s.admin.Create(ctx, handle, s.values("https://c.example/3"), hdlclient.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.leads(handle, "https://c.example/3")
	if err := s.admin.Close(ctx); err != nil {
		t.Error(err)
	}
}

// A handle that is not registered leads to the same location by all ways in, if a rule of its namespace answers for it.
func TestHandleByRule(t *testing.T) {
	const url = "https://rules.example/42"
	s := newHandleServer(t, []string{"rule", "add", handlePrefix + "/", "RULE-{n:digit}", "--to", "https://rules.example/{n}", "--example", handlePrefix + "/rule-1 https://rules.example/1"})
	handle := handlePrefix + "/rule-42"
	if status, location, body := s.get("/" + handle); status/100 != 3 || location != url {
		t.Errorf("the web answers %d, %s, want %s\n%.300s", status, location, url, body)
	}
	if status, _, body := s.get("/api/handles/" + handle); status != http.StatusOK || !strings.Contains(body, url) {
		t.Errorf("the REST interface answers %d, %s", status, body)
	}
	got, err := s.client.Resolve(t.Context(), hdlclient.Query{Handle: handle, Types: []string{"URL"}})
	if err != nil || len(got.Values) != 1 || string(got.Values[0].Data) != url {
		t.Errorf("the protocol answers %+v, %v; want %s", got, err, url)
	}
	for _, where := range []string{s.hdl, s.web} {
		if out := s.stele("resolve", "hdl:"+handle, "--via", "hdl", "--hdl", where); strings.TrimSpace(out) != url {
			t.Errorf("stele resolve --hdl %s prints %s, want %s", where, out, url)
		}
	}
}

// The site that the set-up wrote is what clients verify answers with.
func TestHandleSiteFile(t *testing.T) {
	s := newHandleServer(t)
	if _, err := s.admin.Create(t.Context(), handlePrefix+"/thing-2", s.values("https://a.example/2"), hdlclient.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bundle, err := zip.OpenReader(filepath.Join(s.folder, "handle", "sitebndl.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer bundle.Close()
	_, port, _ := strings.Cut(s.hdl, ":")
	for _, name := range []string{"siteinfo.json", "siteinfo.bin"} {
		file, err := bundle.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		sites, err := hdlclient.ParseSites(data)
		if err != nil || len(sites) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		// The program listens at a free port instead of the usual one.
		for i := range sites[0].Servers {
			for k := range sites[0].Servers[i].Interfaces {
				sites[0].Servers[i].Interfaces[k].Port = portNumber(t, port)
			}
		}
		here := filepath.Join(s.folder, "site.bin")
		if err := os.WriteFile(here, sites[0].Append(nil), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := s.stele("resolve", "hdl:"+handlePrefix+"/thing-2", "--hdl-site", here, "--trace"); !strings.Contains(out, "(udp): 1, 1 value, certified\n") || !strings.Contains(out, "=> https://a.example/2, N2L, for 86400 s, certified\n") {
			t.Errorf("%s: stele resolve prints\n%s", name, out)
		}
	}
}

func portNumber(t *testing.T, text string) uint32 {
	t.Helper()
	var n uint32
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
