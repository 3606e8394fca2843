package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registry"
)

const (
	firstUser  = "admin"     // who is made where nobody is known yet
	firstLabel = "first one" // of their token
)

// identifyRequest says who sends a request.
func identifyRequest(r *registry.Registry, request *http.Request) (auth.Principal, error) {
	who, err := r.Directory.AuthenticateHeader(request.Context(), request.Header["Authorization"])
	if errors.Is(err, stele.Unauthenticated) {
		r.Registrar.NoteFailure(auth.WithOrigin(request.Context(), auth.Origin{Via: "resolver"}), "authenticate", "", err)
	}
	return who, err
}

// openAccess makes sure that somebody can administrate the registry over the network.
// Names are answered for even if nobody can.
func (s *server) openAccess(running context.Context, r *registry.Registry) {
	credential, err := firstAdministrator(auth.With(running, auth.Local()), r, s.now())
	if err != nil {
		s.log.Error("no administrator could be made; stop the server and make one: stele user add "+firstUser+" --admin", "error", err.Error())
	}
	s.credential = credential
	if credential != "" && !s.demo { // which shows it among what to try
		s.showCredential(credential)
	}
}

// keepUsesOften keeps note of when tokens are used until the context ends.
func (s *server) keepUsesOften(ctx context.Context, r *registry.Registry) {
	often := time.NewTicker(time.Minute)
	defer often.Stop()
	for {
		select {
		case <-often.C:
			s.keepUses(ctx, r)
		case <-ctx.Done():
			return
		}
	}
}

// firstAdministrator makes an administrator and a token, and returns that, if the
// registry knows nobody. If the program ends between that and when it is printed,
// whoever owns the folder makes another token; nobody is shut out.
func firstAdministrator(ctx context.Context, r *registry.Registry, now time.Time) (credential string, err error) {
	for _, err := range r.Registrar.Users(ctx) {
		return "", err // somebody is known, or that can't be told
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

// showCredential prints the token of the first administrator, for people and not into
// the log.
func (s *server) showCredential(credential string) {
	fmt.Fprintf(s.stderr, `
  ------------------------------------------------------------------------
  This registry had no users. There is one now: %[1]s, an administrator.
  The token of %[1]s, which is shown this once and kept nowhere:

      %[2]s

  Keep it as you keep a password. If it is lost, stop the server and make
  another: stele token create %[1]s %[3]s
  ------------------------------------------------------------------------

`, firstUser, credential, printable(s.place().Flag()))
}

// keepUses writes when tokens were used last. If it can't, nothing is lost but that.
func (s *server) keepUses(ctx context.Context, r *registry.Registry) {
	if err := r.Directory.Flush(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
		s.log.Warn("when tokens were used last can't be written", "error", err.Error())
	}
}
