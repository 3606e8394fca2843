package wording

import (
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

func TestTarget(t *testing.T) {
	usual := stele.Target{Service: stele.N2L, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}
	other := stele.Target{Service: stele.N2S, Type: "text/html", Language: "pt-BR", Order: 7, Preference: 8, TTL: 60, Status: 301, Partial: true}
	for want, target := range map[string]stele.Target{
		"": usual,
		"N2S: its signature, text/html, pt-BR, order 7, preference 8, TTL 60 s, status 301, what follows the name is appended": other,
	} {
		if got := Target(&target); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPromise(t *testing.T) {
	for want, p := range map[string]stele.Persistence{
		"":                         {},
		"until 2040-01-01":         {Until: "2040-01-01"},
		"stable":                   {Level: stele.Stable},
		"stable, until 2040-01-01": {Level: stele.Stable, Until: "2040-01-01"},
	} {
		if got := Promise(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFieldOrder(t *testing.T) {
	if got := strings.Join(FieldOrder(stele.Metadata{"where": "", "a": "", "what": "", "z": "", "when": "", "who": ""}), " "); got != "what who when where a z" {
		t.Error(got)
	}
}

func TestMoment(t *testing.T) {
	if got := Moment(time.Time{}); got != "" {
		t.Error(got)
	}
	if got := Moment(time.Date(2031, 5, 2, 14, 0, 0, 5, time.FixedZone("", 2*3600))); got != "2031-05-02T12:00:00Z" {
		t.Error(got)
	}
}

// Each state of a secondary is said in its own words, with what to do.
func TestSecondary(t *testing.T) {
	for state, want := range map[stele.SecondaryState]string{
		stele.SecondarySame:    "the secondary 192.0.2.1:53 has serial 5, as the zone",
		stele.SecondaryBehind:  "below that of the zone (7); it takes the zone when it asks next",
		stele.SecondaryAhead:   "raise the zone: stele zone raise zone.example. --above 5",
		stele.SecondaryFar:     "rndc retransfer",
		stele.SecondaryRefuses: "refuses to say its serial: why",
		stele.SecondaryLame:    "does not have the zone: why",
		stele.SecondaryUnasked: "was not asked for its serial: why",
		"":                     "does not answer: why",
	} {
		if got := Secondary(stele.SecondaryAnswer{Zone: "zone.example.", At: "192.0.2.1:53", Serial: 5, State: state, Why: "why"}, 7); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
	if got := ShutZone("zone.example."); !strings.HasSuffix(got, "stele zone raise zone.example. --above SERIAL") {
		t.Error(got)
	}
}
