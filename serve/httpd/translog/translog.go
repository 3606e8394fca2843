// Package translog serves the transparency log of the registry below /.log/, as C2SP tlog-tiles has it: the last checkpoint, the tiles
// of the Merkle tree and the entries, for monitors, witnesses and those who check proofs. What it serves is for all, and most of it is kept by
// caches for ever.
//
// It shows nothing that is not in the last checkpoint, writes nothing, and signs nothing itself.
package translog

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
)

// Root is the path below which the log is served.
const Root = "/.log/"

// Log is the part of a [transparency.Log] that a Handler reads.
type Log interface {
	Shown(ctx context.Context) (transparency.Published, error)
	Status(ctx context.Context) (transparency.Status, error)
	Tile(ctx context.Context, level int, n uint64, width int) ([]byte, error)
	Entries(ctx context.Context, n uint64, width int) ([]byte, error)
}

// Key is a public key of the log.
type Key struct {
	transparency.PublicKey
	Created, Retired time.Time
}

// Options are what a Handler needs.
type Options struct {
	Log Log
	Now func() time.Time

	// Keys returns the public keys of the log, the oldest first; none if it is not signed.
	Keys func(ctx context.Context) ([]Key, error)

	// Generations returns the signed list of the log's eras; "" if there is none.
	Generations func(ctx context.Context) (string, error)

	// Frozen is of which time a frozen archive is, which answers in the place of the registry; zero: the registry itself answers.
	Frozen time.Time
}

// Handler serves a log. It is used by many goroutines at once.
type Handler struct {
	o    Options
	made chan struct{} // to make entries, of which each needs many records

	mu      sync.Mutex
	last    *checkpoint
	lastAt  time.Time
	entries []bundle // the last ones that were asked for, the latest first
}

// checkpoint is what the registry has published.
type checkpoint struct {
	transparency.Published
	origin string
	size   uint64
}

// bundle is the entries of a tile.
type bundle struct {
	origin string
	n      uint64
	width  int
	plain  []byte
	zipped []byte
}

const (
	// atOnce is how many bundles of entries are made at the same time, and keptBundles how many are kept: monitors follow the end of the log.
	atOnce, keptBundles = 2, 8

	// fresh is for how long a checkpoint is not read again to see whether a tile is in it.
	fresh = time.Second
)

// New returns a handler.
func New(o Options) *Handler { return &Handler{o: o, made: make(chan struct{}, atOnce)} }

// Site is one request as the web server sees it.
type Site interface {
	// Send writes an answer.
	Send(mediaType string, body []byte)
	// Missing answers that there is nothing at the address.
	Missing()
	// Fail answers that the registry can't be read.
	Fail(err error)
	// Header returns the head of the answer.
	Header() http.Header
}

const (
	textType = "text/plain; charset=utf-8"
	tileType = "application/octet-stream"

	forEver   = "public, max-age=31536000, immutable"
	forMinute = "public, max-age=60"
	forMoment = "public, max-age=5"
)

// Serve answers a request for a path below the root.
func (h *Handler) Serve(r *http.Request, path string, site Site) {
	p, ok := parsePath(path)
	if !ok {
		site.Missing()
		return
	}
	var err error
	switch p.name {
	case "checkpoint":
		err = h.checkpoint(r.Context(), p, site)
	case "generations":
		err = h.generations(r.Context(), site)
	case "key":
		err = h.key(r.Context(), site)
	default:
		err = h.tile(r, p, site)
	}
	if err != nil {
		site.Fail(err)
	}
}

// read returns the last checkpoint; nil if there is none. With lately it may be a second old.
func (h *Handler) read(ctx context.Context, lately bool) (*checkpoint, error) {
	h.mu.Lock()
	last, at := h.last, h.lastAt
	h.mu.Unlock()
	now := h.o.Now()
	if age := now.Sub(at); lately && last != nil && age >= 0 && age < fresh {
		return last, nil
	}
	p, err := h.o.Log.Shown(ctx)
	if err != nil || p.Note == "" {
		return nil, err
	}
	c, err := transparency.ParseCheckpoint(p.Note)
	if err != nil {
		return nil, err
	}
	next := &checkpoint{p, c.Origin, c.Size}
	h.mu.Lock()
	h.last, h.lastAt = next, now
	h.mu.Unlock()
	return next, nil
}

// isOf reports whether a path may be about a checkpoint: one below the origin of an era is about that era.
func (c *checkpoint) isOf(p part) bool {
	return c != nil && strings.HasSuffix(c.origin, p.era)
}

func (h *Handler) checkpoint(ctx context.Context, p part, site Site) error {
	c, err := h.read(ctx, false)
	if err != nil {
		return err
	}
	if !c.isOf(p) {
		site.Missing()
		return nil
	}
	site.Header().Set("Cache-Control", forMoment)
	if !h.o.Frozen.IsZero() {
		site.Header().Set(transparency.FrozenHeader, h.o.Frozen.UTC().Format(time.RFC3339))
	}
	site.Send(textType, []byte(c.Note))
	return nil
}

func (h *Handler) generations(ctx context.Context, site Site) error {
	text, err := h.o.Generations(ctx)
	if err != nil { // it may say where the server looks for keys, which is not for all: an answer of this kind has no text
		return &stele.Error{Op: "show generations", Kind: stele.Unavailable, Err: stele.Reason(err)}
	}
	if text == "" {
		site.Missing()
		return nil
	}
	site.Header().Set("Cache-Control", forMoment)
	site.Send(textType, []byte(text))
	return nil
}

// key shows the public keys, one a line.
func (h *Handler) key(ctx context.Context, site Site) error {
	keys, err := h.o.Keys(ctx)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		site.Missing()
		return nil
	}
	var b []byte
	for _, k := range keys {
		if !k.Retired.IsZero() {
			word := "# the next key signs until "
			if !h.o.Now().Before(k.Retired) {
				word = "# retired: the next key signed until "
			}
			b = append(append(append(b, word...), k.Retired.UTC().Format(time.RFC3339)...), '\n')
		}
		b = append(append(b, k.String()...), '\n')
	}
	site.Header().Set("Cache-Control", forMinute)
	site.Send(textType, b)
	return nil
}

// tile answers with hashes or entries that the last checkpoint has.
func (h *Handler) tile(r *http.Request, p part, site Site) error {
	c, err := h.read(r.Context(), true)
	if err == nil && (!c.isOf(p) || !p.within(c.size)) {
		c, err = h.read(r.Context(), false)
	}
	if err != nil {
		return err
	}
	if !c.isOf(p) || !p.within(c.size) {
		site.Missing()
		return nil
	}
	keep, err := h.keep(r.Context(), c, p)
	if err != nil {
		return err
	}
	if p.name == "tile" {
		data, err := h.o.Log.Tile(r.Context(), p.level, p.n, p.width)
		if err != nil {
			return err
		}
		site.Header().Set("Cache-Control", keep)
		site.Send(tileType, data)
		return nil
	}
	b, err := h.bundle(r.Context(), c.origin, p)
	if err != nil {
		return err
	}
	head := site.Header()
	head.Set("Cache-Control", keep)
	head.Set("Vary", "Accept-Encoding")
	if acceptsGzip(r) {
		head.Set("Content-Encoding", "gzip")
		site.Send(tileType, b.zipped)
		return nil
	}
	site.Send(tileType, b.plain)
	return nil
}

// keep returns for how long caches may keep a tile. After a restore other leaves have the numbers of those that were lost, so that a
// tile that is not older than the era has an address for ever only below the era's own origin.
func (h *Handler) keep(ctx context.Context, c *checkpoint, p part) (string, error) {
	if p.era != "" {
		return forEver, nil
	}
	s, err := h.o.Log.Status(ctx)
	if err != nil {
		return "", err
	}
	if n := len(s.Eras); n > 0 && s.Eras[n-1].Number > 1 && p.end() > s.Eras[n-1].Size {
		return forMinute, nil
	}
	return forEver, nil
}

// bundle returns the entries of a tile, and keeps them for the next reader.
func (h *Handler) bundle(ctx context.Context, origin string, p part) (*bundle, error) {
	if b := h.recall(origin, p); b != nil {
		return b, nil
	}
	select {
	case h.made <- struct{}{}:
		defer func() { <-h.made }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b := h.recall(origin, p); b != nil { // another request has made it meanwhile
		return b, nil
	}
	b := bundle{origin: origin, n: p.n, width: p.width}
	var err error
	if b.plain, err = h.o.Log.Entries(ctx, p.n, p.width); err != nil {
		return nil, err
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(b.plain) // a buffer takes everything
	_ = z.Close()
	b.zipped = zipped.Bytes()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append([]bundle{b}, h.entries[:min(len(h.entries), keptBundles-1)]...)
	return &b, nil
}

func (h *Handler) recall(origin string, p part) *bundle {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.entries {
		if b := h.entries[i]; b.origin == origin && b.n == p.n && b.width == p.width {
			copy(h.entries[1:i+1], h.entries[:i])
			h.entries[0] = b
			return &b
		}
	}
	return nil
}

// acceptsGzip reports whether a client takes answers that are compressed (RFC 9110, section 12.5.3).
func acceptsGzip(r *http.Request) bool {
	for _, field := range r.Header["Accept-Encoding"] {
		for item := range strings.SplitSeq(field, ",") {
			coding, weight, _ := strings.Cut(strings.TrimSpace(item), ";")
			if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				q, found := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(weight), " ", ""), "q=")
				n, err := strconv.ParseFloat(q, 64)
				return !found || err == nil && n > 0
			}
		}
	}
	return false
}

// About is what a page for people says of the log.
type About struct {
	Published transparency.Published // the zero one if there is none yet
	Origin    string
	Size      uint64 // of the last checkpoint
	Status    transparency.Status
	Keys      []Key
}

// About returns what a page says.
func (h *Handler) About(ctx context.Context) (a About, err error) {
	c, err := h.read(ctx, true)
	if err != nil && stele.KindOf(err) != stele.Unavailable { // the log was not signed since a restore, and the page says the rest
		return a, err
	}
	if c != nil {
		a.Published, a.Origin, a.Size = c.Published, c.origin, c.size
	}
	if a.Status, err = h.o.Log.Status(ctx); err != nil {
		return a, err
	}
	a.Keys, err = h.o.Keys(ctx)
	return a, err
}

// Witnesses returns the names under which others have co-signed the last checkpoint, as its lines say. It checks none of them.
func (a *About) Witnesses() (list []string) {
	_, lines, _ := strings.Cut(a.Published.Note, "\n\n")
	for line := range strings.Lines(lines) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "\u2014 "), " "); ok && name != a.Origin {
			list = append(list, name)
		}
	}
	return list
}
