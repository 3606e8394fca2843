package doctor

import (
	"cmp"
	"context"
	"crypto/rand"

	"github.com/stele-id/stele/auth/issuer"
	"github.com/stele-id/stele/outbound"
)

// examineIssuers asks each OpenID provider for its endpoints, as the server does when the first user
// signs in through it.
func examineIssuers(ctx context.Context, x *subject) {
	if x.Away || len(x.Config.Issuer) == 0 {
		return
	}
	rule, err := outbound.ParseRule(x.Config.IssuerAllow)
	if err != nil {
		return // an earlier examination has reported it
	}
	list, err := x.Config.Issuers()
	if err != nil {
		x.problem("write the secret that the provider gave into that file, and let the server's user read it", "", "{cause}", err)
		return
	}
	for _, settings := range list {
		i := issuer.New(issuer.Options{Settings: settings, Rule: rule, Base: x.Config.Base, Now: x.Now, Random: rand.Reader})
		if err := i.Check(ctx); err != nil {
			x.problem("see that the URL is the one that the provider writes in its tokens, and that it can be reached from here; a private address must be in issuer-allow", "doctor.issuer-silent", "users can't sign in through {issuer}: {cause}", settings.URL, cmp.Or(issuer.Cause(err), err))
			continue
		}
		x.ok("doctor.issuer-answers", "{issuer} answers; it must know {redirect} as a redirect URI", settings.URL, x.Config.Base+issuer.BackPath(settings.Name))
	}
}
