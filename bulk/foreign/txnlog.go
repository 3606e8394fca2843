package foreign

import (
	"encoding/binary"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// logMark begins each entry of the recovery log dbtxns.log (specification, section 3).
const logMark = 'n'

// The actions of the log.
const (
	actionSet = iota
	actionDelete
	actionSetPrefix
	actionDeletePrefix
	actionDeleteAll
)

// readLog hands over what a log does, in its order: n, action(1), milliseconds(8), str key, str data.
func readLog(w *window, to *folded) error {
	for entry := 1; ; entry++ {
		head := w.peekText(10)
		if len(head) == 0 && w.err != nil {
			return w.failure()
		}
		if len(head) < 10 || head[0] != logMark || head[1] > actionDeleteAll {
			return logBroken(w, entry)
		}
		action := head[1]
		w.take(10)
		key, ok := logString(w, hdl.MaxHandle)
		if !ok {
			return logBroken(w, entry)
		}
		data, ok := logString(w, maxLine)
		if !ok {
			return logBroken(w, entry)
		}
		var err error
		switch name := string(key); action {
		case actionSet:
			stored, bad := parseStored(data)
			if bad != nil {
				err = to.add(name, entry, op{kind: opFault, text: damaged(name, bad).Error()})
				break
			}
			err = to.add(name, entry, op{kind: opSet, values: stored})
		case actionDelete:
			err = to.add(name, entry, op{kind: opErase})
		case actionSetPrefix:
			err = to.home(name, entry)
		case actionDeletePrefix:
			to.unhome(name)
		case actionDeleteAll:
			to.since = to.seq
			clear(to.prefixes)
		}
		if err != nil {
			return err
		}
	}
}

// logString reads a length and as many octets.
func logString(w *window, most uint32) ([]byte, bool) {
	if !w.more(4) {
		return nil, false
	}
	n := binary.BigEndian.Uint32(w.peekText(4))
	if n > most || !w.more(4+int(n)) {
		return nil, false
	}
	return w.take(4 + int(n))[4:], true
}

func logBroken(w *window, entry int) error {
	if err := w.failure(); err != nil {
		return err
	}
	return failf(stele.Invalid, "import.foreign-log-broken", "{file} is not a log of transactions at its entry {entry}, byte {offset}; make a new dump at a checkpoint, and import that", w.name, entry, w.offset())
}
