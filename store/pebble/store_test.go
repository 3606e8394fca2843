package pebble

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/storetest"
)

// TestMain fails if a goroutine is left when all tests are done.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", modelChecks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// TestStore holds the store to its contract. Generations of recent names are small,
// so that there are several.
func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Durable: true,
		Open: func(t testing.TB, folder string) stele.Store {
			s, err := Open(t.Context(), folder, Options{Now: time.Now, recent: 50})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}
