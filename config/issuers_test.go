package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stele-id/stele/auth/issuer"
)

const oneIssuer = "base = 'https://id.example.org'\nissuer.campus = 'https://login.example.org'\nissuer-client.campus = 'stele'\nissuer-secret-file.campus = 'secret'"

func TestIssuers(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("  a b c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(oneIssuer, "'secret'", "'"+secret+"'", 1) + `
issuer-label.campus = "The Campus"
issuer-scopes.campus = "profile,groups"
issuer-groups-claim.campus = "groups"
issuer-group = ["campus/curators=CN=staff, OU=library", "campus/press=press"]
issuer-enter.campus = "claim:affiliation=a=b"
`
	c := Load(writeConfig(t, text), nil, nil)
	if len(c.Problems) > 0 {
		t.Fatal(c.Problems)
	}
	list, err := c.Issuers()
	want := []issuer.Settings{{Name: "campus", Label: "The Campus", URL: "https://login.example.org", Client: "stele", Secret: "a b c", Scopes: []string{"profile", "groups"}, GroupsClaim: "groups",
		Groups: []issuer.GroupRule{{Value: "CN=staff, OU=library", Group: "curators"}, {Value: "press", Group: "press"}}, Enter: issuer.Enter{Kind: issuer.EnterByClaim, Claim: "affiliation", Value: "a=b"}}}
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("got %+v, %v", list, err)
	}
	if err := os.WriteFile(secret, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Issuers(); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty secret: %v", err)
	}
}

func TestIssuersWrong(t *testing.T) {
	for text, want := range map[string]string{
		"issuer.campus = 'http://login.example.org'":                            "with https",
		"issuer.campus = 'https://login.example.org/?x=1'":                      "without a query",
		"issuer.Campus = 'https://login.example.org'":                           "can't be the name of an issuer",
		"issuer.campus = 'https://login.example.org'":                           "set base",
		"base = 'https://x.example'\nissuer.campus = 'https://l.example'":       "needs a client ID",
		oneIssuer + "\nissuer-label.library = 'L'":                              `there is no issuer "library"`,
		oneIssuer + "\nissuer-enter.campus = 'everyone'":                        "write none, invited, or claim",
		oneIssuer + "\nissuer-enter.campus = 'claim:x'":                         "write none, invited, or claim",
		oneIssuer + "\nissuer-group = ['campus/curators=x']":                    "set issuer-groups-claim.campus",
		oneIssuer + "\nissuer-group = ['campus=x']":                             "write ISSUER/GROUP=VALUE",
		"proxy-user-header = 'Remote-User'":                                     "set trusted-proxies",
		"proxy-user-header = 'Remote User'":                                     "not the name of a header",
		"trusted-proxies = ['127.0.0.1']\nproxy-groups-header = 'Remote-Group'": "set proxy-user-header",
	} {
		c := Load(writeConfig(t, text), nil, nil)
		said := ""
		for _, q := range c.Problems {
			said += q.String() + "\n"
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s:\n%s", text, said)
		}
	}
}
