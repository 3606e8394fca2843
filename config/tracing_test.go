package config

import "testing"

func TestTracing(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       any // nil: it is wrong
	}{
		{"trace", "", ""},
		{"trace", "http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"},
		{"trace", "https://collector.example.org/otlp/v1/traces?tenant=a", "https://collector.example.org/otlp/v1/traces?tenant=a"},
		{"trace", "127.0.0.1:4318", nil},
		{"trace", "ftp://collector.example.org/", nil},
		{"trace", "https://", nil},
		{"trace", "https://user:secret@collector.example.org/", nil},
		{"trace-sample", "0", 0.0},
		{"trace-sample", "0.25", 0.25},
		{"trace-sample", "1", 1.0},
		{"trace-sample", "1.5", nil},
		{"trace-sample", "-1", nil},
		{"trace-sample", "NaN", nil},
		{"trace-sample", "many", nil},
	} {
		got, err := Find(tt.name).Read(tt.text)
		if (err != nil) != (tt.want == nil) || err == nil && got != tt.want {
			t.Errorf("%s %q: %v, %v", tt.name, tt.text, got, err)
		}
	}
}
