package api

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele/document/apijson"
)

// TestRightsInAStream revokes the right to write in the middle of an import: what comes after
// that is not imported.
func TestRightsInAStream(t *testing.T) {
	for name, tt := range map[string]struct {
		take func(*site)
		want string // of what comes then
	}{
		"a revoked token": {func(s *site) {
			for token, err := range s.registry.Tokens(s.admin, theEditor) {
				if err != nil {
					s.t.Fatal(err)
				}
				s.ask(theAdmin, "DELETE", Root+"/tokens/"+token.ID, "").want(s.t, 200)
			}
		}, "#unauthenticated"},
		"a disabled user": {func(s *site) {
			s.ask(theAdmin, "PATCH", Root+"/users/"+theEditor, `{"disabled":true}`).want(s.t, 200)
		}, "#unauthenticated"},
		"a lost group": {func(s *site) {
			s.ask(theAdmin, "PATCH", Root+"/users/"+theEditor, `{"groups":[]}`).want(s.t, 200)
		}, "#forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			in, out := io.Pipe()
			defer out.Close()
			r, err := http.NewRequest("POST", s.serve()+Root+"/import", in)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Authorization": {"Bearer " + s.tokens[theEditor]}, "Content-Type": {apijson.Lines}}
			send := func(id string) {
				// The test does not check whether the server reads it.
				_, _ = io.WriteString(out, `{"id":"`+id+`","url":"https://example.org/1"}`+"\n")
			}
			go send("ark:12345/before")
			a, err := http.DefaultClient.Do(r) // the server answers when that is imported
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			lines := bufio.NewScanner(a.Body)
			if !lines.Scan() || !strings.Contains(lines.Text(), `"created":1`) {
				t.Fatalf("got %q", lines.Text())
			}
			tt.take(s)
			send("ark:12345/after")
			out.Close()
			told := ""
			for lines.Scan() {
				told += lines.Text() + "\n"
			}
			if !strings.Contains(told, tt.want) {
				t.Errorf("the import goes on: %s", told)
			}
			s.ask(theAdmin, "GET", records+"ark:12345/before", "").want(t, 200)
			s.ask(theAdmin, "GET", records+"ark:12345/after", "").want(t, 404)
		})
	}
}
