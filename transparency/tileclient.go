package transparency

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
)

// TileClient reads a log over HTTP, as tlog-tiles has it. It asks one thing at a time. What it returns is not checked against any root.
type TileClient struct {
	// URL is below which the log is served, without a slash at its end; see [LogURL].
	URL   string
	HTTP  Doer   // it bounds the time of a request
	Agent string // names the program to the server

	Pause time.Duration // between requests, so that a long log is no burden for its server
	Wait  func(ctx context.Context, d time.Duration) error

	asked bool
}

// FrozenHeader is a header by which a frozen archive says of which time its checkpoint is: it shows that for ever, so that it is not a sign that the registry lives.
const FrozenHeader = "Stele-Frozen"

// Doer makes requests: an [http.Client] of package outbound.
type Doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// LogURL returns below which URL the log of a registry is served: url is the registry's own, or that of the log.
func LogURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", &stele.Error{Op: opMonitor, Kind: stele.Invalid, Err: stele.Messagef("log.url-malformed", `"{url}" is not the URL of a registry; write one such as https://names.example.org`, text)}
	}
	text = strings.TrimRight(text, "/")
	if !strings.HasSuffix(text, "/.log") {
		text += "/.log"
	}
	return text, nil
}

const (
	opMonitor = "read log"

	maxTileBytes   = tileWidth * tlog.HashSize
	maxBundleBytes = tileWidth * (2 + 1<<16)

	maxAsking   = 4 // tries of a request that the server is too busy for
	longestWait = time.Minute
)

// errMissing says that the server does not have what it was asked for.
var errMissing = stele.Messagef("log.file-missing", "the server does not have it")

// Checkpoint returns the signed checkpoint that the log shows now.
func (c *TileClient) Checkpoint(ctx context.Context) ([]byte, error) {
	return c.get(ctx, "checkpoint", maxCheckpoint)
}

// Generations returns the signed list of the log's eras.
func (c *TileClient) Generations(ctx context.Context) ([]byte, error) {
	return c.get(ctx, "generations", maxGenerations)
}

// Tile returns the hashes of a tile.
func (c *TileClient) Tile(ctx context.Context, level int, n uint64, width int) ([]byte, error) {
	data, err := c.part(ctx, TileID{level, n, width}, TileID.Path, maxTileBytes)
	if err != nil {
		return nil, err
	}
	if len(data) < width*tlog.HashSize || len(data)%tlog.HashSize != 0 {
		return nil, wrong("log.tile-of-another-size", "tile {tile} of level {level} has {bytes} bytes, and not those of {width} hashes", n, level, len(data), width)
	}
	return data[:width*tlog.HashSize], nil
}

// Entries returns the first entries of a bundle: those of the leaves of a tile of level 0.
func (c *TileClient) Entries(ctx context.Context, n uint64, width int) ([][]byte, error) {
	data, err := c.part(ctx, TileID{0, n, width}, bundlePath, maxBundleBytes)
	if err != nil {
		return nil, err
	}
	list, ok := splitBundle(data)
	if !ok || len(list) < width {
		return nil, wrong("log.bundle-malformed", "the entries {first} to {last} are not served in the form of tlog-tiles", n*tileWidth+1, n*tileWidth+uint64(width))
	}
	return list[:width], nil
}

// splitBundle returns the entries of a bundle. False if it is damaged.
func splitBundle(data []byte) (list [][]byte, ok bool) {
	for len(data) > 0 {
		if len(data) < 2 || len(list) == tileWidth {
			return nil, false
		}
		size := int(data[0])<<8 | int(data[1])
		if len(data) < 2+size {
			return nil, false
		}
		list = append(list, data[2:2+size])
		data = data[2+size:]
	}
	return list, true
}

// part returns a tile or a bundle. A part of it may have been removed when the full one came, which has it too (tlog-tiles,
// Partial tiles).
func (c *TileClient) part(ctx context.Context, t TileID, path func(TileID) string, most int64) ([]byte, error) {
	data, err := c.get(ctx, path(t), most)
	if t.Width < tileWidth && errors.Is(err, errMissing) {
		t.Width = tileWidth
		if full, ferr := c.get(ctx, path(t), most); ferr == nil {
			return full, nil
		}
	}
	return data, err
}

// bundlePath returns the path of the entries of a tile of level 0.
func bundlePath(t TileID) string { return "tile/entries" + strings.TrimPrefix(t.Path(), "tile/0") }

// get asks for a file of the log.
func (c *TileClient) get(ctx context.Context, path string, most int64) ([]byte, error) {
	for try := 1; ; try++ {
		if c.asked && c.Pause > 0 {
			if err := c.Wait(ctx, c.Pause); err != nil {
				return nil, err
			}
		}
		c.asked = true
		data, again, err := c.ask(ctx, path, most)
		if err == nil || again == 0 || try == maxAsking {
			return data, err
		}
		if err := c.Wait(ctx, again); err != nil {
			return nil, err
		}
	}
}

// ask makes one request. again is after which time it may be made again, 0 if that does not help.
func (c *TileClient) ask(ctx context.Context, path string, most int64) (data []byte, again time.Duration, err error) {
	address := c.URL + "/" + path
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, 0, unreachable(address, err)
	}
	r.Header.Set("User-Agent", c.Agent)
	if path == "checkpoint" || path == "generations" {
		r.Header.Set("Cache-Control", "no-cache")
	}
	a, err := c.HTTP.Do(r)
	if err != nil {
		return nil, time.Second, unreachable(address, err)
	}
	defer a.Body.Close()
	switch {
	case a.StatusCode == http.StatusOK:
	case a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusGone:
		return nil, 0, missing(address)
	case a.StatusCode >= 300 && a.StatusCode < 400:
		return nil, 0, &stele.Error{Op: opMonitor, Kind: stele.Unavailable, Err: stele.Messagef("log.url-redirects", "{url} redirects to {location}; give the URL of the registry itself", address, a.Header.Get("Location"))}
	default:
		return nil, retryAfter(a), unreachable(address, stele.Messagef("log.answer-refused", "the server answers with {status}", a.Status))
	}
	data, err = io.ReadAll(io.LimitReader(a.Body, most+1))
	switch {
	case err != nil:
		return nil, time.Second, unreachable(address, err)
	case int64(len(data)) > most:
		return nil, 0, wrong("log.answer-too-long", "{url} has more than {most} bytes", address, most)
	}
	return data, 0, nil
}

// retryAfter returns when a server that is too busy may be asked again.
func retryAfter(a *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(a.Header.Get("Retry-After"), 10, 32)
	if err != nil {
		return time.Second
	}
	return min(max(time.Duration(seconds)*time.Second, time.Second), longestWait)
}

func unreachable(address string, cause error) error {
	return &stele.Error{Op: opMonitor, Kind: stele.Unavailable, Err: stele.Messagef("log.registry-unreachable", "can't read {url}: {cause}; try again later", address, cause)}
}

// told is an error with another one in its chain.
type told struct{ err, is error }

func (t told) Error() string   { return t.err.Error() }
func (t told) Unwrap() []error { return []error{t.err, t.is} }

func missing(address string) error {
	return told{&stele.Error{Op: opMonitor, Kind: stele.NotFound, Err: stele.Messagef("log.nothing-served", "there is nothing at {url}; look whether it is the URL of a registry that shows its log", address)}, errMissing}
}

// ErrRewritten is in the chain of the errors that say that a log is not what it was, or not what was signed.
var ErrRewritten = stele.Messagef("log.history-rewritten", "the history was rewritten")

// wrong returns an error of a log that is not sound.
func wrong(code, text string, args ...any) error {
	return told{&stele.Error{Op: opMonitor, Kind: stele.Conflict, Err: stele.Messagef(code, text, args...)}, ErrRewritten}
}
