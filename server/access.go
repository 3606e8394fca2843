package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registry"
)

const (
	firstUser  = "admin"     // the user that is made where the registry has none
	firstLabel = "first one" // of their token
)

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
	credential, err := firstAdministrator(auth.With(running, auth.Local()), r, s.now())
	if err != nil {
		s.log.Error("no administrator could be made; stop the server and make one: stele user add "+firstUser+" --admin", "error", err.Error())
	}
	if credential != "" {
		s.o.FirstToken(firstUser, credential)
	}
}

// firstAdministrator makes an administrator and a token, and returns the token, if the
// registry has no user. If the program ends before the token is shown, the owner of the
// folder makes another one.
func firstAdministrator(ctx context.Context, r *registry.Registry, now time.Time) (credential string, err error) {
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
	credential, _, err = r.Registrar.CreateToken(ctx, auth.TokenRequest{User: firstUser, Label: firstLabel, Expires: now.Add(auth.TokenLife)})
	return credential, err
}
