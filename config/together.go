package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// checkTogether finds combinations of settings that are wrong, if each setting alone is
// right.
func (c *Config) checkTogether() {
	if len(c.Problems) > 0 {
		return
	}
	for name, address := range map[string]string{"https": c.HTTPS, "metrics": c.Metrics} {
		if address != "" && address == c.HTTP && !strings.HasSuffix(address, ":0") {
			c.Wrong(name, "config.address-is-public", "{address} is the address for the public too; choose another port", address)
		}
	}
	c.checkTLS()
	c.checkIssuers()
	c.checkMail()
	c.checkEscrow()
}

// choosePlace decides between a folder and a database: the source that wins over the
// other decides, and if one names both it is the database.
func (c *Config) choosePlace() {
	rank := func(name string) int {
		switch c.origin[name] {
		case Default:
			return 0
		case "environment":
			return 2
		case Flag:
			return 3
		}
		return 1 // the file
	}
	if c.Store != "" && rank("data") > rank("store") {
		c.Store, c.values["store"] = "", ""
	}
}

// Wrong notes a problem of a setting.
func (c *Config) Wrong(name, code, text string, args ...any) {
	q := c.places[name]
	q.set(stele.Messagef(code, text, args...))
	c.Problems = append(c.Problems, q)
}

// checkTLS checks the settings of https against each other.
func (c *Config) checkTLS() {
	files, acme := c.TLSCert != "" || c.TLSKey != "", len(c.ACMEDomains) > 0
	switch {
	case c.TLSCert != "" && c.TLSKey == "":
		c.Wrong("tls-cert", "config.tls-key-missing", "the certificate is of no use without its key; set tls-key")
	case c.TLSKey != "" && c.TLSCert == "":
		c.Wrong("tls-key", "config.tls-cert-missing", "the key is of no use without its certificate; set tls-cert")
	case files && acme:
		c.Wrong("acme-domain", "config.certificate-source-twice", "the certificate comes from tls-cert, or from a CA; set one of the two")
	case files && c.HTTPS == "" && len(c.DNSTLS) == 0:
		c.Wrong("tls-cert", "config.tls-cert-without-use", "there is nothing that it is for; set https")
	case acme && c.HTTPS == "":
		c.Wrong("acme-domain", "config.acme-without-https", "there is nothing that the certificate is for; set https")
	case c.HTTPS != "" && !files && !acme:
		c.Wrong("https", "config.https-certificate-missing", "there is no certificate for it; set tls-cert and tls-key, or acme-domain")
	}
	switch {
	case len(c.DNSTLS) == 0:
	case len(c.DNS) == 0:
		c.Wrong("dns-tls", "config.dns-tls-without-dns", "no zones are answered that could be answered over TLS too; set dns")
	case !files && !acme:
		c.Wrong("dns-tls", "config.dns-tls-certificate-missing", "there is no certificate for it; set tls-cert and tls-key, or https and acme-domain")
	default:
		taken := append([]string{c.HTTP, c.HTTPS, c.Metrics}, c.DNS...)
		for _, address := range c.DNSTLS {
			if !strings.HasSuffix(address, ":0") && slices.Contains(taken, address) {
				c.Wrong("dns-tls", "config.dns-tls-address-taken", "{address} is used for something else already; choose another port", address)
			}
			taken = append(taken, address)
		}
	}
	for i, address := range c.DNS {
		if !strings.HasSuffix(address, ":0") && slices.Contains(c.DNS[:i], address) {
			c.Wrong("dns", "config.address-twice", "{address} is named twice; name it once", address)
		}
	}
	if len(c.NotifySource) > 2 || len(c.NotifySource) == 2 && isIPv4(c.NotifySource[0]) == isIPv4(c.NotifySource[1]) {
		c.Wrong("notify-source", "config.notify-source-twice", "notices are sent from one address of each kind; name one for IPv4 and one for IPv6 at most")
	}
	if c.RedirectHTTPS && c.HTTPS == "" && !strings.HasPrefix(c.Base, "https://") {
		c.Wrong("redirect-https", "config.redirect-without-https", "there is no https to redirect clients to; set https, or in base the address of the proxy that speaks it")
	}
	if c.RedirectHTTPS && c.HTTPS == "" && len(c.TrustedProxies) == 0 {
		c.Wrong("redirect-https", "config.redirect-loop", "the server can't recognise requests that came by https, so clients would be redirected in a loop; set https, or in trusted-proxies the proxy that speaks it")
	}
	if c.SearchIndex != "" && c.Store == "" && isWithin(c.SearchIndex, c.Data) {
		c.Wrong("search-index", "config.folder-inside-registry", "this is inside the folder of the registry, where nothing else may be; choose another one")
	}
	if acme && isWithin(c.CertificateFolder(), c.Data) {
		c.Wrong("acme-storage", "config.folder-inside-registry", "this is inside the folder of the registry, where nothing else may be; choose another one")
	}
}

// SearchFolder returns the folder of the search index; "" if there is none, for a registry in a
// database.
func (c *Values) SearchFolder() string {
	if c.SearchIndex != "" || c.Store != "" {
		return c.SearchIndex
	}
	return filepath.Clean(c.Data) + "-search"
}

// CertificateFolder returns the folder for what comes from a CA.
func (c *Values) CertificateFolder() string {
	if c.ACMEStorage != "" {
		return c.ACMEStorage
	}
	return filepath.Clean(c.Data) + "-acme"
}

// isWithin reports whether a path is a folder, or inside it.
func isWithin(path, folder string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return false
	}
	between, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(between)
}

// isIPv4 reports whether an address is of IPv4.
func isIPv4(text string) bool { return !strings.Contains(text, ":") }
