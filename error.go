package stele

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Kind classifies a failure. It alone decides a protocol's status code: each
// server maps Kinds to its own codes in one table. A Kind is itself an error,
// so errors.Is(err, stele.NotFound) asks what kind err is of.
type Kind uint8

// The zero Kind is Internal: a failure without a class is a bug.
const (
	Internal        Kind = iota // a fault of this program
	Invalid                     // the input can't be right; repeating it won't help
	NotFound                    // no such thing is registered
	Gone                        // it was there, and was withdrawn
	Conflict                    // it is not in the state the caller thinks
	Forbidden                   // the caller is authenticated and lacks the right
	Unauthenticated             // the caller must authenticate
	Exhausted                   // a limit or a name space is used up
	Unavailable                 // try again later
)

var kindNames = [...]string{
	Internal:        "internal",
	Invalid:         "invalid",
	NotFound:        "not found",
	Gone:            "gone",
	Conflict:        "conflict",
	Forbidden:       "forbidden",
	Unauthenticated: "unauthenticated",
	Exhausted:       "exhausted",
	Unavailable:     "unavailable",
}

// String returns the kind's name, such as "not found".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Error makes a Kind an error, the target of errors.Is.
func (k Kind) Error() string { return k.String() }

// KindOf returns the kind of the outermost [Error] in err's chain, and Internal
// for an error that has none. It must not be called with nil.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Error is the one error type of the module.
type Error struct {
	Op   string // what was tried: "parse", "mint"
	ID   ID     // on what; zero where there is no identifier (yet)
	Kind Kind
	Err  error // why, and what to do; may be nil
}

// Error puts operation, identifier and reason on one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
	}
	if e.ID.IsValid() {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.ID.String())
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString(e.Kind.String())
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is e's Kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Errorf returns an [Error] of a kind whose reason is made by [Messagef].
func Errorf(op string, id ID, kind Kind, code, text string, args ...any) error {
	return &Error{Op: op, ID: id, Kind: kind, Err: Messagef(code, text, args...)}
}

// AsError returns err if it is, or wraps, an [Error], and otherwise an Error about op that
// wraps err: of Kind [Unavailable] if a context ended, so that the caller may try again, else
// of Kind [Internal]. It returns nil for nil.
func AsError(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	kind := Internal
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		kind = Unavailable
	}
	return &Error{Op: op, Kind: kind, Err: err}
}

// Reason returns why something failed: an error without what was tried on what. It is for a
// text that says that already.
func Reason(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

// SyntaxError says why a text is not an identifier. It stands inside an [Error] of
// Kind [Invalid].
type SyntaxError struct {
	Scheme string   // the scheme whose grammar the text breaks; "" if none claims it
	Pos    int      // byte offset of the trouble in the text as it was given
	Reason *Message // what is wrong there and what would be right; not nil

	// Suggestions are identifiers, in canonical form, that one wrong or two
	// swapped characters turn into the text: what its writer may have meant.
	// They are offered only where a check digit tells which are right.
	Suggestions []string
}

// Error names scheme, position and reason.
func (e *SyntaxError) Error() string {
	if e.Scheme == "" {
		return fmt.Sprintf("at byte %d: %s", e.Pos, e.Reason)
	}
	return fmt.Sprintf("%s: at byte %d: %s", e.Scheme, e.Pos, e.Reason)
}

// Unwrap returns the reason.
func (e *SyntaxError) Unwrap() error { return e.Reason }

// Invalidf makes the error of a parser: text breaks the scheme's grammar at byte
// offset pos, for the reason given as in [Messagef].
func Invalidf(scheme string, pos int, code, text string, args ...any) error {
	return &Error{
		Op:   "parse",
		Kind: Invalid,
		Err:  &SyntaxError{Scheme: scheme, Pos: pos, Reason: Messagef(code, text, args...)},
	}
}
