package stele

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Message says what is wrong, to people and to programs. Its code and its parameters
// are stable, so that a program can tell problems apart and a page can say the same
// in another language; the English text may be improved. A Message is the Err of an
// [Error] or of a [Problem].
type Message struct {
	Code   string // lower case with dots and hyphens: "target.host-not-allowed"
	Params []Param
	Err    error // the cause, for errors.Is; may be nil

	text    string // English, with {name} where a parameter stands
	literal bool   // the text has its parameters in it already
}

// Param is a named parameter of a [Message].
type Param struct{ Name, Value string }

// Messagef makes a Message. In the text, {name} stands for the parameter of that
// name. The parameters are given as names and values in turn. A value is shown
// without control characters, and cut after 200 characters; Params has all of it.
func Messagef(code, text string, params ...string) *Message {
	m := &Message{Code: code, text: text}
	for pair := range slices.Chunk(params, 2) {
		if len(pair) == 2 {
			m.Params = append(m.Params, Param{pair[0], pair[1]})
		}
	}
	return m
}

// ReceivedMessage returns a message that another program made: the text has its
// parameters in it already.
func ReceivedMessage(code, text string, params []Param) *Message {
	return &Message{Code: code, Params: params, text: text, literal: true}
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
	if m.literal {
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
		b.WriteString(shown(m.Params[at].Value))
		rest = after
	}
}

// shown returns a parameter as a message shows it: on one line, without characters
// that a terminal or a log would obey, and not endless.
func shown(value string) string {
	const most = 200
	var b strings.Builder
	count := 0
	for _, r := range value {
		if count++; count > most {
			b.WriteString("...")
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// CodeOf returns the code and the parameters of the outermost [Message] in err's
// chain; "" if there is none.
func CodeOf(err error) (code string, params []Param) {
	if m, ok := errors.AsType[*Message](err); ok {
		return m.Code, m.Params
	}
	return "", nil
}
