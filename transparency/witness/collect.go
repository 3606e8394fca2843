package witness

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/transparency"
)

// Target is a witness that a log asks to co-sign its checkpoints.
type Target struct {
	URL string // its submission prefix, without a slash at its end
	Key transparency.PublicKey
}

// MaxTargets is how many witnesses a log may ask: a note has at most 100 signatures.
const MaxTargets = 32

// ParseTarget reads a witness: its URL and its public key, with an equals sign or a space between them.
func ParseTarget(text string) (t Target, err error) {
	bad := func(why string) (Target, error) {
		return Target{}, &stele.Error{Op: "read witness", Kind: stele.Invalid, Err: stele.Messagef("log.witness-malformed", `"{witness}" does not name a witness: {reason}; write its URL and its public key with an equals sign between them`, text, why)}
	}
	at := strings.IndexAny(text, " =")
	if at < 0 {
		return bad("a part is missing")
	}
	address, key := text[:at], text[at+1:]
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return bad("the URL is not one of a web server")
	}
	t.URL = strings.TrimRight(address, "/")
	if t.Key, err = transparency.ParsePublicKey(key); err != nil {
		return bad(stele.Reason(err).Error())
	}
	if !t.Key.Cosign {
		return bad("the key is that of a log, and not of a witness")
	}
	return t, nil
}

// Log is the log whose checkpoints are co-signed: a [transparency.Log].
type Log interface {
	Shown(ctx context.Context) (transparency.Published, error)
	ProveGrowth(ctx context.Context, from, to uint64) (tlog.TreeProof, error)
	AddCosignature(ctx context.Context, about transparency.Published, witness transparency.PublicKey, line string) error
}

// Collector asks witnesses to co-sign the last checkpoint of a log, until each has.
type Collector struct {
	Log     Log
	Targets []Target
	HTTP    interface {
		Do(r *http.Request) (*http.Response, error)
	}
	Every time.Duration // how often witnesses are asked again that have not answered
	Agent string        // the name of the program that asks
	Logs  *slog.Logger

	once  sync.Once
	wake  chan struct{}
	mu    sync.Mutex
	knows map[place]uint64 // the size that a witness has
	told  map[string]string
}

// place is a log as a witness knows it.
type place struct{ witness, origin string }

// Patience is how long a witness may take to answer.
const Patience = 20 * time.Second

const maxAnswer = 64 << 10

func (c *Collector) begin() {
	c.once.Do(func() {
		c.wake, c.knows, c.told = make(chan struct{}, 1), map[place]uint64{}, map[string]string{}
	})
}

// Notify says that there is a new checkpoint. It never waits.
func (c *Collector) Notify() {
	c.begin()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run collects co-signatures until the context ends.
func (c *Collector) Run(ctx context.Context) {
	c.begin()
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for ctx.Err() == nil {
		c.Collect(ctx)
		select {
		case <-ctx.Done():
		case <-c.wake:
		case <-tick.C:
		}
	}
}

// Collect asks each witness once whose co-signature the last checkpoint does not have.
func (c *Collector) Collect(ctx context.Context) {
	c.begin()
	p, err := c.Log.Shown(ctx)
	if err != nil || p.Note == "" {
		return // the log says itself what is wrong
	}
	checkpoint, err := transparency.ParseCheckpoint(p.Note)
	if err != nil {
		return
	}
	var work sync.WaitGroup
	for _, t := range c.Targets {
		if transparency.HasCosignature(p.Note, t.Key) {
			continue
		}
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, Patience)
			defer cancel()
			if err := c.ask(ctx, t, p, checkpoint); ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
				c.tell(t, err)
			}
		})
	}
	work.Wait()
}

// tell logs once what is wrong with a witness, and that it is over.
func (c *Collector) tell(t Target, err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	c.mu.Lock()
	before := c.told[t.URL]
	c.told[t.URL] = now
	c.mu.Unlock()
	switch {
	case now != "" && now != before:
		c.Logs.Warn("a witness has not co-signed the log's checkpoint; it is asked again", "witness", t.Key.Name, "url", t.URL, "error", now)
	case now == "" && before != "":
		c.Logs.Info("a witness co-signs the log's checkpoints again", "witness", t.Key.Name, "url", t.URL)
	}
}

func (c *Collector) known(at place) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.knows[at]
}

func (c *Collector) learn(at place, size uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.knows[at] = size
}

func failf(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: "ask witness", Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// ask asks one witness, and again if it says what it knows of the log.
func (c *Collector) ask(ctx context.Context, t Target, p transparency.Published, checkpoint *transparency.Checkpoint) error {
	at := place{t.URL, checkpoint.Origin}
	const tries = 3 // another server may ask the same witness meanwhile
	for range tries {
		old := c.known(at)
		if old > checkpoint.Size {
			return failf(stele.Conflict, "log.witness-ahead", "the witness has co-signed {size} leaves of the log, which are more than there are; if the registry was put back without 'stele restore', restore it with that", old)
		}
		proof, err := c.Log.ProveGrowth(ctx, old, checkpoint.Size)
		if err != nil {
			return err
		}
		status, body, err := c.post(ctx, t, addCheckpoint(old, proof, p.Note))
		if err != nil {
			return err
		}
		switch status {
		case http.StatusOK:
			line, _ := transparency.KnownCosignatures(p.Note, body, t.Key)
			if line == "" {
				return failf(stele.Invalid, "log.witness-other-key", "the witness answers, and its co-signature is not one of the key that the settings have")
			}
			c.learn(at, checkpoint.Size)
			return c.Log.AddCosignature(ctx, p, t.Key, line)
		case http.StatusConflict:
			seen, err := parseSize(strings.TrimSuffix(body, "\n"))
			switch {
			case err != nil:
				return failf(stele.Invalid, "log.witness-conflict-without-size", "the witness says that it knows another size of the log, and not which")
			case seen == old:
				return failf(stele.Conflict, "log.witness-other-root", "the witness has co-signed another log with {size} leaves under the same origin; find out which history is the right one", seen)
			}
			c.learn(at, seen)
		default:
			return refusal(status)
		}
	}
	return failf(stele.Unavailable, "log.witness-busy", "the witness has learned of other checkpoints meanwhile")
}

// refusal is the error of a witness that does not co-sign.
func refusal(status int) error {
	switch status {
	case http.StatusNotFound:
		return failf(stele.NotFound, "log.witness-unknown-log", "the witness does not know this log; its operator has to add the log's key, or the URL is wrong")
	case http.StatusForbidden:
		return failf(stele.Forbidden, "log.witness-unknown-key", "the witness knows the log, and none of the keys that sign its checkpoints; its operator has to add the new one")
	case http.StatusUnprocessableEntity:
		return failf(stele.Conflict, "log.witness-inconsistent", "the witness has co-signed a log that this one did not grow from; find out which history is the right one")
	}
	return failf(stele.Unavailable, "log.witness-status", "the witness answers with status {status}", status)
}

// addCheckpoint returns the body of a request.
func addCheckpoint(old uint64, proof tlog.TreeProof, note string) string {
	b := append([]byte("old "), strconv.FormatUint(old, 10)...)
	b = append(b, '\n')
	for _, h := range proof {
		b = append(append(b, h.String()...), '\n')
	}
	return string(append(append(b, '\n'), note...))
}

func (c *Collector) post(ctx context.Context, t Target, body string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL+Path, strings.NewReader(body))
	if err != nil {
		return 0, "", failf(stele.Invalid, "", "{cause}", err)
	}
	r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	r.Header.Set("User-Agent", c.Agent)
	a, err := c.HTTP.Do(r)
	if err != nil {
		return 0, "", failf(stele.Unavailable, "log.witness-unreachable", "the witness can't be asked: {cause}", err)
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer))
	if err != nil {
		return 0, "", failf(stele.Unavailable, "log.witness-unreachable", "the witness can't be asked: {cause}", err)
	}
	return a.StatusCode, string(b), nil
}
