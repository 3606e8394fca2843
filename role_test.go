package stele_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

func TestRoles(t *testing.T) {
	roles := []stele.Role{stele.NoRole, stele.RoleReader, stele.RoleEditor, stele.RoleOwner}
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
	for _, odd := range []stele.Role{"admin", "Owner", "owner ", "reader\x00"} {
		if odd.IsValid() || odd.Includes(stele.RoleReader) {
			t.Errorf("%q is taken for a role", odd)
		}
	}
}

func TestValidateGrants(t *testing.T) {
	many := make([]stele.Grant, stele.MaxGrants+1)
	for i := range many {
		many[i] = stele.Grant{fmt.Sprint("user:", i), stele.RoleReader}
	}
	for name, c := range map[string]struct {
		grants []stele.Grant
		want   []string // one problem each; none if it is good
	}{
		"none":               {nil, nil},
		"each role":          {[]stele.Grant{{"user:ana", stele.RoleOwner}, {"group:staff", stele.RoleEditor}, {"user:Bruno Gomes", stele.RoleReader}}, nil},
		"a user and a group": {[]stele.Grant{{"user:a", stele.RoleReader}, {"group:a", stele.RoleReader}}, nil},
		"as many as may be":  {many[:stele.MaxGrants], nil},
		"too many":           {many, []string{"grants: has 1001 items; 1000 are the most"}},
		"nobody":             {[]stele.Grant{{"", stele.RoleReader}}, []string{`grants[0].to: "" is not a user or group; write user: or group: and a name`}},
		"a bare name":        {[]stele.Grant{{"ana", stele.RoleReader}}, []string{`grants[0].to: "ana" is not a user or group`}},
		"no name":            {[]stele.Grant{{"user:", stele.RoleReader}}, []string{`grants[0].to: "user:" is not a user or group`}},
		"only a space":       {[]stele.Grant{{"group: ", stele.RoleReader}}, []string{`grants[0].to: "group: " is not a user or group`}},
		"another kind":       {[]stele.Grant{{"host:a.b", stele.RoleReader}}, []string{`grants[0].to: "host:a.b" is not a user or group`}},
		"capitals":           {[]stele.Grant{{"User:ana", stele.RoleReader}}, []string{`grants[0].to: "User:ana" is not a user or group`}},
		"a line break":       {[]stele.Grant{{"user:a\nb", stele.RoleReader}}, []string{"grants[0].to: at byte 6: control character"}},
		"no UTF-8":           {[]stele.Grant{{"user:\xff", stele.RoleReader}}, []string{"grants[0].to: "}},
		"no role":            {[]stele.Grant{{"user:a", stele.RoleReader}, {"user:b", stele.NoRole}}, []string{`grants[1].role: "" is not a role; there are reader, editor and owner`}},
		"an odd role":        {[]stele.Grant{{"user:a", "admin"}}, []string{`grants[0].role: "admin" is not a role`}},
		"a role in capitals": {[]stele.Grant{{"user:a", "Owner"}}, []string{`grants[0].role: "Owner" is not a role`}},
		"twice the same":     {[]stele.Grant{{"user:a", stele.RoleReader}, {"user:a", stele.RoleReader}}, []string{"grants[1].to: is the same as grants[0].to"}},
		"two roles":          {[]stele.Grant{{"user:a", stele.RoleReader}, {"user:b", stele.RoleReader}, {"user:a", stele.RoleOwner}}, []string{"grants[2].to: is the same as grants[0].to"}},
		"all that is wrong":  {[]stele.Grant{{"a", "b"}, {"user:a", "c"}}, []string{"grants[0].to: ", "grants[0].role: ", "grants[1].role: "}},
	} {
		t.Run(name, func(t *testing.T) {
			err := recordtest.Granting(c.grants...).Validate()
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			problems, ok := errors.AsType[stele.Problems](err)
			if !ok || !errors.Is(err, stele.Invalid) || len(problems) != len(c.want) {
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
