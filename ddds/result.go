package ddds

import (
	"fmt"
	"strings"

	"github.com/stele-id/stele"
)

// Candidate is what a terminal rule gives.
type Candidate struct {
	Key      string        `json:"key"` // a URI, a domain name in canonical form, or an address, as Flag says
	Flag     Flag          `json:"flag"`
	Service  stele.Service `json:"service,omitempty"`  // as asked for; "" if none was
	Type     string        `json:"type,omitempty"`     // media type or algorithm; "" if the rule names none
	Ask      stele.Service `json:"ask,omitempty"`      // by which the resolver is asked, in the rule's own words: I2L; "" if the rule offers nothing by name
	Protocol string        `json:"protocol,omitempty"` // of the URL (RES:), or to speak with the resolver; may be empty
	Fit      Fit           `json:"fit"`                // of the type to what was asked for
	TTL      uint32        `json:"ttl"`                // seconds; the least along the way

	Order      uint16 `json:"order"`
	Preference uint16 `json:"preference"`
}

// String says in a few words what is there: "RES:http N2L:audio/wav http://...".
func (c Candidate) String() string {
	words := make([]string, 0, 4)
	words = append(words, string(c.Flag))
	if c.Protocol != "" && !c.Flag.IsResolved() {
		words = append(words, c.Protocol)
	}
	if c.Service != "" {
		words = append(words, Offer{Service: c.Service, Type: c.Type}.String())
	}
	return strings.Join(append(words, visible(c.Key)), " ")
}

// Result is what a walk ended with.
type Result struct {
	Candidate // the best

	// Candidates are all that would do, the best first: where one fails, the caller
	// goes on with the next.
	Candidates []Candidate `json:"candidates"`

	Trace *Trace `json:"trace,omitempty"` // nil unless it was asked for
}

// String says what the result is, how long it holds and what else there is.
func (r Result) String() string {
	if len(r.Candidates) == 0 {
		return "nothing"
	}
	text := fmt.Sprintf("%s, for %d s", r.Candidate, r.TTL)
	if more := len(r.Candidates) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
