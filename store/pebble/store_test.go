package pebble

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/storetest"
)

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
