package foreign

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
)

// queueElement is the element of a name that waits in Noid's queue: when it is issued. No program has it.
const queueElement = ":/queue"

// kernelElements are elements that every description should have, by the names of Noid, egg and EZID.
var kernelElements = map[string]string{
	"who": stele.Who, "what": stele.What, "when": stele.When, "where": stele.Where,
	"erc.who": stele.Who, "erc.what": stele.What, "erc.when": stele.When, "erc.where": stele.Where,
}

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
	b := &noidRecord{p: p, rec: &stele.Record{ID: id, State: stele.Active, Metadata: make(stele.Metadata)}}
	for _, e := range list {
		b.add(e)
	}
	rec := b.finish()
	var report stele.Report
	rec.Check(&report)
	if row.Err = report.Err("import", rec.ID); row.Err != nil {
		return
	}
	row.Record = rec
	if p.o.Merges {
		row.Patch = document.AppendRecord(nil, rec)
	}
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
	p       *noidPart
	rec     *stele.Record
	waits   bool // it was not issued yet, or waits to be issued again
	changed []string
}

func (b *noidRecord) add(e binding) {
	switch e.element {
	case "goto", "_t":
		b.target(e)
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
		b.element(e)
	case "__mp", "_,ep", "_.ep":
		if b.p.o.Admins {
			b.element(e)
			return
		}
		b.p.s.admins.Add(1)
	default:
		b.element(e)
	}
}

// target takes where a name leads. A target that the record has already is not repeated.
func (b *noidRecord) target(e binding) {
	url := strings.TrimSpace(e.value)
	if url == "" {
		return
	}
	for _, t := range b.rec.Targets {
		if t.URL == url {
			return
		}
	}
	b.rec.Targets = append(b.rec.Targets, stele.Target{Service: stele.N2L, URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference})
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

// made takes when a name was made; the first time counts.
func (b *noidRecord) made(at time.Time) {
	if b.rec.Created.IsZero() || at.Before(b.rec.Created) {
		b.rec.Created, b.rec.Modified = at, at
	}
}

// element takes an element that describes the thing.
func (b *noidRecord) element(e binding) {
	if name, ok := kernelElements[e.element]; ok && (b.rec.Metadata[name] == "" || b.rec.Metadata[name] == e.value) {
		b.rec.Metadata[name] = e.value
		return
	}
	name := e.program + "." + strings.ToLower(e.element)
	clean := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, name)
	if said := e.program + "." + e.element; clean != said {
		b.changed = append(b.changed, clean+" = "+stele.Quote(e.element))
	}
	b.keep(clean, e.value)
}

// keep keeps a value in the metadata, after others of the same name.
func (b *noidRecord) keep(name, value string) {
	value = strings.ReplaceAll(value, "\r\n", "\n")
	if before, ok := b.rec.Metadata[name]; ok {
		value = before + "\n" + value
	}
	b.rec.Metadata[name] = value
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
	if len(b.changed) > 0 {
		b.keep(fromNoid+".names", strings.Join(b.changed, "\n"))
	}
	if len(rec.Metadata) == 0 {
		rec.Metadata = nil
	}
	return rec
}
