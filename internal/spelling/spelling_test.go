package spelling

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"http", "host", "log-level", "ttl"}
	for text, want := range map[string]string{
		"htpp": "http", "htt": "http", "hosts": "host", "loglevel": "log-level", "log-levle": "log-level", "tt": "ttl", "x": "", "": "", "elephant": "",
	} {
		if got := Nearest(text, words); got != want {
			t.Errorf("%q is nearest to %q, want %q", text, got, want)
		}
	}
	if d := Distance("kitten", "sitting"); d != 3 {
		t.Errorf("from kitten to sitting it takes 3 changes, not %d", d)
	}
}
