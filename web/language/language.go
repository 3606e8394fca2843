// Package language says texts of pages, mail and problems in the reader's language.
//
// Each language has one file, such as pt-BR.toml: the texts of the pages by keys that name their
// meaning, and the texts of problems by their codes ([stele.Message]). English texts of problems
// are where the problems are found, so en.toml has none. Plural forms follow Unicode's CLDR.
package language

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"github.com/pelletier/go-toml/v2"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/stele-id/stele"
)

//go:embed *.toml
var files embed.FS

// Default is the language of readers who ask for none that there is.
const Default = "en"

// Catalog has all languages. It is used by many goroutines at once.
type Catalog struct {
	all     []*Language // that there are, English first
	list    []*Language // that are offered
	matcher language.Matcher
}

// Language says texts in one language.
type Language struct {
	Tag  string // BCP 47: "pt-BR"
	Name string // in the language itself

	keys     map[string]bool
	plain    map[string]string // texts without placeholders, which pages have most of
	problems map[string]string // by code
	texts    *i18n.Localizer
	numbers  *message.Printer
	months   []string

	dayForm, momentForm string // with placeholders; a list of times has dozens of them
}

// file is a language's file.
type file struct {
	Name     string            `toml:"name"`
	Months   []string          `toml:"months"`
	Texts    map[string]any    `toml:"texts"`    // a text, or its plural forms
	Problems map[string]string `toml:"problems"` // by code
}

// New reads the embedded files. It fails only if they are broken.
func New() (*Catalog, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	c := new(Catalog)
	for _, e := range entries {
		l, err := read(strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
		if err != nil {
			return nil, err
		}
		c.list = append(c.list, l)
	}
	slices.SortFunc(c.list, func(a, b *Language) int { // the default first, as the matcher wants it
		switch Default {
		case a.Tag:
			return -1
		case b.Tag:
			return 1
		}
		return strings.Compare(a.Tag, b.Tag)
	})
	tags := make([]language.Tag, len(c.list))
	for i, l := range c.list {
		tags[i] = language.Make(l.Tag)
	}
	c.all, c.matcher = c.list, language.NewMatcher(tags)
	return c, nil
}

// read reads the file of a language.
func read(tag string) (*Language, error) {
	text, err := files.ReadFile(tag + ".toml")
	if err != nil {
		return nil, err
	}
	f, err := parse(text)
	if err != nil {
		return nil, stele.Messagef("language.file-damaged", "the language file {file} is damaged: {cause}", tag+".toml", err)
	}
	parsed, err := language.Parse(tag)
	if err != nil {
		return nil, stele.Messagef("language.file-damaged", "the language file {file} is damaged: {cause}", tag+".toml", err)
	}
	bundle := i18n.NewBundle(parsed)
	l := &Language{Tag: tag, Name: f.Name, keys: make(map[string]bool), plain: make(map[string]string), problems: f.Problems, months: f.Months,
		texts: i18n.NewLocalizer(bundle, tag), numbers: message.NewPrinter(parsed)}
	l.dayForm, _ = f.Texts["date.day"].(string)
	l.momentForm, _ = f.Texts["date.moment"].(string)
	for key, value := range f.Texts {
		l.keys[key] = true
		if text, ok := value.(string); ok && !strings.Contains(text, "{") {
			l.plain[key] = text
			continue
		}
		m, err := i18n.NewMessage(value)
		if err != nil {
			return nil, stele.Messagef("language.text-damaged", "the text {key} of the language file {file} is damaged: {cause}", key, tag+".toml", err)
		}
		m.ID, m.LeftDelim, m.RightDelim = key, "{", "}"
		for _, form := range []*string{&m.Zero, &m.One, &m.Two, &m.Few, &m.Many, &m.Other} {
			*form = placeholders.Replace(*form)
		}
		if err := bundle.AddMessages(parsed, m); err != nil {
			return nil, stele.Messagef("language.text-damaged", "the text {key} of the language file {file} is damaged: {cause}", key, tag+".toml", err)
		}
	}
	return l, nil
}

// piece is how many lines of a file are parsed at once: the parser compares each key with all others of its table, which takes most of a
// server's start with thousands of texts.
const piece = 64

// parse parses a file. Each text stands in one line.
func parse(text []byte) (file, error) {
	f := file{Texts: make(map[string]any), Problems: make(map[string]string)}
	var table, lines []byte
	n := 0
	flush := func() error {
		var part file
		if err := toml.Unmarshal(slices.Concat(table, lines), &part); err != nil {
			return err
		}
		lines, n = lines[:0], 0
		f.Name, f.Months = cmp.Or(f.Name, part.Name), append(f.Months, part.Months...)
		return errors.Join(add(f.Texts, part.Texts), add(f.Problems, part.Problems))
	}
	for line := range bytes.Lines(text) {
		if begins := line[0] == '['; begins || n == piece {
			if err := flush(); err != nil {
				return f, err
			}
			if begins {
				table = line
				continue
			}
		}
		lines = append(lines, line...)
		n++
	}
	return f, flush()
}

// add adds the texts of a piece to those before it.
func add[T any](all, part map[string]T) error {
	for key, value := range part {
		if _, ok := all[key]; ok {
			return stele.Messagef("language.text-twice", "the text {key} is there twice", key)
		}
		all[key] = value
	}
	return nil
}

// placeholders makes the actions of a template from placeholders: {name} is {.name}.
var placeholders = strings.NewReplacer("{", "{.")

// Languages returns all languages, the default one first.
func (c *Catalog) Languages() []*Language { return c.list }

// Get returns the language with a tag; nil if there is none.
func (c *Catalog) Get(tag string) *Language {
	i := slices.IndexFunc(c.list, func(l *Language) bool { return l.Tag == tag })
	if i < 0 {
		return nil
	}
	return c.list[i]
}

// Only returns a catalog of some languages: the first one is for readers who ask for none of them.
// Without tags it is the catalog itself. A tag that there is not is an error.
func (c *Catalog) Only(tags []string) (*Catalog, error) {
	if len(tags) == 0 {
		return c, nil
	}
	only := &Catalog{all: c.all}
	parsed := make([]language.Tag, 0, len(tags))
	for _, tag := range tags {
		l := c.Get(tag)
		if l == nil {
			return nil, stele.Messagef("language.not-available", `there are no texts in the language "{language}"; there are {available}`, tag, strings.Join(c.Tags(), ", "))
		}
		if !slices.Contains(only.list, l) {
			only.list, parsed = append(only.list, l), append(parsed, language.Make(tag))
		}
	}
	only.matcher = language.NewMatcher(parsed)
	return only, nil
}

// Tags returns the tags of all languages.
func (c *Catalog) Tags() (tags []string) {
	for _, l := range c.list {
		tags = append(tags, l.Tag)
	}
	return tags
}

// English returns the language of programs, offered to readers or not.
func (c *Catalog) English() *Language { return c.all[0] }

// maxAccept is how many bytes of Accept-Language are read.
const maxAccept = 500

// Match returns the best language for a reader: the first of the chosen tags that there is, or
// else what the browser prefers (Accept-Language), or else the site's language, or else the
// default.
func (c *Catalog) Match(chosen []string, accept, site string) *Language {
	for _, tag := range chosen {
		if l := c.Get(tag); l != nil {
			return l
		}
	}
	if accept != "" && len(accept) <= maxAccept {
		if tags, _, err := language.ParseAcceptLanguage(accept); err == nil {
			if _, i, confidence := c.matcher.Match(tags...); confidence > language.No {
				return c.list[i]
			}
		}
	}
	if l := c.Get(site); l != nil {
		return l
	}
	return c.list[0]
}

// Cookie is the name of the cookie that has a reader's choice.
const Cookie = "stele-language"

// Of returns the language for a request, as [Catalog.Match] chooses it. User is the language
// that the user has set, "" if none.
func (c *Catalog) Of(r *http.Request, user, site string) *Language {
	chosen := []string{user}
	if cookie, err := r.Cookie(Cookie); err == nil {
		chosen = append(chosen, cookie.Value)
	}
	return c.Match(chosen, strings.Join(r.Header.Values("Accept-Language"), ","), site)
}

// Has reports whether there is a text under a key.
func (l *Language) Has(key string) bool { return l.keys[key] }

// Keys returns all keys of texts, in order.
func (l *Language) Keys() []string {
	list := make([]string, 0, len(l.keys))
	for key := range l.keys {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}

// Text returns the text under a key. Names and values alternate in args; numbers are written as
// the language does, and the one with the name count chooses the plural form. A key that is
// missing is returned itself, so that a page can be read all the same.
func (l *Language) Text(key string, args ...any) string {
	if text, ok := l.plain[key]; ok {
		return text
	}
	config := &i18n.LocalizeConfig{MessageID: key}
	if len(args) > 0 {
		data := make(map[string]any, len(args)/2)
		for i := 0; i+1 < len(args); i += 2 {
			name, _ := args[i].(string)
			if name == "count" {
				config.PluralCount = args[i+1]
				if n, ok := args[i+1].(uint64); ok { // which the library does not know
					config.PluralCount = int64(min(n, math.MaxInt64))
				}
			}
			data[name] = l.value(args[i+1])
		}
		config.TemplateData = data
	}
	text, err := l.texts.Localize(config)
	if err != nil && text == "" {
		return key
	}
	return text
}

// value returns a parameter as the language writes it.
func (l *Language) value(v any) any {
	switch v := v.(type) {
	case int, int64, uint64, uint32, uint, int32:
		return l.numbers.Sprintf("%d", v)
	case time.Time:
		return l.Day(v)
	case error:
		return l.Problem(v)
	}
	return v
}

// Number returns a number as the language writes it.
func (l *Language) Number(n any) string { return l.numbers.Sprintf("%v", n) }

// Day returns a day in UTC as the language writes it.
func (l *Language) Day(t time.Time) string { return string(l.appendDay(nil, t.UTC())) }

// Moment returns a time in UTC, to the minute, as the language writes it.
func (l *Language) Moment(t time.Time) string {
	t = t.UTC()
	return string(fill(make([]byte, 0, 40), l.momentForm, func(b []byte, name string) []byte {
		switch name {
		case "day":
			return l.appendDay(b, t)
		case "time":
			return t.AppendFormat(b, "15:04")
		}
		return b
	}))
}

// appendDay appends a day.
func (l *Language) appendDay(b []byte, t time.Time) []byte {
	return fill(b, l.dayForm, func(b []byte, name string) []byte {
		switch name {
		case "day":
			return strconv.AppendInt(b, int64(t.Day()), 10)
		case "day2":
			return t.AppendFormat(b, "02")
		case "month":
			return append(b, l.month(t.Month())...)
		case "month2":
			return t.AppendFormat(b, "01")
		case "year":
			return t.AppendFormat(b, "2006")
		}
		return b
	})
}

// fill appends a form, with what value appends in the place of each placeholder.
func fill(b []byte, form string, value func(b []byte, name string) []byte) []byte {
	for {
		before, rest, found := strings.Cut(form, "{")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return append(b, form...)
		}
		b = value(append(b, before...), name)
		form = after
	}
}

// Month returns a month in UTC with its year as the language writes it.
func (l *Language) Month(t time.Time) string {
	t = t.UTC()
	return l.Text("date.month", "month", l.month(t.Month()), "year", t.Format("2006"))
}

// ShortMonth returns the first letters of a month in UTC.
func (l *Language) ShortMonth(t time.Time) string {
	name := []rune(l.month(t.UTC().Month()))
	return string(name[:min(3, len(name))])
}

func (l *Language) month(m time.Month) string {
	if len(l.months) != 12 {
		return m.String()
	}
	return l.months[m-1]
}

// Problem returns what is wrong in the reader's language: the text of the outermost message
// whose code the language knows, and the English text otherwise.
func (l *Language) Problem(err error) string {
	if err == nil {
		return ""
	}
	if m, ok := errors.AsType[*stele.Message](err); ok {
		return l.message(m)
	}
	return err.Error()
}

// message returns a message in the language, with its cause.
func (l *Language) message(m *stele.Message) string {
	text, ok := l.problems[m.Code]
	if m.Code == "" || !ok {
		if m.Code != "" || m.Err == nil {
			return m.Error()
		}
		return m.Translate("", l.Problem)
	}
	return m.Translate(text, l.Problem)
}
