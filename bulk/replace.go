package bulk

import (
	"net/url"
	"strings"

	"github.com/stele-id/stele"
)

// Replacement gives targets another beginning: another host, or another beginning of the URL. It
// does not change values of handles.
type Replacement struct {
	From      string `json:"from"`                // a host, or the beginning of a URL
	To        string `json:"to"`                  // of the same kind
	Namespace string `json:"namespace,omitempty"` // whose records change, with those below it, as a text; "" for all that the caller may change
}

// maxBeginning is how many bytes the beginning of a URL has at most.
const maxBeginning = 2000

// NewReplacement makes sure that both texts are hosts, or both beginnings of URLs. The namespace is
// looked for when the replacement is used.
func NewReplacement(from, to, namespace string) (Replacement, error) {
	r := Replacement{strings.TrimSpace(from), strings.TrimSpace(to), namespace}
	var problems stele.Problems
	for _, one := range [][2]string{{"from", r.From}, {"to", r.To}} {
		if err := checkBeginning(one[1]); err != nil {
			problems = append(problems, stele.Problem{Path: one[0], Err: err})
		}
	}
	if len(problems) == 0 && r.isHost() == strings.Contains(r.To, "://") {
		problems = stele.Problems{{Path: "to", Err: stele.Messagef("replace.kinds-differ", "give two hosts, or two beginnings of URLs")}}
	}
	if len(problems) == 0 && !r.isHost() && hasPath(r.From) && !hasPath(r.To) { // the host would grow by what follows
		problems = stele.Problems{{Path: "to", Err: stele.Messagef("replace.path-missing", "the old beginning has a path, so give the new one with a path too, such as {example}", r.To+"/")}}
	}
	if len(problems) == 0 && r.From == r.To {
		problems = stele.Problems{{Path: "to", Err: stele.Messagef("replace.nothing-changes", "it is the same as before")}}
	}
	if len(problems) > 0 {
		return r, &stele.Error{Op: "replace", Kind: stele.Invalid, Err: problems}
	}
	return r, nil
}

// checkBeginning returns what is wrong with a host or the beginning of a URL; nil if nothing is.
func checkBeginning(text string) error {
	switch {
	case text == "":
		return stele.Messagef("replace.beginning-missing", "give a host such as old.example.org, or the beginning of a URL such as https://old.example.org/maps/")
	case len(text) > maxBeginning:
		return stele.Messagef("replace.beginning-too-long", "it has {size} bytes; the beginning of a URL has {most} at most", len(text), maxBeginning)
	}
	address := text
	if !strings.Contains(text, "://") {
		address = "https://" + text
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || address != text && u.Host != text {
		return stele.Messagef("replace.beginning-wrong", `"{text}" is neither a host nor the beginning of a URL with a host`, text)
	}
	return nil
}

// hasPath reports whether the beginning of a URL goes on after its host.
func hasPath(beginning string) bool {
	_, rest, _ := strings.Cut(beginning, "://")
	return strings.Contains(rest, "/")
}

// isNested reports whether a URL that has changed may have the old beginning still.
func (r Replacement) isNested() bool {
	if r.isHost() {
		return strings.EqualFold(r.From, r.To)
	}
	return strings.HasPrefix(r.To, r.From) || strings.HasPrefix(r.From, r.To)
}

// isHost reports whether hosts are replaced, in URLs of any protocol.
func (r Replacement) isHost() bool { return !strings.Contains(r.From, "://") }

// Host returns the host at which the targets are that change.
func (r Replacement) Host() string {
	from := r.From
	if r.isHost() {
		from = "https://" + from
	}
	return stele.Target{URL: from}.Host()
}

// URL returns a URL with its new beginning; false if it has another one.
func (r Replacement) URL(address string) (string, bool) {
	if !r.isHost() {
		rest, ok := strings.CutPrefix(address, r.From)
		if !ok || rest != "" && !ends(r.From) && !strings.ContainsRune("/?#", rune(rest[0])) {
			return address, false // https://a.example is not the beginning of https://a.example.org
		}
		return r.To + rest, true
	}
	protocol, rest, ok := strings.Cut(address, "://")
	if !ok || len(rest) < len(r.From) || !strings.EqualFold(rest[:len(r.From)], r.From) {
		return address, false
	}
	if rest = rest[len(r.From):]; rest != "" && !strings.ContainsRune("/?#", rune(rest[0])) {
		return address, false // another host, or another port
	}
	return protocol + "://" + r.To + rest, true
}

// ends reports whether the beginning of a URL ends where a part of it does, so that anything may
// follow.
func ends(beginning string) bool {
	return strings.ContainsRune("/?#=&-_.~", rune(beginning[len(beginning)-1])) || strings.Count(beginning, "/") > 2
}

// Apply returns the targets of a record with their new beginnings; false if none has the old one.
func (r Replacement) Apply(rec *stele.Record) ([]stele.Target, bool) {
	targets, changed := append([]stele.Target(nil), rec.Targets...), false
	for i := range targets {
		if next, ok := r.URL(targets[i].URL); ok {
			targets[i].URL, changed = next, true
		}
	}
	return targets, changed
}
