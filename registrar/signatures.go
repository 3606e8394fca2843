package registrar

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/proof"
)

// signatures judges signatures that are new: each must be true, and of a key of the
// record's namespace, or of one above it, that may sign now. Those that were there
// stay, whatever became of their keys: their readers judge them. Kept ones must be true.
func (j *judge) signatures(before, next *stele.Record, kept bool) {
	if len(next.Signatures) == 0 || len(j.problems) > 0 {
		return
	}
	keys := keysOf(j.namespaceTree.ancestorsOf(next.ID))
	for i, s := range next.Signatures {
		if before != nil && hasSignature(before.Signatures, s) {
			continue
		}
		if err := j.signature(keys, next.ID, s, kept); err != nil {
			j.add("signatures["+strconv.Itoa(i)+"]", stele.Reason(err))
		}
	}
}

func (j *judge) signature(keys []stele.SigningKey, id stele.ID, s stele.Signature, kept bool) error {
	if kept {
		_, err := proof.Maker(keys, id, s)
		return err
	}
	key, err := proof.Verify(keys, id, s, j.now())
	if err != nil {
		return err
	}
	return proof.Usable(key, j.now())
}

// keysOf returns the keys of namespaces, those of the first one first.
func keysOf(ancestors []*stele.Namespace) (keys []stele.SigningKey) {
	for _, ns := range ancestors {
		keys = append(keys, ns.Keys...)
	}
	return keys
}

func hasSignature(list []stele.Signature, s stele.Signature) bool {
	return slices.ContainsFunc(list, func(other stele.Signature) bool {
		date := other.Date
		other.Date = s.Date
		return date.Equal(s.Date) && other == s
	})
}

// withSignatures returns the list followed by those that it lacks: an import, which may
// come from a system without signatures, removes none.
func withSignatures(list, before []stele.Signature) []stele.Signature {
	for _, s := range before {
		if !hasSignature(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// withKeys returns the list followed by those that it lacks.
func withKeys(list, before []stele.SigningKey) []stele.SigningKey {
	list = slices.Clone(list)
	for _, k := range before {
		if !slices.ContainsFunc(list, func(other stele.SigningKey) bool { return other.ID == k.ID }) {
			list = append(list, k)
		}
	}
	return list
}

// judgeKeys makes sure that keys are what they say: public ones above all.
func judgeKeys(ns *stele.Namespace, add func(string, error)) {
	for i, k := range ns.Keys {
		add("keys["+strconv.Itoa(i)+"]", proof.Check(k))
	}
}

// keysStay makes sure that no key is removed or replaced, and that no expired or
// revoked key becomes valid again: what it signed meanwhile would be accepted.
func (r *Registrar) keysStay(op string, before, next *stele.Namespace) error {
	if before == nil {
		return nil
	}
	var problems stele.Problems
	for i, k := range next.Keys {
		if k.Revoked.After(r.now().Add(proof.Skew)) {
			problems = append(problems, stele.Problem{Path: "keys[" + strconv.Itoa(i) + "].revoked", Err: stele.Messagef("signing-key.revoked-in-future", "it is in the future; a key that others may have is revoked now, and one that is to end is retired")})
		}
	}
	for _, old := range before.Keys {
		i := slices.IndexFunc(next.Keys, func(k stele.SigningKey) bool { return k.ID == old.ID })
		if i < 0 {
			problems = append(problems, stele.Problem{Path: "keys", Err: stele.Messagef("signing-key.removed", "{key} is missing; a key is never removed, but it can be retired or revoked", old.ID)})
			continue
		}
		k, path := &next.Keys[i], "keys["+strconv.Itoa(i)+"]"
		if !bytes.Equal(k.Public, old.Public) || !k.Created.Equal(old.Created) {
			problems = append(problems, stele.Problem{Path: path, Err: stele.Messagef("signing-key.changed", "a key and when it was made never change; add another key")})
		}
		if !old.Revoked.IsZero() && (k.Revoked.IsZero() || k.Revoked.After(old.Revoked)) {
			problems = append(problems, stele.Problem{Path: path + ".revoked", Err: stele.Messagef("signing-key.revocation-undone", "a key that is revoked stays so; add another key")})
		}
		if ended := !old.Expires.IsZero() && !old.Expires.After(r.now()); ended && (k.Expires.IsZero() || k.Expires.After(old.Expires)) {
			problems = append(problems, stele.Problem{Path: path + ".expires", Err: stele.Messagef("signing-key.expiry-undone", "a key that has expired does not come back; add another key")})
		}
	}
	if len(problems) > 0 {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: problems}
	}
	return nil
}

// signatures checks that the record's signatures are of its namespace's keys.
func (v *audit) signatures(rec *stele.Record) {
	if len(rec.Signatures) == 0 {
		return
	}
	keys := keysOf(v.namespaceTree.ancestorsOf(rec.ID))
	for _, s := range rec.Signatures {
		if _, err := proof.Maker(keys, rec.ID, s); err != nil {
			v.problem("verify.signature-not-believed", "A signature of the record {id} of {date} can't be believed: {cause}.", rec.ID, s.Date.Format("2006-01-02"), stele.Reason(err))
		}
	}
}
