package foreign

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
)

// fromZone begins the names of fields that keep what a zone says.
const fromZone = "zone"

// parse implements part.
func (p *zonePart) parse(row *bulk.Row) {
	data := row.Text
	row.Text = nil
	var list []zoneEntry
	for len(data) > 0 {
		n, rest, ok := cutNumber(data)
		if !ok || n > uint64(len(rest)) {
			row.Err = errSorted
			return
		}
		e, err := parseZoneEntry(rest[:n])
		if err != nil {
			row.Err = err
			return
		}
		list, data = append(list, e), rest[n:]
	}
	row.Later = func() []byte {
		texts := []string{"$ORIGIN " + cmp.Or(list[0].zone, ".")}
		for i := range list {
			texts = append(texts, list[i].text())
		}
		return []byte(strings.Join(texts, "\n"))
	}
	entries := make([]dnsrr.Entry, len(list))
	for i := range list {
		e, err := dnsrr.ParseEntry(list[i].owner+" "+list[i].rest, list[i].origin, list[i].ttl)
		if err != nil {
			row.Err = failf(stele.Invalid, "import.zone-record", "a record of {owner} can't be read: {cause}", list[i].owner, err)
			return
		}
		entries[i] = e
	}
	id, err := p.identifier(entries, &list[0])
	if err != nil {
		row.Err = err
		return
	}
	b := &zoneRecord{builder: newBuilder(id), ttl: list[0].ttl}
	slices.SortStableFunc(entries, func(a, b dnsrr.Entry) int {
		return cmp.Or(cmp.Compare(zoneRank(a.Type), zoneRank(b.Type)), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
	})
	for i := range entries {
		b.add(&entries[i])
	}
	p.s.fill(row, b.finish(fromZone))
}

// zoneRank sorts rules before the URI records that repeat them.
func zoneRank(kind string) int { return max(slices.Index([]string{"NAPTR", "URI", "TXT"}, kind), -1) }

// zoneRecord makes a record of what stands at an owner name.
type zoneRecord struct {
	*builder
	ttl uint32 // of records that do not say theirs
}

func (b *zoneRecord) add(e *dnsrr.Entry) {
	switch e.Type {
	case "NAPTR":
		b.rule(e)
	case "URI":
		if !b.leadsTo(e.Value) {
			b.place(e, stele.N2L, e.Value, "", stele.DefaultOrder, e.Order)
		}
	case "TXT":
		b.texts(e.Texts)
	default:
		value := e.Value
		if value == "" {
			value = e.Data()
		}
		b.keep(fromZone+"."+strings.ToLower(e.Type), value)
	}
}

func (b *zoneRecord) leadsTo(url string) bool {
	return slices.ContainsFunc(b.rec.Targets, func(t stele.Target) bool { return t.URL == url && t.Service == stele.N2L })
}

func (b *zoneRecord) place(e *dnsrr.Entry, service stele.Service, url, kind string, order, preference uint16) {
	t := stele.Target{Service: service, URL: url, Type: kind, Order: order, Preference: preference}
	if e.TTL != b.ttl {
		t.TTL = e.TTL
	}
	b.rec.Targets = append(b.rec.Targets, t)
}

// rule reads a NAPTR record. One that leads to a location is a target; one that leads to the name of a resolver is the zone's, not
// the identifier's; any other is kept as it is.
func (b *zoneRecord) rule(e *dnsrr.Entry) {
	keep := func() { b.keep(fromZone+".naptr", e.Data()) }
	flag, err := ddds.ParseFlag(e.Flags)
	field, bad := ddds.Unescape(e.Regexp)
	if err != nil || bad != nil {
		keep()
		return
	}
	_, to, ok := cutExpression(field)
	if !ok && (flag == ddds.FlagSRV || flag == ddds.FlagAddress) && strings.HasPrefix(e.Replacement, "_") {
		return // the spare for clients of RFC 3404, which all names of a zone have
	}
	url := strings.ReplaceAll(to, `\\`, `\`)
	services, err := ddds.ParseServices(flag, e.Service)
	if !ok || err != nil || !flag.IsResolved() && flag != ddds.FlagURI || strings.Contains(url, `\`) && strings.Contains(to, `\1`) {
		keep()
		return
	}
	taken := false
	for _, offer := range services.Offers {
		switch {
		case !offer.Service.IsValid():
		case flag == ddds.FlagURI && (b.leadsTo(url) || taken): // the same location, for other clients
			taken = true
		case slices.ContainsFunc(b.rec.Targets, func(t stele.Target) bool { return t.URL == url && t.Service == offer.Service && t.Type == offer.Type }):
			taken = true
		default:
			b.place(e, offer.Service, url, offer.Type, e.Order, e.Preference)
			taken = true
		}
	}
	if !taken {
		keep()
	}
}

// The keys of texts that we publish.
var textKeys = []string{"persistence", "until", "statement", "withdrawn", "reason", "replacement"}

// texts reads a TXT record. Those that we publish say what is promised, or why a name was withdrawn. Texts that say something
// else, or something else than a TXT record before, are kept.
func (b *zoneRecord) texts(texts []string) {
	said := make(map[string]string)
	var other []string
	last, before := "", ""
	for _, text := range texts {
		plain, err := ddds.Unescape(text)
		if err != nil {
			plain = text
		}
		key, value, ok := strings.Cut(plain, "=")
		_, twice := said[key]
		switch {
		case ok && !twice && slices.Contains(textKeys, key):
			said[key], last = value, key
		case last != "" && continues(before, plain):
			said[last] += plain
		case len(said) == 0: // it is not ours
			b.keep(fromZone+".txt", strings.Join(texts, " "))
			return
		default:
			other, last = append(other, plain), ""
		}
		before = plain
	}
	if other = slices.Concat(b.promise(said), b.state(said), other); len(other) > 0 {
		b.keep(fromZone+".txt", strings.Join(other, " "))
	}
}

// continues reports whether a string of a TXT record continues the text of the one before: that one has no room for its first
// character.
func continues(before, text string) bool {
	_, n := utf8.DecodeRuneInString(text)
	return n > 0 && len(before)+n > dnsrr.MaxString
}

// promise takes what is promised, and returns the texts that have no place.
func (b *zoneRecord) promise(said map[string]string) (other []string) {
	p := &b.rec.Persistence
	level := string(p.Level)
	for i, field := range []*string{&level, &p.Until, &p.Statement} {
		switch value := said[textKeys[i]]; {
		case value == "" || value == *field:
		case *field == "":
			*field = value
		default:
			other = append(other, textKeys[i]+"="+value)
		}
	}
	p.Level = stele.Level(level)
	return other
}

// state takes why a name was withdrawn, and returns the texts that have no place.
func (b *zoneRecord) state(said map[string]string) (other []string) {
	at, withdrawn := said["withdrawn"]
	if !withdrawn || b.rec.Tombstone != nil {
		for _, key := range textKeys[3:] {
			if said[key] != "" {
				other = append(other, key+"="+said[key])
			}
		}
		return other
	}
	b.rec.State = stele.Withdrawn
	b.rec.Tombstone = &stele.Tombstone{Reason: cmp.Or(said["reason"], "withdrawn; the zone gives no reason")}
	if t, err := time.Parse(time.RFC3339, at); err == nil && t.Year() > 1 {
		b.rec.Tombstone.At = t
	} else if err != nil && at != "" {
		other = append(other, "withdrawn="+at)
	}
	if said["replacement"] != "" {
		b.keep(fromZone+".replacement", said["replacement"])
	}
	return other
}
