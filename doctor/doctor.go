// Package doctor looks for what is wrong with an installation: the configuration, the folder
// and its disk, the clock, the server and its certificates, the delegation of published
// zones, tokens and backups. It changes nothing.
package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/store/pebble"
)

// Options are what is looked at, and how.
type Options struct {
	Config     *config.Config // of the server
	ConfigFile string         // where it is from; "" for no file

	// Away says that the server is on another machine, at the URL Server: the folder and this
	// machine say nothing of it.
	Away   bool
	Server string

	Place   registry.Place
	Secrets *secret.Ring // the secret keys of the server
	Backup  string       // the folder of backups; "" if it is not known
	Version string       // of this program
	Now     func() time.Time
	Roots   *x509.CertPool // that are trusted; nil for the system's

	Schemes *stele.Schemes

	Token func() (string, error) // of an administrator; "" for none

	// AskServer calls do with the registry of the server at a URL, and Open with the one at
	// Place.
	AskServer func(ctx context.Context, server string, do func(ctx context.Context, r *remote.Registry) error) error
	Open      func(ctx context.Context, do func(ctx context.Context, r *registry.Registry) error) error

	// Delegations returns what asks the DNS about zones.
	Delegations func() (*client.Delegations, error)
}

// Grade is how serious a finding is.
type Grade string

// The grades.
const (
	OK      Grade = "ok"
	Warning Grade = "warning"
	Problem Grade = "problem"
)

// Finding is what an examination found.
type Finding struct {
	Check string `json:"check"` // the name of the examination
	Grade Grade  `json:"state"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`   // what to do about it
	Code  string `json:"code,omitempty"` // of What, for programs; see [stele.Message]
}

// examination looks at one thing.
type examination struct {
	name string
	look func(ctx context.Context, x *subject)
}

// examinations are all of them, in the order in which they are made: the first fault is often
// the cause of the others.
var examinations = []examination{
	{"configuration", examineConfiguration},
	{"folder", examineFolder},
	{"disk", examineDisk},
	{"descriptors", examineDescriptors},
	{"server", examineServer},
	{"registry", examineRegistry},
	{"clock", examineClock},
	{"certificate", examineCertificate},
	{"redirect", examineRedirect},
	{"issuers", examineIssuers},
	{"mail", examineMail},
	{"zones", examineZones},
	{"delegation", examineDelegations},
	{"handle", examineHandle},
	{"tokens", examineTokens},
	{"backup", examineBackup},
}

// examinationTime is how long an examination may take.
const examinationTime = 30 * time.Second

// Examine makes all examinations. It reports each finding at once, and returns how many
// problems there are.
func Examine(ctx context.Context, o Options, report func(Finding) error) (problems int, err error) {
	x := newSubject(o, report)
	for _, e := range examinations {
		if ctx.Err() != nil {
			return x.problems, &stele.Error{Op: "doctor", Kind: stele.Unavailable, Err: stele.Messagef("doctor.interrupted", "interrupted")}
		}
		x.at = e.name
		within, cancel := context.WithTimeout(ctx, examinationTime)
		e.look(within, x)
		cancel()
	}
	return x.problems, x.failed
}

// subject is the installation that is examined, and what is known of it by now.
type subject struct {
	Options
	web    *http.Client
	tell   func(Finding) error
	failed error // to tell

	at       string // which examination
	problems int

	answers  bool          // the server does
	skew     time.Duration // by which its clock is ahead of this machine's
	known    bool          // skew is
	registry *findings     // nil if the registry could not be looked into
}

func newSubject(o Options, report func(Finding) error) *subject {
	return &subject{Options: o, tell: report, web: &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       15 * time.Second,
	}}
}

// findings is what the registry itself shows.
type findings struct {
	status     *apijson.Status // nil if no server was asked
	last       time.Time       // of the last change; the zero time if there is none
	namespaces []*stele.Namespace
	users      map[string]auth.User
	tokens     []auth.Token
	zones      []stele.ZoneState
	handles    []handleSite
	sites      []string // hosts for which there are passkeys; not known if a server was asked
	sealed     bool     // nothing is written
}

// report passes a finding to the caller of the examinations.
func (x *subject) report(g Grade, what *stele.Message, do string) {
	if g == Problem {
		x.problems++
	}
	code, _ := stele.CodeOf(what)
	if err := x.tell(Finding{x.at, g, what.Error(), do, code}); x.failed == nil {
		x.failed = err
	}
}

func (x *subject) ok(code, text string, args ...any) {
	x.report(OK, stele.Messagef(code, text, args...), "")
}

func (x *subject) warn(do, code, text string, args ...any) {
	x.report(Warning, stele.Messagef(code, text, args...), do)
}

func (x *subject) problem(do, code, text string, args ...any) {
	x.report(Problem, stele.Messagef(code, text, args...), do)
}

// local returns the URL of the server on this machine; "" if it is not known. The process that has
// the folder open wrote down where it answers. The configuration may be that of another server, or
// none: its default address may be anyone's. If it is the public address that was written down, the
// configuration knows the nearer one.
func (x *subject) local() string {
	if pid, _ := x.holder(); pid != 0 {
		if _, at := pebble.Holder(x.Place.Folder); at != "" && at != x.Config.Base {
			return at
		}
	}
	host, port, err := net.SplitHostPort(x.Config.HTTP)
	if err != nil || port == "0" {
		return ""
	}
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// public returns the public URL of the server; "" if it is not known.
func (x *subject) public() string {
	if x.Away {
		return strings.TrimRight(x.Server, "/")
	}
	return x.Config.Base
}

// get asks for a URL, and says how long the answer took.
func (x *subject) get(ctx context.Context, link string) (*http.Response, time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, 0, err
	}
	begin := x.Now()
	response, err := x.web.Do(r)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return nil, 0, err
	}
	_ = response.Body.Close() // the head is enough
	return response, x.Now().Sub(begin), nil
}

// isFree reports whether certainly no process has the folder open: then a server that answers is one of
// another registry. The remark of a process that does not run here is not a proof, since the process may
// run in a container.
func (x *subject) isFree() bool {
	if x.Away || x.Place.IsDatabase() {
		return false
	}
	_, err := os.Lstat(filepath.Join(x.Place.Folder, pebble.HolderFile))
	return errors.Is(err, fs.ErrNotExist)
}

// holder returns the process that has the folder open; 0 if no process has.
func (x *subject) holder() (pid int, since string) {
	if x.Place.IsDatabase() {
		return 0, ""
	}
	who, _ := pebble.Holder(x.Place.Folder)
	rest, ok := strings.CutPrefix(who, "process ")
	number, since, _ := strings.Cut(rest, " since ")
	pid, err := strconv.Atoi(number)
	if !ok || err != nil || pid <= 0 || !isRunning(pid) {
		return 0, ""
	}
	return pid, since
}
