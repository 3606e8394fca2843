package server

import (
	"net/url"
	"strings"

	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/httpd/oai"
)

// harvestable makes the handler for harvesters.
func (s *server) harvestable(r *registry.Registry) *oai.Handler {
	name := s.SiteName
	if name == "" {
		name = "Stele"
	}
	return oai.New(oai.Options{Registrar: r.Registrar, Store: r.Store, Schemes: s.schemes, Now: s.now, Log: s.log, Name: name, Mail: s.harvestMail()})
}

// harvestMail returns the address of the operator, without which a repository is not valid (OAI-PMH 2.0, 4.2). If no setting has
// one it is that of the web server's administrator (RFC 2142, section 5).
func (s *server) harvestMail() string {
	if s.OAIMail != "" {
		return s.OAIMail
	}
	if contact := strings.TrimPrefix(s.SiteContact, "mailto:"); strings.Contains(contact, "@") && !strings.Contains(contact, "/") {
		return contact
	}
	if base, err := url.Parse(s.Base); err == nil && base.Hostname() != "" {
		return "webmaster@" + base.Hostname()
	}
	return "webmaster@localhost"
}
