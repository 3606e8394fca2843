package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/serve/desk"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/trace"
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
		return slog.New(requestHandler{slog.NewJSONHandler(w, o)})
	}
	return slog.New(requestHandler{slog.NewTextHandler(w, o)})
}

// requestHandler adds the id of the request, and that of its trace if it is recorded, to lines that are written on behalf of one.
type requestHandler struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h requestHandler) Handle(ctx context.Context, line slog.Record) error {
	if id := trace.Request(ctx); id != "" {
		line = line.Clone()
		line.AddAttrs(slog.String("request", id))
	}
	if span := trace.Of(ctx); span != nil {
		line = line.Clone()
		line.AddAttrs(slog.String("trace", span.Trace.String()))
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs and WithGroup implement [slog.Handler].
func (h requestHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return requestHandler{h.Handler.WithAttrs(attributes)}
}

func (h requestHandler) WithGroup(name string) slog.Handler {
	return requestHandler{h.Handler.WithGroup(name)}
}

// maxLogged is how many bytes of a request's target a log line has.
const maxLogged = 1024

// requestLog is a handler that logs each request that another one answers.
type requestLog struct {
	next      http.Handler
	log       *slog.Logger
	now       func() time.Time
	ids       func() string // makes ids of requests
	addresses bool          // log addresses of clients
}

func (l *requestLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = httpd.Named(r, l.ids)
	seen := &seenAnswer{ResponseWriter: w, status: http.StatusOK}
	begin := l.now()
	l.next.ServeHTTP(seen, r)
	if httpd.Declined(r) {
		return
	}
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

// credential is what a token looks like, wherever a client may have put it.
var credential = regexp.MustCompile(`(?i)stele((?:-|%2d)[a-z]+)?(_|%5f)[a-z0-9]+(_|%5f)[-_a-z0-9%]*`)

// loggedTarget returns the request target as a log line has it. The query is left out if the
// client sends a token, or asks the API or the DNS: it may be confidential.
func loggedTarget(r *http.Request) string {
	target := r.RequestURI
	if path, _, asked := strings.Cut(target, "?"); asked && (r.Header["Authorization"] != nil || strings.Contains(path, "/api/") || strings.HasPrefix(path, "/dns-query") || strings.HasPrefix(path, desk.Root+"issuer/")) {
		target = path + "?..."
	}
	// Whatever follows is a secret, in any spelling.
	for _, place := range []string{desk.Root + "link/", desk.Root + "confirm/"} {
		if at := strings.Index(target, place); at >= 0 { // after the host, in the form that proxies send
			target = target[:at+len(place)] + "..."
		}
	}
	target = credential.ReplaceAllString(target, "stele${1}_...")
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

// logFile is a log that can be opened anew, after another program has moved its file
// away. Without a name it is standard error.
type logFile struct {
	name  string
	other io.Writer // standard error

	mu   sync.Mutex
	file *os.File // nil for standard error
}

// openLog opens the log of that name.
func openLog(name string, stderr io.Writer) (*logFile, error) {
	l := &logFile{name: name, other: stderr}
	return l, l.reopen()
}

// reopen opens the file of the log's name, and makes it if it does not exist. If that fails,
// the open one stays.
func (l *logFile) reopen() error {
	if l.name == "" {
		return nil
	}
	if info, err := os.Stat(l.name); err == nil && !info.Mode().IsRegular() {
		return refuse("log", stele.Invalid, "server.log-not-a-file", `"{name}" is not a file; see log-file in 'stele config list'`, l.name)
	}
	// Lines can name restricted records. An operator who lets a group read the log makes
	// the file before, as logrotate does with "create".
	file, err := os.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return refuse("log", stele.Unavailable, "server.log-not-opened", "the log can't be opened, see log-file in 'stele config list': {cause}", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // each line was written
	}
	l.file = file
	return nil
}

// Write implements [io.Writer]. A line that the file can't take, since the disk is
// full perhaps, goes to standard error.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.other.Write(line)
	}
	if n, err := l.file.Write(line); err != nil {
		m, err := l.other.Write(line[n:])
		return n + m, err
	}
	return len(line), nil
}

// close closes the file. Lines that come later go to standard error.
func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}
