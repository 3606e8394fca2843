package foreign

import (
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
)

// zoneNames is how the owner names of a zone were made of identifiers, as far as the file says it: urn:paradisec:ab1:001:a is
// a.001.ab1 below the zone (publish/naptr, [Mapping]).
type zoneNames struct {
	prefix string // that all begin with, complete up to the first part; "" if the file does not say it
	sep    string // between the parts
	parts  int
	told   string // what a remark says that the names begin with
}

// comment reads the remark that an exported zone begins with.
func (n *zoneNames) comment(line []byte) {
	if n.told != "" || len(line) == 0 || line[0] != ';' {
		return
	}
	if _, prefix, ok := strings.Cut(string(line), ": names that begin with "); ok {
		n.told = strings.TrimSpace(prefix)
	}
}

// rule reads the rule at the beginning of a zone that leads from identifiers to owner names (RFC 3404, section 4). Any other rule
// says nothing here.
func (n *zoneNames) rule(text, origin string) {
	e, err := dnsrr.ParseEntry(text, cmpOr(origin, "."), 3600)
	if err != nil || e.Flags != "" {
		return
	}
	field, err := ddds.Unescape(e.Regexp)
	if err != nil {
		return
	}
	ere, to, ok := cutExpression(field)
	at := strings.Index(ere, "([-_")
	if at < 0 {
		if at = strings.Index(ere, "([-"); at < 0 {
			at = strings.Index(ere, "([_")
		}
	}
	if !ok || at < 0 || n.prefix != "" {
		return
	}
	prefix, ok := literalOf(strings.TrimPrefix(ere[:at], "^"), n.told)
	if !ok {
		return
	}
	parts := 0
	for i := range len(to) - 2 {
		if to[i] == '\\' && '0' <= to[i+1] && to[i+1] <= '9' && to[i+2] == '.' {
			parts++
		}
	}
	sep := ":"
	if _, rest, ok := strings.Cut(ere[at:], "})"); ok && parts > 1 {
		if between, _, ok := strings.Cut(rest, "("); ok {
			if text, ok := literalOf(between, ""); ok {
				sep = text
			}
		}
	}
	n.prefix, n.sep, n.parts = prefix, sep, parts
}

// cutExpression cuts a substitution expression (RFC 3402, section 3.2) into what it matches and what it makes of that. Ok is false
// if a delimiter stands in one of them.
func cutExpression(field string) (ere, to string, ok bool) {
	if field == "" {
		return "", "", false
	}
	parts := strings.Split(field[1:], field[:1])
	if len(parts) != 3 || strings.HasSuffix(parts[0], `\`) || strings.HasSuffix(parts[1], `\`) {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// literalOf returns the text that an ERE matches, if it matches one, as [ddds.Quote] writes it. At its beginning may be what our
// rules have there: alternatives, of which the first counts, https?, and any characters, which are those of begin.
func literalOf(ere, begin string) (string, bool) {
	var b strings.Builder
	switch {
	case strings.HasPrefix(ere, "(doi|hdl)"), strings.HasPrefix(ere, "(hdl|doi)"):
		inner, rest, _ := strings.Cut(ere[1:], ")")
		first, _, _ := strings.Cut(inner, "|")
		b.WriteString(first)
		ere = rest
	case strings.HasPrefix(ere, "https?:"):
		b.WriteString("https")
		ere = ere[len("https?"):]
	case strings.HasPrefix(ere, ".{"):
		digits, rest, ok := strings.Cut(ere[2:], "}")
		n := 0
		for _, c := range digits {
			if c < '0' || c > '9' || n > len(begin) {
				return "", false
			}
			n = n*10 + int(c-'0')
		}
		if !ok || n > len(begin) {
			return "", false
		}
		b.WriteString(begin[:n])
		ere = rest
	}
	for i := 0; i < len(ere); i++ {
		switch c := ere[i]; {
		case c == '[' && i+2 < len(ere) && ere[i+2] == ']' && ere[i+1] != '^':
			b.WriteByte(ere[i+1])
			i += 2
		case c == '\\' && i+1 < len(ere) && strings.IndexByte(`^\.[$()|*+?{`, ere[i+1]) >= 0:
			b.WriteByte(ere[i+1])
			i++
		case strings.IndexByte(`.[$()|*+?{^\`, c) >= 0:
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// identifier returns the identifier of an owner name. Rules name it; otherwise it is made of the labels, after what --prefix or the
// file says that names begin with.
func (p *zonePart) identifier(list []dnsrr.Entry, e *zoneEntry) (stele.ID, error) {
	names := p.spaces[e.names]
	begin := cmpOr(p.s.o.Prefix, names.told)
	var found stele.ID
	for i := range list {
		if list[i].Type != "NAPTR" {
			continue
		}
		field, err := ddds.Unescape(list[i].Regexp)
		if err != nil {
			continue
		}
		ere, _, ok := cutExpression(field)
		ere, from := strings.CutPrefix(ere, "^")
		ere, to := strings.CutSuffix(ere, "$")
		if !ok || !from || !to {
			continue
		}
		name, ok := literalOf(ere, begin)
		if !ok {
			continue
		}
		id, err := p.s.o.Schemes.Parse(name)
		switch {
		case err != nil:
			return stele.ID{}, err
		case found.IsValid() && id != found:
			return stele.ID{}, failf(stele.Invalid, "import.zone-several", "the rules at {owner} are for {name} and for {other}; one record can't be both. Give each a file of its own", e.owner, found, id)
		}
		found = id
	}
	if found.IsValid() {
		return found, nil
	}
	below, ok := strings.CutSuffix(e.owner, "."+e.zone)
	if !ok || below == "" {
		return stele.ID{}, failf(stele.Invalid, "import.zone-outside", "{owner} is not below the zone {zone}", e.owner, e.zone)
	}
	labels := strings.Split(below, ".")
	prefix, sep, parts := names.prefix, names.sep, names.parts
	if p.s.o.Prefix != "" {
		if prefix, parts = p.s.o.Prefix, max(parts, len(labels)); sep == "" {
			sep = ":"
		}
		if last := prefix[len(prefix)-1:]; last == ":" || last == "/" {
			sep = last
		}
	}
	if prefix == "" {
		return stele.ID{}, failf(stele.Invalid, "import.zone-prefix", "no rule at {owner} says which identifier it is for; say what identifiers begin with by --prefix, such as urn:example:", e.owner)
	}
	inner := min(len(labels)-1, max(parts, 1)-1) // labels that are parts before the last, which may have dots
	name := prefix
	for i := len(labels) - 1; i >= len(labels)-inner; i-- {
		name += labels[i] + sep
	}
	name += strings.Join(labels[:len(labels)-inner], ".")
	return p.s.o.Schemes.Parse(name)
}
