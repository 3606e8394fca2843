package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// streamStill is how long a stream may be idle while the server does long work. The server
// reports every few seconds that it goes on.
const streamStill = 2 * time.Minute

// Inspection has the functions that Check calls with what it finds; each may be nil.
type Inspection struct {
	Problem  func(problem *stele.Message) // of what is wrong
	Note     func(note *stele.Message)    // of names that would not be accepted today
	Progress func(done float64)           // of the part that is done, from 0 to 1
}

func (i Inspection) problem(m *stele.Message) {
	if i.Problem != nil {
		i.Problem(m)
	}
}

func (i Inspection) note(m *stele.Message) {
	if i.Note != nil {
		i.Note(m)
	}
}

// Check has the server check its registry, and reports what it finds. The server does not
// say how far it is, so Check never calls Progress. It returns how many changes the
// registry has. Only an administrator may check.
func (r *Registry) Check(ctx context.Context, tell Inspection) (changes uint64, err error) {
	const op = "verify"
	s, err := r.open(ctx, &ask{method: http.MethodPost, path: "verify", again: true}, nil, streamStill)
	if err != nil {
		return 0, under(op, stele.ID{}, err)
	}
	defer s.Close()
	for text, err := range textLines(s) {
		if err != nil {
			return 0, err
		}
		var line apijson.Verified
		if err := json.Unmarshal(text, &line); err != nil {
			return 0, unread(err)
		}
		if line.Problem != "" {
			tell.problem(line.Message(line.Problem))
		}
		if line.Note != "" {
			tell.note(line.Message(line.Note))
		}
		if line.Done {
			if line.Changes != nil {
				changes = *line.Changes
			}
			return changes, nil
		}
	}
	return 0, refuse(op, stele.ID{}, stele.Unavailable, "verify.answer-cut-off", "the answer was cut off, so not all was looked at; try again")
}

// LastChange returns the number of the last change. Only an administrator may ask.
func (r *Registry) LastChange(ctx context.Context) (uint64, error) {
	p, err := r.Position(ctx)
	return p.Change, err
}

// Position returns the number of the last change and its generation. Only an
// administrator may ask.
func (r *Registry) Position(ctx context.Context) (p stele.Position, err error) {
	q := &ask{method: http.MethodGet, path: "changes", again: true, query: url.Values{"limit": {"1"}}}
	var page apijson.ChangePage
	if err := r.fetch(ctx, "list changes", q, &page); err != nil {
		return p, err
	}
	p.Change = page.Last
	if page.Generation != "" { // a server of an earlier version has none
		if p.Generation, err = stele.ParseGenerationID(page.Generation); err != nil {
			return p, unread(err)
		}
	}
	return p, nil
}

// Status returns the state of the server. Only an administrator may ask.
func (r *Registry) Status(ctx context.Context) (s apijson.Status, err error) {
	err = r.fetch(ctx, "ask for the status", &ask{method: http.MethodGet, path: "status", again: true}, &s)
	s.Why = apijson.Legible(s.Why)
	return s, err
}

// AuditPage returns the entries of a part of the audit trail that a query selects, the
// number up to which the server has read, and whether that is the end for now.
func (r *Registry) AuditPage(ctx context.Context, q registrar.AuditQuery) (page []audit.Document, after uint64, last bool, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "after": {strconv.FormatUint(q.After, 10)}}
	for name, t := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !t.IsZero() {
			query.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	texts := map[string]string{"by": q.By, "operation": q.Operation, "outcome": string(q.Outcome), "via": q.Via}
	if q.Namespace != (stele.NamespaceKey{}) {
		texts["namespace"] = q.Namespace.String()
	}
	for name, text := range texts {
		if text != "" {
			query.Set(name, text)
		}
	}
	var got audit.Page
	if err := r.fetch(ctx, "read audit trail", &ask{method: http.MethodGet, path: "audit", query: query, again: true}, &got); err != nil {
		return nil, 0, false, err
	}
	return got.Items, got.After, got.Last, nil
}

// SecretKeys shows which keys encrypt secrets of the registry.
func (r *Registry) SecretKeys(ctx context.Context) (*apijson.SecretKeys, error) {
	keys := new(apijson.SecretKeys)
	return keys, r.fetch(ctx, "show secret keys", &ask{method: http.MethodGet, path: "secrets", again: true}, keys)
}

// RotateSecrets encrypts all secrets of the registry under another key.
func (r *Registry) RotateSecrets(ctx context.Context, want apijson.SecretRotation) (*apijson.SecretRotated, error) {
	done := new(apijson.SecretRotated)
	return done, r.fetch(ctx, "rotate secret key", &ask{method: http.MethodPost, path: "secrets", document: want}, done)
}
