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
// their names first appear. A value is cut after 500 characters, an error's text after 10,000,
// so that a message never holds a whole request; values are shown without control characters.
// An argument that is an error becomes the cause, as with %w of [fmt.Errorf].
func Messagef(code, text string, args ...any) *Message {
	m := &Message{Code: code, text: text}
	var within []error
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
			within = append(within, err)
		}
		m.Params = append(m.Params, Param{name, valueText(value)})
	}
	switch len(within) {
	case 0:
	case 1:
		m.Err = within[0]
	default:
		m.Err = errors.Join(within...)
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

// How many characters a parameter has at most, and one that is an error.
const (
	maxValue = 500
	maxCause = 10_000
)

// valueText returns a parameter's value as a text.
func valueText(value any) string {
	switch v := value.(type) {
	case string:
		return cut(v, maxValue)
	case []byte:
		return cut(string(v[:min(len(v), utf8.UTFMax*maxValue+1)]), maxValue)
	case int:
		return strconv.Itoa(v)
	case error:
		return cut(v.Error(), maxCause)
	}
	return cut(fmt.Sprint(value), maxValue)
}

// cut returns text, of which no more than the first characters are kept. The rest of what is
// cut can be forgotten: the value does not share its memory.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	count := 0
	for at := range text {
		if count == most {
			return text[:at] + "..."
		}
		count++
	}
	return text
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
	return m.fill(m.text, func(p Param) string { return p.Value })
}

// Translate returns another text, "" for the message's own, with the message's parameters.
// Where a parameter is an error, such as the cause or a message within the message, cause says it.
func (m *Message) Translate(text string, cause func(error) string) string {
	if text == "" {
		if m.literal {
			return m.text
		}
		text = m.text
	}
	return m.fill(text, func(p Param) string {
		for _, err := range causes(m.Err) {
			if p.Value == valueText(err) {
				return cause(err)
			}
		}
		return p.Value
	})
}

// causes returns the errors that are parameters of a message, of which err is made.
func causes(err error) []error {
	if err == nil {
		return nil
	}
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = append(list, joined.Unwrap()...)
	}
	return list
}

// fill returns a text with parameters.
func (m *Message) fill(text string, value func(Param) string) string {
	var b strings.Builder
	for rest := text; ; {
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
		writeShown(&b, value(m.Params[at]))
		rest = after
	}
}

// writeShown writes a parameter as a message shows it: on one line, without characters that
// a terminal or a log would obey.
func writeShown(b *strings.Builder, value string) {
	for value != "" {
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
