package stele

import (
	"fmt"
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

// maxProblems is how many problems are told. More help nobody, and a hostile
// document could have a million.
const maxProblems = 100

// faults collects problems. Its zero value is ready, and costs nothing as long as
// there is no problem.
type faults struct {
	list Problems
	more int // how many are not in the list
}

// addf adds a problem. What is below a path that already has one is not added:
// a field that could not be read is not also missing.
func (f *faults) addf(path, format string, args ...any) {
	if f.full() {
		f.more++
		return
	}
	f.add(path, fmt.Errorf(format, args...))
}

func (f *faults) add(path string, err error) {
	for _, p := range f.list {
		if rest, ok := strings.CutPrefix(path, p.Path); ok && (rest == "" || p.Path != "" && (rest[0] == '.' || rest[0] == '[')) {
			return
		}
	}
	f.append(path, err)
}

// append adds a problem whatever there is already.
func (f *faults) append(path string, err error) {
	if f.full() {
		f.more++
		return
	}
	f.list = append(f.list, Problem{path, err})
}

// full reports whether further problems are only counted.
func (f *faults) full() bool { return len(f.list) >= maxProblems }

// err returns all problems as one error, nil if there is none.
func (f *faults) err(op string, id ID) error {
	if len(f.list) == 0 {
		return nil
	}
	list := f.list
	if f.more > 0 {
		list = append(list, Problem{"", fmt.Errorf("and %d more problems", f.more)})
	}
	return &Error{Op: op, ID: id, Kind: Invalid, Err: list}
}

// within joins a field's name to the path of what it stands in.
func within(path, name string) string {
	if !isPlainName(name) {
		return path + "[" + brief(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// item returns the path of an item of a list.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

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

// brief quotes the beginning of a text, so that a message stays short and no
// control character of the text reaches a terminal or a log.
func brief(text string) string {
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
