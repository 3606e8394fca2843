package otlp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele/trace"
)

// buildDecoder builds test/otlpdecoder. Its source is kept as a text, since it belongs to another module than the rest.
func buildDecoder(t *testing.T) (program string) {
	t.Helper()
	folder := t.TempDir()
	for name, as := range map[string]string{"go.mod": "go.mod", "go.sum": "go.sum", "main.go.txt": "main.go"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "test", "otlpdecoder", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, as), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(folder, "otlpdecoder")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("'make needs' fetches its modules: %v\n%s", err, out)
	}
	return program
}

// TestEncoding: OpenTelemetry's own types read what is sent.
func TestEncoding(t *testing.T) {
	began := time.Unix(1_800_000_000, 5)
	octets := appendRequest(nil, Service{Name: "stele", Version: "v1.2.3", Instance: "i-1"}, []*trace.Span{
		{Trace: trace.TraceID{1, 15: 2}, ID: trace.SpanID{3}, Parent: trace.SpanID{7: 4}, Kind: trace.Internal, Name: "store read", Began: began, Ended: began.Add(time.Millisecond),
			Attributes: []trace.Attribute{{Key: "text", Text: "é"}, {Key: "number", Number: -7}, {Key: "zero"}}, Failed: true},
		{Trace: trace.TraceID{1, 15: 2}, ID: trace.SpanID{7: 4}, Kind: trace.Server, Name: "http", Began: began, Ended: began},
		// Texts of clients: octets that are not UTF-8, and as many as a request may have.
		{Trace: trace.TraceID{1, 15: 2}, ID: trace.SpanID{7: 5}, Kind: trace.Server, Name: "a\xff\xfeb", Began: began, Ended: began,
			Attributes: []trace.Attribute{{Key: "k\xc3", Text: "/\xc3x\xff"}, {Key: "long", Text: strings.Repeat("é", 600)}, {Key: "longer", Text: "x" + strings.Repeat("é", 60_000)}, {Key: "bad", Text: strings.Repeat("a\xff", 60_000)}}},
	})
	decode := exec.CommandContext(t.Context(), buildDecoder(t))
	decode.Stdin = strings.NewReader(base64.StdEncoding.EncodeToString(octets) + "\n")
	text, err := decode.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("it can't be read: %s", exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	// The decoder writes octets in base64, and not in hexadecimal digits.
	if err := json.Unmarshal([]byte(`{"resourceSpans":[{
		"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"stele"}},{"key":"service.version","value":{"stringValue":"v1.2.3"}},{"key":"service.instance.id","value":{"stringValue":"i-1"}}]},
		"scopeSpans":[{"scope":{"name":"github.com/stele-id/stele/trace","version":"v1.2.3"},"spans":[
			{"traceId":"AQAAAAAAAAAAAAAAAAAAAg==","spanId":"AwAAAAAAAAA=","parentSpanId":"AAAAAAAAAAQ=","name":"store read","kind":"SPAN_KIND_INTERNAL",
			 "startTimeUnixNano":"1800000000000000005","endTimeUnixNano":"1800000000001000005",
			 "attributes":[{"key":"text","value":{"stringValue":"é"}},{"key":"number","value":{"intValue":"-7"}},{"key":"zero","value":{"intValue":"0"}}],"status":{"code":"STATUS_CODE_ERROR"}},
			{"traceId":"AQAAAAAAAAAAAAAAAAAAAg==","spanId":"AAAAAAAAAAQ=","name":"http","kind":"SPAN_KIND_SERVER","startTimeUnixNano":"1800000000000000005","endTimeUnixNano":"1800000000000000005"},
			{"traceId":"AQAAAAAAAAAAAAAAAAAAAg==","spanId":"AAAAAAAAAAU=","name":"a�b","kind":"SPAN_KIND_SERVER","startTimeUnixNano":"1800000000000000005","endTimeUnixNano":"1800000000000000005",
			 "attributes":[{"key":"k�","value":{"stringValue":"/�x�"}},{"key":"long","value":{"stringValue":"`+strings.Repeat("é", 512)+`"}},{"key":"longer","value":{"stringValue":"x`+strings.Repeat("é", 511)+`"}},{"key":"bad","value":{"stringValue":"`+strings.Repeat("a�", 256)+`"}}]}]}]}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// collector counts requests, and answers with what answer writes.
func collector(t *testing.T, answer http.HandlerFunc) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || len(body) == 0 || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%d octets, %v, %v", len(body), err, r.Header)
		}
		requests.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1/traces", requests
}

// spans returns a queue of spans.
func spans(n int) chan *trace.Span {
	c := make(chan *trace.Span, n)
	for range n {
		c <- &trace.Span{Name: "x"}
	}
	return c
}

// TestFlush: what waits at the end is sent, in batches, whether the collector takes it or not.
func TestFlush(t *testing.T) {
	for status, want := range map[int][2]uint64{http.StatusOK: {maxBatch + 7, 0}, http.StatusBadRequest: {0, maxBatch + 7}, http.StatusServiceUnavailable: {0, maxBatch + 7}} {
		url, requests := collector(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		var log bytes.Buffer
		e := &Exporter{URL: url, Do: http.DefaultClient.Do, Log: slog.New(slog.NewTextHandler(&log, nil))}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		e.flush(context.WithoutCancel(ended), nil, spans(maxBatch+7))
		if sent, lost := e.Sent(); sent != want[0] || lost != want[1] || requests.Load() != 2 {
			t.Errorf("%d: %d sent, %d lost, in %d requests", status, sent, lost, requests.Load())
		}
		if n := strings.Count(log.String(), "level=WARN"); n != min(int(want[1]), 1) {
			t.Errorf("%d: the log is\n%s", status, &log)
		}
	}
}

// TestRun: batches that are full are sent at once, and the rest at the end.
func TestRun(t *testing.T) {
	url, requests := collector(t, func(http.ResponseWriter, *http.Request) {})
	e := &Exporter{URL: url, Do: http.DefaultClient.Do, Log: slog.New(slog.DiscardHandler)}
	ctx, end := context.WithCancel(t.Context())
	queue, done := spans(2*maxBatch), make(chan struct{})
	go func() {
		defer close(done)
		e.Run(ctx, queue)
	}()
	for requests.Load() < 2 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	queue <- &trace.Span{Name: "last"}
	end()
	<-done
	if sent, lost := e.Sent(); sent+lost != 2*maxBatch+1 || sent < maxBatch {
		t.Errorf("%d sent, %d lost", sent, lost)
	}
}

// TestAgain: which answers let a batch be sent again.
func TestAgain(t *testing.T) {
	for status, want := range map[int]bool{200: false, 400: false, 401: false, 404: false, 429: true, 500: false, 502: true, 503: true, 504: true} {
		url, _ := collector(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		e := &Exporter{URL: url, Do: http.DefaultClient.Do}
		if again, err := e.post(t.Context(), []*trace.Span{{Name: "x"}}); again != want || (err == nil) != (status == 200) {
			t.Errorf("%d: %t, %v", status, again, err)
		}
	}
}
