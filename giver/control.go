package giver

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// CheckControl says what is wrong with the URL of a control. It has to be HTTPS: then a network that answers for all others does not pass for it.
func CheckControl(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return &stele.Error{Op: "watch registry", Kind: stele.Invalid, Err: stele.Messagef("watch.control-invalid", `"{url}" is not the URL of a control; write one of a server that is always there and is not this one, such as https://www.example.org/`, text)}
	}
	return nil
}

// reaches reports whether this registry could reach a server other than a giver today: another giver, which showed a checkpoint, or a control.
func (w *Watcher) reaches(ctx context.Context, g *registrar.WatchedGiver) bool {
	ctx, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	list, err := w.Watches.Watches(ctx)
	if err != nil {
		return false
	}
	day := w.Now().UTC().Format(time.DateOnly)
	for i := range list {
		if list[i].Origin != g.Origin && list[i].Seen.UTC().Format(time.DateOnly) == day {
			return true
		}
	}
	for _, control := range w.Controls {
		if w.answers(ctx, control) {
			return true
		}
	}
	for i := range list {
		if ctx.Err() == nil && list[i].Origin != g.Origin && w.question(ctx, &list[i]).kind == good {
			return true
		}
	}
	return false
}

// answers reports whether a control answers, whatever it says.
func (w *Watcher) answers(ctx context.Context, control string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, control, http.NoBody)
	if err != nil {
		return false
	}
	r.Header.Set("User-Agent", w.Agent)
	a, err := w.HTTP.Do(r)
	if err != nil {
		return false
	}
	_, _ = io.CopyN(io.Discard, a.Body, 1) // a HEAD has no body
	_ = a.Body.Close()
	return true
}
