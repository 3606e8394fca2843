package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/mint"
)

// noidMinter is what Noid or Nog keeps of a minter (Noid.pm, dbcreate and init_counters; Nog.pm, mkminter).
type noidMinter struct {
	values map[string]string // by names without :/
	size   int
	line   int // of the first
}

const (
	maxOwnValues = 100_000
	maxOwnBytes  = 16 << 20
)

// set takes a value of the minter.
func (m *noidMinter) set(name, value string, line int) error {
	if m.size += len(name) + len(value); len(m.values) >= maxOwnValues || m.size > maxOwnBytes {
		return failf(stele.Invalid, "import.noid-too-many-values", "the file has more than {most} values of a minter, or more than {bytes} bytes of them; no minter has", maxOwnValues, maxOwnBytes)
	}
	if len(m.values) == 0 {
		m.line = line
	}
	m.values[name] = value
	return nil
}

// ownValues are the values that say what the minter is and how far, or that only the program uses. Others
// are told.
var ownValues = []string{
	"template", "prefix", "mask", "naan", "naa", "subnaa", "firstpart", "longterm", "wrap", "addcheckchar", "generator_type", "genonly",
	"total", "padwidth", "oacounter", "oatop", "held", "queued", "fseqnum", "gseqnum", "gseqnum_date", "version", "properties",
	"percounter", "saclist", "siclist",
	"type", "germ", "atlast", "atlast_status", "oklz", "original_template", "origmask", "shoulder", "lzskipcount", "maskskipcount",
	"basecount", "unbounded", "expandable", "dbversion", "status", "bindings_count",
}

// isOwn reports whether a value needs not be told.
func isOwn(name string) bool {
	if slices.Contains(ownValues, name) {
		return true
	}
	counter, _, ok := strings.Cut(name, "/")
	number, isCounter := strings.CutPrefix(counter, "c")
	_, err := strconv.ParseUint(number, 10, 16)
	return ok && isCounter && err == nil
}

// resumed is a minter as it continues here.
type resumed struct {
	prefix   string // of the names, such as 13030/f5
	title    string
	minter   stele.Minter
	given    uint64
	counters string
}

// minterRows returns the row of the file's minter, if it has one, and tells what is left out of it.
func (p *noidPart) minterRows() []bulk.Row {
	m := p.minter
	if len(m.values) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.values)) {
		if !isOwn(name) {
			p.s.note("import.noid-value-unknown", "the minter's value {name} has no place here: {value}", name, shortened(m.values[name]))
		}
	}
	if m.values["template"] == "" || m.values["genonly"] == "0" && m.number("oacounter") == 0 {
		return nil // a binder, which makes no names
	}
	row := bulk.Row{Line: m.line, Later: m.text}
	r, err := m.resume()
	if err != nil {
		row.Err = err
		return []bulk.Row{row}
	}
	prefix, _, err := p.o.Schemes.ParsePrefix(p.identify(fromNoid, r.prefix))
	if err != nil {
		row.Err = failf(stele.Invalid, "import.noid-prefix-unknown", "the names of the minter begin with {prefix}, which is not a namespace: {cause}; say what stands before it with --prefix, such as ark:99999/", stele.Quote(r.prefix), stele.Reason(err))
		return []bulk.Row{row}
	}
	key := stele.NamespaceKey{Scheme: prefix.Scheme(), Prefix: prefix.String()}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Title: r.title, Minter: r.minter}
	if have := p.o.Find(key); have != nil {
		c := *have
		c.Minter = r.minter
		ns = &c
	} else if !p.o.Namespaces {
		p.s.note("import.noid-minter-left-out", "the minter of {namespace} has no namespace here, so it is not imported; give --create-namespaces to make one", key)
		return nil
	}
	row.Namespace, row.Progress.Given, row.Progress.Counters = ns, r.given, r.counters
	p.s.note("import.noid-minter-shut", "the minter of {namespace} has issued {count} names, and is shut here. Stop the original, and if it has issued no more since its dump, open this one with 'stele ns skip {namespace} {count}'", key, r.given)
	if strings.HasPrefix(m.values["atlast"], "wrap") || isTrue(m.values["wrap"]) {
		p.s.note("import.noid-minter-ends", "the minter of {namespace} would issue its names again from the first one when they are used up; here it ends", key)
	}
	return []bulk.Row{row}
}

func shortened(text string) string {
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return stele.Quote(text)
}

func isTrue(text string) bool { return text != "" && text != "0" }

// number returns a value as a number; 0 if it is not one.
func (m *noidMinter) number(name string) uint64 {
	n, _ := strconv.ParseUint(m.values[name], 10, 64)
	return n
}

// text returns the minter as `noid dbinfo dump` prints it, for the file of rejected rows.
func (m *noidMinter) text() (b []byte) {
	for i, name := range slices.Sorted(maps.Keys(m.values)) {
		if i > 0 {
			b = append(b, '\n')
		}
		b = fmt.Appendf(b, ":/%s: %s", name, m.values[name])
	}
	return b
}

// resume returns how the minter continues here with the name that it would have given next.
func (m *noidMinter) resume() (r resumed, err error) {
	if _, err := strconv.ParseUint(m.values["oacounter"], 10, 64); err != nil {
		return r, m.refuse("oacounter", "it is not a number")
	}
	mask := ""
	if _, isNog := m.values["shoulder"]; isNog {
		r, mask, err = m.nog()
	} else {
		r, mask, err = m.noid()
	}
	if err != nil {
		return r, err
	}
	t, err := mint.ParseTemplate(r.minter.Template)
	if err != nil {
		return r, failf(stele.Invalid, "import.noid-template-refused", "the minter can't continue here, since its mask {mask} can't be used: {cause}", stele.Quote(mask), stele.Reason(err))
	}
	if total, bounded := t.Total(); bounded && r.minter.Expand == 0 && r.given > total {
		return r, m.refuse("oacounter", "the mask has fewer names")
	}
	if t.IsShuffled() {
		return m.counters(r, t)
	}
	return r, nil
}

// refuse says that the minter can't continue because of a value.
func (m *noidMinter) refuse(name, reason string) error {
	return failf(stele.Invalid, "import.noid-minter-refused", "the minter can't continue here: its value {name} is {value}, and {reason}. Its names are imported; give the namespace a template with another prefix", name, shortened(m.values[name]), reason)
}

// noid reads a minter of Noid.
func (m *noidMinter) noid() (r resumed, mask string, err error) {
	prefix, mask := m.values["prefix"], m.values["mask"]
	if mask == "" {
		if before, after, ok := strings.Cut(m.values["template"], "."); ok {
			prefix, mask = before, after
		}
	}
	if naan := m.values["naan"]; naan != "" {
		prefix = naan + "/" + prefix
	}
	r = resumed{prefix: strings.TrimSuffix(prefix, "/"), given: m.number("oacounter")}
	r.title = strings.Trim(m.values["naa"]+" / "+m.values["subnaa"], " /")
	r.minter = stele.Minter{Kind: stele.MinterNOID, Template: "." + mask}
	return r, mask, nil
}

// nog reads a minter of Nog. Its mask is the one that it began with; it may have grown.
func (m *noidMinter) nog() (r resumed, mask string, err error) {
	v := m.values
	mask = cmp.Or(v["origmask"], v["mask"])
	r = resumed{prefix: v["shoulder"], minter: stele.Minter{Kind: stele.MinterNOID}}
	grows, adds := strings.CutPrefix(v["atlast"], "add")
	by, bad := strconv.ParseUint(grows, 10, 8)
	switch {
	case strings.Contains(mask, "f"):
		return r, mask, m.refuse("mask", "names with letters only (f) are not made here")
	case adds && (bad != nil || by == 0):
		return r, mask, m.refuse("atlast", "it should be add and a number")
	case v["type"] == "seq" && adds:
		if by != 1 || isTrue(v["oklz"]) {
			return r, mask, m.refuse("atlast", "a sequential mask grows here by one digit, and leaves names with a leading zero out then (oklz 0)")
		}
		// Numbers that are shorter than the present mask were issued with a shorter one.
		r.minter.Template, r.given = ".z"+mask, m.number("oacounter")
		if now := strings.TrimSuffix(v["mask"], "k"); len(now) > len(strings.TrimSuffix(mask, "k")) {
			r.given = max(r.given, shorter(now))
		}
	case v["type"] == "seq":
		r.minter.Template, r.given = ".s"+mask, m.number("oacounter")
		if !isTrue(v["oklz"]) {
			r.given = max(r.given, shorter(strings.TrimSuffix(mask, "k")))
		}
	case v["type"] != "" && v["type"] != "rand":
		return r, mask, m.refuse("type", "only rand and seq are known")
	case v["oklz"] == "0":
		return r, mask, m.refuse("oklz", "names with a leading zero are not left out here")
	default:
		r.minter.Template, r.given = ".r"+mask, m.number("basecount")+m.number("oacounter")
		germ, err := strconv.ParseUint(cmp.Or(v["germ"], "0"), 10, 64)
		if err != nil {
			return r, mask, m.refuse("germ", "names that are drawn at random can't be continued")
		}
		r.minter.Order, r.minter.Seed, r.minter.Expand = stele.OrderNOID, germ, uint8(by)
	}
	return r, mask, nil
}

// shorter returns how many numbers have fewer digits than a mask.
func shorter(digits string) uint64 {
	t, err := mint.ParseTemplate(".s" + digits[min(1, len(digits)):])
	if err != nil {
		return 0
	}
	n, _ := t.Total()
	return n
}

// counters reads the subcounters of a quasi-random minter, and makes sure that they agree with all else
// that the minter says.
func (m *noidMinter) counters(r resumed, t mint.Template) (resumed, error) {
	r.minter.Order = stele.OrderNOID
	s, err := t.Subcounters(r.minter.Seed, int(r.minter.Expand))
	if err != nil {
		return r, failf(stele.Invalid, "import.noid-template-refused", "the minter can't continue here, since its mask {mask} can't be used: {cause}", stele.Quote(t.String()), stele.Reason(err))
	}
	var values, active []string
	for i := 0; ; i++ {
		value, ok := m.values[fmt.Sprintf("c%d/value", i)]
		if !ok {
			break
		}
		values = append(values, value)
		if m.number(fmt.Sprintf("c%d/value", i)) < m.number(fmt.Sprintf("c%d/top", i)) {
			active = append(active, fmt.Sprintf("c%d", i))
		}
	}
	r.counters = strings.Join(values, ",")
	if err := s.Resume(r.given, []byte(r.counters)); err != nil {
		return r, failf(stele.Invalid, "import.noid-counters-wrong", "the counters of the minter do not agree with its mask and its oacounter, {count}: {cause}", m.values["oacounter"], stele.Reason(err))
	}
	if size, _ := s.RangeSize(); m.values["percounter"] != strconv.FormatUint(size, 10) {
		return r, m.refuse("percounter", fmt.Sprintf("by its mask it should be %d", size))
	}
	if list := strings.Fields(m.values["saclist"]); !slices.Equal(list, active) {
		return r, m.refuse("saclist", "it does not have the counters that are below their top, in order")
	}
	return r, nil
}
