package apijson

import (
	"maps"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Problem is an error of the API (RFC 9457). The client makes a [stele.Error] of it again:
// operation, identifier, detail, and the kind that belongs to the type or else to the
// status.
type Problem struct {
	Type      string `json:"type" doc:"What kind of failure it is. It never changes, and leads to its description." example:"/api/v1#conflict"`
	Title     string `json:"title" doc:"The same in words."`
	Status    int    `json:"status" doc:"The status of the answer." minimum:"400" maximum:"599"`
	Detail    string `json:"detail,omitempty" doc:"What is wrong here, and what to do."`
	Operation string `json:"operation,omitempty" doc:"What was tried."`
	ID        string `json:"identifier,omitempty" doc:"On what, in canonical form."`
	Request   string `json:"request,omitempty" doc:"Id of the request, which the operator of the server finds in the log; also in the header X-Request-Id." example:"4bf92f3577b34da6"`
	Coded
	Problems []Fault `json:"problems,omitempty" doc:"All that is wrong with a document, if that is what is wrong."`
}

// Fault is one thing that is wrong with a document.
type Fault struct {
	Path   string `json:"path" doc:"Where, as in targets[2].url; empty for the whole document."`
	Detail string `json:"detail" doc:"What is wrong there, and what would be right."`
	Coded
}

// Coded is the part of a problem that does not depend on the language of its text.
type Coded struct {
	Code       string            `json:"code,omitempty" doc:"Which problem it is, for programs and for translations. It never changes." example:"target.host-not-allowed"`
	Parameters map[string]string `json:"parameters,omitempty" doc:"What the text names, by the names that belong to the code."`
}

// CodedOf returns the code and the parameters of an error.
func CodedOf(err error) Coded {
	code, params := stele.CodeOf(err)
	c := Coded{Code: code}
	if len(params) > 0 {
		c.Parameters = make(map[string]string, len(params))
		for _, p := range params {
			c.Parameters[p.Name] = Legible(p.Value)
		}
	}
	return c
}

// Message returns a text as a message, with the code if there is one.
func (c Coded) Message(text string) *stele.Message {
	var params []stele.Param
	for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
		params = append(params, stele.Param{Name: name, Value: c.Parameters[name]})
	}
	m := stele.ReceivedMessage(c.Code, Legible(text), params)
	if c.Code == "restored" {
		return m.Because(stele.ErrRestored)
	}
	return m
}

// FaultsOf returns the JSON form of problems.
func FaultsOf(problems stele.Problems) (list []Fault) {
	for _, p := range problems {
		list = append(list, Fault{Legible(p.Path), Legible(p.Err.Error()), CodedOf(p.Err)})
	}
	return list
}

// ProblemsOf returns the problems that FaultsOf was called with, as far as JSON keeps them.
func ProblemsOf(faults []Fault) (list stele.Problems) {
	for _, f := range faults {
		list = append(list, stele.Problem{Path: Legible(f.Path), Err: f.Message(f.Detail)})
	}
	return list
}

// kindNames are the kinds of failure as the type of a Problem names them, after the #. They
// never change.
var kindNames = [...]string{
	stele.Internal:        "internal",
	stele.Invalid:         "invalid",
	stele.NotFound:        "not-found",
	stele.Gone:            "gone",
	stele.Conflict:        "conflict",
	stele.Forbidden:       "forbidden",
	stele.Unauthenticated: "unauthenticated",
	stele.Exhausted:       "exhausted",
	stele.Unavailable:     "unavailable",
}

// PreconditionFailed is the name of a type of a Problem: a record or a namespace has another
// version than the request names. The status decides about failures of HTTP that have no
// kind.
const PreconditionFailed = "precondition-failed"

// KindName returns the name of a kind in the type of a Problem.
func KindName(kind stele.Kind) string {
	if int(kind) < len(kindNames) {
		return kindNames[kind]
	}
	return kindNames[stele.Internal]
}

// TypeName returns the name in the type of the problem.
func (p *Problem) TypeName() string {
	_, name, _ := strings.Cut(p.Type, "#")
	return name
}

// Kind returns the kind of failure that the type of the problem names; false if it names
// none.
func (p *Problem) Kind() (stele.Kind, bool) {
	name := p.TypeName()
	if name == PreconditionFailed {
		return stele.Conflict, true
	}
	i := slices.Index(kindNames[:], name)
	return stele.Kind(max(i, 0)), i >= 0
}

// Legible returns a text without control characters and without broken characters: it may
// come from a peer, and goes to a terminal or a log.
func Legible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
