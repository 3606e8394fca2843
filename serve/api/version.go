package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/stele-id/stele"
)

// versionParameter is the version token, which every operation takes, and versionAnswer
// what the answer to every write has.
var (
	versionParameter = parameter{name: stele.VersionHeader, kind: numberKind, about: "answer only from a state that has this change: the number that a write was answered with, by any server of the registry", example: "1042"}
	versionAnswer    = parameter{name: stele.VersionHeader, kind: numberKind, about: "A change that is no earlier than what was written; send it along to see that on every server at once", example: "1042"}
)

// await makes sure that the answer is from a state that the request asks for.
func (c *call) await() error {
	version, err := stele.ParseVersionHeader(c.r.Header[stele.VersionHeader])
	if err != nil || version == 0 || c.h.o.Await == nil {
		return err
	}
	return c.h.o.Await(c.ctx, version)
}

// tellVersion tells which state has what was written, in the head of an answer, or in
// its trailer. Where that can't be told the write is as good.
func (c *call) tellVersion() {
	if c.isRead() || c.h.o.Version == nil {
		return
	}
	// What was done for the request may have ended its context.
	if n, err := c.h.o.Version(context.WithoutCancel(c.ctx)); err == nil {
		c.w.Header()[stele.VersionHeader] = []string{strconv.FormatUint(n, 10)}
	}
}

// promiseVersion says in the head of a stream that its trailer has the version: what it
// writes is written after the head was sent.
func (c *call) promiseVersion() {
	if !c.isRead() && c.h.o.Version != nil {
		c.w.Header()["Trailer"] = versionTrailer
	}
}

var versionTrailer = []string{http.CanonicalHeaderKey(stele.VersionHeader)}
