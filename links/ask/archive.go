package ask

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
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
// of the page is appended. The answer is not followed: where it leads is the copy.
func (a *Asker) Archive(gate string) func(ctx context.Context, target string, near time.Time) (links.Copy, error) {
	client := outbound.NewClient(a.o.Rule, heading, maxGateAnswer)
	refuse := func(text string) (links.Copy, error) {
		return links.Copy{}, stele.Errorf("ask archive", stele.ID{}, stele.Unavailable, "links.archive-failed", "the archive at {gate} did not answer as a TimeGate does: {cause}", gate, text)
	}
	return func(ctx context.Context, target string, near time.Time) (links.Copy, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, gate+"/"+target, nil)
		if err != nil {
			return refuse(err.Error())
		}
		req.Header.Set("User-Agent", a.o.Agent)
		if !near.IsZero() {
			req.Header.Set("Accept-Datetime", near.UTC().Format(http.TimeFormat))
		}
		resp, err := client.Do(req)
		if err != nil {
			return refuse(err.Error())
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again; what it says does not count
		switch {
		case resp.StatusCode == http.StatusNotFound:
			return links.Copy{}, nil
		case resp.StatusCode < 300 || resp.StatusCode >= 400 || resp.Header.Get("Location") == "":
			return refuse(resp.Status)
		}
		at, err := req.URL.Parse(resp.Header.Get("Location"))
		if err != nil {
			return refuse(err.Error())
		}
		if stele.CheckURL(at.String()) != nil || at.Scheme != "http" && at.Scheme != "https" {
			return refuse("it leads to an address that can't be a target")
		}
		return links.Copy{URL: at.String(), At: copyTime(resp.Header.Get("Memento-Datetime"), at)}, nil
	}
}

// copyTime returns when a copy was made: what the head says, or else its path; zero if both say nothing.
func copyTime(head string, at *url.URL) time.Time {
	if t, err := http.ParseTime(head); err == nil {
		return t.UTC()
	}
	if m := stamp.FindStringSubmatch(at.EscapedPath()); m != nil {
		if t, err := time.Parse("20060102150405", m[1]); err == nil {
			return t
		}
	}
	return time.Time{}
}
