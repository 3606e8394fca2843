package client

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/ddds"
)

// Trace is the list of steps of a resolution. Its JSON has stable names.
type Trace struct {
	Name    string            `json:"name"` // as it was written
	Service stele.Service     `json:"service,omitempty"`
	Accept  []ddds.Preference `json:"accept,omitempty"`
	Steps   []Step            `json:"steps"`
	DNSSEC  dnssec.Status     `json:"dnssec,omitempty"`  // of all answers of the DNS, the weakest
	Outcome string            `json:"outcome,omitempty"` // the result in words
	Error   string            `json:"error,omitempty"`
}

// Step is one thing that was done. One of its fields is set.
type Step struct {
	Query   *Query          `json:"query,omitempty"`
	Rules   *ddds.Step      `json:"rules,omitempty"`
	Servers *Servers        `json:"servers,omitempty"`
	HTTP    *Exchange       `json:"http,omitempty"`
	Handle  *hdlclient.Step `json:"handle,omitempty"` // a message of the Handle protocol
	Note    string          `json:"note,omitempty"`
}

// Query is a question to a name server, and its answer.
type Query struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Server    string `json:"server,omitempty"`    // address and port, or a URL
	Transport string `json:"transport,omitempty"` // udp, tcp, tls or https
	Cached    bool   `json:"cached,omitempty"`    // the answer comes from the cache
	Rcode     string `json:"rcode,omitempty"`
	Answers   int    `json:"answers"` // records for the question
	TTL       uint32 `json:"ttl"`
	Error     string `json:"error,omitempty"`

	DNSSEC dnssec.Status `json:"dnssec,omitempty"` // of the answer; keys and DS records are parts of a proof, and have none
	Bogus  *dnssec.Bogus `json:"bogus,omitempty"`  // why it is not believed
}

// Servers are those that SRV records name, in the order in which they are tried.
type Servers struct {
	Name string   `json:"name"`
	List []Server `json:"list"`
}

// Server is what an SRV record says.
type Server struct {
	Host     string `json:"host"`
	Port     uint16 `json:"port"`
	Priority uint16 `json:"priority"`
	Weight   uint16 `json:"weight"`
}

// Exchange is a request over HTTP, and its answer.
type Exchange struct {
	URL      string `json:"url"`
	Address  string `json:"address,omitempty"` // that was connected to
	Status   int    `json:"status,omitempty"`
	Location string `json:"location,omitempty"`
	Type     string `json:"type,omitempty"`
	Error    string `json:"error,omitempty"`
}

// tracer collects steps. A nil one collects nothing.
type tracer struct{ steps []Step }

func newTracer(wanted bool) *tracer {
	if !wanted {
		return nil
	}
	return &tracer{steps: []Step{}}
}

func (t *tracer) add(s Step) {
	if t != nil {
		t.steps = append(t.steps, s)
	}
}

func (t *tracer) note(format string, args ...any) {
	if t != nil {
		t.add(Step{Note: fmt.Sprintf(format, args...)})
	}
}

// fork returns a tracer for concurrent steps; join adds them.
func (t *tracer) fork() *tracer { return newTracer(t != nil) }

func (t *tracer) join(other *tracer) {
	if t != nil {
		t.steps = append(t.steps, other.steps...)
	}
}

// trace makes the whole trace.
func (t *tracer) trace(q *Request, res *Result, err error) *Trace {
	if t == nil {
		return nil
	}
	out := &Trace{Name: q.Name, Service: q.Service, Accept: q.Accept, Steps: t.steps}
	if err != nil {
		out.Error = err.Error()
	} else {
		out.Outcome = res.String()
	}
	return out
}

// String says what the result is in a line: "https://..., N2L, audio/wav, for 60 s".
func (r *Result) String() string {
	words := make([]string, 0, 6)
	if r.Found == FoundServer {
		words = append(words, "the resolver "+visible(r.Location))
	} else {
		words = append(words, visible(r.Location))
	}
	words = append(words, string(r.Service))
	if r.Type != "" {
		words = append(words, visible(r.Type))
	}
	if r.TTL > 0 {
		words = append(words, fmt.Sprintf("for %d s", r.TTL))
	}
	if n := len(r.Others); n > 0 {
		words = append(words, fmt.Sprintf("and %d more", n))
	}
	switch r.DNSSEC {
	case dnssec.Secure:
		words = append(words, "SECURE")
	case dnssec.Insecure:
		words = append(words, "INSECURE ("+visible(r.Insecure)+")")
	}
	if r.Certified {
		words = append(words, "certified")
	}
	if r.Note != "" {
		words = append(words, visible(r.Note))
	}
	return strings.Join(words, ", ")
}

// String returns the trace for people, a line or a few for each step.
func (t *Trace) String() string {
	var b strings.Builder
	b.WriteString(visible(t.Name))
	if t.Service != "" {
		fmt.Fprintf(&b, ", %s", visible(string(t.Service)))
	}
	for _, p := range t.Accept {
		b.WriteString(", " + visible(p.Range))
		if p.Q != 1000 {
			b.WriteString(";q=" + weight(p.Q))
		}
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
		fmt.Fprintf(&b, "=> %s\n", t.Outcome)
	}
	return b.String()
}

// weight writes thousandths as HTTP has them: 0.5.
func weight(q int) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%03d", q/1000, q%1000), "0"), ".")
}

func (s *Step) write(b *strings.Builder) {
	switch {
	case s.Query != nil:
		s.Query.write(b)
	case s.Rules != nil:
		writeRules(b, s.Rules)
	case s.Servers != nil:
		s.Servers.write(b)
	case s.HTTP != nil:
		s.HTTP.write(b)
	case s.Handle != nil:
		writeHandle(b, s.Handle)
	default:
		b.WriteString(visible(s.Note) + "\n")
	}
}

func (q *Query) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s %s", visible(q.Name), q.Type)
	if q.Cached {
		b.WriteString(", from memory")
	} else {
		fmt.Fprintf(b, " from %s (%s)", visible(q.Server), q.Transport)
	}
	if q.Rcode != "" {
		b.WriteString(": " + q.Rcode)
		if q.Answers > 0 {
			fmt.Fprintf(b, ", %s", count(q.Answers, "record"))
		}
		if q.TTL > 0 {
			fmt.Fprintf(b, " for %d s", q.TTL)
		}
		if q.DNSSEC != dnssec.Unchecked {
			b.WriteString(", " + q.DNSSEC.String())
		}
	}
	if q.Error != "" {
		b.WriteString(": " + visible(q.Error))
	}
	b.WriteByte('\n')
}

func writeRules(b *strings.Builder, s *ddds.Step) {
	fmt.Fprintf(b, "rules at %s (%s)", visible(s.Key), s.Phase)
	if s.Error != "" && len(s.Rules) == 0 {
		fmt.Fprintf(b, ": %s\n", visible(s.Error))
		return
	}
	fmt.Fprintf(b, ": %s", count(len(s.Rules), "rule"))
	if s.ByFit {
		b.WriteString(", the best fit first")
	}
	b.WriteByte('\n')
	for i := range s.Rules {
		j := &s.Rules[i]
		fmt.Fprintf(b, "   %-14s  %s\n", j.Verdict, visible(j.Fields.String()))
		if j.Reason != "" {
			fmt.Fprintf(b, "   %-14s  %s\n", "", visible(j.Reason))
		}
		if j.Output != "" {
			fmt.Fprintf(b, "   %-14s  -> %s\n", "", visible(j.Output))
		}
	}
	if s.Error != "" {
		fmt.Fprintf(b, "   %s\n", visible(s.Error))
	}
}

func (s *Servers) write(b *strings.Builder) {
	fmt.Fprintf(b, "servers at %s, in the order to try them\n", visible(s.Name))
	for _, one := range s.List {
		fmt.Fprintf(b, "   %s, port %d (priority %d, weight %d)\n", visible(one.Host), one.Port, one.Priority, one.Weight)
	}
}

func (e *Exchange) write(b *strings.Builder) {
	fmt.Fprintf(b, "GET %s", visible(e.URL))
	if e.Address != "" {
		fmt.Fprintf(b, " at %s", e.Address)
	}
	if e.Status != 0 {
		fmt.Fprintf(b, ": %d", e.Status)
	}
	if e.Error != "" {
		fmt.Fprintf(b, ": %s", visible(e.Error))
	}
	b.WriteByte('\n')
	if e.Location != "" {
		fmt.Fprintf(b, "   -> %s\n", visible(e.Location))
	}
}

func writeHandle(b *strings.Builder, s *hdlclient.Step) {
	fmt.Fprintf(b, "%s %s from %s (%s): ", s.Operation, visible(s.Handle), s.Server, s.Transport)
	switch {
	case s.Error != "":
		b.WriteString(visible(s.Error))
	default:
		fmt.Fprintf(b, "%d", s.Response)
		if s.Response == 1 {
			fmt.Fprintf(b, ", %s", count(s.Values, "value"))
		} else {
			fmt.Fprintf(b, ", it says %s", s.Meaning)
		}
		if s.Certified {
			b.WriteString(", certified")
		}
	}
	b.WriteByte('\n')
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// visible returns s with everything that a terminal would act on, or not show,
// written as an escape.
func visible(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			quoted := strconv.Quote(s)
			return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
		}
	}
	return s
}
