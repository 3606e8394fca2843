package registrar

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// Patch returns the record as a line of an import changes it. The line is a merge patch
// (RFC 7396) of the record's document: a member that the line does not have stays, null
// removes a member, objects are merged member by member, and a list is replaced as a
// whole. Two members are about one target only:
//
//   - "target" is merged with the first target of its service (N2L if it does not say),
//     or added if there is none. If "targets" is there too it lists the other targets.
//   - "url" is short for {"target":{"url":...}}.
//
// What the system keeps is not the line's to change. Nor is the identifier: the record
// keeps it and its spelling. A line that gives a withdrawn record another state removes
// its tombstone. Without a record the result is what the line alone says.
//
// The result is not validated; the write does that. An error is of Kind Invalid.
func Patch(schemes *stele.Schemes, before *stele.Record, line []byte) (*stele.Record, error) {
	if before == nil {
		if rec, err := document.DecodeStored(schemes, line); err == nil { // the usual line, read quickly
			return rec, nil
		}
	}
	patch, err := document.ReadObject(line)
	if err != nil {
		return nil, badPatch(err)
	}
	base := object{}
	if before != nil {
		if base, err = document.ReadObject(document.AppendRecord(nil, before)); err != nil {
			return nil, badPatch(err)
		}
		for _, kept := range []string{"id", "version", "created", "modified", "by", "redacted", "import"} {
			delete(patch, kept)
		}
		if state, ok := patch["state"]; ok && string(state) != `"withdrawn"` && patch["tombstone"] == nil {
			delete(base, "tombstone")
		}
	}
	if err := base.takeTarget(patch); err != nil {
		return nil, badPatch(err)
	}
	if err := base.merge(patch); err != nil {
		return nil, badPatch(err)
	}
	text, err := json.Marshal(base)
	if err != nil {
		return nil, badPatch(err)
	}
	return document.DecodeStored(schemes, text)
}

func badPatch(err error) error {
	if e, ok := errors.AsType[*stele.Error](err); ok {
		return e
	}
	return &stele.Error{Op: "read record", Kind: stele.Invalid, Err: stele.Problems{{Err: err}}}
}

// object is an object of JSON whose members are not read yet.
type object map[string]json.RawMessage

// isNull reports whether a member is missing or null.
func isNull(text json.RawMessage) bool { return text == nil || string(text) == "null" }

// merge applies a patch.
func (o object) merge(patch object) error {
	for name, change := range patch {
		switch {
		case isNull(change):
			delete(o, name)
		case change[0] == '{':
			inner, err := document.ReadObject(change)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			merged := object{}
			if have := o[name]; !isNull(have) && have[0] == '{' {
				if merged, err = document.ReadObject(have); err != nil {
					return err
				}
			}
			if err := merged.merge(inner); err != nil {
				return err
			}
			if len(merged) == 0 {
				delete(o, name)
			} else if o[name], err = json.Marshal(merged); err != nil {
				return err
			}
		default:
			o[name] = change
		}
	}
	return nil
}

// takeTarget applies what a patch says of one target, and takes it out of the patch.
func (o object) takeTarget(patch object) error {
	one, url := patch["target"], patch["url"]
	if url != nil && patch["targets"] != nil {
		return nil // reading the result says that this can't be
	}
	switch {
	case one == nil && url == nil:
		return nil
	case one != nil && url != nil:
		return stele.Messagef("row.target-and-url", "target and url are both given; keep one")
	case isNull(url) && isNull(one):
		delete(patch, "target")
		delete(patch, "url")
		return nil
	case one == nil:
		one = json.RawMessage(`{"url":` + string(url) + `}`)
	}
	change, err := document.ReadObject(one)
	if err != nil {
		return stele.Messagef("record.target-unreadable", "target: {cause}", err)
	}
	var list []object
	if have := o["targets"]; !isNull(have) {
		if err := json.Unmarshal(have, &list); err != nil {
			return err
		}
	}
	first := object{}
	i := slices.IndexFunc(list, func(t object) bool { return serviceOf(t) == serviceOf(change) })
	if i >= 0 {
		first = list[i]
	}
	if err := first.merge(change); err != nil {
		return err
	}
	if url, ok := change["url"]; ok && isNull(url) && i >= 0 {
		list = slices.Delete(list, i, i+1)
	} else if more, ok := patch["targets"]; ok {
		if list, i = nil, -1; !isNull(more) {
			if err := json.Unmarshal(more, &list); err != nil {
				return stele.Messagef("row.targets-not-a-list", "targets: should be a list of objects")
			}
		}
		list = slices.Insert(list, 0, first)
	} else if i < 0 {
		list = append(list, first)
	}
	if first.isNoTarget() {
		list = slices.DeleteFunc(list, object.isNoTarget)
	}
	delete(patch, "target")
	delete(patch, "url")
	delete(patch, "targets")
	if o["targets"], err = json.Marshal(list); err != nil {
		return err
	}
	return nil
}

// isNoTarget reports whether nothing is left of a target but, perhaps, its service: its
// URL was removed.
func (o object) isNoTarget() bool {
	return len(o) == 0 || len(o) == 1 && o["service"] != nil
}

// serviceOf returns the service of a target as it is written.
func serviceOf(target object) string {
	if s := target["service"]; !isNull(s) {
		return string(s)
	}
	return `"` + string(stele.N2L) + `"`
}
