// Package issuer signs people in at OpenID providers: the code flow with PKCE, state and nonce
// (OpenID Connect Core 1.0, section 3.1; RFC 7636).
//
// It returns who a provider says that a person is. It never decides whether this person may
// enter, keeps nothing, and writes nothing: what it must remember between the two halves of a
// sign-in is in a sealed cookie. A provider that is down is noticed when it is used, not before.
package issuer

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/outbound"
)

const op = "sign in"

// usualAge is how long ago, in seconds, a person may have signed in at the provider: 30 days, as a
// session lasts.
const usualAge = "2592000"

// Bounds of requests to a provider.
const (
	patience  = 10 * time.Second // for one request
	maxAnswer = 1 << 20          // bytes
	learnt    = time.Hour        // for which the provider's endpoints are used without asking again
	pause     = 5 * time.Second  // before a provider that failed is asked again: visitors do not wait one after the other
)

// Options are what an Issuer needs to know of the server. Now and Random must be set.
type Options struct {
	Settings
	Rule   outbound.Rule // addresses to which requests may go
	Base   string        // public URL of the server
	Now    func() time.Time
	Random io.Reader
}

// Issuer is an OpenID provider. It is used by many goroutines at once.
type Issuer struct {
	o      Options
	client *outbound.Client

	mu       sync.Mutex
	provider *oidc.Provider // nil: not asked yet
	at       time.Time      // when it was asked
	failure  error          // of the last attempt; nil if there was none
	failed   time.Time
}

// New returns an issuer. It asks the provider nothing.
func New(o Options) *Issuer {
	return &Issuer{o: o, client: outbound.NewClient(o.Rule, patience, maxAnswer)}
}

// Settings returns what the operator says of the issuer.
func (i *Issuer) Settings() Settings { return i.o.Settings }

// BackPath is the path to which the provider of an issuer leads back.
func BackPath(name string) string { return "/.desk/issuer/" + name + "/back" }

// Check asks the provider for its endpoints, as the first sign-in does.
func (i *Issuer) Check(ctx context.Context) error {
	_, err := i.ask(ctx)
	return err
}

// ask returns the provider. What it says is used for a while; if it can't be reached then, for
// longer.
func (i *Issuer) ask(ctx context.Context) (*oidc.Provider, error) {
	i.mu.Lock()
	defer i.mu.Unlock() // the others want to know the same
	now := i.o.Now()
	if i.provider != nil && now.Sub(i.at).Abs() < learnt {
		return i.provider, nil
	}
	if i.failure != nil && now.Sub(i.failed).Abs() < pause {
		return nil, i.failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, &i.client.Client), i.o.URL)
	if err == nil {
		err = i.judge(p)
	}
	switch {
	case err == nil:
		i.provider, i.at, i.failure = p, now, nil
	case i.provider != nil:
		i.at = now
	default:
		i.failure, i.failed = away(i.o.Title(), err), i.o.Now()
		return nil, i.failure
	}
	return i.provider, nil
}

// judge makes sure that a provider with https names no endpoints without it.
func (i *Issuer) judge(p *oidc.Provider) error {
	var said struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&said); err != nil {
		return err
	}
	e := p.Endpoint()
	for _, text := range []string{e.AuthURL, e.TokenURL, said.Keys} {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || strings.HasPrefix(i.o.URL, "https:")) {
			return stele.Messagef("issuer.endpoint-invalid", `the provider names "{url}" as an endpoint, which is not a URL with https`, text)
		}
	}
	return nil
}

// away says that a provider can't be used now. The cause is for the log.
func away(title string, cause error) error {
	return &stele.Error{Op: op, Kind: stele.Unavailable, Err: &failure{
		stele.Messagef("issuer.away", "{issuer} can't be reached, or does not answer as an OpenID provider; try again later, or sign in another way", title), cause}}
}

// wrong says that a provider's answer is not accepted. The cause is for the log.
func wrong(title string, cause error) error {
	return &stele.Error{Op: op, Kind: stele.Unauthenticated, Err: &failure{
		stele.Messagef("issuer.answer-refused", "the answer of {issuer} is not accepted; sign in again", title), cause}}
}

// failure is a message for people, with a cause for the log.
type failure struct {
	*stele.Message
	cause error
}

// Unwrap returns the message, with its code.
func (f *failure) Unwrap() error { return f.Message }

// Cause returns what went wrong inside, for the log; nil if the error says it all.
func Cause(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return short{f.cause}
	}
	return nil
}

// short is an error that may repeat the answer of a provider: the log needs its beginning.
type short struct{ error }

func (s short) Error() string {
	text := s.error.Error()
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "..."
	}
	return text
}

// config returns what the oauth2 package needs.
func (i *Issuer) config(p *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: i.o.Client, ClientSecret: i.o.Secret, Endpoint: p.Endpoint(),
		RedirectURL: i.o.Base + BackPath(i.o.Name), Scopes: append([]string{oidc.ScopeOpenID}, i.o.Scopes...)}
}

// Begin begins to sign in: it returns the URL of the provider to which the browser must go, and a
// cookie that the browser must bring back to [Issuer.Finish].
func (i *Issuer) Begin(ctx context.Context, v Visit) (to, cookie string, err error) {
	p, err := i.ask(ctx)
	if err != nil {
		return "", "", err
	}
	s := sealed{Visit: v, Issuer: i.o.URL, Expires: i.o.Now().Add(VisitLife)}
	for _, text := range []*string{&s.State, &s.Nonce, &s.Verifier} {
		if *text, err = random(i.o.Random); err != nil {
			return "", "", away(i.o.Title(), err)
		}
	}
	if cookie, err = i.seal(s); err != nil {
		return "", "", away(i.o.Title(), err)
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(s.Nonce), oauth2.S256ChallengeOption(s.Verifier)}
	// With max_age the provider says when the person signed in there (OpenID Connect Core 1.0,
	// section 3.1.2.1).
	if v.Again == "" {
		options = append(options, oauth2.SetAuthURLParam("max_age", usualAge))
	} else {
		options = append(options, oauth2.SetAuthURLParam("max_age", "0"), oauth2.SetAuthURLParam("prompt", "login"))
	}
	return i.config(p).AuthCodeURL(s.State, options...), cookie, nil
}

// Finish ends what Begin began, with the cookie and the query with which the provider led back. It
// returns who the person is. Unauthenticated if anything does not fit; see [Cause].
func (i *Issuer) Finish(ctx context.Context, cookie string, query url.Values) (Visit, Person, error) {
	s, err := i.open(cookie)
	title := i.o.Title()
	if err != nil || s.Issuer != i.o.URL || !i.o.Now().Before(s.Expires) {
		return Visit{}, Person{}, &stele.Error{Op: op, Kind: stele.Unauthenticated, Err: stele.Messagef("issuer.visit-expired",
			"signing in through {issuer} took too long, or was begun in another browser or tab; begin again", title)}
	}
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(s.State)) != 1 {
		return s.Visit, Person{}, wrong(title, stele.Messagef("issuer.state-differs", "the state is not the one that was sent"))
	}
	if iss := query.Get("iss"); iss != "" && iss != i.o.URL { // RFC 9207
		return s.Visit, Person{}, wrong(title, stele.Messagef("issuer.answer-of-other", "the answer names another issuer"))
	}
	if code := query.Get("error"); code != "" {
		return s.Visit, Person{}, i.refused(code, query.Get("error_description"))
	}
	p, err := i.ask(ctx)
	if err != nil {
		return s.Visit, Person{}, err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, &i.client.Client), 3*patience)
	defer cancel()
	token, err := i.config(p).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(s.Verifier))
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refusal.Response.StatusCode < http.StatusInternalServerError {
		return s.Visit, Person{}, wrong(title, err)
	} else if err != nil {
		return s.Visit, Person{}, away(title, err)
	}
	person, err := i.person(ctx, p, s, token)
	if err != nil {
		return s.Visit, Person{}, wrong(title, err)
	}
	return s.Visit, person, nil
}

// refused says that the provider did not sign the person in.
func (i *Issuer) refused(code, description string) error {
	cause := stele.Messagef("issuer.error-sent", "the provider sent the error {code}: {description}", code, description)
	if code == "access_denied" {
		return &stele.Error{Op: op, Kind: stele.Unauthenticated, Err: &failure{
			stele.Messagef("issuer.denied", "you did not sign in at {issuer}, or {issuer} did not let you; try again, or sign in another way", i.o.Title()), cause}}
	}
	return wrong(i.o.Title(), cause)
}

// person reads the ID token, and what the provider says beyond it if the token does not suffice.
func (i *Issuer) person(ctx context.Context, p *oidc.Provider, s sealed, token *oauth2.Token) (Person, error) {
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Person{}, stele.Messagef("issuer.no-id-token", "there is no ID token")
	}
	id, err := p.Verifier(&oidc.Config{ClientID: i.o.Client, Now: i.o.Now}).Verify(ctx, raw)
	if err != nil {
		return Person{}, err
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(s.Nonce)) != 1 {
		return Person{}, stele.Messagef("issuer.nonce-differs", "the nonce of the ID token is not the one that was sent")
	}
	if id.Subject == "" || len(id.Subject) > maxSubject {
		return Person{}, stele.Messagef("issuer.subject-invalid", "the subject of the ID token is empty or too long")
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return Person{}, err
	}
	at, ok := claims["auth_time"].(float64)
	if s.Again != "" && (!ok || i.o.Now().Sub(time.Unix(int64(at), 0)).Abs() > VisitLife) {
		return Person{}, stele.Messagef("issuer.not-signed-in-again", "the provider did not ask the person to sign in again")
	}
	needed := i.wants(claims)
	if p.UserInfoEndpoint() != "" && (needed || i.o.read(id.Subject, claims).Label == "") {
		more, err := i.more(ctx, p, id.Subject, claims, token)
		switch {
		case err == nil:
			claims = more
		case needed: // a label alone is no reason to refuse the person
			return Person{}, err
		}
	}
	person := i.o.read(id.Subject, claims)
	if ok {
		person.SignedIn = time.Unix(int64(at), 0)
	}
	return person, nil
}

// more returns the claims with those that the provider tells at its user info endpoint. Claims of the
// ID token, which are signed, stay.
func (i *Issuer) more(ctx context.Context, p *oidc.Provider, subject string, claims map[string]any, token *oauth2.Token) (map[string]any, error) {
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, err
	}
	if info.Subject != subject { // OpenID Connect Core 1.0, section 5.3.2
		return nil, stele.Messagef("issuer.subject-differs", "the subject of the user info is not that of the ID token")
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return nil, err
	}
	maps.Copy(more, claims)
	return more, nil
}

// wants reports whether claims that the settings name are missing.
func (i *Issuer) wants(claims map[string]any) bool {
	for _, name := range []string{i.o.GroupsClaim, i.o.Enter.Claim} {
		if name != "" && valuesOf(claims, name) == nil {
			return true
		}
	}
	_, named := claims["preferred_username"]
	return !named && i.o.Enter.Kind == EnterByClaim
}
