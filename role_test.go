package stele

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoles(t *testing.T) {
	roles := []Role{NoRole, RoleReader, RoleEditor, RoleOwner}
	for i, r := range roles {
		if r.IsValid() != (i > 0) {
			t.Errorf("IsValid of %q is %t", r, r.IsValid())
		}
		for j, other := range roles {
			if r.Includes(other) != (i >= j) {
				t.Errorf("%q includes %q: %t", r, other, r.Includes(other))
			}
		}
	}
	for _, odd := range []Role{"admin", "Owner", "owner ", "reader\x00"} {
		if odd.IsValid() || odd.Includes(RoleReader) {
			t.Errorf("%q is taken for a role", odd)
		}
	}
}

// granting is a namespace that gives these roles and is good in all else.
func granting(grants ...Grant) *Namespace {
	return &Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Grants: grants}
}

func TestValidateGrants(t *testing.T) {
	many := make([]Grant, MaxGrants+1)
	for i := range many {
		many[i] = Grant{fmt.Sprint("user:", i), RoleReader}
	}
	for name, c := range map[string]struct {
		grants []Grant
		want   []string // one problem each; none if it is good
	}{
		"none":               {nil, nil},
		"each role":          {[]Grant{{"user:ana", RoleOwner}, {"group:staff", RoleEditor}, {"user:Bruno Gomes", RoleReader}}, nil},
		"a user and a group": {[]Grant{{"user:a", RoleReader}, {"group:a", RoleReader}}, nil},
		"as many as may be":  {many[:MaxGrants], nil},
		"too many":           {many, []string{"grants: has 1001 items; 1000 are the most"}},
		"nobody":             {[]Grant{{"", RoleReader}}, []string{`grants[0].to: "" is not a user or group; write user: or group: and a name`}},
		"a bare name":        {[]Grant{{"ana", RoleReader}}, []string{`grants[0].to: "ana" is not a user or group`}},
		"no name":            {[]Grant{{"user:", RoleReader}}, []string{`grants[0].to: "user:" is not a user or group`}},
		"only a space":       {[]Grant{{"group: ", RoleReader}}, []string{`grants[0].to: "group: " is not a user or group`}},
		"another kind":       {[]Grant{{"host:a.b", RoleReader}}, []string{`grants[0].to: "host:a.b" is not a user or group`}},
		"capitals":           {[]Grant{{"User:ana", RoleReader}}, []string{`grants[0].to: "User:ana" is not a user or group`}},
		"a line break":       {[]Grant{{"user:a\nb", RoleReader}}, []string{"grants[0].to: at byte 6: control character"}},
		"no UTF-8":           {[]Grant{{"user:\xff", RoleReader}}, []string{"grants[0].to: "}},
		"no role":            {[]Grant{{"user:a", RoleReader}, {"user:b", NoRole}}, []string{`grants[1].role: "" is no role; there are reader, editor and owner`}},
		"an odd role":        {[]Grant{{"user:a", "admin"}}, []string{`grants[0].role: "admin" is no role`}},
		"a role in capitals": {[]Grant{{"user:a", "Owner"}}, []string{`grants[0].role: "Owner" is no role`}},
		"twice the same":     {[]Grant{{"user:a", RoleReader}, {"user:a", RoleReader}}, []string{"grants[1].to: is the same as grants[0].to"}},
		"two roles":          {[]Grant{{"user:a", RoleReader}, {"user:b", RoleReader}, {"user:a", RoleOwner}}, []string{"grants[2].to: is the same as grants[0].to"}},
		"all that is wrong":  {[]Grant{{"a", "b"}, {"user:a", "c"}}, []string{"grants[0].to: ", "grants[0].role: ", "grants[1].role: "}},
	} {
		t.Run(name, func(t *testing.T) {
			err := granting(c.grants...).Validate()
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			problems, ok := errors.AsType[Problems](err)
			if !ok || !errors.Is(err, Invalid) || len(problems) != len(c.want) {
				t.Fatalf("%v\nwant %q", err, c.want)
			}
			for i, p := range problems {
				if !strings.Contains(p.Error(), c.want[i]) {
					t.Errorf("%v\nwant %s", p, c.want[i])
				}
			}
		})
	}
}

func TestGrantsDocument(t *testing.T) {
	const text = `{"scheme":"ark","prefix":"ark:12345/x5","grants":[{"to":"user:ana","role":"owner"},{"to":"group:staff","role":"reader"}]}`
	want := granting(Grant{"user:ana", RoleOwner}, Grant{"group:staff", RoleReader})
	got, err := spellers(t).DecodeNamespace([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Error(diff)
	}
	if back := string(got.AppendJSON(nil)); back != text {
		t.Errorf("%s\nwant\n%s", back, text)
	}
	if b := granting().AppendJSON(nil); bytes.Contains(b, []byte("grants")) {
		t.Errorf("no grants, and %s", b)
	}
}

func TestDecodeGrantsProblems(t *testing.T) {
	s := spellers(t)
	for grants, want := range map[string]string{
		`null`:                          "grants: should be a list",
		`{}`:                            "grants: should be a list",
		`["user:ana"]`:                  "grants[0]: should be an object, and is a string",
		`[{"to":"user:a","role":"x"}]`:  `grants[0].role: "x" is no role`,
		`[{"to":"ana","role":"owner"}]`: `grants[0].to: "ana" is not a user or group`,
		`[{"to":1,"role":"owner"}]`:     "grants[0].to: should be a string, and is a number",
		`[{"to":"user:a","role":null}]`: "grants[0].role: should be a string",
		`[{"to":"user:a","role":"owner","until":"2040"}]`:                     "grants[0].until: there is no such field; there are to, role",
		`[{"To":"user:a","role":"owner"}]`:                                    "grants[0].To: there is no such field",
		`[{"to":"user:a","to":"user:b","role":"owner"}]`:                      "grants[0].to: ",
		`[{"to":"user:a","role":"owner"},{"to":"user:a","role":"reader"}]`:    "grants[1].to: is the same as grants[0].to",
		`[` + strings.Repeat(`{"to":"user:a","role":"owner"},`, 1000) + `{}]`: "grants: ",
	} {
		_, err := s.DecodeNamespace([]byte(`{"scheme":"ark","prefix":"ark:12345/x5","grants":` + grants + `}`))
		problems, ok := errors.AsType[Problems](err)
		if !ok || !errors.Is(err, Invalid) || len(problems) == 0 || !strings.Contains(problems[0].Error(), want) {
			t.Errorf("%.100s: %.300v\nwant %s", grants, err, want)
		}
	}
}

// grantsBinary is what grants add to the binary form of richNamespace, which has no
// publication: an empty one, and the list. It is for ever, as richNamespaceBinary is.
const grantsBinary = "00000000000000000208757365723a616e61056f776e65720b67726f75703a737461666606726561646572"

func TestGrantsBinary(t *testing.T) {
	n := richNamespace()
	n.Grants = []Grant{{"user:ana", RoleOwner}, {"group:staff", RoleReader}}
	b, err := n.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b); got != richNamespaceBinary+grantsBinary {
		t.Errorf("the binary form has changed:\n%s\nwant\n%s", got, richNamespaceBinary+grantsBinary)
	}
	var back Namespace
	if err := back.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, &back, same); diff != "" {
		t.Error(diff)
	}
	// What was kept before there were grants, and before there was any publication, is
	// the beginning of it, and a namespace by itself. No other beginning is.
	before := len(richNamespaceBinary) / 2
	for end := range b {
		err := new(Namespace).UnmarshalBinary(b[:end])
		if end != before && KindOf(err) != Internal || end == before && err != nil {
			t.Errorf("the first %d of %d bytes: %v", end, len(b), err)
		}
	}
	for what, odd := range map[string][]byte{
		"a byte more":          append(bytes.Clone(b), 0),
		"a list of no grants":  append(bytes.Clone(b[:before+8]), 0),
		"more than are there":  append(bytes.Clone(b[:before+8]), 2, 1, 'a', 1, 'b'),
		"far more than can be": append(bytes.Clone(b[:before+8]), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
	} {
		if err := new(Namespace).UnmarshalBinary(odd); KindOf(err) != Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
}
