package foreign

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// queueElement is the element of a name that waits in Noid's queue: when it is issued. No program has it.
const queueElement = ":/queue"

// parse implements part.
func (p *noidPart) parse(row *bulk.Row) {
	data := row.Text
	row.Text = nil
	var list []binding
	for len(data) > 0 {
		n, rest, ok := cutNumber(data)
		if !ok || n > uint64(len(rest)) {
			row.Err = errSorted
			return
		}
		e, err := parseBinding(rest[:n])
		if err != nil {
			row.Err = err
			return
		}
		list, data = append(list, e), rest[n:]
	}
	row.Later = func() []byte { return bindingText(list) }
	name := p.identify(list[0].program, list[0].id)
	id, err := p.o.Schemes.Parse(name)
	if err != nil {
		if list[0].program == fromNoid && name == list[0].id {
			err = failf(stele.Invalid, "import.noid-name-unknown", "{name} does not begin with a NAAN, and is not an identifier: {cause}; say what stands before it with --prefix, such as ark:99999/", stele.Quote(list[0].id), stele.Reason(err))
		}
		row.Err = err
		return
	}
	b := &noidRecord{p: p, builder: newBuilder(id)}
	for _, e := range list {
		b.add(e)
	}
	p.s.fill(row, b.finish())
}

// bindingText returns a name as `noid dbinfo dump` prints it, for the file of rejected rows.
func bindingText(list []binding) (b []byte) {
	for i, e := range list {
		if i > 0 {
			b = append(b, '\n')
		}
		b = fmt.Appendf(b, "%s\t%s: %s", e.id, e.element, e.value)
	}
	return b
}

// noidRecord makes a record of the elements of a name.
type noidRecord struct {
	*builder
	p     *noidPart
	waits bool // it was not issued yet, or waits to be issued again
}

func (b *noidRecord) add(e binding) {
	switch e.element {
	case "goto", "_t":
		b.target(e.value)
	case ":/c":
		b.circulation(e)
	case ":/h":
		b.keep(e.program+".hold", e.value)
	case ":/p":
		b.keep(e.program+".pepper", e.value)
	case queueElement:
		b.waits = true
		b.keep(e.program+".queue", e.value)
	case "__mc", "_,ec", "_.ec":
		if n, err := strconv.ParseInt(e.value, 10, 64); err == nil && n > 0 && n < 1<<34 {
			b.made(time.Unix(n, 0).UTC())
			return
		}
		b.element(e.program, e.element, e.value)
	case "__mp", "_,ep", "_.ep":
		if b.p.o.Admins {
			b.element(e.program, e.element, e.value)
			return
		}
		b.p.s.admins.Add(1)
	default:
		b.element(e.program, e.element, e.value)
	}
}

// circulation takes what Noid kept of a name when it was issued: i, q (in the queue) or u (taken out of it),
// a time, a contact and the counter, with vertical bars between.
func (b *noidRecord) circulation(e binding) {
	b.keep(e.program+".circulation", e.value)
	fields := strings.Split(e.value, "|")
	if !strings.HasPrefix(fields[0], "i") {
		b.waits = true
	}
	if len(fields) < 2 {
		return
	}
	// The time is in the zone of the original's machine, which is not known.
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, fields[1])
	if at, err := time.Parse("20060102150405", digits); err == nil {
		b.made(at)
	}
}

// finish returns the record. A name that leads nowhere and of which nothing is known is reserved.
func (b *noidRecord) finish() *stele.Record {
	rec := b.rec
	described := false
	for name := range rec.Metadata {
		switch name[strings.IndexByte(name, '.')+1:] {
		case "hold", "pepper", "queue", "circulation":
		default:
			described = true
		}
	}
	if len(rec.Targets) == 0 && (b.waits || !described) {
		rec.State = stele.Reserved
	}
	return b.builder.finish(fromNoid)
}
