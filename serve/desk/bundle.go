package desk

import (
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// How many bundles are made at a time, for a user and for all, and how long one may take. A client that reads slowly holds no others up
// than its own user, and not for ever.
const (
	bundlesOfUser = 1
	bundlesAtOnce = 8
	bundleTime    = 3 * time.Hour
)

// bundleRoom counts the bundles that are being made, by user. Its zero value is ready for use by many goroutines.
type bundleRoom struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// take reports whether there is room for another bundle of a user, which is counted from then on.
func (b *bundleRoom) take(user string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all >= bundlesAtOnce || b.of[user] >= bundlesOfUser {
		return false
	}
	if b.of == nil {
		b.of = make(map[string]int)
	}
	b.all++
	b.of[user]++
	return true
}

// free counts a bundle of a user no more.
func (b *bundleRoom) free(user string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all--
	if b.of[user]--; b.of[user] == 0 {
		delete(b.of, user)
	}
}

// bundle sends a bundle of the names that begin with a prefix, or of all names, while it is made. The registrar judges whether the user may have
// it. If something fails on its way, the connection is cut off, so that the file is not taken for a whole one.
func (c *call) bundle() error {
	const op = "bundle"
	if c.h.o.Bundle == nil {
		return stele.Errorf("show page", stele.ID{}, stele.NotFound, "desk.page-unknown", "there is no such page here")
	}
	prefix := c.r.URL.Query().Get("prefix")
	var keys []stele.NamespaceKey
	if prefix != "" {
		key, err := c.h.o.Registrar.ParsePrefix(prefix)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	// Before it is judged whether the user may have it: for a sealed namespace, that reads all records.
	if !c.h.bundles.take(c.who.Name) {
		return stele.Errorf(op, stele.ID{}, stele.Exhausted, "desk.bundles-busy", "other bundles are being made; try again when that is done")
	}
	defer c.h.bundles.free(c.who.Name)
	from, err := c.h.o.Registrar.Bundling(c.ctx, keys...)
	if err != nil {
		return err
	}
	head := c.w.Header()
	if c.r.Method == http.MethodHead { // it does not need the bundle
		head.Set("Content-Type", "application/gzip")
		return nil
	}
	work := auth.With(c.ctx, auth.Local()) // what the user may have is judged
	job, err := c.h.o.Bundle(work, from)
	if err != nil {
		return err
	}
	job.Gzip = true
	if _, err := job.Begin(work); err != nil {
		return err
	}
	if err := c.h.o.Registrar.Witness(c.ctx, op, prefix, "begin"); err != nil {
		return err
	}
	head.Set("Content-Type", "application/gzip")
	head.Set("Content-Disposition", `attachment; filename="names.tgz"`)
	out := &patientWriter{c, http.NewResponseController(c.w), c.h.o.Now().Add(bundleTime)}
	done, err := job.Write(work, out)
	if err != nil {
		if c.r.Context().Err() == nil {
			c.h.o.Log.ErrorContext(c.ctx, "a bundle could not be sent whole", "error", err.Error())
		}
		_ = out.rc.SetWriteDeadline(time.Unix(1, 0)) // the end of the body can't be written then
		return nil
	}
	done.Note(c.ctx, from)
	c.h.o.Registrar.NoteEnd(c.ctx, op, prefix, nil)
	return nil
}

// patientWriter gives a client that reads as long as it takes, until a time.
type patientWriter struct {
	c     *call
	rc    *http.ResponseController
	until time.Time
}

func (w *patientWriter) Write(b []byte) (int, error) {
	now := w.c.h.o.Now()
	if !now.Before(w.until) {
		return 0, os.ErrDeadlineExceeded
	}
	if w.c.h.o.Patience > 0 {
		_ = w.rc.SetWriteDeadline(now.Add(w.c.h.o.Patience))
	}
	return w.c.w.Write(b)
}
