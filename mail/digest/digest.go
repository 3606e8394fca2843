// Package digest sends users a letter, each day or each week, about what needs them and what happened where
// they own or edit names.
//
// A letter has sections, and each [Source] makes one of them as the user in its context, so that a digest
// has nothing that the user may not see when it is made. No letter is sent if nothing is new. How far a user was told is
// kept in a cell that changes in the same commit in which the letter is put into the queue of package mail: several
// servers of a database send one letter, and a restart sends none again.
//
// The package never decides what users may see, and sends nothing itself.
package digest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/language"
)

// Limits on a digest.
const (
	maxItems = 10   // of a section that are shown; the rest is counted
	maxText  = 300  // bytes of a text of an item
	maxTold  = 1000 // items of which is kept that the user was told
)

// Source makes a section of a digest. The context acts as the user: what a source reads through the registrar is what
// the user may see. A source that has nothing to say returns a section without items. If it fails, the
// digest is tried again later, for [patience].
type Source func(ctx context.Context, to *Reader) (Section, error)

// Reader is the user for whom a digest is made.
type Reader struct {
	User     string
	Language *language.Language
	From, To time.Time // what happened at From or later, and before To, is new

	base     string
	activity func() (*registrar.Activity, error)
}

// Section is a list in a digest.
type Section struct {
	Title string
	Items []Item
	More  string // path of the desk where all items are; may be empty

	// Total is how many items there are, if that is more than Items has.
	Total int
}

// Item is a line of a section.
type Item struct {
	Text, Note string
	Path       string // of the desk, where the user reads more; may be empty

	// Key names what the item is about if it stays until the user acts, such as "proposal 12". An item whose key
	// was in the user's last digest is shown again and is not new. Without a key the item is something that happened from From
	// to To, and is new.
	Key string

	// Quiet: the item is shown beside others, and is never new.
	Quiet bool
}

// made is a digest before it is a letter.
type made struct {
	sections []mail.Section
	keys     []string // of all items that stay, hashed
	fresh    bool     // something is new
}

// hash returns a key as it is kept.
func hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// add adds a section, as much of it as fits.
func (m *made) add(to *Reader, s Section, told []string) {
	if len(s.Items) == 0 {
		return
	}
	for _, item := range s.Items {
		if item.Quiet {
			continue
		}
		if item.Key == "" {
			m.fresh = true
			continue
		}
		key := hash(item.Key)
		// Of more than maxTold it is not known whether the user was told.
		beyond := len(told) == maxTold && len(m.keys) == maxTold
		m.fresh = m.fresh || !beyond && !slices.Contains(told, key)
		if len(m.keys) < maxTold {
			m.keys = append(m.keys, key)
		}
	}
	out := mail.Section{Title: s.Title}
	items := newFirst(s.Items, told)
	for _, item := range items[:min(len(items), maxItems)] {
		out.Items = append(out.Items, mail.Item{Text: cut(item.Text), Note: cut(item.Note), URL: to.url(item.Path)})
	}
	if more := max(s.Total, len(items)) - min(len(items), maxItems); more > 0 {
		out.Items = append(out.Items, mail.Item{Text: to.Language.Text("digest.more", "count", more), URL: to.url(s.More)})
	}
	m.sections = append(m.sections, out)
}

// newFirst returns items in another order: those that the user was not told come first, so that they are among the ones that are shown. Quiet
// items stay where they are.
func newFirst(items []Item, told []string) []Item {
	var fresh, known []Item
	for _, item := range items {
		switch {
		case item.Quiet:
		case item.Key == "" || !slices.Contains(told, hash(item.Key)):
			fresh = append(fresh, item)
		default:
			known = append(known, item)
		}
	}
	next, ordered := append(fresh, known...), slices.Clone(items)
	for i := range ordered {
		if !ordered[i].Quiet {
			ordered[i], next = next[0], next[1:]
		}
	}
	return ordered
}

func (r *Reader) url(path string) string {
	if path == "" {
		return ""
	}
	return r.base + path
}

// isIn reports whether something happened in the time of the digest.
func (r *Reader) isIn(t time.Time) bool { return !t.Before(r.From) && t.Before(r.To) }

// cut shortens a text between characters.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
