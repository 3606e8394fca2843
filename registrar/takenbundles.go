package registrar

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// TakenBundle is the last bundle that a person made of all names of a namespace, and when one was last checked. Deposits are not meant: see [ScheduledDeposit].
type TakenBundle struct {
	Namespace stele.NamespaceKey `json:"-"` // without a prefix: all namespaces of the scheme

	Made     time.Time `json:"made"`
	By       string    `json:"by"`
	Manifest string    `json:"manifest"` // SHA-256 of the manifest of the bundle, in hexadecimal digits
	Change   uint64    `json:"change"`   // the last one in it
	Records  uint64    `json:"records"`  // in the whole bundle
	Versions uint64    `json:"versions"`
	Wider    bool      `json:"wider,omitempty"` // the bundle has more than this namespace and those below it

	// The last check of a bundle that was the last one at that time.
	Checked       time.Time `json:"checked,omitzero"`
	CheckedBy     string    `json:"checkedBy,omitempty"`
	CheckedChange uint64    `json:"checkedChange,omitempty"`
}

// MadeBundle is what is noted of a bundle that was made.
type MadeBundle struct {
	Manifest          [32]byte
	Change            uint64
	Records, Versions uint64
}

const (
	takenCells    = "bundle "
	opNoteBundle  = "note bundle"
	maxTakenCells = 200 // of a commit
)

func takenCell(key stele.NamespaceKey) string { return takenCells + key.Scheme + " " + key.Prefix }

func readTaken(c stele.Cell) (t TakenBundle, err error) {
	err = json.Unmarshal(c.Value, &t)
	t.Namespace.Scheme, t.Namespace.Prefix, _ = strings.Cut(strings.TrimPrefix(c.Name, takenCells), " ")
	return t, err
}

// caller returns which user acts, for a note that others read.
func caller(ctx context.Context) string {
	if e := entry(ctx, opNoteBundle, ""); e.By != auth.Local().Name || e.System == "" {
		return e.By
	}
	return auth.OriginOf(ctx).System
}

// takenEntry returns the entry of a note.
func takenEntry(ctx context.Context, op string, c *stele.CellChange) *stele.AuditEntry {
	before, _ := readTaken(stele.Cell{Name: c.Name, Value: c.Before}) // what can't be read is not told
	after, err := readTaken(stele.Cell{Name: c.Name, Value: c.After})
	if err != nil {
		return nil
	}
	e := entry(ctx, op, "namespace:"+after.Namespace.String())
	e.Namespace = after.Namespace
	if e.Details = fmt.Sprintf("checked %s up to change %d", after.Manifest, after.Change); !after.Made.Equal(before.Made) {
		e.Details = fmt.Sprintf("made %s up to change %d, with %d records", after.Manifest, after.Change, after.Records)
	}
	return e
}

// NoteMade notes that the caller has made the bundle: at each of the topmost namespaces that it has as a whole, or at the scheme if it has all names of one. So there are never
// more notes than namespaces. A sealed registry notes nothing. It is called when the bundle is complete, so an error is logged.
func (b *Bundling) NoteMade(ctx context.Context, made MadeBundle) {
	ctx = context.WithoutCancel(ctx)
	err := b.noteMade(ctx, made)
	if err != nil && !errors.Is(err, stele.ErrSealed) {
		b.r.o.Log.ErrorContext(ctx, "that a bundle was made can't be noted", "error", err.Error())
	}
}

func (b *Bundling) noteMade(ctx context.Context, made MadeBundle) error {
	top, err := b.topmost(ctx)
	if err != nil {
		return err
	}
	now, by := b.r.now(), caller(ctx)
	for keys := range slices.Chunk(top, maxTakenCells) {
		err := b.r.changeTaken(ctx, keys, func(t *TakenBundle) {
			t.Made, t.By, t.Manifest, t.Change, t.Records, t.Versions = now, by, hex.EncodeToString(made.Manifest[:]), made.Change, made.Records, made.Versions
			t.Wider = len(top) > 1 || !slices.Contains(b.keys, t.Namespace)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// topmost returns the schemes of which the bundle has all names, and the namespaces that it has as a whole and that are not below another one that it has.
func (b *Bundling) topmost(ctx context.Context) (top []stele.NamespaceKey, err error) {
	s, err := b.r.view(ctx)
	if err != nil {
		return nil, err
	}
	for _, key := range b.keys {
		if key.Prefix == "" {
			top = append(top, key)
		}
	}
	spaces, err := b.Current(ctx)
	if err != nil {
		return nil, err
	}
	for _, ns := range spaces {
		above := slices.ContainsFunc(s.ancestorsAt(ns.Key())[1:], func(a *stele.Namespace) bool { return a.Version > 0 && b.has(a.Key()) })
		if key := (stele.NamespaceKey{Scheme: ns.Scheme}); ns.Prefix != "" && !above && !slices.Contains(top, key) {
			top = append(top, ns.Key())
		}
	}
	return top, nil
}

// changeTaken changes the notes at some namespaces, all together.
func (r *Registrar) changeTaken(ctx context.Context, keys []stele.NamespaceKey, change func(*TakenBundle)) error {
	for attempt := 1; ; attempt++ {
		var c stele.Commit
		for _, key := range keys {
			cell := stele.CellChange{Name: takenCell(key)}
			var err error
			if cell.Before, err = r.store.Cell(ctx, cell.Name); err != nil {
				return tell(opNoteBundle, err)
			}
			t, err := readTaken(stele.Cell{Name: cell.Name, Value: cell.Before})
			if err != nil {
				t = TakenBundle{Namespace: key} // there is none, or it can't be read: it is written anew
			}
			change(&t)
			if cell.After, err = json.Marshal(t); err != nil {
				return tell(opNoteBundle, err)
			}
			c.Cells = append(c.Cells, cell)
		}
		err := r.apply(ctx, opNoteBundle, &c)
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// TakenBundles returns the last bundles that were made by hand of namespaces that the caller owns, by scheme and prefix; those of whole schemes only to administrators.
func (r *Registrar) TakenBundles(ctx context.Context) (list []TakenBundle, err error) {
	const op = "list bundles"
	if err := identify(ctx, op); err != nil {
		return nil, err
	}
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	who := auth.From(ctx)
	for c, err := range r.store.Cells(ctx, takenCells, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		t, err := readTaken(c)
		if err != nil {
			r.o.Log.ErrorContext(ctx, "what is known of a bundle can't be read", "cell", c.Name, "error", err.Error())
			continue
		}
		if auth.MayManage(who, s.ancestorsAt(t.Namespace)...) {
			list = append(list, t)
		}
	}
	return list, nil
}

// TakenOf returns what is known of the bundles that have all names of a namespace: the last one, and the last check, whether they are of the namespace itself or of what is above it.
// Nil if there is none, or if the caller does not own the namespace.
func (r *Registrar) TakenOf(ctx context.Context, key stele.NamespaceKey) (last *TakenBundle, err error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	ancestors := s.ancestorsAt(key)
	if !auth.MayManage(auth.From(ctx), ancestors...) {
		return nil, nil
	}
	var keys []stele.NamespaceKey // the nearest first
	for _, ns := range ancestors {
		if ns.Prefix != "" {
			keys = append(keys, ns.Key())
		}
	}
	keys = append(keys, stele.NamespaceKey{Scheme: key.Scheme})
	for _, at := range keys {
		value, err := r.store.Cell(ctx, takenCell(at))
		if err != nil {
			return nil, tell(opNoteBundle, err)
		}
		t, err := readTaken(stele.Cell{Name: takenCell(at), Value: value})
		if err != nil {
			continue // there is none, or it can't be read
		}
		t.Wider = t.Wider || at != key
		if last == nil {
			last = &t
			continue
		}
		if t.Checked.After(last.Checked) {
			last.Checked, last.CheckedBy, last.CheckedChange = t.Checked, t.CheckedBy, t.CheckedChange
		}
		if t.Made.After(last.Made) {
			t.Checked, t.CheckedBy, t.CheckedChange = last.Checked, last.CheckedBy, last.CheckedChange
			last = &t
		}
	}
	return last, nil
}

// NoteChecked notes that the caller has checked a bundle and found it whole: that with a manifest, by its SHA-256 in hexadecimal digits. NotFound if it is not the last bundle of a namespace that the
// caller owns. A sealed registry notes nothing, and refuses it.
func (r *Registrar) NoteChecked(ctx context.Context, manifest string) error {
	list, err := r.TakenBundles(ctx)
	if err != nil {
		return err
	}
	var keys []stele.NamespaceKey
	for i := range list {
		if list[i].Manifest == manifest {
			keys = append(keys, list[i].Namespace)
		}
	}
	if keys == nil {
		return refuse(opNoteBundle, stele.ID{}, stele.NotFound, "bundle.not-the-last", "the registry does not know this bundle as the last one of a namespace of yours, so its check was not noted; 'stele bundle ls' lists the last ones")
	}
	now, by := r.now(), caller(ctx)
	for keys := range slices.Chunk(keys, maxTakenCells) {
		err := r.changeTaken(ctx, keys, func(t *TakenBundle) {
			if t.Manifest == manifest { // else another one was made meanwhile
				t.Checked, t.CheckedBy, t.CheckedChange = now, by, t.Change
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
