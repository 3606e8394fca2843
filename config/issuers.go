package config

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/issuer"
)

var (
	headerKind      = kind{"header", textForm, orNothing(readHeader)}
	issuerKind      = kind{"issuer=URL", tableForm, readIssuer}
	issuerTextKind  = kind{"issuer=text", tableForm, readIssuerText}
	issuerFileKind  = kind{"issuer=file", tableForm, readIssuerFile}
	issuerEnterKind = kind{"issuer=who", tableForm, readIssuerEnter}
	issuerGroupKind = kind{"issuer/group=value", listForm, readIssuerGroup}
)

// readHeader reads the name of a header.
func readHeader(_ *Setting, text string) (any, error) {
	bad := strings.TrimFunc(text, func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
	})
	if bad != "" || len(text) > 100 {
		return nil, stele.Messagef("config.not-a-header", `"{value}" is not the name of a header; write it as in Remote-User`, text)
	}
	return text, nil
}

// issuerPair cuts a pair of the name of an issuer and a value.
func issuerPair(s *Setting, text string) (value string, err error) {
	name, value, _ := strings.Cut(text, "=")
	switch {
	case !issuer.IsName(name):
		return "", stele.Messagef("config.issuer-name-invalid", `"{name}" can't be the name of an issuer, which has 1 to 20 of a-z, 0-9 and -, and begins with a letter or a digit`, name)
	case value == "":
		return "", stele.Messagef("config.issuer-value-missing", "a value belongs here; an example is {example}", s.InFile(s.Example))
	}
	return value, nil
}

func readIssuer(s *Setting, text string) (any, error) {
	link, err := issuerPair(s, text)
	if err != nil {
		return nil, err
	}
	return link, issuer.CheckURL(link)
}

func readIssuerText(s *Setting, text string) (any, error) {
	value, err := issuerPair(s, text)
	return value, err
}

func readIssuerFile(s *Setting, text string) (any, error) {
	name, err := issuerPair(s, text)
	if err != nil {
		return nil, err
	}
	return readFile(s, name)
}

func readIssuerEnter(s *Setting, text string) (any, error) {
	value, err := issuerPair(s, text)
	if err != nil {
		return nil, err
	}
	_, err = issuer.ParseEnter(value)
	return value, err
}

// readIssuerGroup reads ISSUER/GROUP=VALUE.
func readIssuerGroup(_ *Setting, text string) (any, error) {
	if name, group, value := cutGroup(text); !issuer.IsName(name) || !auth.IsName(group) || value == "" {
		return nil, stele.Messagef("config.issuer-group-invalid", `"{value}" does not say which group follows from a claim; write ISSUER/GROUP=VALUE, as in campus/curators=library-staff`, text)
	}
	return text, nil
}

func cutGroup(text string) (name, group, value string) {
	name, rest, _ := strings.Cut(text, "/")
	group, value, _ = strings.Cut(rest, "=")
	return name, group, value
}

// checkIssuers checks the settings of issuers and of proxies that sign users in.
func (c *Config) checkIssuers() {
	if c.ProxyUser != "" && len(c.TrustedProxies) == 0 {
		c.Wrong("proxy-user-header", "config.proxy-user-without-proxies", "the header is taken from trusted proxies only, and there are none; set trusted-proxies")
	}
	if c.ProxyUser == "" && (c.ProxyGroups != "" || c.ProxyMakeUsers) {
		c.Wrong(map[bool]string{true: "proxy-groups-header", false: "proxy-make-users"}[c.ProxyGroups != ""], "config.proxy-user-missing", "no header names the user; set proxy-user-header")
	}
	if len(c.Issuer) > 0 && c.Base == "" {
		c.Wrong("issuer", "config.issuer-without-base", "a provider leads people back to the public address of the server; set base")
	}
	urls := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Issuer)) {
		if urls[c.Issuer[name]] {
			c.Wrong("issuer", "config.issuer-twice", "{url} is named twice; name it once", c.Issuer[name])
		}
		urls[c.Issuer[name]] = true
		if c.IssuerClient[name] == "" {
			c.Wrong("issuer", "config.issuer-client-missing", `the issuer "{name}" needs a client ID; set issuer-client.{name}`, name)
		}
		if c.IssuerSecret[name] == "" {
			c.Wrong("issuer", "config.issuer-secret-missing", `the issuer "{name}" needs a client secret; set issuer-secret-file.{name}`, name)
		}
	}
	known := func(setting, name string) {
		if _, ok := c.Issuer[name]; !ok {
			c.Wrong(setting, "config.issuer-unknown", `there is no issuer "{name}"; set issuer.{name}`, name)
		}
	}
	for setting, table := range map[string]map[string]string{"issuer-label": c.IssuerLabel, "issuer-client": c.IssuerClient, "issuer-secret-file": c.IssuerSecret,
		"issuer-scopes": c.IssuerScopes, "issuer-groups-claim": c.IssuerClaim, "issuer-enter": c.IssuerEnter} {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			known(setting, name)
		}
	}
	for _, text := range c.IssuerGroup {
		name, _, _ := cutGroup(text)
		known("issuer-group", name)
		if c.IssuerClaim[name] == "" {
			c.Wrong("issuer-group", "config.issuer-claim-missing", `no claim lists the groups of the issuer "{name}"; set issuer-groups-claim.{name}`, name)
		}
	}
}

// maxSecret is the size of the largest client secret.
const maxSecret = 4096

// Issuers returns the issuers in the order of their names, with their secrets, which it reads from
// their files.
func (v *Values) Issuers() (list []issuer.Settings, err error) {
	for _, name := range slices.Sorted(maps.Keys(v.Issuer)) {
		s := issuer.Settings{Name: name, URL: v.Issuer[name], Label: v.IssuerLabel[name], Client: v.IssuerClient[name], GroupsClaim: v.IssuerClaim[name],
			Scopes: SplitList(v.IssuerScopes[name]), Enter: issuer.Enter{Kind: issuer.EnterIfInvited}}
		if text := v.IssuerEnter[name]; text != "" {
			if s.Enter, err = issuer.ParseEnter(text); err != nil {
				return nil, err
			}
		}
		for _, text := range v.IssuerGroup {
			if of, group, value := cutGroup(text); of == name {
				s.Groups = append(s.Groups, issuer.GroupRule{Value: value, Group: group})
			}
		}
		if s.Secret, err = readSecretFile(issuerSecretTexts(name), v.IssuerSecret[name]); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// secretTexts are what is said of a secret that can't be read. The file is not named twice.
type secretTexts struct{ tooLong, unreadable, empty func(cause error) error }

func issuerSecretTexts(name string) secretTexts {
	return secretTexts{
		func(error) error {
			return stele.Messagef("config.issuer-secret-too-long", `the file of the client secret of the issuer "{name}" has more than {most} bytes; it must hold the secret alone`, name, maxSecret)
		},
		func(cause error) error {
			return stele.Messagef("config.issuer-secret-unreadable", `the client secret of the issuer "{name}" can't be read: {cause}`, name, cause)
		},
		func(error) error {
			return stele.Messagef("config.issuer-secret-empty", `the file of the client secret of the issuer "{name}" is empty; write the secret that the provider gave to it`, name)
		},
	}
}

// readSecretFile reads a secret that another server gave. Its errors never repeat what is in the file.
func readSecretFile(texts secretTexts, file string) (string, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxSecret {
		return "", texts.tooLong(nil)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", texts.unreadable(err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", texts.empty(nil)
	}
	return secret, nil
}
