package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar/minting"
)

// Mint makes n new names in a namespace.
func (r *Registry) Mint(ctx context.Context, key stele.NamespaceKey, n int) ([]minting.Label, error) {
	return r.MintPool(ctx, []stele.NamespaceKey{key}, n)
}

// MintPool makes n new names, each in the namespace of the pool that is free first. If
// an error ends it early, it returns the names made before with the error. The server makes
// all names of a request or none, so MintPool asks for fewer when a namespace is exhausted.
func (r *Registry) MintPool(ctx context.Context, pool []stele.NamespaceKey, n int) ([]minting.Label, error) {
	var labels []minting.Label
	size := minting.MaxBatch
	for len(labels) < n {
		made, err := r.mint(ctx, pool, min(size, n-len(labels)), nil)
		switch {
		case err == nil:
		case errors.Is(err, stele.Exhausted) && min(size, n-len(labels)) > 1:
			size = (min(size, n-len(labels)) + 1) / 2
		default:
			return labels, err
		}
		for _, m := range made {
			labels = append(labels, minting.Label{ID: m.ID, Aliases: m.Aliases})
		}
	}
	return labels, nil
}

// MintAndRegister makes a new name in the namespace of the pool that is free first, and
// registers the record under it.
func (r *Registry) MintAndRegister(ctx context.Context, record *stele.Record, pool ...stele.NamespaceKey) (*stele.Record, error) {
	made, err := r.mint(ctx, pool, 1, record)
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

// shortMint is how long a request that makes records should take: large requests are
// efficient, and small ones lose few records if the caller stops before the answer.
// mintGrace is how long a request may go on after the context ends.
const (
	shortMint = 50 * time.Millisecond
	mintGrace = 5 * time.Second
)

// MintRecords makes n names, registers a record like rec under each, and yields them.
// When the context ends, MintRecords still waits some seconds for the answer to a request
// that it has sent, and yields the names in it.
func (r *Registry) MintRecords(ctx context.Context, rec *stele.Record, pool []stele.NamespaceKey, n int) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for size := 1; n > 0 && ctx.Err() == nil; {
			timer := time.AfterFunc(shortMint, func() {})
			made, err := r.mintLate(ctx, pool, min(size, n), rec)
			quick := timer.Stop()
			if err != nil && (!errors.Is(err, stele.Exhausted) || min(size, n) == 1) {
				yield(nil, err)
				return
			}
			for _, m := range made {
				if !yield(m, nil) {
					return
				}
			}
			n -= len(made)
			if quick && err == nil {
				size = min(2*size, minting.MaxBatch)
			} else {
				size = max(1, min(size, n)/2)
			}
		}
	}
}

// mintLate is mint that does not end with the context at once.
func (r *Registry) mintLate(ctx context.Context, pool []stele.NamespaceKey, n int, rec *stele.Record) ([]*stele.Record, error) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(mintGrace, cancel) })
	defer stop()
	return r.mint(late, pool, n, rec)
}

// mint makes names, and registers a record under each unless record is nil; then it
// returns records with names alone. The request has an idempotency key, so that the
// server makes nothing twice if mint sends it again.
func (r *Registry) mint(ctx context.Context, pool []stele.NamespaceKey, n int, record *stele.Record) ([]*stele.Record, error) {
	op := "mint"
	if len(pool) == 0 {
		return nil, refuse(op, stele.ID{}, stele.Invalid, "mint.no-namespace-given", "there is no namespace to make names in; give one")
	}
	body := apijson.MintInput{Count: &n}
	for _, key := range pool {
		body.Namespaces = append(body.Namespaces, key.String())
	}
	if record != nil {
		op = "mint and register"
		named := *record
		if named.ID, _ = minting.NameBelow(r.o.Schemes, pool[0]); named.ID.IsValid() {
			if err := valid(op, stele.ID{}, &named); err != nil {
				return nil, err
			}
		}
		body.Record = nameless(record)
	}
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	a, err := r.call(ctx, &ask{
		method: http.MethodPost, path: "mint", document: body, again: true,
		header: http.Header{"Idempotency-Key": {key}},
	})
	if err != nil {
		return nil, under(op, stele.ID{}, err)
	}
	return r.readMinted(a, n, record != nil)
}

// readMinted reads the answer to mint.
func (r *Registry) readMinted(a *response, n int, registered bool) ([]*stele.Record, error) {
	var list apijson.Page
	if err := a.decode(&list); err != nil {
		return nil, err
	}
	var made []*stele.Record
	for _, item := range list.Items {
		if registered {
			var label apijson.Label
			if err := json.Unmarshal(item, &label); err != nil {
				return nil, unread(err)
			}
			item = label.Record
		}
		rec, err := r.readRecord(item)
		if err != nil {
			return nil, err
		}
		made = append(made, rec)
	}
	if len(made) != n {
		return nil, unread(stele.Messagef("api.answer-names-count-differs", "it has another number of names than were asked for"))
	}
	return made, nil
}

// nameless returns the document of a record without an identifier, as its owner writes it.
func nameless(record *stele.Record) json.RawMessage {
	text := bytes.TrimPrefix(said(record), []byte(`{"id":""`))
	return append([]byte{'{'}, bytes.TrimPrefix(text, []byte{','})...)
}
