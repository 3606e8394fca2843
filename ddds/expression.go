package ddds

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/stele-id/stele"
)

// maxField is the size of the longest field of a NAPTR record: each is a
// character-string of the DNS (RFC 3403, section 4.1; RFC 1035, section 3.3).
const maxField = 255

// maxOutput is the size of the longest text that an expression may give. It is
// more than any name or URL that is taken.
const maxOutput = stele.MaxText

// Expression is a substitution expression (RFC 3402, section 3.2): an extended regular
// expression of POSIX and what to make of what it matches. It can't be changed, and is used
// by many goroutines at once.
//
// It is compiled when it is first applied and stays so: a caller that keeps a rule saves
// that work.
type Expression struct {
	text  string // as in the field; "" for the thesis's
	ere   ere
	repl  []piece
	whole bool // it must match the whole of the text, as in the thesis

	compile sync.Once
	direct  *direct        // if the expression is so simple,
	re      *regexp.Regexp // or else
	err     error
}

// piece is a part of a replacement: literal text, or else what a group matched.
type piece struct {
	text  string
	group int // from 1 to 9; 0 for text
}

// ParseExpression reads the regexp field of a NAPTR record:
//
//	delimiter ERE delimiter replacement delimiter flags
//
// The delimiter is any printing character of ASCII except digits, i and the
// backslash; elsewhere in the expression it has a backslash before it and stands
// for itself then. In the replacement, \1 to \9 are what the groups of the ERE
// matched, and \\ is a backslash. The only flag is i: the case of ASCII letters
// does not count.
//
// Errors are of Kind Invalid and tell the position, or of Kind Exhausted with
// [ErrTooLarge] in them.
func ParseExpression(field string) (*Expression, error) {
	if len(field) > maxField {
		return nil, tooLarge("rule.field-too-long", "the field has {size} bytes; {most} are the most", len(field), maxField)
	}
	if field == "" {
		return nil, stele.Invalidf("regexp", 0, "expression.missing", "there is no expression")
	}
	delim := field[0]
	if !isDelimiter(delim) {
		return nil, stele.Invalidf("regexp", 0, "expression.delimiter-invalid", "'{delimiter}' can't be a delimiter; use one such as !, that is neither a digit, i nor a backslash", string(rune(delim)))
	}
	second, ok := nextDelimiter(field, 1)
	if !ok {
		return nil, stele.Invalidf("regexp", len(field), "expression.second-delimiter-missing", "the expression has no second '{delimiter}'; it is %[1]c ERE %[1]c replacement %[1]c", string(rune(delim)))
	}
	third, ok := nextDelimiter(field, second+1)
	if !ok {
		return nil, stele.Invalidf("regexp", len(field), "expression.third-delimiter-missing", "the expression has no third '{delimiter}'; it is %[1]c ERE %[1]c replacement %[1]c", string(rune(delim)))
	}
	fold := false
	for i := third + 1; i < len(field); i++ {
		if field[i]|0x20 != 'i' {
			return nil, stele.Invalidf("regexp", i, "expression.flag-unknown", "'{character}' is not a flag of an expression; only i is, and '{delimiter}' in the text needs a backslash", string(rune(field[i])), string(rune(delim)))
		}
		fold = true
	}
	e := &Expression{text: field}
	var err error
	if e.ere, err = parseERE(field[1:second], delim, fold, 1); err != nil {
		return nil, err
	}
	e.repl, err = parseReplacement(field[second+1:third], delim, e.ere.groups, second+1)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// tooLarge makes an error of Kind Exhausted.
func tooLarge(code, text string, args ...any) error {
	return &stele.Error{Op: "parse", Kind: stele.Exhausted, Err: stele.Messagef("", "{problem}: {cause}", ErrTooLarge, stele.Messagef(code, text, args...))}
}

// isDelimiter reports whether c may delimit. Letters may, except the flag.
func isDelimiter(c byte) bool {
	return '!' <= c && c <= '~' && !isDigit(c) && c|0x20 != 'i' && c != '\\'
}

// nextDelimiter finds the first delimiter from pos on that has no backslash before
// it. It does not know of brackets: neither does the RFC.
func nextDelimiter(field string, pos int) (int, bool) {
	for ; pos < len(field); pos++ {
		switch field[pos] {
		case '\\':
			pos++
		case field[0]:
			return pos, true
		}
	}
	return 0, false
}

// parseReplacement reads the replacement, which stands at offset in its field.
func parseReplacement(text string, delim byte, groups, offset int) (list []piece, err error) {
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			list = append(list, piece{text: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			literal.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return nil, stele.Invalidf("regexp", offset+i-1, "expression.backslash-at-end", "nothing follows the backslash")
		}
		switch c := text[i]; {
		case c == '\\', c == delim:
			literal.WriteByte(c)
		case '1' <= c && c <= '9':
			group := int(c - '0')
			if group > groups {
				return nil, stele.Invalidf("regexp", offset+i-1, "expression.group-missing", "\\{group} stands for a group that is not there; the expression has {groups}", group, groups)
			}
			flush()
			list = append(list, piece{group: group})
		default:
			return nil, stele.Invalidf("regexp", offset+i-1, "expression.replacement-escape-unknown", "a backslash before '{character}' means nothing; \\1 to \\9 are groups, and \\\\ is a backslash", string(rune(c)))
		}
	}
	flush()
	return list, nil
}

// NewExpression puts together an expression from an ERE and a replacement, in
// which \1 to \9 stand for groups. Literal text is made fit for them with [Quote]
// and [QuoteReplacement]. It chooses a delimiter that occurs in neither, ! if it
// can.
//
// Beside what ParseExpression refuses it refuses what some name servers do not
// load or read as something else, such as a hyphen at the end of brackets. The
// error says what to write.
func NewExpression(ere, replacement string, fold bool) (*Expression, error) {
	const delimiters = "!#~%,@=&:/'`<>_" + "ABCDEFGHJKLMNOPQRSTUVWXYZ"
	delim := strings.IndexFunc(delimiters, func(r rune) bool {
		return strings.IndexByte(ere, byte(r)) < 0 && strings.IndexByte(replacement, byte(r)) < 0
	})
	if delim < 0 {
		return nil, stele.Invalidf("regexp", 0, "expression.no-delimiter-free", "every character that could delimit the expression occurs in it")
	}
	d := delimiters[delim : delim+1]
	field := d + ere + d + replacement + d
	if fold {
		field += "i"
	}
	e, err := ParseExpression(field)
	if err == nil {
		err = e.portable()
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// portable refuses what some name servers refuse or misread.
func (e *Expression) portable() error {
	switch {
	case e.whole:
		return stele.Invalidf("regexp", 0, "expression.pattern-alone", "a pattern alone is not an expression; write !^pattern$!replacement!")
	case strings.IndexFunc(e.text, unicode.IsControl) >= 0:
		return stele.Invalidf("regexp", 0, "expression.control-character", "a control character; leave it out")
	case e.ere.quirk != "":
		return &stele.Error{Op: "write", Kind: stele.Invalid, Err: stele.Messagef("expression.not-portable", "regexp: not all name servers take this expression: {reason}", e.ere.quirk)}
	}
	return nil
}

// parsePattern reads the thesis's form: a pattern alone in the regexp field, which
// must match the whole text, and what to make of it in the replacement field. Case
// does not count: the thesis's namespaces ignore it, and its rules are written in
// lower case for names in any.
func parsePattern(pattern, replacement string) (*Expression, error) {
	if len(pattern) > maxField {
		return nil, tooLarge("rule.field-too-long", "the field has {size} bytes; {most} are the most", len(pattern), maxField)
	}
	parsed, err := parseERE(pattern, 0, true, 0)
	if err != nil {
		return nil, err
	}
	repl, err := parseReplacement(replacement, 0, parsed.groups, 0)
	if err != nil {
		return nil, err
	}
	return &Expression{ere: parsed, repl: repl, whole: true}, nil
}

// String returns the expression as it stands in the regexp field.
func (e *Expression) String() string { return e.text }

// Apply matches the expression with text and returns what the replacement makes of it; ok
// is false if it does not match. Of several matches it takes the leftmost, and of those the
// longest. What stands before and after the match is not part of the output, as in the
// examples of RFC 3404.
//
// The error is of Kind Exhausted if the output is longer than any that could be used.
func (e *Expression) Apply(text string) (output string, ok bool, err error) {
	e.compile.Do(e.prepare)
	if e.err != nil {
		return "", false, e.err
	}
	match := e.match(text)
	if match == nil {
		return "", false, nil
	}
	if len(e.repl) == 1 && e.repl[0].group == 0 {
		return e.repl[0].text, true, nil
	}
	var b strings.Builder
	for _, p := range e.repl {
		part := p.text
		if p.group > 0 {
			part = "" // a group that took no part
			if from := match[2*p.group]; from >= 0 {
				part = text[from:match[2*p.group+1]]
			}
		}
		if b.Len()+len(part) > maxOutput {
			return "", true, &stele.Error{Op: "apply", Kind: stele.Exhausted,
				Err: stele.Messagef("expression.output-too-large", "the output of the expression has more than {most} bytes", maxOutput)}
		}
		b.WriteString(part)
	}
	return b.String(), true, nil
}

// prepare compiles the expression. What parseERE lets pass compiles.
func (e *Expression) prepare() {
	if e.direct = newDirect(&e.ere, e.whole); e.direct != nil {
		return
	}
	if e.re, e.err = regexp.Compile(e.ere.translate(e.whole)); e.err != nil {
		e.err = &stele.Error{Op: "compile", Kind: stele.Internal, Err: e.err}
		return
	}
	e.re.Longest()
}

// match returns where the expression and its groups match, in pairs, -1 for a group
// that took no part; nil if it does not match.
func (e *Expression) match(text string) []int {
	if e.direct != nil {
		return e.direct.match(text)
	}
	return e.re.FindStringSubmatchIndex(text)
}

// work is about how many steps it takes to apply the expression to a text.
func (e *Expression) work(text string) int {
	const compiling = 64 // steps that a step takes to be compiled
	return e.ere.cost.size * (len(text) + compiling)
}
