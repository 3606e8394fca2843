package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
	"pgregory.net/rapid"
)

func TestNamespaceJSON(t *testing.T) {
	s := recordtest.Spellers(t)
	rapid.Check(t, func(t *rapid.T) {
		n := recordtest.GoodNamespace.Draw(t, "namespace")
		b, err := AppendNamespace(nil, n), error(nil)
		if err != nil || !utf8.Valid(b) || !json.Valid(b) {
			t.Fatalf("%q, %v", b, err)
		}
		back, err := DecodeNamespace(s, b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if diff := cmp.Diff(n, back, recordtest.Same); diff != "" {
			t.Fatalf("%s: %s", b, diff)
		}
		if again := AppendNamespace(nil, back); !bytes.Equal(b, again) {
			t.Fatalf("%s, and then %s", b, again)
		}
	})
}

func TestNamespaceDocument(t *testing.T) {
	const text = `{"scheme":"ibi","prefix":"sid.inpe.br/mtc-m18","owner":"user:ana","title":"The library",` +
		`"minter":{"kind":"ibi","host":"mtc-m18.sid.inpe.br","port":80,"ip":"150.163.2.174","ipPort":800,"allowPrivate":true,"granularity":"1us"},` +
		`"ttl":3600,"status":302,"persistence":{"level":"permanent","until":"2040-01-01","statement":"yes"},` +
		`"hosts":["example.org",".inpe.br"],"protocols":["https"],"delegate":"https://example.org/{id}","quota":1099511627776,` +
		`"version":2,"created":"1970-01-01T00:00:00Z","modified":"2023-11-14T22:13:20.000000001Z","by":"user:root"}`
	want := recordtest.RichNamespace()
	want.Checked, want.Minter.Template, want.Minter.Seed = false, "", 0
	got, err := DecodeNamespace(recordtest.Spellers(t), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	if back := string(AppendNamespace(nil, got)); back != text {
		t.Errorf("%s\nwant\n%s", back, text)
	}
	noid, err := DecodeNamespace(recordtest.Spellers(t), []byte(`{"scheme":"ark","prefix":"ark:12345/x5","minter":{"kind":"noid","template":".reedeedk","seed":18446744073709551615},"checked":true}`))
	if err != nil || noid.Minter != (stele.Minter{Kind: stele.MinterNOID, Template: ".reedeedk", Seed: 1<<64 - 1}) || !noid.Checked {
		t.Errorf("%+v, %v", noid, err)
	}
}

func TestDecodeNamespaceProblems(t *testing.T) {
	s := recordtest.Spellers(t)
	for members, want := range map[string]string{
		``:                                   `scheme: "" is not a name of a scheme; give one, such as ark`,
		`"scheme":7`:                         `scheme: should be a string, and is a number`,
		`"scheme":"ef"`:                      `scheme: "ef" is not a known scheme; use one of ab, cd, ark, ibi, hdl, urn`,
		`"scheme":"ark","name":1`:            `name: there is no such field; there are scheme, prefix`,
		`"scheme":"ark","minter":"noid"`:     `minter: should be an object, and is a string`,
		`"scheme":"ark","minter":{"Kind":1}`: `minter.Kind: there is no such field; there are kind, host`,
		`"scheme":"ibi","minter":{"kind":"ibi","host":"a.b","port":65536}`: `minter.port: should be a whole number from 0 to 65535`,
		`"scheme":"ark","hosts":["a",1]`:                                   `hosts[1]: should be a string, and is a number`,
		`"scheme":"ark","quota":-1`:                                        `quota: should be a whole number from 0 to 18446744073709551615`,
		`"scheme":"ark","checked":0`:                                       `checked: should be true or false`,
		`"scheme":"ark",`:                                                  `this is not JSON`,
	} {
		_, err := DecodeNamespace(s, []byte("{"+members+"}"))
		problems, ok := errors.AsType[stele.Problems](err)
		if !ok || !errors.Is(err, stele.Invalid) || len(problems) != 1 || !strings.Contains(err.Error(), "read namespace: "+want) {
			t.Errorf("%s: %v\nwant %s", members, err, want)
		}
	}
	if _, err := DecodeNamespace(s, make([]byte, stele.MaxDocument+1)); !errors.Is(err, stele.Invalid) || !strings.Contains(err.Error(), "4194304 are the most") {
		t.Error(err)
	}
}

func FuzzDecodeNamespace(f *testing.F) {
	s := recordtest.Spellers(f)
	f.Add(string(AppendNamespace(nil, recordtest.RichNamespace())))
	f.Add(`{"scheme":"ark","prefix":"ark:12345/x5","minter":{"kind":"noid","template":".reedeedk","seed":1},"checked":true}`)
	f.Add(`{"scheme":"ibi","minter":{"kind":"ibi","host":"a.b","port":80},"hosts":[".a.b"],"protocols":["http"],"delegate":"http://a/{id}"}`)
	f.Add(`{"scheme":"ark","grants":[{"to":"user:ana","role":"owner"},{"to":"group:staff","role":"reader"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := DecodeNamespace(s, []byte(text))
		if err != nil {
			if problems, ok := errors.AsType[stele.Problems](err); !ok || stele.KindOf(err) != stele.Invalid || len(problems) == 0 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%q is not JSON, and is taken", text)
		}
		back, err := DecodeNamespace(s, AppendNamespace(nil, n))
		if diff := cmp.Diff(n, back, recordtest.Same); diff != "" || err != nil {
			t.Fatalf("%q: %v, %s", text, err, diff)
		}
	})
}

func TestPublicationRoundTrip(t *testing.T) {
	schemes := recordtest.Spellers(t)
	for _, n := range []*stele.Namespace{recordtest.Published(), recordtest.Others(), {Scheme: "ab", Publication: stele.Publication{Zone: "ab.example.", Layout: stele.LayoutRoot}}} {
		text := AppendNamespace(nil, n)
		back, err := DecodeNamespace(schemes, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(n, back); diff != "" {
			t.Error(diff)
		}
	}
}

func TestGrantsDocument(t *testing.T) {
	const text = `{"scheme":"ark","prefix":"ark:12345/x5","grants":[{"to":"user:ana","role":"owner"},{"to":"group:staff","role":"reader"}]}`
	want := recordtest.Granting(stele.Grant{To: "user:ana", Role: stele.RoleOwner}, stele.Grant{To: "group:staff", Role: stele.RoleReader})
	got, err := DecodeNamespace(recordtest.Spellers(t), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	if back := string(AppendNamespace(nil, got)); back != text {
		t.Errorf("%s\nwant\n%s", back, text)
	}
	if b := AppendNamespace(nil, recordtest.Granting()); bytes.Contains(b, []byte("grants")) {
		t.Errorf("no grants, and %s", b)
	}
}

func TestDecodeGrantsProblems(t *testing.T) {
	s := recordtest.Spellers(t)
	for grants, want := range map[string]string{
		`null`:                          "grants: should be a list",
		`{}`:                            "grants: should be a list",
		`["user:ana"]`:                  "grants[0]: should be an object, and is a string",
		`[{"to":"user:a","role":"x"}]`:  `grants[0].role: "x" is not a role`,
		`[{"to":"ana","role":"owner"}]`: `grants[0].to: "ana" is not a user or group`,
		`[{"to":1,"role":"owner"}]`:     "grants[0].to: should be a string, and is a number",
		`[{"to":"user:a","role":null}]`: "grants[0].role: should be a string",
		`[{"to":"user:a","role":"owner","until":"2040"}]`:                     "grants[0].until: there is no such field; there are to, role",
		`[{"To":"user:a","role":"owner"}]`:                                    "grants[0].To: there is no such field",
		`[{"to":"user:a","to":"user:b","role":"owner"}]`:                      "grants[0].to: ",
		`[{"to":"user:a","role":"owner"},{"to":"user:a","role":"reader"}]`:    "grants[1].to: is the same as grants[0].to",
		`[` + strings.Repeat(`{"to":"user:a","role":"owner"},`, 1000) + `{}]`: "grants: ",
	} {
		_, err := DecodeNamespace(s, []byte(`{"scheme":"ark","prefix":"ark:12345/x5","grants":`+grants+`}`))
		problems, ok := errors.AsType[stele.Problems](err)
		if !ok || !errors.Is(err, stele.Invalid) || len(problems) == 0 || !strings.Contains(problems[0].Error(), want) {
			t.Errorf("%.100s: %.300v\nwant %s", grants, err, want)
		}
	}
}
