package lsid_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/lsid"
)

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// TestAudited: the audit trail says that a name was assigned here, for which user, and who was refused.
func TestAudited(t *testing.T) {
	a := newAuthority(t, func(_ *httpd.Options, o *lsid.Options) {
		o.Address = func(*http.Request) string { return "192.0.2.7" }
	})
	a.space("urn:lsid:example.org:birds", func(ns *stele.Namespace) { ns.Minter = stele.Minter{Kind: stele.MinterNOID, Template: ".zd"} })
	birds := "<authority>example.org</authority><namespace>birds</namespace>"
	if w := a.soap("/authority/assigning", "assignLSID", birds, "Authorization", "Bearer "+editorToken); w.StatusCode != http.StatusOK {
		t.Fatal(w.body)
	}
	a.soap("/authority/assigning", "assignLSID", birds, "Authorization", "Bearer "+guestToken).fails(t, "700")
	a.put("urn:lsid:example.org:birds:robin", stele.Record{State: stele.Active})
	if w := a.get("/authority/notify?lsid=urn:lsid:example.org:birds:robin&authorityName=example.net", "Authorization", "Bearer "+editorToken); w.StatusCode != http.StatusOK {
		t.Fatal(w.body)
	}
	var got []string
	for item, err := range a.registrar.Audit(a.ctx, registrar.AuditQuery{Via: "lsid"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e := item.Entry; e != nil {
			got = append(got, e.By+" "+e.Operation+" "+string(e.Outcome)+" "+e.Address)
		}
	}
	want := []string{"ann mint and register done 192.0.2.7", "bob assignLSID refused 192.0.2.7", "ann add foreign authority done 192.0.2.7"}
	if !slices.Equal(got, want) {
		t.Errorf("the audit trail has %q", got)
	}
}
