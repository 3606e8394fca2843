package ask

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele/links"
)

const (
	robotsLife = 24 * time.Hour
	robotsRead = 512 << 10 // bytes (RFC 9309, section 2.5, asks for 500 KiB)
	robotsHops = 5
	robotsKept = 10_000   // of hosts in memory
	robotsLine = 1000     // rules of one file
	robotsRule = 2 << 10  // bytes of a rule
	robotsSize = 64 << 10 // bytes of all rules of a file that are kept
)

// robotRules are what robots.txt says to all programs, or to this one (RFC 9309).
type robotRules struct {
	rules []robotRule
	size  int // of all paths
	delay time.Duration
}

// add adds a rule, unless it is too long or the file has too many.
func (r *robotRules) add(path string, allow bool) {
	if path == "" || len(path) > robotsRule || len(r.rules) >= robotsLine || r.size+len(path) > robotsSize {
		return
	}
	r.rules = append(r.rules, robotRule{strings.Clone(path), allow}) // the rest of the line is not kept
	r.size += len(path)
}

type robotRule struct {
	path  string
	allow bool
}

// allow reports whether an address may be asked: the longest rule decides.
func (r *robotRules) allow(u *url.URL) bool {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	longest, allowed := -1, true
	for _, rule := range r.rules {
		if len(rule.path) < longest || len(rule.path) == longest && !rule.allow || !matches(rule.path, path) {
			continue
		}
		longest, allowed = len(rule.path), rule.allow
	}
	return allowed
}

// matches reports whether a path begins with a pattern, in which * stands for any text and $ for the end.
func matches(pattern, path string) bool {
	pattern, whole := strings.CutSuffix(pattern, "$")
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(path, parts[0]) {
		return false
	}
	path = path[len(parts[0]):]
	for i, part := range parts[1:] {
		if whole && i == len(parts)-2 {
			return strings.HasSuffix(path, part)
		}
		at := strings.Index(path, part)
		if at < 0 {
			return false
		}
		path = path[at+len(part):]
	}
	return !whole || path == ""
}

// parseRobots reads robots.txt: the group of our own name, or else the one for all.
func parseRobots(text []byte, own string) *robotRules {
	all, ours := &robotRules{}, &robotRules{}
	var named bool
	var into []*robotRules
	names := false // the last line named a program
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(make([]byte, 0, 4096), robotsRead)
	for lines.Scan() {
		line, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\uFEFF"), "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "user-agent":
			if !names {
				into = nil
			}
			names = true
			switch {
			case value == "*":
				into = append(into, all)
			case strings.EqualFold(value, own):
				into, named = append(into, ours), true
			}
			continue
		case "allow", "disallow":
			for _, r := range into {
				r.add(value, strings.EqualFold(strings.TrimSpace(key), "allow"))
			}
		case "crawl-delay":
			if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 && s < 1e6 {
				for _, r := range into {
					r.delay = time.Duration(s * float64(time.Second))
				}
			}
		}
		names = false
	}
	if named {
		return ours
	}
	return all
}

// robots keeps what robots.txt of hosts says, for a day.
type robots struct {
	asker *Asker

	mu   sync.Mutex
	kept map[string]keptRobots
}

type keptRobots struct {
	rules   *robotRules
	failure links.Failure
	until   time.Time
}

func newRobots(a *Asker) *robots { return &robots{asker: a, kept: make(map[string]keptRobots)} }

// of returns the rules for an address. A host to which no connection can be made, or that accepts one and says nothing, fails as it would for the page.
func (r *robots) of(ctx context.Context, v *visit, u *url.URL) (*robotRules, links.Failure) {
	origin := u.Scheme + "://" + strings.ToLower(u.Host)
	now := v.o.Now()
	r.mu.Lock()
	k, ok := r.kept[origin]
	r.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.rules, k.failure
	}
	rules, failure := v.readRobots(ctx, origin)
	if failure != links.NoFailure && failure != links.FailRobotsUnread {
		return nil, failure // it is asked again with the next page
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= robotsKept {
		for o, k := range r.kept {
			if len(r.kept) < robotsKept/2 && now.Before(k.until) {
				continue
			}
			delete(r.kept, o)
		}
	}
	life := robotsLife
	if failure != links.NoFailure {
		life = time.Hour
	}
	r.kept[origin] = keptRobots{rules, failure, now.Add(life)}
	return rules, failure
}

// readRobots reads robots.txt. That there is none allows all (RFC 9309, section 2.3.1).
func (v *visit) readRobots(ctx context.Context, origin string) (*robotRules, links.Failure) {
	u, err := url.Parse(origin + "/robots.txt")
	if err != nil {
		return nil, links.FailNotAskable
	}
	first := u
	for hop := range robotsHops {
		var connected links.Answer
		resp, failure := v.send(ctx, http.MethodGet, u, Known{}, false, &connected)
		if failure != links.NoFailure {
			// What else goes wrong after a connection was made says nothing about the page.
			if hop > 0 || connected.Address != "" && failure != links.FailTLS && failure != links.FailTimeout {
				failure = links.FailRobotsUnread
			}
			return nil, failure
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, robotsRead))
		resp.Body.Close()
		switch {
		case resp.StatusCode >= 300 && resp.StatusCode < 400:
			next, err := u.Parse(resp.Header.Get("Location"))
			if err != nil || next.Scheme != "http" && next.Scheme != "https" || next.User != nil || !isPort(next, first) || v.isOwn(next) {
				return &robotRules{}, links.NoFailure
			}
			u = next
			continue
		case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
			return nil, links.FailRobotsUnread
		case resp.StatusCode >= 400:
			return &robotRules{}, links.NoFailure
		case err != nil && len(body) == 0:
			return nil, links.FailRobotsUnread
		}
		if media := resp.Header.Get("Content-Type"); strings.HasPrefix(media, "text/html") {
			return &robotRules{}, links.NoFailure // a page of a site that has no robots.txt
		}
		return parseRobots(body, "stele"), links.NoFailure
	}
	return &robotRules{}, links.NoFailure
}
