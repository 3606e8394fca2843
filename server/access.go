package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/desk"
)

// firstUser is the user that is made where the registry has none.
const firstUser = "admin"

// identifyRequest returns the principal of a request.
func identifyRequest(r *registry.Registry, request *http.Request) (auth.Principal, error) {
	who, err := r.Directory.AuthenticateHeader(request.Context(), request.Header["Authorization"])
	if errors.Is(err, stele.Unauthenticated) {
		r.Registrar.NoteFailure(auth.WithOrigin(request.Context(), auth.Origin{Via: "resolver"}), "authenticate", "", err)
	}
	return who, err
}

// openAccess makes sure that an administrator can use the registry over the network. The
// server answers even if no administrator can be made.
func (s *server) openAccess(running context.Context, r *registry.Registry) {
	link, err := firstAdministrator(auth.With(running, auth.Local()), r)
	if err != nil {
		s.log.Error("no administrator could be made, or no link for one; stop the server, and make them: stele user add "+firstUser+" --admin; stele user link "+firstUser, "error", err.Error())
	}
	if link != "" {
		s.o.FirstAccess(firstUser, cmp.Or(s.Base, s.https.url(), s.http.url())+desk.Root+"link/"+link)
	}
}

// firstAdministrator makes an administrator and a one-time link, and returns the credential of
// the link, if the registry has no user. If the program ends before it is shown, the owner of the
// folder makes another.
func firstAdministrator(ctx context.Context, r *registry.Registry) (link string, err error) {
	for _, err := range r.Registrar.Users(ctx) {
		return "", err // there is a user, or the store can't be read
	}
	_, err = r.Registrar.AddUser(ctx, auth.User{Name: firstUser, Admin: true})
	switch {
	case errors.Is(err, stele.Conflict): // another server was faster, and prints it
		return "", nil
	case err != nil:
		return "", err
	}
	link, _, err = r.Registrar.CreateLink(ctx, firstUser, 0)
	return link, err
}
