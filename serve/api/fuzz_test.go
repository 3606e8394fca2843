package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stele-id/stele/document/apijson"
)

// request makes a request with the target as it is.
func (s *site) request(method, target string) *http.Request {
	r := httptest.NewRequest(method, "http://id.example.org/", nil)
	r.RequestURI = target
	return r
}

// FuzzRequest holds that any request target, as the public sends it, is answered: with
// what the public may see, or with a problem that is not a fault of the server.
func FuzzRequest(f *testing.F) {
	s := newSite(f)
	for _, seed := range []string{
		"/api/v1", "/api/v1/", "/api/v1/records/ark:12345/x1", "/api/v1/records/ark:12345/hidden", "/api/v1/records/%61rk:12345/hidden", "/api/v1/records/ark:12345/hidden?version=1",
		"/api/v1/history/ark:12345/secret?limit=1&cursor=InYxIg", "/api/v1/users/../records/ark:12345/x1", "//api/v1/users", "/api/v1/users%2fann", "http://x/api/v1/users", "/api/v1/records?prefix=ark:12345",
		"/api/v1/records/ark:12345/x1?at=2031-05-02T10:00:00Z", "/api/v1/%", "/api/v1/records/%zz", "*", "", "/api/v1/records/urn:example:x1?version=2&version=3", "/api/v1/openapi.json", "/api/v1/backup",
		"/api/v1/handover/ark:12345", "/api/v1/handover/ark:12345?limit=1&cursor=InYxIg", "/api/v1/handover", "/api/v1/handover/%61rk:", "/api/v1/sealplan/ark:12345",
	} {
		f.Add("GET", seed)
	}
	f.Add("HEAD", "/api/v1/records/ark:12345/x1")
	f.Add("OPTIONS", "/api/v1/records")
	f.Add("DELETE", "/api/v1/records/ark:12345/x1?reason=x")
	f.Add("BREW", "/api/v1/me")
	f.Fuzz(func(t *testing.T, method, target string) {
		r := s.request("GET", target)
		r.Method = method
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code >= 500 {
			t.Errorf("%s %q: %d %s", method, target, w.Code, body)
		}
		for _, secret := range []string{"https://example.org/hidden", "https://example.org/secret", `"by":`, "readers"} {
			if strings.Contains(body, secret) && w.Header().Get("Content-Type") == apijson.JSON && !strings.Contains(body, `"openapi"`) {
				t.Errorf("%s %q tells %s", method, target, body)
			}
		}
		for name, values := range w.Header() {
			if strings.ContainsAny(name+strings.Join(values, ""), "\r\n") {
				t.Errorf("%s %q: a header %q is %q", method, target, name, values)
			}
		}
		if w.Code >= 400 && method != http.MethodHead && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: %s", method, target, body)
		}
	})
}
