package bundle

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

// Versions are read in parts, some of them ahead of those that are written.
const (
	partVersions = 256
	partBytes    = 1 << 20
	partsAhead   = 4
)

// records writes the records, from a place on. Three goroutines share the work: one reads versions, one writes their lines, and this one
// hashes the files and writes them.
func (w *writer) records(ctx context.Context, from place) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &versionReader{job: w.job, log: w.log, parts: make(chan []RecordVersion, partsAhead)}
	l := &lineWriter{job: w.job, counts: w.counts, files: make(chan linesFile), used: make(chan []byte, 1)}
	var unread, unwritten error
	go func() {
		defer close(r.parts)
		unread = r.read(ctx, from)
	}()
	go func() {
		defer close(l.files)
		if unwritten = l.write(ctx, r.parts); unwritten == nil && unread == nil { // the reader has ended
			unwritten = l.endFile(ctx)
		}
	}()
	err := w.files(l)
	cancel()
	for range l.files { // nothing is written any more when this returns,
	}
	for range r.parts { // and nothing read
	}
	return cmp.Or(err, unread, unwritten)
}

// files writes the files of records.
func (w *writer) files(l *lineWriter) error {
	for f := range l.files {
		w.number++
		w.next, w.counts = f.next, f.counts
		if err := w.put(fmt.Sprintf(fileRecords, w.number), f.lines); err != nil {
			return err
		}
		select {
		case l.used <- f.lines[:0]:
		default:
		}
	}
	return nil
}

// versionReader reads versions of records, with what the log discloses of them.
type versionReader struct {
	job   *Job
	log   *transparency.Disclosing
	parts chan []RecordVersion
	part  []RecordVersion
	size  int // of the part, in bytes
}

// read reads the records from a place on.
func (r *versionReader) read(ctx context.Context, from place) error {
	for _, key := range r.job.From.Prefixes() {
		after := ""
		if from.ID != "" {
			if key.Scheme < from.Scheme || key.Scheme == from.Scheme && key.Prefix < from.ID && len(key.Prefix) > 0 && !hasPrefix(from.ID, key.Prefix) {
				continue
			}
			if key.Scheme == from.Scheme && hasPrefix(from.ID, key.Prefix) {
				if err := r.rest(ctx, from); err != nil {
					return err
				}
				after = from.ID
			}
		}
		for rec, err := range r.job.From.Scan(ctx, key, after) {
			if err != nil {
				return err
			}
			if err := r.record(ctx, rec, 1); err != nil {
				return err
			}
		}
	}
	return r.send(ctx)
}

func hasPrefix(id, prefix string) bool { return len(id) >= len(prefix) && id[:len(prefix)] == prefix }

// rest reads the versions of a record after the one with which a file ended.
func (r *versionReader) rest(ctx context.Context, from place) error {
	if from.Current {
		return nil
	}
	key := stele.NamespaceKey{Scheme: from.Scheme, Prefix: from.ID}
	for rec, err := range r.job.From.Scan(ctx, key, "") {
		if err != nil {
			return err
		}
		if rec.ID.String() == from.ID {
			return r.record(ctx, rec, from.Version+1)
		}
		break
	}
	return &stele.Error{Op: opWrite, Kind: stele.Internal, Err: stele.Messagef("bundle.record-lost", "the record {id}, of which the bundle has a part, is not in the registry; make the bundle anew with --again", from.ID)}
}

// record reads the versions of a record from one on that are in the log, given the current one. It looks one version ahead: the last
// one of them is marked.
func (r *versionReader) record(ctx context.Context, current *stele.Record, from uint64) error {
	if current.Version == from { // most records have one version, which needs no iterator
		v, ok, err := r.version(ctx, r.job.From.Last(current))
		if err != nil || !ok {
			return err
		}
		v.Current = true
		return r.add(ctx, v)
	}
	var held RecordVersion
	for b, err := range r.job.From.Versions(ctx, current, from) {
		if err != nil {
			return err
		}
		v, ok, err := r.version(ctx, b)
		if err != nil {
			return err
		}
		if !ok {
			break // it is newer than the bundle
		}
		if held.Record != nil {
			if err := r.add(ctx, held); err != nil {
				return err
			}
		}
		held = v
	}
	if held.Record == nil {
		return nil
	}
	held.Current = true
	return r.add(ctx, held)
}

// version returns a version with what the log discloses of it; false if the log does not have it.
func (r *versionReader) version(ctx context.Context, v registrar.BundledVersion) (RecordVersion, bool, error) {
	d, ok, err := r.log.Record(ctx, v.Logged, v.Shown == v.Logged)
	return RecordVersion{Record: v.Shown, Log: d}, ok, err
}

func (r *versionReader) add(ctx context.Context, v RecordVersion) error {
	if r.part == nil {
		r.part = make([]RecordVersion, 0, partVersions)
	}
	r.part = append(r.part, v)
	if r.size += v.Record.StoredSize(); len(r.part) < partVersions && r.size < partBytes {
		return nil
	}
	return r.send(ctx)
}

// send hands a part over.
func (r *versionReader) send(ctx context.Context) error {
	select {
	case r.parts <- r.part:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.part, r.size = nil, 0
	return nil
}

// lineWriter writes the lines of versions, and decides where their files end.
type lineWriter struct {
	job   *Job
	files chan linesFile
	used  chan []byte // memory of files that were written

	counts      Counts // with the lines so far
	next        place  // after the last line
	lines       []byte // of the file under way
	count       int    // of these lines
	recordBytes int    // of the last record in these lines
}

// linesFile is a file of records, with what was counted with it, and with how far the records are after it.
type linesFile struct {
	lines  []byte
	counts Counts
	next   place
}

// write writes the lines of versions. The file under way is not ended.
func (l *lineWriter) write(ctx context.Context, parts <-chan []RecordVersion) error {
	for part := range parts {
		for i := range part {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := l.line(ctx, &part[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// line adds a line to the file of records under way.
func (l *lineWriter) line(ctx context.Context, v *RecordVersion) error {
	before := len(l.lines)
	l.lines = appendRecordLine(l.lines, v)
	l.count++
	l.recordBytes += len(l.lines) - before
	l.counts.Versions++
	if v.Current {
		l.counts.Records++
		if l.job.Progress != nil {
			l.job.Progress(1)
		}
	}
	l.next = place{Scheme: v.Record.ID.Scheme(), ID: v.Record.ID.String(), Version: v.Record.Version, Current: v.Current}
	if l.count >= cmp.Or(l.job.fileLines, maxFileLines) || len(l.lines) >= maxFileBytes || v.Current && l.endsWith(v.Record.ID) {
		return l.endFile(ctx)
	}
	if v.Current {
		l.recordBytes = 0
	}
	return nil
}

// endsWith decides whether a file of records ends with a record, after its last version. The name of the record decides, not how
// many records stand before it: so a bundle that is made after some records have changed has almost the same files as the one before,
// and a copy of it that is kept elsewhere needs only the few that differ. The longer a record is, the more likely the file ends with
// it, so that files have the same length on average whatever the records are.
func (l *lineWriter) endsWith(id stele.ID) bool {
	usual := uint64(cmp.Or(l.job.fileBytes, usualFileBytes))
	if uint64(len(l.lines)) < usual/2 {
		return false
	}
	if uint64(l.recordBytes) >= usual {
		return true
	}
	h := nameHash(id)
	return binary.BigEndian.Uint64(h[:]) < uint64(l.recordBytes)*(math.MaxUint64/usual)
}

// endFile hands over the file of records under way, if it has lines.
func (l *lineWriter) endFile(ctx context.Context) error {
	if l.count == 0 {
		return nil
	}
	select {
	case l.files <- linesFile{l.lines, l.counts, l.next}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.lines, l.count, l.recordBytes = nil, 0, 0
	select {
	case l.lines = <-l.used:
	default:
	}
	return nil
}
