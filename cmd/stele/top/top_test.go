package top

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const first = `# HELP stele_ready 1 if
# TYPE stele_ready gauge
stele_ready 1
stele_build_info{goversion="go1",version="v1.2.3"} 1
stele_http_requests_total{method="GET",route="identifier",scheme="ark",status="3xx"} 100
stele_http_requests_total{method="GET",route="identifier",scheme="ark",status="5xx"} 7
stele_http_request_duration_seconds_bucket{route="identifier",le="0.001"} 0
stele_http_request_duration_seconds_bucket{route="identifier",le="0.01"} 0
stele_http_request_duration_seconds_bucket{route="identifier",le="+Inf"} 0
stele_store_commits_total{result="kept"} 50
stele_store_free_bytes 5e9
stele_store_reserve_bytes 2e9
stele_store_bytes 1.5e6
stele_cache_hits_total{cache="redirects"} 10
stele_cache_misses_total{cache="redirects"} 10
stele_dns_udp_total 0
stele_dns_answers_total{rcode="NOERROR"} 3
stele_secondaries{state="same"} 1
stele_secondaries{state="behind"} 1
stele_secondary_behind_seconds{secondary="192.0.2.1:53",zone="a}b\"c.example."} 7201
stele_log_behind 3
`

const second = `stele_ready 0
stele_build_info{goversion="go1",version="v1.2.3"} 1
stele_http_requests_total{method="GET",route="identifier",scheme="ark",status="3xx"} 20100
stele_http_requests_total{method="GET",route="identifier",scheme="ark",status="5xx"} 9
stele_http_request_duration_seconds_bucket{route="identifier",le="0.001"} 90
stele_http_request_duration_seconds_bucket{route="identifier",le="0.01"} 100
stele_http_request_duration_seconds_bucket{route="identifier",le="+Inf"} 100
stele_store_commits_total{result="kept"} 10
stele_store_free_bytes 5e9
stele_store_reserve_bytes 2e9
stele_store_bytes 1.5e6
stele_cache_hits_total{cache="redirects"} 19
stele_cache_misses_total{cache="redirects"} 11
stele_dns_udp_total 0
stele_dns_answers_total{rcode="NOERROR"} 3
stele_secondaries{state="same"} 1
stele_secondaries{state="behind"} 1
stele_secondary_behind_seconds{secondary="192.0.2.1:53",zone="a}b\"c.example."} 7201
stele_log_behind 3
`

func samplePicture() *Picture {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	return New(Parse(first, at), Parse(second, at.Add(2*time.Second)))
}

func TestPicture(t *testing.T) {
	p := samplePicture()
	if p.Redirects != 10000 || p.ServerErrors != 1 || p.Other != 0 || p.Ready || p.Version != "v1.2.3" {
		t.Errorf("%+v", p)
	}
	if p.Commits != 5 { // the server was started anew: 10 since
		t.Errorf("%v commits a second", p.Commits)
	}
	if p.Hits["redirects"] != 0.9 || len(p.Hits) != 1 {
		t.Errorf("hits %v", p.Hits)
	}
	if p.Slowest == nil || *p.Slowest < 0.009 || *p.Slowest > 0.01 {
		t.Errorf("99 of 100 take %v", p.Slowest)
	}
	if p.DNS == nil || *p.DNS != 0 || p.Handle != nil || p.OldestCopy != 7201 || p.Secondaries["behind"] != 1 {
		t.Errorf("%+v", p)
	}
}

// A picture has the lines and columns of the terminal, and no more, whatever its size.
func TestDraw(t *testing.T) {
	v := &View{Address: "http://127.0.0.1:9180", Colour: true}
	for range 100 {
		v.Add(samplePicture())
	}
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {40, 10}, {20, 1}, {5, 2}} {
		text := v.Draw(size[0], size[1])
		lines := strings.Split(text, "\n")
		if len(lines) != size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if n := shown(line); n > max(size[0], 20) {
				t.Errorf("%v: %d columns: %q", size, n, line)
			}
		}
	}
	text := v.Draw(80, 24)
	for _, want := range []string{redOn + "stele top", "NOT READY", "10,000/s", "90.0 %", "1.5 MB, 5.0 GB free", "1 of 2 current", "2.0 h", "Work", "mail", "open files", "q ends"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	v.Colour = false
	v.Fail("no answer\x1b[2J")
	if text := v.Draw(80, 0); strings.Contains(text, "\x1b") || !strings.Contains(text, `no answer\x1b`) {
		t.Errorf("without colours:\n%q", text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(first)
	f.Add(second)
	f.Add("a{b=\"c\\\"} 1\na{} 2 3\n{} 4\na{le=\"NaN\"} NaN\nstele_http_request_duration_seconds_bucket{route=\"identifier\",le=\"x\"} 1\n")
	f.Add("stele_names 1e308\nstele_names{a=\"b\"} 1e308\nstele_changes +Inf\nprocess_open_fds -1e99\n")
	f.Fuzz(func(t *testing.T, text string) {
		at := time.Unix(1_800_000_000, 0)
		p := New(Parse(first, at), Parse(text, at.Add(time.Second)))
		if _, err := json.Marshal(p); err != nil {
			t.Error(err)
		}
		v := &View{Address: "a"}
		v.Add(p)
		for _, line := range strings.Split(v.Draw(80, 24), "\n") {
			if utf8.RuneCountInString(line) > 80 || strings.Contains(line, "\x1b") {
				t.Errorf("%q", line)
			}
		}
	})
}
