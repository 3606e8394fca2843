package webtest

import (
	"sync"
	"testing"

	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// read is what is read once for all tests of a package: nothing changes it, and to read it takes longer than most tests.
var read = struct {
	languages func() (*language.Catalog, error)
	pages     func() (*web.Pages, error)
}{
	sync.OnceValues(language.New),
	sync.OnceValues(func() (*web.Pages, error) {
		languages, err := language.New()
		if err != nil {
			return nil, err
		}
		return web.New(languages, web.Face{})
	}),
}

// Languages returns all languages. Tests share them.
func Languages(t testing.TB) *language.Catalog { return must(t, read.languages) }

// Pages returns pages in all languages, with the usual face. Tests share them.
func Pages(t testing.TB) *web.Pages { return must(t, read.pages) }

func must[T any](t testing.TB, read func() (T, error)) T {
	t.Helper()
	v, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
