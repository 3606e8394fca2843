package access

import (
	"context"
	"crypto"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/terminal"
	"github.com/stele-id/stele/proof"
)

// AddKey adds a signing key to a namespace. Conflict if the namespace has the key, or as many
// as it can have.
func (l *Registry) AddKey(ctx context.Context, key stele.NamespaceKey, k stele.SigningKey) (*stele.Namespace, error) {
	return l.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
		if slices.ContainsFunc(ns.Keys, func(have stele.SigningKey) bool { return have.ID == k.ID }) {
			return stele.Errorf("key", stele.ID{}, stele.Conflict, "signing-key.registered-already", "{namespace} has the key {key} already", key, k.ID)
		}
		if len(ns.Keys) >= stele.MaxKeys {
			return stele.Errorf("key", stele.ID{}, stele.Conflict, "signing-key.too-many", "{namespace} has {count} keys, and can't have more; keys are never removed, so sign with one of them, or of a namespace above or below", key, len(ns.Keys))
		}
		ns.Keys = append(ns.Keys, k)
		return nil
	})
}

// ChangeKey changes the key of a namespace whose ID begins with a text, and returns the
// namespace as it is then and which of its keys it was.
func (l *Registry) ChangeKey(ctx context.Context, key stele.NamespaceKey, begin string, change func(*stele.SigningKey)) (ns *stele.Namespace, at int, err error) {
	ns, err = l.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
		var err error
		if at, err = findKey(ns, begin); err != nil {
			return err
		}
		change(&ns.Keys[at])
		return nil
	})
	return ns, at, err
}

// findKey returns which key of a namespace has an ID that begins with a text.
func findKey(ns *stele.Namespace, begin string) (int, error) {
	begins := func(k stele.SigningKey) bool { return strings.HasPrefix(k.ID, begin) }
	at := slices.IndexFunc(ns.Keys, begins)
	switch {
	case at < 0 || begin == "":
		return 0, stele.Errorf("key", stele.ID{}, stele.NotFound, "signing-key.not-found", `{namespace} has no key "{key}"; 'stele key list {namespace}' shows those it has`, ns.Key(), begin)
	case slices.ContainsFunc(ns.Keys[at+1:], begins):
		return 0, stele.Errorf("key", stele.ID{}, stele.Invalid, "signing-key.ambiguous", `several keys of {namespace} begin with "{key}"; write more of the name`, ns.Key(), begin)
	}
	return at, nil
}

// WithKeys returns the namespaces with the prefixes given, or all that have signing keys if
// none is given.
func (l *Registry) WithKeys(ctx context.Context, prefixes ...string) (list []*stele.Namespace, err error) {
	for _, prefix := range prefixes {
		key, err := l.ParsePrefix(prefix)
		if err != nil {
			return nil, err
		}
		ns, err := l.Namespace(ctx, key)
		if err != nil {
			return nil, err
		}
		list = append(list, ns)
	}
	if len(prefixes) > 0 {
		return list, nil
	}
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		if len(ns.Keys) > 0 {
			list = append(list, ns)
		}
	}
	return list, nil
}

// AddNewKey writes a private key to a new file, and then adds the public key to the namespace
// with the prefix: a registered key whose private part is lost would be useless. If the key
// is surely not registered, AddNewKey removes the file again.
func (l *Registry) AddNewKey(ctx context.Context, prefix, file string, key crypto.Signer, k stele.SigningKey) (*stele.Namespace, error) {
	at, err := l.ParsePrefix(prefix)
	if err != nil {
		return nil, err
	}
	if _, err := l.Namespace(ctx, at); err != nil {
		return nil, err
	}
	text, err := proof.MarshalPrivate(key)
	if err != nil {
		return nil, err
	}
	if err := disk.CreatePrivate(file, text); errors.Is(err, fs.ErrExist) {
		return nil, stele.Errorf("key new", stele.ID{}, stele.Conflict, "key-file.exists", "{file} is there already, and a private key can't be made again; choose another file", terminal.Printable(file))
	} else if err != nil {
		return nil, err
	}
	ns, err := l.AddKey(ctx, at, k)
	switch {
	case err == nil:
		return ns, nil
	case isRefusal(err):
		return nil, errors.Join(err, os.Remove(file))
	}
	return nil, stele.Errorf("key new", stele.ID{}, stele.KindOf(err), "signing-key.registration-unknown", "{cause}; whether the key {key} is registered is not known: see 'stele key list {namespace}'; its private part is in {file}", err, k.ID, at, terminal.Printable(file))
}

// isRefusal reports whether an error says that nothing was written.
func isRefusal(err error) bool {
	switch stele.KindOf(err) {
	case stele.Invalid, stele.NotFound, stele.Conflict, stele.Forbidden, stele.Unauthenticated:
		return true
	}
	return false
}
