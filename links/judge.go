package links

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// usualWait is how long to wait for a server that says that it is asked too often, and not for how long.
const usualWait = time.Hour

// Judge says what an answer is evidence of.
func (r *Rules) Judge(a *Answer) Evidence {
	e := Evidence{Status: a.Status, Final: a.Final, Redirected: len(a.Hops) > 0}
	if len(e.Final) > stele.MaxURL { // it can't be a target, and is not kept
		e.Final = a.URL
	}
	if a.Failure != NoFailure {
		r.judgeFailure(a, &e)
		return e
	}
	p := &page{}
	if isText(a.Header.mediaType()) {
		p = readPage(a.Body)
	}
	e.Title = p.title
	if a.Status >= 200 && a.Status < 300 || a.Status == 304 {
		r.judgeGood(a, p, &e)
		return e
	}
	r.judgeRefusal(a, p, &e)
	return e
}

func (r *Rules) judgeFailure(a *Answer, e *Evidence) {
	switch a.Failure {
	case FailNoName:
		e.Weight, e.Cause = Bad, NoName
	case FailDNS:
		e.Weight, e.Cause = Bad, DNSFailed
	case FailRefused:
		e.Weight, e.Cause = Bad, Refused
	case FailReset:
		e.Weight, e.Cause = Bad, Reset
	case FailTimeout:
		e.Weight, e.Cause = Bad, TimedOut
	case FailLoop:
		e.Weight, e.Cause = Bad, Loop
	case FailNoFile:
		e.Weight, e.Cause = Bad, NotFound
	case FailNoLogin:
		e.State, e.Cause = Blocked, NeedsAccess
	case FailBusy:
		e.Cause, e.Wait = AskedToWait, usualWait
	case FailOurs:
		e.Cause, e.Wait = OwnFault, ownWait
	case FailTLS:
		e.Weight, e.State, e.Cause = Weak, Unsure, BadCertificate
	case FailRobots:
		e.State, e.Cause = Blocked, RobotsForbid
	case FailRobotsUnread:
		e.State, e.Cause = Blocked, RobotsUnread
	case FailPrivate:
		e.State, e.Cause = Excluded, PrivateAddress
	default:
		e.State, e.Cause = Excluded, NotAskable
	}
}

// judgeGood judges an answer with a status of success, which need not be the page that is meant.
func (r *Rules) judgeGood(a *Answer, p *page, e *Evidence) {
	e.Weight, e.State, e.Cause = Good, OK, Answered
	if a.Status == 304 {
		return
	}
	if e.Sign = r.wall(a, len(p.words)); e.Sign != "" {
		e.Weight, e.State, e.Cause = Nothing, Blocked, Wall
		return
	}
	redirected := len(a.Hops) > 0
	var from, to *url.URL
	if redirected {
		from, _ = url.Parse(a.URL)
		to, _ = url.Parse(a.Final)
	}
	named := func(names []string) bool {
		return to != nil && from != nil && to.Path != from.Path && isNamed(to.Path, names)
	}
	switch {
	case named(r.Pages.Login) && p.password:
		e.Weight, e.State, e.Cause = Nothing, Blocked, NeedsAccess
	case named(r.Pages.Login), named(r.Pages.Error):
		e.Weight, e.State, e.Cause = Weak, Unsure, ErrorPage
	case to != nil && from != nil && isHome(to) && !isHome(from):
		e.Weight, e.State, e.Cause = Weak, Unsure, HomePage
	case r.saysNotFound(p.title):
		e.Weight, e.State, e.Cause = Bad, Failing, SaysNotFound
	case isSoft(a, p):
		e.Weight, e.State, e.Cause = Bad, Failing, SameAsOther
	case a.Distrust:
		e.Weight, e.State, e.Cause = Weak, Unsure, BadCertificate
	case redirected && !slices.ContainsFunc(a.Hops, func(h Hop) bool { return h.Status != 301 && h.Status != 308 }):
		e.State, e.Cause = Moved, Redirected
	}
	if e.Weight == Good {
		e.Print = takePrint(a, p)
	}
}

// isSoft reports whether a server gives the same page for what can't be there. A server whose home page is that
// page too is a single-page site: scripts decide there what is shown.
func isSoft(a *Answer, p *page) bool {
	if a.Neighbour == nil || a.Neighbour.Status != a.Status || !isText(a.Header.mediaType()) {
		return false
	}
	seen := &Sighting{Status: a.Status, Title: p.title, Text: p.simHash(), Words: len(p.words)}
	return seen.isSame(a.Neighbour) && a.Home != nil && !seen.isSame(a.Home)
}

// NeedsNeighbour reports whether a path beside the target must be asked to judge an answer: it is a page of
// text below the home page.
func NeedsNeighbour(a *Answer) bool {
	if a.Failure != NoFailure || a.Status != 200 || a.Distrust || !strings.HasPrefix(a.Header.mediaType(), "text/html") {
		return false
	}
	u, err := url.Parse(a.Final)
	return err == nil && !isHome(u)
}

// Neighbour returns the address of something beside a target that can't be there: name must be random.
func Neighbour(target, name string) (neighbour, home string, ok bool) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return "", "", false
	}
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}
	home = at.String()
	at.Path = path.Dir(strings.TrimSuffix(u.Path, "/"))
	if at.Path == "." || at.Path == "/" {
		at.Path = ""
	}
	at.Path += "/" + name
	return at.String(), home, true
}

// judgeRefusal judges a status of 400 and above, and others that are not an answer.
func (r *Rules) judgeRefusal(a *Answer, p *page, e *Evidence) {
	e.Sign = r.wall(a, len(p.words))
	switch {
	case a.Status == 401 || a.Status == 402 || a.Status == 407:
		e.State, e.Cause = Blocked, NeedsAccess
	case e.Sign != "" && (a.Status >= 403 && a.Status != 404 && a.Status != 410):
		e.State, e.Cause = Blocked, Wall
	case a.Status == 403:
		e.State, e.Cause = Blocked, Forbidden
	case a.Status == 429 || a.Status == 503 && a.Wait > 0:
		e.Cause, e.Wait = AskedToWait, min(max(a.Wait, time.Minute), 24*time.Hour)
		if a.Wait == 0 {
			e.Wait = usualWait
		}
	case a.Status == 404:
		e.Weight, e.Cause = Bad, NotFound
	case a.Status == 410:
		e.Weight, e.Cause = Bad, SaysGone
	default:
		e.Weight, e.Cause = Bad, BadStatus
	}
}

// isHome reports whether a URL is that of a home page.
func isHome(u *url.URL) bool { return (u.Path == "" || u.Path == "/") && u.RawQuery == "" }

// isNamed reports whether a part of a path, without the ending of a file, is one of the names.
func isNamed(text string, names []string) bool {
	for part := range strings.SplitSeq(strings.ToLower(text), "/") {
		if slices.Contains(names, strings.TrimSuffix(part, path.Ext(part))) || slices.Contains(names, part) {
			return true
		}
	}
	return false
}

// isText reports whether a body of the type can be read as text; "" says nothing.
func isText(media string) bool {
	return media == "" || strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "xml") || strings.HasSuffix(media, "json")
}
