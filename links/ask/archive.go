package ask

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/outbound"
)

// maxGateAnswer is how many bytes of an answer of an archive are read.
const maxGateAnswer = 64 << 10

// stamp is the date in the path of a snapshot: /web/20200131120000/https://...
var stamp = regexp.MustCompile(`/(\d{14})(?:[a-z]{2}_)?/`)

// Archive returns what asks a TimeGate (RFC 7089) for the copy of a page that is nearest to a time. The gate is its address, to which the address
// of the page is appended. The answer is not followed: where it leads is the copy, if it says when that was made. Only a redirect of the gate to itself, such as
// from HTTP to HTTPS, is followed, once. The error is Unavailable if the archive does not answer at the moment, and another one if it refuses this page.
func (a *Asker) Archive(gate string) func(ctx context.Context, target string, near time.Time) (links.Copy, error) {
	client := outbound.NewClient(a.o.Rule, heading, maxGateAnswer)
	return func(ctx context.Context, target string, near time.Time) (links.Copy, error) {
		refuse := func(kind stele.Kind, text string) (links.Copy, error) {
			return links.Copy{}, stele.Errorf("ask archive", stele.ID{}, kind, "links.archive-failed", "the archive at {gate} did not answer as a TimeGate does: {cause}", gate, text)
		}
		from := gate + "/" + target
		for hops := 0; ; hops++ {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
			if err != nil {
				return refuse(stele.Invalid, err.Error())
			}
			req.Header.Set("User-Agent", a.o.Agent)
			if !near.IsZero() {
				req.Header.Set("Accept-Datetime", near.UTC().Format(http.TimeFormat))
			}
			resp, err := client.Do(req)
			if err != nil {
				return refuse(stele.Unavailable, err.Error())
			}
			_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again; what it says does not count
			resp.Body.Close()
			switch code := resp.StatusCode; {
			case code == http.StatusNotFound:
				return links.Copy{}, nil
			case code == http.StatusTooManyRequests, code >= 500:
				return refuse(stele.Unavailable, resp.Status)
			case code < 300, code >= 400, resp.Header.Get("Location") == "":
				return refuse(stele.Invalid, resp.Status)
			}
			at, err := req.URL.Parse(resp.Header.Get("Location"))
			if err != nil {
				return refuse(stele.Invalid, err.Error())
			}
			if stele.CheckURL(at.String()) != nil || at.Scheme != "http" && at.Scheme != "https" {
				return refuse(stele.Invalid, "it leads to an address that can't be a target")
			}
			if made := copyTime(resp.Header.Get("Memento-Datetime"), at); !made.IsZero() {
				return links.Copy{URL: at.String(), At: made}, nil
			}
			if hops > 0 || at.Hostname() != req.URL.Hostname() || !strings.HasSuffix(at.String(), "/"+target) || at.String() == from {
				return refuse(stele.Invalid, "it leads to an address without a date")
			}
			from = at.String()
		}
	}
}

// copyTime returns when a copy was made: what the head says, or else its path; zero if both say nothing.
func copyTime(head string, at *url.URL) time.Time {
	if t, err := http.ParseTime(head); err == nil {
		return t.UTC()
	}
	path, _, _ := strings.Cut(at.EscapedPath(), "/http") // the address of the page may have such numbers too
	if m := stamp.FindStringSubmatch(path + "/"); m != nil {
		if t, err := time.Parse("20060102150405", m[1]); err == nil {
			return t
		}
	}
	return time.Time{}
}
