package dnsd

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stele-id/stele/publish/publishtest"
)

// recorded is a connection that keeps what is written to it.
type recorded struct {
	drain
	bytes.Buffer
}

func (k *recorded) Write(b []byte) (int, error) { return k.Buffer.Write(b) }

// TestWorkers checks that a zone is sent the same however many processors pack it: the
// goroutine that reads it, or workers that finish in any order.
func TestWorkers(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "z.example.", ":", 3)
	p.SetSecondaries("urn:paradisec", publishtest.Local())
	for i := range 20 * parcelSize {
		p.Register(fmt.Sprintf("urn:paradisec:c%d:i:n%d", i%10, i), "http://example.org/"+fmt.Sprint(i))
	}
	s := New(Options{Zones: p.Zones, Now: time.Now})
	var before []byte
	for _, n := range []int{1, 2, 4, 8} {
		old := runtime.GOMAXPROCS(n)
		k := new(recorded)
		out := &outgoing{t: &stream{s: s, c: k}, env: newEnvelopes(1, flagQR|flagAA, []byte("\x01z\x07example\x00\x00\xfc\x00\x01"))}
		err := sendWhole(p.Ctx, p.Zones, out, "z.example.")
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !bytes.Equal(before, k.Bytes()) {
			t.Errorf("with %d processors it is another zone: %d bytes, and %d before", n, k.Len(), len(before))
		}
		before = k.Bytes()
	}
	if len(before) < 20*parcelSize*100 {
		t.Errorf("only %d bytes", len(before))
	}
}
