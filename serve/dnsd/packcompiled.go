package dnsd

import (
	"encoding/binary"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/publish/naptr"
)

// addCompiled adds what was compiled for a name, as the DNS library would pack its
// records: a whole zone is so made in half the time.
func (e *envelopes) addCompiled(name string, out *naptr.Compiled) error {
	owner, ok := appendPlainName(e.plain[:0], name)
	if e.plain = owner; !ok || !isPlain(out) {
		return e.addAll(out.Records(name))
	}
	var err error
	for i := range out.Rules {
		f := &out.Rules[i]
		rest := beginRecord(e.rest[:0], dns.TypeNAPTR, out.TTL)
		rest = binary.BigEndian.AppendUint16(rest, f.Order)
		rest = binary.BigEndian.AppendUint16(rest, f.Preference)
		rest = appendText(appendText(appendText(rest, f.Flags), f.Service), f.Regexp)
		if rest, err = e.appendName(rest, f.Replacement); err != nil {
			return err
		}
		if err := e.putRecord(name, owner, rest); err != nil {
			return err
		}
	}
	for _, u := range out.URIs {
		rest := beginRecord(e.rest[:0], dns.TypeURI, out.TTL)
		rest = binary.BigEndian.AppendUint16(rest, u.Priority)
		rest = append(binary.BigEndian.AppendUint16(rest, naptr.URIWeight), u.Target...)
		if err := e.putRecord(name, owner, rest); err != nil {
			return err
		}
	}
	for _, texts := range out.Texts {
		rest := beginRecord(e.rest[:0], dns.TypeTXT, out.TTL)
		for _, text := range texts {
			rest = appendText(rest, text)
		}
		if err := e.putRecord(name, owner, rest); err != nil {
			return err
		}
	}
	return nil
}

// addAll adds records that are not shared: packing changes them.
func (e *envelopes) addAll(list []dns.RR) error {
	for _, rr := range list {
		if err := e.add(rr); err != nil {
			return err
		}
	}
	return nil
}

// isPlain reports whether all texts fit where they stand.
func isPlain(out *naptr.Compiled) bool {
	for i := range out.Rules {
		f := &out.Rules[i]
		if len(f.Flags) > dnsrr.MaxString || len(f.Service) > dnsrr.MaxString || len(f.Regexp) > dnsrr.MaxString {
			return false
		}
	}
	for _, texts := range out.Texts {
		for _, text := range texts {
			if len(text) > dnsrr.MaxString {
				return false
			}
		}
	}
	return true
}

// recordHead is the size of what stands between the owner of a record and its data: type,
// class, TTL, and the size of the data.
const recordHead = 10

func beginRecord(to []byte, kind uint16, ttl uint32) []byte {
	to = binary.BigEndian.AppendUint16(to, kind)
	to = binary.BigEndian.AppendUint16(to, dns.ClassINET)
	to = binary.BigEndian.AppendUint32(to, ttl)
	return append(to, 0, 0)
}

// putRecord adds a record whose data is there.
func (e *envelopes) putRecord(name string, owner, rest []byte) error {
	e.rest = rest
	binary.BigEndian.PutUint16(rest[recordHead-2:], uint16(len(rest)-recordHead))
	return e.put(name, owner, rest)
}

func appendText(to []byte, text string) []byte { return append(append(to, byte(len(text))), text...) }

// appendName appends a name as it stands in data: whole.
func (e *envelopes) appendName(to []byte, name string) ([]byte, error) {
	if to, ok := appendPlainName(to, name); ok {
		return to, nil
	}
	end, err := dns.PackDomainName(name, e.scratch, 0, nil, false)
	return append(to, e.scratch[:end]...), err
}

// appendPlainName appends an absolute name as it is on the wire; ok is false if it has
// escapes, or is not a domain name.
func appendPlainName(to []byte, name string) (_ []byte, ok bool) {
	if name == "." {
		return append(to, 0), true
	}
	begin := len(to)
	for name != "" {
		end := strings.IndexByte(name, '.')
		if end < 1 || end > maxLabel || strings.IndexByte(name[:end], '\\') >= 0 {
			return to[:begin], false
		}
		to = append(append(to, byte(end)), name[:end]...)
		name = name[end+1:]
	}
	to = append(to, 0)
	return to, len(to)-begin <= maxName
}
