package document

import (
	"encoding/json"
	"maps"

	"github.com/stele-id/stele"
)

// ReadPatch reads a merge patch (RFC 7396): an object. The operation op is that of the error.
func ReadPatch(op string, data []byte) (any, error) {
	patch, err := ReadTree(data)
	if err != nil {
		return nil, notJSON(op, err)
	}
	if _, ok := patch.(map[string]any); !ok {
		return nil, &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Problems{{Err: errNoPatch}}}
	}
	return patch, nil
}

var errNoPatch = stele.Messagef("request.patch-not-an-object", "a patch is an object with what should change; a field that is null is removed")

// ApplyPatch returns a document as a patch changes it.
func ApplyPatch(text []byte, patch any) ([]byte, error) {
	before, err := ReadTree(text)
	if err != nil {
		return nil, &stele.Error{Kind: stele.Internal, Err: err}
	}
	after, err := json.Marshal(merge(before, patch))
	if err != nil {
		return nil, &stele.Error{Kind: stele.Internal, Err: err}
	}
	return after, nil
}

// merge applies a merge patch (RFC 7396, section 2). It changes neither of the two. It
// goes no deeper than the patch does, which ReadTree bounds.
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, _ := target.(map[string]any)
	merged := maps.Clone(object)
	if merged == nil {
		merged = make(map[string]any)
	}
	for name, change := range changes {
		if change == nil {
			delete(merged, name)
		} else {
			merged[name] = merge(merged[name], change)
		}
	}
	return merged
}
