package foreign

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/wire/hdl"
)

// Registered is what a batch file needs to change handles that other files or clients made: the registry that
// is imported to.
type Registered struct {
	// Get returns the record that has the name. NotFound if there is none that the caller may see. Several goroutines
	// call it at once.
	Get func(name stele.ID) (*stele.Record, error)

	// History yields the versions of the record, the newest first.
	History func(name stele.ID) iter.Seq2[*stele.Record, error]
}

// Continues tells the number of the import that the rows are for, if an earlier run of it has begun: handles that
// the run has changed already are not changed again.
func (s *Source) Continues(number uint64) { s.number = number }

// Changes reports whether the files have commands that change registered handles.
func (s *Source) Changes() bool { return s.o.Registered.Get != nil && slices.Contains(s.kinds, Batch) }

// base is the registered record to which a batch file does something.
type base struct {
	rec    *stele.Record                 // nil if no such handle is registered
	values []hdl.Value                   // as clients of the Handle System see them
	kept   map[uint32]*stele.HandleValue // those that the file has not changed so far, by index
	gone   bool                          // it is deleted
	done   bool                          // an earlier run of the import did all this; rec is the version before
	err    error
}

// lookUps is how many records are looked up at once.
const lookUps = 8

// lookUp finds the registered records of those names whose commands need them, several at once.
func (f *folded) lookUp(lists [][]entry) []*base {
	bases := make([]*base, len(lists))
	if !f.s.Changes() {
		return bases
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(lookUps, len(lists)) {
		wg.Go(func() {
			for i := range next {
				if name, kind, ok := f.changes(lists[i]); ok {
					bases[i] = f.base(name, kind == opCreate)
				}
			}
		})
	}
	for i := range lists {
		next <- i
	}
	close(next)
	wg.Wait()
	return bases
}

// changes returns the name of a handle of which the files want something done before they say all of it, and the kind of that. In
// an update, CREATE may be about a handle that was deleted here.
func (f *folded) changes(list []entry) (name string, kind byte, ok bool) {
	for _, e := range list {
		if e.seq <= f.since {
			continue
		}
		o, err := parseOp(e.data)
		switch {
		case err != nil || o.kind == opFault:
		case o.kind == opAdd, o.kind == opModify, o.kind == opRemove, o.kind == opDelete, o.kind == opCreate && f.s.o.Merges:
			return o.name, o.kind, true
		default:
			return "", 0, false
		}
	}
	return "", 0, false
}

// base reads the registered record of a handle. If the files create it, only one counts that was deleted; nil if it was not.
func (f *folded) base(name string, created bool) *base {
	b := &base{}
	id, err := destination.ParseHandle(f.s.o.Schemes, name)
	if err != nil {
		b.err = err
		return b
	}
	rec, err := f.s.o.Registered.Get(id)
	if err == nil && f.s.number != 0 {
		rec, b.done, err = f.before(rec)
	}
	switch {
	case stele.KindOf(err) == stele.NotFound:
	case err != nil:
		b.err = err
	case rec != nil && destination.IsDeleted(rec):
		b.rec, b.gone = rec, true
	case created:
		return nil
	case rec == nil || rec.State != stele.Active: // as it is to clients of the Handle System
	default:
		b.rec = rec
		seen := destination.Values(rec, slices.DeleteFunc(slices.Clone(rec.Targets), func(t stele.Target) bool { return t.Service != stele.N2L }))
		b.kept = make(map[uint32]*stele.HandleValue, len(seen))
		for i := range seen {
			v := &seen[i]
			b.kept[v.Index] = v
			b.values = append(b.values, hdl.Value{Index: v.Index, Type: []byte(v.Type)})
		}
	}
	return b
}

// before returns the version that an earlier run of the import found, if it has changed the record.
func (f *folded) before(now *stele.Record) (rec *stele.Record, done bool, err error) {
	for v, err := range f.s.o.Registered.History(now.ID) {
		switch {
		case err != nil:
			return nil, false, err
		case done && v.Import != f.s.number:
			return v, true, nil
		}
		done = done || v.Import == f.s.number
	}
	if done { // the import made the record
		return nil, true, nil
	}
	return now, false, nil
}

// leavesOut reports whether values of a type are not imported.
func (s *Source) leavesOut(kind string) bool {
	return isSecret(kind) && !s.o.Secrets || isAdmin(kind) && !s.o.Admins
}

// only returns the values of a command that are imported, and counts the others: the registered ones stay.
func (f *folded) only(values []hdl.Value) []hdl.Value {
	return slices.DeleteFunc(values, func(v hdl.Value) bool {
		switch {
		case !f.s.leavesOut(string(v.Type)):
			return false
		case isSecret(string(v.Type)):
			f.s.secrets.Add(1)
		default:
			f.s.admins.Add(1)
		}
		return true
	})
}

// rowOf makes the row that gives a registered record the values that it has in the end, or withdraws it.
func (f *folded) rowOf(b *base, line int, there bool, stored []hdl.Value) bulk.Row {
	row := bulk.Row{Line: line, Version: b.rec.Version}
	rec := *b.rec
	if there {
		rec.State, rec.Tombstone = stele.Active, nil
		values := make([]stele.HandleValue, len(stored))
		for i := range stored {
			if v, ok := b.kept[stored[i].Index]; ok {
				values[i] = *v
				continue
			}
			f.reveal(&stored[i])
			v, err := fromValue(&stored[i])
			if err != nil {
				row.Err = err
				return row
			}
			if v.Timestamp == 0 {
				v.Timestamp = stampOf(f.s.o.Now)
			}
			values[i] = v
		}
		seen := destination.Values(b.rec, slices.DeleteFunc(slices.Clone(b.rec.Targets), func(t stele.Target) bool { return t.Service != stele.N2L }))
		keepStamps(seen, values)
		rec.Values = values
		destination.Follow(seen, values, &rec)
	} else {
		rec.State, rec.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: destination.DeletedByBatch}
	}
	var report stele.Report
	rec.Check(&report)
	if row.Err = report.Err("import", rec.ID); row.Err != nil {
		return row
	}
	if rec.State == stele.Active {
		f.s.noteAlias(&rec, line)
	}
	if b.done {
		row.Err = bulk.ErrUnchanged
		return row
	}
	row.Record = &rec
	if f.s.o.Merges {
		row.Patch, row.Err = patchOf(&rec)
	}
	return row
}

// keepStamps gives values that are as before the time at which they were written.
func keepStamps(before, values []stele.HandleValue) {
	for i := range values {
		v := &values[i]
		for k := range before {
			if c := &before[k]; c.Index == v.Index && c.Type == v.Type && bytes.Equal(c.Data, v.Data) && c.TTL == v.TTL && c.TTLAbsolute == v.TTLAbsolute &&
				c.Permissions == v.Permissions && slices.Equal(c.References, v.References) {
				v.Timestamp = c.Timestamp
			}
		}
	}
}

// stampOf returns a time as values have it.
func stampOf(now func() time.Time) uint32 {
	if now == nil {
		return 0
	}
	return uint32(min(max(now().Unix(), 0), 1<<32-1))
}

// patchOf returns what a batch file changes of a record, as a merge patch.
func patchOf(rec *stele.Record) ([]byte, error) {
	all, err := document.ReadObject(document.AppendRecord(nil, rec))
	if err != nil {
		return nil, err
	}
	patch := make(map[string]json.RawMessage)
	for _, name := range []string{"id", "version", "state", "tombstone", "targets", "values"} {
		if patch[name] = all[name]; all[name] == nil {
			patch[name] = json.RawMessage("null")
		}
	}
	return json.Marshal(patch)
}
