package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/limit"
)

func TestRates(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Rate, o.Burst = 10, 20 })
	frozen := s.now()
	s.handler.o.Now = func() time.Time { return frozen }
	from := func(address, who string) *http.Request {
		r := httptest.NewRequest("GET", Root+"/records/ark:12345/x1", nil)
		r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(address), 1234).String()
		if who != "" {
			r.Header.Set("Authorization", "Bearer "+s.tokens[who])
		}
		return r
	}
	granted := func(address, who string) (n int) {
		for range 30 {
			a := s.send(from(address, who))
			switch a.StatusCode {
			case http.StatusTooManyRequests:
				if a.get("Retry-After") != "1" {
					t.Fatalf("Retry-After is %q", a.get("Retry-After"))
				}
				a.problem(t)
			default:
				n++
			}
		}
		return n
	}
	for _, tt := range []struct {
		address, who string
		want         int
	}{
		{"192.0.2.1", "", 20},
		{"192.0.2.1", "", 0},
		{"::ffff:192.0.2.1", "", 0},          // the same
		{"192.0.2.1", theReader, 20},         // counted by name
		{"192.0.2.9", theReader, 0},          // wherever from
		{"192.0.2.2", "", 20},                // another
		{"2001:db8::1", "", 20},              //
		{"2001:db8::ffff", "", 0},            // the same network
		{"2001:db8:0:1::1", "", 20},          // another
		{"192.0.2.3", "wrong", 20},           // 401, and then 429
		{"192.0.2.3", theEditor, 20},         // authenticated callers are not refused with it
		{"192.0.2.3", "", 20},                // nor is the public
		{"192.0.2.3", "wrong", 0},            //
		{"2001:db8:0:1::1", "wrong", 20},     //
		{"2001:db8:0:1::2", "wrong", 0},      // the same network
		{"2001:db8:0:1::2", theOutsider, 20}, //
		{"2001:db8:0:2::2", theStranger, 20}, //
	} {
		if got := granted(tt.address, tt.who); got != tt.want {
			t.Errorf("%s as %q: %d were granted, want %d", tt.address, tt.who, got, tt.want)
		}
	}
	frozen = frozen.Add(time.Minute)
	if got := granted("192.0.2.3", theEditor); got != 20 {
		t.Errorf("%d after a minute", got)
	}
}

// TestTokenRate holds that tokens are not made as fast as other requests are answered:
// all users and tokens are read anew after each.
func TestTokenRate(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Rate, o.Burst = 10, 20 })
	frozen := s.now()
	s.handler.o.Now = func() time.Time { return frozen }
	made := 0
	for range 20 {
		if s.ask(theOutsider, "POST", Root+"/tokens", `{}`).StatusCode == http.StatusCreated {
			made++
		}
	}
	if made != 4 {
		t.Errorf("%d tokens in a burst", made)
	}
}

// TestClientAddress holds that Options.ClientAddr decides which address a request came from.
func TestClientAddress(t *testing.T) {
	s := newSite(t, func(o *Options) {
		o.Rate, o.Burst = 1, 1
		o.ClientAddr = func(r *http.Request) netip.Addr { return netip.MustParseAddr(r.Header.Get("X-Test")) }
	})
	for i, want := range []int{200, 429, 200} {
		s.ask("", "GET", records+"ark:12345/x1", "", "X-Test", fmt.Sprintf("192.0.2.%d", i/2)).want(t, want)
	}
}

// TestPace holds that a stream waits if it exceeds its rate.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{o: Options{Now: time.Now, Patience: time.Second}, callers: limit.NewRate(10, 10)}
		c := &call{h: h, w: httptest.NewRecorder(), ctx: t.Context(), op: &operation{}, bucket: "ann"}
		begin := time.Now()
		for range 10 {
			if err := c.pace(1000); err != nil { // costs as much as 10 requests
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 9*time.Second {
			t.Errorf("10,000 records took %s", took)
		}
		if err := h.callers.Take(c.bucket, 1, time.Now()); err != nil {
			t.Errorf("a stream takes what other requests need: %v", err)
		}
	})
}

// TestStreamsAtOnce holds that a client can't fill the memory with imports that never end.
func TestStreamsAtOnce(t *testing.T) {
	s := newSite(t)
	address := s.serve()
	begin := func() (end func()) {
		in, out := io.Pipe()
		r, err := http.NewRequest("POST", address+Root+"/import", in)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + s.tokens[theEditor]}, "Content-Type": {apijson.Lines}}
		go func() { _, _ = io.WriteString(out, "\n") }()
		a, err := http.DefaultClient.Do(r) // the server answers before the end
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			out.Close()
			_, _ = io.Copy(io.Discard, a.Body)
			a.Body.Close()
		}
	}
	var ends []func()
	for range maxStreams {
		ends = append(ends, begin())
	}
	another := func(who string) reply {
		return s.ask(who, "POST", Root+"/import", "\n", "Content-Type", apijson.Lines)
	}
	if a := another(theEditor).want(t, 429); a.get("Retry-After") == "" {
		t.Errorf("got %v", a.Header)
	}
	another(theOwner).want(t, 200)
	s.ask(theEditor, "GET", Root+"/me", "").want(t, 200)
	for _, end := range ends {
		end()
	}
	another(theEditor).want(t, 200)
	if s.handler.streams.mu.Lock(); len(s.handler.streams.inside) != 0 {
		t.Errorf("%v are counted", s.handler.streams.inside)
	}
	s.handler.streams.mu.Unlock()
}
