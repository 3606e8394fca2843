package ddds

import (
	"fmt"
	"strings"

	"github.com/stele-id/stele"
)

// Trace is the story of a walk. Its JSON has stable names.
type Trace struct {
	Name      string        `json:"name"` // the application unique string
	Service   stele.Service `json:"service,omitempty"`
	Accept    []Preference  `json:"accept,omitempty"`
	Protocols []string      `json:"protocols,omitempty"`
	Steps     []Step        `json:"steps"`
	Outcome   string        `json:"outcome,omitempty"` // the result in words
	Error     string        `json:"error,omitempty"`
}

// Phase is a part of a walk.
type Phase string

const (
	Discovery  Phase = "discovery"  // of a resolver
	Resolution Phase = "resolution" // of the resource, in the EDDDS
)

// Step is the look at the rules of one key.
type Step struct {
	Key   string      `json:"key"`
	Phase Phase       `json:"phase"`
	ByFit bool        `json:"by_fit,omitempty"` // chosen by type, not by order alone
	TTL   uint32      `json:"ttl"`
	Note  string      `json:"note,omitempty"` // of the database
	Rules []Judgement `json:"rules,omitempty"`
	Error string      `json:"error,omitempty"`
}

// Verdict is what was made of a rule.
type Verdict string

const (
	Chosen   Verdict = "chosen"
	Spare    Verdict = "spare"          // it would do; the chosen one comes before it
	Failed   Verdict = "failed"         // it was chosen, and what it led to does not answer
	NoMatch  Verdict = "no match"       // its expression does not match the name
	NotHere  Verdict = "wrong service"  // it matches, and does not offer what was asked for
	NotThus  Verdict = "wrong protocol" // it offers it by a protocol that was not asked for
	NotFlag  Verdict = "wrong flag"     // it matches, and its flag was not asked for
	NoOutput Verdict = "bad output"     // it matches, and gives nothing that could be used
	Closed   Verdict = "closed"         // a rule of a lower order matched
	Ignored  Verdict = "ignored"        // its flag is unknown
	Unusable Verdict = "unusable"       // it breaks the rules for rules
)

// Judgement is a rule and what was made of it.
type Judgement struct {
	Fields
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
	Output  string  `json:"output,omitempty"` // what it makes of the name
}

// String tells the story for people, a line for each key and each rule.
func (t *Trace) String() string {
	var b strings.Builder
	b.WriteString(visible(t.Name))
	if t.Service != "" {
		fmt.Fprintf(&b, ", %s", visible(string(t.Service)))
	}
	for _, p := range t.Accept {
		fmt.Fprintf(&b, ", %s;q=%d.%03d", visible(p.Range), p.Q/1000, p.Q%1000)
	}
	if len(t.Protocols) > 0 {
		fmt.Fprintf(&b, ", by %s", visible(strings.Join(t.Protocols, " ")))
	}
	b.WriteByte('\n')
	for i := range t.Steps {
		fmt.Fprintf(&b, "%d. ", i+1)
		t.Steps[i].write(&b)
	}
	switch {
	case t.Error != "":
		fmt.Fprintf(&b, "error: %s\n", visible(t.Error))
	case t.Outcome != "":
		fmt.Fprintf(&b, "=> %s\n", visible(t.Outcome))
	}
	return b.String()
}

func (s *Step) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s (%s)", visible(s.Key), s.Phase)
	if s.Note != "" {
		fmt.Fprintf(b, ", %s", visible(s.Note))
	}
	if s.Error != "" && len(s.Rules) == 0 {
		fmt.Fprintf(b, ": %s\n", visible(s.Error))
		return
	}
	rules := "rules"
	if len(s.Rules) == 1 {
		rules = "rule"
	}
	fmt.Fprintf(b, ": %d %s for %d s", len(s.Rules), rules, s.TTL)
	if s.ByFit {
		b.WriteString(", the best fit first")
	}
	b.WriteByte('\n')
	for i := range s.Rules {
		s.Rules[i].write(b)
	}
	if s.Error != "" {
		fmt.Fprintf(b, "   %s\n", visible(s.Error))
	}
}

func (j *Judgement) write(b *strings.Builder) {
	fmt.Fprintf(b, "   %-14s  %s\n", j.Verdict, j.Fields)
	if j.Reason != "" {
		fmt.Fprintf(b, "   %-14s  %s\n", "", visible(j.Reason))
	}
	if j.Output != "" {
		fmt.Fprintf(b, "   %-14s  -> %s\n", "", visible(j.Output))
	}
}
