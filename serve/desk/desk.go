// Package desk is the web interface of curators: they sign in, find names, make and change them, and
// see who changed what. All paths are below [Root].
//
// It decodes forms, calls the registrar as the API does, and shows pages of package deskpage. It
// grants nothing: the registrar judges every step by the rights of the user who is signed in.
// Nothing changes by GET. Every page works without scripts.
package desk

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/issuer"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/search"
	"github.com/stele-id/stele/serve/httpd/describe"
	"github.com/stele-id/stele/trace"
	"github.com/stele-id/stele/web/deskpage"
	"github.com/stele-id/stele/web/language"
)

// Root is the path below which the desk is. No name can begin with it.
const Root = "/.desk/"

// Options are what a Handler needs to know of the place where it works. Registrar, Directory,
// Schemes, Pages, Languages, Subject and Now must be set.
type Options struct {
	Registrar *registrar.Registrar
	Directory *auth.Directory
	Store     Counter
	Schemes   *stele.Schemes
	Pages     *deskpage.Pages
	Languages *language.Catalog
	Now       func() time.Time
	Log       *slog.Logger // of what an operator should look into; nothing is logged if nil

	// Jobs keeps uploads and bulk changes. It must be set.
	Jobs *job.Board
	// UploadTime is how long a browser may take to send a file; 0: as long as for a form.
	UploadTime time.Duration

	// Find searches records as the principal in the context may find them; nil: the desk lists
	// namespaces only.
	Find func(ctx context.Context, q search.Query) (search.Page, error)

	// Mail sends mail to users; nil: none is sent.
	Mail *Mail

	// Proofs reports whether the API proves what names stood for; nil: it does not.
	Proofs func(ctx context.Context) bool

	// Keeping is how the registry is kept, and what of it can be taken away.
	Keeping Keeping

	// Bundle prepares a bundle of names that the user may have, in the context of the server; nil: the desk makes none.
	Bundle func(ctx context.Context, from *registrar.Bundling) (*bundle.Job, error)

	// Usage reads figures of use; nil: the desk shows none.
	Usage UsageBook

	// Zones publishes namespaces in the DNS; nil: the desk does not show that.
	Zones Zones

	// Links checks where names lead; nil: the desk does not show that.
	Links Links

	// Base is the server's public address, https://id.example.org; "": it is made of the request.
	Base string
	Site string // the name of the operator, for pages

	// Subject returns what descriptions of a record are made of, with the addresses that the
	// client of a request should see; the namespace may be nil.
	Subject func(r *http.Request, rec *stele.Record, ns *stele.Namespace) describe.Subject

	// OwnHost reports whether the Host of a request names this server.
	OwnHost func(r *http.Request) bool
	// ClientAddr returns the address of the client of a request.
	ClientAddr func(r *http.Request) netip.Addr
	// Generations returns the generations of the registry, which entity tags of the API name; nil: there is one only.
	Generations func() stele.Generations

	// Patience is how long a client may take to read a part of a long answer; 0: as the server has it.
	Patience time.Duration
	// KeepAddresses: the audit trail has the addresses of clients.
	KeepAddresses bool
	// Passwords says that users may sign in by a password and a code.
	Passwords bool

	// Issuers are the OpenID providers through which users sign in; Proxy says how a proxy does
	// that, nil: none does.
	Issuers []*issuer.Issuer
	Proxy   *Proxy

	// Demo is the user whom a visitor on a loopback address may sign in as with one click; "":
	// there is none.
	Demo string
}

// Counter counts names: a [stele.Store] is one.
type Counter interface {
	Count(ctx context.Context, key stele.NamespaceKey) (uint64, error)
}

// Handler answers requests. It is used by many goroutines at once.
type Handler struct {
	o        Options
	mux      *http.ServeMux
	guarded  http.Handler
	tries    *limit.Rate // attempts to sign in, by address
	accounts *limit.Rate // attempts to sign in by a password, by a hash of the user name
	seed     maphash.Seed
	bundles  bundleRoom // those that are being made
	checks   checks     // what other servers said of zones when they were asked last

	linkCounts linkCounts
}

// Attempts to sign in that an address may make, in a second on average and at once.
const (
	tryRate  = 1
	tryBurst = 20
)

// maxForm is how many bytes a form may have.
const maxForm = 2 << 20

// New makes a handler.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{o: o, mux: http.NewServeMux(), tries: limit.NewRate(tryRate, tryBurst), accounts: limit.NewRate(accountRate, accountBurst), seed: maphash.MakeSeed()}
	for pattern, serve := range h.open() {
		h.mux.HandleFunc(pattern, h.answer(serve, false))
	}
	for pattern, serve := range h.closed() {
		h.mux.HandleFunc(pattern, h.answer(serve, true))
	}
	h.mux.HandleFunc(Root, h.answer(func(c *call) error {
		return stele.Errorf("show page", stele.ID{}, stele.NotFound, "desk.page-unknown", "there is no such page here")
	}, false))
	// Forms of other sites can't act for a user who is signed in (CSRF). A proxy may rewrite
	// the Host, so the public address is trusted too.
	guard := http.NewCrossOriginProtection()
	if o.Base != "" {
		if err := guard.AddTrustedOrigin(o.Base); err != nil {
			o.Log.Warn("the public address can't be an origin of forms", "base", o.Base, "error", err.Error())
		}
	}
	guard.AddInsecureBypassPattern(endDigestsPattern)
	h.guarded = guard.Handler(h.mux)
	return h
}

// open returns the pages for all, by method and path.
func (h *Handler) open() map[string]func(*call) error {
	return map[string]func(*call) error{
		"GET " + Root + "sign-in":            (*call).signIn,
		"POST " + Root + "sign-in/demo":      (*call).signInDemo,
		"POST " + Root + "sign-in/passkey":   (*call).signInPasskey,
		"POST " + Root + "sign-in/password":  (*call).signInPassword,
		"POST " + Root + "passkey/options":   (*call).passkeyOptions,
		"GET " + Root + "link/{credential}":  (*call).showLink,
		"POST " + Root + "link/{credential}": (*call).useLink,
		"POST " + Root + "language":          (*call).setLanguage,

		"GET " + Root + "confirm/{user}/{credential}":  (*call).showConfirm,
		"POST " + Root + "confirm/{user}/{credential}": (*call).confirm,
		"GET " + Root + "digest/{user}/{credential}":   (*call).showEndDigests,
		endDigestsPattern: (*call).endDigests,

		"GET " + Root + "issuer/{name}":             (*call).goToIssuer,
		"GET " + Root + "issuer/{name}/back":        (*call).backFromIssuer,
		"POST " + Root + "link/{credential}/issuer": (*call).linkIssuer,
		"POST " + Root + "sign-in/proxy":            (*call).signInProxy,
	}
}

// closed returns the pages for users who are signed in.
func (h *Handler) closed() map[string]func(*call) error {
	return map[string]func(*call) error{
		"GET " + Root + "{$}":                 (*call).home,
		"POST " + Root + "sign-out":           (*call).signOut,
		"POST " + Root + "prove/demo":         (*call).proveDemo,
		"GET " + Root + "names":               (*call).names,
		"GET " + Root + "names.csv":           (*call).namesCSV,
		"GET " + Root + "bundle.tgz":          (*call).bundle,
		"GET " + Root + "namespaces":          (*call).namespaces,
		"GET " + Root + "namespace":           (*call).showNamespace,
		"GET " + Root + "namespace/new":       (*call).showNewNamespace,
		"POST " + Root + "namespace/new":      (*call).makeNamespace,
		"GET " + Root + "namespace/edit":      (*call).showEditNamespace,
		"POST " + Root + "namespace/edit":     (*call).saveNamespace,
		"GET " + Root + "zone":                (*call).showZone,
		"POST " + Root + "zone":               (*call).saveZone,
		"POST " + Root + "zone/check":         (*call).checkZone,
		"GET " + Root + "zone/keys":           (*call).showZoneKeys,
		"POST " + Root + "zone/keys":          (*call).changeZoneKeys,
		"GET " + Root + "tsig":                (*call).showTSIG,
		"POST " + Root + "tsig":               (*call).makeTSIG,
		"POST " + Root + "tsig/retire":        (*call).retireTSIG,
		"GET " + Root + "links":               (*call).showLinks,
		"POST " + Root + "links":              (*call).saveLinks,
		"POST " + Root + "links/look":         (*call).lookAtLink,
		"GET " + Root + "links.csv":           (*call).linksCSV,
		"GET " + Root + "links/accept":        (*call).showAccept,
		"POST " + Root + "links/accept":       (*call).accept,
		"GET " + Root + "new":                 (*call).showNew,
		"POST " + Root + "new":                (*call).makeNew,
		"GET " + Root + "record":              (*call).showRecord,
		"POST " + Root + "record":             (*call).saveRecord,
		"GET " + Root + "history":             (*call).history,
		"POST " + Root + "revert":             (*call).revert,
		"GET " + Root + "withdraw":            (*call).showWithdraw,
		"POST " + Root + "withdraw":           (*call).withdraw,
		"POST " + Root + "reinstate":          (*call).reinstate,
		"GET " + Root + "disavow":             (*call).showDisavow,
		"POST " + Root + "disavow":            (*call).disavow,
		"GET " + Root + "proposals":           (*call).proposals,
		"GET " + Root + "proposal":            (*call).showProposal,
		"POST " + Root + "proposal/approve":   (*call).approve,
		"POST " + Root + "proposal/decline":   (*call).decline,
		"GET " + Root + "labels":              (*call).labels,
		"GET " + Root + "qr.svg":              (*call).qrSVG,
		"GET " + Root + "qr.png":              (*call).qrPNG,
		"GET " + Root + "account":             (*call).account,
		"POST " + Root + "account/end":        (*call).endSession,
		"POST " + Root + "account/end-others": (*call).endOthers,
		"POST " + Root + "account/revoke":     (*call).revokeToken,

		"POST " + Root + "settings/address":        (*call).setAddress,
		"POST " + Root + "settings/address/remove": (*call).removeAddress,
		"POST " + Root + "settings/digest":         (*call).saveDigest,
		"GET " + Root + "mail":                     (*call).mailQueue,

		"GET " + Root + "usage":     (*call).showUsage,
		"POST " + Root + "usage":    (*call).saveUsageSettings,
		"GET " + Root + "usage.csv": (*call).usageCSV,

		"GET " + Root + "audit":           (*call).audit,
		"GET " + Root + "audit.csv":       (*call).auditCSV,
		"GET " + Root + "people":          (*call).people,
		"GET " + Root + "invite":          (*call).showInvite,
		"POST " + Root + "invite":         (*call).invite,
		"GET " + Root + "person":          (*call).showPerson,
		"POST " + Root + "person":         (*call).savePerson,
		"POST " + Root + "person/link":    (*call).makeLink,
		"POST " + Root + "person/end":     (*call).endPersonSession,
		"POST " + Root + "person/revoke":  (*call).revokePersonToken,
		"POST " + Root + "person/passkey": (*call).removePersonPasskey,
		"POST " + Root + "person/endlink": (*call).endPersonLink,
		"POST " + Root + "person/unlink":  (*call).unlinkPerson,

		"GET " + Root + "many":                  (*call).showMany,
		"POST " + Root + "many":                 (*call).sendMany,
		"GET " + Root + "many/{id}":             (*call).showPreview,
		"POST " + Root + "many/{id}":            (*call).setPreview,
		"GET " + Root + "many/{id}/rejects":     (*call).previewRejects,
		"GET " + Root + "jobs":                  (*call).jobs,
		"GET " + Root + "jobs/{id}":             (*call).showJob,
		"POST " + Root + "jobs/{id}/cancel":     (*call).cancelJob,
		"GET " + Root + "jobs/{id}/result.csv":  (*call).jobResult,
		"GET " + Root + "jobs/{id}/rejects":     (*call).jobRejects,
		"GET " + Root + "jobs/{id}/undo":        (*call).showUndo,
		"POST " + Root + "jobs/{id}/undo":       (*call).undo,
		"GET " + Root + "replace":               (*call).showReplace,
		"POST " + Root + "replace":              (*call).replace,
		"POST " + Root + "account/issuer":       (*call).joinIssuer,
		"POST " + Root + "account/issuer/leave": (*call).leaveIssuer,

		"POST " + Root + "prove/password":          (*call).provePassword,
		"GET " + Root + "account/password":         (*call).newPassword,
		"POST " + Root + "account/password":        (*call).setPassword,
		"POST " + Root + "account/password/remove": (*call).removePassword,
		"POST " + Root + "person/password":         (*call).removePersonPassword,
		"POST " + Root + "prove/passkey":           (*call).provePasskey,
		"GET " + Root + "account/passkeys/new":     (*call).newPasskey,
		"POST " + Root + "account/passkeys":        (*call).addPasskey,
		"POST " + Root + "account/passkeys/rename": (*call).renamePasskey,
		"POST " + Root + "account/passkeys/remove": (*call).removePasskey,
		"GET " + Root + "account/tokens/new":       (*call).newToken,
		"POST " + Root + "account/tokens":          (*call).makeToken,

		"GET " + Root + "rules":              (*call).showRules,
		"POST " + Root + "rules/add":         (*call).addRule,
		"POST " + Root + "rules/remove":      (*call).removeRule,
		"GET " + Root + "keeping":            (*call).showKeeping,
		"POST " + Root + "keeping/add":       (*call).addHeir,
		"POST " + Root + "keeping/remove":    (*call).removeHeir,
		"GET " + Root + "members":            (*call).showMembers,
		"POST " + Root + "members/give":      (*call).grant,
		"POST " + Root + "members/take":      (*call).ungrant,
		"POST " + Root + "members/hand-over": (*call).handOver,
		"POST " + Root + "members/leave":     (*call).leave,
		"GET " + Root + "settings":           (*call).showSettings,
		"POST " + Root + "settings":          (*call).saveSettings,
	}
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", deskpage.Policy)
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("X-Frame-Options", "DENY")
	if r.URL.Path+"/" == Root {
		http.Redirect(w, r, Root, http.StatusSeeOther)
		return
	}
	h.guarded.ServeHTTP(w, r)
}

// call is a request on its way.
type call struct {
	h        *Handler
	w        http.ResponseWriter
	r        *http.Request
	ctx      context.Context
	language *language.Language
	session  auth.Session
	who      auth.Principal

	preferred string // language that the user has set; may be empty
}

// answer makes a handler of a page.
func (h *Handler) answer(serve func(*call) error, closed bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		origin := auth.Origin{Via: "desk"}
		if h.o.KeepAddresses {
			origin.Address = h.o.ClientAddr(r).String()
		}
		c := &call{h: h, w: w, r: r, ctx: auth.WithOrigin(r.Context(), origin), language: h.o.Languages.Of(r, "", "")}
		err := c.identify()
		c.speak()
		switch {
		case err != nil:
		case closed && !c.who.IsKnown():
			err = c.turnAway()
		default:
			err = serve(c)
		}
		if auth.IsOldProof(err) {
			err = c.askProof()
		}
		if err != nil {
			c.fail(err)
		}
	}
}

// identify finds out who is signed in. A session that has ended is none.
func (c *call) identify() error {
	cookie, err := c.r.Cookie(c.cookieName())
	if err != nil {
		return nil
	}
	s, who, err := c.h.o.Directory.Session(c.ctx, cookie.Value)
	if errors.Is(err, stele.Unauthenticated) {
		return nil
	} else if err != nil {
		return err
	}
	c.session, c.who = s, who
	c.ctx = auth.With(c.ctx, who)
	if err := c.h.o.Registrar.NoteSession(c.ctx, s); err != nil && c.r.Context().Err() == nil {
		// Pages can be read while the store can't be written; the session may end early.
		c.h.o.Log.WarnContext(c.ctx, "the use of a session can't be noted", "error", err.Error())
	}
	return nil
}

// turnAway leads a visitor who is not signed in to the page for that. A form that was sent is
// shown again with all that was typed.
func (c *call) turnAway() error {
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		c.redirect(Root + "sign-in?next=" + url.QueryEscape(c.r.URL.RequestURI()))
		return nil
	}
	if c.isMultipart() { // a file can't be kept; what was typed or pasted is
		c.r.Body = http.MaxBytesReader(c.w, c.r.Body, 2*maxForm)
		values, _, _, err := c.readParts()
		if err != nil {
			return err
		}
		c.r.PostForm = values
	} else if err := c.readForm(); err != nil {
		return err
	}
	v := &deskpage.Ended{Frame: c.frame("ended.title", ""), Action: c.r.URL.RequestURI(), Kept: c.kept()}
	return c.show(http.StatusUnauthorized, "ended", v)
}

// kept returns the fields of the form that was sent, by name. Passwords and proofs are not kept: no page
// shows them again.
func (c *call) kept() (list []deskpage.Kept) {
	for _, name := range slices.Sorted(maps.Keys(c.r.PostForm)) {
		if strings.HasPrefix(name, "secret.") || strings.HasPrefix(name, "proof.") {
			continue
		}
		for _, value := range c.r.PostForm[name] {
			list = append(list, deskpage.Kept{Name: name, Value: value})
		}
	}
	return list
}

// readForm reads the fields of a form.
func (c *call) readForm() error {
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxForm)
	if err := c.r.ParseForm(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return stele.Errorf("read form", stele.ID{}, stele.Invalid, "desk.form-too-large", "the form has more than {most} bytes; send less at once", maxForm)
		}
		return stele.Errorf("read form", stele.ID{}, stele.Invalid, "desk.form-unreadable", "the form can't be read; go back and send it again")
	}
	return nil
}

// frame returns what all pages have. Title is a key, or a text of its own.
func (c *call) frame(title, section string) deskpage.Frame {
	if c.language.Has(title) {
		title = c.language.Text(title)
	}
	f := deskpage.Frame{Site: c.h.o.Site, Title: title, User: c.who.Name, Admin: c.who.Admin, Section: section, Now: c.h.o.Now(), Here: Root}
	if c.r.Method == http.MethodGet {
		f.Here = c.r.URL.RequestURI()
	}
	if key := c.r.URL.Query().Get("done"); c.language.Has("done." + key) {
		f.Notice = c.language.Text("done." + key)
	}
	for _, l := range c.h.o.Languages.Languages() {
		if l != c.language {
			f.Languages = append(f.Languages, deskpage.LanguageLink{Tag: l.Tag, Name: l.Name})
		}
	}
	return f
}

// show writes a page.
func (c *call) show(status int, page string, view deskpage.View) error {
	return c.h.o.Pages.Write(&answering{c, status}, c.language, page, view)
}

// answering sends a page that is given in one piece.
type answering struct {
	c      *call
	status int
}

func (a *answering) Write(page []byte) (int, error) {
	head := a.c.w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Content-Language", a.c.language.Tag)
	head.Set("Content-Length", strconv.Itoa(len(page)))
	head.Set("Vary", "Cookie, Accept-Language")
	a.c.w.WriteHeader(a.status)
	_, _ = a.c.w.Write(page) // it fails if the client has left
	return len(page), nil
}

// redirect leads to another page of the desk after a form.
func (c *call) redirect(path string) {
	http.Redirect(c.w, c.r, path, http.StatusSeeOther)
}

// inside returns a path of the desk to which a form wants to lead; others lead home.
func inside(path string) string {
	if strings.HasPrefix(path, Root) && !strings.ContainsAny(path, "\\\r\n\t") {
		return path
	}
	return Root
}

// statuses are those of errors.
var statuses = map[stele.Kind]int{
	stele.Invalid: http.StatusBadRequest, stele.NotFound: http.StatusNotFound, stele.Gone: http.StatusGone,
	stele.Conflict: http.StatusConflict, stele.Forbidden: http.StatusForbidden, stele.Unauthenticated: http.StatusUnauthorized,
	stele.Exhausted: http.StatusTooManyRequests, stele.Unavailable: http.StatusServiceUnavailable,
}

// fail shows an error. What went wrong inside goes to the log.
func (c *call) fail(err error) {
	status, ok := statuses[stele.KindOf(err)]
	title := "failure.title"
	v := &deskpage.Failure{}
	switch {
	case !ok || status == http.StatusServiceUnavailable:
		if c.r.Context().Err() == nil { // the path may have the secret of a link, so the log has the pattern
			c.h.o.Log.ErrorContext(c.ctx, "a page of the desk failed", "page", c.r.Pattern, "error", err.Error())
		}
		if !ok {
			status = http.StatusInternalServerError
		}
		v.Text = c.language.Text("failure.inside")
	default:
		c.retryAfter(err)
		v.Text = c.language.Problem(reason(err))
		if status == http.StatusNotFound {
			title = "failure.missing"
		}
	}
	id := trace.Tell(c.ctx, c.w.Header())
	if status >= http.StatusInternalServerError {
		v.Request = id
	}
	v.Frame, v.Status = c.frame(title, ""), status
	if err := c.show(status, "failure", v); err != nil {
		http.Error(c.w, v.Text, status)
	}
}

// retryAfter tells a client that has reached a limit when to try again.
func (c *call) retryAfter(err error) {
	if refusal, ok := errors.AsType[*limit.Refusal](err); ok {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(refusal.After.Seconds())+1))
	}
}

// reason returns what an error says, without the operation that failed.
func reason(err error) error {
	if e, ok := errors.AsType[*stele.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}
