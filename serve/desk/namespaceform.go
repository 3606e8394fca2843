package desk

import (
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/web/deskpage"
)

// faults are what is wrong with a form: with its inputs, by their IDs, and with none of them in
// particular.
type faults struct {
	wrong   map[string]string
	general []string
}

func (f *faults) note(field, text string) {
	if f.wrong == nil {
		f.wrong = make(map[string]string)
	}
	if f.wrong[field] == "" {
		f.wrong[field] = text
	}
}

func (f *faults) any() bool { return len(f.wrong)+len(f.general) > 0 }

// problems returns all that is wrong, for the list on top of the form.
func (f *faults) problems() (list []deskpage.Problem) {
	for _, text := range f.general {
		list = append(list, deskpage.Problem{Text: text})
	}
	for _, field := range slices.Sorted(maps.Keys(f.wrong)) {
		list = append(list, deskpage.Problem{Field: field, Text: f.wrong[field]})
	}
	return list
}

// input returns an input of the page. Its ID is its name.
func (f *faults) input(id, value string) deskpage.Field {
	return deskpage.Field{ID: id, Name: id, Value: value, Problem: f.wrong[id]}
}

// judge notes what an error says about the inputs, and returns the error if it is not about the
// form. field returns the ID of the input that a path or a code is about; "" if there is none.
func (f *faults) judge(c *call, err error, field func(path, code string) string) error {
	switch stele.KindOf(err) {
	case stele.Invalid, stele.Conflict, stele.Forbidden, stele.Exhausted:
	default:
		return err
	}
	add := func(path string, err error) {
		code, _ := stele.CodeOf(err)
		text := c.language.Problem(err)
		if at := field(path, code); at != "" {
			f.note(at, text)
		} else {
			f.general = append(f.general, text)
		}
	}
	if problems, ok := errors.AsType[stele.Problems](err); ok {
		for _, p := range problems {
			add(p.Path, p.Err)
		}
		return nil
	}
	add("", reason(err))
	return nil
}

// spaceForm is a namespace as an owner fills it in. Its fields are texts, right or wrong.
type spaceForm struct {
	faults
	version                                        uint64
	scheme, prefix, title, owner, quota            string
	kind, template, order                          string
	host, port, ip, ipPort, grain                  string
	checked, passthrough, reviewed, listed         bool
	hosts, protocols, level, until, statement, ttl string
	status, delegate                               string
}

func parseSpaceForm(values url.Values) *spaceForm {
	get := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	f := &spaceForm{
		scheme: get("scheme"), prefix: get("prefix"), title: get("title"), owner: get("owner"), quota: get("quota"),
		kind: get("minter-kind"), template: get("minter-template"), order: get("minter-order"), host: get("minter-host"), port: get("minter-port"), ip: get("minter-ip"), ipPort: get("minter-ipPort"), grain: get("minter-granularity"),
		checked: get("checked") == "yes", passthrough: get("passthrough") == "yes", reviewed: get("reviewed") == "yes", listed: get("listed") == "yes",
		hosts: get("hosts"), protocols: get("protocols"), level: get("level"), until: get("until"), statement: strings.TrimSpace(unixLines(values.Get("statement"))),
		ttl: get("ttl"), status: get("status"), delegate: get("delegate"),
	}
	f.version, _ = strconv.ParseUint(values.Get("version"), 10, 64) // 0 if it is damaged, which no namespace has
	return f
}

func spaceFormOf(ns *stele.Namespace) *spaceForm {
	m := &ns.Minter
	return &spaceForm{
		version: ns.Version, scheme: ns.Scheme, prefix: ns.Prefix, title: ns.Title, owner: ns.Owner, quota: number(ns.Quota),
		kind: string(m.Kind), template: m.Template, order: string(m.Order), host: m.Host, port: number(uint64(m.Port)), ip: m.IP, ipPort: number(uint64(m.IPPort)), grain: m.Granularity,
		checked: ns.Checked, passthrough: ns.Passthrough, reviewed: ns.Reviewed, listed: ns.Listed, hosts: strings.Join(ns.Hosts, "\n"), protocols: strings.Join(ns.Protocols, " "),
		level: string(ns.Persistence.Level), until: ns.Persistence.Until, statement: ns.Persistence.Statement,
		ttl: number(uint64(ns.TTL)), status: number(uint64(ns.Status)), delegate: ns.Delegate,
	}
}

// count reads a number, 0 if the field is empty.
func (f *spaceForm) count(c *call, field, text string, bits int) uint64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		f.note(field, c.language.Problem(stele.Messagef("desk.not-a-number", `"{text}" is not a number from 0 to {most}`, text, uint64(1)<<bits-1)))
	}
	return n
}

// apply writes the form into a namespace, and notes what can't be read. What the form does not
// have stays.
func (f *spaceForm) apply(c *call, ns *stele.Namespace) {
	ns.Title, ns.Owner, ns.Quota = f.title, f.owner, f.count(c, "quota", f.quota, 64)
	var m stele.Minter
	switch m.Kind = stele.MinterKind(f.kind); m.Kind {
	case stele.MinterNOID:
		m.Template, m.Order = f.template, stele.MinterOrder(f.order)
	case stele.MinterIBI:
		m.Host, m.IP, m.Granularity, m.AllowPrivate = strings.ToLower(f.host), f.ip, f.grain, ns.Minter.AllowPrivate
		m.Port, m.IPPort = uint16(f.count(c, "minter-port", f.port, 16)), uint16(f.count(c, "minter-ipPort", f.ipPort, 16))
	}
	if m.Kind == ns.Minter.Kind && m.Template == ns.Minter.Template && m.Order == ns.Minter.Order {
		m.Seed, m.Expand = ns.Minter.Seed, ns.Minter.Expand
	}
	minting.Configure(&ns.Minter, &m, func(string) bool { return true })
	ns.Checked, ns.Passthrough, ns.Reviewed, ns.Listed = f.checked, f.passthrough, f.reviewed, f.listed
	ns.Hosts, ns.Protocols = strings.Fields(strings.ToLower(f.hosts)), strings.Fields(strings.ToLower(f.protocols))
	ns.Persistence = stele.Persistence{Level: stele.Level(f.level), Until: f.until, Statement: f.statement}
	ns.TTL, ns.Status = uint32(f.count(c, "ttl", f.ttl, 32)), int(f.count(c, "status", f.status, 16))
	ns.Delegate = f.delegate
}

// item is an index in the path of a problem.
var item = regexp.MustCompile(`\[\d+\]`)

// field returns the ID of the input that a problem of a namespace is about.
func (f *spaceForm) field(path, code string) string {
	switch code {
	case "namespace.exists", "namespace.held-by-minter", "namespace.quota-above-not-held":
		return "prefix"
	case "minter.number-of-parts-differs", "namespace.prefix-used-by-dates":
		return "minter-kind"
	}
	path = item.ReplaceAllString(path, "")
	if path == "minter" {
		return "minter-kind"
	}
	path = strings.TrimPrefix(path, "persistence.")
	path = strings.Replace(path, "minter.", "minter-", 1)
	if slices.Contains(spaceFields, path) {
		return path
	}
	return ""
}

var spaceFields = []string{"scheme", "prefix", "title", "owner", "quota", "minter-kind", "minter-template", "minter-order", "minter-host", "minter-port", "minter-ip", "minter-ipPort", "minter-granularity",
	"checked", "passthrough", "reviewed", "listed", "hosts", "protocols", "level", "until", "statement", "ttl", "status", "delegate"}

// usualTemplates are what the input for a template suggests.
var usualTemplates = []string{".zeeddk", ".reedeedk", ".reeeeeedk", ".zd"}
