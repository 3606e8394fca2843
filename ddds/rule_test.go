package ddds

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele"
	"pgregory.net/rapid"
)

func TestParseFlag(t *testing.T) {
	for text, want := range map[string]Flag{
		"": FlagNone, "s": FlagSRV, "S": FlagSRV, "A": FlagAddress, "u": FlagURI, "P": FlagProtocol,
		"DIS:A": FlagDisA, "dis:aaaa": FlagDisAAAA, "DIS:AAA": FlagDisAAAA, "DIS:SRV": FlagDisSRV,
		"Dis:Url": FlagDisURL, "DIS:NAPTR": FlagDisNAPTR,
		"RES:http": "RES:http", "RES:FTP": "RES:ftp", "res:Rtsp": "RES:rtsp", "RES:z39-50": "RES:z39-50",
	} {
		if got, err := ParseFlag(text); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
		if again, err := ParseFlag(string(want)); again != want || err != nil {
			t.Errorf("%q is not canonical: %q, %v", want, again, err)
		}
	}
	for _, text := range []string{"x", "h", "su", "s ", "1", ":", "DIS:", "DIS:MX", "RES:", "RES:-", "RES:80", "RES:a b",
		"RES:a--b", "RES:abcdefghijklmnop", "XYZ:http", "RES", "DIS:\x1b[31m", "RES:http\x00", "ſ"} {
		_, err := ParseFlag(text)
		if stele.KindOf(err) != stele.Invalid || strings.ContainsAny(err.Error(), "\x00\x1b") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFlagOutput(t *testing.T) {
	for flag, want := range map[Flag]Output{
		FlagNone: OutputKey, FlagDisNAPTR: OutputKey, FlagSRV: OutputSRV, FlagDisSRV: OutputSRV,
		FlagAddress: OutputHost, FlagDisA: OutputHost, FlagDisAAAA: OutputHost,
		FlagURI: OutputURI, FlagDisURL: OutputURI, "RES:ftp": OutputURI, FlagProtocol: OutputText,
	} {
		if got := flag.Output(); got != want || flag.IsTerminal() != (want != OutputKey) {
			t.Errorf("%q: output %v, terminal %v", flag, got, flag.IsTerminal())
		}
	}
	if f, err := Resolved("HTTPS"); f != "RES:https" || err != nil || f.Protocol() != "https" || FlagURI.Protocol() != "" {
		t.Errorf("RES:https is %q, %v", f, err)
	}
}

func TestParseServices(t *testing.T) {
	offers := func(texts ...string) (list []Offer) {
		for _, s := range texts {
			name, detail, _ := strings.Cut(s, ":")
			o := Offer{Service: stele.Service(name), Type: detail}
			if name[0] == 'I' {
				o.Service, o.Token = stele.Service("N"+name[1:]), o.Service
			}
			list = append(list, o)
		}
		return list
	}
	for _, tt := range []struct {
		flag Flag
		text string
		want Services
	}{
		{"s", "", Services{}},
		{"s", "thttp+N2L+N2C+N2R", Services{"thttp", offers("N2L", "N2C", "N2R")}},
		{"s", "foolink+I2L+I2C", Services{"foolink", offers("I2L", "I2C")}},
		{"a", "Z3950+i2ls+n2rs", Services{"z3950", offers("I2Ls", "N2Rs")}},
		{"s", "ftp+L2R", Services{"ftp", offers("L2R")}},
		{"u", "sip+E2U", Services{"sip", offers("E2U")}},
		{"u", "E2U+sip", Services{"e2u", offers("SIP")}},
		{"s", "+N2L", Services{"", offers("N2L")}},
		{"s", "N2L", Services{"n2l", nil}}, // RFC 3404: what stands first is a protocol
		{"s", "thttp", Services{"thttp", nil}},

		{"RES:http", "N2L:audio/wav", Services{"", offers("N2L:audio/wav")}},
		{"RES:http", "N2L:Audio/WAV", Services{"", offers("N2L:audio/wav")}},
		{"RES:http", "N2L", Services{"", offers("N2L")}},
		{"RES:http", "N2L:audio", Services{"", offers("N2L:audio")}},
		{"RES:http", "N2L:application/ld+json", Services{"", offers("N2L:application/ld+json")}},
		{"RES:http", "N2L:application/ld+json+N2C:image/svg+xml+N2P", Services{"", offers("N2L:application/ld+json", "N2C:image/svg+xml", "N2P")}},
		{"RES:http", "N2L:application/x+n2c", Services{"", offers("N2L:application/x+n2c")}},
		{"RES:http", "N2L+N2C:text/html+N2S:RSA+N2P", Services{"", offers("N2L", "N2C:text/html", "N2S:RSA", "N2P")}},
		{"RES:http", "N2S:ed25519", Services{"", offers("N2S:ED25519")}},
		{"DIS:NAPTR", "n2l+n2p+n2c+n2s", Services{"", offers("N2L", "N2P", "N2C", "N2S")}},
		{"DIS:A", "N2X:a/b", Services{"", offers("N2X:a/b")}}, // a service to come

		{"", "N2L+N2P+N2C+N2S", Services{"", offers("N2L", "N2P", "N2C", "N2S")}},
		{"", "thttp+I2L", Services{"thttp", offers("I2L")}},
		{"", "N2L+thttp", Services{"thttp", offers("N2L")}},
		{"", "N2L:audio/wav+N2C", Services{"", offers("N2L:audio/wav", "N2C")}},
		{"", "L2R", Services{"", offers("L2R")}},
		{"", "n2x2", Services{"n2x2", nil}},
	} {
		got, err := ParseServices(tt.flag, tt.text)
		if err != nil {
			t.Errorf("%q beside %q: %v", tt.text, tt.flag, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q beside %q: %s", tt.text, tt.flag, diff)
		}
	}
}

func TestParseServicesErrors(t *testing.T) {
	for _, tt := range []struct {
		flag Flag
		text string
		pos  int
	}{
		{"s", "+", 1},
		{"s", "thttp+", 6},
		{"s", "thttp++N2L", 6},
		{"s", "3com+N2L", 0},
		{"s", "a b", 0},
		{"s", "thttp+N2L:text/html", 6},
		{"s", strings.Repeat("a", 33), 0},
		{"s", strings.Repeat("a", 256), 255},
		{"RES:http", "thttp+N2L", 0},
		{"RES:http", "N2L+", 4},
		{"RES:http", "+N2L", 0},
		{"RES:http", "I2L", 0},
		{"RES:http", "N2Ls", 0},
		{"RES:http", "N2L:", 4},
		{"RES:http", "N2L:audio/", 4},
		{"RES:http", "N2L:audio/*", 4},
		{"RES:http", "N2L:/wav", 4},
		{"RES:http", "N2L:text/plain;charset=utf-8", 4},
		{"RES:http", "N2L:text/html+N2L:b c", 18},
		{"RES:http", "N2P:text/html", 4},
		{"RES:http", "N2S:R/A", 4},
		{"RES:http", "N2S:", 4},
		{"", "a+b", 2},
		{"", "N2L+", 4},
		{"", "N2L:x y", 4},
		{"", "\x00", 0},
	} {
		_, err := ParseServices(tt.flag, tt.text)
		syntax, ok := errors.AsType[*stele.SyntaxError](err)
		if !ok || syntax.Pos != tt.pos {
			t.Errorf("%.40q beside %q: %v, want an error at byte %d", tt.text, tt.flag, err, tt.pos)
		}
	}
}

// TestServicesNotWritten tries values that a field has no words for.
func TestServicesNotWritten(t *testing.T) {
	for _, tt := range []struct {
		flag Flag
		s    Services
	}{
		{"s", Services{"thttp", []Offer{{Service: "N2L", Type: "text/html"}}}},
		{"RES:http", Services{"thttp", []Offer{{Service: "N2L", Type: ""}}}},
		{"RES:http", Services{"", []Offer{{Service: "N2L", Type: "text/plain; charset=utf-8"}}}},
		{"RES:http", Services{"", []Offer{{Service: "N2L", Type: "Text/HTML"}}}},
		{"RES:http", Services{"", []Offer{{Service: "n2l", Type: ""}}}},
		{"RES:http", Services{"", []Offer{{Service: "N2L", Type: "a/b+N2C"}}}},
		{"s", Services{"THTTP", nil}},
		{"s", Services{"", []Offer{{Service: "I2L", Type: ""}}}},
		{"", Services{"N2L", nil}},
		{"", Services{"a+b", nil}},
		{"RES:http", Services{"", []Offer{{Service: "N2L", Type: strings.Repeat("a", 127) + "/" + strings.Repeat("b", 127)}}}},
	} {
		if text, err := tt.s.Field(tt.flag); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%+v beside %q is written as %q, %v", tt.s, tt.flag, text, err)
		}
	}
}

func TestParseRuleFaults(t *testing.T) {
	for _, tt := range []struct {
		fields Fields
		reason string
	}{
		{Fields{1, 2, "x", "", "", "a.example."}, "not a flag"},
		{Fields{1, 2, "s", "thttp+", "", "a.example."}, "neither a protocol nor a service"},
		{Fields{1, 2, "", "", "!a!b!", "a.example."}, "one of them"},
		{Fields{1, 2, "", "", "", "."}, "neither"},
		{Fields{1, 2, "", "", "", ""}, "neither"},
		{Fields{1, 2, "", "", "!a!", ""}, "no third"},
		{Fields{1, 2, "", "", "urn:x:y", "http://example.org/"}, "no second"},
	} {
		r, err := ParseRule(tt.fields, Standard)
		if err == nil || !strings.Contains(err.Error(), tt.reason) || r.Err() == nil {
			t.Errorf("%v: %v, want %q", tt.fields, err, tt.reason)
		}
		if r.String() != tt.fields.String() {
			t.Errorf("%v is kept as %v", tt.fields, &r)
		}
		if _, err := r.Fields(); err == nil {
			t.Errorf("%v is written", tt.fields)
		}
	}
}

func TestRuleFields(t *testing.T) {
	expression := func(field string) *Expression {
		e, err := ParseExpression(field)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	n2l := Services{Offers: []Offer{{Service: stele.N2L, Type: "audio/wav"}}}
	for _, tt := range []struct {
		rule Rule
		want string // "" for an error
	}{
		{Rule{Order: 100, Preference: 10, Flag: "RES:http", Services: n2l, Expression: expression(`!^urn:paradisec:ab1:001:a$!http://store.example/a.wav!i`)},
			`100 10 "RES:http" "N2L:audio/wav" "!^urn:paradisec:ab1:001:a$!http://store.example/a.wav!i" .`},
		{Rule{Order: 100, Preference: 10, Expression: expression(`!^urn:x:([-a-z]+)$!\1.x.example.!i`)},
			`100 10 "" "" "!^urn:x:([-a-z]+)$!\\1.x.example.!i" .`},
		{Rule{Order: 200, Flag: "s", Services: Services{"thttp", []Offer{{Service: "N2L", Type: ""}, {Service: "N2R", Type: ""}}}, Replacement: "_http._tcp.Resolver.example"},
			`200 0 "s" "thttp+N2L+N2R" "" _http._tcp.resolver.example.`},
		{Rule{Flag: "DIS:NAPTR", Services: Services{Offers: []Offer{{Service: "N2L", Type: ""}}}, Replacement: "a.example."}, `0 0 "DIS:NAPTR" "N2L" "" a.example.`},

		{Rule{}, ""},
		{Rule{Expression: expression("!a!b!"), Replacement: "a.example"}, ""},
		{Rule{Flag: "S", Replacement: "a.example"}, ""},
		{Rule{Flag: "x", Replacement: "a.example"}, ""},
		{Rule{Flag: "u", Replacement: "a.example"}, ""},
		{Rule{Flag: "s", Services: n2l, Replacement: "a.example"}, ""},
		{Rule{Flag: "RES:http", Services: n2l, Replacement: "a.example"}, ""},
		{Rule{Replacement: "a b.example"}, ""},
		{Rule{Replacement: strings.Repeat("a", 64) + ".example"}, ""},
		{Rule{Replacement: "http://example.org/"}, `0 0 "" "" "" http://example.org/.`}, // strange, but a name
		{Rule{Expression: expression("![a-z0-9-]!b!")}, ""},
	} {
		f, err := tt.rule.Fields()
		if tt.want == "" {
			if err == nil || f != (Fields{}) {
				t.Errorf("%+v is written as %s", tt.rule, f)
			}
			continue
		}
		if err != nil || f.String() != tt.want {
			t.Errorf("got  %s, %v\nwant %s", f, err, tt.want)
		}
	}
	thesis, err := ParseRule(Fields{100, 10, "RES:http", "N2L", "urn:x:y", "http://example.org/."}, Thesis)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := thesis.Fields(); err == nil {
		t.Errorf("the thesis's form is written: %s", f)
	}
}

// drawServices draws services that can stand beside the flag.
func drawServices(t *rapid.T, flag Flag) (s Services) {
	media := rapid.StringMatching(`[a-z][a-z0-9]{0,8}(/[a-z][a-z0-9.+-]{0,12})?`)
	name := rapid.StringMatching(`N2[A-RT-Z]`)
	if !flag.isExtended() {
		s.Protocol = rapid.StringMatching(`([a-z][a-z0-9]{0,9})?`).Filter(func(p string) bool { return flag != "" || !isServiceToken(p) }).Draw(t, "protocol")
	}
	for range rapid.IntRange(0, 4).Draw(t, "offers") {
		o := Offer{Service: stele.Service(name.Draw(t, "service"))}
		switch {
		case !flag.isExtended() && flag != FlagNone, o.Service == stele.N2P:
		case rapid.Bool().Draw(t, "signature"):
			o = Offer{Service: stele.N2S, Type: rapid.StringMatching(`([A-Z0-9]{1,8})?`).Draw(t, "algorithm")}
		default:
			o.Type = rapid.OneOf(rapid.Just(""), media).Draw(t, "type")
		}
		s.Offers = append(s.Offers, o)
	}
	return s
}

func drawFlag(t *rapid.T) Flag {
	return rapid.SampledFrom([]Flag{FlagNone, FlagSRV, FlagAddress, FlagURI, FlagProtocol, FlagDisA, FlagDisAAAA,
		FlagDisSRV, FlagDisURL, FlagDisNAPTR, "RES:http", "RES:ftp"}).Draw(t, "flag")
}

// TestRuleRoundTrip writes rules and reads them back.
func TestRuleRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rule{Order: rapid.Uint16().Draw(t, "order"), Preference: rapid.Uint16().Draw(t, "preference"), Flag: drawFlag(t)}
		r.Services = drawServices(t, r.Flag)
		literal := rapid.StringMatching(`[!-~é]{1,40}`).Draw(t, "literal")
		if r.Flag.Output() == OutputURI || rapid.Bool().Draw(t, "expression") {
			var err error
			r.Expression, err = NewExpression("^"+Quote(literal)+"$", QuoteReplacement("x:"+literal), rapid.Bool().Draw(t, "fold"))
			if err != nil {
				t.Fatalf("%q: %v", literal, err)
			}
			if out, ok, err := r.Expression.Apply(literal); !ok || err != nil || out != "x:"+literal {
				t.Fatalf("%s makes %q of %q (%v, %v)", r.Expression, out, literal, ok, err)
			}
			if _, ok, _ := r.Expression.Apply(literal + "x"); ok {
				t.Fatalf("%s matches more than %q", r.Expression, literal)
			}
		} else {
			r.Replacement = rapid.StringMatching(`[_a-z0-9-]{1,63}(\.[a-z0-9-]{1,63}){0,2}\.`).Draw(t, "replacement")
		}
		fields, err := r.Fields()
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		for _, f := range []string{fields.Flags, fields.Service, fields.Regexp, fields.Replacement} {
			if len(f) > maxField {
				t.Fatalf("a field of %d bytes", len(f))
			}
			if back, err := Unescape(Escape(f)); back != f || err != nil {
				t.Fatalf("%q becomes %q, %v", f, back, err)
			}
		}
		back, err := ParseRule(fields, Standard)
		if err != nil {
			t.Fatalf("%s: %v", fields, err)
		}
		if back.Flag != r.Flag || !back.Services.equal(r.Services) {
			t.Fatalf("%s is read as %+v", fields, back)
		}
		again, err := back.Fields()
		if err != nil || again != fields {
			t.Fatalf("%s becomes %s, %v", fields, again, err)
		}
	})
}

func TestEscape(t *testing.T) {
	for field, want := range map[string]string{
		"":                  "",
		"!^a$!\\1!":         `!^a$!\\1!`,
		`a"b`:               `a\"b`,
		"a\x00\x1b\x7fé":    `a\000\027\127\195\169`,
		"plain text; (it)$": "plain text; (it)$",
	} {
		if got := Escape(field); got != want {
			t.Errorf("%q is written %s, want %s", field, got, want)
		}
	}
	for _, text := range []string{`\`, `a\`, `\1`, `\12`, `\1a2`, `\256`, `\999`} {
		if got, err := Unescape(text); err == nil {
			t.Errorf("%s is read as %q", text, got)
		}
	}
	if got, err := Unescape(`\a\.\065`); got != "a.A" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCanonicalName(t *testing.T) {
	for name, want := range map[string]string{
		"urn.arpa": "urn.arpa.", "URN.Arpa.": "urn.arpa.", "_http._tcp.x.": "_http._tcp.x.", "a%20b.x": "a%20b.x.",
		strings.Repeat("a", 63) + ".x":                 strings.Repeat("a", 63) + ".x.",
		strings.Repeat("a.", 126) + "a":                strings.Repeat("a.", 126) + "a.",
		strings.Repeat(strings.Repeat("a", 49)+".", 5): strings.Repeat(strings.Repeat("a", 49)+".", 5),
	} {
		if got, err := CanonicalName(name); got != want || err != nil {
			t.Errorf("%q is %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a..b", ".a", "a b", "a\\.b", "a\x00", "é.x", "a;b", "a@b", "a(b)", `a"b`, "$x",
		strings.Repeat("a", 64), strings.Repeat("a.", 128), "a.."} {
		if got, err := CanonicalName(name); err == nil {
			t.Errorf("%q is taken as %q", name, got)
		}
	}
}

func TestURNKey(t *testing.T) {
	for _, tt := range []struct{ root, urn, want string }{
		{"", "urn:cid:199606121851.1@bar.example.com", "cid.urn.arpa."},
		{"", "URN:PARADISEC:AB1:001:A", "paradisec.urn.arpa."},
		{"urn.example", "urn:urn-7:x", "urn-7.urn.example."},
		{"@urn.example.org", "urn:paradisec:AB1:001:A", "urn.example.org."},
		{"", "urn:x:y", ""},
		{"", "urn:-ab:y", ""},
		{"", "urn:ab-:y", ""},
		{"", "urn:a.b:y", ""},
		{"", "urn:" + strings.Repeat("a", 33) + ":y", ""},
		{"", "urn:ab:", ""},
		{"", "urn:ab", ""},
		{"", "ark:/12345/x", ""},
		{"@urn.example.org", "ark:/12345/x", ""},
		{"", "", ""},
	} {
		first, err := URNKey(tt.root)
		if err != nil {
			t.Fatal(err)
		}
		got, err := first(tt.urn)
		if tt.want == "" && stele.KindOf(err) != stele.Invalid || tt.want != "" && (got != tt.want || err != nil) {
			t.Errorf("%q under %q: %q, %v; want %q", tt.urn, tt.root, got, err, tt.want)
		}
	}
	for _, root := range []string{"@", ".", "a b", "@a..b"} {
		if _, err := URNKey(root); err == nil {
			t.Errorf("%q is taken for a root", root)
		}
	}
}
