package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
)

// purlSaid is what a file says of a PURL in one place.
type purlSaid struct {
	name, kind, target, see, base string

	created, modified, at string // dates, as they stand; at is that of a version in the past
	user, status          string
	users, groups         []string
	other                 map[string]string // by the names of members
}

// readPURL reads a PURL in JSON, or in XML. Members that are not known are kept.
func readPURL(text []byte) (said purlSaid, err error) {
	if isXML(text) {
		return readPURLXML(text)
	}
	object, err := document.ReadObject(text)
	if err != nil {
		return said, failf(stele.Invalid, "import.purl-broken", "the PURL can't be read: {cause}", stele.Reason(err))
	}
	known := map[string]*string{
		"name": &said.name, "type": &said.kind, "target": &said.target, "seealso": &said.see, "basepurl": &said.base,
		"created": &said.created, "modified": &said.modified, "modtime": &said.at, "user": &said.user, "status": &said.status,
	}
	lists := map[string]*[]string{"uid": &said.users, "gid": &said.groups}
	said.other = make(map[string]string)
	if text := object["other"]; text != nil { // of a file of rejected rows
		var inner map[string]string
		if json.Unmarshal(text, &inner) == nil {
			delete(object, "other")
			maps.Copy(said.other, inner)
		}
	}
	for name, value := range object {
		if to := known[name]; to != nil && value[0] != '{' && value[0] != '[' {
			*to = strings.TrimSpace(plainText(value))
			continue
		}
		var list []string
		if to := lists[name]; to != nil && json.Unmarshal(value, &list) == nil {
			*to = list
			continue
		}
		text := plainText(value)
		if before := said.other[name]; before != "" && text != "" {
			text = before + "\n" + text
		}
		if text != "" {
			said.other[name] = text
		}
	}
	if len(said.other) > stele.MaxFields {
		return said, tooManyMembers(len(said.other))
	}
	return said, nil
}

// Types of PURLs that are made of another one.
const (
	purlClone = "clone" // the same as another PURL was when it was made
	purlChain = "chain" // leads to another PURL
)

func (s *purlSaid) isLink() bool {
	return (s.kind == purlClone || s.kind == purlChain) && s.link() != ""
}

// link returns the name of the PURL that it is made of; "" if it leads elsewhere.
func (s *purlSaid) link() string {
	switch {
	case s.base != "":
		return s.base
	case strings.HasPrefix(s.target, "/"):
		return s.target
	}
	return ""
}

// parse implements part.
func (p *purlPart) parse(row *bulk.Row) {
	data := row.Text
	row.Text = nil
	n, data, ok := cutNumber(data)
	if !ok || n > uint64(len(data)) {
		row.Err = errSorted
		return
	}
	m := &purlMaker{p: p, key: string(data[:n]), row: row}
	for data = data[n:]; len(data) > 0; {
		n, rest, ok := cutNumber(data)
		if !ok || n > uint64(len(rest)) {
			row.Err = errSorted
			return
		}
		e, err := parsePURLEntry(rest[:n])
		if err != nil {
			row.Err = err
			return
		}
		m.entries, data = append(m.entries, e), rest[n:]
	}
	m.domain = m.entries[0].domain
	row.Later = m.text
	row.Err = m.make()
}

// purlMaker makes a record of all that files say of a PURL.
type purlMaker struct {
	p       *purlPart
	row     *bulk.Row
	key     string
	entries []purlEntry
	domain  int // of the present PURL
}

// text returns all that files say, for the file of rejected rows.
func (m *purlMaker) text() []byte {
	b := []byte("{")
	if len(m.p.domains) > m.domain {
		if name := m.p.domains[m.domain].name; name != "" {
			quoted, _ := json.Marshal(name) // it is a text
			b = append(append(append(b, `"name":`...), quoted...), ',')
		}
	}
	for i, past := range []bool{false, true} {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, []string{`"purls":[`, `"history":[`}[i]...)
		first := true
		for _, e := range m.entries {
			if e.past != past {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			text, err := e.text, error(nil)
			if isXML(text) {
				text, err = purlObject(text)
			}
			var line bytes.Buffer
			if err != nil || json.Compact(&line, text) != nil {
				return nil // a file of rejected rows has lines
			}
			b = append(b, line.Bytes()...)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// make makes the record, and its versions in the past.
func (m *purlMaker) make() error {
	now, past, err := m.read()
	if err != nil {
		return err
	}
	name := ""
	if now != nil {
		name = now.name
	} else {
		name = past[0].name
	}
	id, err := m.p.s.o.Schemes.Parse(m.p.identify(name))
	if err != nil {
		if m.p.base == "" {
			return failf(stele.Invalid, "import.purl-needs-prefix", "{name} is a path; say what stands before it with --prefix, such as https://purl.example.org", stele.Quote(name))
		}
		return notPURL(m.p.identify(name), err)
	}
	if id.String() != m.key {
		return errSorted
	}
	if now == nil && !m.p.hasDomain(name) {
		return failf(stele.Invalid, "import.purl-present-unknown", "{name} is in a history only, and no file has the PURLs of its domain; import the history together with the file whose name ends in _purl.json", stele.Quote(name))
	}
	earlier, err := m.earlier(id, past)
	if err != nil {
		return err
	}
	b := newBuilder(id)
	if now != nil {
		err = m.present(b, now, past, &earlier)
	} else {
		m.removed(b, earlier[len(earlier)-1])
	}
	if err != nil {
		return err
	}
	m.about(b)
	m.settle(b.rec, earlier)
	m.p.s.fill(m.row, b.finish(purlSource))
	if m.row.Err == nil {
		m.row.Earlier = earlier
	}
	return m.row.Err
}

// about takes what files say of the domain. A PURL may be in the files of several, and may have members of the same names.
func (m *purlMaker) about(b *builder) {
	said := m.p.domains[m.domain].said
	for name, value := range said {
		if b.rec.Metadata[name] != value {
			b.keep(name, value)
		}
	}
	seen := map[int]bool{m.domain: true}
	for _, e := range m.entries {
		if seen[e.domain] || e.past {
			continue
		}
		seen[e.domain] = true
		for name, value := range m.p.domains[e.domain].said {
			if said[name] != value && len(b.rec.Metadata[name]) <= stele.MaxProse { // a longer one is refused in any case
				b.keep(name, value)
			}
		}
	}
}

// notPURL refuses a name that is not an identifier.
func notPURL(name string, err error) error {
	return failf(stele.Invalid, "import.purl-not-an-identifier", "{name} is not an identifier: {cause}. If it is a PURL of a host that is not known yet, add the host with 'stele purl-host add'", stele.Quote(name), stele.Reason(err))
}

// read reads what files say, now and in the past with the oldest first.
func (m *purlMaker) read() (now *purlSaid, past []purlSaid, err error) {
	for _, e := range m.entries {
		said, err := readPURL(e.text)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case e.past:
			if _, ok := parseTime(said.at); !ok {
				return nil, nil, failf(stele.Invalid, "import.purl-undated", "the version at line {line} has no date in modtime, but {value}", e.line, stele.Quote(said.at))
			}
			past = append(past, said)
		case now == nil:
			now, m.domain = &said, e.domain
		case !now.equals(&said):
			return nil, nil, failf(stele.Invalid, "import.purl-twice", "{name} is in the files twice, and the one at line {line} says something else; remove one of them", stele.Quote(said.name), e.line)
		}
	}
	slices.SortStableFunc(past, func(a, b purlSaid) int {
		x, _ := parseTime(a.at)
		y, _ := parseTime(b.at)
		return x.Compare(y)
	})
	return now, past, nil
}

// hasDomain reports whether a file has the present PURLs of the domain that a name is in. Domains are the same in any case.
func (p *purlPart) hasDomain(name string) bool {
	for path := strings.ToLower(strings.TrimSuffix(name, "/")); path != ""; path = path[:strings.LastIndexByte(path, '/')] {
		if p.known[path] {
			return true
		}
		if !strings.Contains(path, "/") {
			return false
		}
	}
	return false
}

// earlier makes the versions of the past.
func (m *purlMaker) earlier(id stele.ID, past []purlSaid) (list []*stele.Record, err error) {
	for i := range past {
		said := &past[i]
		b := newBuilder(id)
		if err := m.version(b, said, said, len(list) > 0 && list[len(list)-1].State != stele.Reserved); err != nil {
			return nil, err
		}
		if t := b.rec.Targets; len(t) > 0 && stele.CheckURL(t[0].URL) != nil { // it led nowhere then
			b.rec.Targets = nil
			b.keep(purlSource+".target", said.target)
		}
		b.rec.Modified, _ = parseTime(said.at)
		b.author(said.user)
		b.unless(purlSource+".created", said.created, "")
		b.unless(purlSource+".modified", said.modified, said.at)
		list = append(list, b.finish(purlSource))
	}
	return list, nil
}

// author takes the user that made a version.
func (b *builder) author(user string) {
	if len(user) > stele.MaxName || user != "" && stele.CheckText("", user) != nil {
		b.keep(purlSource+".user", user)
		return
	}
	b.rec.By = user
}

// present makes the present version. The last version of the past is usually the same.
func (m *purlMaker) present(b *builder, now *purlSaid, past []purlSaid, earlier *[]*stele.Record) error {
	made, err := m.resolve(now)
	if err != nil {
		return err
	}
	list := *earlier
	b.author(now.user)
	b.unless(purlSource+".modtime", now.at, "")
	same := now
	if n := len(past) - 1; n >= 0 && past[n].isVersion(now) {
		same = &past[n]
		b.rec.Modified = list[n].Modified
		if now.user == "" {
			b.author(same.user)
		} else {
			b.unless(purlSource+".user", same.user, now.user)
		}
		*earlier = list[:n]
		list = list[:n]
	}
	if err := m.version(b, now, made, len(list) > 0 && list[len(list)-1].State != stele.Reserved); err != nil {
		return err
	}
	m.also(b, now, same)
	for name, value := range map[string]string{"created": now.created, "modified": now.modified} {
		if at, ok := parseTime(value); !ok {
			if value != "" {
				b.keep(purlSource+"."+name, value)
			}
		} else if name == "created" {
			b.rec.Created = at
		} else if at.After(b.rec.Modified) {
			b.rec.Modified = at
		}
	}
	return nil
}

// isVersion reports whether a version of the past can be the present one.
func (s *purlSaid) isVersion(now *purlSaid) bool {
	return s.kind == now.kind && s.target == now.target && s.see == now.see && s.base == now.base && s.status != purlDeleted
}

// also keeps what the last version of the past says beside, if it is the present one.
func (m *purlMaker) also(b *builder, now, same *purlSaid) {
	b.unless(purlSource+".created", same.created, now.created)
	b.unless(purlSource+".modified", same.modified, now.modified)
	b.unless(purlSource+".maintainers", strings.Join(same.users, "\n"), strings.Join(now.users, "\n"))
	b.unless(purlSource+".maintainer-groups", strings.Join(same.groups, "\n"), strings.Join(now.groups, "\n"))
	if same.status != "0" && same.status != "1" {
		b.unless(purlSource+".status", same.status, now.status)
	}
	for _, name := range slices.Sorted(maps.Keys(same.other)) {
		if value := same.other[name]; now.other[name] != value {
			b.element(purlSource, name, value)
		}
	}
}

// unless keeps a value that is said, and is not another one.
func (b *builder) unless(name, value, other string) {
	if value != "" && value != other {
		b.keep(name, value)
	}
}

// removed makes the present version of a PURL that a domain had and has not any more. When it was removed is not known.
func (m *purlMaker) removed(b *builder, last *stele.Record) {
	b.rec.Targets = slices.Clone(last.Targets)
	if b.rec.State = stele.Withdrawn; last.Tombstone != nil {
		t := *last.Tombstone
		b.rec.Tombstone = &t
		return
	}
	b.rec.Tombstone = &stele.Tombstone{Reason: "It was removed from the PURL server that it was registered at."}
}

// settle makes the dates of a record agree with its past.
func (m *purlMaker) settle(rec *stele.Record, earlier []*stele.Record) {
	if len(earlier) > 0 {
		first, last := earlier[0].Modified, earlier[len(earlier)-1].Modified
		if rec.Created.IsZero() || rec.Created.After(first) {
			rec.Created = first
		}
		if !rec.Modified.IsZero() && rec.Modified.Before(last) {
			rec.Modified = last
		}
	}
	if rec.Created.IsZero() {
		rec.Created = rec.Modified
	}
	if !rec.Modified.IsZero() && rec.Modified.Before(rec.Created) {
		rec.Modified = rec.Created
	}
	if t := rec.Tombstone; t != nil {
		t.At = rec.Modified
	}
	for _, v := range earlier {
		if v.Tombstone != nil {
			v.Tombstone.At = v.Modified
		}
	}
}

// purlDeleted is the status of a version in the past that removed the PURL. 0 is one that made it, 1 one that changed it.
const purlDeleted = "2"

// version makes a version of what is said of a PURL; made is what it comes down to if it is made of another one. Public says that
// the version before was known to the public, so that this one can't be reserved.
func (m *purlMaker) version(b *builder, said, made *purlSaid, public bool) error {
	kind, target := made.kind, made.target
	switch {
	case said.status == purlDeleted:
		b.withdraw("It was removed from the PURL server that it was registered at.")
		m.lead(b, target, 0, false)
	case kind == "301" || kind == "302" || kind == "303" || kind == "307":
		status, _ := strconv.Atoi(kind)
		if target == "" && made.see != "" {
			target = made.see
		}
		m.lead(b, target, status, false)
	case kind == "partial" || strings.HasPrefix(kind, "partial-"):
		m.lead(b, target, 302, true)
	case kind == purlChain || kind == purlClone: // of the past, or leading to another server
		if link := said.link(); link != "" {
			target = link
		}
		m.lead(b, target, 302, false)
	case kind == "404" && public:
		b.withdraw("It was not found (404) at the PURL server that it was registered at.")
	case kind == "404":
		b.rec.State = stele.Reserved
	case kind == "410":
		b.withdraw("It is gone (410) at the PURL server that it was registered at.")
	default:
		return failf(stele.Invalid, "import.purl-type-unknown", "{name} has the type {type}, which is not known", stele.Quote(said.name), stele.Quote(said.kind))
	}
	m.describe(b, said, made)
	return nil
}

// withdraw makes a withdrawn version.
func (b *builder) withdraw(reason string) {
	b.rec.State, b.rec.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: reason}
}

// lead takes where a PURL leads. A target without a host is one of the same server.
func (m *purlMaker) lead(b *builder, target string, status int, partial bool) {
	b.target(m.absolute(target))
	for i := range b.rec.Targets {
		b.rec.Targets[i].Status, b.rec.Targets[i].Partial = status, partial
	}
}

// absolute returns a target with the host that it is relative to.
func (m *purlMaker) absolute(target string) string {
	if !strings.HasPrefix(target, "/") {
		return target
	}
	base, err := url.Parse(m.p.relative)
	if err != nil || base.Host == "" {
		return target
	}
	if strings.HasPrefix(target, "//") {
		return base.Scheme + ":" + target
	}
	return base.Scheme + "://" + base.Host + target
}

// describe keeps what has no place in a version.
func (m *purlMaker) describe(b *builder, said, made *purlSaid) {
	switch said.kind {
	case "301", "302", "303", "307", "partial":
	case purlClone, purlChain:
		b.keep(purlSource+"."+said.kind, said.link())
	default:
		b.keep(purlSource+".type", said.kind)
	}
	used := len(b.rec.Targets) > 0
	for name, value := range map[string]string{"target": made.target, "see-also": made.see} {
		if value != "" && (!used || b.rec.Targets[0].URL != m.absolute(value)) {
			b.keep(purlSource+"."+name, value)
		}
	}
	if said.status != "" && said.status != "0" && said.status != "1" && said.status != purlDeleted {
		b.keep(purlSource+".status", said.status)
	}
	if len(said.users) > 0 {
		b.keep(purlSource+".maintainers", strings.Join(said.users, "\n"))
	}
	if len(said.groups) > 0 {
		b.keep(purlSource+".maintainer-groups", strings.Join(said.groups, "\n"))
	}
	for _, name := range slices.Sorted(maps.Keys(said.other)) {
		b.element(purlSource, name, said.other[name])
	}
}

// resolve returns what a PURL that is made of another one comes down to.
func (m *purlMaker) resolve(now *purlSaid) (*purlSaid, error) {
	if !now.isLink() {
		return now, nil
	}
	way := []string{m.key}
	for key := m.p.links[m.key]; ; key = m.p.links[key] {
		if slices.Contains(way, key) {
			return nil, failf(stele.Invalid, "import.purl-cycle", "{name} is made of itself: {way}", stele.Quote(now.name), strings.Join(append(way, key), " -> "))
		}
		if way = append(way, key); len(way) > maxLink {
			return nil, failf(stele.Invalid, "import.purl-chain-too-long", "{name} is made of more than {most} PURLs, each of the next", stele.Quote(now.name), maxLink)
		}
		if m.p.links[key] != "" {
			continue
		}
		base, ok := m.p.bases[key]
		if !ok {
			return nil, failf(stele.Invalid, "import.purl-base-missing", "{name} is made of {base}, which is not in the files; import them together", stele.Quote(now.name), key)
		}
		return &base, nil
	}
}

// purlTable is the table of pypurlz: domain, id, target.
func purlTable() *tableKind {
	k := &tableKind{source: purlSource, columns: map[string]string{"domain": fieldDomain, "id": fieldCode, "target": fieldTarget},
		need: [][]string{{fieldDomain}, {fieldCode}, {fieldTarget}}}
	k.make = k.purl
	return k
}

// purl makes a record of a row: a PURL of the type 302.
func (k *tableKind) purl(s *Source, row *bulk.Row, all []said) {
	var domain, name, target string
	for _, c := range all {
		switch c.field {
		case fieldDomain:
			domain = c.value
		case fieldCode:
			name = c.value
		case fieldTarget:
			target = c.value
		}
	}
	path := fmt.Sprintf("/%s/%s", strings.Trim(domain, "/"), strings.TrimPrefix(name, "/"))
	if s.o.Prefix == "" {
		row.Err = failf(stele.Invalid, "import.purl-needs-prefix", "{name} is a path; say what stands before it with --prefix, such as https://purl.example.org", stele.Quote(path))
		return
	}
	p := &purlPart{base: s.o.Prefix, relative: s.o.Prefix}
	id, err := s.o.Schemes.Parse(p.identify(path))
	if err != nil {
		row.Err = notPURL(p.identify(path), err)
		return
	}
	b := newBuilder(id)
	m := &purlMaker{p: p}
	m.lead(b, target, 302, false)
	for _, c := range all {
		if c.field == "" {
			b.element(k.source, c.name, c.value)
		}
	}
	if len(b.rec.Targets) == 0 {
		row.Err = failf(stele.Invalid, "import.purl-target-missing", "{name} leads nowhere: the row has no target", stele.Quote(path))
		return
	}
	s.fill(row, b.finish(k.source))
}
