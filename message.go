package stele

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Message says what is wrong, to people and to programs. Its code and its parameters
// are stable, so that a program can tell problems apart and a page can say the same
// in another language; the English text may be improved. A Message is the Err of an
// [Error] or of a [Problem].
type Message struct {
	Code   string // lower case with dots and hyphens: "target.host-not-allowed"; "" if the text only adds a place to the cause
	Params []Param
	Err    error // the cause, or several joined, for errors.Is; may be nil

	text    string // English, with {name} where a parameter stands
	literal bool   // the text has its parameters in it already
}

// Param is a named parameter of a [Message].
type Param struct{ Name, Value string }

// Messagef makes a Message. In the text, {name} stands for a parameter: a name in lower case
// with digits and hyphens. The arguments are the values of the parameters in the order in which
// their names first appear. A value is shown without control characters and is cut after 500
// characters; Params has all of it. An argument that is an error becomes the cause, as with %w
// of [fmt.Errorf], and is shown whole.
func Messagef(code, text string, args ...any) *Message {
	m := &Message{Code: code, text: text}
	var causes []error
	for name := range placeholders(text) {
		if len(args) == 0 {
			break
		}
		if slices.ContainsFunc(m.Params, func(p Param) bool { return p.Name == name }) {
			continue
		}
		value := args[0]
		args = args[1:]
		if err, ok := value.(error); ok {
			causes = append(causes, err)
		}
		m.Params = append(m.Params, Param{name, valueText(value)})
	}
	switch len(causes) {
	case 0:
	case 1:
		m.Err = causes[0]
	default:
		m.Err = errors.Join(causes...)
	}
	return m
}

// placeholders returns the names in braces of a message's text, in their order.
func placeholders(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			_, rest, open := strings.Cut(text, "{")
			if !open {
				return
			}
			name, after, closed := strings.Cut(rest, "}")
			if !closed || !isParameter(name) {
				text = rest
				continue
			}
			if !yield(name) {
				return
			}
			text = after
		}
	}
}

// isParameter reports whether a text in braces names a parameter.
func isParameter(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || i > 0 && (isDigit(c) || c == '-')) {
			return false
		}
	}
	return name != ""
}

// valueText returns a parameter's value as a text.
func valueText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int:
		return strconv.Itoa(v)
	case error:
		return v.Error()
	}
	return fmt.Sprint(value)
}

// ReceivedMessage returns a message that another program made: the text has its
// parameters in it already.
func ReceivedMessage(code, text string, params []Param) *Message {
	return &Message{Code: code, Params: params, text: text, literal: true}
}

// With returns the message with another parameter, which its text does not show.
func (m *Message) With(name string, value any) *Message {
	c := *m
	c.Params = append(slices.Clip(m.Params), Param{name, valueText(value)})
	return &c
}

// Because returns the message with its cause.
func (m *Message) Because(err error) *Message {
	c := *m
	c.Err = err
	return &c
}

// Unwrap returns the cause.
func (m *Message) Unwrap() error { return m.Err }

// Error returns the English text with its parameters. A name in braces that is not a
// parameter stays as it is.
func (m *Message) Error() string {
	if m.literal || len(m.Params) == 0 {
		return m.text
	}
	var b strings.Builder
	for rest := m.text; ; {
		before, name, open := strings.Cut(rest, "{")
		b.WriteString(before)
		if !open {
			return b.String()
		}
		name, after, closed := strings.Cut(name, "}")
		at := slices.IndexFunc(m.Params, func(p Param) bool { return p.Name == name })
		if !closed || at < 0 {
			b.WriteByte('{')
			rest = rest[len(before)+1:]
			continue
		}
		most := maxShown
		if m.Err != nil && (name == causeParam || name == problemParam) {
			most = maxShownCause
		}
		writeShown(&b, m.Params[at].Value, most)
		rest = after
	}
}

// How many characters a message shows of a parameter, and of one that is an error.
const (
	maxShown      = 500
	maxShownCause = 10_000
)

// The names of parameters that are errors: the cause, and where there are two the kind of
// problem, which a program can ask for with errors.Is.
const (
	causeParam   = "cause"
	problemParam = "problem"
)

// writeShown writes a parameter as a message shows it: on one line, without characters that
// a terminal or a log would obey, and not endless.
func writeShown(b *strings.Builder, value string, most int) {
	for count := 0; value != ""; count++ {
		if count == most {
			b.WriteString("...")
			return
		}
		r, size := utf8.DecodeRuneInString(value)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(b, `\x%02x`, value[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		value = value[size:]
	}
}

// CodeOf returns the code and the parameters of the outermost [Message] in err's tree that
// has a code; "" if there is none. A message without a code only says where its cause
// happened.
func CodeOf(err error) (code string, params []Param) {
	for err != nil {
		m, ok := errors.AsType[*Message](err)
		if !ok {
			break
		}
		if m.Code != "" {
			return m.Code, m.Params
		}
		err = m.Err
	}
	return "", nil
}
