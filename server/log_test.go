package server

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/trace"
)

// TestLogFileFull: lines that the file does not take are not lost.
func TestLogFileFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var other bytes.Buffer
	l := &logFile{name: "/dev/full", other: &other, file: full}
	if n, err := io.WriteString(l, "a line\n"); n != 7 || err != nil || other.String() != "a line\n" {
		t.Errorf("%d bytes, %v, and %q on standard error", n, err, &other)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(l, "and another\n"); err != nil || !strings.HasSuffix(other.String(), "another\n") {
		t.Errorf("after its end: %v, %q", err, &other)
	}
	if _, err := openLog(t.TempDir(), &other); err == nil {
		t.Error("a folder is a log")
	}
	if _, err := openLog(filepath.Join(t.TempDir(), "none", "log"), &other); err == nil {
		t.Error("there is a log in a folder that is not there")
	}
}

// TestLogRequest: lines that are written on behalf of a request have its id, and others have none.
func TestLogRequest(t *testing.T) {
	var lines bytes.Buffer
	for _, format := range []string{"text", "json"} {
		log := newLog(&lines, &config.Values{LogFormat: format, LogLevel: "info"}).With("part", "x")
		log.ErrorContext(trace.WithRequest(t.Context(), "4bf92f3577b34da6"), "of a request")
		log.Error("of none")
	}
	text := lines.String()
	if strings.Count(text, "request=4bf92f3577b34da6\n") != 1 || strings.Count(text, `"request":"4bf92f3577b34da6"}`) != 1 || strings.Count(text, "4bf92") != 2 {
		t.Errorf("the log is\n%s", text)
	}
}

func TestLoggedTarget(t *testing.T) {
	for target, want := range map[string]string{
		"/ark:12345/x1?a=b":                             "/ark:12345/x1?a=b",
		"/api/v1/records?prefix=ark:1":                  "/api/v1/records?...",
		"/api/v1/records/ark:12345/x1":                  "/api/v1/records/ark:12345/x1",
		"/x?y=stele_ab12_c-D_e&z=1":                     "/x?y=stele_...&z=1",
		"/.desk/link/stele%2Dlink_ab12_c-D_e?x=y":       "/.desk/link/...",
		"/.desk/confirm/ann/stele-mail_ab12_c-D_e":      "/.desk/confirm/...",
		"http://id.example.org/.desk/link/ab12":         "http://id.example.org/.desk/link/...",
		"/.desk/issuer/orcid/back?code=c&state=s":       "/.desk/issuer/orcid/back?...",
		"/x?y=stele%2Dlink%5Fab12_c%2DD_e&z=1":          "/x?y=stele%2Dlink_...&z=1",
		"/stele_house":                                  "/stele_house",
		"/" + strings.Repeat("x", 2*maxLogged):          "/" + strings.Repeat("x", maxLogged-1) + "...",
		"/?" + strings.Repeat("stele_a_b", 2*maxLogged): "/?stele_...",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RequestURI = target
		if got := loggedTarget(r); got != want {
			t.Errorf("%.40q is logged as %.60q, want %.60q", target, got, want)
		}
	}
}
