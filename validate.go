package stele

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a record. They are generous for people and programs, and small enough that
// no record overloads a server.
const (
	MaxRecord     = 1 << 20  // bytes of a record in a store; see [Record.StoredSize]
	MaxDocument   = 4 << 20  // bytes of a document in JSON, where a byte can take six
	MaxTargets    = 1000     // of a record
	MaxAliases    = 1000     // of a record
	MaxValues     = 1000     // handle values of a record
	MaxReferences = 1000     // of a handle value
	MaxData       = 64 << 10 // bytes of a handle value's data
	MaxFields     = 1000     // of a record's metadata
	MaxReaders    = 1000     // of a record
	MaxProse      = 10_000   // bytes of a metadata value, statement, reason or title
	MaxName       = 255      // bytes of a principal, group or handle value's type
	maxKey        = 64       // bytes of a metadata key
)

// allPermissions are those that exist.
const allPermissions = PublicWrite | PublicRead | AdminWrite | AdminRead

var errMissing = Messagef("identifier.missing", "is missing; give an identifier")

// Validate tells everything that is wrong with the record, as [Problems] in an
// Error of Kind Invalid. It looks at the record alone: whether the namespace
// allows it, and whether its names are free, is the registrar's to say.
func (r *Record) Validate() error {
	var f Report
	r.Check(&f)
	return f.Err("validate", r.ID)
}

// Check adds everything that is wrong with the record to a report; see Validate.
func (r *Record) Check(f *Report) {
	metadata := r.Metadata.check(f)
	r.checkNames(f)
	r.checkState(f)
	if fits(f, "targets", len(r.Targets), MaxTargets) {
		for i := range r.Targets {
			r.Targets[i].check(f, i)
		}
	}
	r.Persistence.check(f)
	r.checkValues(f)
	r.checkReaders(f)
	CheckSignatures(f, r.Signatures)
	checkTime(f, "created", r.Created)
	checkTime(f, "modified", r.Modified)
	checkName(f, "by", r.By)
	r.Withheld.check(f)
	r.checkSize(f, metadata)
}

// checkNames judges the identifier, its spelling and the aliases.
func (r *Record) checkNames(f *Report) {
	if !r.ID.IsValid() {
		f.Add("id", errMissing)
	}
	if r.Spelling != "" {
		if r.Spelling == r.ID.text {
			f.Addf("spelling", "spelling.is-identifier", "is the identifier itself; leave it out")
		} else if err := CheckText("", r.Spelling); err != nil {
			f.Add("spelling", err)
		}
	}
	if !fits(f, "aliases", len(r.Aliases), MaxAliases) {
		return
	}
	for i, alias := range r.Aliases {
		if !alias.IsValid() {
			f.Add(ItemPath("aliases", i), errMissing)
		} else if alias == r.ID {
			f.Addf(ItemPath("aliases", i), "alias.is-identifier", "is the record's identifier; remove it")
		}
	}
	twice(f, "aliases", "", r.Aliases, func(id ID) ID { return id })
}

// fits reports whether a list is within its limit, and adds a problem if it is not.
func fits(f *Report, path string, n, limit int) bool {
	if n > limit {
		f.Addf(path, "field.too-many-items", "has {count} items; {limit} are the most", n, limit)
	}
	return n <= limit
}

// twice tells of items that have the same key, which is the item itself or the
// field named. The zero key counts for nothing.
func twice[T any, K comparable](f *Report, path, field string, list []T, key func(T) K) {
	if len(list) < 2 {
		return
	}
	var zero K
	seen := make(map[K]int, len(list))
	for i, v := range list {
		k := key(v)
		if first, ok := seen[k]; ok && k != zero {
			f.Addf(ItemPath(path, i)+field, "field.item-repeated", "is the same as {other}; remove or change one", ItemPath(path, first)+field)
			continue
		}
		seen[k] = i
	}
}

// checkState judges state and tombstone, of which each asks for the other.
func (r *Record) checkState(f *Report) {
	if !r.State.IsValid() {
		f.Addf("state", "record.state-unknown", `"{state}" is not a state; use reserved, active or withdrawn`, string(r.State))
	}
	t := r.Tombstone
	switch {
	case t == nil && r.State == Withdrawn:
		f.Addf("tombstone", "tombstone.missing", `is missing; say why the record is withdrawn: {"reason":"..."}`)
	case t == nil:
		return
	case r.State == Active || r.State == Reserved:
		f.Addf("tombstone", "tombstone.not-withdrawn", "a record that is {state} has none; remove it, or write the state withdrawn", r.State)
	case strings.TrimSpace(t.Reason) == "":
		f.Addf("tombstone.reason", "tombstone.reason-missing", "is missing; say why the record is withdrawn")
	}
	if t != nil {
		checkProse(f, "tombstone.reason", t.Reason)
		checkTime(f, "tombstone.at", t.At)
		if t.Replacement == r.ID && r.ID.IsValid() {
			f.Addf("tombstone.replacement", "tombstone.replaced-by-itself", "is the record itself; name another, or leave it out")
		}
	}
}

// check judges keys and values, and returns how many bytes they have. Only where
// there is a fault does it go by the order of keys, so that the same record has
// the same problems each time.
func (m Metadata) check(f *Report) (size int) {
	good := fits(f, "metadata", len(m), MaxFields)
	for key, value := range m {
		size += len(key) + len(value)
		good = good && isKey(key) && proseReason(value) == nil
	}
	if good || len(m) > MaxFields {
		return size
	}
	for _, key := range m.Keys() {
		path := FieldPath("metadata", key)
		if !isKey(key) {
			f.Add(path, keyReason(key))
		}
		checkProse(f, path, m[key])
	}
	return size
}

// keys returns the names of the fields: the four that every description should
// have, then the others by their bytes.
func (m Metadata) Keys() []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if c := kernelRank(a) - kernelRank(b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return keys
}

func kernelRank(key string) int {
	switch key {
	case Who:
		return 0
	case What:
		return 1
	case When:
		return 2
	case Where:
		return 3
	}
	return 4
}

// IsField reports whether a text can name a field of metadata: up to 64 of a-z, 0-9, dot, hyphen and underscore, beginning
// with a letter.
func IsField(text string) bool { return isKey(text) }

// isKey reports whether key can name a field of metadata.
func isKey(key string) bool {
	for i := range len(key) {
		c := key[i]
		if 'a' <= c && c <= 'z' || i > 0 && (isDigit(c) || c == '.' || c == '_' || c == '-') {
			continue
		}
		return false
	}
	return key != "" && len(key) <= maxKey
}

func keyReason(key string) error {
	return Messagef("metadata.key-malformed", `"{key}" is not a name of a field; use up to {most} of a-z, 0-9, dot, hyphen and underscore, beginning with a letter`, key, maxKey)
}

func (p Persistence) check(f *Report) {
	if !p.Level.IsValid() {
		f.Addf("persistence.level", "persistence.level-unknown", `"{level}" is not a level; use permanent, unchanging, stable, dynamic or not-guaranteed`, string(p.Level))
	}
	if p.Until != "" {
		if _, err := time.Parse(time.DateOnly, p.Until); err != nil {
			f.Addf("persistence.until", "persistence.until-not-a-date", `"{text}" is not a date; write year, month and day, such as 2040-01-31`, p.Until)
		}
	}
	checkProse(f, "persistence.statement", p.Statement)
}

func (r *Record) checkValues(f *Report) {
	if len(r.Values) == 0 || !fits(f, "values", len(r.Values), MaxValues) {
		return
	}
	for i := range r.Values {
		r.Values[i].check(f, ItemPath("values", i))
	}
	twice(f, "values", ".index", r.Values, func(v HandleValue) uint32 { return v.Index })
}

func (v *HandleValue) check(f *Report, path string) {
	if v.Index == 0 {
		f.Addf(path+".index", "handle-value.index-missing", "is missing; number values from 1")
	}
	if v.Type == "" {
		f.Addf(path+".type", "handle-value.type-missing", "is missing; give a type, such as URL or EMAIL")
	}
	checkName(f, path+".type", v.Type)
	if len(v.Data) > MaxData {
		f.Addf(path+".data", "value.too-long", "has {size} bytes; {most} are the most", len(v.Data), MaxData)
	}
	if v.Permissions&^allPermissions != 0 {
		f.Addf(path+".permissions", "handle-value.permissions-unknown", "has bits that mean nothing: {bits}", fmt.Sprintf("%#02x", uint8(v.Permissions)))
	}
	if !fits(f, path+".references", len(v.References), MaxReferences) {
		return
	}
	for i, ref := range v.References {
		// It is a name as another server keeps it, which may have any characters.
		if ref.Handle == "" || len(ref.Handle) > MaxText || !utf8.ValidString(ref.Handle) {
			f.Add(ItemPath(path+".references", i)+".handle", CheckText("", ref.Handle))
		}
	}
}

func (r *Record) checkReaders(f *Report) {
	if len(r.Readers) == 0 || !fits(f, "readers", len(r.Readers), MaxReaders) {
		return
	}
	for i, reader := range r.Readers {
		checkPrincipalName(f, ItemPath("readers", i), reader)
	}
	twice(f, "readers", "", r.Readers, func(s string) string { return s })
}

// checkPrincipalName judges the name of a principal or of a group of them.
func checkPrincipalName(f *Report, path, who string) {
	name, ok := strings.CutPrefix(who, "user:")
	if !ok {
		name, ok = strings.CutPrefix(who, "group:")
	}
	if !ok || strings.TrimSpace(name) == "" {
		f.Addf(path, "principal.malformed", `"{principal}" is not a user or group; write user: or group: and a name`, who)
	}
	checkName(f, path, who)
}

// checkTime makes sure that the time can be written as RFC 3339 does.
func checkTime(f *Report, path string, t time.Time) {
	if t.IsZero() {
		return
	}
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		f.Addf(path, "time.year-out-of-range", "the year {year} is not between 1 and 9999", year)
	}
}

// checkName judges a short text on one line, which may be empty.
func checkName(f *Report, path, text string) {
	if text == "" {
		return
	}
	if len(text) > MaxName {
		f.Add(path, tooManyBytes(len(text), MaxName))
	} else if err := CheckText("", text); err != nil {
		f.Add(path, err)
	}
}

// checkProse judges a text that people read: in UTF-8, of lines. Invisible
// characters are allowed here, unlike in names: several scripts need them. Those
// that make a text read otherwise than it is written are not.
func checkProse(f *Report, path, text string) {
	if reason := proseReason(text); reason != nil {
		f.Add(path, reason)
	}
}

// tooManyBytes is the message of a text that has more bytes than it may have.
func tooManyBytes(size, most int) *Message {
	return Messagef("value.too-long", "has {size} bytes; {most} are the most", size, most)
}

func proseReason(text string) *Message {
	if len(text) > MaxProse {
		return tooManyBytes(len(text), MaxProse)
	}
	for i := 0; ; {
		i += plain(text[i:])
		for i < len(text) && text[i] >= ' ' && text[i] < 0x7f {
			i++
		}
		if i == len(text) {
			return nil
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return Messagef("text.not-utf8", "at byte {position}: byte {byte} is not UTF-8", i, fmt.Sprintf("0x%02X", text[i]))
		case r == '\r':
			return Messagef("text.carriage-return", "at byte {position}: a carriage return; end lines with a line feed alone", i)
		case r < ' ' && r != '\n' && r != '\t', r >= 0x7f && r < 0xa0:
			return Messagef("text.control-character-at", "at byte {position}: control character {character}; remove it", i, fmt.Sprintf("%U", r))
		case r == 0x202d || r == 0x202e:
			return Messagef("text.reading-direction", "at byte {position}: {character} turns the direction of reading; remove it", i, fmt.Sprintf("%U", r))
		}
		i += n
	}
}

// checkSize holds the record, whose metadata has so many bytes, against MaxRecord.
// A bound of it is quick to count; only a record that may be too large is counted exactly.
func (r *Record) checkSize(f *Report, metadata int) {
	const number = 10 // the most bytes that a number takes, or the size of a text
	size := 40*number + r.ID.size() + len(r.Spelling) + len(r.By) +
		len(r.Persistence.Until) + len(r.Persistence.Statement) + 2*number*len(r.Metadata) + metadata
	if t := r.Tombstone; t != nil {
		size += len(t.Reason) + t.Replacement.size()
	}
	for i := range r.Aliases {
		size += 2*number + r.Aliases[i].size()
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		size += 9*number + len(t.Service) + len(t.URL) + len(t.Type) + len(t.Language)
	}
	for i := range r.Values {
		v := &r.Values[i]
		size += 8*number + len(v.Type) + len(v.Data)
		for _, ref := range v.References {
			size += 2*number + len(ref.Handle)
		}
	}
	for _, reader := range r.Readers {
		size += number + len(reader)
	}
	for i := range r.Signatures {
		s := &r.Signatures[i]
		size += len(s.SHA256) + 6*number + len(s.Type) + len(s.Key) + len(s.JWS)
	}
	if size <= MaxRecord || !r.ID.IsValid() {
		return
	}
	if size := r.StoredSize(); size > MaxRecord {
		f.Addf("", "record.too-large", "the record has {size} bytes; {most} are the most", size, MaxRecord)
	}
}

func (id ID) size() int { return len(id.scheme) + len(id.text) }
