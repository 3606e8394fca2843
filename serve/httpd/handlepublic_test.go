package httpd

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// A value with the permission publicWrite is changed by a client without credentials where the namespace says so. In all other cases the
// client gets the challenge that it always got, whatever the handle has.
func TestPublicWriteREST(t *testing.T) {
	f := newAdminFixture(t)
	value := func(index uint32, permissions stele.Permission) stele.HandleValue {
		return stele.HandleValue{Index: index, Type: "NOTE", Data: []byte("first"), TTL: 86400, Permissions: permissions}
	}
	open := stele.DefaultPermissions | stele.PublicWrite
	if _, err := f.registrar.AddNamespace(f.admin, &stele.Namespace{Scheme: "hdl", Prefix: "20.500.2/", Handles: stele.HandleService{PublicWrite: true}}); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"20.500.99999", "20.500.2"} {
		f.register(prefix+"/OPEN", value(1, open), value(2, stele.DefaultPermissions), stele.HandleValue{Index: 300, Type: "HS_VLIST", Data: []byte{0, 0, 0, 0}, TTL: 86400, Permissions: open})
	}
	body := func(index int, kind, permissions, data string) string {
		return fmt.Sprintf(`{"values":[{"index":%d,"type":%q,"data":%q,"ttl":86400,"permissions":%q}]}`, index, kind, data, permissions)
	}
	now := func(handle string) string {
		rec, err := f.registrar.Get(f.admin, f.id(handle))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %s", rec.Values[0].Data, rec.By)
	}
	put := func(server, path, text string, head map[string]string) handleReply {
		all := map[string]string{"Content-Type": "application/json"}
		for name, value := range head {
			all[name] = value
		}
		return f.send(f.client, http.MethodPut, server+"/api/handles/"+path, text, all)
	}
	for i, server := range []string{f.secure.URL, f.clear.URL} {
		text := fmt.Sprintf("round %d", i)
		if got := put(server, "20.500.2/open?index=1", body(1, "NOTE", "1111", text), nil); got.status != http.StatusOK || !strings.Contains(got.body, `"responseCode":1`) {
			t.Errorf("%s: %d %s", server, got.status, got.body)
		}
		if got := now("20.500.2/OPEN"); got != text+" 0:public" {
			t.Errorf("the value is %s", got)
		}
	}
	before := now("20.500.2/OPEN")
	for what, tt := range map[string]struct {
		path, body string
		head       map[string]string
	}{
		"a namespace that does not say so": {"20.500.99999/open?index=1", body(1, "NOTE", "1111", "x"), nil},
		"a value that does not say so":     {"20.500.2/open?index=2", body(2, "NOTE", "1110", "x"), nil},
		"other permissions":                {"20.500.2/open?index=1", body(1, "NOTE", "1110", "x"), nil},
		"another type":                     {"20.500.2/open?index=1", body(1, "URL", "1111", "x"), nil},
		"a value that is not there":        {"20.500.2/open?index=9", body(9, "NOTE", "1111", "x"), nil},
		"a handle that is not there":       {"20.500.2/none?index=1", body(1, "NOTE", "1111", "x"), nil},
		"a value of the Handle System":     {"20.500.2/open?index=300", body(300, "HS_VLIST", "1111", "x"), nil},
		"all of the handle":                {"20.500.2/open", body(1, "NOTE", "1111", "x"), nil},
		"another index":                    {"20.500.2/open?index=2", body(1, "NOTE", "1111", "x"), nil},
		"no values":                        {"20.500.2/open?index=1", "no JSON", nil},
		"a page of another site":           {"20.500.2/open?index=1", body(1, "NOTE", "1111", "x"), map[string]string{"Sec-Fetch-Site": "cross-site"}},
		"another interface's credentials":  {"20.500.2/open?index=1", body(1, "NOTE", "1111", "x"), map[string]string{"Authorization": "Bearer x"}},
	} {
		f.pass(time.Minute) // the budget is whole again
		for server, want := range map[string]int{f.secure.URL: http.StatusUnauthorized, f.clear.URL: http.StatusForbidden} {
			if got := put(server, tt.path, tt.body, tt.head); got.status != want || !strings.Contains(got.body, `"responseCode":402`) {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		}
	}
	if got := now("20.500.2/OPEN"); got != before {
		t.Errorf("the value became %s", got)
	}
	// A client that asks too often is challenged, too.
	f.pass(time.Minute)
	challenged := 0
	for i := range 25 {
		if got := put(f.secure.URL, "20.500.2/open?index=1", body(1, "NOTE", "1111", fmt.Sprint(i)), nil); got.status == http.StatusUnauthorized {
			challenged++
		}
	}
	if challenged == 0 || challenged > 5 {
		t.Errorf("%d of 25 requests were challenged", challenged)
	}
}
