package bundle

import (
	"cmp"
	"context"
	"fmt"

	"github.com/stele-id/stele"
)

// records writes the records, from a place on.
func (w *writer) records(ctx context.Context, from place) error {
	for _, key := range w.job.From.Prefixes() {
		after := ""
		if from.ID != "" {
			if key.Scheme < from.Scheme || key.Scheme == from.Scheme && key.Prefix < from.ID && len(key.Prefix) > 0 && !hasPrefix(from.ID, key.Prefix) {
				continue
			}
			if key.Scheme == from.Scheme && hasPrefix(from.ID, key.Prefix) {
				if err := w.rest(ctx, from); err != nil {
					return err
				}
				after = from.ID
			}
		}
		for rec, err := range w.job.From.Scan(ctx, key, after) {
			if err != nil {
				return err
			}
			if err := w.record(ctx, rec, 1); err != nil {
				return err
			}
		}
	}
	return w.endFile()
}

func hasPrefix(id, prefix string) bool { return len(id) >= len(prefix) && id[:len(prefix)] == prefix }

// rest writes the versions of a record after the one with which a file ended.
func (w *writer) rest(ctx context.Context, from place) error {
	if from.Current {
		return nil
	}
	key := stele.NamespaceKey{Scheme: from.Scheme, Prefix: from.ID}
	for rec, err := range w.job.From.Scan(ctx, key, "") {
		if err != nil {
			return err
		}
		if rec.ID.String() == from.ID {
			return w.record(ctx, rec, from.Version+1)
		}
		break
	}
	return &stele.Error{Op: opWrite, Kind: stele.Internal, Err: stele.Messagef("bundle.record-lost", "the record {id}, of which the bundle has a part, is not in the registry; make the bundle anew with --again", from.ID)}
}

// record writes the versions of a record from one on that are in the log, given the current one. It looks one version ahead: the last
// one of them is marked.
func (w *writer) record(ctx context.Context, current *stele.Record, from uint64) error {
	var held *RecordVersion
	for v, err := range w.job.From.Versions(ctx, current, from) {
		if err != nil {
			return err
		}
		d, ok, err := w.log.Record(ctx, v.Logged, v.Shown == v.Logged)
		if err != nil {
			return err
		}
		if !ok {
			break // it is newer than the bundle
		}
		if held != nil {
			if err := w.line(held); err != nil {
				return err
			}
		}
		held = &RecordVersion{Record: v.Shown, Log: d}
	}
	if held == nil {
		return nil
	}
	held.Current = true
	w.counts.Records++
	if w.job.Progress != nil {
		w.job.Progress(1)
	}
	return w.line(held)
}

// line adds a line to the file of records under way.
func (w *writer) line(v *RecordVersion) error {
	w.lines = appendRecordLine(w.lines, v)
	w.count++
	w.counts.Versions++
	w.next = place{Scheme: v.Record.ID.Scheme(), ID: v.Record.ID.String(), Version: v.Record.Version, Current: v.Current}
	if w.count >= cmp.Or(w.job.fileLines, maxFileLines) || len(w.lines) >= maxFileBytes {
		return w.endFile()
	}
	return nil
}

// endFile writes the file of records under way, if it has lines.
func (w *writer) endFile() error {
	if w.count == 0 {
		return nil
	}
	w.number++
	err := w.put(fmt.Sprintf(fileRecords, w.number), w.lines)
	w.lines, w.count = w.lines[:0], 0
	return err
}
