package doctor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registry"
)

// examineRegistry looks into the registry: through the server, or if no server has the folder
// open, in the folder.
func examineRegistry(ctx context.Context, x *subject) {
	token, err := x.Token()
	if err != nil {
		x.problem("", "", "{cause}", err)
		return
	}
	pid, _ := x.holder()
	switch {
	case x.answers && token == "":
		x.warn("put the token of an administrator into STELE_TOKEN ('stele token create' makes one)", "doctor.token-not-given", "the server has the registry open, and no token was given; so versions, the last change, zones and tokens were not examined")
	case x.answers:
		x.lookThroughServer(ctx)
	case x.Away || pid != 0:
		x.warn("", "doctor.registry-not-examined-server-silent", "the registry can't be looked into before the server answers")
	default:
		x.lookIntoStore(ctx)
	}
}

// lookThroughServer asks the server.
func (x *subject) lookThroughServer(ctx context.Context) {
	server := x.Server
	if !x.Away {
		server = x.local()
		if x.Config.RedirectHTTPS && x.Config.Base != "" { // in clear no token is taken
			server = x.Config.Base
		}
	}
	var found findings
	err := x.AskServer(ctx, server, func(_ context.Context, r *remote.Registry) error {
		status, err := r.Status(ctx)
		if err != nil {
			return err
		}
		if found.status = &status; status.LastChange != nil {
			found.last = *status.LastChange
		}
		return errors.Join(found.read(ctx, r), found.readHandleSites(ctx, x.Schemes, r))
	})
	if err != nil {
		do := "it takes the token of an administrator, in STELE_TOKEN"
		if !errors.Is(err, stele.Forbidden) && !errors.Is(err, stele.Unauthenticated) {
			do = "see that the address is right, and what the server's log says"
		}
		x.problem(do, "doctor.registry-not-examined", "the registry can't be looked into: {cause}", err)
		return
	}
	x.registry = &found
	x.judgeStatus(found.status)
	if !x.Away {
		x.judgePasskeys(nil)
	}
}

// mayOpen reports whether the registry can be opened without harm: what is written into a
// folder must belong to the same user as the rest.
func (x *subject) mayOpen() bool {
	if x.Place.IsDatabase() {
		return true
	}
	info, err := os.Stat(x.Place.Folder)
	if err != nil {
		return false // that was reported
	}
	if uid, known := ownerOf(info); known && uid != os.Geteuid() {
		x.warn("run this as the user of the server: sudo -u stele stele doctor", "doctor.folder-of-other-user", "the folder belongs to another user, who could not open it any more after this one has")
		return false
	}
	return true
}

// lookIntoStore opens the folder or the database.
func (x *subject) lookIntoStore(ctx context.Context) {
	if !x.mayOpen() {
		return
	}
	var found findings
	err := x.Open(ctx, func(ctx context.Context, r *registry.Registry) error {
		if err := r.Store.Ready(ctx); errors.Is(err, stele.ErrSealed) {
			x.warn("ask where it moved to; 'stele store status' has more", "", "{cause}", stele.Reason(err))
			found.sealed = true
		} else if err != nil {
			return err
		}
		last, err := r.Store.LastChange(ctx)
		if err != nil {
			return err
		}
		if last > 0 {
			for change, err := range r.Store.Changes(ctx, last-1) {
				if err != nil {
					return err
				}
				found.last = change.At
				break
			}
		}
		if found.sites, err = r.Registrar.PasskeySites(ctx); err != nil {
			return err
		}
		return errors.Join(found.read(ctx, r.Registrar), found.readHandleSites(ctx, x.Schemes, r.Registrar))
	})
	if err != nil {
		do := "docs/bad-day.md tells how to restore a backup"
		if x.Place.IsDatabase() {
			do = "docs/postgres.md tells what the message means"
		}
		x.problem(do, "doctor.registry-not-openable", "the registry can't be opened: {cause}", err)
		return
	}
	x.registry = &found
	x.judgePasskeys(found.sites)
	switch {
	case found.sealed:
	case x.Place.IsDatabase():
		x.ok("doctor.registry-usable", "it can be opened and written")
	default:
		x.ok("doctor.registry-usable-no-server", "it can be opened and written; no server has it")
	}
}

// lister is a registry as far as doctor reads it, here or at a server.
type lister interface {
	Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error]
	Users(ctx context.Context) iter.Seq2[auth.User, error]
	Tokens(ctx context.Context, user string) iter.Seq2[auth.Token, error]
	ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error]
}

// read reads what the later examinations look at.
func (f *findings) read(ctx context.Context, from lister) error {
	f.users = map[string]auth.User{}
	for ns, err := range from.Namespaces(ctx) {
		if err != nil {
			return err
		}
		f.namespaces = append(f.namespaces, ns)
	}
	for u, err := range from.Users(ctx) {
		if err != nil {
			return err
		}
		f.users[u.Name] = u
	}
	for t, err := range from.Tokens(ctx, "") {
		if err != nil {
			return err
		}
		f.tokens = append(f.tokens, t)
	}
	for z, err := range from.ZoneStates(ctx) {
		if err != nil {
			return err
		}
		f.zones = append(f.zones, z)
	}
	return nil
}

// judgePasskeys judges whether passkeys, which are for the hosts given, work at the public address.
func (x *subject) judgePasskeys(sites []string) {
	base, err := url.Parse(x.Config.Base)
	if x.Config.Passwords && x.Config.Base == "" {
		x.warn("set base to the address at which users reach the desk, with https", "doctor.passwords-without-base", "users sign in by a password, and the server does not know its public address, so it can't tell whether that is https")
	}
	if err != nil || base.Host == "" {
		return
	}
	host := base.Hostname()
	if base.Scheme != "https" && host != "localhost" && !strings.HasSuffix(host, ".localhost") {
		if x.Config.Passwords {
			x.warn("set base to an address with https, or passwords to false", "doctor.passwords-without-https", "users sign in by a password, and the public address {base} is not https: anyone between them and the server can read it", x.Config.Base)
		}
		x.warn("set base to an address with https", "doctor.no-passkeys", "the public address {base} is not https, so the desk offers no passkeys", x.Config.Base)
		return
	}
	others := slices.DeleteFunc(slices.Clone(sites), func(site string) bool { return site == host })
	if len(others) > 0 {
		x.warn("give their users a link, by which they make new ones: stele user link", "doctor.passkeys-of-other-host", "there are passkeys for {hosts}, and base has the host {host}: they don't work there", strings.Join(others, ", "), host)
	}
}

// searchBehind is how many changes the search index of a server may be behind.
const searchBehind = 10_000

// judgeStatus judges what the server says of itself.
func (x *subject) judgeStatus(s *apijson.Status) {
	before := x.problems
	if !s.Ready {
		x.problem("docs/bad-day.md has the steps", "doctor.registry-not-writable", "it can't be written: {reason}", s.Why)
	}
	if s.Version != x.Version {
		x.warn("restart the server after an update (systemctl restart stele)", "doctor.version-differs", `the server is version "{server}", and this program "{program}"`, s.Version, x.Version)
	}
	if len(s.Shut) > 0 {
		x.warn("set their counters ahead of all names that were given out: stele ns skip", "doctor.minting-shut", "since a restore no names are made in {namespaces}", strings.Join(s.Shut, ", "))
	}
	if d := s.Disk; x.Away && d != nil && d.Free < d.Total/20 {
		x.warn("docs/bad-day.md has the steps", "doctor.disk-low", "its disk has {free} free of {total}", shortBytes(d.Free), shortBytes(d.Total))
	}
	switch i := s.Search; {
	case i == nil:
		x.warn("see search-index in 'stele config list', and what the server's log says", "doctor.search-index-missing", "the server has no search index, so records can't be searched by words")
	case i.Behind > searchBehind:
		x.warn("wait, and see what the server's log says if it stays so", "doctor.search-index-behind", "the search index is {behind} changes behind the registry", i.Behind)
	}
	if x.problems == before {
		x.ok("doctor.registry-writable", "it can be written, and has {changes} changes", s.Changes)
	}
}

// How wrong a clock may be.
const (
	clockOff   = 2 * time.Second
	clockWrong = time.Minute
	clockDrift = time.Second
)

// examineClock judges the clock. Names are made from the time, and histories are in its
// order.
func examineClock(_ context.Context, x *subject) {
	const set = "set it right, and let a program keep it so (apt install chrony, or timedatectl set-ntp true)"
	right, wrong, known := disciplined()
	before := x.problems
	switch {
	case x.Away || !known:
	case !right:
		x.warn(set, "doctor.clock-not-synchronised", "no service synchronises the clock of this machine")
	case wrong > clockDrift:
		x.warn(set, "doctor.clock-may-be-wrong", "the clock of this machine may be wrong by {deviation}", wrong.Round(time.Millisecond))
	default:
		x.ok("doctor.clock-right", "it is kept right, to {deviation}", wrong.Round(time.Millisecond))
	}
	if x.registry != nil && x.registry.last.After(x.Now().Add(clockOff)) {
		x.problem("docs/bad-day.md has the steps", "doctor.last-change-in-future", "the last change was made at {time}, which is in the future: the clock was set back, or was wrong then", x.registry.last.UTC().Format(time.RFC3339))
	}
	if x.registry != nil && x.registry.status != nil {
		x.known, x.skew = true, x.registry.status.Now.Sub(x.Now())
	}
	switch off := x.skew.Abs(); {
	case !x.known:
	case off > clockWrong:
		x.problem(set, "doctor.clocks-differ", "the server's clock and that of this machine are {duration} apart", off.Round(time.Second))
	case off > clockOff:
		x.warn(set, "doctor.clocks-differ", "the server's clock and that of this machine are {duration} apart", off.Round(time.Second))
	case x.Away && x.problems == before:
		x.ok("doctor.clocks-agree", "the server's clock and that of this machine agree")
	}
}

// How long before its end doctor reports a token, and how long after it was made if it was
// never used.
const (
	tokenSoon   = 30 * 24 * time.Hour
	tokenUnused = 90 * 24 * time.Hour
)

// examineTokens reports tokens that expire soon, that are not used, and that never expire
// though they may do everything.
func examineTokens(_ context.Context, x *subject) {
	if x.registry == nil {
		return
	}
	good, told, admin := 0, false, false
	for _, t := range x.registry.tokens {
		u := x.registry.users[t.User]
		if t.Ended(x.Now()) || u.Disabled {
			continue
		}
		good++
		whole := u.Admin && (len(t.Scopes) == 0 || slices.Contains(t.Scopes, auth.ScopeAdmin)) && len(t.Namespaces) == 0
		admin = admin || whole
		told = x.judgeToken(&t, whole) || told
	}
	switch {
	case !admin:
		x.warn("stop the server, and make one: stele token create USER "+x.Place.Flag(), "doctor.administrator-token-missing", "no administrator has a token that is good, so the registry can't be administered over the network")
	case !told:
		x.ok("doctor.tokens-good", "{tokens} in use, of which none ends within 30 days", good)
	}
}

// judgeToken reports what the operator should know of a token; false if nothing.
func (x *subject) judgeToken(t *auth.Token, admin bool) bool {
	who := fmt.Sprintf("token %s of %s", t.ID, t.User)
	if t.Label != "" {
		who += fmt.Sprintf(" (%q)", t.Label)
	}
	another := fmt.Sprintf("make another in time, with a token that lasts longer or where the registry is: stele token create %s; then stele token revoke %s", t.User, t.ID)
	switch {
	case !t.Expires.IsZero() && t.Expires.Before(x.Now().Add(tokenSoon)):
		x.warn(another, "doctor.token-expires-soon", "{token} expires in {days} days", who, fmt.Sprintf("%d", t.Expires.Sub(x.Now())/(24*time.Hour)))
	case t.Expires.IsZero() && admin:
		x.warn(another, "doctor.token-never-expires", "{token} may do everything, and never expires", who)
	case t.LastUse.IsZero() && t.Created.Before(x.Now().Add(-tokenUnused)):
		x.warn("revoke it if it is not needed: stele token revoke "+t.ID, "doctor.token-never-used", "{token} was made {days} days ago and never used", who, fmt.Sprintf("%d", x.Now().Sub(t.Created)/(24*time.Hour)))
	default:
		return false
	}
	return true
}
