package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"text/tabwriter"
	"time"

	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/wire/hdl"
)

const (
	// handleWriters is how many clients write at once: fewer than a server of the Handle protocol takes from one address.
	handleWriters = 32

	// handleSecret is that of the value 300 of handleUser, which the server trusts to create handles.
	handleUser   = handlePrefix + "/USER"
	handleSecret = "open sesame"

	handleValues = `[{"index":1,"type":"URL","data":{"format":"string","value":"https://archive.example.org/items/%d/view"}},` +
		`{"index":100,"type":"HS_ADMIN","data":{"format":"admin","value":{"handle":"0.NA/` + handlePrefix + `","index":300,"permissions":"111111111111"}}}]`
)

// creations compares handles that are created, each durable before the answer, with the same records put over the API.
// All clients are of Go, and as many at once.
func (h *handleBench) creations(ctx context.Context, w *tabwriter.Writer) (err error) {
	if err := h.prepare(ctx); err != nil {
		return err
	}
	data, user := filepath.Join(h.work, "created"), filepath.Join(h.work, "user.json")
	if err := h.setUp(ctx, data); err != nil {
		return err
	}
	record := fmt.Sprintf(`{"handle":%q,"values":[{"index":300,"type":"HS_SECKEY","data":{"format":"string","value":%q},"permissions":"1100"}]}`, handleUser, handleSecret)
	if err := os.WriteFile(user, []byte(record), 0o600); err != nil {
		return err
	}
	if err := command(ctx, h.stele, "import", "--from", "handle", "--with-secrets", user, "--data", data); err != nil {
		return err
	}
	at, err := freeAddress()
	if err != nil {
		return err
	}
	s, err := h.startAPI(ctx, -1, data, "--hdl", at, "--hdl-administrators", "300:"+handleUser, "--cost-rate", "0", "--trusted-proxies", "127.0.0.0/8")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	admin, err := h.administrator(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close(ctx)) }()
	c := &putClient{s, &http.Transport{MaxIdleConnsPerHost: handleWriters}}
	defer c.CloseIdleConnections()
	var n atomic.Int64
	put := func() error { return c.putHandle(ctx, "/api/v1/records/", n.Add(1)) }
	for _, way := range []struct {
		name, wanted string
		do           func() error
	}{
		{"handles created in a session", "at least 0.7", func() error {
			i := n.Add(1)
			_, err := admin.Create(ctx, createdName(i), createdValues(i), hdlclient.CreateOptions{})
			return err
		}},
		{"handles put over REST", "at least 0.8", func() error { return c.putHandle(ctx, "/api/handles/", n.Add(1)) }},
	} {
		if err := s.versus(w, way.name, way.wanted, way.do, put); err != nil {
			return err
		}
	}
	return nil
}

// versus compares two ways of writing by the clock, and tells what they cost the server.
func (a *apiServer) versus(w *tabwriter.Writer, name, wanted string, ours, peer func() error) error {
	var rates, each [2][]float64
	var ratios, costs []float64
	for i := range rounds + 1 {
		var rate, used [2]float64
		for j, do := range []func() error{ours, peer} {
			before, begin := usedBy(a.pid()), time.Now()
			var err error
			if rate[j], err = together(handleWriters, commitFor, do); err != nil {
				return err
			}
			used[j] = (usedBy(a.pid()) - before).Seconds() * 1e6 / (rate[j] * time.Since(begin).Seconds())
		}
		progress("%s, round %d of %d: %.0f/s, %.0f us; records over the API %.0f/s, %.0f us", name, i, rounds, rate[0], used[0], rate[1], used[1])
		if i == 0 {
			continue // sessions and connections
		}
		for j := range rate {
			rates[j], each[j] = append(rates[j], rate[j]), append(each[j], used[j])
		}
		ratios, costs = append(ratios, rate[0]/rate[1]), append(costs, used[0]/used[1])
	}
	fmt.Fprintf(w, "%s, %d clients : records put over the API\t%.0f/s\t%.0f/s\t%.2f\t\t%s\n", name, handleWriters, median(rates[0]), median(rates[1]), median(ratios), wanted)
	fmt.Fprintf(w, "  CPU time of the server, each\t%.0f us\t%.0f us\t%.2f\t\t(for information)\n", median(each[0]), median(each[1]), median(costs))
	return nil
}

func createdName(n int64) string { return fmt.Sprintf("%s/R%d", handlePrefix, n) }

// createdValues returns the values of a new handle.
func createdValues(n int64) []hdl.Value {
	rights := hdl.Admin{Permissions: 0xfff, Identity: hdl.Reference{Handle: "0.NA/" + handlePrefix, Index: 300}}
	return []hdl.Value{
		{Index: 1, TTL: 86400, Permissions: 0xe, Type: []byte("URL"), Data: fmt.Appendf(nil, "https://archive.example.org/items/%d/view", n)},
		{Index: 100, TTL: 86400, Permissions: 0xe, Type: []byte("HS_ADMIN"), Data: rights.Append(nil)},
	}
}

// administrator returns who may create handles, with the key that was made for the prefix.
func (h *handleBench) administrator(at string) (*hdlclient.Administrator, error) {
	text, err := os.ReadFile(filepath.Join(h.site(), "admpriv.bin"))
	if err != nil {
		return nil, err
	}
	key, err := hdl.ParseKeyFile(text, nil)
	if err != nil {
		return nil, err
	}
	place, err := hdlclient.ParsePlace(at)
	if err != nil {
		return nil, err
	}
	c, err := hdlclient.New(hdlclient.Options{Server: &place, Now: time.Now, Rand: rand.Reader, Timeout: time.Minute, Transports: []hdl.Transport{hdl.TCP}})
	if err != nil {
		return nil, err
	}
	return c.As(hdlclient.Identity{Reference: hdl.Reference{Handle: "0.NA/" + handlePrefix, Index: 300}, Key: &key}, hdlclient.AdministratorOptions{})
}

// putClient puts records, over connections that it keeps.
type putClient struct {
	*apiServer
	*http.Transport
}

// putHandle puts a new handle: as a record over the API, or over the REST interface of the Handle System, both as a proxy
// that ends TLS sends them.
func (a *putClient) putHandle(ctx context.Context, path string, n int64) error {
	name := createdName(n)
	head, body := "Bearer "+a.token, []byte(fmt.Sprintf(handleValues, n))
	if path == "/api/handles/" {
		head = "Basic " + base64.StdEncoding.EncodeToString([]byte("300%3A"+handleUser+":"+handleSecret))
	} else {
		body = putBody(name, n)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, a.url+path+name, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = http.Header{"Authorization": {head}, "Content-Type": {"application/json"}, "X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Proto": {"https"}}
	res, err := a.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("PUT %s%s: %s: %.300s", path, name, res.Status, said)
	}
	return err
}

// putBody returns the record of a handle as the API takes it.
func putBody(name string, n int64) []byte {
	b := fmt.Appendf(nil, `{"id":"hdl:%s","values":[`, name)
	for i, v := range createdValues(n) {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"index":%d,"type":%q,"data":%q,"ttl":86400}`, v.Index, v.Type, base64.StdEncoding.EncodeToString(v.Data))
	}
	return append(b, "]}"...)
}
