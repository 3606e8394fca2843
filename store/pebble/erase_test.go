package pebble

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// filesWith returns the files below a folder that hold a text.
func filesWith(t *testing.T, folder, text string) (found []string) {
	t.Helper()
	err := filepath.Walk(folder, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if bytes.Contains(data, []byte(text)) {
			found = append(found, filepath.Base(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEraseFiles: after Purge no file of the store holds what was erased: no table,
// whether a reader holds the state from before or not, no log, and no manifest, which has
// the hosts of targets. Writers and readers go on meanwhile.
func TestEraseFiles(t *testing.T) {
	const secret = "kolibrigeheimnis"
	folder := t.TempDir()
	s, err := Open(t.Context(), folder, Options{Now: time.Now, memTable: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { mustClose(t, s) }()
	put := func(r *stele.Record) {
		t.Helper()
		if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	// Other records, so that there are several tables, on several levels.
	others := func(round int) {
		for i := range 300 {
			r := &stele.Record{ID: mustID(t, fmt.Sprintf("ark:12345/%d-%d", round, i)), Version: 1, State: stele.Active}
			r.Metadata = stele.Metadata{"what": fmt.Sprint(round, i, time.Duration(i*i*7919))}
			put(r)
		}
		if err := s.current.Load().db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	others(0)
	r := &stele.Record{ID: mustID(t, "ark:12345/x"), Version: 1, State: stele.Active}
	r.Targets = []stele.Target{{Service: stele.N2L, URL: "https://zz" + secret + ".example.org/" + secret}}
	r.Metadata = stele.Metadata{"what": secret}
	put(r)
	for i := range 5 {
		n := *r
		n.Version++
		n.Metadata = stele.Metadata{"what": fmt.Sprint(secret, i)}
		r = &n
		put(r)
		others(i + 1)
	}
	held, err := s.look(t.Context(), "test") // a reader from before
	if err != nil {
		t.Fatal(err)
	}
	blank := &stele.Record{ID: r.ID, Version: r.Version + 1, State: stele.Withdrawn, Redacted: true}
	blank.Withheld = stele.Withheld{Redacted: blank.Version, Erased: r.Version}
	put(blank)
	others(9)
	if found := filesWith(t, folder, secret); len(found) < 2 {
		t.Fatalf("the text is in %v only; the test does not look where it is kept", found)
	}
	stop, done := make(chan bool), make(chan error)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			r := &stele.Record{ID: mustID(t, fmt.Sprint("ark:12345/during-", i)), Version: 1, State: stele.Active}
			if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{r}}); err != nil {
				done <- err
				return
			}
			if _, err := s.Record(t.Context(), r.ID); err != nil {
				done <- err
				return
			}
		}
	}()
	if err := s.Purge(t.Context()); err != nil {
		t.Error(err)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Errorf("while Purge ran: %v", err)
	}
	if found := filesWith(t, folder, secret); len(found) > 0 {
		t.Errorf("the text that was erased is in %v", found)
	}
	held.unpin()
	if err := s.Verify(t.Context(), func(problem *stele.Message) { t.Error(problem) }); err != nil {
		t.Error(err)
	}
	if err := s.Purge(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
}

// mustID makes an identifier of a scheme that is not read.
func mustID(t testing.TB, text string) stele.ID {
	t.Helper()
	id, err := stele.NewID("ark", text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
