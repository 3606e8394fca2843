package client

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/fetch"
	"github.com/stele-id/stele/proof"
)

// Signatures fetches the signatures of what a name stands for, from where the service N2S
// led. They must be for that name: a signature for another name proves nothing.
func Signatures(ctx context.Context, f *fetch.Fetcher, schemes *stele.Schemes, location string, id stele.ID) ([]stele.Signature, error) {
	refuse := func(kind stele.Kind, code, text string, args ...any) error {
		return &stele.Error{Op: "verify", ID: id, Kind: kind, Err: stele.Messagef(code, text, args...)}
	}
	text, info, err := f.Read(ctx, fetch.Request{Location: location, Accept: "application/json"}, maxDocument)
	if err != nil {
		return nil, refuse(stele.KindOf(err), "signature.unusable", "its signature: {cause}", stele.Reason(err))
	}
	name, list, err := proof.ParseDocument(text)
	if err != nil {
		return nil, refuse(stele.Conflict, "signature.unreadable-at", `what is at "{url}" is not a signature that this program can check: {cause}`, info.URL, stele.Reason(err))
	}
	if signed, err := schemes.Parse(name); err != nil || signed != id {
		return nil, refuse(stele.Conflict, "signature.for-other-name", `the signatures at "{url}" are for "{name}"; if that is another name of the same thing, get it by that name`, info.URL, name)
	}
	if len(list) == 0 {
		return nil, refuse(stele.NotFound, "signature.missing-at-resolver", "it has no signature")
	}
	return list, nil
}

// Verifier compares what was fetched with what was signed.
type Verifier struct {
	id   stele.ID
	keys Keys
	good []statement
	bad  []statement
}

// statement is a signature and what was found of it.
type statement struct {
	stele.Signature
	key stele.SigningKey
	err error // why it is not believed
}

// NewVerifier checks signatures by keys. If none of them is good, NewVerifier fails with an
// error of Kind Conflict, which says what is wrong with each.
func NewVerifier(id stele.ID, list []stele.Signature, keys Keys, now time.Time) (*Verifier, error) {
	v := &Verifier{id: id, keys: keys}
	for _, s := range list {
		key, err := proof.Verify(keys.List, id, s, now)
		if err != nil {
			v.bad = append(v.bad, statement{s, key, stele.Reason(err)})
			continue
		}
		v.good = append(v.good, statement{s, key, nil})
	}
	if len(v.good) > 0 {
		// Where several say the same, the newest is reported.
		slices.SortStableFunc(v.good, func(a, b statement) int { return b.Date.Compare(a.Date) })
		return v, nil
	}
	var reasons []error
	for _, s := range v.bad {
		if !slices.ContainsFunc(reasons, func(err error) bool { return err.Error() == s.err.Error() }) {
			reasons = append(reasons, s.err)
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, stele.Messagef("signature.missing-at-resolver", "it has no signature"))
	}
	const most = 3
	return nil, v.refuse("signature.none-good", "{cause} (keys of {source})", errors.Join(reasons[:min(len(reasons), most)]...), keys.From)
}

func (v *Verifier) refuse(code, text string, args ...any) error {
	return &stele.Error{Op: "verify", ID: v.id, Kind: stele.Conflict, Err: stele.Messagef(code, text, args...)}
}

// Sizes returns how many bytes what was signed has.
func (v *Verifier) Sizes() (list []int64) {
	for _, s := range v.good {
		list = append(list, int64(s.Size))
	}
	return list
}

// Types returns the media types of what was signed; none if one of them may be any.
func (v *Verifier) Types() (list []string) {
	for _, s := range v.good {
		if s.Type == "" {
			return nil
		}
		if !slices.Contains(list, s.Type) {
			list = append(list, s.Type)
		}
	}
	return list
}

// Changed is the error of something whose size alone shows that it is not what was
// signed.
func (v *Verifier) Changed(err error) error {
	return v.refuse("signature.target-changed", "{cause}; {signed}: the target has changed since it was signed, or it was changed on the way", stele.Reason(err), v.signed())
}

// signed says what was signed: "5 bytes were signed on 2026-11-15".
func (v *Verifier) signed() string {
	var words []string
	for _, s := range v.good {
		word := fmt.Sprintf("%d bytes", s.Size)
		if s.Type != "" {
			word += " of " + s.Type
		}
		words = append(words, word+" were signed on "+s.Date.UTC().Format(time.DateOnly))
	}
	return strings.Join(words, ", ")
}

// Proof is what was proven of something. Its JSON has stable names.
type Proof struct {
	SHA256    string    `json:"sha256"`
	Size      int64     `json:"size"`
	Type      string    `json:"type,omitempty"` // that was signed
	Signed    time.Time `json:"signed"`
	Key       string    `json:"key"`
	Algorithm string    `json:"algorithm"`
	KeyFrom   string    `json:"keyFrom"`
	KeyBy     Voucher   `json:"keyBy"`
	KeyNote   string    `json:"keyNote,omitempty"`
	Notes     []string  `json:"notes,omitempty"` // what else people should know
}

// Verify judges something by its digest and its size. The type is what its server calls
// it; if another type was signed, the Proof only notes that, since the bytes are what was
// signed.
func (v *Verifier) Verify(sum [32]byte, size int64, kind string) (*Proof, error) {
	fits := func(s statement) bool { return s.SHA256 == sum && s.Size == uint64(size) }
	at := slices.IndexFunc(v.good, fits)
	if at < 0 {
		if i := slices.IndexFunc(v.bad, fits); i >= 0 {
			return nil, v.refuse("signature.bad-for-content", "the signature of these bytes is wrong: {cause} (keys of {source})", v.bad[i].err, v.keys.From)
		}
		return nil, v.refuse("signature.digest-differs", "{bytes} bytes with the SHA-256 {digest} came; {signed}, with another: the target has changed since it was signed, or it was changed on the way", size, fmt.Sprintf("%x", sum[:8]), v.signed())
	}
	s := v.good[at]
	p := &Proof{
		SHA256: hex.EncodeToString(sum[:]), Size: size, Type: s.Type, Signed: s.Date, Key: s.Key, Algorithm: s.key.Algorithm,
		KeyFrom: v.keys.From, KeyBy: v.keys.By, KeyNote: v.keys.Note,
	}
	if s.Type != "" && kind != "" && !strings.EqualFold(s.Type, kind) {
		p.Notes = append(p.Notes, fmt.Sprintf("it was signed as %s, and its server calls it %s", s.Type, visible(kind)))
	}
	for _, newer := range v.good[:at] {
		if newer.Type == s.Type && newer.Date.After(s.Date) && newer.SHA256 != sum {
			p.Notes = append(p.Notes, fmt.Sprintf("other bytes were signed later, on %s", newer.Date.UTC().Format(time.DateOnly)))
			break
		}
	}
	return p, nil
}

// IsProven reports whether the namespace's owner signed it, with a key that is
// authenticated. Otherwise the owner of this key signed it, which may be an attacker.
func (p *Proof) IsProven() bool { return p.KeyBy.IsKnown() }

// String says in a line what was proven, or that it was not.
func (p *Proof) String() string {
	signed := fmt.Sprintf("signed %s by key %s of %s", p.Signed.UTC().Format(time.DateOnly), p.Key, visible(p.KeyFrom))
	note := ""
	if p.KeyNote != "" {
		note = " (" + visible(p.KeyNote) + ")"
	}
	if !p.IsProven() {
		return strings.Join(append([]string{"not verified: SHA-256 and size match what was signed, but the key is not authenticated" + note, signed}, p.Notes...), "; ")
	}
	words := []string{"verified: SHA-256 and size match", signed}
	switch p.KeyBy {
	case ByDNSSEC:
		words = append(words, "key authenticated by DNSSEC"+note)
	case ByHTTPS:
		words = append(words, "key authenticated by HTTPS only: "+visible(p.KeyFrom)+" says that it is the namespace's")
	case ByRegistry:
		words = append(words, "key from the registry at hand")
	}
	return strings.Join(append(words, p.Notes...), "; ")
}
