package describe

import (
	"cmp"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/anvl"
)

// Codes for values that are not there (ERC, section 6: "kernel" values).
const (
	unavailable   = "(:unav)" // nothing is known
	unallowed     = "(:unal)" // it may not be shown
	notApplicable = "(:unap)" // it makes no sense here
)

// ercDate is how ERC writes days (TEMPER).
const ercDate = "20060102"

// appendANVL writes what an ARK's ?info owes (ARK, section 5.1): the record as an
// Electronic Resource Citation, "erc:", with all its metadata, and the statement of
// its persistence, "erc-support:". A withdrawn record also has "erc-withdrawn:",
// which answers the same four questions: by what it is replaced, why, when, and
// where the replacement is.
func appendANVL(b []byte, f *facts) ([]byte, error) {
	w := anvlText{b}
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
func (w *anvlText) support(f *facts) {
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

// anvlText writes elements of A Name-Value Language in segments.
type anvlText struct {
	b []byte
}

// segment begins a part of the record.
func (w *anvlText) segment(label string) {
	w.b = append(w.b, label...)
	w.b = append(w.b, ':', '\n')
}

// field writes an element. A label that would begin another segment has its first
// letter encoded.
func (w *anvlText) field(label, value string) {
	if label == "erc" || strings.HasPrefix(label, "erc-") {
		w.b = append(w.b, "%65"...)
		label = label[1:]
	}
	w.b = anvl.AppendFolded(w.b, label, value)
}
