package foreign

import (
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/wire/hdl"
)

// folding is a record in the making: what is done with it, in order.
type folding struct {
	f      *folded
	values []hdl.Value
	there  bool
	name   string // and the line, of what made it, or was the first to change it
	line   int

	unknown    bool  // something can't be read
	full       bool  // it would have more values than a record can, so that what is done with them is not followed
	registered *base // what the commands began with; nil if it does not count any more
	changed    bool  // something of it was changed

	rows []bulk.Row // what can't be done
	more int        // things that can't be done, and are not among rows
}

// isLost reports whether the registry could not be asked, which is not about one handle.
func isLost(err error) bool {
	if err == nil {
		return false
	}
	switch stele.KindOf(err) {
	case stele.Invalid, stele.Forbidden, stele.Gone, stele.Conflict:
		return false
	}
	return true
}

// fold makes of what was done with a record what it is in the end: a row for it, if it is there, and one
// for each thing that can't be done. If something can't be read, and nothing later says all of the record,
// what the record is in the end is not known: it is refused as a whole. A registered record, if there is one, is what
// the commands begin with.
func (f *folded) fold(list []entry, registered *base) (rows []bulk.Row, size int) {
	n := &folding{f: f}
	if registered != nil && (registered.rec != nil || registered.err != nil) {
		n.registered, n.values, n.there = registered, registered.values, registered.rec != nil && !registered.gone
	}
	begun := false
	for _, e := range list {
		if e.seq <= f.since {
			continue
		}
		o, err := parseOp(e.data)
		if e.err != nil {
			return []bulk.Row{{Line: o.line, Err: e.err}}, len(e.data)
		}
		if err != nil { // we wrote it
			n.refuse(&o, err)
			n.unknown = true
			continue
		}
		size += len(e.data)
		if !n.there || n.registered != nil && !begun {
			n.name, n.line, begun = o.name, o.line, true
		}
		n.do(&o)
	}
	if n.more > 0 {
		n.rows = append(n.rows, bulk.Row{Line: n.line, Err: failf(stele.Invalid, "import.foreign-faults-more", "{count} more things of {name} can't be done, which are not listed", n.more, stele.Quote(n.name))})
	}
	return n.end(), size
}

// end returns the rows of the record.
func (n *folding) end() []bulk.Row {
	known := n.registered != nil && n.registered.rec != nil
	switch {
	case n.full:
		err := failf(stele.Invalid, "import.foreign-too-many-values", "{name} is left out, because it would have more than {most} values", stele.Quote(n.name), stele.MaxValues)
		return append(n.rows, bulk.Row{Line: n.line, Err: err})
	case n.unknown && n.there:
		err := failf(stele.Invalid, "import.foreign-record-incomplete", "{name} is left out, because a part of it can't be read; correct that part, and import the file again", stele.Quote(n.name))
		return append(n.rows, bulk.Row{Line: n.line, Err: err})
	case known && n.changed:
		return append(n.rows, n.f.rowOf(n.registered, n.line, n.there, n.values))
	case known || !n.there:
		return n.rows
	}
	return append(n.rows, n.f.row(n.name, n.line, n.values))
}

// refuse tells that something can't be done.
func (n *folding) refuse(o *op, err error) {
	if len(n.rows) == maxNotes {
		n.more++
		return
	}
	n.rows = append(n.rows, bulk.Row{Line: o.line, Err: err})
}

func (n *folding) find(index uint32) int {
	return slices.IndexFunc(n.values, func(v hdl.Value) bool { return v.Index == index })
}

// replace makes these all values of the record. It is as it was registered no longer.
func (n *folding) replace(values []hdl.Value, there bool) {
	n.values, n.there, n.changed, n.full = values, there, true, false
	if n.registered != nil {
		clear(n.registered.kept)
	}
}

// do does one thing.
func (n *folding) do(o *op) {
	if o.kind == opDelete && n.unknown {
		n.replace(nil, false)
		n.unknown = false
		return
	}
	command, isCommand := commands[o.kind]
	switch {
	case isCommand && n.registered != nil && n.registered.err != nil:
		n.refuse(o, failf(stele.KindOf(n.registered.err), "import.foreign-handle-refused", "{command} {name}: {cause}", command, o.name, stele.Reason(n.registered.err)))
		return
	case isCommand && o.kind != opCreate && !n.there:
		if !n.f.s.Changes() {
			n.refuse(o, failf(stele.NotFound, "import.foreign-not-created", "{command} {name}: this file does not create that handle, so that it is not known which values it has; import the file that creates it, or a dump, together with this one, or change registered handles with 'stele import'", command, o.name))
			return
		}
		n.refuse(o, failf(stele.NotFound, "import.foreign-not-registered", "{command} {name}: that handle is not registered, and these files do not create it; import the file that creates it, or a dump, before this one", command, o.name))
		return
	}
	if n.full = n.full || n.overfills(o); n.full && o.kind > opErase && o.kind != opCreate && o.kind != opDelete {
		return
	}
	switch o.kind {
	case opSet:
		n.registered = nil // the file says all of it
		n.replace(o.values, true)
		n.unknown = false
	case opErase:
		n.registered = nil
		n.replace(nil, false)
		n.unknown = false
	case opPut:
		if n.find(o.values[0].Index) >= 0 {
			n.refuse(o, failf(stele.Conflict, "import.foreign-index-twice", "{name} has the value {index} twice", o.name, o.values[0].Index))
			return
		}
		n.values, n.there = append(n.values, o.values[0]), true
	case opCreate:
		if n.there {
			n.refuse(o, failf(stele.Conflict, "import.foreign-created-twice", "CREATE {name}: the handle is there already; the first one counts", o.name))
			return
		}
		n.replace(n.imported(o.values), true)
	case opAdd:
		n.add(o)
	case opModify:
		n.modify(o)
	case opRemove:
		n.remove(o)
	case opDelete:
		n.replace(nil, false)
	case opUnended, opNotUTF8:
		n.unknown = true
		n.refuse(o, failf(stele.Invalid, "", "{cause}", o.wrong()))
	case opFault:
		n.unknown = true
		n.refuse(o, failf(stele.Invalid, "", "{cause}", stele.ReceivedMessage("import.foreign-part-unreadable", o.text, nil)))
	}
}

// overfills reports whether a record has too many values to search them for what is done with it, or would have: each thing that is done
// with values looks at all of them.
func (n *folding) overfills(o *op) bool {
	switch o.kind {
	case opPut, opAdd:
		return len(n.values)+len(o.values) > stele.MaxValues
	case opModify, opRemove:
		return len(n.values) > stele.MaxValues
	}
	return false
}

// wrong says why what is done can't be what was meant.
func (o *op) wrong() error {
	if o.kind == opUnended {
		return errUnended(o.text)
	}
	return stele.Messagef("import.not-utf8", "the text is not UTF-8; convert the file to UTF-8, and import it again")
}

// errUnended refuses the last record of a file whose writers end each line.
func errUnended(file string) error {
	return stele.Messagef("import.record-unended", "{file} does not end with a line end, so that its last record may be cut off; get the rest of it, or end its last line", file)
}

// imported returns the values of a command without those that are left out, if the record is a registered one, which
// keeps its own. Otherwise they are left out with the row.
func (n *folding) imported(values []hdl.Value) []hdl.Value {
	if n.registered == nil {
		return values
	}
	return n.f.only(values)
}

func (n *folding) add(o *op) {
	if at := slices.IndexFunc(o.values, func(v hdl.Value) bool { return n.find(v.Index) >= 0 }); at >= 0 {
		n.refuse(o, failf(stele.Conflict, "import.foreign-index-taken", "ADD {name}: the handle has a value {index} already", o.name, o.values[at].Index))
		return
	}
	n.values, n.changed = append(n.values, n.imported(o.values)...), true
}

func (n *folding) modify(o *op) {
	if at := slices.IndexFunc(o.values, func(v hdl.Value) bool { return n.find(v.Index) < 0 }); at >= 0 {
		n.refuse(o, failf(stele.NotFound, "import.foreign-index-missing", "{command} {name}: the handle has no value {index}", commands[o.kind], o.name, o.values[at].Index))
		return
	}
	for _, v := range n.imported(o.values) {
		n.values[n.find(v.Index)], n.changed = v, true
		n.forget(v.Index)
	}
}

func (n *folding) remove(o *op) {
	for _, index := range o.index {
		at := n.find(index)
		if at < 0 {
			n.refuse(o, failf(stele.NotFound, "import.foreign-index-missing", "{command} {name}: the handle has no value {index}", commands[o.kind], o.name, index))
			return
		}
		if kind := string(n.values[at].Type); n.registered != nil && n.f.s.leavesOut(kind) {
			n.refuse(o, failf(stele.Forbidden, "import.foreign-value-left-out", "REMOVE {name}: the value {index} has the type {type}; import with --with-admins (HS_SECKEY: --with-secrets) to remove it", o.name, index, kind))
			return
		}
	}
	n.values, n.changed = slices.DeleteFunc(n.values, func(v hdl.Value) bool { return slices.Contains(o.index, v.Index) }), true
	for _, index := range o.index {
		n.forget(index)
	}
}

// forget notes that the value with an index is not the registered one any more.
func (n *folding) forget(index uint32) {
	if n.registered != nil {
		delete(n.registered.kept, index)
	}
}
