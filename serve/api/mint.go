package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar/minting"
)

// mintPatience is how long a request waits for names. A minter of one name a second makes so
// many in that time, and not a thousand.
const mintPatience = time.Minute

// maxPool is how many namespaces names may be made in at a time.
const maxPool = 100

var (
	idempotencyKey = parameter{name: "Idempotency-Key", min: 1, max: 255, about: "a key of your choice, such as a UUID: the same request with the same key gets the same answer for a day, also if the first answer got lost",
		example: "8e03978e-40d5-43dd-bc93-6894a57f9324"}
	replayed = parameter{name: "Idempotency-Replayed", about: "true if this was answered before"}
)

func (h *Handler) mintOperations() []operation {
	return []operation{{
		name: "mint", method: http.MethodPost, path: "mint", group: "Names",
		summary: "Make new names, and register records under them",
		about: "No name is ever made twice. All names and records of a request are made, or none. " +
			"Send an Idempotency-Key, and send the request again with it when no answer came: then nothing is made twice.",
		asks: editor, scope: auth.ScopeMint,
		headers: []parameter{idempotencyKey},
		body: &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.MintInput{},
			example: `{"namespace":"ark:12345/x5","count":2,"record":{"targets":[{"url":"https://example.org/1"}]}}`},
		answers: []answer{{status: 201, about: "The names, in the order in which they were made.", value: apijson.Minted{}, headers: []parameter{replayed}}},
		fails:   []int{404, 409, 422},
		serve:   h.mint,
	}}
}

// mint makes names.
func (h *Handler) mint(c *call) error {
	data, err := c.bytes()
	if err != nil {
		return err
	}
	var want apijson.MintInput
	if err := document.DecodeStrictly(c.op.name, data, &want); err != nil {
		return err
	}
	pool, n, err := h.readMint(&want)
	if err != nil {
		return err
	}
	record, err := h.nameless(c, want.Record, pool[0])
	if err != nil {
		return err
	}
	var idempotent *minting.IdempotencyKey
	if key, ok := c.header(idempotencyKey.name); ok {
		idempotent = &minting.IdempotencyKey{Key: key, Digest: sha256.Sum256(data)}
	}
	c.charge(n)
	c.extend(mintPatience)
	ctx, cancel := context.WithTimeout(c.ctx, mintPatience)
	defer cancel()
	made, err := h.o.Registrar.MintBatch(ctx, idempotent, pool, n, record)
	switch {
	case errors.Is(err, minting.ErrKeyReused):
		return refusef(http.StatusUnprocessableEntity, "request.idempotency-key-reused", `the key "{key}" stands for another request, which was answered; use a new key for a new request`, idempotent.Key)
	case err != nil && ctx.Err() != nil && c.ctx.Err() == nil:
		return &stele.Error{Op: c.op.name, Kind: stele.Unavailable, Err: stele.Messagef("mint.timed-out", "{names} names could not be made in {duration}; ask for fewer at a time, or for a finer granularity", n, mintPatience)}
	case err != nil:
		return err
	}
	if made.Replayed {
		c.w.Header().Set(replayed.name, "true")
	}
	return c.replyJSON(http.StatusCreated, minted(made))
}

// readMint returns where names are to be made, and how many.
func (h *Handler) readMint(want *apijson.MintInput) (pool []stele.NamespaceKey, n int, err error) {
	var faults stele.Problems
	add := func(path string, err error) { faults = append(faults, stele.Problem{Path: path, Err: err}) }
	parse := func(path, text string) {
		key, err := h.o.Registrar.ParsePrefix(text)
		if err != nil {
			add(path, stele.Reason(err))
		}
		pool = append(pool, key)
	}
	if n = 1; want.Count != nil {
		if n = *want.Count; n < 1 || n > minting.MaxBatch {
			add("count", stele.Messagef("request.mint-count-out-of-range", "should be from 1 to {limit}", minting.MaxBatch))
		}
	}
	switch {
	case (want.Namespace == "") == (len(want.Namespaces) == 0):
		add("namespace", stele.Messagef("mint.namespace-or-namespaces", "name one namespace here, or several in namespaces"))
	case len(want.Namespaces) > maxPool:
		add("namespaces", stele.Messagef("list.too-long", "there are {count}; {most} are the most", len(want.Namespaces), maxPool))
	case want.Namespace != "":
		parse("namespace", want.Namespace)
	}
	if len(faults) == 0 {
		for i, text := range want.Namespaces {
			parse(fmt.Sprintf("namespaces[%d]", i), text)
		}
	}
	if len(faults) > 0 {
		return nil, 0, &stele.Error{Op: "mint", Kind: stele.Invalid, Err: faults}
	}
	return pool, n, nil
}

// nameless reads a record that has no identifier yet; nil if there is none. While it is
// read it has one of the namespace.
func (h *Handler) nameless(c *call, data json.RawMessage, key stele.NamespaceKey) (*stele.Record, error) {
	if data == nil {
		return nil, nil
	}
	below, err := minting.NameBelow(h.o.Schemes, key)
	if err != nil {
		return nil, err
	}
	var own struct{ ID json.RawMessage }
	if json.Unmarshal(data, &own) == nil && own.ID != nil {
		return nil, &stele.Error{Op: c.op.name, Kind: stele.Invalid, Err: stele.Problems{{Path: "record.id",
			Err: stele.Messagef("mint.identifier-given", "the identifier is what is made here; leave it out, or register the record instead")}}}
	}
	rec, err := document.DecodeRecord(h.o.Schemes, document.WithMember(data, "id", below.String()))
	if err != nil {
		err = under("record", err)
		if e, ok := errors.AsType[*stele.Error](err); ok {
			e.ID = stele.ID{} // it has none
		}
		return nil, err
	}
	rec.ID = stele.ID{}
	return rec, nil
}

// minted returns a batch as a apijson.Minted in JSON.
func minted(made minting.Batch) []byte {
	b := []byte(`{"items":[`)
	for i, label := range made.Labels {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(append(b, `{"id":`...), label.ID.String())
		for k, alias := range label.Aliases {
			if k == 0 {
				b = append(b, `,"aliases":[`...)
			} else {
				b = append(b, ',')
			}
			b = appendQuoted(b, alias.String())
		}
		if len(label.Aliases) > 0 {
			b = append(b, ']')
		}
		if made.Records != nil {
			b = document.AppendRecord(append(b, `,"record":`...), made.Records[i])
		}
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

// appendQuoted appends a text as a string of JSON.
func appendQuoted(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // a string can always be written
	return append(b, quoted...)
}
