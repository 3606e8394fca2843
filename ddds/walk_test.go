package ddds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele"
)

// zone reads rules as zone files have them, a line each: the owner's name, order,
// preference, the three texts in quotation marks, the replacement. A line without a name
// belongs to the name before it. All live for 3600 seconds, except names under short.
func zone(tb testing.TB, d Dialect, text string) Map {
	tb.Helper()
	m, owner := make(Map), ""
	for line := range strings.Lines(text) {
		same := line[0] == ' ' || line[0] == '\t'
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if !same {
			owner, line, _ = strings.Cut(line, " ")
		}
		var f Fields
		if _, err := fmt.Sscanf(line, "%d %d %q %q", &f.Order, &f.Preference, &f.Flags, &f.Service); err != nil {
			tb.Fatalf("%s: %v", line, err)
		}
		parts := strings.SplitN(line, `"`, 6)
		last := strings.LastIndexByte(parts[5], '"')
		var err error
		if f.Regexp, err = Unescape(parts[5][:last]); err != nil {
			tb.Fatal(err)
		}
		f.Replacement = strings.TrimSpace(parts[5][last+1:])
		set := m[owner]
		set.TTL = 3600
		if strings.Contains(owner, "short") {
			set.TTL = 60
		}
		r, _ := ParseRule(f, d)
		set.Rules = append(set.Rules, r)
		m[owner] = set
	}
	return m
}

func uriKey(aus string) (string, error) {
	scheme, _, _ := strings.Cut(aus, ":")
	return scheme + ".uri.arpa.", nil
}

func urnKey(tb testing.TB) FirstKey {
	first, err := URNKey("")
	if err != nil {
		tb.Fatal(err)
	}
	return first
}

// TestRFC walks through the examples of RFC 3403, section 6, and RFC 3404, section 5.
func TestRFC(t *testing.T) {
	database := zone(t, Standard, `
cid.urn.arpa. 100 10 "" "" "!^urn:cid:.+@([^\\.]+\\.)(.*)$!\\2!i" .
cid.uri.arpa. 100 10 "" "" "!^cid:.+@([^\\.]+\\.)(.*)$!\\2!i" .
example.com. 100 50 "a" "z3950+N2L+N2C" "" cidserver.example.com.
 100 50 "a" "rcds+N2C" "" cidserver.example.com.
 100 50 "s" "http+N2L+N2C+N2R" "" www.example.com.
foo.urn.arpa. 100 10 "s" "foolink+I2L+I2C" "" foolink.udp.example.com.
 100 20 "s" "rcds+I2C" "" rcds.udp.example.com.
 100 30 "s" "thttp+I2L+I2C+I2R" "" thttp.tcp.example.com.
http.uri.arpa. 100 90 "" "" "!^http://([^/:]+)!\\1!i" .
www.foo.com. 100 100 "s" "thttp+L2R" "" thttp.example.com.
 100 100 "s" "ftp+L2R" "" ftp.example.com.
4.3.2.1.6.7.9.8.6.4.e164.arpa. 100 10 "u" "sip+E2U" "!^.*$!sip:information@foo.se!i" .
 102 10 "u" "smtp+E2U" "!^.*$!mailto:information@foo.se!i" .
`)
	for _, tt := range []struct {
		name    string
		start   string
		service stele.Service
		want    []string // flag, protocol and key of all candidates
	}{
		{"urn:cid:199606121851.1@bar.example.com", "", "N2L", []string{"a z3950 cidserver.example.com.", "s http www.example.com."}},
		{"urn:cid:199606121851.1@bar.example.com", "", "N2R", []string{"s http www.example.com."}},
		{"URN:CID:199606121851.1@bar.example.com", "", "N2C", []string{"a z3950 cidserver.example.com.", "a rcds cidserver.example.com.", "s http www.example.com."}},
		{"urn:cid:199606121851.1@bar.example.com", "", "N2S", nil},
		{"cid:199606121851.1@bar.example.com", "", "N2L", []string{"a z3950 cidserver.example.com.", "s http www.example.com."}},
		{"urn:foo:002372413:annual-report-1997", "", "N2L", []string{"s foolink foolink.udp.example.com.", "s thttp thttp.tcp.example.com."}},
		{"urn:foo:002372413:annual-report-1997", "", "N2R", []string{"s thttp thttp.tcp.example.com."}},
		{"http://www.foo.com/software/latest-beta.exe", "", "L2R", []string{"s thttp thttp.example.com.", "s ftp ftp.example.com."}},
		{"+46-8-9761234", "4.3.2.1.6.7.9.8.6.4.e164.arpa", "", []string{"u sip sip:information@foo.se"}},
		{"+46-8-9761234", "4.3.2.1.6.7.9.8.6.4.e164.arpa", "E2U", []string{"u sip sip:information@foo.se"}},
	} {
		w := &Walker{Database: database, First: uriKey}
		if tt.name[0]|0x20 == 'u' {
			w.First = urnKey(t)
		}
		res, err := w.Walk(t.Context(), Request{Name: tt.name, Start: tt.start, Service: tt.service, Trace: true})
		if tt.want == nil {
			if !errors.Is(err, ErrNoRule) || stele.KindOf(err) != stele.NotFound {
				t.Errorf("%s, %s: %v, %v", tt.name, tt.service, res, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", tt.name, err, res.Trace)
			continue
		}
		var got []string
		for _, c := range res.Candidates {
			got = append(got, fmt.Sprintf("%s %s %s", c.Flag, c.Protocol, c.Key))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, %s: %s\n%s", tt.name, tt.service, diff, res.Trace)
		}
	}
}

// TestOrder asks which rules count.
func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		about string
		rules string
		want  string // keys of the candidates; or a word of the error
	}{
		{"the lowest order, then the lowest preference", `
			200 1 "s" "p+N2L" "" d.
			100 9 "s" "p+N2L" "" c.
			100 5 "s" "p+N2L" "" b.`, "b. c."},
		{"a match closes higher orders, whatever it offers", `
			100 1 "s" "p+N2C" "" a.
			200 1 "s" "p+N2L" "" b.`, "no rule fits"},
		{"the walk goes on within that order", `
			100 1 "s" "p+N2C" "" a.
			100 2 "s" "p+N2L" "" b.
			200 1 "s" "p+N2L" "" c.`, "b."},
		{"no match does not close", `
			100 1 "s" "p+N2L" "!^urn:other:!x!" .
			200 1 "s" "p+N2L" "" b.`, "b."},
		{"an empty output is not a match", `
			100 1 "s" "p+N2L" "!^urn!!" .
			200 1 "s" "p+N2L" "" b.`, "b."},
		{"an unknown flag is ignored before all else", `
			100 1 "x" "p+N2L" "" a.
			200 1 "s" "p+N2L" "" b.`, "b."},
		{"a rule with a fault is skipped", `
			100 1 "s" "p+N2L" "!a!b!" a.
			100 2 "s" "p+N2L" "!a(!b!" .
			100 3 "s" "p+" "" a.
			200 1 "s" "p+N2L" "" b.`, "b."},
		{"a match that gives no name closes", `
			100 1 "s" "p+N2L" "!.*!a b!" .
			200 1 "s" "p+N2L" "" b.`, "no rule fits"},
		{"a URI must be one", `
			100 1 "u" "p+N2L" "!.*!a/b!" .
			100 2 "u" "p+N2L" "!.*!http://example.org/a b!" .
			100 3 "u" "p+N2L" "!.*!http://example.org/ab!" .`, "http://example.org/ab"},
		{"a terminal rule of the EDDDS must offer the service", `
			100 3 "DIS:A" "" "" c.`, "no rule fits"},
		{"RFC 3404, 4.4: no services, and a protocol alone, are legal", `
			100 1 "s" "p" "" a.
			100 2 "s" "" "" b.`, "a. b."},
		{"what offers the service comes first in its order", `
			100 1 "s" "p" "" a.
			100 2 "s" "p+N2L" "" b.
			200 1 "s" "p+N2L" "" c.`, "b. a."},
		{"a list, or the resource, will do", `
			100 1 "s" "p+I2R" "" a.
			100 2 "s" "p+I2Ls" "" b.
			100 3 "s" "p+I2C" "" c.`, "a. b."},
		{"a rewriting rule need not say", `
			100 1 "" "" "" end.`, "end-srv."},
		{"nor if it names a protocol only", `
			100 1 "" "p" "" end.`, "end-srv."},
		{"but what it says counts", `
			100 1 "" "N2C" "" end.`, "no rule fits"},
		{"discovery goes on at DIS:NAPTR", `
			100 1 "DIS:NAPTR" "N2L" "" end.
			100 2 "DIS:SRV" "N2L" "" b.`, "end-srv."},
		{"addresses may be literal in the EDDDS", `
			100 1 "DIS:A" "N2L" "" 150.203.0.178.
			100 2 "DIS:AAAA" "N2L" "" 2001:DB8::1
			100 3 "A" "p+N2L" "" 150.203.0.178.`, "150.203.0.178 2001:db8::1 150.203.0.178."},
		{"P is anything", `
			100 1 "p" "p+N2L" "!.*!any thing!" .`, "any thing"},
		{"loops end", `
			100 1 "" "" "" start.`, "lead back"},
		{"loops end, whatever the case", `
			100 1 "" "" "" START.`, "lead back"},
		{"what is too large ends the walk", `
			100 1 "s" "p+N2L" "!(a{255}){255}!b!" .
			200 1 "s" "p+N2L" "" b.`, "too large"},
		{"but not behind a match", `
			100 1 "s" "p+N2L" "" b.
			200 1 "s" "p+N2L" "!(a{255}){255}!b!" .`, "b."},
		{"a key that is not there is an answer", `
			100 1 "" "" "" nowhere.
			100 2 "s" "p+N2L" "" b.`, "no such name"},
		{"a key without rules is an answer", `
			100 1 "" "" "" empty.
			100 2 "s" "p+N2L" "" b.`, "no rules"},
		{"a key that does not answer is not", `
			100 1 "" "" "" down.
			100 2 "s" "p+N2L" "" b.
			200 1 "s" "p+N2L" "" c.`, "b."},
		{"if nothing answers, try again", `
			100 1 "" "" "" down.
			100 2 "" "" "" down.
			200 1 "s" "p+N2L" "" c.`, "try again"},
	} {
		database := flaky{zone(t, Standard, "start. "+strings.TrimSpace(tt.rules)+"\nend. 100 1 \"s\" \"p+N2L\" \"\" end-srv.")}
		w := &Walker{Database: database}
		res, err := w.Walk(t.Context(), Request{Name: "urn:x:y", Start: "start", Service: "N2L", Trace: true})
		var keys []string
		for _, c := range res.Candidates {
			keys = append(keys, c.Key)
		}
		got := strings.Join(keys, " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != tt.want || err != nil && !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s\n%s", tt.about, got, tt.want, res.Trace)
		}
	}
}

// flaky is a database in which down. does not answer and empty. has no rules.
type flaky struct{ Map }

func (f flaky) NAPTR(ctx context.Context, name string) (RuleSet, error) {
	if strings.HasSuffix(name, ".down.") {
		name = "down."
	}
	switch name {
	case "down.":
		return RuleSet{}, TryAgain(name, errors.New("SERVFAIL"))
	case "odd.":
		return RuleSet{}, errors.New("odd")
	case "bogus.":
		return RuleSet{}, &stele.Error{Op: "validate", Kind: stele.Forbidden, Err: errors.New("BOGUS")}
	case "empty.":
		return RuleSet{}, nil
	}
	return f.Map.NAPTR(ctx, name)
}

func TestWalkErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	many := RuleSet{Rules: make([]Rule, MaxRules+1)}
	heavy := RuleSet{}
	for range MaxRules {
		r, err := ParseRule(Fields{Regexp: `!((a|b|.){50}(c|d|.)*){8}x!y!`}, Standard)
		if err != nil {
			t.Fatal(err)
		}
		heavy.Rules = append(heavy.Rules, r)
	}
	rewrite := func(to string) RuleSet {
		r, err := ParseRule(Fields{Replacement: to}, Standard)
		if err != nil {
			t.Fatal(err)
		}
		return RuleSet{Rules: []Rule{r}}
	}
	database := Map{"many.": many, "heavy.": heavy, "none.": {}}
	for i := range MaxHops + 1 {
		database[fmt.Sprintf("k%d.", i)] = rewrite(fmt.Sprintf("k%d.", i+1))
	}
	var dead RuleSet
	for i := range 2 * maxLookups {
		dead.Rules = append(dead.Rules, rewrite(fmt.Sprintf("%d.down.", i)).Rules...)
	}
	database["dead."] = dead
	database["round."], database["about."] = rewrite("about."), rewrite("round.")
	for _, tt := range []struct {
		about string
		ctx   context.Context
		q     Request
		kind  stele.Kind
		err   error
		steps int
	}{
		{"no such name", nil, Request{Start: "nowhere"}, stele.NotFound, ErrNoSuchName, 1},
		{"no rules", nil, Request{Start: "none"}, stele.NotFound, ErrNoData, 1},
		{"an empty set", nil, Request{Start: "empty"}, stele.NotFound, ErrNoData, 1},
		{"a server that fails", nil, Request{Start: "down"}, stele.Unavailable, nil, 1},
		{"a database that does not say", nil, Request{Start: "odd"}, stele.Unavailable, nil, 1},
		{"another kind is kept", nil, Request{Start: "bogus"}, stele.Forbidden, nil, 1},
		{"cancelled", cancelled, Request{Start: "k0"}, stele.Unavailable, context.Canceled, 0},
		{"many rules", nil, Request{Start: "many"}, stele.Exhausted, ErrTooManyRules, 1},
		{"17 rewrites", nil, Request{Start: "k0"}, stele.Exhausted, ErrTooManyHops, 17},
		{"many keys that do not answer", nil, Request{Start: "dead"}, stele.Exhausted, ErrTooManyHops, maxLookups},
		{"a circle", nil, Request{Start: "round"}, stele.Exhausted, ErrLoop, 2},
		{"too much work", nil, Request{Start: "heavy", Name: strings.Repeat("a", 4000)}, stele.Exhausted, ErrTooMuchWork, 1},
		{"no name", nil, Request{Start: "k0", Name: "-"}, stele.Invalid, nil, 0},
		{"a control character", nil, Request{Start: "k0", Name: "a\x1bb"}, stele.Invalid, nil, 0},
		{"a name too long", nil, Request{Start: "k0", Name: strings.Repeat("a", 5000)}, stele.Invalid, nil, 0},
		{"no first rule", nil, Request{}, stele.Invalid, nil, 0},
		{"a bad start", nil, Request{Start: "a b"}, stele.Invalid, nil, 0},
	} {
		switch tt.q.Name {
		case "":
			tt.q.Name = "urn:x:y"
		case "-":
			tt.q.Name = ""
		}
		tt.q.Trace = true
		ctx := t.Context()
		if tt.ctx != nil {
			ctx = tt.ctx
		}
		res, err := (&Walker{Database: flaky{database}}).Walk(ctx, tt.q)
		if stele.KindOf(err) != tt.kind || tt.err != nil && !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %s and %v", tt.about, err, tt.kind, tt.err)
			continue
		}
		if res.Candidates != nil || res.Key != "" || res.Trace.Error != err.Error() || len(res.Trace.Steps) != tt.steps {
			t.Errorf("%s: %d steps, want %d; result %v\n%s", tt.about, len(res.Trace.Steps), tt.steps, res, res.Trace)
		}
	}

	// 16 rewrites are as many as may be.
	database["k16."] = RuleSet{Rules: []Rule{{Flag: FlagAddress, Replacement: "end."}}}
	res, err := (&Walker{Database: database}).Walk(t.Context(), Request{Name: "urn:x:y", Start: "k0"})
	if err != nil || res.Key != "end." {
		t.Errorf("16 rewrites: %v, %v", res, err)
	}
}

// TestRandom asks whether equal rules share the load, and others do not.
func TestRandom(t *testing.T) {
	database := zone(t, Standard, `
start. 100 1 "s" "p+N2L" "" a.
 100 1 "s" "p+N2L" "" b.
 100 1 "s" "p+N2L" "" c.
 100 2 "s" "p+N2L" "" d.
`)
	first, last := make(map[string]int), make(map[string]int)
	w := &Walker{Database: database, Random: rand.New(rand.NewPCG(1, 2)).IntN}
	for range 60 {
		res, err := w.Walk(t.Context(), Request{Name: "urn:x:y", Start: "start", Service: "N2L"})
		if err != nil {
			t.Fatal(err)
		}
		first[res.Key]++
		last[res.Candidates[3].Key]++
	}
	if len(first) != 3 || first["d."] > 0 || last["d."] != 60 {
		t.Errorf("first came %v, last %v", first, last)
	}
	w.Random = func(int) int { return 1 << 40 } // a generator that lies
	if res, err := w.Walk(t.Context(), Request{Name: "urn:x:y", Start: "start", Service: "N2L"}); err != nil || res.Key != "a." {
		t.Errorf("%v, %v", res, err)
	}
}

// TestRandomTrace checks that chance does not move rules that can't be chosen: two traces
// of one question show them in the same place.
func TestRandomTrace(t *testing.T) {
	database := zone(t, Standard, `
start. 100 1 "s" "p+N2P" "" a.
 100 1 "s" "p+N2L" "" b.
 100 2 "s" "p+N2C" "" c.
`)
	random := rand.New(rand.NewPCG(1, 2)).IntN
	for range 20 {
		w := &Walker{Database: database, Random: random}
		res, err := w.Walk(t.Context(), Request{Name: "urn:x:y", Start: "start", Service: "N2L", Trace: true})
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, r := range res.Trace.Steps[len(res.Trace.Steps)-1].Rules {
			order = append(order, r.Output)
		}
		if !slices.Equal(order, []string{"b.", "a.", "c."}) {
			t.Fatalf("the rules stand as %q", order)
		}
	}
}

// TestTTL asks for the least along the way, and not beside it.
func TestTTL(t *testing.T) {
	database := flaky{zone(t, Standard, `
start. 100 1 "" "" "" down.
 100 2 "" "" "" short.
short. 100 1 "" "" "" end.
end. 100 1 "u" "p+N2L" "!.*!http://example.org/1!" .
 100 2 "u" "p+N2L" "!.*!http://example.org/2!" .
`)}
	res, err := (&Walker{Database: database}).Walk(t.Context(), Request{Name: "urn:x:y", Start: "start", Service: "N2L"})
	if err != nil || res.TTL != 60 || res.Candidates[1].TTL != 60 || res.Trace != nil {
		t.Errorf("%v, %v", res, err)
	}
	res, err = (&Walker{Database: database}).Walk(t.Context(), Request{Name: "urn:x:y", Start: "end", Service: "N2L"})
	if err != nil || res.TTL != 3600 {
		t.Errorf("%v, %v", res, err)
	}
}

// TestTogether walks with many goroutines over the same rules.
func TestTogether(t *testing.T) {
	w := &Walker{Database: zone(t, Standard, namesZone), First: urnKey(t), Random: rand.IntN}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			res, err := w.Walk(t.Context(), Request{Name: paradisec, Service: "N2L", Accept: []Preference{{"audio/mpeg", 1000}}, Trace: true})
			if err != nil || res.Key != "http://store.example/a.mpeg" {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	group.Wait()
}

// TestURNString: what tells no URNs apart is written in one way (RFC 8141, 3.1; the
// examples of 3.2).
func TestURNString(t *testing.T) {
	for text, want := range map[string]string{
		"urn:example:a123,z456":                   "urn:example:a123,z456",
		"URN:example:a123,z456":                   "urn:example:a123,z456",
		"urn:EXAMPLE:a123,z456":                   "urn:example:a123,z456",
		"urn:example:a123,z456?+abc":              "urn:example:a123,z456",
		"urn:example:a123,z456?=xyz":              "urn:example:a123,z456",
		"urn:example:a123,z456#789":               "urn:example:a123,z456",
		"urn:example:a123%2Cz456":                 "urn:example:a123%2Cz456",
		"URN:EXAMPLE:a123%2cz456":                 "urn:example:a123%2Cz456",
		"urn:example:A123,z456":                   "urn:example:A123,z456",
		"urn:example:%aabb%Bccc%ddee?+x?=%ab#%cd": "urn:example:%AAbb%BCcc%DDee",
	} {
		if got, err := URNString(text); err != nil || got != want {
			t.Errorf("URNString(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "urn:", "urn:x", "urn:example:", "https://example.org/urn:example:x"} {
		if got, err := URNString(text); err == nil {
			t.Errorf("URNString(%q) = %q", text, got)
		}
	}
}

// TestFlags: users may state flags, whole or in part (thesis, 6.2.2).
func TestFlags(t *testing.T) {
	w := &Walker{First: func(string) (string, error) { return "start.", nil }, Database: zone(t, Standard, `
start. 100 10 "" "" "" next.
next. 100 10 "DIS:NAPTR" "N2L" "" rules.
 100 20 "DIS:SRV" "N2L" "" _http._tcp.example.
 100 30 "s" "thttp+I2L" "" _http._tcp.plain.
 200 30 "u" "http+I2L" "!.*!http://plain.example/!" .
rules. 100 10 "RES:http" "N2L" "!.*!http://example.org/!" .
 100 20 "RES:ftp" "N2L" "!.*!ftp://example.org/!" .
`)}
	for _, tt := range []struct{ flags, want string }{
		{"", "http://example.org/ ftp://example.org/"},
		{"RES:FTP", "ftp://example.org/"},
		{"res", "http://example.org/ ftp://example.org/"},
		{"DIS:", "rules. _http._tcp.example."},
		{"DIS:NAPTR", "rules."},
		{"DIS:SRV", "_http._tcp.example."},
		{"s", "_http._tcp.plain."},
		{"DIS:SRV s", "_http._tcp.example. _http._tcp.plain."},
		{"u", ""}, // a lower order matched
	} {
		q := Request{Name: "urn:x:y", Service: "N2L", Trace: true}
		for _, text := range strings.Fields(tt.flags) {
			f, err := ParseWantedFlag(text)
			if err != nil {
				t.Fatal(err)
			}
			q.Flags = append(q.Flags, f)
		}
		res, err := w.Walk(t.Context(), q)
		var keys []string
		for _, c := range res.Candidates {
			keys = append(keys, c.Key)
		}
		if got := strings.Join(keys, " "); got != tt.want || tt.want == "" && !errors.Is(err, ErrNoRule) {
			t.Errorf("%q: %q, %v; want %q\n%s", tt.flags, got, err, tt.want, res.Trace)
		}
	}
	for _, text := range []string{"", ":", "x", "DIS:X", "RES:a b"} {
		if f, err := ParseWantedFlag(text); err == nil {
			t.Errorf("%q is the flag %q", text, f)
		}
	}
}

// TestFitOfRewriting: after discovery all rules that match compete by their types, those
// that rewrite the name too (thesis, 6.2.2 and A.4), whatever their order.
func TestFitOfRewriting(t *testing.T) {
	w := &Walker{First: func(string) (string, error) { return "start.", nil }, Database: zone(t, Standard, `
start. 100 10 "DIS:NAPTR" "N2L" "" rules.
rules. 100 10 "" "N2L:text/html" "" pages.
 200 10 "" "N2L:audio/wav" "" sounds.
 300 10 "RES:http" "N2L:audio/mpeg" "!.*!http://example.org/mpeg!" .
 50 10 "s" "thttp+N2L" "" _http._tcp.example.
pages. 100 10 "RES:http" "N2L:text/html" "!.*!http://example.org/html!" .
sounds. 100 10 "" "N2L:audio/wav" "" more.
 100 10 "" "N2L:audio/ogg" "" ogg.
more. 100 10 "RES:http" "N2L:audio/wav" "!.*!http://example.org/wav!" .
ogg. 100 10 "RES:http" "N2L:audio/ogg" "!.*!http://example.org/ogg!" .
`)}
	for media, want := range map[string]string{
		"":           "http://example.org/html",
		"text/html":  "http://example.org/html",
		"audio/wav":  "http://example.org/wav",
		"audio/mpeg": "http://example.org/mpeg",
		"audio/ogg":  "http://example.org/ogg", // after the first that is similar
	} {
		q := Request{Name: "urn:x:y", Service: "N2L", Trace: true}
		if media != "" {
			q.Accept = []Preference{{media, 1000}}
		}
		if res, err := w.Walk(t.Context(), q); err != nil || res.Key != want {
			t.Errorf("%q: %v, %v; want %s\n%s", media, res, err, want, res.Trace)
		}
	}
}

// slowDatabase tells names for which no server answers, and how late it is afterwards.
type slowDatabase struct {
	Map
	now   time.Time
	asked []string
}

func (d *slowDatabase) NAPTR(ctx context.Context, name string) (RuleSet, error) {
	d.asked = append(d.asked, name)
	if name == "silent." {
		d.now = d.now.Add(30 * time.Second)
		return RuleSet{}, TryAgain(name, errors.New("no answer"))
	}
	return d.Map.NAPTR(ctx, name)
}

// TestExpiry: a walk falls back to other rules only while those on the way are good, and
// begins again if one has expired (RFC 3402, 3.3, note 2; RFC 3403, 3).
func TestExpiry(t *testing.T) {
	for _, tt := range []struct {
		ttl   uint32
		asked string
		ok    bool
	}{
		{60, "start. silent. next.", true},
		{10, "start. silent. start. silent.", false}, // it did not get better
	} {
		d := &slowDatabase{now: time.Unix(1_700_000_000, 0), Map: zone(t, Standard, `
start. 100 10 "" "" "" silent.
 100 20 "" "" "" next.
next. 100 10 "s" "thttp+N2L" "" a.
`)}
		set := d.Map["start."]
		set.TTL = tt.ttl
		d.Map["start."] = set
		w := &Walker{Database: d, First: func(string) (string, error) { return "start.", nil }, Now: func() time.Time { return d.now }}
		_, err := w.Walk(t.Context(), Request{Name: "urn:x:y", Service: "N2L"})
		if got := strings.Join(d.asked, " "); got != tt.asked || (err == nil) != tt.ok || err != nil && stele.KindOf(err) != stele.Unavailable {
			t.Errorf("%d s: %s, %v; want %s", tt.ttl, got, err, tt.asked)
		}
	}
}
