package bundle

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"github.com/stele-id/stele"
)

// history follows the versions of records.
type history struct {
	last  *RecordVersion
	files int // of records
	names map[[16]byte]struct{}
}

func nameHash(id stele.ID) (h [16]byte) {
	sum := sha256.Sum256([]byte(id.Scheme() + "\x00" + id.String()))
	copy(h[:], sum[:])
	return h
}

func (r *reader) readRecords(in io.Reader) error {
	r.history.files++
	if r.now != fmt.Sprintf(fileRecords, r.history.files) {
		return wrong("bundle.records-out-of-order", "the files of records are numbered from 1 on, without gaps")
	}
	told := 0
	lines := 0
	err := r.eachLine(in, func(text []byte) error {
		v, err := parseRecordLine(r.o.Schemes, text)
		if err != nil {
			return err
		}
		if err := r.recordFollows(v); err != nil {
			return err
		}
		leaf, err := v.Log.RecordLeaf(v.Record)
		if err := r.prove(v.Log.Index, leaf, err); err != nil {
			return err
		}
		lines++
		r.report.Counts.Versions++
		if v.Current {
			r.report.Counts.Records++
			if err := r.noteAliases(v.Record); err != nil {
				return err
			}
		}
		r.history.last = v
		if told++; told == 1000 && r.o.Progress != nil {
			r.o.Progress(told)
			told = 0
		}
		return visit(r.o.Visit.Record, v)
	})
	if r.o.Progress != nil {
		r.o.Progress(told)
	}
	if err == nil && (lines == 0 || lines > maxFileLines) {
		return wrong("bundle.records-wrong-count", "a file of records has from 1 to {most} lines", maxFileLines)
	}
	return err
}

// recordFollows makes sure that the version comes after the one before it, and that the history of each record is whole.
func (r *reader) recordFollows(v *RecordVersion) error {
	rec, last := v.Record, r.history.last
	if !r.report.Head.has(rec.ID.Scheme(), rec.ID.String()) {
		return wrong("bundle.record-outside", "{id} is not a name that the bundle is of", rec.ID)
	}
	if last == nil || last.Current {
		switch {
		case last != nil && last.Record.ID.Compare(rec.ID) >= 0:
			return errOrder
		case rec.Version != 1:
			return errHistory
		}
		return nil
	}
	if last.Record.ID != rec.ID || rec.Version != last.Record.Version+1 || v.Log.Index <= last.Log.Index {
		return errHistory
	}
	if last.isEntry() || v.isEntry() {
		return nil // of a version without its content nothing else is known
	}
	if err := rec.CheckFollows(last.Record); err != nil {
		return err
	}
	for _, alias := range last.Record.Aliases {
		if !slices.Contains(rec.Aliases, alias) {
			return wrong("bundle.alias-dropped", "it has not the alias {alias} any more, which no record ever loses", alias)
		}
	}
	return nil
}

// isEntry reports whether the document may be less than what was logged.
func (v *RecordVersion) isEntry() bool { return v.Log.Leaf != "" || v.Log.Bare }

// noteAliases makes sure that no alias is that of two records, and notes those that are not names of the bundle.
func (r *reader) noteAliases(rec *stele.Record) error {
	for _, alias := range rec.Aliases {
		h := nameHash(alias)
		if _, taken := r.history.names[h]; taken || alias == rec.ID {
			return wrong("bundle.alias-twice", "the alias {alias} is one of another record too", alias)
		}
		if r.history.names == nil {
			r.history.names = map[[16]byte]struct{}{}
		}
		r.history.names[h] = struct{}{}
		if !r.report.Head.has(alias.Scheme(), alias.String()) {
			if r.report.OutsideCount++; len(r.report.Outside) < maxOutside {
				r.report.Outside = append(r.report.Outside, Outside{rec.ID, alias})
			}
		}
	}
	return nil
}

func (r *reader) endRecords() error {
	if last := r.history.last; last != nil && !last.Current {
		return errCutHistory
	}
	return nil
}
