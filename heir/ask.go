package heir

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/urltext"
)

// run is a check of one heir.
type run struct {
	*Checker
	key         stele.NamespaceKey
	giver, heir string // names of the two registries
	base        string // where the heir is, without a slash at the end
}

// baseOf returns the address of a registry, to which paths are appended.
func baseOf(address string) string { return strings.TrimSuffix(address, "/") }

// handOvers returns what the heir says of the namespace and of those below it.
func (r *run) handOvers(ctx context.Context) (map[stele.NamespaceKey]*apijson.NamespaceHandOver, error) {
	said, lost, err := r.ask(ctx, r.base, r.key)
	if lost != nil {
		return nil, r.unreachable(lost)
	}
	return said, err
}

// HandOvers returns what the registry at an address says of a namespace and of those below it.
func (c *Checker) HandOvers(ctx context.Context, address string, key stele.NamespaceKey) (map[stele.NamespaceKey]*apijson.NamespaceHandOver, error) {
	said, lost, err := c.ask(ctx, baseOf(address), key)
	if lost != nil {
		return nil, causeOf(lost)
	}
	return said, err
}

// ask asks a registry for what it says of a namespace and of those below it. Lost is why it does not answer at all.
func (c *Checker) ask(ctx context.Context, base string, key stele.NamespaceKey) (said map[stele.NamespaceKey]*apijson.NamespaceHandOver, lost, err error) {
	said = make(map[stele.NamespaceKey]*apijson.NamespaceHandOver)
	where := base + "/api/v1/handover/" + string(urltext.Append(nil, key.String(), urltext.InPath, true))
	cursor := ""
	for range maxPages {
		at := where + "?limit=1000"
		if cursor != "" {
			at += "&cursor=" + url.QueryEscape(cursor)
		}
		status, body, err := c.get(ctx, at, apijson.JSON)
		if err != nil {
			return nil, err, nil
		}
		if status != http.StatusOK {
			return nil, nil, stele.Messagef("hand-over.heir-refuses", "{url} answers with {status}; make sure that the address is that of a registry whose version knows hand-overs, and that it does not lead elsewhere", where, status)
		}
		page, err := ReadPage(body)
		if err != nil {
			return nil, nil, stele.Messagef("hand-over.heir-unreadable", "the answer of {url} can't be read: {cause}; make sure that the address is that of a registry", where, err)
		}
		for i := range page.Items {
			said[page.Items[i].Key()] = &page.Items[i]
		}
		if cursor = page.Next; cursor == "" || len(page.Items) == 0 {
			return said, nil, nil
		}
	}
	return said, nil, nil // what was not read counts as not adopted
}

// causeOf returns why a registry does not answer, without its address, which is told beside it.
func causeOf(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if refused, ok := errors.AsType[*stele.Error](err); ok {
		err = stele.Reason(refused)
	}
	return err
}

// unreachable returns the reason that is told if the heir does not answer at all.
func (r *run) unreachable(err error) error {
	return stele.Messagef("hand-over.heir-unreachable", "the heir does not answer at {address}: {cause}; make sure that it runs, and that requests from here reach it", r.base, causeOf(err))
}

// ReadPage reads a page of hand-overs as a registry answers it.
func ReadPage(body []byte) (page apijson.HandOverPage, err error) {
	if err := json.Unmarshal(body, &page); err != nil {
		return apijson.HandOverPage{}, err
	}
	if page.Items == nil {
		return page, stele.Messagef("hand-over.page-without-items", "it has no items")
	}
	return page, nil
}

// heirRecord is what a check reads of a record.
type heirRecord struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
}

// ReadRecord returns the identifier and the version of a record as a registry answers it.
func ReadRecord(body []byte) (id string, version uint64, err error) {
	var rec heirRecord
	err = json.Unmarshal(body, &rec)
	return rec.ID, rec.Version, err
}

// answers returns why the heir does not answer for a name as for one of its own; nil if it does.
func (r *run) answers(ctx context.Context, rec *stele.Record) error {
	name := rec.ID.String()
	status, body, err := r.get(ctx, r.base+"/api/v1/records/"+string(urltext.Append(nil, name, urltext.InPath, true)), apijson.JSON)
	if err != nil {
		return r.unreachable(err)
	}
	id, version, err := "", uint64(0), error(nil)
	if status == http.StatusOK {
		id, version, err = ReadRecord(body)
	}
	switch {
	case status == http.StatusGone: // its operator has withdrawn it since
		return nil
	case status != http.StatusOK:
		return stele.Messagef("hand-over.record-status", "its record is answered with {status}", status)
	case err != nil || id != name:
		return stele.Messagef("hand-over.record-other", "the answer is not its record")
	case version < rec.Version:
		return stele.Messagef("hand-over.record-older", "its record has version {version} there, and {expected} here", version, rec.Version)
	}
	where := r.base + "/" + string(urltext.Append(nil, name, urltext.InPath, urltext.IsLiteral(r.Schemes, rec.ID)))
	status, location, err := r.resolve(ctx, where)
	if err != nil {
		return r.unreachable(err)
	}
	to, err := url.Parse(location)
	switch {
	case status < 200 || status >= 400 && status != http.StatusGone:
		return stele.Messagef("hand-over.name-status", "{url} is answered with {status}", where, status)
	case location != "" && err == nil && to.Host != "" && r.Own != nil && r.Own(to.Hostname()) && strings.HasSuffix(to.Path, name):
		return stele.Messagef("hand-over.name-returns", "{url} is redirected back to this registry", where)
	}
	return nil
}

// get asks for a document.
func (c *Checker) get(ctx context.Context, where, accept string) (status int, body []byte, err error) {
	resp, err := c.do(ctx, where, accept)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err == nil && len(body) > MaxAnswer {
		err = stele.Messagef("hand-over.answer-too-large", "the answer has more than {limit} bytes", strconv.Itoa(MaxAnswer))
	}
	return resp.StatusCode, body, err
}

// resolve asks for a name, and returns where the answer leads. The body is not read.
func (r *run) resolve(ctx context.Context, where string) (status int, location string, err error) {
	resp, err := r.do(ctx, where, "text/html, */*;q=0.5")
	if err != nil {
		return 0, "", err
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Location"), nil
}

func (c *Checker) do(ctx context.Context, where, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", c.Agent)
	return c.HTTP.Do(req)
}
