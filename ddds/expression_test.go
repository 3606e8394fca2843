package ddds

import (
	"errors"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func TestApply(t *testing.T) {
	const cid = `!^urn:cid:.+@([^\.]+\.)(.*)$!\2!i`
	for _, tt := range []struct {
		field, text string
		want        string // "-" if it does not match
	}{
		// RFC 3402, section 3.2: groups are counted by their opening parenthesis.
		{`!(A(B(C)DE)(F)G)!\1!`, "ABCDEFG", "ABCDEFG"},
		{`!(A(B(C)DE)(F)G)!\2!`, "ABCDEFG", "BCDE"},
		{`!(A(B(C)DE)(F)G)!\3!`, "ABCDEFG", "C"},
		{`!(A(B(C)DE)(F)G)!\4!`, "ABCDEFG", "F"},

		// RFC 3403, section 6; RFC 3404, section 5.
		{cid, "urn:cid:199606121851.1@bar.example.com", "example.com"},
		{cid, "URN:CID:199606121851.1@bar.example.com", "example.com"},
		{`!^http://([^/:]+)!\1!i`, "http://www.example.com/software/latest-beta.exe", "www.example.com"},
		{`!^.*$!sip:information@foo.se!i`, "+46-8-9761234", "sip:information@foo.se"},
		{`!^\+46(.*)$!ldap://ldap.telco.se/cn=0\1!`, "+4689761234", "ldap://ldap.telco.se/cn=089761234"},

		// The names layout.
		{`!^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}([.][-_a-z0-9]{1,63})*)$!\3.\2.\1.paradisec.example.!i`,
			"urn:paradisec:AB1:001:A", "A.001.AB1.paradisec.example."},

		// Delimiters, with and without a backslash.
		{`/a\/b/\/x/`, "a/b", "/x"},
		{`/[\/]/x/`, "/", "x"},
		{`/[\/]/x/`, `\`, "-"},
		{`|a\|b|x|`, "a", "-"},
		{`|a\|b|x|`, "a|b", "x"},
		{`.a\.b.x.`, "acb", "-"},
		{`.a\.b.x.`, "a.b", "x"},
		{`#a!b#c!d#`, "a!b", "c!d"},
		{`XabXyX`, "ab", "y"},
		{`!a\\!b!`, `a\`, "b"},
		{`!a!\\1!`, "a", `\1`},
		{`!a!\!!`, "a", "!"},
		{`!(a)!\1\1!`, "xay", "aa"},
		{`!(a)!\10!`, "a", "a0"},
		{`!(a)|(b)!<\1>!`, "b", "<>"},
		{`!a!!`, "a", ""},

		// Leftmost, then longest.
		{`!(a|ab|abc)!\1!`, "xabcd", "abc"},
		{`!(x|xy)(z|yz)?!\1!`, "xyz", "x"},
		{`!(b+|a)!\1!`, "abbb", "a"},
		{`!(.*)!\1!`, "é.b", "é.b"},
		{`!(a{2,3})!\1!`, "aaaa", "aaa"},
		{`!(a{2,})!\1!`, "aaaa", "aaaa"},
		{`!^(a{2})$!\1!`, "aaa", "-"},
		{`!^a{0}b$!x!`, "b", "x"},
		{`!(^a|b$)!\1!`, "ab", "a"},
		{`!a^b!x!`, "ab", "-"},
		{`!a$b!x!`, "ab", "-"},
		{`!a)!x!`, "a)", "x"},
		{`!a}]!x!`, "a}]", "x"},
		{`!\^\.\[\$\(\)\|\*\+\?\{\\\]\}!x!`, `^.[$()|*+?{\]}`, "x"},

		// Brackets.
		{`!^[a\]+$!x!`, `a\a`, "x"},
		{`!^[a\]!x!`, `]`, "-"},
		{`![]a]!x!`, "]", "x"},
		{`![^]a]!x!`, "]a", "-"},
		{`![^]a]!x!`, "b", "x"},
		{`![a-]!x!`, "-", "x"},
		{`![-a]!x!`, "-", "x"},
		{`![--/]!x!`, ".", "x"},
		{`![%--]!x!`, "+", "x"},
		{`![]-a]!x!`, "_", "x"},
		{`![[.a.]]!x!`, "a", "x"},
		{`![[.-.]]!x!`, "-", "x"},
		{`![[.].]]!x!`, "]", "x"},
		{`![[.....]]!x!`, "-", "-"},
		{`![[=a=]b]!x!`, "=", "-"},
		{`![[=a=]b]!x!`, "a", "x"},
		{`![a-[.c.]]!x!`, "b", "x"},
		{`![[:digit:]_]!x!`, "7", "x"},
		{`![[:digit:]_]!x!`, "d", "-"},
		{`![[:alpha:]]!x!`, "é", "-"},
		{`![^[:alpha:]]!x!`, "é", "x"},
		{`![a[]!x!`, "[", "x"},
		{`![^^]!x!`, "^", "-"},
		{`![.*]!x!`, "ab", "-"},
		{`![é-ü]!x!`, "ö", "x"},

		// Case is ASCII's: the Kelvin sign does not match k, nor the long s s.
		{`!^k$!x!i`, "K", "x"},
		{`!^k$!x!i`, "\u212a", "-"},
		{`!^s$!x!i`, "\u017f", "-"},
		{`!^[k-s]$!x!i`, "\u212a", "-"},
		{`!^\u212a$!x!i`, "k", "-"},
		{`!^É$!x!i`, "é", "-"},
		{`!^[^k]$!x!i`, "K", "-"},
		{`!^[^k]$!x!i`, "\u212a", "x"},
		{`!^[[:upper:]]$!x!I`, "q", "x"},
		{`!^[X-b]$!x!i`, "x", "x"},
		{`!^[X-b]$!x!i`, "B", "x"},
		{`!^[X-b]$!x!i`, "c", "-"},
		{`!^a$!x!`, "A", "-"},
		{`!a!x!ii`, "A", "x"},
	} {
		field := strings.ReplaceAll(tt.field, `\u212a`, "\u212a")
		if tt.field == `![[.....]]!x!` { // three dots are not a collating element
			if _, err := ParseExpression(field); err == nil {
				t.Errorf("%s: no error", field)
			}
			continue
		}
		e, err := ParseExpression(field)
		if err != nil {
			t.Errorf("%s: %v", tt.field, err)
			continue
		}
		got, ok, err := e.Apply(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.field, err)
		}
		if !ok {
			got = "-"
		}
		if got != tt.want {
			t.Errorf("%s makes %q of %q, want %q", tt.field, got, tt.text, tt.want)
		}
		if e.String() != field {
			t.Errorf("%s is written as %s", field, e)
		}
	}
}

func TestParseExpressionErrors(t *testing.T) {
	for _, tt := range []struct {
		field  string
		pos    int
		reason string
	}{
		{"", 0, "no expression"},
		{"!", 1, "no second"},
		{"!a", 2, "no second"},
		{"!a!b", 4, "no third"},
		{`!a\!b!c`, 7, "no third"},
		{"!a!b!c", 5, "only i"},
		{"!a!b!i!", 6, "only i"},
		{"1a1b1", 0, "can't be a delimiter"},
		{"0a0b0", 0, "can't be a delimiter"},
		{"iaibi", 0, "can't be a delimiter"},
		{`\a\b\`, 0, "can't be a delimiter"},
		{" a b ", 0, "can't be a delimiter"},
		{"\x00a\x00b\x00", 0, "can't be a delimiter"},
		{"éaébé", 0, "can't be a delimiter"},
		{"urn:paradisec:ab1:001:a", 23, "no second"},

		{"!!b!", 1, "nothing stands here"},
		{"!a|!b!", 3, "nothing stands here"},
		{"!|a!b!", 1, "nothing stands here"},
		{"!a||b!b!", 3, "nothing stands here"},
		{"!()!b!", 2, "nothing stands here"},
		{"!(|a)!b!", 2, "nothing stands here"},
		{"!(a!b!", 1, "not closed"},
		{"!((a)!b!", 1, "not closed"},
		{"!*a!b!", 1, "repeats nothing"},
		{"!a|*!b!", 3, "repeats nothing"},
		{"!(+a)!b!", 2, "repeats nothing"},
		{"!{1}!b!", 1, "repeats nothing"},
		{"!^*!b!", 2, "repeated anchor"},
		{"!$+!b!", 2, "repeated anchor"},
		{"!a**!b!", 3, "repetition of a repetition"},
		{"!a+?!b!", 3, "repetition of a repetition"},
		{"!a{2}{3}!b!", 5, "repetition of a repetition"},
		{"!a{!b!", 2, "not a repetition"},
		{"!a{,3}!b!", 2, "not a repetition"},
		{"!a{x}!b!", 2, "not a repetition"},
		{"!a{1!b!", 2, "not a repetition"},
		{"!a{1,2!b!", 2, "not a repetition"},
		{"!a{1,2,3}!b!", 2, "not a repetition"},
		{"!a{-1}!b!", 2, "not a repetition"},
		{"!a{3,2}!b!", 2, "less than the first"},
		{"!a{256}!b!", 2, "too large"},
		{"!a{1,99999999999999999999}!b!", 2, "too large"},
		{`!\d+!b!`, 1, "does not say what a backslash before 'd'"},
		{`!\-!b!`, 1, "leave it out"},
		{`!(a)\1!b!`, 4, "no back-references"},
		{"!\xff!b!", 1, "not UTF-8"},

		{"![a!b!", 1, "not closed"},
		{"![]!b!", 1, "not closed"},
		{"![^]!b!", 1, "not closed"},
		{"![a-!b!", 1, "not closed"},
		{"![z-a]!b!", 2, "wrong way round"},
		{"![a-c-e]!b!", 5, "begin where another ends"},
		{"![ab-c-d]!b!", 6, "begin where another ends"},
		{"![[:alpha:]-z]!b!", 11, "begin with a class"},
		{"![[=a=]-z]!b!", 7, "begin with an equivalence"},
		{"![a-[:alpha:]]!b!", 4, "class can't end a range"},
		{"![[:word:]]!b!", 2, "not a class"},
		{"![[:alpha]!b!", 2, "class can't end a range"},
		{"![[.ab.]]!b!", 2, "not a collating element"},
		{"![[.hyphen.]]!b!", 2, "not a collating element"},
		{"![[..]]!b!", 2, "must be closed"},

		{`!a!\1!`, 3, "the expression has 0"},
		{`!(a)!\2!`, 5, "the expression has 1"},
		{`!a!\0!`, 3, "means nothing"},
		{`!a!\x!`, 3, "means nothing"},
	} {
		_, err := ParseExpression(tt.field)
		syntax, ok := errors.AsType[*stele.SyntaxError](err)
		if !ok || stele.KindOf(err) != stele.Invalid {
			t.Errorf("%q: error %v, want a syntax error", tt.field, err)
			continue
		}
		if syntax.Pos != tt.pos || !strings.Contains(syntax.Reason.Error(), tt.reason) {
			t.Errorf("%q: %v, want byte %d and %q", tt.field, err, tt.pos, tt.reason)
		}
	}
}

// TestTooLarge tries expressions that would explode.
func TestTooLarge(t *testing.T) {
	for _, field := range []string{
		"!" + strings.Repeat("a", 252) + "!x!",
		"!(a{255}){255}!x!",
		"!((((((a{10}){10}){10}){10}){10}){10})!x!",
		"!((((a{99}){99}){99}){99})!x!",
		"!((a{0}){255}){255}!x!",
		"!((a{10}){10}){11}!x!", // Go's engine would refuse it for its nesting
		"!((a{255}|b{255}){8})!x!",
		"!((((a*)*){100})*){100}!x!",
		"!(" + strings.Repeat("(a{90})", 30) + "){5}!x!",
	} {
		_, err := ParseExpression(field)
		if !errors.Is(err, ErrTooLarge) || stele.KindOf(err) != stele.Exhausted {
			t.Errorf("%.40s: error %v", field, err)
		}
	}
	deep := "!" + strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100) + "!x!"
	if _, err := ParseExpression(deep); err == nil {
		t.Error("a hundred parentheses are taken")
	}
	e, err := ParseExpression("!(.*)!" + strings.Repeat(`\1`, 100) + "!")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := e.Apply(strings.Repeat("a", 100)); !ok || stele.KindOf(err) != stele.Exhausted {
		t.Errorf("10000 bytes of output: %v, %v", ok, err)
	}
}

func TestNewExpression(t *testing.T) {
	for _, tt := range []struct {
		ere, replacement string
		fold             bool
		want             string
		text, output     string
	}{
		{"^" + Quote("urn:paradisec:ab1:001:a") + "$", "http://example.org/a", true,
			"!^urn:paradisec:ab1:001:a$!http://example.org/a!i", "URN:paradisec:AB1:001:A", "http://example.org/a"},
		{"^" + Quote("urn:x:a.b+(c)") + "$", "https://example.org/#!a", false,
			"~^urn:x:a[.]b[+][(]c[)]$~https://example.org/#!a~", "urn:x:a.b+(c)", "https://example.org/#!a"},
		{Quote(`^$[]{}|*?\!-`), "x", false,
			`#\^[$][[]][{]}[|][*][?]\\!-#x#`, `^$[]{}|*?\!-`, "x"},
		{"(.*)", `\1` + QuoteReplacement(`\1`), false, `!(.*)!\1\\1!`, "a", `a\1`},
		{"!#~%,@=&:/'`<>_", "x", false, "A!#~%,@=&:/'`<>_AxA", "!#~%,@=&:/'`<>_", "x"},
	} {
		e, err := NewExpression(tt.ere, tt.replacement, tt.fold)
		if err != nil {
			t.Errorf("%s: %v", tt.ere, err)
			continue
		}
		if e.String() != tt.want {
			t.Errorf("got  %s\nwant %s", e, tt.want)
		}
		if got, ok, err := e.Apply(tt.text); got != tt.output || !ok || err != nil {
			t.Errorf("%s makes %q of %q (%v, %v)", e, got, tt.text, ok, err)
		}
	}
}

// TestNotPortable tries what we read and others do not.
func TestNotPortable(t *testing.T) {
	for ere, reason := range map[string]string{
		"[a-z0-9-]": "[-a-z]", // a syntax error to BIND
		`[a\]`:      "backslash in brackets",
		"[[.a.]]":   "collating symbol",
		"[[=a=]]":   "collating symbol",
		"a)":        "write [)]",
		"a\tb":      "control character",
		"a\x00b":    "control character",
		"":          "nothing stands here",
		"!#~%,@=&:/'`<>_ABCDEFGHJKLMNOPQRSTUVWXYZ": "every character",
	} {
		if _, err := NewExpression(ere, "x", false); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v, want %q", ere, err, reason)
		}
	}
	if _, err := NewExpression("[-a-z0-9_]{1,63}", "x", true); err != nil {
		t.Error(err)
	}
}

// TestClasses holds the classes of characters against what the C standard says of
// them in its own locale, for all of ASCII and one beyond.
func TestClasses(t *testing.T) {
	letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	small, digits, punct := strings.ToLower(letters), "0123456789", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
	var control strings.Builder
	for c := range 32 {
		control.WriteByte(byte(c))
	}
	control.WriteByte(0x7f)
	for name, members := range map[string]string{
		"alnum": letters + small + digits, "alpha": letters + small, "blank": " \t", "cntrl": control.String(),
		"digit": digits, "graph": letters + small + digits + punct, "lower": small,
		"print": letters + small + digits + punct + " ", "punct": punct, "space": " \t\n\v\f\r",
		"upper": letters, "xdigit": digits + "ABCDEFabcdef",
	} {
		e, err := ParseExpression("!^[[:" + name + ":]]$!x!")
		if err != nil {
			t.Fatal(err)
		}
		for c := range rune(0x81) {
			if _, ok, _ := e.Apply(string(c)); ok != strings.ContainsRune(members, c) {
				t.Errorf("%q in %s: %v", c, name, ok)
			}
		}
	}
}
