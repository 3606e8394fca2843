package naptr

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/publish/zonemap"
)

// Limits of the names layout.
const (
	maxGroups = 9  // parts that a rule can put into an owner name: \1 to \9
	maxDots   = 3  // in the last part
	goodLabel = 36 // what a label should hold before dots are allowed: a UUID
)

// Casing is what the case of letters means in a namespace.
type Casing uint8

// Values of Casing.
const (
	CaseCounts Casing = iota // names that differ in case are two names
	CaseLower                // it does not count; canonical names are in lower case
	CaseUpper                // it does not count; canonical names are in upper case
)

// Mapping is how identifiers of a namespace are cut into owner names, and put together
// again: urn:paradisec:ab1:001:a is a.001.ab1.paradisec.example. It says no more
// than the rewriting rule that is made of it.
type Mapping struct {
	schemes *stele.Schemes
	Scheme  string // its name
	Prefix  string // of the namespace: urn:paradisec
	Joint   string // what follows it, before the first part
	sep     string // between the parts
	Parts   int    // that names have
	zone    string // absolute, in lower case
	label   int    // bytes of the longest label
	dots    int    // that the last part may hold
	Casing  Casing
}

// NewMapping works out how the names of a namespace are cut.
func NewMapping(schemes *stele.Schemes, ns *stele.Namespace) *Mapping {
	p := &ns.Publication
	c := &Mapping{schemes: schemes, Scheme: ns.Scheme, Prefix: ns.Prefix, sep: cmp.Or(p.Separator, ":"), Parts: max(p.Parts, 1), zone: p.Zone}
	c.Joint = jointOf(schemes, ns.Key(), c.sep, c.samples())
	c.Casing = c.askCasing(schemes)
	room := dnsrr.MaxNameText - len(strings.TrimSuffix(c.zone, ".")) - 1
	for c.dots = maxDots; ; c.dots-- {
		if c.sep == "." {
			c.dots = 0
		}
		// parts+dots labels of this size, with a dot between them, fill the room.
		c.label = min(dnsrr.MaxLabel, (room+1)/(c.Parts+c.dots)-1)
		if c.dots == 0 || c.label >= goodLabel {
			return c
		}
	}
}

// samples are what may follow the prefix of a namespace. At least one is a name in most:
// letters, UUIDs, and numbers of whose last digits one is right where it is a check digit.
func (c *Mapping) samples() []string {
	list := []string{
		strings.Repeat("a"+c.sep, c.Parts-1) + "a",
		"a", "ab1",
		"0190163d-8694-739b-aea5-966c26f8ad9a",
	}
	for _, stem := range []string{"x-1", "1"} {
		for digit := range 10 {
			list = append(list, stem+strconv.Itoa(digit))
		}
	}
	return list
}

// jointOf returns what stands between a prefix and the rest of its names. It asks the
// schemes for a text after which the prefix is a parent of the name.
func jointOf(schemes *stele.Schemes, key stele.NamespaceKey, sep string, samples []string) string {
	// Where several are possible, it is the separator that the prefix has last.
	last := ":"
	if i := strings.LastIndexAny(key.Prefix, ":/"); i >= 0 {
		last = key.Prefix[i : i+1]
	}
	joints := namespaces.Joints(schemes, key)
	if len(joints) > 1 {
		joints = []string{"", last, sep, ":", "/"}
	}
	for _, joint := range joints {
		for _, sample := range samples {
			id, err := schemes.Parse(key.Prefix + joint + sample)
			if err != nil || id.Scheme() != key.Scheme {
				continue
			}
			if schemes.Cuts(id, len(key.Prefix)) && strings.HasPrefix(id.String(), key.Prefix) {
				return joint
			}
		}
	}
	return sep
}

// askCasing asks the schemes whether a name in capitals is that in small letters.
// A namespace of which no sample is a name counts as one where case counts, which
// is right in any, and slower.
func (c *Mapping) askCasing(schemes *stele.Schemes) Casing {
	begin := c.Prefix + c.Joint
	for _, sample := range c.samples() {
		if !HasLetters(sample) {
			continue
		}
		small, err := schemes.Parse(begin + sample)
		large, err2 := schemes.Parse(begin + strings.ToUpper(sample))
		if err != nil || err2 != nil || small.Scheme() != c.Scheme {
			continue
		}
		switch {
		case small != large:
			return CaseCounts
		case small.String() == begin+sample:
			return CaseLower
		case small.String() == begin+strings.ToUpper(sample):
			return CaseUpper
		}
	}
	return CaseCounts
}

// Tells reports whether rules at the owner name of an identifier must tell case
// variants of it apart.
func (c *Mapping) Tells(id string) bool {
	return c.Casing == CaseCounts && HasLetters(strings.TrimPrefix(id, c.Prefix))
}

// HasLetters reports whether a text has letters of ASCII, whose case may count.
func HasLetters(s string) bool {
	for i := range len(s) {
		if b := s[i] | 0x20; 'a' <= b && b <= 'z' {
			return true
		}
	}
	return false
}

// Owner returns the owner name of an identifier, or why it has none. It is called for every
// name of a zone, and allocates the name only.
func (c *Mapping) Owner(id string) (name string, reason *stele.Message) {
	rest, ok := strings.CutPrefix(id, c.Prefix)
	if ok {
		rest, ok = strings.CutPrefix(rest, c.Joint)
	}
	if !ok {
		return "", stele.Messagef("owner-name.other-prefix", `it does not begin with "{prefix}"`, c.Prefix+c.Joint)
	}
	if n := strings.Count(rest, c.sep) + 1; n != c.Parts {
		return "", stele.Messagef("owner-name.parts-differ", "it has {parts}, and names in {zone} have {expected}", count(n, "part"), c.zone, c.Parts)
	}
	last := rest[strings.LastIndex(rest, c.sep)+1:] // no separator has two bytes
	if dots := strings.Count(last, "."); dots > c.dots {
		return "", stele.Messagef("owner-name.too-many-dots", "its last part has {dots}, and there is room for {most}", count(dots, "dot"), c.dots)
	}
	for begin, i := 0, 0; i <= len(rest); i++ {
		if i < len(rest) && rest[i] != c.sep[0] && (rest[i] != '.' || i < len(rest)-len(last)) {
			continue
		}
		if reason := c.labelReason(rest[begin:i]); reason != nil {
			return "", reason
		}
		begin = i + 1
	}
	return c.reverse(rest), nil
}

// reverse makes a name of parts, the last of which stands first, in lower case. All is
// ASCII.
func (c *Mapping) reverse(rest string) string {
	var b strings.Builder
	b.Grow(len(rest) + 1 + len(c.zone))
	for end := len(rest); end >= 0; {
		begin := strings.LastIndex(rest[:end], c.sep) + 1
		for _, letter := range []byte(rest[begin:end]) {
			if 'A' <= letter && letter <= 'Z' {
				letter |= 0x20
			}
			b.WriteByte(letter)
		}
		b.WriteByte('.')
		end = begin - 1
	}
	b.WriteString(c.zone)
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// labelReason says why a text is not a label of this zone, or returns nil.
func (c *Mapping) labelReason(label string) *stele.Message {
	switch {
	case label == "":
		return stele.Messagef("owner-name.part-empty", "a part, or what stands between two dots, is empty")
	case len(label) > c.label:
		return stele.Messagef("owner-name.label-too-long", `"{label}"... has {bytes} bytes, and a label in {zone} has {most} at most`, label[:min(len(label), 20)], len(label), c.zone, c.label)
	}
	for i := range len(label) {
		if !IsLabelByte(label[i]) {
			return stele.Messagef("owner-name.character", "'{character}' is not a letter, digit, hyphen or underscore", string(rune(label[i])))
		}
	}
	return nil
}

// isLabel reports whether a text is a label of this zone.
func (c *Mapping) isLabel(label string) bool {
	if label == "" || len(label) > c.label {
		return false
	}
	for i := range len(label) {
		if !IsLabelByte(label[i]) {
			return false
		}
	}
	return true
}

// IsLabelByte reports whether a label of an owner name may have a byte.
func IsLabelByte(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z' || b == '-' || b == '_'
}

// Rest is the inverse of [Mapping.Owner]: what follows prefix and joint in the identifiers of a name,
// in lower case. more is set if the name has fewer labels than parts: then rest is their
// beginning. ok is false if no identifier is there or below.
func (c *Mapping) Rest(name string) (rest string, more, ok bool) {
	below, ok := strings.CutSuffix(name, "."+c.zone)
	if !ok || below == "" {
		return "", false, false
	}
	labels := strings.Count(below, ".") + 1
	if labels > c.Parts+c.dots {
		return "", false, false
	}
	for label := range strings.SplitSeq(below, ".") {
		if !c.isLabel(label) || c.sep != "." && strings.Contains(label, c.sep) {
			return "", false, false
		}
	}
	// The labels that are parts before the last stand at the end, the first part last.
	text := make([]byte, 0, dnsrr.MaxName)
	for range min(labels, c.Parts-1) {
		begin := strings.LastIndexByte(below, '.') + 1
		text = append(append(text, below[begin:]...), c.sep...)
		below = below[:max(begin-1, 0)]
	}
	return string(append(text, below...)), below == "", true
}

// Canonical writes the rest of a name as canonical names have it, where case does
// not count.
func (c *Mapping) Canonical(rest string) string {
	if c.Casing == CaseUpper {
		return strings.ToUpper(rest)
	}
	return rest
}

// Parse returns the identifier of a rest in lower case; ok is false if there is
// none, or if its owner name is another one.
func (c *Mapping) Parse(schemes *stele.Schemes, rest string) (id stele.ID, ok bool) {
	id, err := schemes.Parse(c.Prefix + c.Joint + c.Canonical(rest))
	if err != nil || id.Scheme() != c.Scheme {
		return stele.ID{}, false
	}
	back, ok := strings.CutPrefix(id.String(), c.Prefix+c.Joint)
	return id, ok && strings.EqualFold(back, rest)
}

// Rule makes the rewriting rule, from an identifier to its owner name: what
// matches it is exactly what fits.
func (c *Mapping) Rule() (*ddds.Expression, error) {
	begin := NewPattern(c.schemes, c.Scheme, c.Prefix, c.Casing)
	if most := maxGroups - begin.Groups; c.Parts > most {
		return nil, stele.Messagef("zone.parts-too-many", "a rule can put {limit} parts into a name, and these names have {parts}", most, c.Parts)
	}
	if c.label < 1 {
		return nil, stele.Messagef("zone.no-room-for-parts", "no name of {parts} parts has room below {zone}", c.Parts, c.zone)
	}
	label := c.class(begin.Fold) + "{1," + strconv.Itoa(c.label) + "}"
	var ere, to strings.Builder
	ere.WriteString("^" + begin.ERE + ddds.Quote(c.Joint))
	for i := 1; i < c.Parts; i++ {
		ere.WriteString("(" + label + ")" + ddds.Quote(c.sep))
	}
	ere.WriteString("(" + label)
	if c.dots > 0 {
		ere.WriteString("([.]" + label + "){0," + strconv.Itoa(c.dots) + "}")
	}
	ere.WriteString(")$")
	for i := c.Parts; i > 0; i-- {
		to.WriteString(`\` + strconv.Itoa(begin.Groups+i) + ".")
	}
	to.WriteString(c.zone)
	return ddds.NewExpression(ere.String(), to.String(), begin.Fold)
}

// class is the characters of a label. BIND takes a hyphen only if it stands first. The
// separator is not one of them.
func (c *Mapping) class(fold bool) string {
	set := "-_a-z0-9"
	if c.sep == "-" || c.sep == "_" {
		set = strings.Replace(set, c.sep, "", 1)
	}
	if !fold {
		set = strings.Replace(set, "a-z", "A-Za-z", 1)
	}
	return "[" + set + "]"
}

// Pattern is an ERE, without the anchors, that matches a name or the beginning of names as
// clients apply rules to them: URNs and ARKs as they are, other names as URIs (RFC 3404,
// section 4.1).
type Pattern struct {
	ERE    string
	Fold   bool // it is to be used with the flag i
	Groups int  // that the ERE has
	Rest   int  // where in the ERE the name itself begins: 0, or after the scheme of a URI that is not a part of it
}

// NewPattern makes a pattern of a canonical text. The head of a name, such as urn:example,
// is written in any case; what follows counts as it is, if case does. URIs are canonical
// when rules are applied to them, so they have no such head.
func NewPattern(schemes *stele.Schemes, scheme, text string, c Casing) (p Pattern) {
	list, rest, ok := schemes.URI(scheme, text)
	if !ok {
		n := zonemap.Head(text)
		if c != CaseCounts || !HasLetters(text[n:]) {
			return Pattern{ERE: ddds.Quote(text), Fold: true}
		}
		return Pattern{ERE: anyBytes(n) + ddds.Quote(text[n:])}
	}
	p.Fold = c != CaseCounts
	p.ERE, p.Groups = alternatives(list)
	p.ERE += ":"
	if !strings.HasSuffix(text, ":"+rest) {
		p.Rest = len(p.ERE)
	}
	p.ERE += ddds.Quote(rest)
	return p
}

// alternatives makes an ERE of words, which are letters: https? of http and https, else
// (doi|hdl), which is a group.
func alternatives(words []string) (ere string, groups int) {
	if len(words) == 1 {
		return words[0], 0
	}
	if long, short := words[0], words[1]; len(words) == 2 && len(long) == len(short)+1 && strings.HasPrefix(long, short) {
		return long + "?", 0
	}
	return "(" + strings.Join(words, "|") + ")", 1
}

func anyBytes(n int) string {
	if n == 0 {
		return ""
	}
	return ".{" + strconv.Itoa(n) + "}"
}

// identifierPattern makes an ERE that matches one identifier and no other. tells says that
// it must tell case variants apart, after the head.
func identifierPattern(schemes *stele.Schemes, scheme, id string, tells bool) (ere string, fold bool) {
	c := CaseLower
	if tells {
		c = CaseCounts
	}
	p := NewPattern(schemes, scheme, id, c)
	return "^" + p.ERE + "$", p.Fold
}
