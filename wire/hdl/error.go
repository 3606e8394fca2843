package hdl

import (
	"fmt"
	"strings"
)

// Error says what is wrong with octets that were read, or with a key, an answer or a credential. It is
// the only error of this package. Code and Args are stable, as those of stele.Message, which this
// package does not know; text is English and may be improved.
type Error struct {
	Response ResponseCode // the response code that fits: 4, 2, 102, 202, 403, 404, ...
	Code     string       // which problem it is: "hdl.short"
	Text     string       // English, with {name} where a parameter stands
	Args     []any        // the parameters, in the order in which their names first appear
}

// errorf makes an Error.
func errorf(response ResponseCode, code, text string, args ...any) *Error {
	return &Error{response, code, text, args}
}

// Error returns the text with its parameters.
func (e *Error) Error() string {
	var b strings.Builder
	rest, args := e.Text, e.Args
	for {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		_, tail, closed := strings.Cut(after, "}")
		if !found || !closed || len(args) == 0 {
			return b.String()
		}
		fmt.Fprint(&b, args[0])
		rest, args = tail, args[1:]
	}
}

// Is reports whether the target is an Error with the same code, whatever its parameters are.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}
