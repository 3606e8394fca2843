package webtest

import (
	"sync"
	"testing"

	"github.com/stele-id/stele/web"
	"github.com/stele-id/stele/web/language"
)

// What is read once for all tests of a package: nothing changes it, and to read it takes longer than most tests.
var (
	languages = sync.OnceValues(language.New)
	pages     = sync.OnceValues(func() (*web.Pages, error) {
		all, err := languages()
		if err != nil {
			return nil, err
		}
		return web.New(all, web.Face{})
	})
)

// Languages returns all languages. Tests share them.
func Languages(t testing.TB) *language.Catalog { return must(t, languages) }

// Pages returns pages in all languages, with the usual face. Tests share them.
func Pages(t testing.TB) *web.Pages { return must(t, pages) }

func must[T any](t testing.TB, read func() (T, error)) T {
	t.Helper()
	v, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
