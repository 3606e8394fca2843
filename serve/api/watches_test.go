package api

import (
	"net/http"
	"testing"

	"github.com/stele-id/stele/document/apijson"
)

// A watch is added, asked, listed and ended. The day on which it was added does not count.
func TestWatches(t *testing.T) {
	s := newSite(t)
	const one = Root + "/watches/giver.example.org/.log"
	s.ask(theAdmin, "POST", Root+"/watches", samples["addWatch"].body).want(t, http.StatusNoContent)
	for _, body := range []string{
		`{"origin":"giver.example.org/.log","url":"giver.example.org","keys":["giver.example.org/.log+a6f29693+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"]}`,
		`{"origin":"other.example.org/.log","url":"http://127.0.0.1:1","keys":["giver.example.org/.log+a6f29693+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"]}`,
		`{"origin":"giver.example.org/.log","url":"http://127.0.0.1:1"}`,
	} {
		s.ask(theAdmin, "POST", Root+"/watches", body).want(t, http.StatusBadRequest)
	}
	var now apijson.WatchedRegistry
	s.ask(theAdmin, "POST", Root+"/watch-now/giver.example.org/.log", "").want(t, http.StatusOK).read(t, &now)
	if now.Silent != 0 || now.Asked.IsZero() || now.Said == "" || now.URL != "http://127.0.0.1:1/.log" {
		t.Errorf("on the first day: %+v", now)
	}
	var page apijson.WatchedPage
	s.ask(theAdmin, "GET", Root+"/watches", "").want(t, http.StatusOK).read(t, &page)
	if len(page.Items) != 1 || page.Items[0].Origin != "giver.example.org/.log" || !page.Items[0].Asked.Equal(now.Asked) {
		t.Errorf("the list has %+v", page)
	}
	s.ask(theAdmin, "DELETE", one, "").want(t, http.StatusNoContent)
	s.ask(theAdmin, "DELETE", one, "").want(t, http.StatusNotFound)
	s.ask(theAdmin, "POST", Root+"/watch-now/giver.example.org/.log", "").want(t, http.StatusNotFound)
}
