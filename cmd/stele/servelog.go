package main

import (
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/serve/httpd"
)

// newLog makes the log that the configuration asks for. Both forms quote what could
// break a line or a terminal.
func newLog(w io.Writer, c *config.Values) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// maxLogged is how many bytes of a request's target a log line has.
const maxLogged = 1024

// requestLog is a handler that logs each request that another one answers.
type requestLog struct {
	next      http.Handler
	log       *slog.Logger
	now       func() time.Time
	addresses bool // log who asks
}

func (l *requestLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := &seenAnswer{ResponseWriter: w, status: http.StatusOK}
	begin := l.now()
	l.next.ServeHTTP(seen, r)
	attributes := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("target", loggedTarget(r)),
		slog.Int("status", seen.status),
		slog.Int64("bytes", seen.bytes),
		slog.Duration("took", l.now().Sub(begin)),
	}
	if l.addresses {
		attributes = append(attributes, slog.String("address", httpd.ClientAddr(r).String()))
	}
	l.log.LogAttrs(r.Context(), slog.LevelInfo, "request", attributes...)
}

// credential is what a token of ours looks like, wherever somebody may have put it.
var credential = regexp.MustCompile(`(?i)stele(_|%5f)[a-z0-9]+(_|%5f)[-_a-z0-9]*`)

// loggedTarget returns what was asked for as a log line has it. What may stand in the
// query of somebody who shows a token, or who asks the interface for programs or the
// DNS, is between the two of us.
func loggedTarget(r *http.Request) string {
	target := r.RequestURI
	if path, _, asked := strings.Cut(target, "?"); asked && (r.Header["Authorization"] != nil || strings.Contains(path, "/api/") || strings.HasPrefix(path, "/dns-query")) {
		target = path + "?..."
	}
	target = credential.ReplaceAllString(target, "stele_...")
	if len(target) > maxLogged {
		target = target[:maxLogged] + "..."
	}
	return target
}

// seenAnswer remembers what was answered.
type seenAnswer struct {
	http.ResponseWriter
	status int
	bytes  int64
	begun  bool
}

func (w *seenAnswer) WriteHeader(status int) {
	if !w.begun && status >= http.StatusOK {
		w.status, w.begun = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenAnswer) Write(b []byte) (int, error) {
	w.begun = true
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (w *seenAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
