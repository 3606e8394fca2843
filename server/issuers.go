package server

import (
	"crypto/rand"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth/issuer"
	"github.com/stele-id/stele/outbound"
)

// openIssuers makes the OpenID providers of the settings. It asks them nothing: one that is down
// does not stop the server.
func (s *server) openIssuers() error {
	rule, err := outbound.ParseRule(s.IssuerAllow)
	if err != nil {
		return refuse("serve", stele.Invalid, "", "issuer-allow: {cause}", err)
	}
	list, err := s.Config.Issuers()
	if err != nil {
		return refuse("serve", stele.Invalid, "", "{cause}", err)
	}
	for _, settings := range list {
		s.issuers = append(s.issuers, issuer.New(issuer.Options{Settings: settings, Rule: rule, Base: s.Base, Now: s.now, Random: rand.Reader}))
	}
	return nil
}
