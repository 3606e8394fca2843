package dnssec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/client/internal/signtest"
)

// world is a root and zones below it, a resolver that passes on what they say, and an
// attacker on the network path who changes it.
type world struct {
	t       testing.TB
	tree    signtest.Tree
	anchors string
	change  func(q dns.Question, reply *dns.Msg) // nil: unchanged
	now     time.Time
	asked   []string
	v       *Validator
}

const paradisecZone = `
a.001.ab1 NAPTR 100 10 "RES:https" "N2L:text/html" "!^urn:paradisec:ab1:001:a$!https://data.example/a!i" .
a.001.ab1 TXT "persistence=permanent"
b.001.ab1 NAPTR 100 10 "" "" "" a.001.ab1.paradisec.example.
alias CNAME a.001.ab1
outside CNAME www.open.example.
old DNAME ab1
_http._tcp SRV 0 0 443 id.paradisec.example.
id A 192.0.2.1
*.wild TXT "made of a wildcard"
x.y.wild TXT "not made of it"
sub NS ns.other.test.
`

// newWorld makes the root, example., paradisec.example. as o says, open.example., which
// is not signed, and lost.example., of which the proof of that is missing.
func newWorld(t testing.TB, o signtest.Options) *world {
	t.Helper()
	paradisec := signtest.NewZone(t, "paradisec.example.", paradisecZone, o)
	open := signtest.NewZone(t, "open.example.", "www A 192.0.2.2\nn NAPTR 1 1 \"u\" \"N2L\" \"!.*!https://open.example/!\" .\n", signtest.Options{Unsigned: true}).Sign()
	sub := signtest.NewZone(t, "sub.paradisec.example.", "www A 192.0.2.3\n", signtest.Options{Unsigned: true}).Sign()
	above := "open NS ns.other.test.\nparadisec NS ns.other.test.\n"
	if !o.Unsigned {
		above += paradisec.DS(dns.SHA256)
	}
	example := signtest.NewZone(t, "example.", above, signtest.Options{Split: true, Seed: o.Seed})
	root := signtest.NewZone(t, ".", "example. NS ns.other.test.\n"+example.DS(dns.SHA256), signtest.Options{Seed: o.Seed})
	w := &world{t: t, tree: signtest.Tree{root.Sign(), example.Sign(), paradisec.Sign(), open, sub}, anchors: root.Anchor(), now: signtest.Now()}
	w.begin()
	return w
}

// begin clears the cache.
func (w *world) begin() {
	w.t.Helper()
	anchors, err := ParseAnchors(strings.NewReader(w.anchors))
	if err != nil {
		w.t.Fatal(err)
	}
	w.v = New(anchors, func() time.Time { return w.now })
}

// zone returns the zone of a name.
func (w *world) zone(name string) *signtest.Zone {
	w.t.Helper()
	for _, z := range w.tree {
		if z.Name == name {
			return z
		}
	}
	w.t.Fatalf("no zone %s", name)
	return nil
}

// reply asks a question, over the wire.
func (w *world) reply(name string, kind uint16) *dns.Msg {
	w.t.Helper()
	q := new(dns.Msg).SetQuestion(name, kind).SetEdns0(1232, true)
	m := w.tree.Answer(q)
	w.asked = append(w.asked, name+" "+dns.TypeToString[kind])
	if w.change != nil {
		w.change(q.Question[0], m)
	}
	packed, err := m.Pack()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := m.Unpack(packed); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *world) ask(_ context.Context, name string, kind uint16, judge func(*dns.Msg) error) error {
	m := w.reply(name, kind)
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return errors.New("nobody answers")
	}
	return judge(m)
}

// judge asks for records and follows aliases, as a client does.
func (w *world) judge(name string, kind uint16) (Verdict, error) {
	w.t.Helper()
	m := w.reply(name, kind)
	r := w.v.Check(new(Budget), w.ask).Reply(m)
	whole := Verdict{Status: Secure, TTL: maxTTL}
	for range 8 {
		if len(setOf(m.Answer, name, kind).records) > 0 {
			v, err := r.Records(w.t.Context(), name, kind)
			return whole.Weaker(v), err
		}
		alias := setOf(m.Answer, name, dns.TypeCNAME)
		if len(alias.records) == 0 {
			break
		}
		v, err := r.Records(w.t.Context(), name, dns.TypeCNAME)
		if err != nil {
			return v, err
		}
		whole = whole.Weaker(v)
		name = dns.CanonicalName(alias.records[0].(*dns.CNAME).Target)
	}
	v, err := r.Nothing(w.t.Context(), name, kind)
	return whole.Weaker(v), err
}

// verdict writes what was found in a word or two: secure, no name.
func verdict(v Verdict, err error) string {
	if b, ok := errors.AsType[*Bogus](err); ok {
		return fmt.Sprintf("%s %s: %s", b.Name, b.Type, b.Reason)
	}
	if err != nil {
		return err.Error()
	}
	if v.NoName {
		return v.Status.String() + ", no name"
	}
	return v.Status.String()
}
