// Package edit changes a record as an editor asks for it: it places a target among others,
// drops targets, sets and removes fields. It changes the value only; the registrar judges
// the result and commits it.
package edit

import (
	"errors"
	"maps"
	"slices"

	"github.com/stele-id/stele"
)

// Record is what an editor wants changed in a record. What it does not name stays.
type Record struct {
	// Target is placed among the targets; nil: none is.
	Target *Target

	Drop     []string          // URLs of targets that are removed
	Metadata map[string]string // fields that are set; an empty value removes the field
	Aliases  []stele.ID        // are added

	// Persistence changes the persistence statement; nil: it stays.
	Persistence func(*stele.Persistence)

	Readers  []string // replace the present ones; nil: they stay
	Public   bool     // no readers: all may see it
	Activate bool     // make a reserved record active
}

// Target is a target that an editor gives.
type Target struct {
	stele.Target

	// Given reports whether a field was given, by its name in JSON: of a target that is
	// replaced, the others stay.
	Given func(field string) bool
}

// Apply changes a record. Conflict if the target could take the place of several, or one that is
// to be dropped is not there.
func (e *Record) Apply(rec *stele.Record) error {
	replaced := false
	for _, url := range e.Drop {
		dropped, err := e.drop(rec, url, !replaced)
		if err != nil {
			return err
		}
		replaced = replaced || dropped
	}
	if !replaced && e.Target != nil {
		if err := e.Target.place(rec); err != nil {
			return err
		}
	}
	e.describe(rec)
	for _, alias := range e.Aliases {
		if alias != rec.ID && !slices.Contains(rec.Aliases, alias) {
			rec.Aliases = append(rec.Aliases, alias)
		}
	}
	if e.Public {
		rec.Readers = nil
	}
	if e.Activate {
		rec.State = stele.Active
	}
	return nil
}

// Fill makes a new record say what the editor gives, except for its names.
func (e *Record) Fill(rec *stele.Record) {
	if e.Target != nil {
		rec.Targets = []stele.Target{e.Target.Target}
	}
	e.describe(rec)
}

// describe changes what is said of the thing, except for its targets.
func (e *Record) describe(rec *stele.Record) {
	for key, value := range e.Metadata {
		setField(rec, key, value)
	}
	if e.Persistence != nil {
		e.Persistence(&rec.Persistence)
	}
	if e.Readers != nil {
		rec.Readers = e.Readers
	}
}

// New makes a record with a name, after a model, which may be empty: it has what the model says,
// except for its names, state and history, and then what the editor gives. Where a name
// can't be parsed, the error tells what else is wrong too.
func (e *Record) New(schemes *stele.Schemes, name string, aliases []string, model *stele.Record) (*stele.Record, error) {
	rec := &stele.Record{
		State: stele.Active, Targets: model.Targets, Metadata: maps.Clone(model.Metadata),
		Persistence: model.Persistence, Values: model.Values, Readers: model.Readers,
	}
	var problems stele.Problems
	id, err := schemes.Parse(name)
	if err != nil {
		problems = append(problems, stele.Problem{Path: "id", Err: Syntax(err)})
	}
	if rec.ID = id; name != id.String() {
		rec.Spelling = name
	}
	list, bad := ParseAliases(schemes, aliases)
	rec.Aliases, problems = list, append(problems, bad...)
	e.Fill(rec)
	if len(problems) == 0 {
		return rec, nil
	}
	return nil, &stele.Error{Op: "register", ID: id, Kind: stele.Invalid, Err: append(problems, Problems(rec)...)}
}

// ParseAliases reads aliases, and returns what is wrong with those that can't be read.
func ParseAliases(schemes *stele.Schemes, texts []string) (ids []stele.ID, problems stele.Problems) {
	for i, text := range texts {
		id, err := schemes.Parse(text)
		if err != nil {
			problems = append(problems, stele.Problem{Path: stele.ItemPath("aliases", i), Err: Syntax(err)})
			continue
		}
		ids = append(ids, id)
	}
	return ids, problems
}

// Syntax returns what is wrong with a text, without the words that say that it was parsed.
func Syntax(err error) error {
	if e, ok := errors.AsType[*stele.SyntaxError](err); ok {
		return e
	}
	return err
}

// Problems returns what is wrong with a record beside its names.
func Problems(rec *stele.Record) (rest stele.Problems) {
	problems, _ := errors.AsType[stele.Problems](rec.Validate())
	for _, problem := range problems {
		if problem.Path != "id" && problem.Path != "spelling" {
			rest = append(rest, problem)
		}
	}
	return rest
}

// drop removes the targets with a URL. If the target of the editor has the same service,
// type and language, and is not placed yet, it takes the place.
func (e *Record) drop(rec *stele.Record, url string, mayPlace bool) (placed bool, err error) {
	at := slices.IndexFunc(rec.Targets, func(t stele.Target) bool { return t.URL == url })
	if at < 0 {
		return false, stele.Errorf("update", rec.ID, stele.Conflict, "update.target-not-found", `it has no target with the URL "{url}"; 'stele show {identifier}' shows those it has`, url, rec.ID)
	}
	for i := at; i < len(rec.Targets); {
		t := &rec.Targets[i]
		switch {
		case t.URL != url:
			i++
		case mayPlace && !placed && e.Target != nil && e.Target.isAlike(t):
			e.Target.revise(t)
			placed = true
			i++
		default:
			rec.Targets = slices.Delete(rec.Targets, i, i+1)
		}
	}
	return placed, nil
}

// setField sets a field of the metadata; an empty value removes it.
func setField(rec *stele.Record, key, value string) {
	if value == "" {
		delete(rec.Metadata, key)
		return
	}
	if rec.Metadata == nil {
		rec.Metadata = make(stele.Metadata)
	}
	rec.Metadata[key] = value
}

// place adds the target to the record. It replaces the target with the same URL, or else
// the only one with the same service, type and language, of which it keeps what was not given.
func (t *Target) place(rec *stele.Record) error {
	at := slices.IndexFunc(rec.Targets, func(have stele.Target) bool { return have.URL == t.URL && have.Service == t.Service })
	if at < 0 {
		var alike []int
		for i := range rec.Targets {
			if t.isAlike(&rec.Targets[i]) {
				alike = append(alike, i)
			}
		}
		switch len(alike) {
		case 0:
			rec.Targets = append(rec.Targets, t.Target)
			return nil
		case 1:
			at = alike[0]
		default:
			return stele.Errorf("update", rec.ID, stele.Conflict,
				"update.target-ambiguous", "{count} of its targets have this service, type and language; remove those that the new one replaces with --drop-to, or give --type or --language", len(alike))
		}
	}
	t.revise(&rec.Targets[at])
	return nil
}

// isAlike reports whether a target has the same service, type and language.
func (t *Target) isAlike(have *stele.Target) bool {
	return have.Service == t.Service && have.Type == t.Type && have.Language == t.Language
}

// revise gives a target the URL and the fields that were given.
func (t *Target) revise(have *stele.Target) {
	have.URL = t.URL
	for field, set := range map[string]func(){
		"type":       func() { have.Type = t.Type },
		"language":   func() { have.Language = t.Language },
		"order":      func() { have.Order = t.Order },
		"preference": func() { have.Preference = t.Preference },
		"ttl":        func() { have.TTL = t.TTL },
		"status":     func() { have.Status = t.Status },
		"partial":    func() { have.Partial = t.Partial },
	} {
		if t.Given(field) {
			set()
		}
	}
}
