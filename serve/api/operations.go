package api

import (
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/serve/api/openapi"
)

// How an operation is added. A file that is named after its subject has a method
// that returns its operations, and a line in [Handler.operations]:
//
//	func (h *Handler) skipOperations() []operation {
//		return []operation{{
//			name: "skip", method: "POST", path: "skip/{prefix}", group: "Namespaces",
//			summary: "Advance the counter of a template",
//			asks:    administrator, scope: auth.ScopeAdmin,
//			query:   []parameter{{name: "quiet", kind: flagKind, about: "Answer with nothing"}},
//			body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.Skip{}, example: `{"to":250000}`},
//			answers: []answer{{status: 200, about: "The counter is there.", value: apijson.Minter{}}},
//			fails:   []int{404, 409},
//			serve:   h.skip,
//		}}
//	}
//
//	func (h *Handler) skip(c *call) error {
//		key, err := c.prefix()             // what follows skip/ in the path
//		...
//		var want apijson.Skip
//		if err := c.decode(&want); err != nil { // strict, bounded, with paths
//			return err
//		}
//		...
//		return c.reply(200, apijson.Minter{...})
//	}
//
// The table routes requests, makes openapi.json and the page for people (package openapi), and is what
// tests walk: what an operation answers must be declared in it, with its schema. The
// types of bodies are structs with json tags, and huma's tags for what a schema says
// beside (doc, example, minimum, maxLength, enum); their names without "Document" are
// those of the schemas.
//
// What a handler may rely on when it is called:
//
//   - the principal is in c.ctx (see package auth) and in c.who. Where asks is more than
//     anyone it is a caller whose token has the scope, and where it is administrator an
//     administrator. The registrar judges roles in a namespace, with c.ctx.
//   - the query has declared parameters only, each at most once, of the declared kind:
//     c.text, c.number, c.flag and c.moment read them. c.header is the same for the
//     declared headers.
//   - the body, if there is one, has a declared media type and no coding. c.bytes reads
//     it within its limit, c.decode as a document of a type. A body without a limit is
//     a stream, which the operation reads itself; c.extend gives the client time.
//   - c.charge takes from the caller's rate what a batch costs beside the request
//     itself, and c.pace does so for a stream, and waits.
//   - it returns an error before it has answered, which becomes a problem (problem.go),
//     or answers with c.reply, c.replyRecord, c.replyJSON, c.replyEmpty; or begins a
//     stream with c.stream, which gives the client time as long as it goes on taking.
//     An error that is returned after a stream began ends the answer so that the client
//     can't take it for whole.
//
// HEAD is answered wherever GET is, and OPTIONS everywhere: they are not declared.
func (h *Handler) operations() []operation {
	return slices.Concat(
		h.recordOperations(),
		h.stateOperations(),
		h.transparencyOperations(),
		h.listOperations(),
		h.searchOperations(),
		h.statisticsOperations(),
		h.usageSettingsOperations(),
		h.usageLogOperations(),
		h.namespaceOperations(),
		h.ruleOperations(),
		h.handOverOperations(),
		h.watchOperations(),
		h.hostOperations(),
		h.checkOperations(),
		h.zoneOperations(),
		h.zoneKeyOperations(),
		h.zoneFileOperations(),
		h.handleOperations(),
		h.batchOperations(),
		h.importOperations(),
		h.importsOperations(),
		h.replaceOperations(),
		h.exportOperations(),
		h.mintOperations(),
		h.proposalOperations(),
		h.harvestOperations(),
		h.escrowOperations(),
		h.linkOperations(),
		h.linkFeedOperations(),
		h.linkAcceptOperations(),
		h.userOperations(),
		h.tokenOperations(),
		h.accessOperations(),
		h.statusOperations(),
		h.changeOperations(),
		h.auditOperations(),
		h.verifyOperations(),
		h.backupOperations(),
		h.bundleOperations(),
		h.restoreOperations(),
		h.pageOperations(),
	)
}

// right is what a caller must be to use an operation at all. Which namespace a role must be
// in depends on what the request names.
type right int

const (
	anyone        right = iota // the public too; what it gets depends on what it may see
	known                      // any user with a token
	reader                     // and these in the namespace that is named
	editor                     //
	owner                      //
	administrator              //
)

// role returns the role in a namespace that a right asks for.
func (r right) role() stele.Role {
	switch r {
	case reader:
		return stele.RoleReader
	case editor:
		return stele.RoleEditor
	case owner:
		return stele.RoleOwner
	}
	return stele.NoRole
}

// anyScope is the scope of an operation for which any token may be used: it is about the
// token itself, or about what is public.
const anyScope auth.Scope = "any"

// operation is something that the API does.
type operation struct {
	name    string // operationId: a verb and what it is done to, "withdrawRecord"
	method  string
	path    string // below /api/v1/: "records", or "records/{id}" where {id} is all that follows
	group   string // under which people find it
	summary string // a few words, without a full stop
	about   string // more; sentences
	asks    right
	scope   auth.Scope // that a token must have, unless it has none at all; where asks is anyone, to get more than the public
	query   []parameter
	headers []parameter
	tail    parameter // what stands for {id}; about and example may be empty
	body    *body     // nil: none is taken
	answers []answer  // if all goes well
	gathers bool      // a large answer is made in memory, for which the operation waits for its turn
	fails   []int     // statuses of problems, beside those that every operation has
	serve   func(c *call) error
}

// root returns the first segment of the operation's path, and the name of what
// follows it; "" if nothing may.
func (o *operation) root() (root, tail string) {
	root, tail, _ = strings.Cut(o.path, "/")
	return root, strings.Trim(tail, "{}")
}

// body is what a request may bring.
type body struct {
	about    string
	media    []string // that are taken; the first is the usual one
	limit    int64    // bytes; 0: a stream, which is bounded line by line or by the operation
	value    any      // of the type whose schema it has; nil: bytes of which nothing is said
	lines    bool     // many such values, one a line
	optional bool
	example  string // as it is sent
}

// answer is one of the answers that an operation gives if all goes well.
type answer struct {
	status  int
	about   string // a sentence
	value   any    // of the type whose schema the body has; nil: see media
	media   string // of the body; if empty JSON if there is a value, and else the answer has no body
	lines   bool   // many such values, one a line
	headers []parameter
	example string
}

// parameter is a field of a query, or of a request's or an answer's head.
type parameter struct {
	name     string
	kind     openapi.Kind
	about    string // what it says; a sentence without its full stop
	usual    string // what is taken if it is not there; "" says nothing
	choices  []string
	min, max uint64 // of a number; if max is 0 there is none. Of a text, bytes: max is 4096 if 0
	required bool
	list     bool // of a head: may be given more than once
	example  string
}

// The kinds of parameters; a text has none.
const (
	numberKind = openapi.Number // a whole number, in plain digits
	flagKind   = openapi.Flag   // true or false
	momentKind = openapi.Moment // a time, as in RFC 3339
)

// htmlType is the media type of the page for people; package apijson has the others.
const htmlType = "text/html; charset=utf-8"

// Bounds.
const (
	maxBody    = 1 << 20 // bytes of a body that is one document
	maxBatch   = 8 << 20 // bytes of a body that is many
	maxLine    = 1 << 20 // bytes of a line of a stream
	maxTarget  = 8 << 10 // bytes of the request target
	maxPage    = 1 << 20 // bytes of a list's items, about; then another page begins
	usualLimit = 100     // items on a page
	maxLimit   = 1000
	heirTime   = 3 * time.Minute // that the heir of a namespace is asked for, and its client waits
)

// place is what stands at a first segment: operations by their methods, for the
// segment itself and for what is below it.
type place struct{ itself, below map[string]*operation }

// routes returns the operations by the first segments of their paths.
func routes(operations []operation) map[string]place {
	all := make(map[string]place)
	for i := range operations {
		op := &operations[i]
		root, tail := op.root()
		p, ok := all[root]
		if !ok {
			p = place{make(map[string]*operation), make(map[string]*operation)}
			all[root] = p
		}
		if tail == "" {
			p.itself[op.method] = op
		} else {
			p.below[op.method] = op
		}
	}
	return all
}
