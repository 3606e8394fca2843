package stele

import (
	"errors"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with a document.
type Problem struct {
	Path string // where, as in the JSON form: targets[2].url; "" for all of it
	Err  error  // what is wrong there and what would be right
}

// Error puts the path before the reason.
func (p Problem) Error() string {
	if p.Path == "" {
		return p.Err.Error()
	}
	return p.Path + ": " + p.Err.Error()
}

// Unwrap returns the reason: a [SyntaxError] where an identifier is wrong.
func (p Problem) Unwrap() error { return p.Err }

// Problems are all that is wrong with a document, in the order of finding. They
// stand inside an [Error] of Kind [Invalid]. Like what errors.Join makes they
// unwrap to a list; unlike it they print on one line.
type Problems []Problem

// Error puts all problems on one line.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i, problem := range p {
		texts[i] = problem.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the problems as errors.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, problem := range p {
		errs[i] = problem
	}
	return errs
}

// maxProblems bounds how many problems are reported: a hostile document could have a
// million.
const maxProblems = 100

// Report collects the problems of a document, for code that reads or validates one. Its zero
// value is ready, and costs nothing as long as there is no problem.
type Report struct {
	list Problems
	more int // how many are not in the list
}

// Addf adds a problem that is made by [Messagef]; see Add.
func (r *Report) Addf(path, code, text string, args ...any) {
	if r.IsFull() {
		r.more++
		return
	}
	r.Add(path, Messagef(code, text, args...))
}

// Add adds a problem, unless its path or one above it has one already: a field that could not
// be read is not also missing. Of a parser's error it takes the [SyntaxError] alone.
func (r *Report) Add(path string, err error) {
	for _, p := range r.list {
		if rest, ok := strings.CutPrefix(path, p.Path); ok && (rest == "" || p.Path != "" && (rest[0] == '.' || rest[0] == '[')) {
			return
		}
	}
	if syntax, ok := errors.AsType[*SyntaxError](err); ok {
		err = syntax
	}
	r.Append(path, err)
}

// Append adds a problem even where there is one already.
func (r *Report) Append(path string, err error) {
	if r.IsFull() {
		r.more++
		return
	}
	r.list = append(r.list, Problem{path, err})
}

// Count counts a problem that is not listed, since the report is full.
func (r *Report) Count() { r.more++ }

// IsFull reports whether further problems are only counted.
func (r *Report) IsFull() bool { return len(r.list) >= maxProblems }

// Problems returns what is in the report.
func (r *Report) Problems() Problems { return r.list }

// Err returns all problems as one error of Kind Invalid, nil if there is none.
func (r *Report) Err(op string, id ID) error {
	if len(r.list) == 0 {
		return nil
	}
	list := r.list
	if r.more > 0 {
		list = append(list, Problem{"", Messagef("problem.more-not-listed", "and {count} more problems", r.more)})
	}
	return &Error{Op: op, ID: id, Kind: Invalid, Err: list}
}

// FieldPath joins a field's name to the path of what it stands in.
func FieldPath(path, name string) string {
	if !isPlainName(name) {
		return path + "[" + Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// ItemPath returns the path of an item of a list.
func ItemPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// isPlainName reports whether a name can stand in a path without quotation marks.
func isPlainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !isLetter(c) && !isDigit(c) && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// Quote quotes the beginning of a text, so that a message stays short and no
// control character of the text reaches a terminal or a log.
func Quote(text string) string {
	const most = 60
	runes := 0
	for i := range text {
		if runes++; runes > most {
			return strconv.Quote(text[:i]) + "..."
		}
	}
	return strconv.Quote(text)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
