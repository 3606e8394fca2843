// Package issuertest is an OpenID provider for tests. It signs one person in without a question, and
// can be told to answer wrongly.
package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// What the provider knows of the server under test.
const (
	Client = "stele"
	Secret = "a secret of the client: 3+4/5%"
)

// Provider is an OpenID provider.
type Provider struct {
	URL string

	mu     sync.Mutex
	key    *ecdsa.PrivateKey
	person map[string]any
	info   map[string]any
	wrong  func(claims map[string]any)
	token  func(claims map[string]any) string
	refuse string
	down   bool
	codes  map[string]url.Values // of questions that were answered, by code
	asked  []url.Values
	now    func() time.Time
}

// Start starts a provider at a loopback address.
func Start(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{key: key, now: now, codes: map[string]url.Values{}, person: map[string]any{"sub": "1001"}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discover)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.exchange)
	mux.HandleFunc("GET /userinfo", p.userInfo)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// SignIn makes the provider sign a person in, with these claims, from now on. Claims in info are told
// at the user info endpoint only.
func (p *Provider) SignIn(claims, info map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person, p.info = claims, info
}

// Falsify makes the provider change the claims of its ID tokens; nil: not any more.
func (p *Provider) Falsify(wrong func(claims map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = wrong
}

// Forge makes the provider send other tokens than signed ones; nil: not any more.
func (p *Provider) Forge(token func(claims map[string]any) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token = token
}

// Refuse makes the provider answer with an error; "": not any more.
func (p *Provider) Refuse(code string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = code
}

// Down makes the provider fail, or work again.
func (p *Provider) Down(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// Asked returns the query of the last browser that came.
func (p *Provider) Asked() url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		return nil
	}
	return p.asked[len(p.asked)-1]
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have left
}

func (p *Provider) discover(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/userinfo",
		"id_token_signing_alg_values_supported": []string{"ES256", "none"}})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.asked = append(p.asked, q)
	back := url.Values{"state": {q.Get("state")}, "iss": {p.URL}}
	if p.refuse != "" {
		back.Set("error", p.refuse)
		back.Set("error_description", "the test wants it")
	} else {
		code := rand.Text()
		p.codes[code] = q
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if id, _ = url.QueryUnescape(id); basic {
		secret, _ = url.QueryUnescape(secret) // RFC 6749, section 2.3.1
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	q, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code")) // a code is used once
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != Client || secret != Secret:
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	case !known, q.Get("redirect_uri") != r.PostFormValue("redirect_uri"), q.Get("code_challenge_method") != "S256",
		q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]):
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	now := p.now()
	claims := map[string]any{"iss": p.URL, "aud": Client, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": q.Get("nonce"), "auth_time": now.Unix()}
	maps.Copy(claims, p.person)
	if p.wrong != nil {
		p.wrong(claims)
	}
	token := p.sign(claims)
	if p.token != nil {
		token = p.token(claims)
	}
	answer(w, http.StatusOK, map[string]any{"access_token": "at", "token_type": "Bearer", "expires_in": 60, "id_token": token})
}

func (p *Provider) sign(claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "1"}}, nil)
	if err != nil {
		panic(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

func (p *Provider) userInfo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer at" {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return
	}
	info := map[string]any{"sub": p.person["sub"]}
	maps.Copy(info, p.info)
	answer(w, http.StatusOK, info)
}
