package desk

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web/deskpage"
)

// form is a record as a curator fills it in. Its fields are texts, right or wrong; record makes
// a record of them, and problems says what is wrong with which.
type form struct {
	namespace, own string
	once           string // key of the request that makes the name, so that a form sent twice makes one
	reserve        bool
	version        uint64
	targets        []targetForm
	what, who      string
	when           string
	more           []pairForm
	level          string
	until          string
	statement      string
	alias          string            // names that are added, one a line
	readers        string            // one a line
	remark         string            // for the owner who approves the form
	filledIn       string            // key of what was filled in of the findings about its targets
	wrong          map[string]string // by the ID of the input
	general        []string          // what is wrong with no field in particular
}

type targetForm struct {
	url, mediaType, language, service string
	order, preference, ttl, status    string
	partial                           bool
}

type pairForm struct{ key, value string }

// isEmpty reports whether the row has nothing that makes a target. Order, preference and
// service alone do not: pages fill them in.
func (t targetForm) isEmpty() bool {
	return t == targetForm{service: t.service, order: t.order, preference: t.preference}
}

// defaultTarget is an empty target.
var defaultTarget = targetForm{service: string(stele.N2L)}

// parseForm reads the fields that a browser sent.
func parseForm(values url.Values) *form {
	f := &form{
		namespace: values.Get("namespace"), own: strings.TrimSpace(values.Get("own")), once: values.Get("once"), reserve: values.Get("reserve") == "yes",
		what: unixLines(values.Get("what")), who: unixLines(values.Get("who")), when: unixLines(values.Get("when")),
		level: values.Get("level"), until: values.Get("until"), statement: unixLines(values.Get("statement")),
		alias: values.Get("alias"), readers: values.Get("readers"), remark: unixLines(strings.TrimSpace(values.Get("note"))), wrong: make(map[string]string),
	}
	f.version, _ = strconv.ParseUint(values.Get("version"), 10, 64) // 0 if it is damaged, which no record has
	for i := range stele.MaxTargets {
		at := fmt.Sprintf("target.%d.", i)
		if !values.Has(at + "url") {
			break
		}
		t := targetForm{
			url: strings.TrimSpace(values.Get(at + "url")), mediaType: strings.TrimSpace(values.Get(at + "type")), language: strings.TrimSpace(values.Get(at + "language")),
			service: values.Get(at + "service"), order: strings.TrimSpace(values.Get(at + "order")), preference: strings.TrimSpace(values.Get(at + "preference")),
			ttl: strings.TrimSpace(values.Get(at + "ttl")), status: strings.TrimSpace(values.Get(at + "status")), partial: values.Get(at+"partial") == "yes",
		}
		if t.service == "" {
			t.service = string(stele.N2L)
		}
		f.targets = append(f.targets, t)
	}
	for i := range stele.MaxFields {
		at := fmt.Sprintf("more.%d.", i)
		if !values.Has(at + "key") {
			break
		}
		f.more = append(f.more, pairForm{strings.TrimSpace(values.Get(at + "key")), unixLines(values.Get(at + "value"))})
	}
	return f
}

// unixLines returns a text with the line ends of Unix: browsers send those of the network.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// formOf returns the form of a record.
func formOf(rec *stele.Record) *form {
	f := &form{version: rec.Version, what: rec.Metadata["what"], who: rec.Metadata["who"], when: rec.Metadata["when"],
		level: string(rec.Persistence.Level), until: rec.Persistence.Until, statement: rec.Persistence.Statement,
		readers: strings.Join(rec.Readers, "\n"), wrong: make(map[string]string)}
	for _, t := range rec.Targets {
		f.targets = append(f.targets, targetForm{url: t.URL, mediaType: t.Type, language: t.Language, service: string(t.Service),
			order: strconv.Itoa(int(t.Order)), preference: strconv.Itoa(int(t.Preference)), ttl: number(uint64(t.TTL)), status: number(uint64(t.Status)), partial: t.Partial})
	}
	for _, key := range slices.Sorted(maps.Keys(rec.Metadata)) {
		if !isKernel(key) {
			f.more = append(f.more, pairForm{key, rec.Metadata[key]})
		}
	}
	return f
}

// isUsual reports whether a field says the usual number, or nothing.
func isUsual(text string, n int) bool { return text == "" || text == strconv.Itoa(n) }

// number returns a number, "" for 0, which means the default.
func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// edit does what a button other than save asks for, and reports whether there was one.
func (f *form) edit(do string) bool {
	switch {
	case do == "add-target":
		if len(f.targets) < stele.MaxTargets {
			f.targets = append(f.targets, defaultTarget)
		}
	case do == "add-field":
		if len(f.more) < stele.MaxFields {
			f.more = append(f.more, pairForm{})
		}
	case strings.HasPrefix(do, "remove-target."):
		if i, err := strconv.Atoi(strings.TrimPrefix(do, "remove-target.")); err == nil && i >= 0 && i < len(f.targets) {
			f.targets = slices.Delete(f.targets, i, i+1)
		}
	default:
		return false
	}
	return true
}

// apply writes the form into a record. What the form does not have stays. It fails if a field
// is not what it should be, and notes that.
func (f *form) apply(c *call, rec *stele.Record) error {
	rec.Targets = nil
	for i, t := range f.targets {
		if t.isEmpty() {
			continue // an empty row
		}
		at := fmt.Sprintf("target-%d-", i)
		rec.Targets = append(rec.Targets, stele.Target{
			URL: t.url, Type: t.mediaType, Language: t.language, Service: stele.Service(t.service), Partial: t.partial,
			Order: uint16(f.count(c, at+"order", t.order, stele.DefaultOrder, 16)), Preference: uint16(f.count(c, at+"preference", t.preference, stele.DefaultPreference, 16)),
			TTL: uint32(f.count(c, at+"ttl", t.ttl, 0, 32)), Status: int(f.count(c, at+"status", t.status, 0, 16)),
		})
	}
	f.describe(c, rec)
	rec.Persistence = stele.Persistence{Level: stele.Level(f.level), Until: f.until, Statement: f.statement}
	for line := range strings.Lines(f.alias) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		id, err := c.h.o.Schemes.Parse(line)
		if err != nil {
			f.note("alias", c.language.Problem(reason(err)))
			continue
		}
		if id != rec.ID && !slices.Contains(rec.Aliases, id) {
			rec.Aliases = append(rec.Aliases, id)
		}
	}
	rec.Readers = nil
	for line := range strings.Lines(f.readers) {
		if line = strings.TrimSpace(line); line != "" {
			rec.Readers = append(rec.Readers, line)
		}
	}
	if len(f.wrong) > 0 {
		// The registrar is not asked. What else can be told of the form is told at once.
		if problems, ok := errors.AsType[stele.Problems](rec.Validate()); ok {
			for _, p := range problems {
				if field := f.field(p.Path); field != "" && field != "own" {
					f.note(field, c.language.Problem(p.Err))
				}
			}
		}
		return errWrongForm
	}
	return nil
}

// describe writes the metadata of the form into a record.
func (f *form) describe(c *call, rec *stele.Record) {
	before := rec.Metadata
	rec.Metadata = make(stele.Metadata)
	for i, p := range append([]pairForm{{stele.What, f.what}, {stele.Who, f.who}, {stele.When, f.when}}, f.more...) {
		if _, twice := rec.Metadata[p.key]; twice || i >= kernelFields && isKernel(p.key) {
			f.note(fmt.Sprintf("more-%d-key", i-kernelFields), c.language.Problem(stele.Messagef("desk.field-repeated", `"{key}" has a value above already; write both into one field, or name this one otherwise`, p.key)))
			continue
		}
		// A field without a value is taken away, unless it had none before.
		if old, had := before[p.key]; p.value != "" || had && old == "" {
			rec.Metadata[p.key] = p.value
		}
	}
}

// kernelFields is how many fields of the metadata have an input of their own.
const kernelFields = 3

func isKernel(key string) bool { return key == stele.What || key == stele.Who || key == stele.When }

var errWrongForm = stele.Messagef("desk.form-wrong", "some fields are wrong")

// count reads a number; an empty field has the one that is usual.
func (f *form) count(c *call, field, text string, usual uint64, bits int) uint64 {
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		f.note(field, c.language.Problem(stele.Messagef("desk.not-a-number", `"{text}" is not a number from 0 to {most}`, text, uint64(1)<<bits-1)))
	}
	return n
}

// note notes what is wrong with a field.
func (f *form) note(field, text string) {
	if f.wrong[field] == "" {
		f.wrong[field] = text
	}
}

// path is the place of a problem in the JSON form of a record.
var path = regexp.MustCompile(`^(targets|metadata|persistence|aliases|readers|id)(?:\[(\d+)\])?(?:\.(.+))?$`)

// judge notes what an error says about the fields, and returns the error if it is not about the form.
func (f *form) judge(c *call, err error) error {
	switch stele.KindOf(err) {
	case stele.Invalid, stele.Conflict, stele.Forbidden, stele.Exhausted, stele.Gone:
	default:
		return err
	}
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok {
		if len(f.wrong) == 0 {
			f.general = append(f.general, c.language.Problem(reason(err)))
		}
		return nil
	}
	for _, p := range problems {
		text := c.language.Problem(p.Err)
		if field := f.field(p.Path); field != "" {
			f.note(field, text)
		} else {
			f.general = append(f.general, text)
		}
	}
	return nil
}

// field returns the ID of the input that a problem is about, "" if it has none.
func (f *form) field(at string) string {
	m := path.FindStringSubmatch(at)
	if m == nil {
		return ""
	}
	switch m[1] {
	case "targets":
		row, _ := strconv.Atoi(m[2])
		for i, t := range f.targets { // empty rows are not in the record
			if t.isEmpty() {
				continue
			}
			if row == 0 {
				return fmt.Sprintf("target-%d-%s", i, strings.TrimPrefix(cmp.Or(m[3], "url"), "partial"))
			}
			row--
		}
		return ""
	case "metadata":
		if isKernel(m[3]) {
			return m[3]
		}
		if i := slices.IndexFunc(f.more, func(p pairForm) bool { return p.key == m[3] }); i >= 0 {
			return fmt.Sprintf("more-%d-value", i)
		}
	case "persistence":
		return m[3]
	case "aliases":
		return "alias"
	case "readers":
		return "readers"
	case "id":
		return "own"
	}
	return ""
}

// problems returns all that is wrong, for the list on top of the form.
func (f *form) problems() (list []deskpage.Problem) {
	for _, text := range f.general {
		list = append(list, deskpage.Problem{Text: text})
	}
	for _, field := range slices.Sorted(maps.Keys(f.wrong)) {
		list = append(list, deskpage.Problem{Field: field, Text: f.wrong[field]})
	}
	return list
}

// input returns a field of the page.
func (f *form) input(id, name, value string) deskpage.Field {
	return deskpage.Field{ID: id, Name: name, Value: value, Problem: f.wrong[id]}
}

// fill writes the form into the view of the page.
func (f *form) fill(c *call, v *deskpage.Edit) {
	v.Problems = f.problems()
	v.Version, v.Reserve, v.Once = f.version, f.reserve, f.once
	v.Namespace, v.Own = f.input("namespace", "namespace", f.namespace), f.input("own", "own", f.own)
	if len(f.targets) == 0 {
		f.targets = []targetForm{defaultTarget}
	}
	for i, t := range f.targets {
		id, name := fmt.Sprintf("target-%d-", i), fmt.Sprintf("target.%d.", i)
		in := func(what, value string) deskpage.Field { return f.input(id+what, name+what, value) }
		row := deskpage.Target{Number: i, URL: in("url", t.url), Type: in("type", t.mediaType), Language: in("language", t.language), Service: in("service", t.service),
			Order: in("order", t.order), Preference: in("preference", t.preference), TTL: in("ttl", t.ttl), Status: in("status", t.status), Partial: t.partial}
		for _, s := range usualServices {
			row.Services = append(row.Services, deskpage.Option{Value: string(s), Text: c.language.Text("service." + string(s)), Chosen: t.service == string(s)})
		}
		if !slices.Contains(usualServices, stele.Service(t.service)) { // a service of the owner's own
			row.Services = append(row.Services, deskpage.Option{Value: t.service, Text: t.service, Chosen: true})
		}
		row.Folded = t.service == string(stele.N2L) && isUsual(t.order, stele.DefaultOrder) && isUsual(t.preference, stele.DefaultPreference) && t.ttl == "" && t.status == "" && !t.partial &&
			row.Order.Problem+row.Preference.Problem+row.TTL.Problem+row.Status.Problem+row.Service.Problem == ""
		v.Targets = append(v.Targets, row)
	}
	v.What, v.Who, v.When = f.input("what", "what", f.what), f.input("who", "who", f.who), f.input("when", "when", f.when)
	for i, p := range f.more {
		v.More = append(v.More, deskpage.Pair{Number: i,
			Key: f.input(fmt.Sprintf("more-%d-key", i), fmt.Sprintf("more.%d.key", i), p.key), Value: f.input(fmt.Sprintf("more-%d-value", i), fmt.Sprintf("more.%d.value", i), p.value)})
	}
	for _, level := range []stele.Level{stele.Unstated, stele.Permanent, stele.Unchanging, stele.Stable, stele.Dynamic, stele.NotGuaranteed} {
		v.Levels = append(v.Levels, deskpage.Option{Value: string(level), Text: c.language.Text("level." + cmp.Or(string(level), "unstated")), Chosen: f.level == string(level)})
	}
	v.Until, v.Statement = f.input("until", "until", f.until), f.input("statement", "statement", f.statement)
	v.Alias, v.Readers = f.input("alias", "alias", f.alias), f.input("readers", "readers", f.readers)
	v.Note = f.input("note", "note", f.remark)
	v.Types, v.LanguageTags = usualTypes, usualLanguages
}

// usualServices, usualTypes and usualLanguages are what inputs suggest.
var (
	usualServices  = []stele.Service{stele.N2L, stele.N2C, stele.N2S, stele.N2P}
	usualTypes     = []string{"text/html", "application/pdf", "image/jpeg", "image/tiff", "image/png", "audio/mpeg", "audio/wav", "video/mp4", "application/json", "application/xml", "text/plain", "text/csv", "application/zip"}
	usualLanguages = []string{"en", "pt-BR", "pt", "es", "fr", "de", "it", "nl", "zh", "ja", "ar", "ru"}
)
