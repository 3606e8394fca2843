package card

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/scheme/all"
)

var noon = time.Date(2031, 5, 2, 12, 0, 0, 0, time.UTC)

func schemes(t *testing.T) *stele.Schemes {
	t.Helper()
	list, err := all.New(all.Config{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestExplain(t *testing.T) {
	none := func(stele.ID) []*stele.Namespace { return nil }
	for _, tt := range []struct {
		text  string
		size  int
		wants []string
	}{
		{"doi:10.1000/182", 0, []string{"doi:10.1000/182\n", "  scheme        hdl, DOI\n", "  canonical     10.1000/182\n", "  also          "}},
		{"ark:12345/x1\x1b", 0, []string{`ark:12345/x1\x1b` + "\n", "  invalid       ", "  at byte 12", "^\n"}},
		{strings.Repeat("é", 100), 5000, []string{strings.Repeat("é", 30) + "...\n", "the text has 5000 bytes; an identifier has at most 4096\n"}},
	} {
		if tt.size == 0 {
			tt.size = len(tt.text)
		}
		var b strings.Builder
		if err := Explain(schemes(t), tt.text, tt.size, none).Write(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.wants {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%.40q: no %q in\n%s", tt.text, want, b.String())
			}
		}
	}
}

// The mark stands below the byte that is wrong, whatever is before it.
func TestExcerpt(t *testing.T) {
	for _, tt := range []struct {
		input  string
		pos    int
		text   string
		column int
	}{
		{"abc", 1, "abc", 1},
		{"abc", 9, "abc", 3},
		{"é\x1bc", 3, `é\x1bc`, 5},
		{strings.Repeat("é", 50) + "!", 100, "..." + strings.Repeat("é", 20) + "!", 23},
		{"!" + strings.Repeat("é", 50), 0, "!" + strings.Repeat("é", 10) + "...", 0},
	} {
		text, column := Explanation{Input: tt.input}.excerpt(tt.pos)
		if text != tt.text || column != tt.column {
			t.Errorf("%q at %d: %q, %d; want %q, %d", tt.input, tt.pos, text, column, tt.text, tt.column)
		}
	}
}

func TestRecord(t *testing.T) {
	id, err := schemes(t).Parse("ark:12345/x1")
	if err != nil {
		t.Fatal(err)
	}
	rec := &stele.Record{
		ID: id, State: stele.Reserved, Version: 2, Created: noon, Modified: noon.Add(time.Hour), By: "ann", Readers: []string{"user:ann", "group:staff"},
		Targets:     []stele.Target{{Service: stele.N2C, URL: "https://a.example/\x1b", Type: "text/html", Order: stele.DefaultOrder, Preference: 1}},
		Metadata:    stele.Metadata{"what": "two\nlines", "a-long-name-of-a-field": "x"},
		Persistence: stele.Persistence{Level: stele.Permanent, Until: "2040-01-01"},
		Values:      []stele.HandleValue{{Index: 1, Type: "EMAIL", Data: []byte("a@example.org")}, {Index: 2, Type: "X", Data: []byte{0, 1}}},
	}
	want := `ark:12345/x1
  scheme        ark
  state         reserved  (hidden from the public)
  target        https://a.example/\x1b
                (N2C: its metadata, text/html, preference 1)
  what          two
                lines
  a-long-name-of-a-field  x
  persistence   permanent, until 2040-01-01
  value         1  EMAIL  a@example.org
                2  X  (2 bytes)
  readers       user:ann  group:staff
  version       2
  created       2031-05-02T12:00:00Z
  changed       2031-05-02T13:00:00Z, by ann
`
	if diff := cmp.Diff(want, Record(rec)); diff != "" {
		t.Error(diff)
	}
}

func TestNamespace(t *testing.T) {
	ns := &stele.Namespace{
		Scheme: "ark", Prefix: "ark:12345/x5", Title: "Reports", Owner: "ann", Quota: 100, Checked: true, TTL: 60,
		Grants: []stele.Grant{{To: "user:bob", Role: stele.RoleEditor}}, Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".sd"},
		Keys: []stele.SigningKey{{ID: "k1", Algorithm: "ED25519", Created: noon.Add(-time.Hour), Expires: noon.Add(time.Hour)}, {ID: "k2", Algorithm: "RSA", Created: noon, Revoked: noon}},
	}
	d := access.NamespaceDetails{Parent: &stele.Namespace{Scheme: "ark", Prefix: "ark:12345"}, Count: 7, Minter: minting.Status{Given: 3, Total: 10}}
	want := `ark:12345/x5
  scheme        ark
  below         ark:12345
  title         Reports
  owner         ann
  roles         editor  user:bob
  keys          k1  ed25519  signs    2031-05-02T11:00:00Z, until 2031-05-02T13:00:00Z
                k2  rsa      revoked  2031-05-02T12:00:00Z
  names         7 of at most 100
  new names     noid, template .sd
                3 of 10 are given
  check         names end in a check character
  TTL           60 s
`
	if diff := cmp.Diff(want, Namespace(ns, d, noon)); diff != "" {
		t.Error(diff)
	}
	for want, status := range map[string]minting.Status{
		"0 are given; shut by a restore or an import; open it with 'stele ns skip'": {Shut: true},
		"dates up to 2031-05-02T12:00:00Z are given":                                {Last: noon},
		"3 are given": {Given: 3},
	} {
		if got := made(ns, status); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestUser(t *testing.T) {
	u := &auth.User{Name: "ann", Groups: []string{"staff", "press"}, Admin: true, Disabled: true, Created: noon, Modified: noon, By: "root"}
	want := `ann
  groups        staff  press
  administrator  may do everything
  disabled      has the rights of the public
  roles         owner in ark:12345
                editor in urn:x1
  tokens        1 in use, 2 ended
  created       2031-05-02T12:00:00Z
  changed       2031-05-02T12:00:00Z, by root
`
	if diff := cmp.Diff(want, User(u, access.UserDetails{Roles: []string{"owner in ark:12345", "editor in urn:x1"}, TokensInUse: 1, TokensEnded: 2})); diff != "" {
		t.Error(diff)
	}
}
