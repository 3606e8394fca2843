package dnsd

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/naptr"
	"github.com/stele-id/stele/publish/zonesign"
)

// Most questions that were not asked before are for the rules of an identifier. They are packed
// here without records of the DNS library between, which pack makes of all other answers: the
// octets are the same, in a third of the time.

// compiles is a zone that has what stands at a name without records.
type compiles interface {
	Compiled(ctx context.Context, name string, m *publish.Compiling) (*naptr.Compiled, publish.Node, error)
}

// first is the memory for such answers.
type first struct {
	compiling publish.Compiling
	text      [maxName]byte
	set       zonesign.WireSet
}

// plainName returns a name of the wire as it is written; ok is false if it has characters that
// are escaped, or is the root.
func (f *first) plainName(wire []byte) (name string, ok bool) {
	text := f.text[:0]
	for len(wire) > 0 && wire[0] != 0 {
		n := 1 + int(wire[0])
		if n > maxLabel+1 || n >= len(wire) {
			return "", false
		}
		for _, c := range wire[1:n] {
			if !naptr.IsLabelByte(c) {
				return "", false
			}
		}
		text = append(append(text, wire[1:n]...), '.')
		wire = wire[n:]
	}
	return string(text), len(text) > 0
}

// makeFirst is make for what stands at a name because of an identifier. ok is false if the answer
// is another one; then it notes in a what it has found, and make resolves the question.
func (w *worker) makeFirst(ctx context.Context, now time.Time, a *asked) (p packed, ok bool, err error) {
	if w.q.qtype != dns.TypeNAPTR && w.q.qtype != dns.TypeURI {
		return packed{}, false, nil
	}
	name, ok := w.first.plainName(w.name)
	if !ok {
		return packed{}, false, nil
	}
	if a.zone, err = w.s.source.find(ctx, name); err != nil {
		return packed{}, false, err
	}
	z := a.zone
	from, ok := z.(compiles)
	if !ok {
		return packed{}, false, nil
	}
	m := &w.first.compiling
	out, n, err := from.Compiled(ctx, name, m)
	if err != nil {
		return packed{}, false, err
	}
	if out == nil {
		a.node = &n
		return packed{}, false, nil
	}
	body, count := appendCompiled(w.scratch[:0], out, w.q.qtype)
	if count == 0 || len(body) > maxMessage/2 {
		a.node = &publish.Node{Exists: true, Records: m.Records(name)}
		return packed{}, false, nil
	}
	w.scratch = body[:cap(body)]
	s := z.Signer()
	p = packed{aa: true, zone: w.s.serials.numberOf(m.Zone()), answers: uint16(count), hour: hourOf(time.Time{})}
	switch {
	case s != nil && w.q.do:
		if !w.s.budget.take(now, true, w.tcp) {
			return packed{}, true, errBusy
		}
		signatures := 0
		p.signed, p.hour = true, hourOf(s.FreshUntil())
		if body, signatures, err = w.signFirst(s, body, name, out.TTL, count); err != nil {
			return packed{}, true, err
		}
		w.scratch = body[:cap(body)]
		p.answers += uint16(signatures)
	case s != nil:
		p.bare = true
	}
	p.body, p.extra = body, len(body)
	return p, true, nil
}

// signFirst appends the signatures of n records in a body of which each begins with a pointer to
// the name of the question.
func (w *worker) signFirst(s *zonesign.Signer, body []byte, name string, ttl uint32, n int) ([]byte, int, error) {
	set := &w.first.set
	set.Name, set.Owner, set.Type, set.TTL, set.Data = name, w.name, w.q.qtype, ttl, set.Data[:0]
	for rest := body; n > 0; n-- {
		end := 2 + recordHead + int(binary.BigEndian.Uint16(rest[recordHead:]))
		set.Data = append(set.Data, rest[2+recordHead:end])
		rest = rest[end:]
	}
	return s.AppendRRSIGs(body, headerSize, set)
}

// appendCompiled appends the records of a type that were compiled for the name of the question,
// and returns how many there are: none if there are some that the DNS library has to pack.
func appendCompiled(to []byte, out *naptr.Compiled, qtype uint16) (_ []byte, n int) {
	if !isPlain(out) {
		return to, 0
	}
	switch qtype {
	case dns.TypeNAPTR:
		for i := range out.Rules {
			f := &out.Rules[i]
			begin := len(to)
			to = beginRecord(append(to, 0xC0, headerSize), dns.TypeNAPTR, out.TTL)
			to = binary.BigEndian.AppendUint16(to, f.Order)
			to = binary.BigEndian.AppendUint16(to, f.Preference)
			to = appendText(appendText(appendText(to, f.Flags), f.Service), f.Regexp)
			var ok bool
			if to, ok = appendPlainName(to, f.Replacement); !ok || hasCapitals(f.Replacement) {
				return to, 0
			}
			endRecord(to[begin:])
		}
		n = len(out.Rules)
	case dns.TypeURI:
		for _, u := range out.URIs {
			begin := len(to)
			to = beginRecord(append(to, 0xC0, headerSize), dns.TypeURI, out.TTL)
			to = binary.BigEndian.AppendUint16(to, u.Priority)
			to = append(binary.BigEndian.AppendUint16(to, naptr.URIWeight), u.Target...)
			endRecord(to[begin:])
		}
		n = len(out.URIs)
	}
	return to, n
}

// endRecord writes the size of the data of a record that begins with a pointer.
func endRecord(record []byte) {
	binary.BigEndian.PutUint16(record[recordHead:], uint16(len(record)-2-recordHead))
}

// hasCapitals reports whether a name is not in canonical form (RFC 4034, section 6.2).
func hasCapitals(name string) bool {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			return true
		}
	}
	return false
}

// lookup is the context of the lookups of a worker. One is good for many of them: its timer costs as
// much as the reading of a record.
type lookup struct {
	ctx    context.Context
	cancel context.CancelFunc
	begun  time.Time
}

// lookupShare is the part of the time for a lookup that may have passed when it begins.
const lookupShare = 8

// context returns the context of a lookup that begins now and may take so long, or an eighth less.
func (l *lookup) context(of context.Context, now time.Time, timeout time.Duration) context.Context {
	if passed := now.Sub(l.begun); l.ctx == nil || passed < 0 || passed > timeout/lookupShare || l.ctx.Err() != nil {
		if l.cancel != nil {
			l.cancel()
		}
		l.ctx, l.cancel = context.WithTimeout(of, timeout)
		l.begun = now
	}
	return l.ctx
}
