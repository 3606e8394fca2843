package foreign

import (
	"encoding/hex"
	"strings"

	"github.com/stele-id/stele"
)

// The kinds of tokens of SQL.
const (
	tokenEnd = iota
	tokenName
	tokenString
	tokenNumber
	tokenHex // octets: 0x..., X'...'
	tokenSign
)

// token is a word of SQL.
type token struct {
	kind   int
	text   []byte
	quoted bool // a name in quotation marks
}

// is reports whether it is a keyword or a sign.
func (t token) is(word string) bool {
	return (t.kind == tokenName && !t.quoted || t.kind == tokenSign) && strings.EqualFold(string(t.text), word)
}

// lexer reads tokens. It knows of SQL what dumps have.
type lexer struct {
	w     *window
	mysql bool // backslashes are escapes in strings
	ansi  bool // of MySQL: what is between double quotes is a name, and not a string
	held  *token
}

func (l *lexer) unexpected(t token, want string) error {
	found := "the end of the file"
	switch t.kind {
	case tokenEnd:
	case tokenString, tokenHex: // it may be a secret
		found = "a string"
	case tokenNumber:
		found = "a number"
	default:
		found = stele.Quote(string(t.text))
	}
	return failf(stele.Invalid, "import.foreign-sql-broken", "{file}, line {line}: {expected} should stand here, not {found}", l.w.name, l.w.line, want, found)
}

// cutOff refuses a file that ends within a statement: the rest of it is missing, and perhaps more.
func (l *lexer) cutOff() error {
	if err := l.w.failure(); err != nil {
		return err
	}
	return failf(stele.Invalid, "import.foreign-sql-statement-cut-off", "{file} is cut off: it ends within a statement, at line {line}; get the rest of it", l.w.name, l.w.line)
}

func (l *lexer) peek() (token, error) {
	if l.held == nil {
		t, err := l.read()
		if err != nil {
			return t, err
		}
		l.held = &t
	}
	return *l.held, nil
}

func (l *lexer) next() (token, error) {
	if l.held != nil {
		t := *l.held
		l.held = nil
		return t, nil
	}
	return l.read()
}

// read reads a token. A lexer must not hold one when lines of COPY are read.
func (l *lexer) read() (token, error) {
	if err := l.space(); err != nil {
		return token{}, err
	}
	w := l.w
	c, ok := w.byte()
	switch {
	case !ok:
		return token{}, w.failure()
	case c == '\'':
		text, err := l.quoted('\'', l.mysql)
		return token{kind: tokenString, text: text}, err
	case c == '"' && l.mysql && !l.ansi:
		text, err := l.quoted('"', true)
		return token{kind: tokenString, text: text}, err
	case c == '"', c == '`':
		text, err := l.quoted(c, false)
		return token{kind: tokenName, text: text, quoted: true}, err
	case c == '$' && !isWord(w.peek()) || c == '$' && !isDigit(w.peek()):
		return l.dollar()
	case isDigit(c), c == '-' && isDigit(w.peek()), c == '.' && isDigit(w.peek()):
		return l.number(c)
	case isWord(c):
		return l.word(c)
	}
	return token{kind: tokenSign, text: []byte{c}}, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == '$' || c >= 0x80
}

// space passes over white space, comments, and lines for psql.
func (l *lexer) space() error {
	w := l.w
	for {
		switch c := w.peek(); {
		case c == ' ', c == '\t', c == '\r', c == '\n', c == 0 && w.pos < len(w.buf):
			w.byte()
		case c == '\\' && !l.mysql:
			w.nextLine()
		case c == '#' && l.mysql:
			w.nextLine()
		case c == '-' && string(w.peekText(2)) == "--":
			w.nextLine()
		case c == '/' && string(w.peekText(2)) == "/*":
			line := w.line
			w.take(2)
			for string(w.peekText(2)) != "*/" {
				if _, ok := w.byte(); !ok {
					if err := w.failure(); err != nil {
						return err
					}
					return failf(stele.Invalid, "import.foreign-sql-comment", "{file}: a comment begins at line {line}, and does not end", w.name, line)
				}
			}
			w.take(2)
		default:
			return nil
		}
	}
}

// collect appends a byte to a token, up to the most that one has.
func (l *lexer) collect(text []byte, c byte) ([]byte, error) {
	if len(text) >= maxLine {
		return nil, failf(stele.Invalid, "import.foreign-sql-too-long", "{file}, line {line}: a value has more than {most} bytes", l.w.name, l.w.line, maxLine)
	}
	return append(text, c), nil
}

// quoted reads up to the closing quotation mark. A mark written twice is one.
func (l *lexer) quoted(mark byte, escapes bool) (text []byte, err error) {
	w := l.w
	line := w.line
	text = []byte{}
	for {
		c, ok := w.byte()
		if !ok {
			if err := w.failure(); err != nil {
				return nil, err
			}
			return nil, failf(stele.Invalid, "import.foreign-sql-string", "{file}: a string begins at line {line}, and does not end", w.name, line)
		}
		switch {
		case c == mark:
			if w.peek() != mark {
				return text, nil
			}
			w.byte()
		case c == '\\' && escapes:
			if c, ok = w.byte(); !ok {
				continue
			}
			if text, err = l.escape(text, c); err != nil {
				return nil, err
			}
			continue
		}
		if text, err = l.collect(text, c); err != nil {
			return nil, err
		}
	}
}

// escape appends what a character after a backslash means. E'...' of PostgreSQL has octal and
// hexadecimal ones too.
func (l *lexer) escape(text []byte, c byte) ([]byte, error) {
	const letters, meanings = "bnrt", "\b\n\r\t"
	switch {
	case strings.IndexByte(letters, c) >= 0:
		c = meanings[strings.IndexByte(letters, c)]
	case l.mysql && c == '0':
		c = 0
	case l.mysql && c == 'Z':
		c = 0x1a
	case l.mysql && (c == '%' || c == '_'):
		text = append(text, '\\')
	case !l.mysql && c == 'f':
		c = '\f'
	case !l.mysql && '0' <= c && c <= '7':
		n := int(c - '0')
		for k := 0; k < 2 && '0' <= l.w.peek() && l.w.peek() <= '7'; k++ {
			d, _ := l.w.byte()
			n = n<<3 | int(d-'0')
		}
		c = byte(n)
	}
	return l.collect(text, c)
}

// dollar passes over a string between $tag$ of PostgreSQL.
func (l *lexer) dollar() (token, error) {
	w := l.w
	tag := []byte{'$'}
	for c := w.peek(); isWord(c) && c != '$' && len(tag) < 100; c = w.peek() {
		w.byte()
		tag = append(tag, c)
	}
	if w.peek() != '$' {
		return token{kind: tokenSign, text: tag}, nil
	}
	w.byte()
	tag = append(tag, '$')
	for string(w.peekText(len(tag))) != string(tag) {
		if _, ok := w.byte(); !ok {
			return token{}, l.cutOff()
		}
	}
	w.take(len(tag))
	return token{kind: tokenString, text: []byte{}}, nil
}

// number reads a number, or 0x and octets.
func (l *lexer) number(c byte) (token, error) {
	w := l.w
	if c == '0' && w.peek()|0x20 == 'x' {
		w.byte()
		text, err := l.run(nil)
		if err != nil {
			return token{}, err
		}
		return l.hex(text)
	}
	text, err := l.run([]byte{c})
	for err == nil && (w.peek() == '.' || (w.peek() == '-' || w.peek() == '+') && text[len(text)-1]|0x20 == 'e') {
		c, _ := w.byte()
		text, err = l.run(append(text, c))
	}
	return token{kind: tokenNumber, text: text}, err
}

// run reads letters and digits.
func (l *lexer) run(text []byte) (_ []byte, err error) {
	for isWord(l.w.peek()) {
		c, _ := l.w.byte()
		if text, err = l.collect(text, c); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func (l *lexer) hex(text []byte) (token, error) {
	b := make([]byte, hex.DecodedLen(len(text)))
	if _, err := hex.Decode(b, text); err != nil {
		return token{}, failf(stele.Invalid, "import.foreign-sql-hex", "{file}, line {line}: octets are not written as hexadecimal digits, two for each byte", l.w.name, l.w.line)
	}
	return token{kind: tokenHex, text: b}, nil
}

// word reads a name, or a string with a mark before it: E'...', X'...', _binary '...'.
func (l *lexer) word(c byte) (token, error) {
	text, err := l.run([]byte{c})
	if err != nil {
		return token{}, err
	}
	w := l.w
	if text[0] == '_' && l.mysql { // a character set
		if err := l.space(); err != nil {
			return token{}, err
		}
		if c := w.peek(); c == '\'' || c == '"' || c == '0' || c|0x20 == 'x' || c|0x20 == 'b' {
			return l.read()
		}
	}
	if w.peek() == '\'' && len(text) == 1 {
		switch text[0] | 0x20 {
		case 'e':
			w.byte()
			text, err := l.quoted('\'', true)
			return token{kind: tokenString, text: text}, err
		case 'x':
			w.byte()
			text, err := l.quoted('\'', false)
			if err != nil {
				return token{}, err
			}
			return l.hex(text)
		case 'b', 'n':
			w.byte()
			text, err := l.quoted('\'', l.mysql)
			return token{kind: tokenString, text: text}, err
		}
	}
	return token{kind: tokenName, text: text}, nil
}
