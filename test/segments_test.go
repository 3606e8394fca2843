package test

import (
	"testing"

	"github.com/stele-id/stele/scheme/purl"
	"github.com/stele-id/stele/serve/httpd"
)

// A path whose first segment the server uses itself can't be a PURL: the server would
// never resolve it.
func TestSegments(t *testing.T) {
	segments := httpd.Segments()
	if len(segments) < 10 {
		t.Errorf("the server uses only %q; the test is blunt", segments)
	}
	for _, segment := range segments {
		if !purl.IsReserved(segment) {
			t.Errorf("the server uses /%s, which scheme/purl does not reserve", segment)
		}
	}
	for _, segment := range []string{"net", "dc", "api2", "info"} {
		if purl.IsReserved(segment) {
			t.Errorf("/%s is reserved for nothing", segment)
		}
	}
}
