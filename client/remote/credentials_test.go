package remote

import (
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/certtest"
)

func TestCredentials(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if token, err := ReadToken(file("token", " stele_x \n")); err != nil || token != "stele_x" {
		t.Errorf("%q, %v", token, err)
	}
	for _, text := range []string{"", " \n", strings.Repeat("x", 5000)} {
		if _, err := ReadToken(file("token", text)); !errors.Is(err, stele.Invalid) {
			t.Errorf("%.10q: %v", text, err)
		}
	}
	ca := certtest.New(t, time.Now)
	good := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Cert.Raw}))
	if roots, err := ReadRoots(file("ca.pem", good)); err != nil || roots == nil {
		t.Error(err)
	}
	if _, err := ReadRoots(file("ca.pem", "no PEM")); !errors.Is(err, stele.Invalid) {
		t.Error(err)
	}
	for _, read := range []func(string) error{
		func(path string) error { _, err := ReadToken(path); return err },
		func(path string) error { _, err := ReadRoots(path); return err },
	} {
		if err := read(filepath.Join(folder, "none")); !errors.Is(err, stele.NotFound) {
			t.Error(err)
		}
	}
}
