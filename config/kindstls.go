package config

import (
	"net/mail"
	"net/netip"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/httpd"
)

// readFile reads the name of a file. The file is opened only when it is used.
func readFile(_ *Setting, text string) (any, error) {
	if strings.HasSuffix(text, "/") || strings.ContainsRune(text, 0) {
		return nil, stele.Messagef("config.not-a-file-name", `"{value}" is not a name of a file`, text)
	}
	return text, nil
}

// readDomain reads a name for which there can be a certificate by ACME's challenges
// over HTTP and TLS, which know no wildcards (RFC 8555, section 8.3).
func readDomain(_ *Setting, text string) (any, error) {
	name := strings.ToLower(strings.TrimSpace(text))
	if strings.HasPrefix(name, "*.") {
		return nil, stele.Messagef("config.acme-wildcard", `"{name}": there is no certificate for all names below another one without a change in the DNS; name those that you need`, text)
	}
	if _, err := netip.ParseAddr(name); err == nil || !isHost(name) || strings.HasSuffix(name, ".") {
		return nil, stele.Messagef("config.not-a-host-name", `"{value}" is not the name of a host`, text)
	}
	return name, nil
}

func readEmail(_ *Setting, text string) (any, error) {
	address, err := mail.ParseAddress(text)
	if err != nil || address.Address != text {
		return nil, stele.Messagef("config.not-a-mailbox", `"{value}" is not an address of a mailbox; write it as in hostmaster@example.org`, text)
	}
	return text, nil
}

// readDirectory reads the URL of a CA.
func readDirectory(_ *Setting, text string) (any, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, stele.Messagef("config.not-a-ca-directory", `"{value}" is not a directory of a CA; write it as in {example}`, text, LetsEncrypt)
	}
	return text, nil
}

// readProxy reads an address or a network.
func readProxy(_ *Setting, text string) (any, error) {
	text = strings.TrimSpace(text)
	if _, err := httpd.ParseProxy(text); err != nil {
		return nil, err
	}
	return text, nil
}
