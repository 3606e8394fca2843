package naptr

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/ddds"
)

// AppendText appends what was compiled for an owner name as a master file has it, the
// same bytes as those of [Text] for its records: a whole zone is so
// written in a third of the time.
func (out *Compiled) AppendText(to []byte, owner string) []byte {
	for i := range out.Rules {
		r := &out.Rules[i]
		to = appendHead(to, owner, out.TTL, "NAPTR", r.Order, r.Preference)
		to = append(appendQuoted(to, r.Flags), ' ')
		to = append(appendQuoted(to, r.Service), ' ')
		to = append(appendQuoted(to, r.Regexp), ' ')
		to = append(append(to, r.Replacement...), '\n')
	}
	for i := range out.URIs {
		u := &out.URIs[i]
		to = appendHead(to, owner, out.TTL, "URI", u.Priority, URIWeight)
		to = append(appendQuoted(to, u.Target), '\n')
	}
	for _, texts := range out.Texts {
		to = appendHead(to, owner, out.TTL, "TXT")
		for _, text := range texts {
			to = append(appendQuoted(to, text), ' ')
		}
		to[len(to)-1] = '\n'
	}
	return to
}

// appendHead appends what a line begins with: the owner, TTL, class, type, and numbers.
func appendHead(to []byte, owner string, ttl uint32, kind string, numbers ...uint16) []byte {
	to = append(append(to, owner...), ' ')
	to = strconv.AppendUint(to, uint64(ttl), 10)
	to = append(append(append(to, " IN "...), kind...), ' ')
	for _, n := range numbers {
		to = append(strconv.AppendUint(to, uint64(n), 10), ' ')
	}
	return to
}

func appendQuoted(to []byte, text string) []byte {
	return append(append(append(to, '"'), ddds.Escape(text)...), '"')
}

// Text writes a record as a master file has it, without its owner name.
func Text(rr dns.RR) string {
	h := rr.Header()
	data := strings.TrimPrefix(rr.String(), h.String())
	switch rr := rr.(type) {
	case *dns.RFC3597:
		data = uriText(rr) // the only type that comes so
	case *dns.SOA:
		// The library takes away escapes, and Knot wants them before + and the like.
		data = strings.Replace(data, " "+dns.Name(rr.Mbox).String()+" ", " "+rr.Mbox+" ", 1)
	}
	return fmt.Sprintf("%d IN %s %s", h.Ttl, dns.TypeToString[h.Rrtype], data)
}

// uriText writes a URI record that is longer than the library writes.
func uriText(rr *dns.RFC3597) string {
	data, err := hex.DecodeString(rr.Rdata)
	if err != nil || len(data) < 4 {
		return `\# 0`
	}
	return fmt.Sprintf(`%d %d "%s"`, int(data[0])<<8|int(data[1]), int(data[2])<<8|int(data[3]), ddds.Escape(string(data[4:])))
}
