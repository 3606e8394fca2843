package describe

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// Codes for values that are not there (ERC, section 6: "kernel" values).
const (
	unavailable   = "(:unav)" // nothing is known
	unallowed     = "(:unal)" // it may not be shown
	notApplicable = "(:unap)" // it makes no sense here
)

// foldAt is the column after which a value goes on in the next line.
const foldAt = 72

// ercDate is how ERC writes days (TEMPER).
const ercDate = "20060102"

// appendANVL writes what an ARK's ?info owes (ARK, section 5.1): the record as an
// Electronic Resource Citation, "erc:", with all its metadata, and the statement of
// its persistence, "erc-support:". A withdrawn record also has "erc-withdrawn:",
// which answers the same four questions: by what it is replaced, why, when, and
// where the replacement is.
func appendANVL(b []byte, f *facts) ([]byte, error) {
	w := anvl{b}
	w.segment("erc")
	m := f.record.Metadata
	missing := unavailable
	if f.record.Redacted {
		missing = unallowed
	}
	w.field(stele.Who, cmp.Or(clean(m[stele.Who]), missing))
	w.field(stele.What, cmp.Or(clean(m[stele.What]), missing))
	w.field(stele.When, cmp.Or(clean(m[stele.When]), missing))
	where := clean(m[stele.Where])
	if where != "" {
		w.field(stele.Where, where)
	}
	if _, ok := webURL(where); !ok { // where names a place in the world; a reader wants a URL too
		w.field(stele.Where, f.self)
	}
	for _, key := range keys(m) {
		if !isKernel(key) {
			w.field(key, cmp.Or(clean(m[key]), "(:null)"))
		}
	}
	if t := f.tombstone; t != nil {
		w.segment("erc-withdrawn")
		w.field(stele.Who, cmp.Or(t.replacement.text, notApplicable))
		w.field(stele.What, cmp.Or(t.reason, unavailable))
		w.field(stele.When, ercDay(t.at))
		w.field(stele.Where, cmp.Or(t.replacement.url, notApplicable))
	}
	w.support(f)
	return w.b, nil
}

func ercDay(t time.Time) string {
	if t.IsZero() {
		return unavailable
	}
	return t.UTC().Format(ercDate)
}

// support writes which authority promises what, since when, and where that is written.
func (w *anvl) support(f *facts) {
	p := f.promise()
	who := f.publisher
	if ns := f.subject.Namespace; ns != nil {
		who = cmp.Or(line(ns.Title), who)
	}
	where := f.subject.Info()
	if statements := f.of(stele.N2P); len(statements) > 0 {
		where = statements[0].URL
	}
	w.segment("erc-support")
	w.field(stele.Who, cmp.Or(who, unavailable))
	w.field(stele.What, cmp.Or(rating(p.Level), unavailable))
	w.field(stele.When, ercDay(f.record.Modified))
	w.field(stele.Where, where)
	if p.Until != "" {
		w.field("until", clean(p.Until))
	}
	if p.Statement != "" {
		w.field("note", clean(p.Statement))
	}
}

// rating returns a level in the words of the National Library of Medicine, which defined
// them.
func rating(l stele.Level) string {
	switch l {
	case stele.Permanent:
		return "Permanent"
	case stele.Unchanging:
		return "Permanent: Unchanging Content"
	case stele.Stable:
		return "Permanent: Stable Content"
	case stele.Dynamic:
		return "Permanent: Dynamic Content"
	case stele.NotGuaranteed:
		return "Not Guaranteed"
	}
	return ""
}

// anvl writes elements of A Name-Value Language (draft-kunze-anvl).
type anvl struct {
	b []byte
}

// segment begins a part of the record.
func (w *anvl) segment(label string) {
	w.b = append(w.b, label...)
	w.b = append(w.b, ':', '\n')
}

// field writes an element. A label that would begin another segment has its first
// letter encoded.
func (w *anvl) field(label, value string) {
	begin := len(w.b)
	if label == "erc" || strings.HasPrefix(label, "erc-") {
		w.b = append(w.b, "%65"...)
		label = label[1:]
	}
	for _, r := range label {
		w.char(r, r == ':' || r == ' ' || r == '#')
	}
	w.b = append(w.b, ": "...)
	w.folded(value, len(w.b)-begin)
	w.b = append(w.b, '\n')
}

// folded writes a value and folds it after foldAt. A reader takes the end of a line and the
// white space after it for one space, so a line ends only where one space stands alone.
func (w *anvl) folded(value string, column int) {
	for i, word := range strings.Split(value, " ") {
		size := utf8.RuneCountInString(word)
		if i > 0 {
			alone := word != "" && w.b[len(w.b)-1] != ' '
			if alone && column+1+size > foldAt {
				w.b = append(w.b, '\n', '\t')
				column = 8
			} else {
				w.b = append(w.b, ' ')
				column++
			}
		}
		for _, r := range word {
			w.char(r, false)
		}
		column += size
	}
}

// char writes a character, or its percent-encoding if readers would take it for something
// else, or could not see it.
func (w *anvl) char(r rune, special bool) {
	if !special && r != '%' && !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) && r != 0x2028 && r != 0x2029 {
		w.b = utf8.AppendRune(w.b, r)
		return
	}
	var text [utf8.UTFMax]byte
	for _, c := range text[:utf8.EncodeRune(text[:], r)] {
		w.b = append(w.b, '%', upperHex[c>>4], upperHex[c&0xf])
	}
}
