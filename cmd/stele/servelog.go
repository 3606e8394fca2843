package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// newLog makes the log that the configuration asks for. Both forms quote what could
// break a line or a terminal.
func newLog(w io.Writer, c *serveConfig) *slog.Logger {
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
	target := r.RequestURI
	if len(target) > maxLogged {
		target = target[:maxLogged] + "..."
	}
	attributes := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("target", target),
		slog.Int("status", seen.status),
		slog.Int64("bytes", seen.bytes),
		slog.Duration("took", l.now().Sub(begin)),
	}
	if l.addresses {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		attributes = append(attributes, slog.String("address", host))
	}
	l.log.LogAttrs(r.Context(), slog.LevelInfo, "request", attributes...)
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
