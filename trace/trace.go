// Package trace tells operators what belongs to one request: an id, which stands in log
// lines and in error answers, and spans, which say what the server did for it and how long
// that took. Both travel in the context.
//
// It opens nothing and sends nothing; package otlp does. It never holds anything of the
// client that asks.
package trace

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"sync"
)

// Header is the header in which proxies hand on the id of a request, and in which error
// answers have it.
const Header = "X-Request-Id"

// maxRequest is how many characters the id of a request may have.
const maxRequest = 64

// IsRequest reports whether a text can be the id of a request: 1 to 64 of A-Z, a-z, 0-9,
// dots, underscores and hyphens. Ids of others are quoted in logs and answers, so that
// nothing else may be in them.
func IsRequest(text string) bool {
	if text == "" || len(text) > maxRequest {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// requestKey is the key of the id in a context.
type requestKey struct{}

// WithRequest returns a context that has the id of a request.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// Request returns the id of the request on whose behalf something is done; "" if it has
// none.
func Request(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// Tell puts the id of the request, if it has one, into the header of an answer, and returns
// it.
func Tell(ctx context.Context, header map[string][]string) string {
	id := Request(ctx)
	if id != "" {
		header[Header] = []string{id}
	}
	return id
}

// IDs makes ids that nothing else has and that can't be guessed. Many goroutines may use it
// at once.
type IDs struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

// NewIDs makes IDs of a seed from a source of true randomness.
func NewIDs(seed [32]byte) *IDs { return &IDs{source: rand.NewChaCha8(seed)} }

// Request returns an id for a request: 16 hexadecimal digits.
func (g *IDs) Request() string {
	var b [8]byte
	g.fill(b[:])
	return hex.EncodeToString(b[:])
}

// fill fills b with random bytes.
func (g *IDs) fill(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = g.source.Read(b) // it never fails
}
