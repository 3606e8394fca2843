package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// siteCommand starts a web server for the folder site of a session, and puts its URL
// into SITE.
//
//	/NAME        the file
//	/cut/NAME    the same, but a connection breaks in the middle of a whole file
//	/gate/NAME   the same, and what is left is forbidden while there is no file "open"
//	/packed/NAME the same, and it is said that it is packed
//	/to?URL      a redirect
//	/endless     what it says
func siteCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: site")
	}
	server := httptest.NewServer(&site{ts.MkAbs("site")})
	ts.Defer(server.Close)
	ts.Setenv("SITE", server.URL)
}

// portCommand finds a free port, and puts it into a variable.
func portCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: port NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer l.Close()
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// site is a publisher's site.
type site struct{ folder string }

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	way, name := path.Split(r.URL.Path)
	if name == "to" {
		http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
		return
	}
	if name == "endless" {
		for b := make([]byte, 1<<16); ; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}
	body, err := os.ReadFile(filepath.Join(s.folder, name))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	_, closed := os.Stat(filepath.Join(s.folder, "open"))
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
	if way == "/packed/" {
		w.Header().Set("Content-Encoding", "gzip")
		way = "/"
	}
	switch {
	case way != "/" && r.Header.Get("Range") == "":
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case way == "/gate/" && closed != nil:
		http.Error(w, "closed", http.StatusForbidden)
		return
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}
