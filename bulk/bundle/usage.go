package bundle

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// usageCounts are the figures that a line of data/usage.jsonl may have: resolutions by people and by programs that people run, how many of
// them are unique, descriptions that were read, and what robots read.
var usageCounts = []string{"descriptions", "machine", "machineUnique", "regular", "regularUnique", "robots"}

const monthForm = "2006-01"

// usageDelay is how long after the end of a month its figures are complete: servers write what they have counted later.
const usageDelay = 24 * time.Hour

// usageUntil returns the last month whose figures are complete.
func usageUntil(now time.Time) string {
	at := now.Add(-usageDelay).UTC()
	return time.Date(at.Year(), at.Month()-1, 1, 0, 0, 0, 0, time.UTC).Format(monthForm)
}

func isMonth(text string) bool {
	at, err := time.Parse(monthForm, text)
	return err == nil && at.Format(monthForm) == text
}

// putUsage writes the figures of names that the bundle has.
func (w *writer) putUsage(ctx context.Context) error {
	if w.head.UsageUntil == "" || w.job.Usage == nil {
		return w.put(fileUsage, nil)
	}
	lines := textSpool{most: w.job.held, temp: w.job.Temp, sum: sha256.New()}
	defer lines.close()
	for _, key := range w.job.From.Prefixes() {
		for u, err := range w.job.Usage(ctx, key, w.head.UsageUntil) {
			if err != nil {
				return err
			}
			id := stele.StoredID(u.Scheme, u.Name)
			if len(u.Counts) == 0 || !w.job.From.Has(&stele.Change{ID: id}) || !w.log.Has(id) {
				continue
			}
			line, err := appendJSON(nil, &u)
			if err != nil {
				return err
			}
			if err := lines.add(line); err != nil {
				return err
			}
			w.counts.Usage++
		}
	}
	return w.putSpool(fileUsage, &lines)
}

// putSpool writes a file that memory may not hold.
func (w *writer) putSpool(name string, s *textSpool) error {
	if s.file == nil {
		return w.put(name, s.memory)
	}
	if err := s.flush(); err != nil {
		return err
	}
	if s.size > maxFile-1 {
		return &stele.Error{Op: opWrite, Kind: stele.Exhausted, Err: stele.Messagef("bundle.file-would-be-too-long", "{file} would have {size} bytes, which is more than a bundle may have in it; make bundles of several prefixes", name, s.size)}
	}
	if w.each != nil {
		if err := w.each(name, s.size, io.NewSectionReader(s.file, 0, s.size)); err != nil {
			return err
		}
	}
	h := tarHeader(folderName(w.head.Origin)+"/"+name, s.size, tarTime(w.head.At))
	var zero [blockSize]byte
	if err := w.pieceFrom(bytes.NewReader(h[:]), io.NewSectionReader(s.file, 0, s.size), bytes.NewReader(zero[:padding(s.size)])); err != nil {
		return err
	}
	f := file{name: name}
	s.sum.Sum(f.sum[:0])
	return w.noted(f, s.size)
}

// textSpool keeps a text whose size has to be known before it is written: in memory, and in a file from maxSpool bytes on.
type textSpool struct {
	most   int // bytes in memory; 0: maxSpool
	temp   func() (Temp, error)
	memory []byte
	file   Temp
	size   int64
	sum    hash.Hash
}

func (s *textSpool) add(text []byte) error {
	_, _ = s.sum.Write(text) // it never fails
	s.size += int64(len(text))
	if s.memory = append(s.memory, text...); s.temp == nil || s.file == nil && len(s.memory) < cmp.Or(s.most, maxSpool) || s.file != nil && len(s.memory) < 1<<18 {
		return nil
	}
	if s.file == nil {
		var err error
		if s.file, err = s.temp(); err != nil {
			return err
		}
	}
	return s.flush()
}

// flush writes what memory holds to the file.
func (s *textSpool) flush() error {
	if s.file == nil {
		return nil
	}
	_, err := s.file.Write(s.memory)
	s.memory = s.memory[:0]
	return err
}

func (s *textSpool) close() {
	if s.file != nil {
		_ = s.file.Close() // nothing in it is needed any more
	}
}

func (r *reader) readUsage(in io.Reader) error {
	return r.eachLine(in, func(text []byte) error {
		var u Usage
		if err := parseJSON(text, &u); err != nil {
			return err
		}
		if err := r.usageFollows(&u); err != nil {
			return err
		}
		r.usage = u
		r.report.Counts.Usage++
		return visit(r.o.Visit.Usage, &u)
	})
}

// usageFollows makes sure that a line is one of a name of the bundle and of a month that it may have, and stands in its order.
func (r *reader) usageFollows(u *Usage) error {
	h := &r.report.Head
	if r.o.Schemes.Lookup(u.Scheme) == nil || u.Name == "" || !h.has(u.Scheme, u.Name) {
		return wrong("bundle.usage-outside", "{name} is not a name that the bundle is of", u.Name)
	}
	if !isMonth(u.Month) || u.Month > h.UsageUntil {
		return wrong("bundle.usage-month", `the bundle does not have figures of "{month}"`, u.Month)
	}
	for name, n := range u.Counts {
		if n == 0 || !slices.Contains(usageCounts, name) {
			return wrong("bundle.usage-count", `"{count}" is not a figure that a bundle has, or it is 0`, name)
		}
	}
	if len(u.Counts) == 0 || compareUsage(&r.usage, u) >= 0 {
		return errOrder
	}
	return nil
}

func compareUsage(a, b *Usage) int {
	return cmp.Or(cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Month, b.Month))
}
