package ark

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// Explain reads an ARK as Parse does and tells its parts.
func (s *Scheme) Explain(text string) (stele.Explanation, error) {
	var r reading
	if err := s.read(text, &r); err != nil {
		return stele.Explanation{}, err
	}
	id, err := stele.NewID(name, r.canon)
	if err != nil {
		return stele.Explanation{}, err
	}
	form := "base"
	if r.name < len(r.canon) {
		form = "qualified"
	}
	return stele.Explanation{
		ID:        id,
		Form:      form,
		Parts:     s.parts(&r),
		Spellings: s.Spellings(id),
		Warnings:  r.warnings(),
	}, nil
}

func (s *Scheme) parts(r *reading) stele.Parts {
	naan, base, qualifier := r.canon[len(label):r.naan], r.canon[r.naan+1:r.name], r.canon[r.name:]
	check, note := s.checkPart(r)
	parts := stele.Parts{
		{Name: "naan", Value: naan, Note: sharedNAANs[naan]},
		{Name: "name", Value: base},
	}
	if check == "" {
		parts[1].Note = note
	}
	for _, p := range [...]stele.Part{
		{Name: "qualifier", Value: qualifier},
		{Name: "check", Value: check, Note: note},
		{Name: "inflection", Value: r.inflection, Note: inflections[r.inflection]},
		{Name: "query", Value: r.query, Note: "left out: no part of the name"},
		s.shoulderPart(r),
	} {
		if p.Value != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// shoulderPart tells the shoulder: one that is known, or else by convention.
func (s *Scheme) shoulderPart(r *reading) stele.Part {
	base := r.canon[r.naan+1 : r.name]
	if rule, known := s.rule(r); known {
		return stele.Part{Name: "shoulder", Value: rule.Shoulder[r.naan-len(label)+1:], Note: "known: its names end in a check character"}
	}
	return stele.Part{Name: "shoulder", Value: base[:shoulder(base)], Note: "by the first-digit convention"}
}

// Place implements [stele.PlaceScheme]: a registered namespace that ends in the base name
// is its shoulder. Only the organisation that assigns names knows where a shoulder ends
// (section 2.4.1), so it counts more than the first-digit convention.
func (s *Scheme) Place(x stele.Explanation, prefixes []string) stele.Explanation {
	text := x.ID.String()
	naan := strings.IndexByte(text, '/')
	if naan < 0 {
		return x
	}
	base := len(text)
	if i := strings.IndexAny(text[naan+1:], "/."); i >= 0 {
		base = naan + 1 + i
	}
	for _, prefix := range prefixes {
		if len(prefix) <= naan+1 || len(prefix) > base {
			continue
		}
		part := stele.Part{Name: "shoulder", Value: prefix[naan+1:], Note: "registered as a namespace"}
		x.Parts = slices.Clone(x.Parts)
		if i := slices.IndexFunc(x.Parts, func(p stele.Part) bool { return p.Name == part.Name }); i >= 0 {
			x.Parts[i] = part
		} else {
			x.Parts = append(x.Parts, part)
		}
		return x
	}
	return x
}

// checkPart returns the check character of an ARK, "" if it has none, and what
// there is to say about that.
func (s *Scheme) checkPart(r *reading) (check, note string) {
	rule, known := s.rule(r)
	base := r.canon[r.naan+1 : r.name]
	if !known && (len(base) < 2 || !mint.Checked(rule.zone(r))) {
		return "", "no check character holds; an ARK need not have one"
	}
	check = base[len(base)-1:]
	switch {
	case !known:
		return check, "holds for NAAN and name, as it would for 1 name in 29 by chance"
	case rule.Alone:
		return check, "holds for the name alone, as for every name under " + rule.Shoulder
	}
	return check, "holds for NAAN and name, as for every name under " + rule.Shoulder
}

// sharedNAANs are those of section 2.3 that are not assigned to an organisation.
var sharedNAANs = map[string]string{
	"12345": "for examples in documentation, not for reference",
	"99152": "shared: terms of vocabularies",
	"99166": "shared: people, groups and institutions",
	"99999": "for tests, not for reference",
}

// inflections says what each asks for (section 1.2).
var inflections = map[string]string{
	"?":     "asks for a description; no part of the name",
	"??":    "asks for a description and the promise of persistence; no part of the name",
	"?info": "asks for a description and the promise of persistence; no part of the name",
}

func (r *reading) warnings() (list []string) {
	for _, w := range [...]struct {
		of   trait
		text string
	}{
		{hasQuery, "The query was left out: it is no part of an ARK."},
		{hasFragment, "The fragment was left out: it is no part of an ARK."},
		{oddHyphen, "Hyphens or dashes that are not ASCII were removed; typesetting may have put them there."},
		{guestInside, "The ARK has characters that its draft does not list; not every resolver takes them."},
		{upperNAAN, "The NAAN was written with capital letters; NAANs are lower-case."},
	} {
		if r.found&w.of != 0 {
			list = append(list, w.text)
		}
	}
	if lex.EncodesControl(r.canon) {
		list = append(list, "A control character is percent-encoded in the name; be careful with whatever decodes it.")
	}
	if encodesNeedlessly(r.canon) {
		list = append(list, "A character is percent-encoded that need not be; written as itself it would be another name.")
	}
	return list
}

// encodesNeedlessly reports whether a character is percent-encoded that may stand
// for itself. The draft (section 3.2) advises against it, as it makes two names
// of what people take for one.
func encodesNeedlessly(canon string) bool {
	for {
		i := strings.IndexByte(canon, '%')
		if i < 0 {
			return false
		}
		if c, _ := lex.Unescape(canon[i : i+3]); class[c[0]] == plain {
			return true
		}
		canon = canon[i+3:]
	}
}
