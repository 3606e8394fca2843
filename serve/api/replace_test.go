package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

// replaces asks for a replacement, and returns what became of records, and the last line.
func (s *site) replaces(who, body string) (told []string, last apijson.Replaced) {
	s.t.Helper()
	a := s.ask(who, "POST", Root+"/replace", body).want(s.t, http.StatusOK)
	for text := range strings.Lines(a.body) {
		var line apijson.Replaced
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			s.t.Fatalf("%v in %q", err, a.body)
		}
		if last = line; line.ID != "" {
			told = append(told, strings.TrimPrefix(line.ID, "ark:12345/")+" "+line.Status+" "+line.New)
		}
	}
	return told, last
}

// shows makes sure that a record is shown with these texts.
func (s *site) shows(who, name string, texts ...string) {
	s.t.Helper()
	a := s.ask(who, "GET", records+name, "").want(s.t, http.StatusOK)
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			s.t.Errorf("%s has no %s: %s", name, text, a.body)
		}
	}
}

func TestReplaceTargets(t *testing.T) {
	s := newSite(t)
	const hosts = `{"from":"example.org","to":"new.example.org","namespace":"ark:12345"`
	// Without a number nothing is written.
	told, last := s.replaces(theEditor, hosts+`}`)
	if got, want := strings.Join(told, ", "), "hidden changed https://new.example.org/hidden, secret changed https://new.example.org/secret, x1 changed https://new.example.org/1, x2 changed https://new.example.org/2"; got != want {
		t.Errorf("got %s", got)
	}
	if !last.Done || last.Changed != 4 || last.Import != 0 {
		t.Errorf("got %+v", last)
	}
	s.ask(theEditor, "POST", Root+"/replace", hosts+`,"expect":5}`).want(t, http.StatusConflict)
	s.shows(theEditor, "ark:12345/x1", `"https://example.org/1"`, `"version":1`)

	if _, last = s.replaces(theEditor, hosts+`,"expect":4}`); !last.Done || last.Changed != 4 || last.Import == 0 {
		t.Errorf("got %+v", last)
	}
	s.shows(theEditor, "ark:12345/x1", `"https://new.example.org/1"`, `"version":2`, `"A thing"`)
	s.shows(theAdmin, "ark:99999/y1", `"version":1`)

	s.ask(theEditor, "POST", Root+"/revert-import/1", "").want(t, http.StatusOK)
	s.shows(theEditor, "ark:12345/x1", `"https://example.org/1"`, `"version":3`)

	// A token that is limited to a namespace changes nothing elsewhere, unlike its user.
	s.tokens["limited"] = s.made(s.admin, auth.TokenRequest{User: theAdmin, Namespaces: []string{"ark:99999"}})
	if told, last := s.replaces("limited", `{"from":"example.org","to":"new.example.org"}`); len(told) != 0 || last.Changed != 0 {
		t.Errorf("got %v", told)
	}
	for _, body := range []string{`{}`, `{"from":"a b","to":"c"}`, `{"from":"example.org","to":"https://example.org"}`, hosts + `,"expect":-1}`, `{"from":"example.org","to":"x.example","namespace":"?"}`} {
		s.ask(theEditor, "POST", Root+"/replace", body).want(t, http.StatusBadRequest)
	}
	s.ask(theEditor, "POST", Root+"/replace", `{"from":"example.org","to":"x.example","namespace":"ark:55555"}`).want(t, http.StatusNotFound)
}
