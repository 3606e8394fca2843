package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/document/apijson"
)

// bundlesAtOnce is how many bundles are made at a time. Each takes about 45 bytes of memory for each version in it.
const bundlesAtOnce = 2

// maxBundleState is how many bytes the text has with which a bundle is gone on with. A longer one is not sent.
const maxBundleState = 6000

func (h *Handler) bundleOperations() []operation {
	return []operation{{
		name: "getBundle", method: http.MethodGet, path: "bundle", group: "Running the server",
		summary: "Hand over names, with their history and proofs, in one file",
		about: "A bundle as stele bundle makes it: a tar of plain text files that another registry can adopt, and that stele bundle check checks without any registry. " +
			"An administrator may have all names, and owners what is theirs. The file ends with its own digests: a client checks it before it relies on it. " +
			"If the answer is cut off, the same request with state, from the header " + apijson.BundleState + ", and offset gives the rest, as long as the same server runs; with 409 the client begins anew.",
		asks: owner, scope: auth.ScopeAdmin,
		query: []parameter{
			{name: "prefix", about: "what the names begin with, several with spaces between them; without it the bundle has all names", example: "ark:12345"},
			{name: "gzip", kind: flagKind, usual: "false", about: "compressed"},
			{name: "state", about: "what the header " + apijson.BundleState + " of an earlier answer said", max: maxBundleState},
			{name: "offset", kind: numberKind, about: "how many bytes of that answer the client has", max: 1 << 50},
		},
		answers: []answer{{status: 200, about: "The bundle.", media: apijson.Tar, headers: []parameter{{name: apijson.BundleState, about: "stands for this bundle; see state"}}}},
		fails:   []int{404, 409},
		serve:   h.bundle,
	}, {
		name: "listBundles", method: http.MethodGet, path: "bundles", group: "Running the server",
		summary: "List the last bundles that were made by hand",
		about:   "Of the namespaces that the caller owns: when the last bundle was made that has all names of a namespace, by which user, and when such a bundle was last checked. Deposits that servers make are not in the list.",
		asks:    known, scope: auth.ScopeAdmin,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.TakenBundlesPage{}}},
		serve:   h.listBundles,
	}, {
		name: "noteBundleCheck", method: http.MethodPost, path: "bundles", group: "Running the server",
		summary: "Note that a bundle was checked and is whole",
		about:   "The last bundle of one of the caller's namespaces, by its manifest; with 404 it is not one. The server does not see the bundle: it notes which user says so.",
		asks:    owner, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.CheckedBundle{}, example: `{"manifest":"` + strings.Repeat("0123456789abcdef", 4) + `"}`},
		answers: []answer{{status: 204, about: "It is noted."}},
		fails:   []int{404, 409},
		serve:   h.noteBundleCheck,
	}}
}

// listBundles lists the last bundles that were made.
func (h *Handler) listBundles(c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	list, err := h.o.Registrar.TakenBundles(c.ctx)
	if err != nil {
		return err
	}
	page := newPage(c)
	for i := range list {
		t := &list[i]
		place := t.Namespace.Scheme + " " + t.Namespace.Prefix
		if place <= after {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(place)
		if err := page.addValue(apijson.TakenBundle{Scheme: t.Namespace.Scheme, Prefix: t.Namespace.Prefix, Made: t.Made, By: t.By, Manifest: t.Manifest, Change: t.Change, Records: t.Records,
			Versions: t.Versions, Wider: t.Wider, Checked: t.Checked, CheckedBy: t.CheckedBy, CheckedChange: t.CheckedChange}); err != nil {
			return err
		}
	}
	return page.end()
}

// noteBundleCheck notes that a bundle was checked.
func (h *Handler) noteBundleCheck(c *call) error {
	var want apijson.CheckedBundle
	if err := c.decode(&want); err != nil {
		return err
	}
	return c.done(h.o.Registrar.NoteChecked(c.ctx, want.Manifest))
}

// bundlePrefixes returns the beginnings of names that a request names.
func (c *call) bundlePrefixes() (keys []stele.NamespaceKey, err error) {
	for _, text := range strings.Fields(c.text("prefix")) {
		if c.h.o.Schemes.Lookup(text) != nil {
			keys = append(keys, stele.NamespaceKey{Scheme: text})
			continue
		}
		key, err := c.h.o.Registrar.ParsePrefix(text)
		if err != nil {
			id, noName := c.h.o.Schemes.Parse(text) // a whole name is the beginning of itself
			if noName != nil {
				return nil, err
			}
			key = stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// bundle makes a bundle, and sends it while it is made.
func (h *Handler) bundle(c *call) error {
	keys, err := c.bundlePrefixes()
	if err != nil {
		return err
	}
	// Before it is judged whether the caller may have it: for a sealed namespace, that reads all records.
	select {
	case h.bundles <- struct{}{}:
		defer func() { <-h.bundles }()
	default:
		return busy(c, "other bundles are being made")
	}
	from, err := h.o.Registrar.Bundling(c.ctx, keys...)
	if err != nil {
		return err
	}
	if h.o.Upkeep.Bundle == nil {
		return &stele.Error{Op: c.op.name, Kind: stele.NotFound, Err: stele.Messagef("bundle.unsupported", "this server makes no bundles")}
	}
	if c.r.Method == http.MethodHead { // HEAD does not need the bundle
		return c.stream(apijson.Tar).flush()
	}
	ctx, stop := c.running()
	defer stop()
	still := c.patiently()
	defer func() { still() }()
	work := auth.With(ctx, auth.Local()) // what the caller may have is judged
	job, err := h.o.Upkeep.Bundle(work, from)
	if err != nil {
		return err
	}
	job.Gzip = c.flag("gzip")
	if err := c.beginBundle(work, job); err != nil {
		return err
	}
	if err := h.o.Registrar.Witness(ctx, "bundle", c.text("prefix"), "begin"); err != nil {
		return err
	}
	c.w.Header().Set("Content-Disposition", `attachment; filename="stele-bundle.`+map[bool]string{false: "tar", true: "tar.gz"}[job.Gzip]+`"`)
	out := c.stream(apijson.Tar)
	rest := &skipping{out: out, left: int64(c.number("offset")), first: func() { still(); still = func() {} }}
	done, err := job.Write(work, rest)
	if err != nil {
		return err
	}
	done.Note(c.ctx, from)
	h.o.Registrar.NoteEnd(c.ctx, "bundle", c.text("prefix"), nil)
	return out.flush()
}

// beginBundle decides of which state the bundle is: of the one that the request names, or of the present one, which it tells the client.
func (c *call) beginBundle(ctx context.Context, job *bundle.Job) error {
	if text := c.text("state"); text != "" {
		state, ok := c.h.openState(text)
		if !ok {
			return &stele.Error{Op: c.op.name, Kind: stele.Conflict, Err: stele.Messagef("bundle.state-unknown", "this server has not begun that bundle; ask for it from its beginning")}
		}
		c.w.Header().Set(apijson.BundleState, text)
		return job.Resume(ctx, state)
	}
	if c.number("offset") > 0 {
		return &stele.Error{Op: c.op.name, Kind: stele.Invalid, Err: stele.Messagef("bundle.offset-without-state", "offset goes with state: another bundle may have other bytes there")}
	}
	state, err := job.Begin(ctx)
	if err != nil {
		return err
	}
	if text := c.h.sealState(state); text != "" {
		c.w.Header().Set(apijson.BundleState, text)
	}
	return nil
}

// skipping leaves out the beginning of what is written.
type skipping struct {
	out   io.Writer
	left  int64
	first func() // is called before the first byte is sent
}

func (s *skipping) Write(b []byte) (int, error) {
	n := len(b)
	cut := min(s.left, int64(n))
	s.left -= cut
	if b = b[cut:]; len(b) == 0 {
		return n, nil
	}
	if s.first != nil {
		s.first()
		s.first = nil
	}
	if _, err := s.out.Write(b); err != nil {
		return 0, err
	}
	return n, nil
}

// bundleKey makes the key with which the server marks the states of bundles that it has begun.
func bundleKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails, see crypto/rand
	return key
}

func (h *Handler) bundleMAC(state []byte) []byte {
	m := hmac.New(sha256.New, h.bundleKey)
	_, _ = m.Write(state) // it never fails
	return m.Sum(nil)
}

// sealState returns a state as clients get it; "" if it is too long.
func (h *Handler) sealState(state []byte) string {
	text := base64.RawURLEncoding.EncodeToString(append(h.bundleMAC(state), state...))
	if len(text) > maxBundleState {
		return ""
	}
	return text
}

// openState reads a state that this server has given to a client.
func (h *Handler) openState(text string) ([]byte, bool) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) < sha256.Size || !hmac.Equal(data[:sha256.Size], h.bundleMAC(data[sha256.Size:])) {
		return nil, false
	}
	return data[sha256.Size:], true
}
